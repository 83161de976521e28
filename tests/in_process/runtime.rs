//! Engine and replay, in one process: a real rmcp client over an in-memory transport, tools written with `#[mcp_task]`,
//! a clock that stands still until a test lets it go on, and a store that can be made to misbehave.
//!
//! Where replay matters a scenario runs twice: straight, and with the execution ended and started again after every
//! write to its ledger (see [`Mode`](crate::harness::Mode)). Both must come to the same end.

mod answers;
mod cancel;
mod capability;
mod concurrency;
mod doubt;
mod durations;
mod forms;
mod hardships;
mod leases;
mod mismatch;
mod narrow_store;
mod nearby;
mod panics;
mod placement;
mod progress;
mod quotas;
mod races;
mod random;
mod shutdown;
mod sleep;
mod sleep_nodes;
mod steps;
mod store_faults;
mod storm;
mod swallow;
mod sync;
mod tracing_events;
mod ttl;
mod upgrade;
