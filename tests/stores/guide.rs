//! The store that the guide for store authors shows: the very file, before the suite.

use std::path::Path;
use std::sync::Arc;

use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::{CasStore, TaskStore};

use crate::alone::{TwoNodes, on_a_database_of_its_own};
use crate::kept::Kept;
use directory_store::Directory;

#[path = "../../mcp-tasks/src/guide/directory_store.rs"]
#[allow(unreachable_pub, reason = "it is written as a crate of its own would")]
mod directory_store;

fn open(path: &Path) -> CasStore<Directory> {
    CasStore::new(Directory(path.to_owned()))
}

/// A store in a directory that goes with it.
fn fresh() -> impl TaskStore {
    let keeps = tempfile::tempdir().expect("a directory for the test");
    Kept {
        store: open(keeps.path()),
        keeps,
    }
}

fn spawn(work: Work) -> Work {
    Box::pin(async { tokio::spawn(work).await.expect("the work passes") })
}

mcp_tasks_core::store_contract! {
    contract,
    #[tokio::test(flavor = "multi_thread")],
    async { fresh() },
    spawn = spawn,
}

on_a_database_of_its_own! { alone, async {
    let keep = tempfile::tempdir().expect("a directory for the test");
    let open = || -> Arc<dyn TaskStore> { Arc::new(open(keep.path())) };
    TwoNodes::new([open(), open()], keep)
} }

/// The guide says sixty lines, imports aside.
#[test]
fn the_store_of_the_guide_is_short() {
    let text = include_str!("../../mcp-tasks/src/guide/directory_store.rs");
    let code = |line: &&str| !line.is_empty() && !line.trim().starts_with("//") && !line.starts_with("use ");
    let lines = text.lines().filter(code).count();
    assert!(lines <= 60, "{lines}");
}
