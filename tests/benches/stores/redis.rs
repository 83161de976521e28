//! Redis, beside redis-rs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_tasks::store::RedisStore;
use mcp_tasks_tests::servers::{redis, until_exit};
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, Script};

use super::compare::{self, Driver, Raw, Row};
use super::options::Options;
use super::work::{Bench, TIME_TO_LIVE};

/// A version at the head of a value.
const VERSION: usize = 16;

const CHANNEL: &str = "mcp-tasks:changes";

/// Writes if the version is the expected one, notes that there is no lease, and tells of it, as the store's script does.
const COMPARE_AND_SET: &str = r"
if ARGV[1] == '' then
  if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
elseif redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZREM', KEYS[2], ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return 1
";

struct RedisRs {
    connection: MultiplexedConnection,
    script: Script,
    next: AtomicU64,
}

impl RedisRs {
    async fn open(url: &str) -> Bench<Self> {
        Ok(Self {
            connection: Client::open(url)?.get_multiplexed_async_connection().await?,
            script: Script::new(COMPARE_AND_SET),
            next: AtomicU64::new(1),
        })
    }

    async fn write(&self, id: &str, expected: String, text: &str) -> Bench<Option<u64>> {
        let version = self.next.fetch_add(1, Ordering::Relaxed);
        let shard = shard(id);
        let written: bool = self
            .script
            .key(format!("{shard}:{id}"))
            .key(&shard)
            .arg(expected)
            .arg(format!("{version:016x}{text}"))
            .arg(TIME_TO_LIVE.as_millis().to_string())
            .arg(id)
            .arg(CHANNEL)
            .arg(format!("2 {id}"))
            .invoke_async(&mut self.connection.clone())
            .await?;
        Ok(written.then_some(version))
    }
}

/// What comes before the id in a key: the prefix, and one of 64 hash tags, as the store chooses it.
fn shard(id: &str) -> String {
    let hash = id.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("mcp-tasks:{{{}}}", (hash ^ (hash >> 16)) % 64)
}

impl Driver for RedisRs {
    fn create<'a>(&'a self, id: &'a str, text: &'a str) -> Raw<'a, u64> {
        Box::pin(async move {
            let created = self.write(id, String::new(), text).await?;
            created.ok_or_else(|| "the key is there".into())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> Raw<'a, Row> {
        Box::pin(async move {
            let found: Option<String> = Cmd::get(format!("{}:{id}", shard(id)))
                .query_async(&mut self.connection.clone())
                .await?;
            let mut text = found.ok_or("the key is gone")?;
            let version = u64::from_str_radix(text.get(..VERSION).ok_or("the value is short")?, 16)?;
            text.drain(..VERSION);
            Ok(Row { version, text })
        })
    }

    fn update<'a>(&'a self, id: &'a str, version: u64, text: &'a str) -> Raw<'a, Option<u64>> {
        Box::pin(self.write(id, format!("{version:016x}"), text))
    }
}

pub(crate) fn compare(options: &Options) -> Bench<()> {
    let Some(server) = redis(&[]) else { return Ok(()) };
    let server = until_exit(server);
    let runtime = compare::runtime()?;
    let store = RedisStore::open(server.url())?;
    let driver = runtime.block_on(RedisRs::open(server.url()))?;
    compare::compare(
        options,
        "Redis, appendfsync = always",
        &runtime,
        Arc::new(store),
        driver,
    )
}
