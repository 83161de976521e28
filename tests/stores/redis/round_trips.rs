//! How often the server is asked.

use mcp_tasks_core::{TaskId, TaskStore, WriteId};

use super::{Fresh, fresh};
use crate::records::{at, increment, record};

/// How many commands the server has taken from clients; those that scripts run count on their own.
fn requests(fresh: &Fresh) -> u64 {
    let mut raw = fresh.raw();
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut raw).unwrap();
    ["evalsha", "eval", "get", "mget"]
        .iter()
        .filter_map(|command| {
            let line = info
                .lines()
                .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")))?;
            line.split(',').next()?.parse::<u64>().ok()
        })
        .sum()
}

#[tokio::test]
async fn create_get_and_update_by_the_executing_node_are_one_round_trip_each() {
    let Some(fresh) = fresh() else { return };
    let id = TaskId::new("t");
    // The first write brings the script to the server.
    fresh.create(record("first", None)).await.unwrap();
    let mut before = requests(&fresh);
    let mut took = |fresh: &Fresh| {
        let now = requests(fresh);
        let took = now - before;
        before = now;
        took
    };
    fresh.create(record("t", Some(60_000))).await.unwrap();
    assert_eq!(took(&fresh), 1, "create");
    fresh.get(&id, at(1)).await.unwrap().unwrap();
    assert_eq!(took(&fresh), 1, "get");
    for n in 0..3 {
        fresh
            .update(&id, at(1), WriteId::new(n + 2), increment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(took(&fresh), 1, "update");
    }
    fresh
        .other()
        .update(&id, at(1), WriteId::new(9), increment())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(took(&fresh), 2, "an update of another node looks first");
}
