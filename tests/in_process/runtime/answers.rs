//! `tasks/update`: which answers count, and when.

use std::time::Duration;

use futures::future::join_all;
use mcp_tasks::prelude::*;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Log, Mode, Node, Word, in_both_modes, keys, status, text, word};

/// Asks one question after the other.
#[mcp_task]
async fn two_in_a_row(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("run");
    let first = word(ctx.elicit::<Word>("First?").await?);
    let second = word(ctx.elicit::<Word>("Second?").await?);
    Ok(format!("{first} {second}"))
}

/// Asks two questions at once.
#[mcp_task]
async fn two_at_once(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("run");
    let a = ctx.elicit::<Word>("A?").key("a");
    let b = ctx.elicit::<Word>("B?").key("b");
    let (a, b) = tokio::join!(a, b);
    Ok(format!("{} {}", word(a?), word(b?)))
}

async fn start(tool: &str) -> (Node, crate::harness::Client, Log, String) {
    let (node, client) = Node::start(Mode::Straight, |b| {
        b.register::<two_in_a_row>().register::<two_at_once>()
    })
    .await;
    let id = client.start(tool, json!({})).await;
    let log = node.log.clone();
    (node, client, log, id)
}

/// Tasks extension, "Task Update Requests": an answer to what is not asked, not yet or not any more, is ignored, and
/// acknowledged all the same.
#[tokio::test(start_paused = true)]
async fn an_answer_before_its_question_is_published_is_ignored() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<two_in_a_row>()).await;
    let log = node.log.clone();
    // The write that publishes the question takes its time.
    node.store
        .script(|script| script.update.before = Duration::from_millis(100));
    let id = client.start("two_in_a_row", json!({})).await;
    node.store.script(|script| script.update.before = Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(10)).await;
    client.say(&id, "elicit-0", "early").await;
    assert_eq!(status(&client.task(&id).await), "working");
    let task = client.settled(&id).await;
    assert_eq!(keys(&task), ["elicit-0"]);
    client.say(&id, "elicit-0", "one").await;
    client.settled(&id).await;
    client.say(&id, "elicit-1", "two").await;
    assert_eq!(text(&client.settled(&id).await), "one two");
    assert_eq!(log.count("run"), 3);
}

/// A body that takes long to unwind has ended before its question can be answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_while_the_body_unwinds_waits_for_no_second_body() {
    struct Slow(State<Log>);
    impl Drop for Slow {
        fn drop(&mut self) {
            self.0.push("unwinding");
            std::thread::sleep(Duration::from_millis(100));
            self.0.push("unwound");
        }
    }
    /// Asks, with something at hand that is slow to drop.
    #[mcp_task]
    async fn slow_to_drop(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        log.push("run");
        let _slow = Slow(log.clone());
        Ok(word(ctx.elicit::<Word>("Well?").await?))
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<slow_to_drop>()).await;
    let id = client.start("slow_to_drop", json!({})).await;
    while node.log.count("unwinding") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    client.say(&id, "elicit-0", "early").await;
    assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
    client.say(&id, "elicit-0", "yes").await;
    assert_eq!(text(&client.settled(&id).await), "yes");
    let expected = ["run", "unwinding", "unwound", "run", "unwinding", "unwound"];
    assert_eq!(node.log.lines(), expected, "one body at a time");
}

