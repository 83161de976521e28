//! Which run's body the present thread polls, so that a call on a context from anywhere else can be told apart.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of no run.
const OUTSIDE: RunNumber = RunNumber(0);

thread_local! {
    static POLLING: Cell<RunNumber> = const { Cell::new(OUTSIDE) };
}

/// Tells the runs of this process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunNumber(u64);

impl RunNumber {
    /// One that no other run has.
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `poll` as the poll of this run's body.
    pub(super) fn polling<T>(self, poll: impl FnOnce() -> T) -> T {
        struct Restore(RunNumber);
        impl Drop for Restore {
            fn drop(&mut self) {
                POLLING.set(self.0);
            }
        }
        let _restore = Restore(POLLING.replace(self));
        poll()
    }

    /// Whether the present thread is in the poll of this run's body.
    pub(super) fn is_polling(self) -> bool {
        POLLING.get() == self
    }
}

/// Runs a part of a step's work, which is outside the run: it is not done again on a replay, so a call on the context from
/// inside would have no place there, and a question would wait for a step that waits for its answer.
pub(crate) fn poll_outside_run<T>(poll: impl FnOnce() -> T) -> T {
    OUTSIDE.polling(poll)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_nest_and_end_with_a_panic() {
        let (one, two) = (RunNumber::next(), RunNumber::next());
        one.polling(|| {
            assert!(one.is_polling() && !two.is_polling());
            two.polling(|| assert!(two.is_polling() && !one.is_polling()));
            poll_outside_run(|| assert!(!one.is_polling()));
            let panicked = std::panic::catch_unwind(|| two.polling(|| panic!("on purpose")));
            assert!(panicked.is_err() && one.is_polling());
        });
        assert!(!one.is_polling());
    }
}
