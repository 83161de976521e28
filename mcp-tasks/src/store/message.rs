//! What nodes tell each other of a change: the record's version, or `-` for one that was removed, a space, and the id. In
//! front of the version of a task that is unclaimed there is a `+`, which nodes of earlier releases read over.

use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{TaskChange, TaskId};

/// The message of a write.
pub(super) fn write(marks: RecordMarks, id: &str) -> String {
    let unclaimed = if marks.unclaimed { "+" } else { "" };
    format!("{unclaimed}{} {id}", marks.version)
}

/// The message of a removal.
pub(super) fn removed(id: &str) -> String {
    format!("- {id}")
}

/// What a message says, the id decoded by `id`. One that a later release sent in another form still says that something
/// changed.
pub(super) fn read(message: &str, id: impl FnOnce(&str) -> TaskId) -> TaskChange {
    let parts = message.split_once(' ').and_then(|(version, rest)| {
        let version = match version {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        Some((version, rest))
    });
    match parts {
        Some((version, rest)) => TaskChange::of(id(rest), version, message.starts_with('+')),
        None => TaskChange::Resumed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        for (id, version, unclaimed) in [("a b", 7, false), ("", 0, false), ("a", 8, true)] {
            let expected = TaskChange::of(TaskId::new(id), Some(version), unclaimed);
            let mut marks = RecordMarks::default();
            (marks.version, marks.unclaimed) = (version, unclaimed);
            assert_eq!(read(&write(marks, id), TaskId::new), expected);
        }
        assert_eq!(
            read(&removed("a"), TaskId::new),
            TaskChange::of(TaskId::new("a"), None, false)
        );
        for other in ["", "a", "x a", "\u{fffd} 1"] {
            assert_eq!(read(other, TaskId::new), TaskChange::Resumed);
        }
    }
}
