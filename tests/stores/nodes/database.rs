//! What the nodes share.

use mcp_tasks_tests::servers::DbServer;
use tempfile::TempDir;
use tokio_postgres::NoTls;

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

    /// Cuts the connections over which nodes hear of changes, as a network does that fails for them alone. Returns how many
    /// there were; a file has none.
    pub(crate) async fn cut_feeds(&mut self) -> u64 {
        let Self::Server(server) = self else {
            return 0;
        };
        let url = server.url().to_owned();
        match url.split_once("://").expect("it is a URL").0 {
            "postgres" => {
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("the server is there");
                tokio::spawn(connection);
                // What such a connection has said last is that it listens.
                let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE query LIKE '%wanted_until%' AND pid <> pg_backend_pid() AND state = 'idle'";
                client.execute(cut, &[]).await.expect("a superuser may")
            }
            "redis" => {
                let client = redis::Client::open(url).expect("the URL is right");
                let mut connection = client.get_connection().expect("the server is there");
                let mut cut = redis::cmd("CLIENT");
                let cut = cut.arg("KILL").arg("TYPE").arg("pubsub");
                cut.query(&mut connection).expect("Redis takes it")
            }
            // A NATS server has no word for it: all connections go, until it is back.
            "nats" => {
                server.kill();
                tokio::task::block_in_place(|| server.start());
                1
            }
            other => panic!("the feed of {other} cannot be cut"),
        }
    }
}
