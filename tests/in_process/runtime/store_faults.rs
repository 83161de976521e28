//! A store that cannot be reached for a while, or loses acknowledgements.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, TestStore, Word, code, config, in_both_modes, keys, status, text, word};

/// Reports, works, asks, works.
#[mcp_task]
async fn thorough(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let mut said = Vec::new();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        ctx.progress(number as f64).total(3.0).message(name).send();
        let step: String = ctx
            .step(name, || async {
                log.push(name);
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok::<_, ToolError>(name.to_uppercase())
            })
            .await?;
        said.push(step);
        if name == "b" {
            said.push(word(ctx.elicit::<Word>("Well?").await?));
        }
    }
    Ok(said.join(" "))
}

async fn comes_to_its_end(mode: Mode, disturb: impl Fn(&TestStore)) {
    let (node, client) = Node::start(mode, |b| b.register::<thorough>()).await;
    let id = client.start("thorough", json!({})).await;
    disturb(&node.store);
    assert_eq!(keys(&client.settled(&id).await), ["elicit-2"]);
    client.say(&id, "elicit-2", "yes").await;
    disturb(&node.store);
    assert_eq!(text(&client.settled(&id).await), "A B yes C");
    assert_eq!(node.log.lines(), ["a", "b", "c"], "each step once");
    let versions: Vec<u64> = node.store.written().iter().map(|record| record.version).collect();
    assert!(
        versions.windows(2).all(|pair| pair[0] < pair[1]),
        "nothing was applied twice: {versions:?}"
    );
}

in_both_modes! {
    /// A write that did not arrive is repeated, and nothing is lost.
    async fn writes_that_do_not_arrive_are_repeated(mode: Mode) {
        for failures in 1..6 {
            comes_to_its_end(mode, |store| store.script(|script| script.update.fail = failures)).await;
        }
    }

    /// A write whose acknowledgement was lost is repeated under its id, and not applied again.
    async fn writes_whose_acknowledgement_is_lost_are_not_applied_twice(mode: Mode) {
        for losses in 1..6 {
            comes_to_its_end(mode, |store| store.script(|script| script.update.lose = losses)).await;
        }
    }
}

/// A store that is down for some seconds, in the middle of an execution, costs time and nothing else.
#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_is_survived() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<thorough>()).await;
    let id = client.start("thorough", json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    node.store.script(|script| script.down = true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let error = client.get(&id).await.expect_err("it is not known");
    assert_eq!(
        error.code.0, -32603,
        "not the words for a task that is unknown: {error}"
    );
    assert_eq!(node.log.lines(), ["a"], "the body waits for its step to be stored");
    node.store.script(|script| script.down = false);
    assert_eq!(keys(&client.settled(&id).await), ["elicit-2"]);
    client.say(&id, "elicit-2", "yes").await;
    assert_eq!(text(&client.settled(&id).await), "A B yes C");
    assert_eq!(node.log.lines(), ["a", "b", "c"]);
}

/// An acknowledgement that is lost on a request's own write, the one that creates, answers or cancels, is no failure: the
/// write is found under its id, and what it started is started.
#[tokio::test(start_paused = true)]
async fn a_request_survives_a_lost_acknowledgement() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<thorough>()).await;
    node.store.script(|script| script.create.lose = 1);
    let id = client.start("thorough", json!({})).await;
    assert_eq!(keys(&client.settled(&id).await), ["elicit-2"]);
    node.store.script(|script| script.update.lose = 1);
    client.say(&id, "elicit-2", "yes").await;
    assert_eq!(text(&client.settled(&id).await), "A B yes C");
    assert_eq!(node.log.lines(), ["a", "b", "c"]);

    let id = client.start("thorough", json!({})).await;
    client.settled(&id).await;
    node.store.script(|script| script.update.lose = 1);
    client.cancel(&id).await.expect("acknowledged");
    assert_eq!(client.task(&id).await["status"], "cancelled");
}

