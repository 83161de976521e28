//! Records as they were last read, so that a row that is polled again and again is parsed once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_tasks_core::{TaskId, TaskRecord};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;

/// How much is kept, in bytes of records as stored: some thousand ordinary tasks, those that clients are polling.
const KEPT: u64 = 4 << 20;

/// Roughly how many records that is; they are a KiB or two.
const RECORDS: usize = 4_096;

/// Larger ones are not kept: they are few, mostly results, and read once or twice.
const LARGEST: usize = 64 << 10;

/// Parsed records beside the text they were parsed from. Nothing is ever answered from here alone: the row is read each
/// time, and only if it has that very text the parsed form is taken.
///
/// Where more tasks are polled in turn than are kept, some stay and are found again; to replace the oldest would keep each
/// until just before it is asked for.
pub(super) struct Parsed(Mutex<Cache<TaskId, Kept, Bytes>>);

/// The text, and what it was parsed to.
type Kept = (Box<[u8]>, Arc<TaskRecord>);

#[derive(Clone)]
struct Bytes;

impl Weighter<TaskId, Kept> for Bytes {
    fn weight(&self, _: &TaskId, (text, _): &Kept) -> u64 {
        text.len() as u64
    }
}

impl Default for Parsed {
    fn default() -> Self {
        Self(Mutex::new(Cache::with_weighter(RECORDS, KEPT, Bytes)))
    }
}

impl Parsed {
    /// The record that this text is, if it was kept.
    pub(super) fn get(&self, id: &TaskId, text: &[u8]) -> Option<Arc<TaskRecord>> {
        let kept = self.kept();
        let (known, record) = kept.get(id)?;
        (**known == *text).then(|| record.clone())
    }

    /// Keeps what the text was parsed to.
    pub(super) fn keep(&self, record: &Arc<TaskRecord>, text: &[u8]) {
        if text.len() <= LARGEST {
            let kept = (text.into(), record.clone());
            self.kept().insert(record.task_id.clone(), kept);
        }
    }

    /// Whatever is there is right or another text's.
    fn kept(&self) -> MutexGuard<'_, Cache<TaskId, Kept, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let held = parsed.kept().weight();
        assert!(held <= KEPT, "{held}");
        assert!(parsed.get(&TaskId::new("again"), &text).is_some());
        let larger = vec![b'x'; LARGEST + 1];
        parsed.keep(&record("large"), &larger);
        assert!(parsed.get(&TaskId::new("large"), &larger).is_none());
    }

    #[test]
    fn a_round_of_more_than_is_kept_finds_some_of_it() {
        let parsed = Parsed::default();
        let text = vec![b'x'; 1_024];
        let tasks: Vec<_> = (0..2 * KEPT / 1_024).map(|n| record(&format!("{n}"))).collect();
        let mut found = 0;
        for task in tasks.iter().chain(&tasks).chain(&tasks) {
            match parsed.get(&task.task_id, &text) {
                Some(_) => found += 1,
                None => parsed.keep(task, &text),
            }
        }
        assert!(found > tasks.len() / 2, "{found} of {}", 2 * tasks.len());
    }
}
