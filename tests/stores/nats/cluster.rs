//! Three servers: the bucket is on all of them.

use std::time::Duration;

use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::{TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers::{DbServer, free_port, nats};

use super::until;
use crate::records::{at, increment, record};

fn cluster() -> Option<Vec<DbServer>> {
    let ports = [free_port(), free_port(), free_port()];
    let routes = ports.map(|port| format!("nats://127.0.0.1:{port}")).join(",");
    let start = |(n, port): (usize, u16)| {
        let (address, name) = (format!("nats://127.0.0.1:{port}"), format!("server-{n}"));
        let options = [
            "--cluster_name",
            "tasks",
            "--cluster",
            &address,
            "--routes",
            &routes,
            "--server_name",
            &name,
        ];
        nats(&options)
    };
    ports.into_iter().enumerate().map(start).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_three_replicas_survives_the_loss_of_any_server() {
    let Some(mut servers) = cluster() else { return };
    let hosts: Vec<_> = servers
        .iter()
        .map(|server| server.url().trim_start_matches("nats://").to_owned())
        .collect();
    let url = format!("nats://{}?replicas=3", hosts.join(","));
    let open = |url: &str| -> NatsStore {
        NatsOptions::new(url)
            .unwrap()
            .timeout(Duration::from_secs(5))
            .open()
            .unwrap()
    };
    let store = open(&url);
    let id = TaskId::new("t");
    // The servers choose a leader first.
    until(async || store.create(record("t", None)).await.ok()).await;
    until(async || store.create(record("short", Some(1))).await.ok()).await;
    for (round, lost) in (0_u64..).zip(0..3) {
        servers[lost].kill();
        let write = WriteId::new(u128::from(round) + 10);
        let updated = until(async || store.update(&id, at(1), write, increment()).await.ok()).await;
        assert_eq!(updated.unwrap().record.version, round + 2);
        // What one has written another reads at once, whichever server it asks.
        for host in hosts
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != lost)
            .map(|(_, host)| host)
        {
            let reader = open(&format!("nats://{host}"));
            let found = until(async || reader.get(&id, at(1)).await.ok()).await;
            assert_eq!(found.unwrap().version, round + 2);
        }
        servers[lost].start();
    }
    assert_eq!(
        until(async || store.as_sweep().unwrap().sweep(at(2)).await.ok()).await,
        1
    );
    until(async || store.delete(&id).await.ok()).await;
    until(async || store.create(record("t", None)).await.ok()).await;
}
