//! Hearing of changes. Stores without a feed pass.
//!
//! These cases wait for what a feed owes them, and nothing here has a clock: before a feed that says nothing they wait for
//! ever. Where that may happen, give the test a time-out.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;

use super::records::{HOUR, at, raw, record};
use super::{Case, changing};
use crate::{
    ChangeStream, ClientCapabilities, Fingerprint, InputKind, InputRequest, Mutation, TaskChange, TaskId, TaskStatus,
    TaskStore,
};

/// What the stream says next.
pub(super) async fn next(changes: &mut ChangeStream) -> TaskChange {
    let change = poll_fn(|context| changes.as_mut().poll_next(context)).await;
    change.expect("a stream of changes lasts as long as the store")
}

/// Waits until the stream has reported each of these tasks, in this version at least where it names one, or told its reader
/// to look at everything.
async fn reported(changes: &mut ChangeStream, wanted: &[(&TaskId, u64)]) {
    let mut left: Vec<_> = wanted.to_vec();
    while !left.is_empty() {
        match next(changes).await {
            TaskChange::Resumed => return,
            TaskChange::Changed { id, version } | TaskChange::Unclaimed { id, version } => {
                left.retain(|(of, least)| **of != id || version.is_some_and(|version| version < *least));
            }
        }
    }
}

/// Whoever begins to listen is told to look at everything first, whatever was written before.
pub async fn a_feed_begins_by_telling_its_reader_to_look(store: &dyn TaskStore) {
    let Some(feed) = store.as_change_feed() else { return };
    let case = Case::new(store, "feed-begins");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    for _ in 0..2 {
        let mut changes = feed.changes();
        assert_eq!(next(&mut changes).await, TaskChange::Resumed);
    }
    store.delete(&id).await.expect("delete removes");
}

/// Creations, updates and deletions are reported, to every listener, and a listener that is gone is in nobody's way.
pub async fn a_feed_reports_every_kind_of_change_to_every_listener(store: &dyn TaskStore) {
    let Some(feed) = store.as_change_feed() else { return };
    let case = Case::new(store, "feed-kinds");
    let (created, updated, deleted) = (case.id(0).await, case.id(1).await, case.id(2).await);
    case.create(record(&updated, Some(HOUR))).await;
    case.create(record(&deleted, Some(HOUR))).await;
    let mut listeners = [feed.changes(), feed.changes(), feed.changes()];
    for changes in &mut listeners {
        assert_eq!(next(changes).await, TaskChange::Resumed);
    }
    let [mut first, mut second, gone] = listeners;
    drop(gone);

    case.create(record(&created, Some(HOUR))).await;
    let write = changing(|record| record.poll_interval_ms = 7);
    case.update(&updated, at(1), 2, write).await.expect("it is there");
    store.delete(&deleted).await.expect("delete removes");
    for changes in [&mut first, &mut second] {
        reported(changes, &[(&created, 1), (&updated, 2), (&deleted, 1)]).await;
    }
    // And so it goes on.
    let write = changing(|record| record.poll_interval_ms = 8);
    case.update(&updated, at(2), 3, write).await.expect("it is there");
    store.delete(&created).await.expect("delete removes");
    for changes in [&mut first, &mut second] {
        reported(changes, &[(&updated, 3), (&created, 1)]).await;
    }
    store.delete(&updated).await.expect("delete removes");
}

/// A change that is kept is none: the feed says of every version it names what `get` shows already.
pub async fn a_feed_reports_what_can_be_seen(store: &dyn TaskStore) {
    let Some(feed) = store.as_change_feed() else { return };
    let case = Case::new(store, "feed-seen");
    let id = case.id(0).await;
    case.create(record(&id, Some(HOUR))).await;
    let mut changes = feed.changes();
    assert_eq!(next(&mut changes).await, TaskChange::Resumed);
    for version in 2..=20 {
        let write = changing(move |record| record.poll_interval_ms = version);
        case.update(&id, at(1), version.into(), write)
            .await
            .expect("it is there");
        loop {
            match next(&mut changes).await {
                TaskChange::Changed {
                    id: of,
                    version: Some(told),
                } if of == id => {
                    let found = case.get(&id, at(1)).await.expect("it is there");
                    assert!(found.version >= told, "reported before it can be seen");
                    assert!(told <= version, "a version that nobody wrote");
                    if told == version {
                        break;
                    }
                }
                TaskChange::Changed { id: of, version: None } if of == id => break,
                TaskChange::Resumed => break,
                TaskChange::Changed { .. } | TaskChange::Unclaimed { .. } => {}
            }
        }
    }
    store.delete(&id).await.expect("delete removes");
}

/// A task that is left to whichever node takes it on is reported, as such or as any other change; one that is not, never as
/// such.
pub async fn a_feed_tells_of_tasks_that_nobody_has_taken_on(store: &dyn TaskStore) {
    let Some(feed) = store.as_change_feed() else { return };
    let case = Case::new(store, "feed-unclaimed");
    let (created, handed_over, other) = (case.id(0).await, case.id(1).await, case.id(2).await);
    let mut parked = record(&handed_over, Some(HOUR));
    parked.status = TaskStatus::InputRequired;
    parked.open = vec![question()];
    case.create(parked).await;
    let mut changes = feed.changes();
    assert_eq!(next(&mut changes).await, TaskChange::Resumed);
    case.create(record(&created, Some(HOUR)).unclaimed()).await;
    let answer: Mutation = Arc::new(|record| {
        let answers = BTreeMap::from([("q".to_owned(), raw(r#"{"action":"decline"}"#))]);
        record.answered_unclaimed(at(1), &answers, &ClientCapabilities::new(raw("{}")))
    });
    case.update(&handed_over, at(1), 2, answer).await.expect("it is there");
    case.create(record(&other, Some(HOUR))).await;
    let mut left = vec![&created, &handed_over, &other];
    while !left.is_empty() {
        match next(&mut changes).await {
            TaskChange::Unclaimed { id, .. } => {
                assert_ne!(id, other, "it is claimed");
                left.retain(|of| **of != id);
            }
            TaskChange::Changed { id, .. } => left.retain(|of| **of != id),
            TaskChange::Resumed => break,
        }
    }
    for id in [&created, &handed_over, &other] {
        store.delete(id).await.expect("delete removes");
    }
}

fn question() -> InputRequest {
    let request = raw(r#"{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{}}}"#);
    InputRequest::new(
        0,
        "q".into(),
        InputKind::Form,
        Fingerprint::of("elicit", "q", None),
        request,
    )
}
