//! Questions and answers (Tasks, "Task Update Requests"), with servers of every temper.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_tasks::client::{ClientError, TaskClient, ToolCall};
use mcp_tasks::context::InputKind;
use serde_json::{Value, json};

use crate::client::harness::{Asked, Reply, Script, Served, User, created, done, task, working};

fn question(message: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string", "x-odd": 1}}},
        },
    })
}

fn asking(requests: Value) -> Value {
    task("input_required", json!({"inputRequests": requests}))
}

/// A server that shows `requests` until it has taken as many updates as it wants, and some looks longer.
fn until_updated(requests: Value, wanted: usize, looks_longer: usize) -> Script {
    let updates = AtomicUsize::new(0);
    let looks = AtomicUsize::new(0);
    Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" if updates.load(Ordering::SeqCst) < wanted => Reply::Result(asking(requests.clone())),
        "tasks/get" if looks.fetch_add(1, Ordering::SeqCst) < looks_longer => Reply::Result(asking(requests.clone())),
        "tasks/get" => Reply::Result(done()),
        "tasks/update" => {
            updates.fetch_add(1, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete", "_meta": {"odd": true}}))
        }
        _ => Reply::Error(-32601, "no"),
    })
}

async fn waited(script: Script, user: &User) -> (Served, Result<String, ClientError>) {
    let served = script.in_memory(TaskClient::builder().input(user.clone())).await;
    let outcome = served.client.call_and_wait("tool", json!({})).await;
    (served, outcome.map(|result| result.text()))
}

fn responses(asked: &Asked) -> &Value {
    &asked.params["inputResponses"]
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_shown_a_while_after_its_answer_is_not_asked_again() {
    let user = User::new();
    let requests = json!({"ID:1f": question("Name?")});
    let (served, outcome) = waited(until_updated(requests, 1, 2), &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["Name?"]);
    let updates = served.asked("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(
        *responses(&updates[0]),
        json!({"ID:1f": {"action": "accept", "content": {"name": "word"}}})
    );
}

#[tokio::test(start_paused = true)]
async fn another_question_under_the_same_key_is_asked() {
    let user = User::new();
    let updates = AtomicUsize::new(0);
    let script = Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(match updates.load(Ordering::SeqCst) {
            0 => asking(json!({"k": question("First?")})),
            1 => asking(json!({"k": question("Second?")})),
            _ => done(),
        }),
        "tasks/update" => {
            updates.fetch_add(1, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete"}))
        }
        _ => Reply::Error(-32601, "no"),
    });
    let (_, outcome) = waited(script, &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["First?", "Second?"]);
}

/// The user has answered; that the server lost it is the server's, so the answer goes out again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_acknowledged_and_dropped_is_sent_again() {
    let user = User::new();
    let (served, outcome) = waited(until_updated(json!({"k": question("Name?")}), 3, 0), &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["Name?"]);
    let updates = served.asked("tasks/update");
    assert_eq!(updates.len(), 3);
    assert!(
        updates
            .windows(2)
            .all(|pair| responses(&pair[0]) == responses(&pair[1]))
    );
    assert!(served.gaps("tasks/update").iter().all(|gap| *gap >= 1000));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drops_every_answer_is_given_up() {
    let user = User::new();
    let (served, outcome) = waited(until_updated(json!({"k": question("Name?")}), usize::MAX, 0), &user).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::InputNeeded(_)), "{error:?}");
    assert_eq!(user.asked(), ["Name?"]);
    assert_eq!(served.asked("tasks/update").len(), 5);
}

/// A server need not take a part of the answers, so they are sent together, and asked in its order.
#[tokio::test(start_paused = true)]
async fn questions_that_are_open_together_are_answered_together() {
    let user = User::new();
    let requests = json!({"b": question("B?"), "a": question("A?"), "c": {"method": "roots/list"}});
    let (served, outcome) = waited(until_updated(requests, 1, 0), &user).await;
    outcome.unwrap();
    assert_eq!(user.asked(), ["B?", "A?", "roots"]);
    let updates = served.asked("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(responses(&updates[0]).as_object().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_handed_back_with_the_task() {
    for (request, kinds) in [
        (question("Name?"), vec![InputKind::Roots]),
        (
            json!({"method": "elicitation/create", "params": {"mode": "telepathy"}}),
            vec![InputKind::Form],
        ),
        (json!({"method": "elicitation/create"}), vec![]),
        (json!({"method": 7}), vec![InputKind::Form]),
        (json!("what?"), vec![InputKind::Form]),
        (json!(null), vec![InputKind::Form]),
    ] {
        let user = User::of(&kinds);
        let (served, outcome) = waited(Script::of_task([asking(json!({"k": request}))]), &user).await;
        let error = outcome.unwrap_err();
        let ClientError::InputNeeded(needed) = &error else {
            panic!("{request}: {error:?}")
        };
        assert_eq!(needed.requests[0].key(), "k");
        assert_eq!(*needed.requests[0].raw(), request);
        assert_eq!(error.task().unwrap().id().as_str(), "t1");
        assert!(user.asked().is_empty());
        assert_eq!(served.asked("tasks/get").len(), 1);
    }
}

/// A task that asks, and says nothing of what, is looked at again.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_nothing_yet_is_looked_at_again() {
    let user = User::new();
    let shows = [task("input_required", json!({})), asking(json!({})), done()];
    assert_eq!(waited(Script::of_task(shows), &user).await.1.unwrap(), "done");
}

