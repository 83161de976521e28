//! Finding tasks whose node is gone, by the index of leases.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use mcp_tasks_core::{RecordError, StoreError, TaskRecord, Timestamp};
use redis::{Cmd, cmd};

use super::Inner;
use super::backend::entry;
use super::keys::SHARDS;
use super::scripts::FORGET_LEASES;
use crate::store::failure::warn_unreadable;

/// How many shards are asked at once: one round trip's worth of commands, without crowding out what else is sent.
const AT_ONCE: usize = 16;

/// How many leases are looked at in one go, each with its record: few enough that an answer is small.
const PAGE: isize = 64;

/// The leases of one shard that are over.
struct Page {
    shard: u16,
    leases: Vec<(String, u64)>,
}

pub(super) async fn expired_leases(
    inner: &Inner,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
    // Most shards have nothing that is over: all are asked first.
    let pages: Vec<Page> = stream::iter(0..SHARDS)
        .map(|shard| page(inner, shard, now, 0))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut found = Vec::new();
    for mut page in pages {
        let mut passed_over = 0;
        while found.len() < limit && !page.leases.is_empty() {
            passed_over += look(inner, &page, now, &mut found).await?;
            page = self::page(inner, page.shard, now, passed_over).await?;
        }
    }
    found.truncate(limit);
    Ok(found)
}

async fn page(inner: &Inner, shard: u16, now: Timestamp, offset: isize) -> Result<Page, StoreError> {
    let over = format!("({}", now.as_millis());
    let range = Cmd::zrangebyscore_limit_withscores(inner.keys.leases(shard), "-inf", over, offset, PAGE);
    let range = &range;
    let leases = inner
        .link
        .run(|mut connection| async move { range.query_async::<Vec<(String, u64)>>(&mut connection).await });
    Ok(Page {
        shard,
        leases: leases.await?,
    })
}

/// Looks at the records of a page. Returns how many of its leases stay in the index: the next page begins behind them.
async fn look(
    inner: &Inner,
    page: &Page,
    now: Timestamp,
    found: &mut Vec<Arc<TaskRecord>>,
) -> Result<isize, StoreError> {
    let mut get = cmd("MGET");
    for (id, _) in &page.leases {
        get.arg(inner.keys.place(id).record);
    }
    let get = &get;
    let values = inner
        .link
        .run(|mut connection| async move { get.query_async::<Vec<Option<Vec<u8>>>>(&mut connection).await })
        .await?;
    let mut stay = 0;
    let mut gone = Vec::new();
    for ((id, until), value) in page.leases.iter().zip(values) {
        match value.as_deref().map(decode) {
            Some(Ok(record)) if record.is_abandoned(now) && !record.is_expired(now) => {
                found.push(Arc::new(record));
                stay += 1;
            }
            // The record expired, or was changed by something else than this store.
            Some(Ok(_)) | None => gone.push((id, until)),
            Some(Err(error)) => {
                warn_unreadable(id, "Redis", &error);
                stay += 1;
            }
        }
    }
    if !gone.is_empty() {
        let mut forget = FORGET_LEASES.key(inner.keys.leases(page.shard));
        for (id, until) in gone {
            forget.arg(id.as_str()).arg(*until);
        }
        let forget = &forget;
        inner
            .link
            .run(|mut connection| async move { forget.invoke_async::<()>(&mut connection).await })
            .await?;
    }
    Ok(stay)
}

fn decode(value: &[u8]) -> Result<TaskRecord, RecordError> {
    let (_, record) = entry(value)?;
    TaskRecord::from_slice(record)
}
