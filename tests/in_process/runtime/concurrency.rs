//! Several calls on the context at the same time.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, Word, in_both_modes, keys, text, word};

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// A step that says that it ran, and takes its time.
fn work(
    ctx: &ToolContext,
    log: &Log,
    name: &'static str,
    ms: u64,
) -> impl Future<Output = Result<String, ToolError>> + Send + use<> {
    let log = log.clone();
    ctx.step(name, move || async move {
        log.push(name);
        pause(ms).await;
        Ok::<_, ToolError>(name.to_uppercase())
    })
}

fn once_each(log: &Log, names: &[&str]) {
    let mut ran: Vec<String> = log.lines();
    ran.sort();
    assert_eq!(ran, names, "each step once");
}

in_both_modes! {
    /// Questions waited for together are published together, under keys that stay.
    async fn joined_questions_are_published_together(mode: Mode) {
        /// Joins two questions.
        #[mcp_task]
        async fn both(ctx: ToolContext) -> Result<String, ToolError> {
            let (a, b) = tokio::join!(ctx.elicit::<Word>("A?"), ctx.elicit::<Word>("B?"));
            Ok(format!("{} {}", word(a?), word(b?)))
        }
        let (_node, client) = Node::start(mode, |b| b.register::<both>()).await;
        let id = client.start("both", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-0", "elicit-1"]);
        client.say(&id, "elicit-1", "two").await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
        client.say(&id, "elicit-0", "one").await;
        assert_eq!(text(&client.settled(&id).await), "one two");
    }

    /// A timer beside a question does not end the waiting: the question is asked, and its answer is there at once on the
    /// next run.
    async fn a_question_beside_a_timer_wins(mode: Mode) {
        /// Selects between a question and a timer, the timer first.
        #[mcp_task]
        async fn hurried(ctx: ToolContext) -> Result<String, ToolError> {
            tokio::select! {
                biased;
                () = pause(1) => Ok("timed out".to_owned()),
                answer = ctx.elicit::<Word>("Well?") => Ok(word(answer?)),
            }
        }
        let (_node, client) = Node::start(mode, |b| b.register::<hurried>()).await;
        let id = client.start("hurried", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
        pause(10_000).await;
        client.say(&id, "elicit-0", "yes").await;
        assert_eq!(text(&client.settled(&id).await), "yes");
    }

    /// Combinators with wakers of their own hide nothing.
    async fn unordered_futures_replay(mode: Mode) {
        /// Asks and works in a `FuturesUnordered`.
        #[mcp_task]
        async fn unordered(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let mut steps: FuturesUnordered<_> = [("a", 30), ("b", 10), ("c", 20)]
                .into_iter()
                .map(|(name, ms)| work(&ctx, &log, name, ms))
                .collect();
            let mut done = Vec::new();
            while let Some(step) = steps.next().await {
                done.push(step?);
            }
            let mut questions: FuturesUnordered<_> =
                ["x", "y"].into_iter().map(|key| ctx.elicit::<Word>(key).key(key)).collect();
            while let Some(answer) = questions.next().await {
                done.push(word(answer?));
            }
            done.sort();
            Ok(done.join(" "))
        }
        let (node, client) = Node::start(mode, |b| b.register::<unordered>()).await;
        let id = client.start("unordered", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["x", "y"]);
        client.say(&id, "y", "two").await;
        client.say(&id, "x", "one").await;
        assert_eq!(text(&client.settled(&id).await), "A B C one two");
        if mode == Mode::Straight {
            once_each(&node.log, &["a", "b", "c"]);
        }
    }

    /// Sequences of steps and questions side by side replay without a mismatch, however their parts interleave.
    async fn joined_sequences_replay(mode: Mode) {
        async fn sequence(
            ctx: &ToolContext,
            log: &Log,
            names: [&'static str; 3],
            ms: u64,
        ) -> Result<String, ToolError> {
            let first = work(ctx, log, names[0], ms).await?;
            let answer = word(ctx.elicit::<Word>(names[1]).key(names[1]).await?);
            let last = work(ctx, log, names[2], ms).await?;
            Ok(format!("{first}-{answer}-{last}"))
        }
        /// Joins three sequences.
        #[mcp_task]
        async fn braided(ctx: ToolContext, log: State<Log>, pace: [u64; 3]) -> Result<String, ToolError> {
            let (a, b, c) = tokio::join!(
                sequence(&ctx, &log, ["a1", "a2", "a3"], pace[0]),
                sequence(&ctx, &log, ["b1", "b2", "b3"], pace[1]),
                sequence(&ctx, &log, ["c1", "c2", "c3"], pace[2]),
            );
            Ok(format!("{} {} {}", a?, b?, c?))
        }
        for pace in [[0, 0, 0], [10, 20, 30], [30, 20, 10], [0, 50, 10]] {
            let (node, client) = Node::start(mode, |b| b.register::<braided>()).await;
            let id = client.start("braided", json!({"pace": pace})).await;
            loop {
                let task = client.settled(&id).await;
                let Some(key) = keys(&task).last().map(|key| (*key).to_owned()) else {
                    assert_eq!(text(&task), "A1-a2-A3 B1-b2-B3 C1-c2-C3", "{pace:?}");
                    break;
                };
                client.say(&id, &key, &key).await;
            }
            // A step that runs while a write ends the execution runs again: it was in flight.
            if mode == Mode::Straight {
                once_each(&node.log, &["a1", "a3", "b1", "b3", "c1", "c3"]);
            }
        }
    }

    /// A step that runs beside a question ends, is kept, and is not run again.
    async fn a_step_beside_a_question_runs_once(mode: Mode) {
        /// Joins a step and a question, the step first.
        #[mcp_task]
        async fn side_by_side(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let (step, answer) = tokio::join!(work(&ctx, &log, "slow", 500), ctx.elicit::<Word>("Well?"));
            Ok(format!("{} {}", step?, word(answer?)))
        }
        let (node, client) = Node::start(mode, |b| b.register::<side_by_side>()).await;
        let id = client.start("side_by_side", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);
        once_each(&node.log, &["slow"]);
        client.say(&id, "elicit-1", "yes").await;
        assert_eq!(text(&client.settled(&id).await), "SLOW yes");
        once_each(&node.log, &["slow"]);
    }

    /// In a biased `select!` of a question and a step the question is asked whichever stands first.
    async fn a_question_selected_against_a_step_is_asked(mode: Mode) {
        /// Selects between a question and a step.
        #[mcp_task]
        async fn either(ctx: ToolContext, log: State<Log>, step_first: bool) -> Result<String, ToolError> {
            let question = ctx.elicit::<Word>("Well?").key("well");
            let step = work(&ctx, &log, "slow", 500);
            if step_first {
                tokio::select! { biased; done = step => done, answer = question => Ok(word(answer?)) }
            } else {
                tokio::select! { biased; answer = question => Ok(word(answer?)), done = step => done }
            }
        }
        for (step_first, ran, end) in [(true, 1, "SLOW"), (false, 0, "yes")] {
            let (node, client) = Node::start(mode, |b| b.register::<either>()).await;
            let id = client.start("either", json!({"step_first": step_first})).await;
            assert_eq!(keys(&client.settled(&id).await), ["well"]);
            assert_eq!(node.log.count("slow"), ran, "no step starts once a question is open");
            client.say(&id, "well", "yes").await;
            assert_eq!(text(&client.settled(&id).await), end);
            assert_eq!(node.log.count("slow"), ran);
        }
    }

    /// A step that loses a `select!` has no entry, and the run goes on without one.
    async fn a_step_that_loses_a_race_leaves_a_gap(mode: Mode) {
        /// Races two steps, then asks.
        #[mcp_task]
        async fn race(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let won = tokio::select! {
                biased;
                slow = work(&ctx, &log, "slow", 500) => slow?,
                fast = work(&ctx, &log, "fast", 10) => fast?,
            };
            Ok(format!("{won} {}", word(ctx.elicit::<Word>("Well?").await?)))
        }
        let (node, client) = Node::start(mode, |b| b.register::<race>()).await;
        let id = client.start("race", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-2"]);
        let ordinals: Vec<u32> =
            node.store.record(&id).await.ledger.entries().iter().map(|entry| entry.ordinal).collect();
        assert_eq!(ordinals, [1]);
        client.say(&id, "elicit-2", "yes").await;
        assert_eq!(text(&client.settled(&id).await), "FAST yes");
        assert_eq!(node.log.count("fast"), 1);
    }

    /// Outside the tool's own future there is no replay: calls there get an error that says so, at once, and take no
    /// place from the body's own calls.
    async fn a_call_from_a_spawned_task_gets_a_clear_error(mode: Mode) {
        /// Asks and works in a task of its own, then properly.
        #[mcp_task]
        async fn detached(ctx: ToolContext) -> Result<String, ToolError> {
            let leaked = ctx.clone();
            let spawned = tokio::spawn(async move {
                let question = leaked.elicit::<Word>("Lost?").await.expect_err("refused").to_string();
                let step = leaked.step("lost", || async { Ok::<_, ToolError>(()) }).await;
                (question, step.expect_err("refused").to_string())
            });
            let (question, step) = spawned.await?;
            let moved = ctx.elicit::<Word>("Moved?");
            let moved = tokio::spawn(async move { moved.await.expect_err("refused") }).await?;
            let answer = word(ctx.elicit::<Word>("Well?").await?);
            Ok([question, step, moved.to_string(), answer].join("\n"))
        }
        let (_node, client) = Node::start(mode, |b| b.register::<detached>()).await;
        let id = client.start("detached", json!({})).await;
        // One place was taken by the question that was built inside and awaited outside.
        assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);
        client.say(&id, "elicit-1", "yes").await;
        let task = client.settled(&id).await;
        let lines: Vec<&str> = text(&task).lines().collect();
        assert_eq!((lines.len(), lines[3]), (4, "yes"));
        for line in &lines[..3] {
            assert!(line.contains("outside the tool's own future"), "{line}");
        }
    }

    /// A question that is built and never awaited asks nothing; its place is taken all the same.
    async fn a_question_never_awaited_asks_nothing(mode: Mode) {
        /// Builds two questions and awaits the second.
        #[mcp_task]
        async fn wasteful(ctx: ToolContext) -> Result<String, ToolError> {
            let _unused = ctx.elicit::<Word>("Unused?");
            Ok(word(ctx.elicit::<Word>("Used?").await?))
        }
        let (_node, client) = Node::start(mode, |b| b.register::<wasteful>()).await;
        let id = client.start("wasteful", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);
        client.say(&id, "elicit-1", "yes").await;
        assert_eq!(text(&client.settled(&id).await), "yes");
    }

    /// A step is not done again, so nothing inside it can have a place in the ledger: a question or a step there gets an
    /// error at once, and neither waits for the other for ever.
    async fn a_call_inside_a_step_gets_a_clear_error(mode: Mode) {
        /// Asks and works inside a step.
        #[mcp_task]
        async fn nested(ctx: ToolContext) -> Result<String, ToolError> {
            let inside: Vec<String> = ctx
                .step("outer", || {
                    let built = ctx.elicit::<Word>("Built?");
                    async {
                        ctx.progress(1.0).message("reports are fine").send();
                        let inner = ctx.step("inner", || async { Ok::<_, ToolError>(()) }).await;
                        let asked = ctx.elicit::<Word>("Asked?").await;
                        let built = built.await;
                        Ok::<_, ToolError>(vec![
                            inner.expect_err("refused").to_string(),
                            asked.expect_err("refused").to_string(),
                            built.expect_err("refused").to_string(),
                        ])
                    }
                })
                .await?;
            let answer = word(ctx.elicit::<Word>("Well?").await?);
            Ok(format!("{}\n{answer}", inside.join("\n")))
        }
        let (_node, client) = Node::start(mode, |b| b.register::<nested>()).await;
        let id = client.start("nested", json!({})).await;
        let task = client.settled(&id).await;
        assert_eq!(keys(&task), ["elicit-1"], "{task}");
        client.say(&id, "elicit-1", "yes").await;
        let task = client.settled(&id).await;
        let lines: Vec<&str> = text(&task).lines().collect();
        assert_eq!((lines.len(), lines[3]), (4, "yes"));
        assert!(lines[..3].iter().all(|line| line.contains("inside")), "{lines:?}");
    }

    /// A step that took too long and was given up is given up on replay too, without being started again.
    async fn a_step_that_timed_out_is_not_started_again(mode: Mode) {
        /// Gives a step one second.
        #[mcp_task]
        async fn impatient(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let limit = Duration::from_secs(1);
            let step = tokio::time::timeout(limit, work(&ctx, &log, "slow", 60_000)).await;
            let late = step.is_err();
            let quick = work(&ctx, &log, "quick", 0).await?;
            Ok(format!("{late} {quick} {}", word(ctx.elicit::<Word>("Well?").await?)))
        }
        let (node, client) = Node::start(mode, |b| b.register::<impatient>()).await;
        let id = client.start("impatient", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-2"]);
        client.say(&id, "elicit-2", "yes").await;
        assert_eq!(text(&client.settled(&id).await), "true QUICK yes");
        once_each(&node.log, &["quick", "slow"]);
    }
}
