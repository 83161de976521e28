//! What Redis removes by itself, and when.

use mcp_tasks_core::{Change, TaskId, TaskStore, WriteId};
use redis::Commands;
use std::sync::Arc;

use super::{fresh, key_of};
use crate::records::{at, increment, record};

/// How much longer than its task a key may stay: the margin, and what a test takes on a loaded machine.
const MARGIN: i64 = 60_000;

#[tokio::test]
async fn the_time_to_live_only_falls_and_ends_after_the_deadline() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("t", Some(60_000))).await.unwrap();
    let (mut raw, id) = (fresh.raw(), TaskId::new("t"));
    let key = key_of(&mut raw, "t");
    let mut before: i64 = raw.pttl(&key).unwrap();
    assert!((60_000..=60_000 + MARGIN).contains(&before), "{before}");
    for n in 1..=20_u64 {
        // Writes of two nodes in turn, every 1.5 s by the caller's clock.
        let now = at(n * 1_500);
        let store = if n % 2 == 0 { fresh.other() } else { fresh.store.clone() };
        let write = WriteId::new(u128::from(n) + 1);
        assert!(
            store
                .update(&id, now, write, increment())
                .await
                .unwrap()
                .unwrap()
                .applied
        );
        let left: i64 = raw.pttl(&key).unwrap();
        let remaining = 60_000 - i64::try_from(n).unwrap() * 1_500;
        assert!(left < before, "write {n}: {left} after {before}");
        assert!(left > remaining, "write {n}: Redis removes it before its deadline");
        assert!(left <= remaining + MARGIN, "write {n}: {left} prolongs it");
        before = left;
    }
    // At the very deadline it is there and can be written; past it, nothing is.
    assert!(
        fresh
            .update(&id, at(60_000), WriteId::new(50), increment())
            .await
            .unwrap()
            .is_some()
    );
    let left: i64 = raw.pttl(&key).unwrap();
    assert!((1..=MARGIN + 1).contains(&left), "{left}");
    assert!(
        fresh
            .update(&id, at(60_001), WriteId::new(51), increment())
            .await
            .unwrap()
            .is_none()
    );
    assert!(raw.pttl::<_, i64>(&key).unwrap() <= left);
}

#[tokio::test]
async fn a_late_write_resurrects_nothing() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("t", Some(60_000))).await.unwrap();
    let (mut raw, id) = (fresh.raw(), TaskId::new("t"));
    let key = key_of(&mut raw, "t");
    // Redis has removed it by its own clock, while this node still remembers it and finds it live.
    let () = raw.pexpire(&key, 1).unwrap();
    super::until("the key expires", || !raw.exists::<_, bool>(&key).unwrap()).await;
    assert!(
        fresh
            .update(&id, at(1), WriteId::new(2), increment())
            .await
            .unwrap()
            .is_none()
    );
    assert!(!raw.exists::<_, bool>(&key).unwrap());
}

#[tokio::test]
async fn deadlines_follow_what_is_stored() {
    let Some(fresh) = fresh() else { return };
    let mut raw = fresh.raw();
    let id = TaskId::new("t");
    fresh.create(record("t", None)).await.unwrap();
    let key = key_of(&mut raw, "t");
    assert_eq!(
        raw.pttl::<_, i64>(&key).unwrap(),
        -1,
        "an unlimited task has no time to live"
    );
    let limits = [Some(1_000_u64), None, Some(0), Some((1 << 53) - 1), Some(u64::MAX)];
    for (n, ttl) in limits.into_iter().enumerate() {
        let limit: mcp_tasks_core::Mutation = Arc::new(move |task| {
            let mut next = task.clone();
            next.ttl_ms = ttl;
            Change::Write(Box::new(next))
        });
        let write = WriteId::new(100 + u128::try_from(n).unwrap());
        fresh.update(&id, at(0), write, limit).await.unwrap().unwrap();
        let left: i64 = raw.pttl(&key).unwrap();
        match ttl {
            None => assert_eq!(left, -1),
            Some(ttl) => {
                // Timestamps end with the year 9999.
                let deadline = record("t", Some(ttl)).deadline().unwrap();
                let ttl = i64::try_from(deadline.saturating_since(at(0)).as_millis()).unwrap();
                assert!((ttl..=ttl.max(1) + MARGIN).contains(&left), "{left} of {ttl}");
            }
        }
    }
    fresh.create(record("short", Some(0))).await.unwrap();
    let short = key_of(&mut raw, "short");
    assert!((1..=MARGIN + 1).contains(&raw.pttl::<_, i64>(&short).unwrap()));
}
