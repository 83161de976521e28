//! What stores do unless told otherwise.

#[cfg(any(feature = "nats", feature = "postgres", feature = "redis", feature = "sqlite"))]
use std::time::Duration;

/// How long an operation may take. Longer than a checkpoint, another process's transaction, a short fail-over or the choice of
/// a new leader take, and well below the default lease of 30 s, so that an execution survives one time-out.
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis", feature = "sqlite"))]
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
