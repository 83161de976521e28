//! Engine and replay. Where replay matters a scenario runs twice: straight, and with the execution ended and started again
//! after every write to its ledger (see [`Mode`](crate::harness::Mode)). Both must come to the same end.

mod answers;
mod cancel;
mod capability;
mod careless_bodies;
mod concurrency;
mod durations;
mod forms;
mod leases;
mod mismatch;
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
mod unconfirmed_writes;
mod upgrade;
