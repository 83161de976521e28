//! How many executions run on this node at a time.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::quota::exceeded;

/// The places for executions on this node (`mcp.tasks.quota.running`).
///
/// A new call takes its place before anything is stored, or is refused. An execution that must not be refused, of a task
/// that was answered, waits in line, and those in line go before new calls.
#[derive(Debug)]
pub(crate) struct Places {
    limit: Option<(u64, Arc<Semaphore>)>,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

impl Places {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        let permits =
            |limit| usize::try_from(limit).map_or(Semaphore::MAX_PERMITS, |n: usize| n.min(Semaphore::MAX_PERMITS));
        Self {
            limit: limit.map(|limit| (limit, Arc::new(Semaphore::new(permits(limit))))),
        }
    }

    /// A place for a new call.
    ///
    /// # Errors
    /// The quota's, when there is none.
    pub(crate) fn take(&self, retry_after: Duration) -> Result<Place, ErrorData> {
        self.try_take().ok_or_else(|| {
            let limit = self.limit.as_ref().map_or(u64::MAX, |(limit, _)| *limit);
            exceeded("executions on this server", limit, retry_after)
        })
    }

    /// A place, if one is free and nobody waits for it.
    pub(crate) fn try_take(&self) -> Option<Place> {
        let Some((_, places)) = &self.limit else {
            return Some(Place(None));
        };
        places
            .clone()
            .try_acquire_owned()
            .ok()
            .map(|permit| Place(Some(permit)))
    }

    /// A place, as soon as it is this one's turn.
    pub(crate) async fn wait(&self) -> Place {
        let Some((_, places)) = &self.limit else {
            return Place(None);
        };
        // Nobody closes it.
        Place(places.clone().acquire_owned().await.ok())
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
        let places = Places::new(Some(1));
        let held = places.take(AGAIN).expect("it is free");
        let refused = places.take(AGAIN).expect_err("it is taken");
        assert_eq!(refused.code.0, -31001);
        let (mut first, mut second) = (Box::pin(places.wait()), Box::pin(places.wait()));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(held);
        assert!(places.try_take().is_none(), "it is kept for those in line");
        assert!(second.as_mut().now_or_never().is_none());
        drop(first.as_mut().now_or_never().expect("its turn"));
        drop(second.as_mut().now_or_never().expect("its turn"));
        assert!(places.try_take().is_some());
    }

    /// Without a limit, and with one beyond what can be counted, there is always a place.
    #[test]
    fn a_limit_may_be_absent_or_huge() {
        for limit in [None, Some(u64::MAX)] {
            let places = Places::new(limit);
            let many: Vec<_> = (0..100).filter_map(|_| places.try_take()).collect();
            assert_eq!(many.len(), 100);
        }
    }
}