/// A call while the store is down mints nothing and says so; an update and a cancellation likewise.
#[tokio::test(start_paused = true)]
async fn requests_during_an_outage_fail_and_change_nothing() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<thorough>()).await;
    let id = client.start("thorough", json!({})).await;
    let asked = client.settled(&id).await;
    node.store.script(|script| script.down = true);
    let call = client.call("thorough", json!({})).await.expect_err("no task");
    let update = client
        .update(&id, json!({"elicit-2": {"action": "decline"}}))
        .await
        .expect_err("no answer");
    let cancel = client.cancel(&id).await.expect_err("no cancellation");
    for error in [call, update, cancel] {
        assert_eq!(error.code.0, -32603, "{error}");
    }
    node.store.script(|script| script.down = false);
    assert_eq!(client.task(&id).await, asked);
    assert_eq!(node.log.lines(), ["a", "b"], "no other task ran");
}

/// A connection that breaks costs a client nothing: what it asks for is read again.
#[tokio::test(start_paused = true)]
async fn a_read_that_does_not_arrive_is_repeated() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<thorough>()).await;
    let id = client.start("thorough", json!({})).await;
    client.settled(&id).await;
    for failures in 1..3 {
        node.store.script(|script| script.get.fail = failures);
        assert_eq!(keys(&client.task(&id).await), ["elicit-2"]);
    }
    node.store.script(|script| script.get.fail = 1);
    client.say(&id, "elicit-2", "yes").await;
    assert_eq!(text(&client.settled(&id).await), "A B yes C");
}

/// Every request is answered, soon and with advice, also where the store breaks its contract and never answers.
#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_holds_no_request() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<thorough>()).await;
    let id = client.start("thorough", json!({})).await;
    let asked = client.settled(&id).await;
    node.store.script(|script| script.mute = true);
    let answers = tokio::time::timeout(Duration::from_secs(10), async {
        let answer = json!({"elicit-2": {"action": "decline"}});
        tokio::join!(
            client.get(&id),
            client.call("thorough", json!({})),
            client.update(&id, answer),
            client.cancel(&id),
        )
    });
    let (get, call, update, cancel) = answers.await.expect("answers in time");
    let errors = [get.err(), call.err(), update.err(), cancel.err()];
    for error in errors.map(|error| error.expect("nothing can be told")) {
        assert_eq!(error.code.0, -32603, "{error}");
        assert!(error.message.contains("try again"), "{error}");
    }
    node.store.script(|script| script.mute = false);
    assert_eq!(client.task(&id).await, asked);
}

/// A task whose node is gone is shown as it is while the store refuses to have it taken over; the next look tries again.
#[tokio::test(start_paused = true)]
async fn an_abandoned_task_can_be_looked_at_on_a_full_disk() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<voluminous>()).await;
    let other = Node::on(&node.store, |b| b.register::<voluminous>().state(node.log.clone()));
    let other = other.client().await;
    let id = client.start("voluminous", json!({"way": "wait"})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The node that runs it cannot renew its lease either.
    node.store.script(|script| script.read_only = true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (captured, _guard) = crate::runtime::tracing_events::capture();
    assert_eq!(status(&other.task(&id).await), "working");
    let lines = captured.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("could not be taken over") && line.contains(&id)),
        "{lines:?}"
    );
    node.store.script(|script| script.read_only = false);
    other.task(&id).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(node.log.lines(), ["wait", "wait"], "it is run again, as its tool says");
}

/// The server's own look at its store, before it takes requests.
async fn checked(store: TestStore) -> (Result<(), mcp_tasks::store::StoreError>, Duration) {
    let runtime = TaskRuntime::builder()
        .without_inventory()
        .config(config(&[]))
        .store(store.shared())
        .build()
        .expect("nothing is wrong");
    let begun = tokio::time::Instant::now();
    (runtime.check_store().await, begun.elapsed())
}

