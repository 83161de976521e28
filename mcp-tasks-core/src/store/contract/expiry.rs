//! Lifetime: creation plus time to live decides, to the millisecond, and nothing else.

use super::records::{HOUR, at, record, record_at};
use super::{Case, changing, is_collision, keeping};
use crate::{TaskRecord, TaskStore, Timestamp, WriteId};

/// Instants around a deadline, in order, and whether a record is there at each.
const AROUND: [(u64, bool); 5] = [
    (HOUR - 1, true),
    (HOUR, true),
    (HOUR + 1, false),
    (HOUR + 2, false),
    (1_000 * HOUR, false),
];

/// Reading.
pub async fn get_finds_a_record_through_its_deadline_and_not_after(store: &dyn TaskStore) {
    let case = Case::new(store, "get-deadline");
    for (number, (millis, there)) in (0..).zip(AROUND) {
        let id = case.id(number).await;
        case.create(record(&id, Some(HOUR))).await;
        assert_eq!(
            case.is_there(&id, at(millis)).await,
            there,
            "{millis} ms after creation"
        );
    }
    // And the same record all the way.
    let id = case.id(9).await;
    case.create(record(&id, Some(HOUR))).await;
    for (millis, there) in AROUND {
        assert_eq!(
            case.is_there(&id, at(millis)).await,
            there,
            "{millis} ms after creation"
        );
    }
}

/// Updating, with and without a write.
pub async fn update_works_through_the_deadline_and_not_after(store: &dyn TaskStore) {
    let case = Case::new(store, "update-deadline");
    let change = || changing(|record| record.poll_interval_ms = 1);
    for (number, (millis, there)) in (0..).zip(AROUND) {
        let (written, kept) = (case.id(number).await, case.id(100 + number).await);
        case.create(record(&written, Some(HOUR))).await;
        case.create(record(&kept, Some(HOUR))).await;
        let updated = case.update(&written, at(millis), 2, change()).await;
        assert_eq!(updated.is_some(), there, "a write {millis} ms after creation");
        let updated = case.update(&kept, at(millis), 2, keeping()).await;
        assert_eq!(updated.is_some(), there, "a look {millis} ms after creation");
        if !there {
            // Neither the expired record nor a lost acknowledgement of it comes back.
            assert!(!case.is_there(&written, at(millis)).await);
            assert!(case.update(&written, at(millis), 1, change()).await.is_none());
        }
    }
}

/// Creating.
pub async fn create_collides_through_the_deadline_and_not_after(store: &dyn TaskStore) {
    let case = Case::new(store, "create-deadline");
    for (number, (millis, there)) in (0..).zip(AROUND) {
        let id = case.id(number).await;
        case.create(record(&id, Some(HOUR))).await;
        let mut second = record_at(&id, at(millis), Some(HOUR));
        second.last_write = Some(WriteId::new(2));
        let collides = is_collision(&store.create(second).await);
        assert_eq!(collides, there, "{millis} ms after creation");
    }
}

/// Deleting.
pub async fn delete_works_at_any_time(store: &dyn TaskStore) {
    let case = Case::new(store, "delete-expired");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    assert!(!case.is_there(&id, at(HOUR + 1)).await);
    store.delete(&id).await.expect("deleting what has expired is no error");
    assert!(!case.is_there(&id, at(0)).await, "it is gone by every clock");
}

/// No time to live is no end.
pub async fn an_unlimited_record_never_expires(store: &dyn TaskStore) {
    let case = Case::new(store, "unlimited");
    let id = case.id(0).await;
    case.create(record(&id, None)).await;
    for now in [at(0), at(1_000_000 * HOUR), Timestamp::MAX] {
        assert!(case.is_there(&id, now).await, "at {now}");
    }
    let updated = case
        .update(&id, Timestamp::MAX, 2, changing(|r| r.poll_interval_ms = 1))
        .await;
    assert_eq!(updated.expect("it is there").record.ttl_ms, None);
    assert!(case.is_there(&id, Timestamp::MAX).await, "a write set no end");
}

/// Writes along the way change nothing about when a record ends.
pub async fn writes_do_not_renew_the_deadline(store: &dyn TaskStore) {
    let case = Case::new(store, "no-renewal");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    for write in 1..=20 {
        let change = changing(|record| record.poll_interval_ms += 1);
        let now = at(write * HOUR / 25);
        let updated = case.update(&id, now, u128::from(write) + 1, change).await;
        assert!(updated.is_some(), "write {write}");
    }
    assert!(case.is_there(&id, at(HOUR)).await);
    assert!(!case.is_there(&id, at(HOUR + 1)).await);
}

