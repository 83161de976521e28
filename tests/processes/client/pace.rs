//! How often servers are asked (Tasks, "Task Polling"), whatever they say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::TaskId;
use mcp_tasks::client::{ClientError, Pacing, TaskClient, TaskEvent};
use mcp_tasks::host::Clock;
use serde_json::{Value, json};

use crate::client::harness::{Reply, Script, Served, created, done, task, working};

async fn waited(script: Script) -> (Served, Result<String, ClientError>) {
    let served = script.in_memory(TaskClient::builder()).await;
    let outcome = served.client.call_and_wait("tool", json!({})).await;
    (served, outcome.map(|result| result.text()))
}

fn every(interval: Value, looks: usize) -> Script {
    let show = task("working", json!({"pollIntervalMs": interval}));
    Script::of_task(std::iter::repeat_n(show, looks).chain([done()]))
}

/// One look soon after creation, and then as often as the server wants.
#[tokio::test(start_paused = true)]
async fn work_that_is_done_at_once_is_seen_at_once() {
    let (served, outcome) = waited(Script::of_task([done()])).await;
    assert_eq!(outcome.unwrap(), "done");
    let call = &served.asked("tools/call")[0];
    let look = &served.asked("tasks/get")[0];
    assert!(look.at - call.at <= Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn the_servers_interval_is_honoured_within_bounds() {
    for (interval, expected) in [
        (json!(5000), 5000),
        (json!(250.0), 250),
        (json!(0), 100),
        (json!(-1), 1000),
        (json!(0.5), 100),
        (json!(1e18), 300_000),
        (json!(1e300), 1000),
        (json!("fast"), 1000),
        (json!(null), 1000),
    ] {
        let (served, outcome) = waited(every(interval.clone(), 4)).await;
        outcome.unwrap();
        let gaps = served.gaps("tasks/get");
        assert!(
            gaps.iter().all(|gap| gap.abs_diff(expected) <= 2),
            "{interval}: {gaps:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_that_changes_is_followed() {
    let show = |interval: u64| task("working", json!({"pollIntervalMs": interval}));
    let (served, outcome) = waited(Script::of_task([show(200), show(4000), show(700), done()])).await;
    outcome.unwrap();
    let gaps = served.gaps("tasks/get");
    let expected = [200_u64, 4000, 700];
    assert!(
        gaps.iter()
            .zip(expected)
            .all(|(gap, expected)| gap.abs_diff(expected) <= 2),
        "{gaps:?}"
    );
}

/// A server that moves `lastUpdatedAt`, leaves `statusMessage` out, stamps nanoseconds and says no ttl is waited for like
/// any other, and its observer hears of nothing new.
#[tokio::test(start_paused = true)]
async fn what_moves_without_a_change_is_no_news() {
    let shows = (0..5).map(|n| {
        let mut show = task(
            "working",
            json!({"lastUpdatedAt": format!("2026-07-28T00:00:0{n}.123456789Z")}),
        );
        show.as_object_mut().unwrap().remove("ttlMs");
        show
    });
    let served = Script::of_task(shows.chain([done()]))
        .in_memory(TaskClient::builder())
        .await;
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let client = served.client.observed_by(move |event| {
        if let TaskEvent::Status(_) = event {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    client.call_and_wait("tool", json!({})).await.unwrap();
    // As it was created, as it was first seen, and as it ended.
    assert_eq!(heard.load(Ordering::SeqCst), 3);
}

/// A task that is handed out completed has its result at `tasks/get`.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_done_when_it_is_handed_out_is_asked_for() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => {
            let mut task = created();
            task["status"] = json!("completed");
            Reply::Result(task)
        }
        "tasks/get" => Reply::Result(done()),
        _ => Reply::Error(-32601, "no"),
    });
    assert_eq!(waited(script).await.1.unwrap(), "done");
}

/// Answers that the protocol does not have end the wait.
#[tokio::test(start_paused = true)]
async fn what_is_no_task_ends_the_wait() {
    for (show, words) in [
        (task("completed", json!({})), "without a result"),
        (task("completed", json!({"result": {}})), "without content"),
        (task("working", json!({"taskId": "another"})), "another task"),
        (task("working", json!({"taskId": 1})), "taskId"),
        (task("dreaming", json!({})), "dreaming"),
        (task("working", json!({"resultType": "task"})), "resultType"),
        (task("working", json!({"resultType": "input_required"})), "resultType"),
        (task("input_required", json!({"inputRequests": "x"})), "inputRequests"),
        (json!([]), "no object"),
        (json!(null), "no object"),
    ] {
        let (served, outcome) = waited(Script::of_task([show.clone()])).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{show}: {error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.task().unwrap().id().as_str(), "t1");
        assert_eq!(served.asked("tasks/get").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_by_a_result_or_a_task_and_by_nothing_else() {
    let mut unnamed = created();
    unnamed.as_object_mut().unwrap().remove("resultType");
    for answer in [
        unnamed,
        json!({}),
        json!({"resultType": "complete"}),
        json!({"resultType": "x", "content": []}),
    ] {
        let show = answer.clone();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" | "tools/list" => Reply::Result(show.clone()),
            _ => Reply::Error(-32601, "no"),
        });
        let error = waited(script).await.1.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{answer}: {error:?}");
    }
    // A task to another request than a call.
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/list" | "tasks/update" | "tasks/cancel" => Reply::Result(created()),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    let id = mcp_tasks::TaskId::new("t1");
    let errors = [
        served.client.tools().await.unwrap_err(),
        served.client.update(&id, serde_json::Map::new()).await.unwrap_err(),
        served.client.cancel(&id).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    }
}

/// Of an earlier draft.
#[tokio::test(start_paused = true)]
async fn an_old_servers_code_for_a_missing_capability_is_understood() {
    for code in [-32021, -32003] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Error(code, "tasks are needed"),
            _ => Reply::Error(-32601, "no"),
        });
        let error = waited(script).await.1.unwrap_err();
        assert!(matches!(error, ClientError::MissingCapability { .. }), "{error:?}");
    }
}

/// Tasks, "Capability Negotiation": every request says what the client can do.
#[tokio::test(start_paused = true)]
async fn every_request_declares_the_extension() {
    let (served, outcome) = waited(Script::of_task([working(), done()])).await;
    outcome.unwrap();
    served.client.cancel(&mcp_tasks::TaskId::new("t1")).await.unwrap();
    served
        .client
        .update(&mcp_tasks::TaskId::new("t1"), serde_json::Map::new())
        .await
        .unwrap();
    served.client.tools().await.unwrap_err();
    for method in [
        "server/discover",
        "tools/list",
        "tools/call",
        "tasks/get",
        "tasks/cancel",
        "tasks/update",
        "subscriptions/listen",
    ] {
        let asked = served.asked(method);
        assert!(!asked.is_empty(), "{method}");
        for asked in asked {
            let declared = &asked.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            let expected = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
            assert_eq!(*declared, expected, "{method}");
        }
    }
}

/// A list of tools whose cursor goes nowhere comes to an end.
#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_is_refused() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/list" => Reply::Result(
            json!({"resultType": "complete", "tools": [], "nextCursor": "same", "ttlMs": 0, "cacheScope": "private"}),
        ),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    served.client.tools().await.unwrap_err();
    assert_eq!(served.asked("tools/list").len(), 2);
}

