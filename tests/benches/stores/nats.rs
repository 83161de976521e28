//! NATS, beside async-nats.

use std::sync::Arc;

use async_nats::jetstream::{self, kv};
use mcp_tasks::store::NatsStore;
use mcp_tasks_tests::servers::{nats, until_exit};

use super::compare::{self, Driver, Raw, Row};
use super::options::Options;
use super::work::Bench;

/// The store's own bucket. What the store writes has two or three headers besides, for its index.
struct AsyncNats(kv::Store);

impl AsyncNats {
    async fn open(url: &str) -> Bench<Self> {
        let client = async_nats::connect(url).await?;
        Ok(Self(jetstream::new(client).get_key_value("mcp-tasks").await?))
    }
}

impl Driver for AsyncNats {
    fn create<'a>(&'a self, id: &'a str, text: &'a str) -> Raw<'a, u64> {
        Box::pin(async move { Ok(self.0.create(id, text.to_owned().into()).await?) })
    }

    fn get<'a>(&'a self, id: &'a str) -> Raw<'a, Row> {
        Box::pin(async move {
            let entry = self.0.entry(id).await?.ok_or("the key is gone")?;
            Ok(Row {
                version: entry.revision,
                text: str::from_utf8(&entry.value)?.to_owned(),
            })
        })
    }

    fn update<'a>(&'a self, id: &'a str, version: u64, text: &'a str) -> Raw<'a, Option<u64>> {
        Box::pin(async move {
            match self.0.update(id, text.to_owned().into(), version).await {
                Ok(version) => Ok(Some(version)),
                Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }
}

pub(crate) fn compare(options: &Options) -> Bench<()> {
    let Some(server) = nats(&[]) else { return Ok(()) };
    let server = until_exit(server);
    let runtime = compare::runtime()?;
    let store = NatsStore::open(server.url())?;
    // The first operation makes the bucket.
    runtime.block_on(compare::first(&store))?;
    let driver = runtime.block_on(AsyncNats::open(server.url()))?;
    compare::compare(options, "NATS JetStream", &runtime, Arc::new(store), driver)
}
