//! How many executions run on this node at a time.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::exceeded;

/// One slot for each execution that may run on this node at a time (`mcp.tasks.quota.running`).
///
/// A new call takes its slot before anything is stored, or is refused. An execution that must not be refused, of a task
/// that was answered, waits in line, and those in line go before new calls.
#[derive(Debug)]
pub(crate) struct Slots {
    limit: Option<(u64, Arc<Semaphore>)>,
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

impl Slots {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        let permits =
            |limit| usize::try_from(limit).map_or(Semaphore::MAX_PERMITS, |n: usize| n.min(Semaphore::MAX_PERMITS));
        Self {
            limit: limit.map(|limit| (limit, Arc::new(Semaphore::new(permits(limit))))),
        }
    }

    /// A slot for a new call.
    ///
    /// # Errors
    /// The quota's, when there is none.
    pub(crate) fn take_or_refuse(&self, retry_after: Duration) -> Result<Slot, ErrorData> {
        self.try_take().ok_or_else(|| {
            let limit = self.limit.as_ref().map_or(u64::MAX, |(limit, _)| *limit);
            exceeded("executions on this server", limit, retry_after)
        })
    }

    /// A slot, if one is free and no execution waits for it.
    pub(crate) fn try_take(&self) -> Option<Slot> {
        let Some((_, slots)) = &self.limit else {
            return Some(Slot(None));
        };
        slots.clone().try_acquire_owned().ok().map(|permit| Slot(Some(permit)))
    }

    /// The next free slot. Slots are given in the order in which they were asked for.
    pub(crate) async fn next_free(&self) -> Slot {
        let Some((_, slots)) = &self.limit else {
            return Slot(None);
        };
        // The semaphore is never closed.
        Slot(slots.clone().acquire_owned().await.ok())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const AGAIN: Duration = Duration::from_secs(1);

    /// What is given back goes to those in line, in their order, and only then to new calls.
    #[tokio::test]
    async fn those_in_line_go_before_new_calls() {
        let slots = Slots::new(Some(1));
        let held = slots.take_or_refuse(AGAIN).expect("it is free");
        let refused = slots.take_or_refuse(AGAIN).expect_err("it is taken");
        assert_eq!(refused.code.0, -31001);
        let (mut first, mut second) = (Box::pin(slots.next_free()), Box::pin(slots.next_free()));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(held);
        assert!(slots.try_take().is_none(), "it is kept for those in line");
        assert!(second.as_mut().now_or_never().is_none());
        drop(first.as_mut().now_or_never().expect("its turn"));
        drop(second.as_mut().now_or_never().expect("its turn"));
        assert!(slots.try_take().is_some());
    }

    /// Without a limit, and with one beyond what can be counted, there is always a slot.
    #[test]
    fn a_limit_may_be_absent_or_huge() {
        for limit in [None, Some(u64::MAX)] {
            let slots = Slots::new(limit);
            let many: Vec<_> = (0..100).filter_map(|_| slots.try_take()).collect();
            assert_eq!(many.len(), 100);
        }
    }
}
