//! How much a ledger has room for.

use mcp_tasks_core::ledger::{MAX_BYTES, MAX_ENTRIES};
use mcp_tasks_core::{Asked, Cursor, Fault, Json, Ledger};

use super::body::{json, print};
use super::cursor_rules::{ask, ledger, take};

/// A ledger of as many answered questions as there may be, but `less`.
fn nearly_full(less: usize) -> Ledger {
    let entries: Vec<_> = (0..MAX_ENTRIES - less)
        .map(|ordinal| (u32::try_from(ordinal).unwrap(), "elicit", "q", None, 0))
        .collect();
    ledger(&entries)
}

#[test]
fn a_ledger_has_room_for_so_many_entries_and_questions_count() {
    let replayed = |less| {
        let full = nearly_full(less);
        let mut run = Cursor::new(&full);
        for entry in full.entries() {
            let ordinal = run.take_ordinal();
            let asked = ask(&mut run, ordinal, "q", None);
            assert!(matches!(asked, Asked::Delivered { .. }), "{}", entry.ordinal);
        }
        run
    };
    let mut run = replayed(2);
    let [first, second, third] = [0; 3].map(|_| run.take_ordinal());
    assert_eq!(ask(&mut run, first, "q", None), Asked::Pending);
    assert_eq!(ask(&mut run, second, "q", None), Asked::Pending);
    assert_eq!(run.fault(), None);
    assert_eq!(ask(&mut run, third, "q", None), Asked::Pending);
    assert_eq!(run.fault(), Some(&Fault::LedgerFull));
    assert!(!run.can_suspend(), "the task fails");

    let mut run = replayed(1);
    let [first, second] = [0; 2].map(|_| run.take_ordinal());
    assert!(run.begin_step() && run.begin_step());
    run.finish_step(first, "a", print("step", "a"), json("a"));
    assert_eq!(run.fault(), None);
    run.finish_step(second, "b", print("step", "b"), json("b"));
    assert_eq!(run.fault(), Some(&Fault::LedgerFull));
}

#[test]
fn a_ledger_has_room_for_so_many_bytes_whoever_brings_them() {
    let quotes = "\"\"".len();
    let most = json(&"x".repeat(MAX_BYTES - quotes));
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 2);
    assert!(run.begin_step() && run.begin_step());
    run.finish_step(0, "a", print("step", "a"), most);
    assert_eq!(run.fault(), None);
    run.finish_step(1, "b", print("step", "b"), json(""));
    assert_eq!(run.fault(), Some(&Fault::LedgerFull));

    // Answers are recorded by whoever writes the record; the next question is where it ends.
    let mut entries = ledger(&[(0, "elicit", "q", None, 1)]).entries().to_vec();
    entries[0].response = json(&"x".repeat(MAX_BYTES));
    let mut run = Cursor::new(&Ledger::new(entries));
    take(&mut run, 2);
    assert!(matches!(ask(&mut run, 0, "q", None), Asked::Delivered { .. }));
    assert_eq!(run.fault(), None, "a body that ends now has its answer");
    assert_eq!(ask(&mut run, 1, "q", None), Asked::Pending);
    assert_eq!(run.fault(), Some(&Fault::LedgerFull));
}

#[test]
fn labels_are_one_short_line() {
    let mut run = Cursor::new(&Ledger::default());
    take(&mut run, 1);
    let long = format!("{}\nsecond line", "ä".repeat(500));
    let response: Json = json("x");
    assert!(run.begin_step());
    run.finish_step(0, &long, print("step", &long), response);
    let written = run.ledger();
    assert_eq!(written.entries()[0].label.chars().count(), 121);
}
