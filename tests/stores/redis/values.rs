//! What lies under a key: records of other releases, damage, and content of every kind.

use mcp_tasks_core::{RecordError, Report, StoreError, TaskId, TaskStatus, TaskStore, WriteId};
use redis::Commands;
use std::sync::Arc;

use super::{fresh, key_of};
use crate::records::{at, increment, json, record};

#[tokio::test]
async fn a_value_that_cannot_be_read_is_left_alone_and_hinders_nothing() {
    let Some(fresh) = fresh() else { return };
    let mut raw = fresh.raw();
    let names = ["cut", "newer", "empty", "no-version", "list"];
    let mut keys = Vec::new();
    for name in names {
        fresh.create(record(name, Some(1_000))).await.unwrap();
        keys.push(key_of(&mut raw, name));
    }
    let written: Vec<u8> = raw.get(&keys[0]).unwrap();
    // Another's write, under a version of its own.
    let text = format!("{:016x}{}", 1, std::str::from_utf8(&written[16..]).unwrap());
    let newer = text.replace(r#""format":1"#, r#""format":99,"surprise":{}"#);
    let () = raw.set(&keys[0], &text[..40]).unwrap();
    let () = raw.set(&keys[1], &newer).unwrap();
    let () = raw.set(&keys[2], "").unwrap();
    let () = raw.set(&keys[3], &text[16..]).unwrap();
    let () = raw.del(&keys[4]).unwrap();
    let () = raw.rpush(&keys[4], "x").unwrap();
    let dumps = |raw: &mut redis::Connection| -> Vec<Vec<u8>> {
        keys.iter()
            .map(|key| redis::cmd("DUMP").arg(key).query(raw).unwrap())
            .collect()
    };
    let before = dumps(&mut raw);
    // Another node, which remembers nothing.
    let other = fresh.other();
    for name in names {
        let task = TaskId::new(name);
        for store in [&fresh.store, &other] {
            let outcomes = [
                store.get(&task, at(1)).await.map(drop),
                store.update(&task, at(1), WriteId::new(2), increment()).await.map(drop),
                store.create(record(name, None)).await.map(drop),
            ];
            for outcome in outcomes {
                let error = outcome.unwrap_err();
                let StoreError::Unreadable { id, source } = error else {
                    panic!("{name}: {error}");
                };
                assert_eq!(id, task);
                assert_eq!(
                    matches!(source, RecordError::NewerFormat { found: 99, .. }),
                    name == "newer"
                );
            }
        }
    }
    assert_eq!(dumps(&mut raw), before, "they are left as they were");
    for name in names {
        fresh.delete(&TaskId::new(name)).await.unwrap();
        fresh.create(record(name, None)).await.unwrap();
    }
}

#[tokio::test]
async fn nul_bytes_are_kept_wherever_they_are() {
    let Some(fresh) = fresh() else { return };
    let nul = r#"{"a\u0000b":"\u0000c\u0000"}"#;
    let mut task = record("nul\0id", None);
    task.arguments = json(nul);
    task.status_message = Some("a\0b".into());
    fresh.create(task).await.unwrap();
    let id = TaskId::new("nul\0id");
    let end: mcp_tasks_core::Mutation = Arc::new(|task| {
        task.completed(
            1,
            at(1),
            &json(r#"{"content":[{"type":"text","text":"\u0000"}]}"#),
            None,
        )
    });
    fresh.update(&id, at(1), WriteId::new(2), end).await.unwrap().unwrap();
    let found = fresh.other().get(&id, at(1)).await.unwrap().unwrap();
    assert_eq!(found.arguments.get(), nul);
    assert_eq!(found.status_message.as_deref(), Some("a\0b"));
    assert!(found.result.as_ref().unwrap().get().contains(r#""\u0000""#));
    assert!(fresh.get(&TaskId::new("nul"), at(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn the_first_end_is_final() {
    let Some(fresh) = fresh() else { return };
    let other = fresh.other();
    let cancel: mcp_tasks_core::Mutation = Arc::new(|task| task.cancelled(at(2)));
    let complete: mcp_tasks_core::Mutation =
        Arc::new(|task| task.completed(1, at(2), &json(r#"{"content":[]}"#), None));
    let late: mcp_tasks_core::Mutation = Arc::new(|task| task.progressed(1, at(9), &Report::new(9.0, "late".into())));
    let mut ends = [0, 0];
    for n in 0..1_000_u128 {
        let id = TaskId::new(&format!("race{n}"));
        fresh.create(record(id.as_str(), Some(600_000))).await.unwrap();
        let (cancelled, completed) = tokio::join!(
            other.update(&id, at(2), WriteId::new(n * 8 + 10), cancel.clone()),
            fresh.update(&id, at(2), WriteId::new(n * 8 + 11), complete.clone()),
        );
        let applied = [cancelled, completed].map(|outcome| usize::from(outcome.unwrap().unwrap().applied));
        assert_eq!(applied.iter().sum::<usize>(), 1, "one of them ends the task");
        let first = fresh.get(&id, at(3)).await.unwrap().unwrap();
        assert_eq!(first.status == TaskStatus::Cancelled, applied[0] == 1);
        for (m, change) in [&late, &cancel, &complete].into_iter().enumerate() {
            let write = WriteId::new(n * 8 + 12 + u128::try_from(m).unwrap());
            let kept = other.update(&id, at(9), write, change.clone()).await.unwrap().unwrap();
            assert!(!kept.applied);
        }
        assert_eq!(*fresh.get(&id, at(9)).await.unwrap().unwrap(), *first);
        ends[applied[1]] += 1;
    }
    assert!(ends[0] + ends[1] == 1_000);
}

#[tokio::test]
async fn two_stores_on_one_server_share_tasks_and_prefixes_keep_them_apart() {
    let Some(fresh) = fresh() else { return };
    let (other, apart) = (
        fresh.other(),
        mcp_tasks::store::RedisOptions::new(fresh.keeps.url())
            .unwrap()
            .key_prefix("apart:")
            .open()
            .unwrap(),
    );
    let id = TaskId::new("t");
    fresh.create(record("t", None)).await.unwrap();
    for n in 0..20_u128 {
        let store = if n % 2 == 0 { &other } else { &fresh.store };
        let updated = store
            .update(&id, at(1), WriteId::new(n + 2), increment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(u128::from(updated.record.version), n + 2);
    }
    assert!(apart.get(&id, at(1)).await.unwrap().is_none());
    apart.create(record("t", None)).await.unwrap();
    other.delete(&id).await.unwrap();
    assert!(fresh.get(&id, at(1)).await.unwrap().is_none());
    assert!(
        fresh
            .update(&id, at(1), WriteId::new(99), increment())
            .await
            .unwrap()
            .is_none()
    );
    assert!(apart.get(&id, at(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn tasks_lie_where_the_documentation_says() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("nXdjZGxvFqYpZQOb3oNKCQ", None)).await.unwrap();
    let stored: String = fresh.raw().get("mcp-tasks:{16}:nXdjZGxvFqYpZQOb3oNKCQ").unwrap();
    assert!(stored[..16].bytes().all(|digit| digit.is_ascii_hexdigit()), "{stored}");
    assert!(stored[16..].starts_with(r#"{"format":1,"#), "{stored}");
}