/// A question is withdrawn when the task has gone on without its answer.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_open_any_more_is_withdrawn() {
    let user = User::slow();
    let shows = [asking(json!({"k": question("Name?")})), working(), done()];
    let (served, outcome) = waited(Script::of_task(shows), &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["Name?"]);
    assert!(served.asked("tasks/update").is_empty());
}

/// An answer that could not be sent is sent again, and the user is not asked for it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_heard_is_sent_again() {
    let user = User::new();
    let heard = AtomicBool::new(false);
    let script = Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" if heard.load(Ordering::SeqCst) => Reply::Result(done()),
        "tasks/get" => Reply::Result(asking(json!({"k": question("Name?")}))),
        "tasks/update" if asked.before < 2 => Reply::Silence,
        "tasks/update" => {
            heard.store(true, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete"}))
        }
        _ => Reply::Error(-32601, "no"),
    });
    let (served, outcome) = waited(script, &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["Name?"]);
    assert_eq!(served.asked("tasks/update").len(), 3);
}

/// Looks that go well do not keep a wait going whose answers never arrive.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_never_heard_is_given_up() {
    let user = User::new();
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(asking(json!({"k": question("Name?")}))),
        "tasks/update" => Reply::Silence,
        _ => Reply::Error(-32601, "no"),
    });
    let (_, outcome) = waited(script, &user).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    // The answer is in what can be resumed.
    assert_eq!(error.task().unwrap().answered().collect::<Vec<_>>(), ["k"]);
    assert_eq!(user.asked(), ["Name?"]);
}

/// A server that reads old copies shows a question again that was gone.
#[tokio::test(start_paused = true)]
async fn a_question_that_comes_back_is_not_asked_again() {
    let user = User::new();
    let ask = || asking(json!({"k": question("Name?")}));
    let shows = [ask(), working(), ask(), ask(), ask(), ask(), ask(), working(), done()];
    let (served, outcome) = waited(Script::of_task(shows), &user).await;
    assert_eq!(outcome.unwrap(), "done");
    assert_eq!(user.asked(), ["Name?"]);
    assert_eq!(served.asked("tasks/update").len(), 1);
}

/// An answer that is refused is told, unless the task has ended anyway.
#[tokio::test(start_paused = true)]
async fn a_refused_answer_is_told() {
    for (is_over, expected) in [(false, None), (true, Some("done"))] {
        let user = User::new();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if is_over && asked.before > 0 => Reply::Result(done()),
            "tasks/get" => Reply::Result(asking(json!({"k": question("Name?")}))),
            "tasks/update" => Reply::Error(-32602, "no"),
            _ => Reply::Error(-32601, "no"),
        });
        let (_, outcome) = waited(script, &user).await;
        match expected {
            Some(text) => assert_eq!(outcome.unwrap(), text),
            None => assert!(matches!(outcome.unwrap_err(), ClientError::Refused(_))),
        }
    }
}

