//! What was last seen of records that may be written again soon.

use std::collections::BTreeMap;

use super::Found;
use crate::TaskId;

/// What an entry costs beside the record's text, roughly: the record's own fields and the two trees.
const OVERHEAD: usize = 512;

/// The records last written or read for an update, those least recently used making room.
pub(super) struct Seen {
    entries: BTreeMap<TaskId, (Found, u64)>,
    by_use: BTreeMap<u64, TaskId>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

impl Seen {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            bytes: 0,
            limit,
        }
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Found> {
        self.entries.get(id).map(|(found, _)| found.clone())
    }

    pub(super) fn forget(&mut self, id: &TaskId) {
        if let Some((found, used)) = self.entries.remove(id) {
            self.by_use.remove(&used);
            self.bytes -= cost(&found);
        }
    }

    /// Keeps the record unless a newer one is known. One that has ended is not written again, so it is forgotten.
    pub(super) fn remember(&mut self, found: &Found) {
        let id = &found.record.task_id;
        let is_older = self
            .entries
            .get(id)
            .is_some_and(|(known, _)| known.record.version > found.record.version);
        if is_older {
            return;
        }
        self.forget(id);
        let cost = cost(found);
        if found.record.status.is_terminal() || cost > self.limit {
            return;
        }
        self.uses += 1;
        self.bytes += cost;
        self.entries.insert(id.clone(), (found.clone(), self.uses));
        self.by_use.insert(self.uses, id.clone());
        while self.bytes > self.limit
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.forget(&oldest);
        }
    }
}

const fn cost(found: &Found) -> usize {
    found.size + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::CasVersion;
    use super::*;
    use crate::{ClientCapabilities, Json, TaskRecord, TaskStatus, Timestamp};

    fn found(id: &str, version: u64, size: usize) -> Found {
        let empty = || serde_json::from_str::<Json>("{}").unwrap();
        let mut record = TaskRecord::new(
            TaskId::new(id),
            "encode".into(),
            empty(),
            ClientCapabilities::new(empty()),
            Timestamp::default(),
            None,
            Duration::from_secs(1),
        );
        record.version = version;
        Found {
            record: Arc::new(record),
            version: CasVersion::new(version),
            size,
        }
    }

    fn known(seen: &Seen, id: &str) -> Option<u64> {
        seen.get(&TaskId::new(id)).map(|found| found.version.get())
    }

    #[test]
    fn the_least_recently_written_make_room_and_nothing_leaks() {
        let mut seen = Seen::new(3 * (OVERHEAD + 100));
        for id in ["a", "b", "c"] {
            seen.remember(&found(id, 1, 100));
        }
        seen.remember(&found("a", 2, 100));
        seen.remember(&found("d", 1, 100));
        assert_eq!(
            ["a", "b", "c", "d"].map(|id| known(&seen, id)),
            [Some(2), None, Some(1), Some(1)]
        );
        seen.remember(&found("e", 1, 10_000));
        assert_eq!(known(&seen, "e"), None, "what is larger than all room is not kept");
        for id in ["a", "b", "c", "d"] {
            seen.forget(&TaskId::new(id));
        }
        assert_eq!((seen.bytes, seen.entries.len(), seen.by_use.len()), (0, 0, 0));
    }

    #[test]
    fn an_older_version_and_an_ended_task_are_not_kept() {
        let mut seen = Seen::new(1 << 20);
        seen.remember(&found("a", 5, 1));
        seen.remember(&found("a", 4, 1));
        assert_eq!(known(&seen, "a"), Some(5));
        let mut ended = found("a", 6, 1);
        Arc::get_mut(&mut ended.record).unwrap().status = TaskStatus::Completed;
        seen.remember(&ended);
        assert_eq!(known(&seen, "a"), None);
    }
}
