//! The store that the guide for store authors shows: the very file, before the suite.

use std::path::Path;
use std::sync::Arc;

use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::{CasStore, TaskStore};
use tempfile::TempDir;

use crate::alone::{TwoNodes, on_a_database_of_its_own};
use directory_store::Directory;

#[path = "../../mcp-tasks/src/guide/directory_store.rs"]
#[allow(unreachable_pub, reason = "it is written as a crate of its own would")]
mod directory_store;

/// A store in a directory that goes with it.
#[derive(Debug)]
struct Fresh {
    store: CasStore<Directory>,
    _directory: TempDir,
}

fn open(path: &Path) -> CasStore<Directory> {
    CasStore::new(Directory(path.to_owned()))
}

impl Fresh {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        Self {
            store: open(directory.path()),
            _directory: directory,
        }
    }
}

impl TaskStore for Fresh {
    mcp_tasks_core::delegate_task_store! { store => all }
}

fn spawn(work: Work) -> Work {
    Box::pin(async { tokio::spawn(work).await.expect("the work passes") })
}

mcp_tasks_core::store_contract! {
    contract,
    #[tokio::test(flavor = "multi_thread")],
    async { Fresh::new() },
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
