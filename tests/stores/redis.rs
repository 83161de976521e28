//! Redis: the contract suite on a server per test, and what can happen to servers and to what lies in them.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks::store::{RedisOptions, RedisStore};
use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::{MemoryStore, TaskStore};
use mcp_tasks_tests::servers::{self, DbServer};
use redis::Commands;

use crate::alone::{TwoNodes, on_a_database_of_its_own};
use crate::kept::Kept;

mod access;
mod cluster;
mod expiry;
mod faults;
mod feed;
mod leases;
mod round_trips;
mod settings;
mod values;

type Fresh = Kept<RedisStore, DbServer>;

/// A store on a server of its own, or `None` with a loud word where there is no Redis.
fn fresh() -> Option<Fresh> {
    fresh_with(&[], |options| options)
}

fn fresh_with(server: &[&str], options: impl FnOnce(RedisOptions) -> RedisOptions) -> Option<Fresh> {
    let server = servers::redis(server)?;
    Some(Kept {
        store: options(RedisOptions::new(server.url()).expect("the URL is right"))
            .open()
            .expect("the options are right"),
        keeps: server,
    })
}

impl Fresh {
    /// The server as an operator's tool sees it.
    fn raw(&self) -> redis::Connection {
        raw(self.keeps.url())
    }

    /// Another node's store on the same server.
    fn other(&self) -> RedisStore {
        RedisStore::open(self.keeps.url()).expect("the URL is right")
    }
}

fn raw(url: &str) -> redis::Connection {
    let client = redis::Client::open(url).expect("the URL is right");
    client.get_connection().expect("the server takes connections")
}

/// The key of a task's record, found as an operator would.
fn key_of(raw: &mut redis::Connection, id: &str) -> String {
    let found: Vec<String> = raw.keys(format!("*}}:{id}")).expect("keys can be listed");
    let [key] = &found[..] else {
        panic!("one key for {id}: {found:?}");
    };
    key.clone()
}

/// Waits for what the server does by itself.
async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let patience = std::time::Instant::now() + Duration::from_secs(30);
    while !happened() {
        assert!(std::time::Instant::now() < patience, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn spawn(work: Work) -> Work {
    Box::pin(async { tokio::spawn(work).await.expect("the work passes") })
}

/// Where the server is not installed, which was said loudly, the suite's own reference stands in.
fn or_memory(server: Option<DbServer>) -> Arc<dyn TaskStore> {
    match server {
        Some(server) => Arc::new(Kept {
            store: RedisStore::open(server.url()).expect("the URL is right"),
            keeps: server,
        }),
        None => Arc::new(MemoryStore::new()),
    }
}

mcp_tasks_core::store_contract! {
    contract,
    #[tokio::test(flavor = "multi_thread")],
    async { or_memory(servers::redis(&["--appendfsync", "no"])) },
    spawn = spawn,
}

mcp_tasks_core::store_contract! {
    contract_on_valkey,
    #[tokio::test(flavor = "multi_thread")],
    async { or_memory(servers::valkey(&["--appendfsync", "no"])) },
    spawn = spawn,
}

on_a_database_of_its_own! { alone, async {
    let Some(server) = servers::redis(&["--appendfsync", "no"]) else { return TwoNodes::in_memory() };
    let node = || RedisStore::open(server.url()).expect("the URL is right");
    TwoNodes::new([Arc::new(node()), Arc::new(node())], server)
} }