/// A server that does not answer is given up, with the task in the error.
#[tokio::test(start_paused = true)]
async fn silence_is_waited_out_and_then_told() {
    let retries: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Silence,
        _ => Reply::Error(-32601, "no"),
    });
    let log = retries.clone();
    let pacing = Pacing::default().retry_timeout(Duration::from_secs(120));
    let builder = TaskClient::builder().pacing(pacing).observe(move |event| {
        if let TaskEvent::Retrying { after, .. } = event {
            log.lock().unwrap().push(after);
        }
    });
    let served = script.in_memory(builder).await;
    let error = served.client.call_and_wait("tool", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    assert_eq!(error.task().unwrap().id().as_str(), "t1");
    let retries = retries.lock().unwrap();
    assert!((2..=6).contains(&retries.len()), "{retries:?}");
    assert!(
        retries.iter().all(|after| *after >= Duration::from_millis(500)),
        "{retries:?}"
    );
}

/// A call that takes long is waited for as long as it reports, and no longer than it may be silent.
#[tokio::test(start_paused = true)]
async fn a_call_may_be_silent_for_a_while() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Silence,
        _ => Reply::Error(-32601, "no"),
    });
    let (served, outcome) = waited(script).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    assert_eq!(served.asked("tools/call").len(), 1);
}

/// A task that shows no end long after its time is given up.
#[tokio::test(start_paused = true)]
async fn a_task_past_its_time_is_not_waited_for() {
    let clock = mcp_tasks::testing::TokioClock::new();
    let show = task("working", json!({"ttlMs": 60_000}));
    let served = Script::of_task([show])
        .in_memory(TaskClient::builder().clock(move || clock.now()))
        .await;
    let error = served.client.call_and_wait("tool", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Expired(_)), "{error:?}");
}

/// A server that reports progress on a look, again and again, is not waited for any longer than one that is silent.
#[tokio::test(start_paused = true)]
async fn progress_gives_a_look_no_more_time() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tasks/get" | "tools/list" => {
            let token = &asked.params["_meta"]["progressToken"];
            let progress = |n: u64| {
                let params = json!({"progressToken": token, "progress": n});
                (1_000, json!({"method": "notifications/progress", "params": params}))
            };
            Reply::Tell((0..600).map(progress).collect(), None)
        }
        _ => Reply::Error(-32601, "no"),
    });
    let limit = Duration::from_secs(30);
    let served = script
        .in_memory(TaskClient::builder().pacing(Pacing::default().request_timeout(limit)))
        .await;
    let begin = tokio::time::Instant::now();
    let looked = served.client.get(&TaskId::new("t1")).await.unwrap_err();
    assert!(matches!(looked, ClientError::Transport { .. }), "{looked:?}");
    assert_eq!(begin.elapsed().as_secs(), limit.as_secs());
    served.client.tools().await.unwrap_err();
    assert_eq!(begin.elapsed().as_secs(), 2 * limit.as_secs());
}
