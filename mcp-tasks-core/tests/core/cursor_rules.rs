//! The rules of the replay machine, each by a sequence of calls made by hand.

use mcp_tasks_core::{
    Asked, Cursor, Divergence, Entry, EntryKind, Fault, InputKind, Ledger, Looked, Question, Slept, Timestamp,
};

use super::body::{json, print};

/// A ledger of entries `(ordinal, kind, name, turn, issued)`; everything is answered with its own name.
pub(super) fn ledger(entries: &[(u32, &str, &str, Option<u32>, u32)]) -> Ledger {
    let entry = |&(ordinal, kind, name, turn, issued): &(u32, &str, &str, Option<u32>, u32)| {
        let asks = if kind == "refusal" { "elicit" } else { kind };
        let key = (asks == "elicit").then(|| format!("key-{ordinal}"));
        serde_json::from_value::<Entry>(serde_json::json!({
            "ordinal": ordinal, "kind": kind, "key": key, "label": name, "fingerprint": print(asks, name),
            "response": name, "turn": turn, "issued": issued,
        }))
        .unwrap()
    };
    Ledger::new(entries.iter().map(entry).collect())
}

fn step(run: &mut Cursor, ordinal: u32, name: &str) -> Looked {
    run.look(ordinal, EntryKind::Step, name, print("step", name))
}

fn is_delivered(looked: &Looked) -> bool {
    matches!(looked, Looked::Delivered { .. })
}

pub(super) fn ask(run: &mut Cursor, ordinal: u32, message: &str, key: Option<&str>) -> Asked {
    let request = json(message);
    let mut question = Question::new(InputKind::Form, message, &request, print("elicit", message));
    question.key = key;
    run.ask(ordinal, &question)
}

fn ask_refused(run: &mut Cursor, ordinal: u32, message: &str) -> Asked {
    let (request, refusal) = (json(message), json("no form"));
    let mut question = Question::new(InputKind::Form, message, &request, print("elicit", message));
    question.refusal = Some(&refusal);
    run.ask(ordinal, &question)
}

pub(super) fn take(run: &mut Cursor, calls: u32) {
    for _ in 0..calls {
        let _ = run.take_ordinal();
    }
}

#[test]
fn a_step_reaches_the_body_once_it_is_stored_and_not_before() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    assert_eq!(step(&mut run, 0, "a"), Looked::Absent);
    assert!(run.begin_step());
    run.finish_step(0, "a", print("step", "a"), json("1"));
    assert_eq!(step(&mut run, 0, "a"), Looked::Held);
    assert!(run.is_unsaved());
    let written = run.ledger();
    assert!(!run.is_unsaved());
    assert_eq!(step(&mut run, 0, "a"), Looked::Held, "the write may still fail");
    run.saved(&written);
    assert!(is_delivered(&step(&mut run, 0, "a")));
}

#[test]
fn a_step_that_ends_during_a_write_waits_for_the_next_one() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 2);
    assert!(run.begin_step() && run.begin_step());
    run.finish_step(0, "a", print("step", "a"), json("a"));
    let first = run.ledger();
    run.finish_step(1, "b", print("step", "b"), json("b"));
    run.saved(&first);
    assert!(is_delivered(&step(&mut run, 0, "a")));
    assert_eq!(step(&mut run, 1, "b"), Looked::Held);
    assert!(run.is_unsaved());
}

#[test]
fn turns_are_repeated_whatever_the_order_of_polls() {
    // The branch that made its call second was answered first.
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", Some(1), 3), (1, "step", "b", Some(0), 2)]));
    take(&mut run, 2);
    assert_eq!(step(&mut run, 0, "a"), Looked::Held);
    assert!(is_delivered(&step(&mut run, 1, "b")));
    assert!(run.settle(), "somebody waits, and the replay got on");
    assert_eq!(
        step(&mut run, 0, "a"),
        Looked::Held,
        "b's branch made a third call before"
    );
    take(&mut run, 1);
    assert!(is_delivered(&step(&mut run, 0, "a")));
    assert!(is_delivered(&step(&mut run, 0, "a")), "looking again changes nothing");
    assert!(run.settle() || !run.is_blocked());
}

