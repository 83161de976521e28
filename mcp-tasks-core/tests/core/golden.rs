//! Records as they lie in stores: what one release writes, every later release reads.
//!
//! A file that no longer loads, or no longer comes out as it went in, means stored tasks that a new release loses. The
//! files are written once: a change of the format gets a number and files of its own.

use std::path::Path;
use std::time::Duration;

use mcp_tasks_core::{FORMAT, Idle, RecordError, TaskRecord, TaskStatus};

const NAMES: [(&str, TaskStatus); 10] = [
    ("working_bare", TaskStatus::Working),
    ("working_full", TaskStatus::Working),
    ("working_every_entry", TaskStatus::Working),
    ("working_asleep", TaskStatus::Working),
    ("working_unclaimed", TaskStatus::Working),
    ("parked_bare", TaskStatus::InputRequired),
    ("parked_partial_and_misfit", TaskStatus::InputRequired),
    ("completed", TaskStatus::Completed),
    ("failed", TaskStatus::Failed),
    ("cancelled", TaskStatus::Cancelled),
];

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    // The file ends in a line break, the record does not.
    text.trim_end_matches('\n').to_owned()
}

#[test]
fn every_stored_record_loads_and_comes_out_byte_for_byte() {
    for (name, status) in NAMES {
        let text = golden(name);
        let record = TaskRecord::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(record.status, status, "{name}");
        let is_idle = matches!(name, "working_asleep" | "working_unclaimed");
        let format = if is_idle { 2 } else { 1 };
        assert_eq!(record.format, format, "{name}");
        assert_eq!(record.to_json().unwrap(), text, "{name}");
    }
}

#[test]
fn no_golden_file_is_forgotten() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut named: Vec<String> = NAMES.iter().map(|(name, _)| format!("{name}.json")).collect();
    named.sort();
    assert_eq!(found, named);
}

#[test]
fn a_record_means_what_it_says() {
    let parked = TaskRecord::from_json(&golden("parked_partial_and_misfit")).unwrap();
    assert_eq!(parked.open.len(), 1);
    assert_eq!(&*parked.open[0].key, "confirm~2");
    assert_eq!(parked.open[0].misfits, 1);
    let turns: Vec<_> = parked.ledger.entries().iter().map(|entry| entry.turn).collect();
    assert_eq!(turns, [Some(0), None]);
    let full = TaskRecord::from_json(&golden("working_full")).unwrap();
    assert_eq!(full.progress, Some(31.245270191439438));
    assert_eq!(
        full.execution.lease_until.map(|at| at.as_millis()),
        Some(1_785_196_830_250)
    );
    let asleep = TaskRecord::from_json(&golden("working_asleep")).unwrap();
    assert_eq!(asleep.execution.idle, Some(Idle::Asleep));
    let wake = asleep
        .execution
        .lease_until
        .unwrap()
        .saturating_add(Duration::from_millis(1));
    assert!(asleep.is_abandoned(wake), "at that very instant it is woken");
    let unclaimed = TaskRecord::from_json(&golden("working_unclaimed")).unwrap();
    assert_eq!(unclaimed.execution.idle, Some(Idle::Unclaimed));
    assert!(
        unclaimed.is_abandoned(unclaimed.created_at),
        "from the beginning anybody may take it on"
    );
}

#[test]
fn members_a_later_release_added_to_this_format_are_passed_over() {
    let text = golden("working_bare").replacen('{', r#"{"addedLater":{"a":1},"#, 1);
    let record = TaskRecord::from_json(&text).unwrap();
    assert_eq!(record.to_json().unwrap(), golden("working_bare"));
}

#[test]
fn a_newer_format_is_refused_as_such_whatever_else_has_changed() {
    let same = golden("working_full").replacen("\"format\":1", "\"format\":3", 1);
    let other = r#"{"format":3,"id":7,"status":"paused","ledger":{"packed":"AAEC"},"nested":[[1]]}"#;
    let order = r#"{"id":7,"status":"paused","format":4294967295}"#;
    for (text, expected) in [(same.as_str(), 3), (other, 3), (order, u32::MAX)] {
        match TaskRecord::from_json(text) {
            Err(RecordError::NewerFormat { found, .. }) => assert_eq!(found, expected),
            outcome => panic!("{text}: {outcome:?}"),
        }
    }
    let words = TaskRecord::from_json(other).unwrap_err().to_string();
    assert!(
        words.contains("format 3") && words.contains(&format!("up to {FORMAT}")),
        "{words}"
    );
}

#[test]
fn what_is_no_record_is_corrupt() {
    let good = golden("working_full");
    let cut = &good[..good.len() - 1];
    let cases = [
        "",
        "null",
        "[]",
        "{}",
        r#"{"format":1}"#,
        r#"{"format":"1"}"#,
        r#"{"format":-1}"#,
        cut,
        &good.replace("\"working\"", "\"paused\""),
        &good.replace("\"createdAt\":\"2026", "\"createdAt\":\"x026"),
        &good.replace("\"format\":1,", ""),
        &good.replace("\"format\":1,", "\"format\":0,"),
        &format!("{good}{good}"),
    ];
    for text in cases {
        let outcome = TaskRecord::from_json(text);
        assert!(matches!(outcome, Err(RecordError::Corrupt(_))), "{text}: {outcome:?}");
    }
}
