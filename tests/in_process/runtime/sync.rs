//! The same tools inside a call, for clients that know no tasks.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Client, Log, Mode, Node, Word, done, word};

/// Works in steps and reports.
#[mcp_task]
async fn working(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    assert!(ctx.task_id().is_none());
    let mut done = Vec::new();
    for (number, name) in [(1.0, "a"), (2.0, "b")] {
        let step: String = ctx
            .step(name, || async {
                log.push(name);
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok::<_, ToolError>(name.to_uppercase())
            })
            .await?;
        ctx.progress(number).total(2.0).message(name).send();
        done.push(step);
    }
    ctx.progress(1.5).send();
    ctx.extend_ttl(Duration::from_secs(1)).await?;
    Ok(done.join(" "))
}

/// Works and asks.
#[mcp_task]
async fn asking(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    work_and_ask(&ctx, &log).await
}

/// Works and asks, and is never a task.
#[mcp_tool]
async fn never_a_task(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    work_and_ask(&ctx, &log).await
}

async fn work_and_ask(ctx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    let step: String = ctx
        .step("a", || async {
            log.push("a");
            Ok::<_, ToolError>("A".to_owned())
        })
        .await?;
    Ok(format!("{step} {}", word(ctx.elicit::<Word>("Well?").await?)))
}

/// Asks, and goes on without.
#[mcp_task]
async fn coping(ctx: ToolContext) -> Result<String, ToolError> {
    match ctx.elicit::<Word>("Well?").await {
        Ok(answer) => Ok(word(answer)),
        Err(error) => Ok(format!("could not ask: {error}")),
    }
}

async fn start() -> (Node, Client, Log) {
    let (node, client) = Node::start(Mode::Straight, |b| {
        b.register::<working>()
            .register::<asking>()
            .register::<never_a_task>()
            .register::<coping>()
    })
    .await;
    let log = node.log.clone();
    (node, client.declaring(json!({"elicitation": {"form": {}}})), log)
}

/// Tasks extension, "Capability Negotiation": without it in this request the result is the answer; steps are simply done,
/// progress goes out as notifications that increase, and nothing is stored.
#[tokio::test(start_paused = true)]
async fn steps_and_progress_work_inside_a_call() {
    let (node, client, log) = start().await;
    let result = client.call("working", json!({})).await.expect("an answer");
    assert_eq!(result["content"][0]["text"], "A B");
    assert_eq!(log.lines(), ["a", "b"]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let progress: Vec<_> = client
        .progress()
        .into_iter()
        .map(|params| (params.progress, params.total, params.message))
        .collect();
    let expected = [("a", 1.0), ("b", 2.0)].map(|(name, done)| (done, Some(2.0), Some(name.to_owned())));
    assert_eq!(progress, expected);
    assert!(node.store.written().is_empty());
}

/// Multi Round-Trip Requests: a question inside a call is a round of that call, for a tool that never is a task too. What
/// was done before it comes back with the client, and is not done again.
#[tokio::test(start_paused = true)]
async fn a_question_inside_a_call_is_a_round_of_it() {
    let (node, client, log) = start().await;
    for tool in ["asking", "never_a_task"] {
        let round = client.begin(tool, &json!({})).await.asked();
        assert_eq!(round.questions["elicit-1"]["params"]["message"], "Well?");
        let answers = json!({"elicit-1": {"action": "accept", "content": {"word": "yes"}}});
        let answer = client.retry(tool, &json!({}), &round, answers).await;
        assert_eq!(answer.done(), done("A yes"));
    }
    assert_eq!(log.lines(), ["a", "a"], "once in each call");
    assert!(node.store.written().is_empty());
}

/// A question that the client cannot be asked ends the call with `-32021` and the capability that would help.
#[tokio::test(start_paused = true)]
async fn a_question_the_client_cannot_be_asked_says_what_it_needs() {
    let (_node, client, _) = start().await;
    let silent = client.declaring(json!({}));
    for tool in ["asking", "never_a_task"] {
        let error = silent.call(tool, json!({})).await.expect_err("it cannot ask");
        let needs_elicitation = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
        assert_eq!((error.code.0, error.data), (-32021, Some(needs_elicitation)), "{tool}");
    }
}

/// The error is an ordinary one: a body may go on without an answer.
#[tokio::test(start_paused = true)]
async fn a_body_may_cope_without_an_answer() {
    let (_node, client, _) = start().await;
    let silent = client.declaring(json!({}));
    let result = silent.call("coping", json!({})).await.expect("a result");
    let words = result["content"][0]["text"].as_str().expect("text");
    assert!(words.starts_with("could not ask: "), "{words}");
}
