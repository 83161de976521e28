//! A task that was parked by one build and is resumed by another: two runtimes on one store.

use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Log, Mode, Node, Word, code, keys, text, word};

mod first {
    use super::*;

    /// Asks one question after a step.
    #[mcp_task(name = "release")]
    pub(super) async fn release(ctx: ToolContext, name: String) -> Result<String, ToolError> {
        let built: String = ctx
            .step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
            .await?;
        let answer = word(ctx.elicit::<Word>(format!("Publish {name}?")).await?);
        Ok(format!("{built} {answer}"))
    }
}

macro_rules! second_build {
    ($module:ident, ($($attribute:tt)*), |$ctx:ident, $log:ident $(, $parameter:ident: $type:ty)*| $body:block) => {
        mod $module {
            use super::*;

            /// Another build of the same tool.
            #[mcp_task($($attribute)*)]
            pub(super) async fn release(
                $ctx: ToolContext,
                $log: State<Log>
                $(, $parameter: $type)*
            ) -> Result<String, ToolError> {
                $log.push("ran");
                let done: Result<String, ToolError> = $body;
                $log.push("came to its end");
                done
            }
        }
    };
}

second_build!(asks_before, (name = "release"), |ctx, log, name: String| {
    ctx.elicit::<Word>("May I begin?").await?;
    Ok(name)
});
second_build!(drops_the_question, (name = "release"), |ctx, log, name: String| {
    ctx.step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
        .await?;
    Ok(name)
});
second_build!(other_words, (name = "release"), |ctx, log, name: String| {
    ctx.step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
        .await?;
    Ok(word(ctx.elicit::<Word>(format!("Really publish {name}?")).await?))
});
second_build!(other_form, (name = "release"), |ctx, log, name: String| {
    #[derive(Deserialize, JsonSchema, ElicitForm)]
    struct Other {
        channel: Option<String>,
    }
    ctx.step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
        .await?;
    let answer = ctx.elicit::<Other>(format!("Publish {name}?")).await?;
    Ok(answer.accepted().and_then(|other| other.channel).unwrap_or_default())
});
second_build!(other_step, (name = "release"), |ctx, log, name: String| {
    ctx.step("compile", || async { Ok::<_, ToolError>("built".to_owned()) })
        .await?;
    Ok(word(ctx.elicit::<Word>(format!("Publish {name}?")).await?))
});
second_build!(other_step_type, (name = "release"), |ctx, log, name: String| {
    let built: u32 = ctx.step("build", || async { Ok::<_, ToolError>(1) }).await?;
    Ok(format!(
        "{built} {}",
        word(ctx.elicit::<Word>(format!("Publish {name}?")).await?)
    ))
});
second_build!(
    other_arguments,
    (name = "release"),
    |ctx, log, name: String, channel: String| { Ok(format!("{:?} {name} {channel}", ctx.task_id())) }
);
second_build!(
    optional_argument,
    (name = "release"),
    |ctx, log, name: String, channel: Option<String>| {
        let built: String = ctx
            .step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
            .await?;
        let answer = word(ctx.elicit::<Word>(format!("Publish {name}?")).await?);
        Ok(format!("{built} {answer} {}", channel.unwrap_or_default()))
    }
);
second_build!(
    other_version,
    (name = "release", version = "2"),
    |ctx, log, name: String| {
        let built: String = ctx
            .step("build", || async { Ok::<_, ToolError>("built".to_owned()) })
            .await?;
        let answer = word(ctx.elicit::<Word>(format!("Publish {name}?")).await?);
        Ok(format!("{built} {answer}"))
    }
);
second_build!(renamed, (name = "publish"), |ctx, log, name: String| {
    Ok(format!("{:?} {name}", ctx.task_id()))
});

/// Parks a task with the first build, answers it on the second, and returns how it ended and what the second body did.
async fn resumed(second: impl FnOnce(TaskRuntimeBuilder) -> TaskRuntimeBuilder) -> (Value, Vec<String>) {
    let (old, client) = Node::start(Mode::Straight, |b| b.register::<first::release>()).await;
    let id = client.start("release", json!({"name": "1.0"})).await;
    assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);

    let new = Node::on(&old.store, second);
    let client = new.client().await;
    assert_eq!(
        keys(&client.task(&id).await),
        ["elicit-1"],
        "a parked task is there for every node"
    );
    client.say(&id, "elicit-1", "yes").await;
    let task = client.settled(&id).await;
    assert_eq!(client.task(&id).await, task, "it has ended, and is not stuck");
    (task, new.log.lines())
}

