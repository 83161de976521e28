//! SQLite: the contract suite on a file per test, and what can happen to files and processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_tasks::store::{SqliteOptions, SqliteStore};
use mcp_tasks_core::TaskStore;
use mcp_tasks_core::store::contract::Work;
use tempfile::TempDir;

use crate::alone::{TwoNodes, on_a_database_of_its_own};
use crate::kept::Kept;

mod commits;
mod damage;
mod processes;
pub(crate) mod selection;
mod writing;

/// A store on a file of its own, which goes with it.
pub(crate) type Fresh = Kept<SqliteStore, TempDir>;

impl Fresh {
    fn new() -> Self {
        Self::with(|options| options)
    }

    fn with(options: impl FnOnce(SqliteOptions) -> SqliteOptions) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let store = options(SqliteOptions::new(directory.path().join("tasks.db"))).open();
        Self {
            store: store.expect("a new file can be opened"),
            keeps: directory,
        }
    }

    fn path(&self) -> PathBuf {
        self.keeps.path().join("tasks.db")
    }

    /// The file as an operator's tool sees it.
    fn raw(&self) -> rusqlite::Connection {
        raw(&self.path())
    }
}

fn raw(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    let patience = connection.busy_timeout(std::time::Duration::from_secs(10));
    patience.expect("a time-out can be set");
    connection
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

mcp_tasks_core::store_contract! {
    contract_on_one_thread,
    #[tokio::test],
    async { Fresh::with(|options| options.durability(mcp_tasks::store::Durability::Normal)) },
}

on_a_database_of_its_own! { alone, async {
    let keep = tempfile::tempdir().expect("a directory for the test");
    let open = || -> Arc<dyn TaskStore> {
        Arc::new(SqliteStore::open(keep.path().join("tasks.db")).expect("a file can be opened"))
    };
    TwoNodes::new([open(), open()], keep)
} }
