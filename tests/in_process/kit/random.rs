//! Random bodies, run straight, replayed from every place, and begun anew from everything that was written.
//!
//! `KIT_SEED=7` runs one of them and shows its body, `KIT_SEEDS=20000` runs more than usual.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_tasks::testing::{EntryKind, Ledger, TestAnswer, TestOutcome, TestQuestion, TestTool};
use serde_json::json;

use crate::kit::tree::{Node, interpret, mix};

const SEEDS: u64 = 500;
const DEPTH: u32 = 3;

/// xorshift64*: enough randomness for tests, and the same on every machine.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u16) -> u16 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 48;
        high as u16 % bound
    }

    fn small(&mut self) -> u8 {
        self.below(4) as u8
    }
}

/// What a body may consist of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// How it ends depends on the answers alone.
    Decided,
    /// There are races that hang on which step is faster.
    Raced,
    /// Within such a race: what nobody records must not decide it.
    InRace,
}

fn random_node(rng: &mut Rng, depth: u32, kind: Kind) -> Node {
    let many = |rng: &mut Rng, least: u16, kind: Kind| -> Vec<Node> {
        let count = least + rng.below(4 - least);
        (0..count).map(|_| random_node(rng, depth - 1, kind)).collect()
    };
    match rng.below(if depth == 0 { 10 } else { 18 }) {
        2 => Node::Fail,
        3 => Node::Ask,
        4 => Node::Now,
        5 => Node::Random,
        6 => Node::Sleep(rng.below(200)),
        7 if kind != Kind::InRace => Node::Progress(rng.below(100)),
        8 => Node::CanAsk,
        9 if kind != Kind::InRace => Node::Yield,
        0..=9 => Node::Step(rng.small()),
        10 => Node::Branch(
            Box::new(random_node(rng, depth - 1, kind)),
            Box::new(random_node(rng, depth - 1, kind)),
        ),
        11..=13 => Node::Sequence(many(rng, 1, kind)),
        14 if kind != Kind::Decided => Node::Race(many(rng, 2, Kind::InRace)),
        // Decided races: work against a time limit, and two waits.
        14 => Node::Race(vec![
            Node::Sleep(1_000),
            Node::Sequence(vec![Node::Step(rng.small()), Node::Step(rng.small())]),
        ]),
        15 => Node::Race(vec![Node::Sleep(300 + rng.below(9)), Node::Sleep(290 + rng.below(9))]),
        _ => Node::Join(many(rng, 2, kind)),
    }
}

/// The same answer to the same question, whoever asks it when; one that does not fit now and then.
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
    let mut rng = Rng::new(seed);
    let kind = if seed.is_multiple_of(2) {
        Kind::Raced
    } else {
        Kind::Decided
    };
    let tree = random_node(&mut rng, DEPTH, kind);
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
