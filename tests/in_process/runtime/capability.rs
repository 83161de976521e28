//! What a client can be asked.

use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Log, Mode, Node, Word, code, in_both_modes, keys, status, text, word};

fn tasks_and(elicitation: Option<Value>) -> Value {
    let mut capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    if let Some(elicitation) = elicitation {
        capabilities["elicitation"] = elicitation;
    }
    capabilities
}

/// Asks and hands every error on.
#[mcp_task]
async fn trusting(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(word(ctx.elicit::<Word>("Well?").await?))
}

/// Asks twice, and goes on without an answer where it must.
#[mcp_task]
async fn adaptable(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let mut said = Vec::new();
    for question in ["First?", "Second?"] {
        said.push(match ctx.elicit::<Word>(question).await {
            Ok(answer) => word(answer),
            Err(ElicitError::NotSupported { .. }) => "cannot ask".to_owned(),
            Err(error) => return Err(error.into()),
        });
        let line = said.join(" ");
        ctx.step("note", || async {
            log.push(line);
            Ok::<_, ToolError>(())
        })
        .await?;
    }
    Ok(said.join(" "))
}

/// Multi Round-Trip Requests: a server must not ask for what the client did not declare. Unhandled, the task ends with
/// `-32021`, the capability and words a person can read.
#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_asked_is_never_asked() {
    for elicitation in [None, Some(json!({"url": {}}))] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<trusting>()).await;
        let client = client.declaring(tasks_and(elicitation));
        let id = client.start("trusting", json!({})).await;
        let task = client.settled(&id).await;
        assert_eq!(code(&task), -32021, "{task}");
        let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
        assert_eq!(task["error"]["data"], required);
        assert!(
            task["statusMessage"]
                .as_str()
                .is_some_and(|words| words.contains("elicitation")),
            "{task}"
        );
        let asked = node.store.written().iter().any(|record| !record.open.is_empty());
        assert!(!asked, "it was never published");
    }
}

/// `elicitation: {}` is form mode: what older declarations mean.
#[tokio::test(start_paused = true)]
async fn a_declaration_without_modes_is_form_mode() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<trusting>()).await;
    let client = client.declaring(tasks_and(Some(json!({}))));
    let id = client.start("trusting", json!({})).await;
    assert_eq!(status(&client.settled(&id).await), "input_required");
}

in_both_modes! {
    /// The capabilities are those of the request that triggered the execution, and what was refused under earlier ones
    /// replays as it was.
    async fn a_question_is_gated_by_the_request_that_triggered_its_execution(mode: Mode) {
        let (node, able) = Node::start(mode, |b| b.register::<adaptable>()).await;
        let unable = able.declaring(tasks_and(None));

        // Declared at the call, absent at the update.
        let id = able.start("adaptable", json!({})).await;
        assert_eq!(keys(&able.settled(&id).await), ["elicit-0"]);
        unable.say(&id, "elicit-0", "one").await;
        assert_eq!(text(&unable.settled(&id).await), "one cannot ask");

        // Never declared.
        let id = unable.start("adaptable", json!({})).await;
        assert_eq!(text(&unable.settled(&id).await), "cannot ask cannot ask");
        assert_eq!(node.log.lines().len(), 4, "no step twice: {:?}", node.log.lines());
    }
}

/// A refusal is in the ledger: the next execution, under other capabilities, is told the same.
#[tokio::test(start_paused = true)]
async fn a_refusal_replays_even_when_the_client_could_be_asked_now() {
    // The first write of a step ends the execution; the request that tells the task to go on brings other capabilities.
    let (_node, able) = Node::start(Mode::Replayed, |b| b.register::<adaptable>()).await;
    let unable = able.declaring(tasks_and(None));
    let id = unable.start("adaptable", json!({})).await;
    let task = able.settled(&id).await;
    assert_eq!(keys(&task), ["elicit-2"], "{task}");
    able.say(&id, "elicit-2", "two").await;
    assert_eq!(text(&able.settled(&id).await), "cannot ask two");
}

/// Declined is not "cannot be asked": the body can tell them apart.
#[tokio::test(start_paused = true)]
async fn declined_is_another_thing_than_not_supported() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<adaptable>()).await;
    let id = client.start("adaptable", json!({})).await;
    for key in ["elicit-0", "elicit-2"] {
        client.settled(&id).await;
        client
            .update(&id, json!({key: {"action": "decline"}}))
            .await
            .expect("acknowledged");
    }
    assert_eq!(text(&client.settled(&id).await), "declined declined");
}
