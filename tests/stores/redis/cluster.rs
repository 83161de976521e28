//! A cluster of two nodes, each with half of the slots.

use mcp_tasks::store::{RedisOptions, RedisStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers::{self, DbServer};

use super::{Kept, feed, spawn};
use crate::records::{at, increment, record};

/// Two nodes that know each other and serve all slots.
fn nodes() -> Option<[DbServer; 2]> {
    let nodes = [(); 2].map(|()| {
        // The nodes' own port is by default 10,000 above, which not every free port leaves room for.
        let bus = servers::free_port().to_string();
        servers::redis(&[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--appendfsync",
            "no",
        ])
        .map(|node| (node, bus))
    });
    let [Some((first, _)), Some((second, bus))] = nodes else {
        return None;
    };
    let nodes = [first, second];
    let mut raws = [0, 1].map(|n: usize| super::raw(nodes[n].url()));
    let cluster = |raw: &mut redis::Connection, arguments: &[&str]| {
        let () = redis::cmd("CLUSTER")
            .arg(arguments)
            .query(raw)
            .expect("the cluster is made");
    };
    cluster(&mut raws[0], &["ADDSLOTSRANGE", "0", "8191"]);
    cluster(&mut raws[1], &["ADDSLOTSRANGE", "8192", "16383"]);
    cluster(&mut raws[1], &["SET-CONFIG-EPOCH", "2"]);
    cluster(&mut raws[0], &["MEET", "127.0.0.1", &nodes[1].port().to_string(), &bus]);
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for raw in &mut raws {
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(raw).expect("it answers");
            if info.contains("cluster_state:ok") && info.contains("cluster_size:2") {
                break;
            }
            assert!(std::time::Instant::now() < patience, "the nodes do not meet: {info}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    Some(nodes)
}

fn url(nodes: &[DbServer; 2]) -> String {
    format!(
        "redis-cluster://127.0.0.1:{},127.0.0.1:{}",
        nodes[0].port(),
        nodes[1].port()
    )
}

fn clustered() -> Option<Kept<RedisStore, [DbServer; 2]>> {
    let nodes = nodes()?;
    Some(Kept {
        store: RedisStore::open(&url(&nodes)).expect("the URL is right"),
        keeps: nodes,
    })
}

/// Waits for the change. What other nodes were told before the stream began may still be on its way.
async fn hears(changes: &mut mcp_tasks_core::store::ChangeStream, expected: &mcp_tasks_core::TaskChange) {
    while feed::next(changes).await != *expected {}
}

#[tokio::test]
async fn tasks_spread_over_the_nodes_and_everything_works() {
    let Some(fresh) = clustered() else { return };
    for n in 0..200_u64 {
        let mut task = record(&format!("t{n}"), Some(600_000));
        task.execution.lease_until = Some(at(n));
        fresh.create(task).await.unwrap();
    }
    for node in &fresh.keeps {
        let keys: u32 = redis::cmd("DBSIZE").query(&mut super::raw(node.url())).unwrap();
        assert!(keys > 60, "{keys} of 200 tasks and 64 indexes lie on a node");
    }
    let leases = fresh.as_expired_leases().unwrap();
    assert_eq!(leases.expired_leases(at(150), 1_000).await.unwrap().len(), 150);

    let other = RedisStore::open(&url(&fresh.keeps)).unwrap();
    let mut changes = other.as_change_feed().unwrap().changes();
    feed::subscribed(&mut changes).await;
    for n in 0..50 {
        let id = TaskId::new(&format!("t{n}"));
        let updated = fresh
            .update(&id, at(1), WriteId::new(2), increment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(updated.record.version, 2);
        assert_eq!(other.get(&id, at(1)).await.unwrap().unwrap().version, 2);
        // Whichever node has the task, the one that is listened to passes it on.
        hears(&mut changes, &feed::changed(id.as_str(), Some(2))).await;
        other.delete(&id).await.unwrap();
        hears(&mut changes, &feed::changed(id.as_str(), None)).await;
        assert!(
            fresh
                .update(&id, at(1), WriteId::new(3), increment())
                .await
                .unwrap()
                .is_none()
        );
    }
}

#[tokio::test]
async fn a_node_that_restarts_is_found_again() {
    let Some(mut fresh) = clustered() else { return };
    for n in 0..20 {
        fresh.create(record(&format!("t{n}"), None)).await.unwrap();
    }
    fresh.keeps[1].kill();
    fresh.keeps[1].start();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for n in 0..20 {
        loop {
            match fresh.get(&TaskId::new(&format!("t{n}")), at(1)).await {
                Ok(found) => break assert!(found.is_some()),
                // A node that restarted serves its slots when it has met the others again.
                Err(error) => assert!(error.is_retryable() && std::time::Instant::now() < patience, "{error}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_cluster_that_is_taken_for_a_single_server_is_refused_with_advice() {
    let Some(fresh) = clustered() else { return };
    let single = RedisOptions::new(fresh.keeps[0].url()).unwrap().open().unwrap();
    let mut refused = 0;
    for n in 0..20 {
        if let Err(error) = single.create(record(&format!("t{n}"), None)).await {
            assert!(matches!(error, StoreError::Refused { .. }), "{error}");
            assert!(error.to_string().contains("redis-cluster://"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 0, "half of the slots are elsewhere");
}

/// The rules that a script on several keys could break.
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds_in_parallel() {
    use mcp_tasks_core::store::contract::parallel;
    let Some(fresh) = clustered() else { return };
    let store: std::sync::Arc<dyn TaskStore> = std::sync::Arc::new(fresh);
    parallel::concurrent_updates_are_all_applied(store.clone(), spawn).await;
    parallel::of_concurrent_ends_the_first_is_final(store.clone(), spawn).await;
    parallel::of_concurrent_creates_one_wins(store.clone(), spawn).await;
    parallel::concurrent_repeats_of_one_write_apply_once(store, spawn).await;
}
