//! Creating, reading and removing.

use super::records::{HOUR, at, content, record};
use super::{Case, changing, is_collision};
use crate::{TaskStore, WriteId};

/// What was created is found.
pub async fn create_then_get_returns_what_was_created(store: &dyn TaskStore) {
    let case = Case::new(store, "create-get");
    let id = case.id(0).await;
    assert!(!case.is_there(&id, at(0)).await, "an id nobody created is absent");
    let given = record(&id, Some(HOUR));
    let created = case.create(given.clone()).await;
    assert_eq!(content(&created), content(&given), "create returns the record");
    let found = case.get(&id, at(1)).await.expect("a created record is there");
    assert_eq!(*found, *created, "get returns what create returned");
}

/// The id of a live record is taken, and the record stays as it is.
pub async fn create_refuses_an_id_that_is_taken(store: &dyn TaskStore) {
    let case = Case::new(store, "collision");
    let id = case.id(0).await;
    let first = case.create(record(&id, Some(HOUR))).await;
    let mut second = record(&id, Some(2 * HOUR));
    second.last_write = Some(WriteId::new(2));
    second.status_message = Some("second".into());
    assert!(is_collision(&store.create(second.clone()).await), "the id is taken");
    second.last_write = None;
    assert!(
        is_collision(&store.create(second).await),
        "also for a creation without a write id"
    );
    assert_eq!(
        case.get(&id, at(1)).await,
        Some(first),
        "the record that was there stays"
    );
}

/// A creation whose acknowledgement was lost is recognised by its write id.
pub async fn create_with_the_write_id_of_the_record_that_is_there_is_done(store: &dyn TaskStore) {
    let case = Case::new(store, "create-twice");
    let id = case.id(0).await;
    let first = case.create(record(&id, Some(HOUR))).await;
    let again = store.create(record(&id, Some(HOUR))).await;
    assert_eq!(*again.expect("the repeated write is recognised as done"), *first);
}

/// An expired record is absent, so its id is free.
pub async fn create_takes_the_place_of_an_expired_record(store: &dyn TaskStore) {
    let case = Case::new(store, "create-expired");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    case.update(&id, at(1), 2, changing(|record| record.poll_interval_ms = 1))
        .await;
    let mut second = super::records::record_at(&id, at(HOUR + 1), Some(HOUR));
    second.last_write = Some(WriteId::new(3));
    let created = case.create(second.clone()).await;
    assert_eq!(created.version, 1, "its versions begin anew");
    let found = case.get(&id, at(2 * HOUR)).await.expect("the new record is there");
    assert_eq!(content(&found), content(&second));
}

/// The stamps of a creation.
pub async fn a_created_record_has_version_one_and_keeps_its_write_id(store: &dyn TaskStore) {
    let case = Case::new(store, "create-stamps");
    let id = case.id(0).await;
    let mut given = record(&id, Some(HOUR));
    given.version = 77;
    let created = case.create(given).await;
    let found = case.get(&id, at(0)).await.expect("a created record is there");
    for record in [created, found] {
        assert_eq!((record.version, record.last_write), (1, Some(WriteId::new(1))));
    }
}

/// Removing what is not there is no error.
pub async fn delete_is_idempotent(store: &dyn TaskStore) {
    let case = Case::new(store, "delete");
    let id = case.id(0).await;
    store.delete(&id).await.expect("deleting what never was is no error");
    case.create(record(&id, Some(HOUR))).await;
    for _ in 0..2 {
        store.delete(&id).await.expect("deleting twice is no error");
        assert!(!case.is_there(&id, at(1)).await, "a deleted record is absent");
    }
}

/// An update that comes after a delete finds nothing and creates nothing.
pub async fn an_update_after_a_delete_resurrects_nothing(store: &dyn TaskStore) {
    let case = Case::new(store, "stale-update");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    let change = || changing(|record| record.poll_interval_ms = 1);
    assert!(case.update(&id, at(1), 2, change()).await.is_some());
    store.delete(&id).await.expect("delete removes");
    // A new write, and a repetition of the last one, which the removed record would have recognised.
    for write in [3, 2] {
        assert!(
            case.update(&id, at(2), write, change()).await.is_none(),
            "nothing to update"
        );
        assert!(!case.is_there(&id, at(2)).await, "nothing came back");
    }
}

/// After a delete the id is free.
pub async fn a_deleted_id_can_be_created_again(store: &dyn TaskStore) {
    let case = Case::new(store, "recreate");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    case.update(&id, at(1), 2, changing(|record| record.poll_interval_ms = 1))
        .await;
    store.delete(&id).await.expect("delete removes");
    let created = case.create(record(&id, Some(HOUR))).await;
    assert_eq!(created.version, 1, "nothing is left of the earlier record");
    assert_eq!(case.get(&id, at(2)).await, Some(created));
}

/// An operation on one record leaves others alone, whatever their ids have in common.
pub async fn records_do_not_touch_each_other(store: &dyn TaskStore) {
    let case = Case::new(store, "neighbours");
    let (first, second) = (case.id(1).await, case.id(11).await);
    case.create(record(&first, Some(HOUR))).await;
    let other = case.create(record(&second, Some(HOUR))).await;
    case.update(&first, at(1), 2, changing(|record| record.poll_interval_ms = 1))
        .await;
    assert_eq!(case.get(&second, at(1)).await, Some(other.clone()), "after an update");
    store.delete(&first).await.expect("delete removes");
    assert_eq!(case.get(&second, at(1)).await, Some(other), "after a delete");
}
