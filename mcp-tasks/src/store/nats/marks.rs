//! What stands in the headers of a stored record, so that an index can be kept without reading records.

use std::str::FromStr;

use async_nats::{HeaderMap, HeaderValue};
use mcp_tasks_core::Timestamp;
use mcp_tasks_core::store::RecordMarks;

const VERSION: &str = "Mcp-Tasks-Version";
const DEADLINE: &str = "Mcp-Tasks-Deadline";
const LEASE: &str = "Mcp-Tasks-Lease";
/// Present where nobody has taken the task on yet.
const UNCLAIMED: &str = "Mcp-Tasks-Unclaimed";

/// Present on a record that was deleted, in words that every client of key-value buckets knows.
pub(super) const OPERATION: &str = "KV-Operation";
pub(super) const PURGE: &str = "PURGE";
/// Later servers mark what they removed by themselves like this.
const SERVER_MARKER: &str = "Nats-Marker-Reason";

/// When a stored record wants to be looked at, and which version of it this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    pub(super) version: Option<u64>,
    /// After which it is expired.
    pub(super) deadline: Option<Timestamp>,
    /// After which nobody vouches for it, while it works.
    pub(super) lease: Option<Timestamp>,
    /// Whether it is for whichever node takes it on first.
    pub(super) unclaimed: bool,
}

impl From<RecordMarks> for Marks {
    fn from(marks: RecordMarks) -> Self {
        Self {
            version: Some(marks.version),
            deadline: marks.deadline,
            lease: marks.lease,
            unclaimed: marks.unclaimed,
        }
    }
}

impl Marks {
    /// Of a value that came without, from another program: the next sweep looks at it, and learns what they are.
    pub(super) fn unknown() -> Self {
        Self {
            version: None,
            deadline: Some(Timestamp::default()),
            lease: None,
            unclaimed: false,
        }
    }

    pub(super) fn write_to(self, headers: &mut HeaderMap) {
        if let Some(version) = self.version {
            headers.insert(VERSION, HeaderValue::from(version));
        }
        for (name, time) in [(DEADLINE, self.deadline), (LEASE, self.lease)] {
            if let Some(time) = time {
                headers.insert(name, HeaderValue::from(time.as_millis()));
            }
        }
        if self.unclaimed {
            headers.insert(UNCLAIMED, "1");
        }
    }

    pub(super) fn read_from(headers: &HeaderMap) -> Self {
        let time = |name| number(headers, name).map(Timestamp::from_millis);
        match number(headers, VERSION) {
            Some(version) => Self {
                version: Some(version),
                deadline: time(DEADLINE),
                lease: time(LEASE),
                unclaimed: headers.get(UNCLAIMED).is_some(),
            },
            None => Self::unknown(),
        }
    }
}

fn number<T: FromStr>(headers: &HeaderMap, name: &'static str) -> Option<T> {
    headers.get(name)?.as_str().parse().ok()
}

/// Whether a message marks that something was deleted.
pub(super) fn is_marker(headers: &HeaderMap) -> bool {
    let operation = headers.get(OPERATION).map(|value| value.as_str());
    matches!(operation, Some("DEL" | PURGE)) || headers.get(SERVER_MARKER).is_some()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_tasks_core::{ClientCapabilities, Json, TaskId, TaskRecord, TaskStatus};

    use super::*;

    fn record() -> TaskRecord {
        let empty = || serde_json::from_str::<Json>("{}").unwrap();
        TaskRecord::new(
            TaskId::new("t"),
            "encode".into(),
            empty(),
            ClientCapabilities::new(empty()),
            Timestamp::from_millis(1_000),
            Some(Duration::from_millis(500)),
            Duration::from_secs(1),
        )
    }

    #[test]
    fn a_record_and_its_headers_say_the_same() {
        let mut records = vec![record()];
        let mut leased = record();
        leased.version = 7;
        leased.execution.lease_until = Some(Timestamp::from_millis(1_200));
        let mut parked = leased.clone();
        parked.status = TaskStatus::InputRequired;
        let mut unlimited = record();
        unlimited.ttl_ms = None;
        records.extend([leased, parked, unlimited, record().unclaimed()]);
        for record in records {
            let marks = Marks::from(RecordMarks::of(&record));
            let mut headers = HeaderMap::new();
            marks.write_to(&mut headers);
            assert_eq!(Marks::read_from(&headers), marks);
            assert!(!is_marker(&headers));
        }
        assert_eq!(
            Marks::from(RecordMarks::of(&record())).deadline,
            Some(Timestamp::from_millis(1_500))
        );
    }

    #[test]
    fn what_has_no_marks_wants_to_be_looked_at() {
        assert_eq!(Marks::read_from(&HeaderMap::new()), Marks::unknown());
    }
}