#[test]
fn answers_without_a_turn_come_after_all_that_have_one() {
    let mut run = Cursor::new(&ledger(&[(0, "elicit", "q", None, 2), (1, "step", "a", Some(0), 2)]));
    take(&mut run, 2);
    assert_eq!(ask(&mut run, 0, "q", None), Asked::Pending);
    assert!(is_delivered(&step(&mut run, 1, "a")));
    assert!(matches!(ask(&mut run, 0, "q", None), Asked::Delivered { .. }));
    let turns: Vec<_> = run.ledger().entries().iter().map(|entry| entry.turn).collect();
    assert_eq!(turns, [Some(1), Some(0)]);
}

#[test]
fn nothing_new_starts_before_the_replay_has_caught_up() {
    // A race that `b` won; `a` and `c` had been made and have no entry.
    let mut run = Cursor::new(&ledger(&[(1, "step", "b", Some(0), 3)]));
    take(&mut run, 3);
    assert_eq!(step(&mut run, 0, "a"), Looked::Absent);
    assert!(!run.begin_step());
    assert_eq!(ask(&mut run, 2, "c", None), Asked::Pending);
    assert!(!run.is_asking());
    assert_eq!(
        run.record(2, EntryKind::Now, "", print("now", ""), || json("t")),
        Looked::Held
    );
    assert!(is_delivered(&step(&mut run, 1, "b")));
    assert!(run.begin_step());
}

#[test]
fn a_recorded_answer_goes_before_the_start_of_a_step_beside_it() {
    // `select!` of a step that never started and a question whose answer has come.
    let mut run = Cursor::new(&ledger(&[(1, "elicit", "q", None, 2)]));
    take(&mut run, 2);
    assert!(!run.begin_step());
    assert!(matches!(ask(&mut run, 1, "q", None), Asked::Delivered { .. }));
}

#[test]
fn a_recorded_answer_that_nobody_awaits_any_more_does_not_hold_up_what_is_new() {
    // `b` won the race; `a` ended later and the body is not waiting for it.
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", None, 3), (1, "step", "b", Some(0), 2)]));
    take(&mut run, 2);
    assert_eq!(step(&mut run, 0, "a"), Looked::Held);
    assert!(is_delivered(&step(&mut run, 1, "b")));
    take(&mut run, 1);
    assert!(!run.begin_step(), "`a` may still be polled");
    assert!(run.settle());
    assert!(!run.begin_step());
    assert!(run.settle(), "a poll went by and nothing recorded was taken");
    assert!(run.begin_step());
    assert!(!run.settle() && !run.is_blocked());
    run.finish();
    assert_eq!(run.mismatch(), None, "it lost, as it had lost before");
}

#[test]
fn once_a_question_is_open_only_questions_join_it() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 6);
    assert!(run.begin_step());
    assert_eq!(ask(&mut run, 1, "q", None), Asked::Pending);
    assert!(!run.begin_step());
    let now = Timestamp::default();
    assert_eq!(run.sleep(2, print("sleep", ""), now, now), Slept::Held);
    let record = run.record(3, EntryKind::Now, "", print("now", ""), || json("t"));
    assert_eq!(record, Looked::Held);
    assert_eq!(ask(&mut run, 4, "r", Some("mine")), Asked::Pending);
    assert_eq!(ask_refused(&mut run, 5, "s"), Asked::Pending);
    assert!(!run.settle());
    assert!(!run.can_suspend(), "a step runs");
    run.finish_step(0, "a", print("step", "a"), json("a"));
    let written = run.ledger();
    run.saved(&written);
    assert_eq!(step(&mut run, 0, "a"), Looked::Held, "the run is about to end");
    assert!(run.can_suspend());

    let parked = run.suspend();
    let open: Vec<_> = parked
        .open
        .iter()
        .map(|request| (request.ordinal, &*request.key, request.issued))
        .collect();
    assert_eq!(open, [(1, "elicit-1", 6), (4, "mine", 6)]);
    let kept: Vec<_> = parked
        .ledger
        .entries()
        .iter()
        .map(|entry| (entry.ordinal, entry.kind, entry.turn, entry.issued))
        .collect();
    let expected = [(0, EntryKind::Step, None, 6), (5, EntryKind::Refusal, None, 6)];
    assert_eq!(kept, expected, "what was not delivered is marked with the calls made");
}