/// Multi round-trip requests: the call is repeated with the answers and the state, which is whatever it is.
#[tokio::test(start_paused = true)]
async fn rounds_of_a_call_carry_answers_and_state() {
    let user = User::new();
    let script = Script::new(|asked| match (asked.method.as_str(), asked.before) {
        ("tools/call", 0) => Reply::Result(json!({
            "resultType": "input_required", "requestState": "s0", "inputRequests": {"k": question("Name?")}, "x": 1,
        })),
        ("tools/call", 1) => Reply::Result(json!({"resultType": "input_required", "requestState": "s1"})),
        ("tools/call", 2) => Reply::Result(json!({
            "resultType": "input_required", "inputRequests": {"k": question("Name?")},
        })),
        ("tools/call", _) => Reply::Result(json!({"content": [], "isError": false})),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder().input(user.clone())).await;
    let answer = served.client.call("tool", json!({"a": 1})).await.unwrap();
    assert!(matches!(answer, ToolCall::Immediate(_)));
    // Each round is a question of its own.
    assert_eq!(user.asked(), ["Name?", "Name?"]);
    let calls = served.asked("tools/call");
    let states: Vec<_> = calls
        .iter()
        .map(|call| call.params.get("requestState").cloned())
        .collect();
    assert_eq!(states, [None, Some(json!("s0")), Some(json!("s1")), None]);
    assert!(calls.iter().all(|call| call.params["arguments"] == json!({"a": 1})));
    assert_eq!(calls[1].params["inputResponses"]["k"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn rounds_come_to_an_end_and_never_in_a_hot_loop() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(json!({"resultType": "input_required", "requestState": "again"})),
        _ => Reply::Error(-32601, "no"),
    });
    let (served, outcome) = waited(script, &User::new()).await;
    assert!(matches!(outcome.unwrap_err(), ClientError::Protocol { .. }));
    assert_eq!(served.asked("tools/call").len(), 100);
    assert!(served.gaps("tools/call").iter().all(|gap| *gap >= 100));
}

#[tokio::test(start_paused = true)]
async fn a_round_that_is_not_answered_is_handed_back() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => {
            Reply::Result(json!({"resultType": "input_required", "inputRequests": {"k": question("Name?")}}))
        }
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    let error = served.client.call("tool", json!({})).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::InputNeeded(needed) if needed.task.is_none()),
        "{error:?}"
    );
}

/// What is kept before an answer is sent is enough to send it from another process.
#[tokio::test(start_paused = true)]
async fn a_saved_task_holds_the_answer_before_it_is_sent() {
    let user = User::new();
    let saved: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = saved.clone();
    let served = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(asking(json!({"k": question("Name?")}))),
        "tasks/update" => Reply::Silence,
        _ => Reply::Error(-32601, "no"),
    })
    .in_memory(TaskClient::builder().input(user.clone()).observe(move |event| {
        if let mcp_tasks::client::TaskEvent::Checkpoint(task) = event {
            log.lock().unwrap().push(serde_json::to_value(task).unwrap());
        }
    }))
    .await;
    let waiting = served.client.call_and_wait("tool", json!({}));
    tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap_err();
    let saved = saved.lock().unwrap().last().cloned().unwrap();

    // Another process, and the same question.
    let script = until_updated(json!({"k": question("Name?")}), 1, 0);
    let other = script.in_memory(TaskClient::builder().input(user.clone())).await;
    let saved: mcp_tasks::client::SavedTask = serde_json::from_value(saved).unwrap();
    assert_eq!(saved.answered().collect::<Vec<_>>(), ["k"]);
    assert_eq!(other.client.resume(saved).unwrap().wait().await.unwrap().text(), "done");
    assert_eq!(user.asked(), ["Name?"]);
}

/// What was asked is kept so that it is not asked again, and a server that asks for ever fills no memory with it.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_without_an_end_is_given_up() {
    let updates = AtomicUsize::new(0);
    let script = Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => {
            let key = format!("k{}", updates.load(Ordering::SeqCst));
            Reply::Result(asking(json!({ key: question(&"x".repeat(1 << 20)) })))
        }
        "tasks/update" => {
            updates.fetch_add(1, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete"}))
        }
        _ => Reply::Error(-32601, "no"),
    });
    let user = User::new();
    let (_, outcome) = waited(script, &user).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::InputNeeded(_)), "{error:.200?}");
    assert_eq!(user.asked().len(), 16);
}

/// 2025-11-25: questions come as requests of the server, and the user is asked them one by one, and not without an end.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_everything_at_once_is_answered_one_by_one() {
    let requests: String = (0..1_000)
        .map(|id| {
            let mut request = question("Name?");
            (request["jsonrpc"], request["id"]) = (json!("2.0"), json!(format!("q{id}")));
            format!("{request}\n")
        })
        .collect();
    let script = Script::new(move |asked| match asked.method.as_str() {
        "initialize" => Reply::Result(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"},
        })),
        "tools/call" => Reply::Bytes(
            requests.clone().into_bytes(),
            Box::new(Reply::Result(json!({"content": []}))),
        ),
        _ => Reply::Error(-32601, "no"),
    });
    let user = User::slow();
    let old = TaskClient::builder()
        .input(user.clone())
        .lifecycle(rmcp::service::ClientLifecycleMode::Initialize);
    let served = script.in_memory(old).await;
    served.client.call("tool", json!({})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(user.asked().len(), 1);
    user.patience.add_permits(1_000);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(user.asked().len(), 65, "the others were refused");
}
