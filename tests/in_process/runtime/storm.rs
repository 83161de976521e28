//! Hundreds of tasks over a store of which nothing can be relied on: operations that never arrive, acknowledgements that
//! are lost, answers that take long or do not come in time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use mcp_tasks::host::Clock;
use mcp_tasks::prelude::*;
use mcp_tasks_core::{TaskId, TaskRecord, TaskStatus, TaskStore, WriteId};
use rmcp::ErrorData;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{Client, Dice, Log, Mode, Node, Storm, Word, keys, status, text, word};

const TASKS: u64 = 200;

/// Longer than any request may take, whatever the store does.
const AGE: Duration = Duration::from_secs(60);

/// Two steps, a question, a step.
#[mcp_task(ttl = "PT24H", on_crash = "replay")]
async fn brew(ctx: ToolContext, log: State<Log>, number: u64) -> Result<String, ToolError> {
    let step = async |name: &str| {
        let line = format!("{number} {name}");
        ctx.step(name, || async {
            log.push(line);
            sleep(Duration::from_millis(100)).await;
            Ok::<_, ToolError>(format!("{name}{number}"))
        })
        .await
    };
    let (grind, boil) = (step("grind").await?, step("boil").await?);
    ctx.progress(1.0).message("ground and boiled").send();
    let sugar = word(ctx.elicit::<Word>("Sugar?").key("sugar").await?);
    let pour = step("pour").await?;
    Ok(format!("{grind} {boil} {sugar} {pour}"))
}

/// A request, made again while the store cannot be reached, as a client does. It is answered in time, whatever the answer.
async fn insist<T>(mut request: impl AsyncFnMut() -> Result<T, ErrorData>) -> Result<T, ErrorData> {
    for _ in 0..1_000 {
        let answer = timeout(AGE, request())
            .await
            .expect("every request is answered in time");
        match answer {
            Err(error) if error.code.0 == -32603 => sleep(Duration::from_millis(500)).await,
            answer => return answer,
        }
    }
    panic!("a thousand attempts failed");
}

/// Takes one task to its end. Returns its id and its end.
async fn have(client: &Client, number: u64) -> (String, Value) {
    let created = insist(async || client.call("brew", json!({"number": number})).await).await;
    let created = created.expect("the call is accepted");
    let id = created["taskId"].as_str().expect("a task has an id").to_owned();
    let mut dice = Dice::new(number);
    loop {
        // What was acknowledged is there, however the weather is.
        let task = insist(async || client.get(&id).await).await.expect("the task is there");
        match status(&task) {
            "working" => {}
            "input_required" => {
                assert_eq!(keys(&task), ["sugar"]);
                let answer = json!({"sugar": {"action": "accept", "content": {"word": format!("sweet{number}")}}});
                insist(async || client.update(&id, answer.clone()).await)
                    .await
                    .expect("answers are acknowledged");
            }
            _ => return (id, task),
        }
        sleep(Duration::from_millis(500 + u64::from(dice.below(500)))).await;
    }
}

/// Takes all tasks to their ends under the storm. Returns how often each step ran.
async fn weathered(storm: Storm) -> BTreeMap<String, usize> {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<brew>()).await;
    node.store.script(|script| script.storm = Some(storm));
    let ends = join_all((0..TASKS).map(|number| have(&client, number))).await;
    node.store.script(|script| script.storm = None);
    let weather = node.store.tally();
    println!("{weather:?}");
    assert!(
        weather.dropped > 100 && weather.lost > 100 && weather.delayed > 100,
        "it was a storm: {weather:?}"
    );

    let written = node.store.written();
    for (number, (id, end)) in (0..).zip(&ends) {
        let wanted = format!("grind{number} boil{number} sweet{number} pour{number}");
        assert_eq!(text(end), wanted);
        assert_eq!(client.task(id).await, *end, "it stays as it was shown");
        let of_this = || written.iter().filter(|record| record.task_id.as_str() == id);
        let ended = of_this().filter(|record| record.status.is_terminal()).count();
        assert_eq!(ended, 1, "task {number} ends once");
        let asked = of_this().filter(|record| record.status == TaskStatus::InputRequired);
        assert_eq!(asked.count(), 1, "task {number} asks once");
        assert!(
            of_this().is_sorted_by(|a, b| a.version < b.version),
            "nothing was applied twice"
        );
    }
    let mut runs = BTreeMap::new();
    for line in node.log.lines() {
        *runs.entry(line).or_default() += 1;
    }
    runs
}

/// Operations that do not arrive, acknowledgements that are lost, delays of a second: every task ends, once, with the right
/// result, and every step runs once.
#[tokio::test(start_paused = true)]
async fn tasks_end_once_in_a_storm() {
    let mut storm = Storm::new(1);
    (storm.dropped, storm.lost, storm.delayed) = (200, 200, 300);
    storm.longest = Duration::from_secs(1);
    let runs = weathered(storm).await;
    assert_eq!(runs.len() as u64, 3 * TASKS);
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
}

/// Answers that do not come before the store's time-out, besides: an execution may lose its lease over one and be replayed,
/// and still every task ends once, with the right result, and nothing hangs along.
#[tokio::test(start_paused = true)]
async fn nothing_hangs_in_a_storm_whose_answers_do_not_come() {
    let mut storm = Storm::new(2);
    (storm.dropped, storm.lost, storm.delayed, storm.hung) = (150, 150, 300, 50);
    storm.longest = Duration::from_secs(1);
    let runs = weathered(storm).await;
    assert_eq!(runs.len() as u64, 3 * TASKS, "every step ran");
}

/// The wrapper does what it is told: what is dropped is never there, what is lost is.
#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_not_there_and_what_is_lost_is() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<brew>()).await;
    let id = client.start("brew", json!({"number": 1})).await;
    client.settled(&id).await;
    let only = |change: fn(&mut Storm)| {
        node.store.script(|script| {
            let mut storm = Storm::new(7);
            change(&mut storm);
            script.storm = Some(storm);
        });
    };
    only(|storm| storm.dropped = 1_000);
    let cancel = async |write| {
        let now = node.store.clock().now();
        let (task, mutation) = (TaskId::new(&id), move |r: &TaskRecord| r.cancelled(now));
        let cancel = node.store.update(&task, now, WriteId::new(write), Arc::new(mutation));
        timeout(AGE, cancel).await.expect("it is answered").map(drop)
    };
    cancel(1).await.expect_err("nothing arrives");
    assert_eq!(node.store.record(&id).await.status, TaskStatus::InputRequired);
    only(|storm| storm.hung = 1_000);
    timeout(AGE, client.get(&id))
        .await
        .expect("it is answered")
        .expect_err("with an error");
    only(|storm| storm.lost = 1_000);
    cancel(2).await.expect_err("nothing is acknowledged");
    assert_eq!(node.store.record(&id).await.status, TaskStatus::Cancelled);
}
