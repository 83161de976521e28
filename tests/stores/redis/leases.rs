//! Tasks whose node is gone.

use mcp_tasks_core::{Claim, Mutation, TaskId, TaskStore, WriteId};
use redis::Commands;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Fresh, fresh, key_of};
use crate::records::{at, json, record};

async fn create_until(fresh: &Fresh, id: &str, ttl_ms: Option<u64>, lease: Option<u64>) {
    let mut task = record(id, ttl_ms);
    task.execution.lease_until = lease.map(at);
    fresh.create(task).await.unwrap();
}

async fn found(fresh: &Fresh, now: u64, limit: usize) -> BTreeSet<String> {
    let leases = fresh.as_expired_leases().unwrap();
    let found = leases.expired_leases(at(now), limit).await.unwrap();
    found.iter().map(|task| task.task_id.to_string()).collect()
}

fn indexed(fresh: &Fresh) -> usize {
    let mut raw = fresh.raw();
    (0..64)
        .map(|shard| raw.zcard::<_, usize>(format!("mcp-tasks:{{{shard}}}")).unwrap())
        .sum()
}

#[tokio::test]
async fn exactly_the_abandoned_are_found() {
    let Some(fresh) = fresh() else { return };
    for n in 0..300_u64 {
        create_until(&fresh, &format!("t{n}"), None, Some(n)).await;
    }
    create_until(&fresh, "unclaimed", None, None).await;
    create_until(&fresh, "expired", Some(50), Some(10)).await;
    let expected: BTreeSet<_> = (0..200).map(|n| format!("t{n}")).collect();
    assert_eq!(
        found(&fresh, 200, 1_000).await,
        expected,
        "a lease holds through its last instant"
    );
    assert_eq!(found(&fresh, 200, 7).await.len(), 7);
    assert!(found(&fresh, 0, 1_000).await.is_empty());

    // Renewed, taken over, ended, removed: none of them is found any more.
    let end: Mutation = Arc::new(|task| task.completed(1, at(200), &json(r#"{"content":[]}"#), None));
    let renew: Mutation = Arc::new(|task| task.renewed(1, at(10_000)));
    let claim: Mutation = Arc::new(|task| task.claimed(at(200), &Claim::new("other".into(), at(10_000))));
    for (n, change) in [end, renew, claim].into_iter().enumerate() {
        let id = TaskId::new(&format!("t{n}"));
        let other = fresh.other();
        assert!(
            other
                .update(&id, at(200), WriteId::new(5), change)
                .await
                .unwrap()
                .unwrap()
                .applied
        );
    }
    fresh.delete(&TaskId::new("t3")).await.unwrap();
    // Before the scan, which would mend it.
    assert_eq!(
        indexed(&fresh),
        298,
        "what ended, was removed or has expired is in the index no more"
    );
    let expected: BTreeSet<_> = (4..200).map(|n| format!("t{n}")).collect();
    assert_eq!(found(&fresh, 200, 1_000).await, expected);
}

#[tokio::test]
async fn what_redis_removed_by_itself_leaves_the_index_and_what_cannot_be_read_stays() {
    let Some(fresh) = fresh() else { return };
    for n in 0..200_u64 {
        create_until(&fresh, &format!("t{n}"), None, Some(1)).await;
    }
    let mut raw = fresh.raw();
    for n in 0..100 {
        let key = key_of(&mut raw, &format!("t{n}"));
        if n % 2 == 0 {
            let () = raw.del(key).unwrap();
        } else {
            let () = raw.set(key, "{").unwrap();
        }
    }
    let expected: BTreeSet<_> = (100..200).map(|n| format!("t{n}")).collect();
    for _ in 0..2 {
        assert_eq!(found(&fresh, 2, 1_000).await, expected);
        assert_eq!(indexed(&fresh), 150);
    }
}
