//! NATS: the contract suite on a server per test, and what can happen to servers, buckets and connections.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::{MemoryStore, TaskStore};
use mcp_tasks_tests::servers::{DbServer, nats};

use crate::alone::{TwoNodes, on_a_database_of_its_own};
use crate::kept::Kept;

mod access;
mod buckets;
mod changes;
mod cluster;
mod credentials;
mod damage;
mod domain;
mod races;
mod scans;
mod selection;
mod trouble;

/// A store on a server of its own, which goes with it.
pub(crate) type Fresh = Kept<NatsStore, DbServer>;

impl Fresh {
    /// `None`, with a loud word, where there is no NATS server.
    fn new() -> Option<Self> {
        Self::with(&[], |options| options)
    }

    fn with(arguments: &[&str], options: impl FnOnce(NatsOptions) -> NatsOptions) -> Option<Self> {
        let server = nats(arguments)?;
        let options = options(NatsOptions::new(server.url()).expect("the server has a URL"));
        let store = options.open().expect("the options can be used");
        Some(Self { store, keeps: server })
    }

    /// Another process's store on the same server.
    fn another(&self) -> NatsStore {
        NatsStore::open(self.keeps.url()).expect("the server has a URL")
    }

    /// The server as an operator's tool sees it.
    async fn raw(&self) -> jetstream::Context {
        let client = async_nats::connect(self.keeps.url())
            .await
            .expect("the server is there");
        jetstream::new(client)
    }

    /// The bucket as an operator's tool sees it.
    async fn bucket(&self) -> jetstream::kv::Store {
        let raw = self.raw().await;
        raw.get_key_value("mcp-tasks").await.expect("the bucket is there")
    }

    /// How many messages the bucket holds, marks of deletion included.
    async fn messages(&self) -> u64 {
        let info = self.bucket().await.stream.get_info().await;
        info.expect("the bucket is there").state.messages
    }
}

/// Waits for what comes by itself, and fails when it does not come for very long.
async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(std::time::Instant::now() < end, "it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn spawn(work: Work) -> Work {
    Box::pin(async { tokio::spawn(work).await.expect("the work passes") })
}

/// A store for a case of the suite. Without a server, which `nats` has said loudly and CI does not let pass, the memory store
/// stands in, so that the cases that are stamped are functions that end.
async fn for_a_case() -> Box<dyn TaskStore> {
    match Fresh::new() {
        Some(fresh) => Box::new(fresh),
        None => Box::new(MemoryStore::new()),
    }
}

mcp_tasks_core::store_contract! {
    contract,
    #[tokio::test(flavor = "multi_thread")],
    async { for_a_case().await },
    spawn = spawn,
}

mcp_tasks_core::store_contract! {
    contract_on_one_thread,
    #[tokio::test],
    async { for_a_case().await },
}

on_a_database_of_its_own! { alone, async {
    let Some(server) = nats(&[]) else { return TwoNodes::in_memory() };
    let node = || NatsStore::open(server.url()).expect("the server has a URL");
    TwoNodes::new([Arc::new(node()), Arc::new(node())], server)
} }