#[test]
fn a_question_is_open_from_its_first_poll_and_not_from_its_making() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    assert!(!run.is_asking() && !run.can_suspend());
    assert_eq!(ask(&mut run, 0, "q", None), Asked::Pending);
    assert_eq!(ask(&mut run, 0, "q", None), Asked::Pending);
    assert!(run.can_suspend());
    assert_eq!(run.suspend().open.len(), 1);
}

#[test]
fn a_refused_question_is_answered_at_once_and_again_on_replay() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    let refused = Asked::Delivered {
        kind: EntryKind::Refusal,
        response: json("no form"),
    };
    assert_eq!(ask_refused(&mut run, 0, "q"), refused);
    assert!(!run.is_asking());
    // On replay the client could be asked; the refusal stays.
    let mut replay = Cursor::new(&run.ledger());
    take(&mut replay, 1);
    assert_eq!(ask(&mut replay, 0, "q", None), refused);
    assert!(!replay.is_asking());
}

#[test]
fn a_key_is_used_once_in_a_tasks_life() {
    let twice = |key: &str| Fault::KeyUsedTwice { key: key.into() };
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 2);
    let _ = ask(&mut run, 0, "q", Some("mine"));
    let _ = ask(&mut run, 0, "q", Some("mine"));
    assert_eq!(run.fault(), None);
    let _ = ask(&mut run, 1, "r", Some("mine"));
    assert_eq!(run.fault(), Some(&twice("mine")));
    assert!(!run.can_suspend() && !run.begin_step() && !run.settle());

    // Answered in an earlier execution.
    let mut run = Cursor::new(&ledger(&[(0, "elicit", "q", None, 1)]));
    take(&mut run, 2);
    assert!(matches!(ask(&mut run, 0, "q", Some("key-0")), Asked::Delivered { .. }));
    let _ = ask(&mut run, 1, "r", Some("key-0"));
    assert_eq!(run.fault(), Some(&twice("key-0")));
}

#[test]
fn an_answer_under_a_later_asking_holds_the_key_too() {
    let text = r#"[{"ordinal":0,"kind":"elicit","key":"mine~2","label":"","fingerprint":"8b40f473ddf813b250b04d6c73e2df9a0b7bbf86a33e002e8c043337f477b6a1","response":1,"issued":1}]"#;
    let mut run = Cursor::new(&serde_json::from_str(text).unwrap());
    let print = mcp_tasks_core::Fingerprint::of("step", "", None);
    take(&mut run, 2);
    assert!(is_delivered(&run.look(0, EntryKind::Elicit, "", print)));
    let _ = ask(&mut run, 1, "r", Some("mine"));
    assert_eq!(run.fault(), Some(&Fault::KeyUsedTwice { key: "mine".into() }));
}

#[test]
fn keys_in_the_frameworks_space_are_refused() {
    for key in ["", "a~2", "~", "elicit-", "elicit-7"] {
        let mut run = Cursor::new(&Ledger::default());
        take(&mut run, 1);
        let _ = ask(&mut run, 0, "q", Some(key));
        assert_eq!(run.fault(), Some(&Fault::KeyReserved { key: key.into() }));
        assert!(!run.is_asking());
    }
}

