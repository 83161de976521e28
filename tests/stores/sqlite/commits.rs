//! What becomes one commit, which is what flushing is paid for. The write-ahead log has them all.

use std::sync::Arc;

use futures::future::join_all;
use mcp_tasks_core::{Mutation, TaskId, TaskStatus, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, increment, json, record};

/// How many commits the log holds: each ends with a frame that says how large the database is after it. Frames left over from
/// before the log was begun anew have another salt.
fn commits(fresh: &Fresh) -> usize {
    let mut path = fresh.path().into_os_string();
    path.push("-wal");
    let log = std::fs::read(path).unwrap();
    let (header, frames) = log.split_at_checked(32).unwrap_or_default();
    let Some(page) = header.get(8..12) else { return 0 };
    let page = u32::from_be_bytes(page.try_into().unwrap()) as usize;
    frames
        .chunks_exact(24 + page)
        .filter(|frame| frame[8..16] == header[16..24] && frame[4..8] != [0; 4])
        .count()
}

#[tokio::test]
async fn a_life_from_create_to_complete_to_get_is_two_commits_and_a_read() {
    let fresh = Fresh::new();
    for id in ["first", "second"] {
        let before = commits(&fresh);
        let task = TaskId::new(id);
        fresh.create(record(id, Some(60_000))).await.unwrap();
        assert_eq!(commits(&fresh) - before, 1, "create");
        let end: Mutation = Arc::new(|task| task.completed(1, at(1), &json(r#"{"content":[]}"#), None));
        fresh.update(&task, at(1), WriteId::new(2), end).await.unwrap().unwrap();
        assert_eq!(commits(&fresh) - before, 2, "complete");
        let found = fresh.get(&task, at(1)).await.unwrap().unwrap();
        assert_eq!(found.status, TaskStatus::Completed);
        assert_eq!(commits(&fresh) - before, 2, "get");
    }
}

#[tokio::test]
async fn what_waits_together_is_committed_together() {
    let fresh = Fresh::new();
    let ids: Vec<_> = (0..64).map(|n| TaskId::new(&format!("t{n}"))).collect();
    for id in &ids {
        fresh.create(record(id.as_str(), None)).await.unwrap();
    }
    let before = commits(&fresh);
    let other = fresh.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = |id| fresh.update(id, at(1), WriteId::new(2), increment());
    let mut writes = join_all(ids.iter().map(write));
    // Once each was polled all of them stand in line.
    assert!(futures::poll!(&mut writes).is_pending());
    other.execute_batch("ROLLBACK").unwrap();
    for written in writes.await {
        assert!(written.unwrap().unwrap().applied);
    }
    let commits = commits(&fresh) - before;
    // Those that the thread found when it looked, and those that came while it waited for its turn.
    assert!((1..=2).contains(&commits), "{commits}");
}