/// The same answers eight times at once start one execution, and an answer given ahead of its question is no answer.
#[tokio::test(start_paused = true)]
async fn the_same_update_many_times_resumes_once() {
    let (node, client, log, id) = start("two_in_a_row").await;
    client.settled(&id).await;
    node.store
        .script(|script| script.update.after = Duration::from_millis(10));
    let responses = json!({
        "elicit-0": {"action": "accept", "content": {"word": "one"}},
        "elicit-1": {"action": "accept", "content": {"word": "ahead"}},
    });
    let all = join_all((0..8).map(|_| client.update(&id, responses.clone()))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let task = client.settled(&id).await;
    assert_eq!(keys(&task), ["elicit-1"]);
    assert_eq!(log.count("run"), 2);
    client.say(&id, "elicit-1", "two").await;
    assert_eq!(text(&client.settled(&id).await), "one two");
    assert_eq!(log.count("run"), 3);
}

/// An answered key is gone before the acknowledgement leaves.
#[tokio::test(start_paused = true)]
async fn an_answered_key_is_not_shown_again() {
    let (_node, client, _, id) = start("two_at_once").await;
    client.settled(&id).await;
    client.say(&id, "a", "one").await;
    assert_eq!(keys(&client.task(&id).await), ["b"]);
}

/// Tasks extension, "Task Update Requests": what answers is kept, what does not is ignored, and the task works again
/// when nothing is open.
#[tokio::test(start_paused = true)]
async fn partial_answers_are_kept_and_entries_that_are_no_answers_ignored() {
    let (node, client, log, id) = start("two_at_once").await;
    let asked = client.settled(&id).await;
    assert_eq!(keys(&asked), ["a", "b"]);
    for nothing in [
        json!({"zzz": {"action": "accept", "content": {"word": "x"}}}),
        json!({"elicit-0": {"action": "accept", "content": {"word": "x"}}}),
        json!({"a": 7}),
        json!({"a": null}),
        json!({"a": []}),
        json!({"a": {"action": "explode"}}),
        json!({"a": {"action": 7}}),
        json!({"a": {"content": {"word": "x"}}}),
        json!({"A": {"action": "decline"}}),
        json!({"a~2": {"action": "decline"}}),
        json!({}),
    ] {
        client.update(&id, nothing.clone()).await.expect("acknowledged");
        assert_eq!(client.task(&id).await, asked, "{nothing}");
    }
    let mixed = json!({"a": {"action": "accept", "content": {"word": "one"}}, "b": 7, "c": {"action": "decline"}});
    client.update(&id, mixed).await.expect("acknowledged");
    let half = client.task(&id).await;
    assert_eq!((status(&half), keys(&half)), ("input_required", vec!["b"]));
    client.say(&id, "a", "changed my mind").await;
    assert_eq!(client.task(&id).await, half, "an answer is never replaced");
    assert_eq!(
        (log.count("run"), node.store.record(&id).await.ledger.entries().len()),
        (1, 1)
    );
    client.say(&id, "b", "two").await;
    assert_eq!(text(&client.settled(&id).await), "one two");
    assert_eq!(log.count("run"), 2);
}

/// JSON-RPC `-32602`: a container that is none.
#[tokio::test(start_paused = true)]
async fn input_responses_that_are_no_object_are_invalid_params() {
    let (_node, client, _, id) = start("two_at_once").await;
    let asked = client.settled(&id).await;
    for params in [
        json!({"taskId": id}),
        json!({"taskId": id, "inputResponses": []}),
        json!({"taskId": id, "inputResponses": "a"}),
        json!({"taskId": id, "inputResponses": null}),
    ] {
        let error = client.raw("tasks/update", params.clone()).await.expect_err("refused");
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{params}: {error}");
    }
    assert_eq!(client.task(&id).await, asked);
}

/// Elicitation, "Response Actions": all three are answers, and content counts with `accept` alone.
#[tokio::test(start_paused = true)]
async fn decline_and_cancel_are_answers_whatever_content_they_carry() {
    for (response, expected) in [
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "decline", "content": {"word": 7}}), "declined"),
        (json!({"action": "decline", "content": "odd"}), "declined"),
        (json!({"action": "cancel", "content": null}), "cancelled"),
        (json!({"action": "cancel", "more": [1]}), "cancelled"),
        (json!({"action": "accept", "content": {"word": "w", "unknown": 1}}), "w"),
    ] {
        let (node, client, _, id) = start("two_at_once").await;
        client.settled(&id).await;
        client.update(&id, json!({"a": response})).await.expect("acknowledged");
        assert_eq!(keys(&client.task(&id).await), ["b"], "{response}");
        assert_eq!(node.store.record(&id).await.ledger.entries().len(), 1, "{response}");
        client.say(&id, "b", "b").await;
        assert_eq!(text(&client.settled(&id).await), format!("{expected} b"), "{response}");
    }
}

/// An accepted form without content is asked again where the form has required fields.
#[tokio::test(start_paused = true)]
async fn accept_without_content_is_looked_at_as_an_empty_form() {
    for response in [
        json!({"action": "accept"}),
        json!({"action": "accept", "content": null}),
    ] {
        let (_node, client, _, id) = start("two_at_once").await;
        client.settled(&id).await;
        client.update(&id, json!({"a": response})).await.expect("acknowledged");
        assert_eq!(keys(&client.task(&id).await), ["a~2", "b"], "{response}");
    }
}