#[test]
fn another_call_at_a_recorded_place_stops_the_run_and_gets_no_answer() {
    let mut run = Cursor::new(&ledger(&[
        (0, "elicit", "Delete a?", Some(0), 1),
        (1, "step", "b", Some(1), 2),
    ]));
    take(&mut run, 2);
    assert_eq!(ask(&mut run, 0, "Delete b?", None), Asked::Pending);
    let mismatch = run.mismatch().unwrap().clone();
    assert_eq!(mismatch.ordinal, 0);
    assert_eq!(mismatch.recorded, (EntryKind::Elicit, "Delete a?".into()));
    let attempted = (EntryKind::Elicit, "Delete b?".into());
    assert_eq!(mismatch.divergence, Divergence::Different { attempted });
    let report = mismatch.to_string();
    assert!(report.contains("call 0") && report.contains("Delete a?") && report.contains("Delete b?"));
    // Nothing goes on after it, and the first report stands.
    assert_eq!(step(&mut run, 1, "b"), Looked::Diverged);
    assert!(!run.begin_step() && !run.settle() && !run.can_suspend());
    let now = Timestamp::default();
    assert_eq!(run.sleep(1, print("sleep", ""), now, now), Slept::Diverged);
    run.finish();
    run.stalled();
    assert_eq!(run.mismatch(), Some(&mismatch));
}

#[test]
fn the_report_says_whether_the_schema_changed_where_that_is_known() {
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", Some(0), 1)]));
    take(&mut run, 1);
    assert_eq!(step(&mut run, 0, "b"), Looked::Diverged);
    let mut mismatch = run.mismatch().unwrap().clone();
    assert!(!mismatch.to_string().contains("schema is") && !mismatch.to_string().contains("schema changed"));
    mismatch.schema_changed = Some(true);
    assert!(mismatch.to_string().contains("The tool's input schema changed too"));
    mismatch.schema_changed = Some(false);
    assert!(mismatch.to_string().contains("The tool's input schema is unchanged"));
}

#[test]
fn another_kind_of_call_with_the_same_name_is_a_mismatch() {
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", Some(0), 1)]));
    take(&mut run, 1);
    assert_eq!(ask(&mut run, 0, "a", None), Asked::Pending);
    assert!(run.mismatch().is_some());
}

#[test]
fn a_body_that_ends_before_a_recorded_call_is_a_mismatch() {
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", Some(0), 1), (1, "step", "b", None, 2)]));
    take(&mut run, 1);
    assert!(is_delivered(&step(&mut run, 0, "a")));
    run.finish();
    let mismatch = run.mismatch().unwrap();
    assert_eq!((mismatch.ordinal, &mismatch.divergence), (1, &Divergence::NotReached));
}

#[test]
fn a_body_that_ends_without_an_answer_it_once_took_is_a_mismatch() {
    let mut run = Cursor::new(&ledger(&[(0, "step", "a", Some(0), 1)]));
    take(&mut run, 1);
    run.finish();
    let mismatch = run.mismatch().unwrap();
    assert_eq!((mismatch.ordinal, &mismatch.divergence), (0, &Divergence::NotAwaited));
}

#[test]
fn a_body_that_waits_for_answers_out_of_their_order_is_blocked_and_then_stalled() {
    let recorded = ledger(&[(0, "step", "a", Some(0), 1), (1, "step", "b", Some(1), 2)]);
    // Now it waits for `b` alone.
    let mut run = Cursor::new(&recorded);
    take(&mut run, 2);
    assert_eq!(step(&mut run, 1, "b"), Looked::Held);
    assert!(run.settle(), "calls were made");
    assert_eq!(step(&mut run, 1, "b"), Looked::Held);
    assert!(!run.settle());
    assert!(run.is_blocked());
    run.stalled();
    let mismatch = run.mismatch().unwrap();
    assert_eq!((mismatch.ordinal, &mismatch.divergence), (0, &Divergence::OutOfOrder));

    // Now it waits for something else where it made the recorded call.
    let mut run = Cursor::new(&recorded);
    take(&mut run, 1);
    assert!(is_delivered(&step(&mut run, 0, "a")));
    assert!(!run.settle() && !run.is_blocked(), "nobody waits for the machine");
    run.stalled();
    let mismatch = run.mismatch().unwrap();
    assert_eq!((mismatch.ordinal, &mismatch.divergence), (1, &Divergence::NotReached));
}

