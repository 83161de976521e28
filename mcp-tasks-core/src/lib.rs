//! The machine inside `mcp-tasks`: what a task is, how its body is replayed, and what a store of tasks promises.
//!
//! **Who depends on this crate:** authors of a task store. Authors of tools and servers depend on `mcp-tasks`, which
//! re-exports what they need. No crate but `mcp-tasks` depends on `mcp-tasks-macros`.
//!
//! # Who does what
//!
//! | part | duty |
//! |---|---|
//! | this crate | decides and records: [`decide`], [`TaskRecord`] and its transitions, [`Ledger`] and [`Cursor`], [`FormSchema`](form::FormSchema), the [`TaskStore`] contract |
//! | the runtime (`mcp-tasks`) | runs bodies, tells the time, makes ids, speaks MCP |
//! | a store | keeps records, and applies each change as one atomic step; over a database that can compare and set, [`CasStore`] is one |
//!
//! The crate is synchronous and pure: **time, ids and randomness are arguments**. Nothing in it sleeps, spawns, or reads
//! a clock, so every rule can be tried with a table.
//!
//! # Crate features
//!
//! * `store` (default): everything but [`duration`] and [`placeholder`]. Pulls serde, serde_json, sha2, ryu-js and
//!   futures-core. The macro crate leaves it out.
//! * `contract`: the contract suite for the tests of a store's author, the module `store::contract`.

pub mod duration;
pub mod placeholder;

#[cfg(feature = "store")]
mod answer;
#[cfg(feature = "store")]
mod capability;
#[cfg(feature = "store")]
mod decide;
#[cfg(feature = "store")]
mod elicited;
mod error_chain;
#[cfg(feature = "store")]
pub mod form;
#[cfg(feature = "store")]
mod id;
#[cfg(feature = "store")]
mod json;
#[cfg(feature = "store")]
pub mod ledger;
#[cfg(feature = "store")]
mod number;
#[cfg(feature = "store")]
mod principal;
#[cfg(feature = "store")]
mod record;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
mod timestamp;
#[cfg(feature = "store")]
mod transition;

pub use self::error_chain::error_chain;
#[cfg(feature = "store")]
pub use self::{
    answer::{Answers, ElicitAnswer, Refusal},
    capability::ClientCapabilities,
    decide::{Decision, TaskSupport, decide},
    elicited::Elicited,
    id::{TaskId, WriteId},
    json::Json,
    ledger::{
        Asked, Cursor, Divergence, Entry, EntryKind, Fault, Fingerprint, InputKind, InputRequest, Ledger, Looked,
        Mismatch, Question, Slept, Suspension,
    },
    principal::Principal,
    record::{Execution, FORMAT, Idle, RecordError, TaskRecord, TaskStatus, TraceContext},
    store::{
        CasBackend, CasStore, ChangeFeed, ChangeHub, ChangeStream, ExpiredLeases, MemoryStore, Mutation, StoreError,
        StoreFuture, Sweep, TaskChange, TaskStore, Updated,
    },
    timestamp::{Timestamp, TimestampError},
    transition::{Change, Claim, Report},
};
