//! Each store of tasks, beside its driver doing the same reads and writes by hand.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench stores
//! cargo bench -p mcp-tasks-tests --bench stores -- 'sqlite.*get'
//! ```
//!
//! Files lie in `TMPDIR`: what a commit costs is what flushing costs there. A record has five steps in its ledger; the
//! group's name says how long it is as stored.

mod compare;
mod sqlite;
mod work;

use criterion::{criterion_group, criterion_main};

criterion_group!(benches, sqlite::full, sqlite::normal);
criterion_main!(benches);