#[test]
fn a_step_the_body_drops_leaves_no_entry_and_does_not_hold_up_a_suspension() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 2);
    assert!(run.begin_step());
    let _ = ask(&mut run, 1, "q", None);
    assert!(!run.can_suspend());
    run.abandon_step();
    assert!(run.can_suspend());
    assert!(run.suspend().ledger.is_empty());
}

#[test]
fn steps_that_run_are_given_up_together() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 3);
    assert!(run.begin_step() && run.begin_step());
    let _ = ask(&mut run, 2, "q", None);
    assert!(run.is_stepping() && !run.can_suspend());
    run.abandon_steps();
    assert!(!run.is_stepping() && run.can_suspend());
    assert!(run.suspend().ledger.is_empty());
}

#[test]
fn facts_that_every_run_comes_upon_again_need_not_be_stored_first() {
    for kind in [EntryKind::Defer, EntryKind::Client] {
        let mut run = Cursor::new(&Ledger::default());
        take(&mut run, 1);
        let print = print(kind.as_str(), "");
        let looked = run.record(0, kind, "", print, || json("x"));
        assert!(is_delivered(&looked), "{kind:?}");
        assert!(!run.is_unsaved(), "{kind:?}");
    }
}

#[test]
fn the_clock_is_read_once_and_chance_is_drawn_once() {
    a_fact_is_made_once(EntryKind::Now);
    a_fact_is_made_once(EntryKind::Random);
}

fn a_fact_is_made_once(kind: EntryKind) {
    let fact = |run: &mut Cursor, text: &str| run.record(0, kind, "", print(kind.as_str(), ""), || json(text));
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    let first = Looked::Delivered {
        kind,
        response: json("4"),
    };
    assert_eq!(
        fact(&mut run, "4"),
        Looked::Held,
        "nobody acts on it before it is stored"
    );
    assert!(run.is_unsaved());
    let ledger = run.ledger();
    run.saved(&ledger);
    assert_eq!(fact(&mut run, "5"), first);
    assert_eq!(fact(&mut run, "5"), first);
    let mut replay = Cursor::new(&run.ledger());
    take(&mut replay, 1);
    assert_eq!(fact(&mut replay, "6"), first);
}

#[test]
fn a_wait_ends_at_the_instant_that_was_recorded() {
    let at = Timestamp::from_millis;
    let print = print("sleep", "");
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    assert_eq!(run.sleep(0, print, at(100), at(0)), Slept::Until(at(100)));
    assert!(run.is_unsaved(), "another node must not wait from the start");
    assert_eq!(run.sleep(0, print, at(150), at(50)), Slept::Until(at(100)));

    let mut other = Cursor::new(&run.ledger());
    take(&mut other, 1);
    assert_eq!(other.sleep(0, print, at(199), at(99)), Slept::Until(at(100)));
    assert_eq!(other.sleep(0, print, at(200), at(100)), Slept::Over);
    // Over is over, also for a node whose clock is behind.
    let mut third = Cursor::new(&other.ledger());
    take(&mut third, 1);
    assert_eq!(third.sleep(0, print, at(101), at(1)), Slept::Over);
}

