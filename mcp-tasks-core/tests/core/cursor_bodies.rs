//! Bodies that the field has tripped over, run to their end and replayed.

use mcp_tasks_core::{Entry, Ledger};

use super::body::{Boxed, Ctx, End, drive, join, race};

/// Runs a body to its end with every question answered `yes`, and again from the last ledger; both ends.
fn twice(body: &dyn Fn(Ctx) -> Boxed) -> (String, Vec<String>) {
    let mut ledger = Ledger::default();
    let mut published = Vec::new();
    for seed in 0..20 {
        let (end, ctx) = drive(&ledger, seed, body, |_, _| {});
        match end {
            End::Done(output) => {
                let last = ctx.0.borrow_mut().cursor.ledger();
                let (again, ctx) = drive(&last, seed + 100, body, |_, _| {});
                assert!(matches!(again, End::Done(again) if again == output));
                assert!(ctx.0.borrow().started.is_empty());
                return (output, published);
            }
            End::Parked(parked) => {
                let keys = parked.open.iter().map(|request| &*request.key);
                published.push(keys.collect::<Vec<_>>().join(","));
                let mut entries: Vec<Entry> = parked.ledger.entries().to_vec();
                entries.extend(parked.open.iter().map(|request| {
                    let text = serde_json::json!({
                        "ordinal": request.ordinal, "kind": "elicit", "label": "", "key": request.key,
                        "fingerprint": request.fingerprint, "response": "yes", "issued": request.issued,
                    });
                    serde_json::from_value(text).unwrap()
                }));
                ledger = Ledger::new(entries);
            }
            end => panic!("{end:?}"),
        }
    }
    panic!("the body does not end");
}

#[test]
fn joined_sequences_of_steps_and_questions_replay_without_a_mismatch() {
    let sequence = |ctx: Ctx, name: &'static str| -> Boxed {
        Box::pin(async move {
            let first = ctx.step(format!("{name}1")).await;
            let answer = ctx.ask(format!("{name}?{first}")).await;
            let last = ctx.step(format!("{name}2{answer}")).await;
            format!("{first}{answer}{last}")
        })
    };
    let (output, published) = twice(&|ctx| {
        Box::pin(async move {
            let branches = ["a", "b", "c"].map(|name| sequence(ctx.clone(), name));
            join(branches.into()).await.join(" ")
        })
    });
    assert_eq!(output, "a1yesa2yes b1yesb2yes c1yesc2yes");
    assert!(published.iter().map(|keys| keys.split(',').count()).sum::<usize>() == 3);
}

#[test]
fn joined_questions_are_published_together() {
    let (output, published) = twice(&|ctx| {
        let questions: Vec<Boxed> = vec![Box::pin(ctx.ask("a".to_owned())), Box::pin(ctx.ask("b".to_owned()))];
        Box::pin(async { join(questions).await.join(" ") })
    });
    assert_eq!(output, "yes yes");
    assert_eq!(published, ["elicit-0,elicit-1"]);
}

#[test]
fn a_question_raced_against_a_step_is_asked_and_the_step_runs_at_most_once() {
    for step_first in [true, false] {
        let (output, published) = twice(&|ctx| {
            let step: Boxed = Box::pin(ctx.step("s"));
            let question: Boxed = Box::pin(ctx.ask("q".to_owned()));
            let branches = if step_first {
                vec![step, question]
            } else {
                vec![question, step]
            };
            Box::pin(async move { race(&ctx, branches).await })
        });
        assert_eq!(published.len(), 1, "{output}");
    }
}

#[test]
fn a_body_that_ends_while_a_question_is_open_has_not_ended() {
    // `select!` with something outside that gives up at once.
    let (output, published) = twice(&|ctx| {
        let question: Boxed = Box::pin(ctx.ask("q".to_owned()));
        let fallback: Boxed = Box::pin(async { "fallback".to_owned() });
        Box::pin(async move { race(&ctx, vec![question, fallback]).await })
    });
    assert_eq!((output.as_str(), published.len()), ("0:yes", 1));
}