fn assert_handler_changed(task: &Value, parts: &[&str]) {
    assert_eq!(code(task), -32602, "{task}");
    let message = task["error"]["message"].as_str().expect("an error has a message");
    assert!(message.contains("handler changed"), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// The same build goes on where the first node left off.
#[tokio::test(start_paused = true)]
async fn another_node_with_the_same_build_goes_on() {
    let (task, _) = resumed(|b| b.register::<first::release>()).await;
    assert_eq!(text(&task), "built yes");
}

/// A build that asks something else where the answer belongs fails the task, says what changed, and never sees the
/// answer.
#[tokio::test(start_paused = true)]
async fn a_build_that_asks_something_else_never_sees_the_answer() {
    let (task, log) = resumed(|b| b.register::<asks_before::release>()).await;
    assert_handler_changed(&task, &["call 0", "step \"build\"", "elicit \"May I begin?\""]);
    assert_eq!(log, ["ran"]);

    let (task, log) = resumed(|b| b.register::<other_words::release>()).await;
    assert_handler_changed(
        &task,
        &["call 1", "elicit \"Publish 1.0?\"", "elicit \"Really publish 1.0?\""],
    );
    assert_eq!(log, ["ran"]);

    let (task, log) = resumed(|b| b.register::<other_form::release>()).await;
    assert_handler_changed(&task, &["call 1", "not in its details"]);
    assert_eq!(log, ["ran"]);

    let (task, log) = resumed(|b| b.register::<other_step::release>()).await;
    assert_handler_changed(&task, &["call 0", "step \"build\"", "step \"compile\""]);
    assert_eq!(log, ["ran"]);
}

/// A build without the question ends, but not with a result: the answer was given to a question that is gone.
#[tokio::test(start_paused = true)]
async fn a_build_that_dropped_the_question_does_not_complete() {
    let (task, log) = resumed(|b| b.register::<drops_the_question::release>()).await;
    assert_handler_changed(&task, &["call 1", "elicit \"Publish 1.0?\"", "does not get there now"]);
    assert_eq!(log, ["ran", "came to its end"]);
}

/// A step's result that does not fit its type any more says so: that is why the body does not come to the question that was
/// answered.
#[tokio::test(start_paused = true)]
async fn a_step_result_of_another_type_does_not_complete() {
    let (task, log) = resumed(|b| b.register::<other_step_type::release>()).await;
    assert_handler_changed(&task, &["kept result of step \"build\"", "does not fit its type"]);
    assert_eq!(log, ["ran"]);
}

/// A task whose tool is gone, or renamed, fails with the name.
#[tokio::test(start_paused = true)]
async fn a_task_whose_tool_is_gone_fails() {
    let (task, _) = resumed(|b| b).await;
    assert_handler_changed(&task, &["no tool \"release\""]);
    let (task, log) = resumed(|b| b.register::<renamed::release>()).await;
    assert_handler_changed(&task, &["no tool \"release\""]);
    assert!(log.is_empty());
}

/// A build that takes arguments the call did not have fails the task before its body runs.
#[tokio::test(start_paused = true)]
async fn a_build_with_other_arguments_does_not_run() {
    let (task, log) = resumed(|b| b.register::<other_arguments::release>()).await;
    assert_handler_changed(&task, &["arguments", "channel"]);
    assert!(log.is_empty());
}

/// A new optional argument changes the schema and nothing else: the task goes on.
#[tokio::test(start_paused = true)]
async fn a_build_with_another_optional_argument_goes_on() {
    let (task, _) = resumed(|b| b.register::<optional_argument::release>()).await;
    assert_eq!(text(&task), "built yes ");
}

/// `version` on the attribute: a parked task of another version fails before it runs.
#[tokio::test(start_paused = true)]
async fn a_build_of_another_version_does_not_run() {
    let (task, log) = resumed(|b| b.register::<other_version::release>()).await;
    assert_handler_changed(&task, &["version none", "version 2"]);
    assert!(log.is_empty());
}