async fn after_a_change_of_ttl(case: &Case<'_>, from: Option<u64>, to: Option<u64>) -> TaskRecord {
    let id = case.id(0).await;
    case.create(record(&id, from)).await;
    let change = changing(move |record| record.ttl_ms = to);
    let updated = case.update(&id, at(HOUR / 2), 2, change).await;
    (*updated.expect("the record is there").record).clone()
}

/// A task may live longer than it was to.
pub async fn an_extended_deadline_is_honoured(store: &dyn TaskStore) {
    let case = Case::new(store, "extended");
    let record = after_a_change_of_ttl(&case, Some(HOUR), Some(3 * HOUR)).await;
    for (now, there) in [(HOUR + 1, true), (3 * HOUR, true), (3 * HOUR + 1, false)] {
        assert_eq!(
            case.is_there(&record.task_id, at(now)).await,
            there,
            "{now} ms after creation"
        );
    }
}

/// Or shorter.
pub async fn a_shortened_deadline_is_honoured(store: &dyn TaskStore) {
    let case = Case::new(store, "shortened");
    let record = after_a_change_of_ttl(&case, Some(10 * HOUR), Some(HOUR)).await;
    for (now, there) in [(HOUR, true), (HOUR + 1, false)] {
        assert_eq!(
            case.is_there(&record.task_id, at(now)).await,
            there,
            "{now} ms after creation"
        );
    }
}

/// Or for ever, and then to an end again.
pub async fn a_lifted_deadline_is_honoured_and_can_be_set_again(store: &dyn TaskStore) {
    let case = Case::new(store, "lifted");
    let record = after_a_change_of_ttl(&case, Some(HOUR), None).await;
    assert!(case.is_there(&record.task_id, at(1_000 * HOUR)).await);
    let change = changing(|record| record.ttl_ms = Some(2 * HOUR));
    let updated = case.update(&record.task_id, at(HOUR), 3, change).await;
    assert!(updated.is_some());
    for (now, there) in [(2 * HOUR, true), (2 * HOUR + 1, false)] {
        assert_eq!(
            case.is_there(&record.task_id, at(now)).await,
            there,
            "{now} ms after creation"
        );
    }
}

/// The shortest life is an instant, and no backend's smallest unit gets in its way.
pub async fn a_record_without_time_to_live_lives_for_its_instant(store: &dyn TaskStore) {
    let case = Case::new(store, "instant");
    for (number, ttl) in [(0, 0), (1, 1)] {
        let id = case.id(number).await;
        // Not read back at its instant: a backend may have collected it by its own clock already.
        let created = store.create(record(&id, Some(ttl))).await;
        assert!(created.is_ok(), "a time to live of {ttl} ms is one");
        assert!(!case.is_there(&id, at(ttl + 1)).await);
    }
}

/// A sweep removes what has expired, all of it and nothing else, and says how much. Stores without the ability pass.
pub async fn sweep_removes_exactly_what_has_expired(store: &dyn TaskStore) {
    let Some(sweep) = store.as_sweep() else {
        return;
    };
    let case = Case::new(store, "sweep");
    // Long before everything that the other cases store.
    let at = |millis: u64| Timestamp::from_millis(31_536_000_000 + millis);
    let mut ids = Vec::new();
    for number in 0..20 {
        let id = case.id(number).await;
        let ttl = match number {
            0..5 => Some(HOUR),
            5..10 => Some(HOUR + 1),
            10..15 => Some(2 * HOUR),
            _ => None,
        };
        case.create(record_at(&id, at(0), ttl)).await;
        ids.push(id);
    }
    // Of five with one deadline, one is moved out, one is lifted, one is deleted.
    case.update(&ids[0], at(1), 2, changing(|record| record.ttl_ms = Some(2 * HOUR)))
        .await;
    case.update(&ids[1], at(1), 2, changing(|record| record.ttl_ms = None))
        .await;
    store.delete(&ids[2]).await.expect("delete removes");

    let swept = async |now| sweep.sweep(now).await.expect("sweep answers");
    assert_eq!(swept(at(HOUR)).await, 0, "at the deadline nothing has expired");
    assert_eq!(swept(at(HOUR + 1)).await, 2);
    assert_eq!(swept(at(HOUR + 1)).await, 0, "what is removed is not counted again");
    assert_eq!(swept(at(HOUR + 2)).await, 5);
    for (number, id) in ids.iter().enumerate() {
        let stays = matches!(number, 0 | 1 | 10..);
        // By a clock from before the sweep: what is gone was removed, not only out of date.
        assert_eq!(case.is_there(id, at(0)).await, stays, "record {number}");
    }
    assert_eq!(swept(at(2 * HOUR + 1)).await, 6, "one was moved here");
    assert!(case.is_there(&ids[1], Timestamp::MAX).await, "what has no end stays");
    for id in &ids {
        store.delete(id).await.expect("delete removes");
    }
}