#[test]
fn a_run_that_is_held_after_an_entry_starts_nothing_more_and_delivers_what_it_has() {
    let mut run = Cursor::new(&Ledger::default());
    run.hold_after_entry();
    take(&mut run, 5);
    assert!(run.begin_step() && run.begin_step(), "nothing was added yet");
    run.finish_step(0, "a", print("step", "a"), json("a"));
    assert!(run.is_held() && run.is_stepping());
    assert!(!run.begin_step());
    assert_eq!(ask(&mut run, 2, "q", None), Asked::Pending);
    assert!(!run.is_asking());
    let at = Timestamp::from_millis;
    assert_eq!(run.sleep(3, print("sleep", ""), at(2), at(1)), Slept::Held);
    let fact = run.record(4, EntryKind::Now, "", print("now", ""), || json("never"));
    assert_eq!(fact, Looked::Held);

    run.finish_step(1, "b", print("step", "b"), json("b"));
    let written = run.ledger();
    run.saved(&written);
    assert!(is_delivered(&step(&mut run, 0, "a")) && is_delivered(&step(&mut run, 1, "b")));

    let mut again = Cursor::new(&run.ledger());
    again.hold_after_entry();
    take(&mut again, 5);
    assert!(is_delivered(&step(&mut again, 0, "a")) && is_delivered(&step(&mut again, 1, "b")));
    assert!(
        !again.is_held() && again.begin_step(),
        "what is recorded does not hold it"
    );

    run.release();
    assert!(run.begin_step());
}

#[test]
fn a_ledger_may_have_gaps() {
    let mut run = Cursor::new(&ledger(&[(7, "step", "a", Some(0), 9)]));
    take(&mut run, 9);
    assert!(is_delivered(&step(&mut run, 7, "a")));
    assert_eq!(step(&mut run, 6, "z"), Looked::Absent);
    assert!(run.begin_step());
}

#[test]
fn ledgers_keep_the_first_of_two_entries_for_one_place_and_sort_the_rest() {
    let mixed = ledger(&[
        (3, "step", "c", None, 4),
        (1, "step", "a", None, 4),
        (3, "step", "d", None, 4),
    ]);
    let labels: Vec<_> = mixed.entries().iter().map(|entry| &*entry.label).collect();
    assert_eq!(labels, ["a", "c"]);
    let text = serde_json::to_string(&mixed).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), mixed);
}

#[test]
fn a_run_can_sleep_when_nothing_but_time_is_missing() {
    let (now, wake) = (Timestamp::from_millis(1_000), Timestamp::from_millis(9_000));
    let sleep = |run: &mut Cursor, ordinal| run.sleep(ordinal, print("sleep", ""), wake, now);
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 2);
    assert_eq!(sleep(&mut run, 0), Slept::Until(wake));
    assert!(
        run.can_rest(),
        "the wait goes with the write that puts the run to sleep"
    );
    assert!(run.begin_step());
    assert!(!run.can_rest(), "a step runs");
    run.finish_step(1, "a", print("step", "a"), json("1"));
    assert!(!run.can_rest(), "its result is on its way to the body");
    let written = run.ledger();
    run.saved(&written);
    assert!(is_delivered(&step(&mut run, 1, "a")));
    assert!(run.can_rest());
    let left = run.ledger();
    take(&mut run, 1);
    assert_eq!(ask(&mut run, 2, "Go on?", None), Asked::Pending);
    assert!(!run.can_rest(), "a question wins");

    let mut replay = Cursor::new(&left);
    take(&mut replay, 1);
    assert_eq!(
        sleep(&mut replay, 0),
        Slept::Until(wake),
        "on a later run the same instant"
    );
    assert_eq!(
        replay.sleep(0, print("sleep", ""), wake, wake),
        Slept::Held,
        "not before the step's turn"
    );
    assert!(!replay.can_rest(), "the replay is not through");
    take(&mut replay, 1);
    assert!(is_delivered(&step(&mut replay, 1, "a")));
    assert!(replay.can_rest());
    assert_eq!(replay.sleep(0, print("sleep", ""), wake, wake), Slept::Over);
}
