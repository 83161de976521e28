//! Records as they were last read, so that a row that is polled again and again is parsed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_tasks_core::{TaskId, TaskRecord};

/// How much is kept, in bytes of records as stored: some thousand ordinary tasks, those that clients are polling.
const KEPT: usize = 4 << 20;

/// Larger ones are not kept: they are few, mostly results, and read once or twice.
const LARGEST: usize = 64 << 10;

/// Parsed records beside the text they were parsed from. Nothing is ever answered from here alone: the row is read each
/// time, and only if it has that very text the parsed form is taken.
#[derive(Default)]
pub(super) struct Parsed(Mutex<Texts>);

#[derive(Default)]
struct Texts {
    records: HashMap<TaskId, (Box<[u8]>, Arc<TaskRecord>)>,
    bytes: usize,
}

impl Parsed {
    /// The record that this text is, if it was kept.
    pub(super) fn get(&self, id: &TaskId, text: &[u8]) -> Option<Arc<TaskRecord>> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, record) = texts.records.get(id)?;
        (**known == *text).then(|| record.clone())
    }

    /// Keeps what the text was parsed to.
    pub(super) fn keep(&self, record: &Arc<TaskRecord>, text: &[u8]) {
        if text.len() > LARGEST {
            return;
        }
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.bytes + text.len() > KEPT {
            // To begin anew costs a parse for each that is polled still, and rare it is.
            *texts = Texts::default();
        }
        texts.bytes += text.len();
        let kept = (text.into(), record.clone());
        if let Some((before, _)) = texts.records.insert(record.task_id.clone(), kept) {
            texts.bytes -= before.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_tasks_core::{ClientCapabilities, Json, Timestamp};

    use super::*;

    fn record(id: &str) -> Arc<TaskRecord> {
        let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        Arc::new(TaskRecord::new(
            TaskId::new(id),
            "tool".into(),
            json("{}"),
            ClientCapabilities::new(json("{}")),
            Timestamp::from_millis(1),
            None,
            Duration::from_secs(1),
        ))
    }

    #[test]
    fn another_text_is_another_record() {
        let (parsed, record) = (Parsed::default(), record("a"));
        parsed.keep(&record, b"one");
        assert!(parsed.get(&record.task_id, b"one").is_some());
        assert!(parsed.get(&record.task_id, b"two").is_none());
        assert!(parsed.get(&TaskId::new("b"), b"one").is_none());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let parsed = Parsed::default();
        let text = vec![b'x'; LARGEST];
        for n in 0..1_000 {
            parsed.keep(&record(&format!("{n}")), &text);
            parsed.keep(&record("again"), &text);
        }
        let texts = parsed.0.lock().unwrap();
        let held: usize = texts.records.values().map(|(text, _)| text.len()).sum();
        assert_eq!(texts.bytes, held);
        assert!(held <= KEPT, "{held}");
        drop(texts);
        let larger = vec![b'x'; LARGEST + 1];
        parsed.keep(&record("large"), &larger);
        assert!(parsed.get(&TaskId::new("large"), &larger).is_none());
    }
}
