//! Writers of one process to one record, one after the other.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::CasBackend;
use crate::{StoreError, TaskId};

/// How long a writer lets others go first. Longer than some hundred of them need, each a round trip and a commit; and a
/// writer behind one whose database hangs is on its own before the first time-out.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who writes which record.
///
/// Of writers that start from one version all but one go in vain. Those of one process know of each other, so they line up,
/// and each starts from what the one before it wrote. It is a courtesy and no lock: what makes a write safe is its
/// condition, and after [`PATIENCE`] a writer goes ahead without its turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    lines: Mutex<BTreeMap<TaskId, Arc<async_lock::Mutex<()>>>>,
}

/// A writer in line, or at the head of it; those behind it move up when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    id: &'a TaskId,
    head: Option<async_lock::MutexGuardArc<()>>,
    /// `None` once it has left.
    line: Option<Arc<async_lock::Mutex<()>>>,
}

impl Turns {
    /// Waits until no other writer of this process is before this one, within reason.
    ///
    /// # Errors
    /// Those of [`CasBackend::pause`].
    pub(super) async fn take<'a, B: CasBackend>(&'a self, id: &'a TaskId, backend: &B) -> Result<Turn<'a>, StoreError> {
        let line = self.lines().entry(id.clone()).or_default().clone();
        let mut turn = Turn {
            turns: self,
            id,
            head: line.try_lock_arc(),
            line: Some(line),
        };
        if let (None, Some(line)) = (&turn.head, &turn.line) {
            let (mut head, mut patience) = (pin!(line.lock_arc()), pin!(backend.pause(PATIENCE)));
            turn.head = std::future::poll_fn(|context| match head.as_mut().poll(context) {
                Poll::Ready(head) => Poll::Ready(Ok(Some(head))),
                Poll::Pending => patience.as_mut().poll(context).map_ok(|()| None),
            })
            .await?;
        }
        Ok(turn)
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<TaskId, Arc<async_lock::Mutex<()>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Wakes the next one, which is not done with the map locked.
        self.head = None;
        // Whoever joins or leaves a line does so with the map locked, so the last one to leave sees that it is.
        let mut lines = self.turns.lines();
        self.line = None;
        if lines.get(self.id).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::StoreFuture;
    use crate::store::cas::{CasEntry, CasOutcome, CasVersion, CasWrite, Expect};

    /// Nothing but a clock that stands still.
    #[derive(Debug)]
    struct Timeless;

    impl CasBackend for Timeless {
        fn get<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
            Box::pin(std::future::pending())
        }

        fn compare_and_set<'a>(&'a self, _: &'a str, _: Expect, _: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
            Box::pin(std::future::pending())
        }

        fn remove<'a>(&'a self, _: &'a str, _: Option<CasVersion>) -> StoreFuture<'a, bool> {
            Box::pin(std::future::pending())
        }

        fn pause(&self, _: Duration) -> StoreFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn no_line_outlives_its_last_writer_however_it_leaves() {
        let (turns, id) = (Turns::default(), TaskId::new("t"));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let take = || Box::pin(turns.take(&id, &Timeless));
        let (mut first, mut second, mut third) = (take(), take(), take());
        let Poll::Ready(Ok(head)) = first.as_mut().poll(&mut context) else {
            panic!("nobody is before it");
        };
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());
        // One gives up in line, the head leaves, the last one moves up and leaves.
        drop(second);
        assert_eq!(turns.lines().len(), 1);
        drop(head);
        let Poll::Ready(Ok(head)) = third.as_mut().poll(&mut context) else {
            panic!("it has moved up");
        };
        assert_eq!(turns.lines().len(), 1);
        drop(head);
        assert!(turns.lines().is_empty());
    }
}
