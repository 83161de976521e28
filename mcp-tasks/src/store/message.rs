//! What nodes tell each other of a change: the record's version, or `-` for one that was removed, a space, and the id.

use mcp_tasks_core::{TaskChange, TaskId};

/// The message of a change.
pub(super) fn write(version: Option<u64>, id: &str) -> String {
    match version {
        Some(version) => format!("{version} {id}"),
        None => format!("- {id}"),
    }
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
        Some((version, rest)) => TaskChange::Changed { id: id(rest), version },
        None => TaskChange::Resumed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        for (id, version) in [("a b", Some(7)), ("a", None), ("", Some(0))] {
            let expected = TaskChange::Changed {
                id: TaskId::new(id),
                version,
            };
            assert_eq!(read(&write(version, id), TaskId::new), expected);
        }
        for other in ["", "a", "x a", "\u{fffd} 1"] {
            assert_eq!(read(other, TaskId::new), TaskChange::Resumed);
        }
    }
}
