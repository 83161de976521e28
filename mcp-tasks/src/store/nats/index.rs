//! Which records want to be looked at, and when. A bucket has no index, so each process keeps one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mcp_tasks_core::Timestamp;

use super::marks::Marks;

/// A key at a state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: Arc<str>,
    pub(super) revision: u64,
}

/// In the order of their times, then of their keys.
type ByTime = BTreeSet<(Timestamp, Arc<str>)>;

/// The times of the records that have one.
///
/// It is a hint: it may know of what is gone, and of a state that is no longer the newest. Whoever finds something in it
/// looks at the record, which decides.
#[derive(Debug, Default)]
pub(super) struct Index {
    known: HashMap<Arc<str>, (u64, Marks)>,
    deadlines: ByTime,
    leases: ByTime,
    /// Marks of deletion, with their revision and when they were made.
    markers: BTreeSet<(Timestamp, u64, Arc<str>)>,
}

/// Which of a record's times.
#[derive(Debug, Clone, Copy)]
pub(super) enum Time {
    Deadline,
    Lease,
}

impl Index {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A write was made or heard of.
    pub(super) fn note(&mut self, key: &str, revision: u64, marks: Marks) {
        if self.known.get(key).is_some_and(|(known, _)| *known > revision) {
            return;
        }
        self.forget(key, revision);
        if marks.deadline.is_none() && marks.lease.is_none() {
            return;
        }
        let key: Arc<str> = key.into();
        for (times, time) in [(&mut self.deadlines, marks.deadline), (&mut self.leases, marks.lease)] {
            if let Some(time) = time {
                times.insert((time, key.clone()));
            }
        }
        self.known.insert(key, (revision, marks));
    }

    /// The key is gone at this revision, or nothing need be known of it.
    pub(super) fn forget(&mut self, key: &str, revision: u64) {
        if self.known.get(key).is_some_and(|(known, _)| *known > revision) {
            return;
        }
        let Some((key, (_, marks))) = self.known.remove_entry(key) else {
            return;
        };
        for (times, time) in [(&mut self.deadlines, marks.deadline), (&mut self.leases, marks.lease)] {
            if let Some(time) = time {
                times.remove(&(time, key.clone()));
            }
        }
    }

    /// A mark of deletion was heard of, made at `time`.
    pub(super) fn note_marker(&mut self, key: &str, revision: u64, time: Timestamp) {
        self.forget(key, revision);
        self.markers.insert((time, revision, key.into()));
    }

    /// Up to `limit` records whose time has passed at `now`, those after `after`, each with its place in the order. What is
    /// expired has no lease.
    pub(super) fn due(
        &self,
        which: Time,
        now: Timestamp,
        after: Option<&(Timestamp, Arc<str>)>,
        limit: usize,
    ) -> Vec<((Timestamp, Arc<str>), Place)> {
        let times = match which {
            Time::Deadline => &self.deadlines,
            Time::Lease => &self.leases,
        };
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        times
            .range((from, std::ops::Bound::Unbounded))
            .take_while(|(time, _)| *time < now)
            .filter_map(|at| {
                let (revision, marks) = self.known.get(&at.1)?;
                if matches!(which, Time::Lease) && marks.deadline.is_some_and(|deadline| deadline < now) {
                    return None;
                }
                let (key, revision) = (at.1.clone(), *revision);
                Some((at.clone(), Place { key, revision }))
            })
            .take(limit)
            .collect()
    }

    /// Takes up to `limit` marks of deletion made before `time`.
    pub(super) fn take_markers(&mut self, time: Timestamp, limit: usize) -> Vec<(Timestamp, Place)> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && self.markers.first().is_some_and(|(made, ..)| *made < time)
            && let Some((made, revision, key)) = self.markers.pop_first()
        {
            taken.push((made, Place { key, revision }));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn marks(deadline: Option<u64>, lease: Option<u64>) -> Marks {
        Marks {
            version: Some(1),
            deadline: deadline.map(Timestamp::from_millis),
            lease: lease.map(Timestamp::from_millis),
            unclaimed: false,
        }
    }

    fn due(index: &Index, which: Time, now: u64) -> Vec<(String, u64)> {
        let due = index.due(which, at(now), None, 100);
        due.into_iter()
            .map(|(_, place)| (place.key.to_string(), place.revision))
            .collect()
    }

    #[test]
    fn the_newest_state_counts_whatever_the_order_of_the_news() {
        let mut index = Index::default();
        index.note("a", 5, marks(Some(100), Some(50)));
        index.note("a", 3, marks(Some(10), Some(10)));
        assert_eq!(due(&index, Time::Deadline, 101), [("a".to_owned(), 5)]);
        assert!(
            due(&index, Time::Deadline, 100).is_empty(),
            "through the deadline it is there"
        );
        assert_eq!(due(&index, Time::Lease, 51), [("a".to_owned(), 5)]);
        assert!(
            due(&index, Time::Lease, 101).is_empty(),
            "what has expired needs nobody"
        );
        index.note("a", 6, marks(Some(200), None));
        assert!(due(&index, Time::Deadline, 101).is_empty() && due(&index, Time::Lease, 1_000).is_empty());
        index.forget("a", 5);
        assert_eq!(due(&index, Time::Deadline, 201), [("a".to_owned(), 6)]);
        index.note("a", 7, marks(None, None));
        assert!(index.known.is_empty() && index.deadlines.is_empty() && index.leases.is_empty());
    }

    #[test]
    fn marks_of_deletion_are_taken_once_and_only_when_old() {
        let mut index = Index::default();
        index.note("a", 1, marks(Some(1), None));
        index.note_marker("a", 2, at(10));
        index.note_marker("b", 3, at(20));
        assert!(due(&index, Time::Deadline, 100).is_empty());
        let taken = index.take_markers(at(15), 100);
        assert_eq!(taken.len(), 1);
        assert_eq!((&*taken[0].1.key, taken[0].1.revision), ("a", 2));
        assert!(index.take_markers(at(15), 100).is_empty());
        assert_eq!(index.take_markers(at(21), 100).len(), 1);
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_end() {
        let mut index = Index::default();
        for n in 0..10 {
            index.note(&format!("k{n}"), n + 1, marks(Some(n / 2), None));
        }
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = index.due(Time::Deadline, at(100), after.as_ref(), 3);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            seen.extend(page.into_iter().map(|(_, place)| place.key.to_string()));
        }
        assert_eq!(seen, (0..10).map(|n| format!("k{n}")).collect::<Vec<_>>());
    }
}
