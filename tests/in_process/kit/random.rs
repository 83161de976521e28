//! Random bodies, run straight, replayed from every place, and begun anew from everything that was written.
//!
//! `KIT_SEED=7` runs one of them and shows its body, `KIT_SEEDS=20000` runs more than usual.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_tasks::testing::{EntryKind, Ledger, TestAnswer, TestOutcome, TestQuestion, TestTool};
use serde_json::json;

use crate::harness::Dice;
use crate::kit::tree::{Node, interpret, mix};

const SEEDS: u64 = 500;
const DEPTH: u32 = 3;

/// What a body may consist of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// How it ends depends on the answers alone.
    Decided,
    /// There are races that hang on which step is faster.
    Raced,
    /// Within such a race: what is not recorded must not decide it.
    InRace,
}

fn random_node(dice: &mut Dice, depth: u32, kind: Kind) -> Node {
    let many = |dice: &mut Dice, least: u32, kind: Kind| -> Vec<Node> {
        let count = least + dice.below(4 - least);
        (0..count).map(|_| random_node(dice, depth - 1, kind)).collect()
    };
    match dice.below(if depth == 0 { 10 } else { 18 }) {
        2 => Node::Fail,
        3 => Node::Ask,
        4 => Node::Now,
        5 => Node::Random,
        6 => Node::Sleep(dice.below(200) as u16),
        7 if kind != Kind::InRace => Node::Progress(dice.below(100) as u16),
        8 => Node::CanAsk,
        9 if kind != Kind::InRace => Node::Yield,
        0..=9 => Node::Step(dice.below(4) as u8),
        10 => Node::Branch(
            Box::new(random_node(dice, depth - 1, kind)),
            Box::new(random_node(dice, depth - 1, kind)),
        ),
        11..=13 => Node::Sequence(many(dice, 1, kind)),
        14 if kind != Kind::Decided => Node::Race(many(dice, 2, Kind::InRace)),
        // Decided races: work against a time limit, and two waits.
        14 => Node::Race(vec![
            Node::Sleep(1_000),
            Node::Sequence(vec![Node::Step(dice.below(4) as u8), Node::Step(dice.below(4) as u8)]),
        ]),
        15 => Node::Race(vec![
            Node::Sleep(300 + dice.below(9) as u16),
            Node::Sleep(290 + dice.below(9) as u16),
        ]),
        _ => Node::Join(many(dice, 2, kind)),
    }
}

/// The same answer to the same question, in whichever run it is asked; one that does not fit now and then.
fn reply(question: &TestQuestion) -> Option<TestAnswer> {
    let words = question.message().rsplit('\n').next().unwrap_or_default();
    let chosen = mix(7, words);
    let asked_again = question.key().contains('~');
    Some(match chosen % 8 {
        0 => TestAnswer::decline(),
        1 => TestAnswer::cancel(),
        2 if !asked_again => TestAnswer::accept(json!({"number": -1})),
        _ => TestAnswer::accept(json!({"number": chosen % 100})),
    })
}

fn steps_in(ledger: &Ledger) -> BTreeSet<String> {
    let steps = ledger.entries().iter().filter(|entry| entry.kind == EntryKind::Step);
    steps.map(|entry| entry.label.to_string()).collect()
}

/// What holds of every run, whatever it began with.
fn check_run(outcome: &TestOutcome, what: &str) {
    let mut asked = BTreeSet::new();
    for question in outcome.questions() {
        assert!(asked.insert(question.key()), "{what}: {question} was asked twice");
    }
    for step in outcome.steps() {
        assert!(
            step.calls() == 1 || !step.is_recorded(),
            "{what}: {:?} was begun {} times",
            step.name(),
            step.calls()
        );
    }
    let progress: Vec<f64> = outcome.progress().iter().map(|text| text.parse().unwrap()).collect();
    assert!(progress.is_sorted_by(|a, b| a < b), "{what}: {progress:?}");
}

async fn check(seed: u64) {
    let mut dice = Dice::new(seed);
    let kind = if seed.is_multiple_of(2) {
        Kind::Raced
    } else {
        Kind::Decided
    };
    let tree = random_node(&mut dice, DEPTH, kind);
    if std::env::var_os("KIT_SEED").is_some() {
        println!("{tree:#?}");
    }
    let mut test = TestTool::new::<interpret>().argument("tree", &tree).reply_with(reply);
    if seed.is_multiple_of(5) {
        test = test.as_call();
    }
    let straight = test.run().await;
    check_run(&straight, "straight");

    let replayed = test.clone().replaying().run().await;
    check_run(&replayed, "replaying");
    if kind == Kind::Decided {
        assert_eq!(replayed.text(), straight.text());
        let names = |outcome: &TestOutcome| outcome.step_names().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(names(&replayed), names(&straight));
        assert_eq!(replayed.elapsed(), straight.elapsed());
    }

    for (at, ledger) in straight.ledgers().iter().enumerate() {
        let resumed = test.clone().from_ledger(ledger.clone()).run().await;
        check_run(&resumed, "resumed");
        let kept = steps_in(ledger);
        let again = resumed.step_names().find(|name| kept.contains(*name));
        assert_eq!(again, None, "from write {at}, a kept step was begun again");
        let last = resumed.ledgers().last().unwrap();
        for before in ledger.entries() {
            let after = last.entries().iter().find(|entry| entry.ordinal == before.ordinal);
            assert_eq!(
                after.map(|entry| &entry.response),
                Some(&before.response),
                "from write {at}"
            );
        }
        if kind == Kind::Decided {
            assert_eq!(resumed.text(), straight.text(), "from write {at}");
        }
    }
    let last = straight.ledgers().last().unwrap().clone();
    let again = test.from_ledger(last).run().await;
    assert_eq!(again.text(), straight.text());
    assert!(again.steps().is_empty() || kind == Kind::Raced, "{:?}", again.steps());
    assert!(again.questions().is_empty());
}

#[test]
fn every_body_ends_alike_straight_replayed_and_resumed() {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let all = 0..number("KIT_SEEDS").unwrap_or(SEEDS);
    for seed in number("KIT_SEED").map_or(all, |seed| seed..seed + 1) {
        let outcome = std::panic::catch_unwind(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            runtime.block_on(async {
                // A body that hangs is a failure, not the end of the tests.
                let checked = tokio::time::timeout(Duration::from_secs(60), check(seed)).await;
                assert!(checked.is_ok(), "it hangs");
            });
        });
        assert!(outcome.is_ok(), "failed with KIT_SEED={seed}");
    }
}
