//! What an operator sees in the log, and what no operator must.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use crate::harness::{Mode, Node, Word, keys, status, word};

#[derive(Debug, Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics inside").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    pub(crate) fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().expect("no test panics inside").clone();
        let text = String::from_utf8(bytes).expect("a log is text");
        text.lines().map(str::to_owned).collect()
    }

    /// The one line with these words about this task.
    fn line(&self, words: &str, id: &str) -> String {
        let lines = self.lines();
        let mut found = lines.iter().filter(|line| line.contains(words) && line.contains(id));
        let line = found
            .next()
            .unwrap_or_else(|| panic!("no {words:?} in\n{}", lines.join("\n")));
        assert!(found.next().is_none(), "{words:?} twice in\n{}", lines.join("\n"));
        line.clone()
    }
}

thread_local! {
    /// Where what this thread logs goes.
    static HERE: RefCell<Option<Captured>> = const { RefCell::new(None) };
}

/// Ends the capture of its thread.
#[derive(Debug)]
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        HERE.set(None);
    }
}

/// Captures what this thread logs at info, which is all of a test on one thread. One subscriber serves all threads: one
/// for each would depend on which thread comes by an event first.
pub(crate) fn capture() -> (Captured, Guard) {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .with_writer(|| HERE.with_borrow(Clone::clone).unwrap_or_default())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("no other test sets one");
    });
    let captured = Captured::default();
    HERE.set(Some(captured.clone()));
    (captured, Guard)
}

/// Keeps things to itself.
#[mcp_task(ttl = "PT1M")]
async fn discreet(ctx: ToolContext, password: String, fate: String) -> Result<String, ToolError> {
    ctx.progress(1.0).message(format!("message {password}")).send();
    let stored: String = ctx
        .step("fetch", || async { Ok::<_, ToolError>("SECRET-step".to_owned()) })
        .await?;
    let answer = word(ctx.elicit::<Word>(format!("Use {password}?")).await?);
    match fate.as_str() {
        "fail" => {
            return Err(ToolError::protocol(rmcp::ErrorData::invalid_params(
                "SECRET-error",
                None,
            )));
        }
        "expire" => tokio::time::sleep(Duration::from_secs(600)).await,
        _ => {}
    }
    Ok(format!("{stored} {answer} {password} SECRET-result"))
}

async fn lived(fate: &str) -> (Captured, String) {
    let (captured, _guard) = capture();
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<discreet>()).await;
    let arguments = json!({"password": "SECRET-argument", "fate": fate});
    let id = client.start("discreet", arguments).await;
    let task = client.settled(&id).await;
    assert_eq!(keys(&task), ["elicit-1"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    if fate == "cancel" {
        client.cancel(&id).await.expect("acknowledged");
        assert_eq!(status(&client.task(&id).await), "cancelled");
    } else {
        client.say(&id, "elicit-1", "SECRET-answer").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    if fate == "expire" {
        tokio::time::sleep(Duration::from_secs(120)).await;
    }
    (captured, id)
}

fn has_all(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
}

/// A task's life can be followed in the log at info: id, tool, and how long it took.
#[tokio::test(start_paused = true)]
async fn the_life_of_a_task_can_be_followed() {
    let (log, id) = lived("complete").await;
    has_all(&log.line("task created", &id), &["INFO", "discreet", "ttl_ms"]);
    has_all(&log.line("task suspended", &id), &["INFO", "discreet", "questions=1"]);
    has_all(&log.line("task resumed", &id), &["INFO", "discreet", "execution=2"]);
    has_all(
        &log.line("task finished", &id),
        &["INFO", "discreet", "completed", "duration_ms=2"],
    );
    let started: Vec<_> = log
        .lines()
        .into_iter()
        .filter(|line| line.contains("execution started"))
        .collect();
    assert_eq!(started.len(), 2, "{started:?}");
    for (line, execution) in started.iter().zip(["execution=1", "execution=2"]) {
        has_all(line, &["INFO", "discreet", &id, execution]);
    }
}

/// Every other end too.
#[tokio::test(start_paused = true)]
async fn every_end_is_in_the_log() {
    let (log, id) = lived("fail").await;
    has_all(&log.line("task finished", &id), &["discreet", "failed", "duration_ms="]);
    let (log, id) = lived("cancel").await;
    has_all(
        &log.line("task finished", &id),
        &["discreet", "cancelled", "duration_ms=2"],
    );
    let (log, id) = lived("expire").await;
    has_all(&log.line("task expired", &id), &["INFO", "discreet", "duration_ms=60"]);
    assert!(!log.lines().iter().any(|line| line.contains("task finished")));
}

/// Arguments, answers, results, messages and questions are the client's business alone.
#[tokio::test(start_paused = true)]
async fn nothing_a_user_or_a_tool_said_is_in_the_log() {
    for fate in ["complete", "fail", "cancel", "expire"] {
        let (log, _) = lived(fate).await;
        for line in log.lines() {
            assert!(!line.contains("SECRET"), "{fate}: {line}");
        }
        assert!(log.lines().len() >= 4, "{fate}: something was captured");
    }
}