in_both_modes! {
    /// A question asked again in the same words is another question under another key; one that was not answered keeps
    /// its key.
    async fn the_same_words_three_times_are_three_questions(mode: Mode) {
        /// Asks until it is told to stop.
        #[mcp_task]
        async fn nagging(ctx: ToolContext) -> Result<String, ToolError> {
            let mut rounds = 0;
            loop {
                rounds += 1;
                if word(ctx.elicit::<Word>("Enough?").await?) == "yes" {
                    return Ok(rounds.to_string());
                }
            }
        }
        let (_node, client) = Node::start(mode, |b| b.register::<nagging>()).await;
        let id = client.start("nagging", json!({})).await;
        for (key, answer) in [("elicit-0", "no"), ("elicit-1", "no"), ("elicit-2", "yes")] {
            let task = client.settled(&id).await;
            assert_eq!(keys(&task), [key]);
            client.update(&id, json!({key: {"action": "maybe"}})).await.expect("acknowledged");
            assert_eq!(client.task(&id).await, task);
            client.say(&id, key, answer).await;
        }
        assert_eq!(text(&client.settled(&id).await), "3");
    }

    /// A store may run a mutation as often as it likes: what it starts, it starts once.
    async fn a_store_that_runs_mutations_three_times_changes_nothing(mode: Mode) {
        /// A step, two questions and a report.
        #[mcp_task]
        async fn everything(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            log.push("run");
            ctx.progress(1.0).message("begun").send();
            let counted = log.clone();
            let step = ctx.step("work", || async move {
                counted.push("work");
                Ok::<_, ToolError>("worked".to_owned())
            });
            let done = step.await?;
            let first = word(ctx.elicit::<Word>("First?").await?);
            let second = word(ctx.elicit::<Word>("Second?").await?);
            Ok(format!("{done} {first} {second}"))
        }
        let (node, client) = Node::start(mode, |b| b.register::<everything>()).await;
        node.store.script(|script| script.reruns = 3);
        let id = client.start("everything", json!({})).await;
        for (key, answer) in [("elicit-1", "one"), ("elicit-2", "two")] {
            assert_eq!(keys(&client.settled(&id).await), [key]);
            client.say(&id, key, answer).await;
        }
        assert_eq!(text(&client.settled(&id).await), "worked one two");
        let replays = if mode == Mode::Straight { 3 } else { 4 };
        assert_eq!((node.log.count("run"), node.log.count("work")), (replays, 1));
        let versions: Vec<u64> = node.store.written().iter().map(|record| record.version).collect();
        let expected: Vec<u64> = (2..).take(versions.len()).collect();
        assert_eq!(versions, expected, "each write once");
        assert_eq!(node.store.record(&id).await.execution.epoch, replays as u64);
    }
}

/// The answers as they are shown carry the form the author wrote, and the words.
#[tokio::test(start_paused = true)]
async fn a_published_question_is_the_request_the_client_would_get_directly() {
    let (_node, client, _, id) = start("two_in_a_row").await;
    let task = client.settled(&id).await;
    let expected: Value = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "First?",
            "requestedSchema": {
                "type": "object",
                "description": "A form with one text.",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
            },
        },
    });
    assert_eq!(task["inputRequests"]["elicit-0"], expected);
}

/// The read is for the owner and the guard. The execution starts from what was written, which is not read back, and no
/// change that the store tells of it is taken for another node's.
#[tokio::test(start_paused = true)]
async fn an_update_costs_one_read_and_one_write() {
    /// Asks, then works for long.
    #[mcp_task]
    async fn asks_first(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        ctx.elicit::<Word>("Well?").await?;
        log.push("resumed");
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok("done".to_owned())
    }
    for after in [Duration::ZERO, Duration::from_millis(100)] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks_first>()).await;
        let id = client.start("asks_first", json!({})).await;
        client.settled(&id).await;
        // The store tells of the write before it acknowledges it.
        node.store.script(|script| script.update.after = after);
        let before = node.store.tally();
        client.say(&id, "elicit-0", "yes").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(node.log.count("resumed"), 1);
        let spent = node.store.tally();
        let operations = (spent.gets - before.gets, spent.updates - before.updates);
        assert_eq!(operations, (1, 1), "acknowledged after {after:?}");
    }
}
