//! What an author wraps around a question cannot keep it from being asked.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, Word, in_both_modes, keys, text, word};

/// Asks, and does what it can to go on without an answer.
#[mcp_task]
async fn evasive(ctx: ToolContext, log: State<Log>, how: String) -> Result<String, ToolError> {
    let question = ctx.elicit::<Word>("Well?").key("well");
    let answer = match how.as_str() {
        "default" => question.await.map(word).unwrap_or_default(),
        "ok" => question.await.ok().map_or("nothing".to_owned(), word),
        "timeout" => match tokio::time::timeout(Duration::from_secs(1), question).await {
            Ok(answer) => word(answer?),
            Err(_) => "timed out".to_owned(),
        },
        "catch" => match AssertUnwindSafe(question).catch_unwind().await {
            Ok(answer) => word(answer?),
            Err(_) => "caught".to_owned(),
        },
        "anyhow" => match question.await.context("asking").map(word) {
            Ok(answer) => answer,
            Err(error) => format!("{error:#}"),
        },
        "now or never" => match question.now_or_never() {
            Some(answer) => word(answer?),
            None => "no time".to_owned(),
        },
        "drop" => {
            let mut question = Box::pin(question);
            tokio::select! {
                biased;
                answer = &mut question => word(answer?),
                () = std::future::ready(()) => "dropped".to_owned(),
            }
        }
        "error" => {
            if let Some(answer) = question.now_or_never() {
                word(answer?)
            } else {
                return Err(ToolError::new("gave up"));
            }
        }
        other => unreachable!("{other}"),
    };
    log.push(&answer);
    Ok(answer)
}

in_both_modes! {
    /// Tasks extension, "Input Required": the question still wins, the body's way out is not stored, and the next run has
    /// the answer.
    async fn nothing_around_a_question_swallows_it(mode: Mode) {
        for how in ["default", "ok", "timeout", "catch", "anyhow", "now or never", "drop", "error"] {
            let (node, client) = Node::start(mode, |b| b.register::<evasive>()).await;
            let id = client.start("evasive", json!({"how": how})).await;
            let task = client.settled(&id).await;
            assert_eq!(keys(&task), ["well"], "{how}: {task}");
            let record = node.store.record(&id).await;
            assert!(record.result.is_none() && record.ledger.is_empty(), "{how}: the fallback is not stored");
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(client.task(&id).await, task, "{how}");
            client.say(&id, "well", "yes").await;
            assert_eq!(text(&client.settled(&id).await), "yes", "{how}");
            assert_eq!(node.log.lines().last().map(String::as_str), Some("yes"), "{how}");
        }
    }

    /// What a body does between a dropped question and its next await neither counts nor starts steps.
    async fn a_step_after_a_dropped_question_does_not_start(mode: Mode) {
        /// Drops a question and works on.
        #[mcp_task]
        async fn hasty(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let answer = ctx.elicit::<Word>("Well?").now_or_never();
            let log = log.clone();
            ctx.step("work", || async move {
                log.push("work");
                Ok::<_, ToolError>(())
            })
            .await?;
            Ok(match answer {
                Some(answer) => word(answer?),
                None => "no time".to_owned(),
            })
        }
        let (node, client) = Node::start(mode, |b| b.register::<hasty>()).await;
        let id = client.start("hasty", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
        assert!(node.log.lines().is_empty());
        client.say(&id, "elicit-0", "yes").await;
        // On the next run too the body looks once and goes on, before as many calls are made as when it was parked. The
        // answer is there for code that waits for it, and forced on none.
        assert_eq!(text(&client.settled(&id).await), "no time");
        assert_eq!(node.log.lines(), ["work"]);
    }
}