/// A store that does not answer keeps the server from starting, after some patience.
#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_told_at_the_start() {
    let store = TestStore::new(Mode::Straight);
    store.script(|script| script.down = true);
    let (outcome, took) = checked(store).await;
    assert!(outcome.expect_err("it is down").is_retryable());
    assert!(
        took > Duration::from_secs(5) && took < Duration::from_secs(30),
        "{took:?}"
    );
    let (outcome, _) = checked(TestStore::new(Mode::Straight)).await;
    outcome.expect("it answers");
}

/// How long a text is that the store does not take.
const TOO_LONG: usize = 10_000;

/// Comes to more than the store takes, in one way or another.
#[mcp_task(on_crash = "replay")]
async fn voluminous(ctx: ToolContext, log: State<Log>, way: String) -> Result<String, ToolError> {
    log.push(way.as_str());
    let much = "much ".repeat(TOO_LONG);
    match way.as_str() {
        "result" => Ok(much),
        "error" => Err(ToolError::protocol(mcp_tasks::rmcp::ErrorData::internal_error(
            much, None,
        ))),
        "step" => ctx.step("much", || async { Ok::<_, ToolError>(much) }).await,
        "question" => Ok(word(ctx.elicit::<Word>(much).await?)),
        _ => {
            ctx.progress(1.0).message(much).send();
            std::future::pending().await
        }
    }
}

/// What a store refuses because it is too large for it fails the task, and at once. The node is there, so its client is
/// not told of a lost one; and as the work would come to the same again, no node does it again.
#[tokio::test(start_paused = true)]
async fn what_the_store_refuses_fails_the_task_and_is_not_done_again() {
    for way in ["result", "error", "step", "question", "progress"] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<voluminous>()).await;
        node.store.script(|script| script.longest_record = Some(TOO_LONG));
        let began = tokio::time::Instant::now();
        let id = client.start("voluminous", json!({ "way": way })).await;
        let task = client.settled(&id).await;
        assert_eq!(status(&task), "failed", "{way}: {task}");
        assert_eq!(code(&task), -32603, "{way}: {task}");
        let message = task["statusMessage"].as_str().unwrap_or_default();
        assert!(message.contains("store refuses"), "{way}: {task}");
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{way}: before its lease is over"
        );
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(node.log.lines(), [way], "once, also after its lease");
    }
}

/// How long a write takes.
const WRITE: Duration = Duration::from_millis(300);

#[mcp_task]
async fn work_and_end(_ctx: ToolContext, millis: u64) -> String {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    "done".to_owned()
}

#[mcp_task]
async fn work_and_ask(ctx: ToolContext, millis: u64) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    ctx.elicit::<Word>("Well?").key("well").await?;
    Ok("done".to_owned())
}

/// Over a store that lets one write through at a time, as a pool of one connection does, work that ends, or asks, while its
/// lease is being renewed, which is after a third of it, is stored at once: what the renewal holds is given back first.
#[tokio::test(start_paused = true)]
async fn what_ends_in_the_middle_of_a_renewal_is_stored_at_once() {
    let store = TestStore::new(Mode::Straight);
    let narrow = store.link();
    narrow.script(|script| (script.one_at_a_time, script.update.before) = (true, WRITE));
    let node = Node::on(&store, |b| {
        b.register::<work_and_end>().register::<work_and_ask>().store(narrow)
    });
    let client = node.client().await;
    for millis in (9_600..10_600).step_by(100) {
        for (tool, expected) in [("work_and_end", "completed"), ("work_and_ask", "input_required")] {
            let begun = tokio::time::Instant::now();
            let id = client.start(tool, json!({"millis": millis})).await;
            let task = client.settled(&id).await;
            assert_eq!(status(&task), expected, "{millis} ms: {task}");
            let late = begun.elapsed().saturating_sub(Duration::from_millis(millis));
            // Its own write, one that was in the way, and the client's interval.
            assert!(late < Duration::from_secs(3), "{millis} ms: {late:?} late");
            if expected == "input_required" {
                assert_eq!(keys(&task), ["well"]);
                client.cancel(&id).await.expect("acknowledged");
            }
        }
    }
}
