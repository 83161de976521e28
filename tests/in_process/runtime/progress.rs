//! Reports of progress.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Mode, Node, Word, status, text, word};

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Sends the reports it is given, some time apart.
#[mcp_task]
async fn reporting(ctx: ToolContext, reports: Vec<(f64, Option<f64>, Option<String>)>) -> String {
    for (progress, total, message) in reports {
        let mut report = ctx.progress(progress);
        if let Some(total) = total {
            report = report.total(total);
        }
        if let Some(message) = message {
            report = report.message(message);
        }
        report.send();
        pause(1000).await;
    }
    "done".to_owned()
}

async fn messages(reports: Value) -> Vec<String> {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<reporting>()).await;
    let id = client.start("reporting", json!({"reports": reports})).await;
    client.settled(&id).await;
    let written = node.store.written();
    written
        .iter()
        .filter(|record| !record.status.is_terminal())
        .filter_map(|record| record.status_message.as_deref().map(str::to_owned))
        .collect()
}

/// Tasks extension, "Status Messages": words a person can read, in one format.
#[tokio::test(start_paused = true)]
async fn a_report_becomes_the_status_message() {
    let reports = json!([
        [1.0, null, null],
        [2.0, 10.0, null],
        [3.0, null, "three"],
        [4.5, 10.0, "four and a half"],
        [5.0, 10.0, "Zürich\n\u{0}"],
        [6.0, 10.0, ""],
    ]);
    let expected = [
        "1",
        "2/10",
        "3: three",
        "4.5/10: four and a half",
        "5/10: Zürich\n\u{0}",
        "6/10: ",
    ];
    assert_eq!(messages(reports).await, expected);
}

/// Progress, "Progress must increase with each notification": what does not is dropped in silence.
#[tokio::test(start_paused = true)]
async fn progress_only_grows() {
    let reports = json!([
        [-2.0, null, null],
        [-3.0, null, null],
        [5.0, null, "five"],
        [5.0, null, "five again"],
        [4.0, null, "four"],
        [5.5, null, null],
    ]);
    assert_eq!(messages(reports).await, ["-2", "5: five", "5.5"]);
}

/// What is no number is no progress.
#[tokio::test(start_paused = true)]
async fn progress_that_is_no_number_is_dropped() {
    /// Reports what floats can hold besides numbers.
    #[mcp_task]
    async fn odd_numbers(ctx: ToolContext) -> String {
        for progress in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0] {
            ctx.progress(progress).total(f64::NAN).send();
            pause(1000).await;
        }
        "done".to_owned()
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<odd_numbers>()).await;
    let id = client.start("odd_numbers", json!({})).await;
    let task = client.settled(&id).await;
    assert_eq!((text(&task), &task["statusMessage"]), ("done", &json!("1")));
    assert_eq!(node.store.written().len(), 2, "one report and the end");
}

/// Reports faster than a store should be written are merged, and the newest is never the one that is lost.
#[tokio::test(start_paused = true)]
async fn a_burst_of_reports_is_few_writes() {
    /// Reports as fast as it can, then waits, then ends.
    #[mcp_task]
    async fn bursting(ctx: ToolContext, apart_ms: u64) -> String {
        let mut count = ctx.count_to(500);
        for number in 1..=500 {
            count.advance(1, format!("file {number}"));
            if apart_ms > 0 {
                pause(apart_ms).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
        pause(300).await;
        "done".to_owned()
    }
    // In one second of reports at most one write each tenth of it, the first, and the end.
    for (apart_ms, most) in [(0, 3), (2, 13)] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<bursting>()).await;
        let id = client.start("bursting", json!({"apart_ms": apart_ms})).await;
        let task = client.settled(&id).await;
        let written = node.store.written();
        assert!(
            (2..=most).contains(&written.len()),
            "{apart_ms} ms apart: {} writes",
            written.len()
        );
        let last = &written[written.len() - 2];
        assert_eq!(
            last.status_message.as_deref(),
            Some("500/500: file 500"),
            "before the end"
        );
        assert_eq!(task["statusMessage"], "500/500: file 500");
    }
}

/// The last report is in the terminal record, whether it was waiting, on its way to a slow store, or stored.
#[tokio::test(start_paused = true)]
async fn the_last_report_is_in_the_terminal_record() {
    /// Reports twice, waits, and ends.
    #[mcp_task]
    async fn ending(ctx: ToolContext, wait_ms: u64) -> String {
        ctx.progress(1.0).message("begun").send();
        pause(500).await;
        ctx.progress(2.0).message("finished").send();
        pause(wait_ms).await;
        "done".to_owned()
    }
    for store_ms in [0, 200] {
        for wait_ms in [0, 50, 150, 1000] {
            let (node, client) = Node::start(Mode::Straight, |b| b.register::<ending>()).await;
            node.store
                .script(|script| script.update.before = Duration::from_millis(store_ms));
            let id = client.start("ending", json!({"wait_ms": wait_ms})).await;
            let task = client.settled(&id).await;
            assert_eq!(
                task["statusMessage"], "2: finished",
                "store {store_ms} ms, wait {wait_ms} ms"
            );
        }
    }
}

/// The same holds for a task that is parked.
#[tokio::test(start_paused = true)]
async fn the_last_report_is_in_the_parked_record() {
    /// Reports, waits, and asks.
    #[mcp_task]
    async fn asking(ctx: ToolContext, wait_ms: u64) -> Result<String, ToolError> {
        ctx.progress(1.0).message("begun").send();
        pause(500).await;
        ctx.progress(2.0).message("asking").send();
        pause(wait_ms).await;
        Ok(word(ctx.elicit::<Word>("Well?").await?))
    }
    for wait_ms in [0, 50, 1000] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<asking>()).await;
        node.store
            .script(|script| script.update.before = Duration::from_millis(200));
        let id = client.start("asking", json!({"wait_ms": wait_ms})).await;
        let task = client.settled(&id).await;
        assert_eq!(
            (status(&task), &task["statusMessage"]),
            ("input_required", &json!("2: asking")),
            "{wait_ms} ms"
        );
    }
}

/// A replay reports again what was reported before: the record keeps the highest, and nothing is written for the rest.
#[tokio::test(start_paused = true)]
async fn a_replay_never_takes_progress_back() {
    /// Reports before and after a question.
    #[mcp_task]
    async fn replaying(ctx: ToolContext) -> Result<String, ToolError> {
        for progress in 1..=3 {
            ctx.progress(f64::from(progress)).total(4.0).send();
            pause(200).await;
        }
        let answer = word(ctx.elicit::<Word>("Well?").await?);
        ctx.progress(4.0).total(4.0).send();
        pause(200).await;
        Ok(answer)
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<replaying>()).await;
    let id = client.start("replaying", json!({})).await;
    let asked = client.settled(&id).await;
    assert_eq!(asked["statusMessage"], "3/4");
    let before = node.store.written().len();
    client.say(&id, "elicit-0", "yes").await;
    pause(500).await;
    let working = client.task(&id).await;
    assert_eq!(
        (status(&working), &working["statusMessage"]),
        ("working", &json!("3/4"))
    );
    assert_eq!(node.store.written().len(), before + 1, "the answer alone was written");
    assert_eq!(client.settled(&id).await["statusMessage"], "4/4");
    let highest: Vec<f64> = node
        .store
        .written()
        .iter()
        .filter_map(|record| record.progress)
        .collect();
    assert!(highest.is_sorted(), "{highest:?}");
}
