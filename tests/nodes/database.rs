//! What the nodes share.

use mcp_tasks_tests::servers::DbServer;
use tempfile::TempDir;

/// A database of a test's own, which goes with it.
#[derive(Debug)]
pub(crate) enum Database {
    /// A SQLite file.
    File(TempDir),
    /// A server.
    Server(Box<DbServer>),
}

impl From<DbServer> for Database {
    fn from(server: DbServer) -> Self {
        Self::Server(Box::new(server))
    }
}

impl Database {
    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().expect("a directory for the test"))
    }

    /// What `mcp.tasks.store.url` says.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::File(directory) => format!("sqlite:{}", directory.path().join("tasks.db").display()),
            Self::Server(server) => server.url().to_owned(),
        }
    }
}
