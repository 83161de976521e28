//! PostgreSQL: the contract suite on a server that the tests share, and what can happen to servers, connections and tables.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_tasks::store::{PostgresOptions, PostgresStore};
use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::{MemoryStore, TaskStore};
use mcp_tasks_tests::servers::{self, DbServer};
use tokio_postgres::NoTls;

use crate::alone::{TwoNodes, on_a_database_of_its_own};

mod connecting;
mod faults;
mod feed;
mod layout;
mod rows;
mod selection;

/// The server for whatever leaves it as it was. Flushing is left out, as it is never killed.
fn shared() -> Option<&'static DbServer> {
    static SERVER: OnceLock<Option<&DbServer>> = OnceLock::new();
    *SERVER.get_or_init(|| {
        let server = servers::postgres(&["-c", "fsync=off", "-c", "max_connections=300"])?;
        Some(servers::until_exit(server))
    })
}

/// A prefix or a name that no other test has.
fn unique(word: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{word}{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Options for the server at `url`, with few connections, as many tests run at once.
fn options(url: &str) -> PostgresOptions {
    let few = NonZeroUsize::new(4).unwrap();
    PostgresOptions::new(url).expect("the test's URL is one").pool_size(few)
}

/// A store under a prefix of its own on the shared server, and the URL of the latter.
fn fresh() -> Option<(PostgresStore, &'static str)> {
    let url = shared()?.url();
    let store = options(url).key_prefix(unique("test:")).open();
    Some((store.expect("nothing is read"), url))
}

/// A connection beside the store, as an operator's tool has it.
async fn raw(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server is there");
    tokio::spawn(connection);
    client
}

/// A database of its own on the shared server, for what changes tables.
async fn database() -> Option<String> {
    let url = shared()?.url();
    let name = unique("database");
    raw(url)
        .await
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    Some(format!("{server}/{name}"))
}

fn spawn(work: Work) -> Work {
    Box::pin(async { tokio::spawn(work).await.expect("the work passes") })
}

/// The store under test; where PostgreSQL is not installed, which was said, something that passes.
async fn tested() -> Arc<dyn TaskStore> {
    match fresh() {
        Some((store, _)) => Arc::new(store),
        None => Arc::new(MemoryStore::new()),
    }
}

mcp_tasks_core::store_contract! {
    contract,
    #[tokio::test(flavor = "multi_thread")],
    async { tested().await },
    spawn = spawn,
}

mcp_tasks_core::store_contract! {
    contract_on_one_thread,
    #[tokio::test],
    async { tested().await },
}

on_a_database_of_its_own! { alone, async {
    let Some(url) = database().await else { return TwoNodes::in_memory() };
    let node = || options(&url).open().expect("nothing is read");
    TwoNodes::new([Arc::new(node()), Arc::new(node())], ())
} }

/// Long enough for a loaded machine: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
