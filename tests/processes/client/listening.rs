//! Being told instead of asking (Tasks, "Task Status Notifications").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_tasks::client::{ClientError, TaskClient, TaskEvent, ToolCall};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::harness::{Fixture, Reply, Script, Served, User, created, done, task, within, working};

fn acknowledged(ids: Value) -> Value {
    json!({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"taskIds": ids}}})
}

fn told(task: Value) -> Value {
    json!({"method": "notifications/tasks", "params": task})
}

/// A server whose task is worked on for each poll, and that tells the rest.
fn telling(notifications: Vec<(u64, Value)>, result: Option<Value>) -> Script {
    Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(working()),
        "tasks/update" => Reply::Result(json!({"resultType": "complete"})),
        "subscriptions/listen" => Reply::Tell(notifications.clone(), result.clone()),
        _ => Reply::Error(-32601, "no"),
    })
}

async fn waited(served: &Served) -> String {
    served.client.call_and_wait("tool", json!({})).await.unwrap().text()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_tells_is_hardly_asked() {
    let script = telling(vec![(10, acknowledged(json!(["t1"]))), (20_000, told(done()))], None);
    let served = script.in_memory(TaskClient::builder()).await;
    assert_eq!(waited(&served).await, "done");
    let listened = served.asked("subscriptions/listen");
    assert_eq!(listened.len(), 1);
    assert_eq!(listened[0].params["notifications"], json!({"taskIds": ["t1"]}));
    // The first look, and the one after the subscription was there.
    assert_eq!(served.asked("tasks/get").len(), 2);
}

/// What a server tells of a task that is no task, or another, does not matter.
#[tokio::test(start_paused = true)]
async fn what_is_told_wrongly_is_passed_over() {
    let mut other = done();
    other["taskId"] = json!("t2");
    let notifications = vec![
        (10, told(task("completed", json!({})))),
        (10, acknowledged(json!(["t1"]))),
        (10, told(json!({}))),
        (10, told(other)),
        (10, told(task("completed", json!({})))),
        (10, json!({"method": "notifications/tasks"})),
        (10, told(done())),
    ];
    let served = telling(notifications, None).in_memory(TaskClient::builder()).await;
    assert_eq!(waited(&served).await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_grant_it_is_asked() {
    for ids in [json!([]), json!(["t2"]), json!(null), json!("t1")] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before < 10 => Reply::Result(working()),
            "tasks/get" => Reply::Result(done()),
            "subscriptions/listen" => Reply::Tell(vec![(10, acknowledged(ids.clone()))], None),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.in_memory(TaskClient::builder()).await;
        assert_eq!(waited(&served).await, "done");
        assert_eq!(served.asked("subscriptions/listen").len(), 1);
        let gaps = served.gaps("tasks/get");
        assert!(gaps.iter().all(|gap| (900..=1002).contains(gap)), "{gaps:?}");
    }
}

/// A subscription that ends leaves no gap: the task is looked at right then, and goes on being looked at.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_is_followed_by_a_look() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" if asked.before < 4 => Reply::Result(working()),
        "tasks/get" => Reply::Result(done()),
        "subscriptions/listen" => {
            let granted = vec![(10, acknowledged(json!(["t1"]))), (5000, told(working()))];
            Reply::Tell(granted, Some(json!({"resultType": "complete"})))
        }
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    assert_eq!(waited(&served).await, "done");
    let gaps = served.gaps("tasks/get");
    assert!(gaps.iter().all(|gap| *gap <= 5200), "{gaps:?}");
}

/// A notification can be lost. A task is not.
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_telling_is_looked_after() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" if asked.before < 3 => Reply::Result(working()),
        "tasks/get" => Reply::Result(done()),
        "subscriptions/listen" => Reply::Tell(vec![(10, acknowledged(json!(["t1"])))], None),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    assert_eq!(waited(&served).await, "done");
}

/// A server that does not know the method is not asked again, by any wait of the client.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_tells_is_asked_once_whether_it_does() {
    let script = Script::of_task([working(), working(), done()]);
    let served = script.in_memory(TaskClient::builder()).await;
    for _ in 0..2 {
        assert_eq!(waited(&served).await, "done");
    }
    assert_eq!(served.asked("subscriptions/listen").len(), 1);
}

/// Over HTTP, too; and a question comes the same way.
#[tokio::test]
async fn questions_are_told_over_http() {
    let user = User::new();
    let answered = AtomicBool::new(false);
    let ask = task(
        "input_required",
        json!({"inputRequests": {"k": {"method": "roots/list"}}}),
    );
    let script = Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" if answered.load(Ordering::SeqCst) => Reply::Result(done()),
        "tasks/get" => Reply::Result(task("working", json!({"pollIntervalMs": 3_600_000}))),
        "tasks/update" => {
            answered.store(true, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete"}))
        }
        "subscriptions/listen" => Reply::Tell(vec![(1, acknowledged(json!(["t1"]))), (200, told(ask.clone()))], None),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.over_http(TaskClient::builder().input(user.clone())).await;
    let waiting = served.client.call_and_wait("tool", json!({}));
    let result = tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(result.text(), "done");
    assert_eq!(user.asked(), ["roots"]);
}

/// Our server's tasks come to their end whether it tells of them or is asked: work, questions, and a cancel by another.
#[tokio::test]
async fn our_own_server_is_listened_to_or_asked() {
    let server = Fixture::http(&[("MCP_TASKS_DEFAULT_POLL_INTERVAL", "PT1S")]).await;
    let user = User::new();
    let builder = TaskClient::builder().input(user.clone());
    let client = builder.connect_http(server.url()).await.unwrap();
    let at_work = Arc::new(Notify::new());
    let heard = at_work.clone();
    let observed = client.observed_by(move |event| {
        if let TaskEvent::Status(task) = event
            && task.status_message.is_some()
        {
            heard.notify_one();
        }
    });
    let working = observed.call_and_wait("report_and_end", json!({"gate": "g"}));
    let opening = async {
        at_work.notified().await;
        client.call("open", json!({"gate": "g"})).await.unwrap();
    };
    let (result, ()) = within("the result", async { tokio::join!(working, opening) }).await;
    assert_eq!(result.unwrap().text(), "the end");
    let result = within("the answers", client.call_and_wait("ask_twice", json!({}))).await;
    assert_eq!(result.unwrap().text(), "yes yes");
    assert_eq!(user.asked(), ["First?", "Second?"]);
    let ToolCall::Deferred(mut task) = client.call("sleep", json!({})).await.unwrap() else {
        panic!("no task")
    };
    let id = task.id();
    let (error, ()) = within("the end", async {
        tokio::join!(task.wait(), async { client.cancel(&id).await.unwrap() })
    })
    .await;
    let error = error.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");
}
