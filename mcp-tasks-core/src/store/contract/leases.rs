//! Finding tasks whose node is gone. Stores without the ability pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::records::{HOUR, raw, record_at};
use super::{Case, changing};
use crate::{Claim, ExpiredLeases, Ledger, Mutation, TaskId, TaskRecord, TaskStatus, TaskStore, Timestamp};

/// Long before the leases of other cases, and behind every sweep of theirs.
fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(63_072_000_000 + millis)
}

fn working(id: &TaskId, lease_until: Option<Timestamp>) -> TaskRecord {
    let mut record = record_at(id, at(0), Some(HOUR));
    record.execution.node = Some("node".into());
    record.execution.lease_until = lease_until;
    record
}

async fn found(leases: &dyn ExpiredLeases, now: Timestamp, limit: usize) -> BTreeSet<TaskId> {
    let records = leases.expired_leases(now, limit).await.expect("expired_leases answers");
    assert!(records.len() <= limit, "no more than were asked for");
    assert!(
        records.iter().all(|record| record.is_abandoned(now)),
        "they are abandoned"
    );
    let ids: BTreeSet<_> = records.iter().map(|record| record.task_id.clone()).collect();
    assert_eq!(ids.len(), records.len(), "each is found once");
    ids
}

/// Found is what works under a lease that is over, or has slept until now, and nothing else: not what is parked or has
/// ended, not what sleeps, not what is expired or gone, and not what was renewed or taken over since.
pub async fn expired_leases_finds_what_is_abandoned_and_nothing_else(store: &dyn TaskStore) {
    let Some(leases) = store.as_expired_leases() else {
        return;
    };
    let case = Case::new(store, "leases");
    a_few_at_a_time(&case, leases).await;
    let mut ids = Vec::new();
    for number in 0..12 {
        let id = case.id(number).await;
        let mut record = match number {
            8 => working(&id, None),
            9..=11 => working(&id, Some(at(5_000))),
            _ => working(&id, Some(at(1_000))),
        };
        if number == 7 {
            record.status = TaskStatus::InputRequired;
        }
        case.create(record).await;
        ids.push(id);
    }
    let asleep = |wake| Arc::new(move |record: &TaskRecord| record.slept(1, at(1), at(wake), &Ledger::default(), None));
    let changes: [(usize, Mutation); 7] = [
        (2, Arc::new(|record| record.renewed(1, at(3_000)))),
        (3, Arc::new(|record| record.completed(1, at(1), &raw("{}"), None))),
        (4, Arc::new(|record| record.cancelled(at(1)))),
        (5, changing(|record| record.ttl_ms = Some(1_500))),
        (6, changing(|record| record.execution.lease_until = None)),
        (10, asleep(3_000)),
        (11, asleep(900_000)),
    ];
    for (number, change) in changes {
        let updated = case.update(&ids[number], at(1), 2, change).await;
        assert!(updated.is_some_and(|updated| updated.applied));
    }
    let of = |numbers: &[usize]| -> BTreeSet<TaskId> { numbers.iter().map(|number| ids[*number].clone()).collect() };
    assert_eq!(
        found(leases, at(1_000), 100).await,
        of(&[]),
        "a lease lasts through its end"
    );
    assert_eq!(found(leases, at(1_001), 100).await, of(&[0, 1, 5]));
    assert_eq!(
        found(leases, at(1_501), 100).await,
        of(&[0, 1]),
        "one has expired meanwhile"
    );
    assert_eq!(found(leases, at(1_501), 1).await.len(), 1, "of two the one that fits");
    assert_eq!(
        found(leases, at(2_999), 100).await,
        of(&[0, 1]),
        "who sleeps is left alone"
    );
    assert_eq!(
        found(leases, at(3_001), 100).await,
        of(&[0, 1, 2, 10]),
        "a renewal is over too, and so is a sleep"
    );

    let taken: Mutation = Arc::new(|record| record.claimed(at(3_001), &Claim::new("other".into(), at(4_000))));
    case.update(&ids[0], at(3_001), 3, taken).await;
    store.delete(&ids[1]).await.expect("delete removes");
    assert_eq!(found(leases, at(3_001), 100).await, of(&[2, 10]));
    let woken: Mutation = Arc::new(|record| record.claimed(at(3_001), &Claim::new("other".into(), at(4_500))));
    case.update(&ids[10], at(3_001), 3, woken).await;
    assert_eq!(found(leases, at(4_001), 100).await, of(&[0, 2]));
    assert_eq!(found(leases, at(4_501), 100).await, of(&[0, 2, 10]));
    assert_eq!(found(leases, at(HOUR + 1), 100).await, of(&[]), "all have expired");
    for id in &ids {
        store.delete(id).await.expect("delete removes");
    }
}

/// What is taken care of makes room for the next: asked for a few at a time, all are found.
async fn a_few_at_a_time(case: &Case<'_>, leases: &dyn ExpiredLeases) {
    let mut left = BTreeSet::new();
    for number in 100..125 {
        let id = case.id(number).await;
        case.create(working(&id, Some(at(u64::from(number))))).await;
        left.insert(id);
    }
    let now = at(1_000);
    while !left.is_empty() {
        let some = found(leases, now, 10).await;
        assert_eq!(some.len(), left.len().min(10), "as many as there are, up to the limit");
        for id in some {
            assert!(left.remove(&id), "{id} was taken care of");
            let claim: Mutation = Arc::new(move |record| record.claimed(now, &Claim::new("other".into(), at(HOUR))));
            case.update(&id, now, 2, claim).await.expect("it is there");
        }
    }
    assert!(found(leases, now, 10).await.is_empty());
    for number in 100..125 {
        let _ = case.id(number).await;
    }
}
