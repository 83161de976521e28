//! Values that cannot be read, and values that other programs wrote.

use mcp_tasks_core::{TaskId, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, every_use_is_refused, increment, json, record};

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_read_is_left_alone_and_keeps_nothing_from_being_swept() {
    let Some(fresh) = Fresh::new() else { return };
    for n in 0..300 {
        fresh.create(record(&format!("t{n:03}"), Some(n))).await.unwrap();
    }
    let bucket = fresh.bucket().await;
    let newer = bucket.get("t005").await.unwrap().unwrap();
    let newer = String::from_utf8(newer.to_vec()).unwrap();
    let newer = newer.replace(r#""format":1"#, r#""format":99,"surprise":{}"#);
    let planted = [("t000", "{"), ("t005", &newer), ("t100", ""), ("t150", "\0null")];
    for (id, text) in planted {
        bucket.put(id, text.to_owned().into()).await.unwrap();
    }
    // 200 creates beside the sweep are not slowed by it.
    let creating = async {
        let mut slowest = std::time::Duration::ZERO;
        for n in 0..200 {
            let start = std::time::Instant::now();
            fresh.create(record(&format!("new{n}"), None)).await.unwrap();
            slowest = slowest.max(start.elapsed());
        }
        slowest
    };
    let sweep = fresh.as_sweep().unwrap();
    let (swept, slowest) = tokio::join!(sweep.sweep(at(200)), creating);
    assert_eq!(swept.unwrap(), 200 - 4);
    assert!(slowest < std::time::Duration::from_secs(2), "a create took {slowest:?}");
    assert_eq!(sweep.sweep(at(200)).await.unwrap(), 0);
    assert_eq!(sweep.sweep(at(1_000)).await.unwrap(), 100);
    for (id, text) in planted {
        every_use_is_refused(&fresh, id, at(1_000)).await;
        assert_eq!(bucket.get(id).await.unwrap().unwrap(), text, "it is left as it was");
        fresh.delete(&TaskId::new(id)).await.unwrap();
        fresh.create(record(id, None)).await.unwrap();
    }
}

#[tokio::test]
async fn a_record_that_another_program_put_back_is_found_swept_and_changed() {
    let Some(fresh) = Fresh::new() else { return };
    let mut task = record("t", Some(100));
    task.execution.lease_until = Some(at(50));
    fresh.create(task).await.unwrap();
    let bucket = fresh.bucket().await;
    let text = bucket.get("t").await.unwrap().unwrap();
    bucket.purge("t").await.unwrap();
    assert!(
        fresh.get(&TaskId::new("t"), at(1)).await.unwrap().is_none(),
        "a mark of deletion is no record"
    );
    // Without the headers that the store writes.
    bucket.put("t", text).await.unwrap();
    let store = fresh.another();
    let leases = store.as_expired_leases().unwrap();
    let sweep = store.as_sweep().unwrap();
    assert_eq!(sweep.sweep(at(100)).await.unwrap(), 0);
    assert_eq!(
        leases.expired_leases(at(60), 10).await.unwrap().len(),
        1,
        "the sweep learned of the lease"
    );
    assert!(leases.expired_leases(at(50), 10).await.unwrap().is_empty());
    assert_eq!(sweep.sweep(at(101)).await.unwrap(), 1);
    assert_eq!(sweep.sweep(at(101)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_record_written_behind_the_stores_back_is_seen() {
    let Some(fresh) = Fresh::new() else { return };
    fresh.create(record("t", None)).await.unwrap();
    let other = fresh.another();
    let id = TaskId::new("t");
    let updated = other
        .update(&id, at(1), WriteId::new(2), increment())
        .await
        .unwrap()
        .unwrap();
    let again = fresh
        .update(&id, at(1), WriteId::new(3), increment())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            updated.record.version,
            again.record.version,
            again.record.poll_interval_ms
        ),
        (2, 3, 2_002)
    );
}

#[tokio::test]
async fn nul_and_large_numbers_are_kept_byte_for_byte() {
    let Some(fresh) = Fresh::new() else { return };
    let text = r#"{"a":"a\u0000b","n":18446744073709551615,"z":{},"e":1e400,"é":"\ud83d\ude00"}"#;
    let mut task = record("a\0b", None);
    task.arguments = json(text);
    task.result = Some(json(text));
    task.status_message = Some("a\0b".into());
    fresh.create(task).await.unwrap();
    let found = fresh.another().get(&TaskId::new("a\0b"), at(1)).await.unwrap().unwrap();
    assert_eq!(
        (found.arguments.get(), found.result.as_ref().unwrap().get()),
        (text, text)
    );
    assert_eq!(found.status_message.as_deref(), Some("a\0b"));
}
