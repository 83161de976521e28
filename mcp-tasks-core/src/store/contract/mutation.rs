//! What an update is.

use std::sync::Arc;

use super::records::{HOUR, at, content, record};
use super::{Case, Mutation, changing, keeping};
use crate::{TaskId, TaskStore, WriteId};

/// A mutation that makes repeated application visible.
fn counting() -> Mutation {
    changing(|record| record.progress = Some(record.progress.unwrap_or_default() + 1.0))
}

/// There is nothing to update, and nothing appears.
pub async fn update_of_an_unknown_task_is_none(store: &dyn TaskStore) {
    let case = Case::new(store, "unknown");
    let id = case.id(0).await;
    for mutation in [counting(), keeping()] {
        assert!(case.update(&id, at(0), 2, mutation).await.is_none());
    }
    assert!(!case.is_there(&id, at(0)).await, "an update creates nothing");
}

/// What the mutation made is returned and stored.
pub async fn update_returns_and_stores_the_new_record(store: &dyn TaskStore) {
    let case = Case::new(store, "update");
    let id = case.id(0).await;
    let created = case.create(record(&id, Some(HOUR))).await;
    let updated = case
        .update(&id, at(1), 2, counting())
        .await
        .expect("the record is there");
    assert!(updated.applied, "the update wrote");
    assert_eq!(updated.record.progress, Some(1.0));
    let mut expected = (*created).clone();
    expected.progress = Some(1.0);
    assert_eq!(content(&updated.record), content(&expected), "nothing else changed");
    assert_eq!(case.get(&id, at(1)).await, Some(updated.record));
}

/// A mutation that keeps the record makes no write: neither version nor write id change.
pub async fn keep_writes_nothing(store: &dyn TaskStore) {
    let case = Case::new(store, "keep");
    let id = case.id(0).await;
    let created = case.create(record(&id, Some(HOUR))).await;
    let kept = case
        .update(&id, at(1), 2, keeping())
        .await
        .expect("the record is there");
    assert!(!kept.applied, "nothing was written");
    assert_eq!(kept.record, created);
    assert_eq!(case.get(&id, at(1)).await, Some(created));
    // A write id that wrote nothing was not used up.
    let updated = case
        .update(&id, at(1), 2, counting())
        .await
        .expect("the record is there");
    assert!(updated.applied && updated.record.version == 2);
}

/// Versions count the writes, and each leaves its id.
pub async fn every_write_raises_the_version_by_one_and_leaves_its_id(store: &dyn TaskStore) {
    let case = Case::new(store, "stamps");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    for write in 2..12_u64 {
        let updated = case.update(&id, at(write), u128::from(write), counting()).await;
        let stored = case.get(&id, at(write)).await.expect("the record is there");
        let stamps = (stored.version, stored.last_write);
        assert_eq!(stamps, (write, Some(WriteId::new(u128::from(write)))));
        assert_eq!(updated.expect("the record is there").record, stored);
        case.update(&id, at(write), 99, keeping()).await;
    }
    // The whole range of a write id comes back.
    case.update(&id, at(20), u128::MAX, counting()).await;
    let stored = case.get(&id, at(20)).await.expect("the record is there");
    assert_eq!(stored.last_write, Some(WriteId::new(u128::MAX)));
}

/// Version, write id and task id are the store's, whatever the mutation says.
pub async fn stamps_of_the_mutation_are_overwritten(store: &dyn TaskStore) {
    let case = Case::new(store, "own-stamps");
    let (id, other) = (case.id(0).await, case.id(1).await);
    case.create(record(&id, Some(HOUR))).await;
    let stolen = other.clone();
    let mutation = changing(move |record| {
        record.version = 500;
        record.last_write = Some(WriteId::new(500));
        record.task_id = stolen.clone();
    });
    let updated = case.update(&id, at(1), 2, mutation).await.expect("the record is there");
    let stored = case.get(&id, at(1)).await.expect("the record stays under its id");
    for record in [updated.record, stored] {
        let stamps: (u64, _, &TaskId) = (record.version, record.last_write, &record.task_id);
        assert_eq!(stamps, (2, Some(WriteId::new(2)), &id));
    }
    assert!(!case.is_there(&other, at(1)).await, "nothing appears under another id");
}

/// The same write id twice is one write.
pub async fn a_write_repeated_after_a_lost_acknowledgement_applies_once(store: &dyn TaskStore) {
    let case = Case::new(store, "lost-ack");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    let first = case
        .update(&id, at(1), 2, counting())
        .await
        .expect("the record is there");
    for _ in 0..3 {
        let again = case
            .update(&id, at(2), 2, counting())
            .await
            .expect("the record is there");
        assert!(again.applied, "the caller learns that its write took effect");
        assert_eq!(again.record, first.record, "and gets the record it made");
    }
    // Also when the mutation would keep what it sees now.
    let kept = case
        .update(&id, at(2), 2, keeping())
        .await
        .expect("the record is there");
    assert!(kept.applied);
    assert_eq!(case.get(&id, at(2)).await, Some(first.record));
}

/// A mutation is given what is stored, not what somebody saw earlier.
pub async fn a_mutation_sees_the_newest_record(store: &dyn TaskStore) {
    let case = Case::new(store, "newest");
    let id = case.id(0).await;
    let mut expected = case.create(record(&id, Some(HOUR))).await;
    for write in 2..6 {
        let seen = Arc::new(std::sync::Mutex::new(None));
        let sink = seen.clone();
        let mutation: Mutation = Arc::new(move |record| {
            *sink.lock().expect("nobody panics while holding it") = Some(record.clone());
            counting()(record)
        });
        let updated = case.update(&id, at(1), write, mutation).await;
        let seen = seen.lock().expect("nobody panics while holding it").take();
        assert_eq!(seen.as_ref(), Some(&*expected));
        expected = updated.expect("the record is there").record;
    }
}
