//! Hearing of tasks instead of polling: `subscriptions/listen` with `taskIds`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::protocol::harness::{Request, TASKS, Wire, until};

/// What `tasks/get` shows, without what tells its result from a notification.
async fn shown(wire: &Wire, id: &str) -> Value {
    let mut task = wire.task(id).await;
    assert_eq!(
        task.as_object_mut().unwrap().remove("resultType"),
        Some(json!("complete"))
    );
    task
}

/// Tasks, "Task Status Notifications": the present state first, then every change, as full tasks equal to what `tasks/get`
/// returns; the stream is over with the task.
#[tokio::test]
async fn a_task_is_told_of_from_its_present_state_to_its_end() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        wire.reaches(&id, "input_required").await;
        let mut listening = wire.listen(&Request::listen(json!("sub"), &[&id])).await;
        assert_eq!(listening.acknowledged().await, json!({"taskIds": [id]}));
        let first = listening.task().await;
        assert_eq!(first, shown(&wire, &id).await);
        assert_eq!(first["inputRequests"]["go"]["method"], "elicitation/create");
        let answer = json!({"go": {"action": "accept", "content": {"confirm": true}}});
        wire.ask(&Request::update(&id, answer)).await.is_ack();
        let (last, _) = listening.reaches("completed").await;
        assert_eq!(last, shown(&wire, &id).await);
        assert_eq!(last["result"]["content"][0]["text"], "yes");
        listening.is_over().await;
    }
}

/// Tasks, "Task Status Notifications": failures carry their error, cancellations nothing, and what ended before is told of
/// once.
#[tokio::test]
async fn tasks_that_have_ended_are_told_of_once() {
    for wire in Wire::both().await {
        let done = wire.create("optional", json!({"text": "x", "times": 2})).await;
        let failed = wire.create("fail_protocol", json!({})).await;
        let cancelled = wire.create("wait", json!({"gate": "shut"})).await;
        wire.ask(&Request::cancel(&cancelled)).await.is_ack();
        wire.settled(&done).await;
        wire.settled(&failed).await;
        let ids = [&*failed, &done, &cancelled];
        let mut listening = wire.listen(&Request::listen(json!(0), &ids)).await;
        assert_eq!(listening.acknowledged().await, json!({"taskIds": ids}));
        for id in ids {
            let task = listening.task().await;
            assert_eq!(task, shown(&wire, id).await);
        }
        listening.is_over().await;
    }
}

/// Tasks, "Task Status Notifications" and "Security Considerations": the acknowledgement lists what is granted; unknown,
/// expired and foreign tasks are missing from it alike.
#[tokio::test]
async fn only_tasks_that_are_there_and_the_callers_are_granted() {
    let wire = Wire::http().await;
    let (alice, bob) = (json!({"iss": "i", "sub": "alice"}), json!({"iss": "i", "sub": "bob"}));
    let gone = wire
        .create_by(Request::call("configured", json!({})).user(&alice))
        .await;
    wire.advance(700_000).await;
    let call = || Request::call("wait", json!({"gate": "g"}));
    let hers = wire.create_by(call().user(&alice)).await;
    let his = wire.create_by(call().user(&bob)).await;
    let nobodys = wire.create_by(call()).await;
    let all = [&*his, &hers, "never", &gone, &nobodys, &hers];
    for (user, granted) in [(Some(&alice), &hers), (Some(&bob), &his), (None, &nobodys)] {
        let mut request = Request::listen(json!(1), &all);
        if let Some(user) = user {
            request = request.user(user);
        }
        let mut listening = wire.listen(&request).await;
        assert_eq!(listening.acknowledged().await, json!({"taskIds": [granted]}));
        assert_eq!(listening.task().await["taskId"], **granted);
    }
    let stranger = json!({"iss": "other", "sub": "alice"});
    let mut listening = wire.listen(&Request::listen(json!(1), &all).user(&stranger)).await;
    assert_eq!(listening.acknowledged().await, json!({"taskIds": []}));
    listening.is_over().await;
}

/// Tasks, "Task Status Notifications" and "Protocol Errors": without the extension it is -32021 and HTTP 400, and the task
/// is as it was.
#[tokio::test]
async fn without_the_extension_there_is_no_listening() {
    for wire in Wire::both().await {
        let id = wire.create("wait", json!({"gate": "g"})).await;
        let before = wire.task(&id).await;
        for tasks in [&[&*id][..], &["never"], &[]] {
            let reply = wire.ask(&Request::listen(json!(9), tasks).undeclared()).await;
            reply.refused(-32021, 400);
            let required = &reply.error()["data"]["requiredCapabilities"];
            assert_eq!(required, &json!({"extensions": {TASKS: {}}}));
            assert_eq!(reply.message["id"], json!(9));
        }
        assert_eq!(wire.task(&id).await, before);
    }
}

/// Where `taskIds` is no list of ids it is -32602.
#[tokio::test]
async fn what_is_no_list_of_ids_is_refused() {
    for wire in Wire::both().await {
        for ids in [json!("x"), json!({}), json!([1]), json!([null]), json!(7)] {
            let params = json!({"notifications": {"taskIds": ids}});
            wire.ask(&Request::new("subscriptions/listen", params))
                .await
                .refused(-32602, 200);
        }
    }
}

/// Tasks, "Task Status Notifications": the acknowledgement includes the tasks that are agreed to, "if any". A list of none is
/// granted as it is, and over.
#[tokio::test]
async fn an_empty_list_of_ids_is_granted_and_over() {
    for wire in Wire::both().await {
        for more in [json!({}), json!({"toolsListChanged": true})] {
            let mut filter = more;
            filter["taskIds"] = json!([]);
            let request = Request::new("subscriptions/listen", json!({"notifications": filter})).id(json!("none"));
            let mut listening = wire.listen(&request).await;
            assert_eq!(listening.acknowledged().await, json!({"taskIds": []}));
            listening.is_over().await;
        }
    }
}

/// Tasks, "Task Status Notifications": no progress, no log message, nothing but tasks on that stream; and what no client
/// requested is not acknowledged.
#[tokio::test]
async fn nothing_else_is_said_on_the_stream() {
    for wire in Wire::both().await {
        let call = Request::call("report_and_end", json!({"gate": "g"})).meta("progressToken", json!("t"));
        let id = wire.create_by(call).await;
        let filter = json!({"taskIds": [id], "toolsListChanged": true, "resourceSubscriptions": ["file:///x"]});
        let request = Request::new("subscriptions/listen", json!({"notifications": filter}))
            .id(json!(4))
            .meta("progressToken", json!("t"));
        let mut listening = wire.listen(&request).await;
        assert_eq!(listening.acknowledged().await, json!({"taskIds": [id]}));
        // At work, sooner or later.
        while listening.task().await["statusMessage"] != "1/2: at work" {}
        wire.open("g").await;
        let (last, _) = listening.reaches("completed").await;
        assert_eq!(last["statusMessage"], "2/2: done");
        listening.is_over().await;
    }
}

/// 2026-07-28, "Subscriptions", "Cancellation": on stdio by `notifications/cancelled`, over HTTP by closing the stream. The
/// task goes on.
#[tokio::test]
async fn a_client_that_has_heard_enough_ends_the_subscription_and_not_the_task() {
    for wire in Wire::both().await {
        let id = wire.create("wait", json!({"gate": "g"})).await;
        let mut listening = wire.listen(&Request::listen(json!("x"), &[&id])).await;
        listening.acknowledged().await;
        listening.task().await;
        if wire.is_http() {
            drop(listening);
        } else {
            let again = wire.ask(&Request::listen(json!("x"), &[&id])).await;
            again.refused(-32600, 400);
            wire.notify("notifications/cancelled", json!({"requestId": "x", "reason": "enough"}))
                .await;
            // The id is free again once the subscription is gone.
            until("the subscription is gone", async || {
                let received = wire.received().len();
                wire.start(&Request::listen(json!("x"), &["never"])).await;
                let answered = until("an answer", async || {
                    let message = wire.received().get(received).cloned()?;
                    Some(message.get("error").is_none())
                });
                answered.await.then_some(())
            })
            .await;
        }
        wire.open("g").await;
        let task = wire.reaches(&id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "passed g");
        if !wire.is_http() {
            let heard = wire.received();
            let told = |message: &&Value| message["method"] == "notifications/tasks";
            assert_eq!(heard.iter().filter(told).count(), 1, "{heard:?}");
        }
    }
}

/// Tasks, "Task Polling" (ttl): a task that expires is gone, and with the last of them the stream is over.
#[tokio::test]
async fn a_stream_is_over_when_its_tasks_have_expired() {
    for wire in Wire::both_with(&[("MCP_TASKS_DEFAULT_TTL", "PT2S")]).await {
        let id = wire.create("wait", json!({"gate": "shut"})).await;
        let mut listening = wire.listen(&Request::listen(json!(1), &[&id])).await;
        assert_eq!(listening.acknowledged().await, json!({"taskIds": [id]}));
        assert_eq!(listening.task().await["status"], "working");
        listening.is_over().await;
        wire.ask(&Request::get(&id)).await.refused(-32602, 200);
    }
}

/// 2026-07-28, "Subscriptions", "Cancellation": a server that stops says so with the response, and does not wait for its
/// listeners.
#[tokio::test]
async fn a_server_that_stops_closes_its_streams() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        wire.reaches(&id, "input_required").await;
        let mut listening = wire.listen(&Request::listen(json!("s"), &[&id])).await;
        listening.acknowledged().await;
        listening.task().await;
        wire.fixture.signal("TERM").await;
        listening.is_over().await;
        drop(listening);
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0), "{}", exit.log);
        assert!(exit.took < Duration::from_secs(4), "{:?}", exit.took);
    }
}

/// 2026-07-28, "Subscriptions", "Notification Filter": what else a wrapped handler serves comes on the same stream, which is
/// acknowledged as one and goes on until the handler ends it.
#[tokio::test]
async fn a_filter_may_name_tasks_and_more() {
    for wire in Wire::both_with(&[("FIXTURE_WRAPS", "1")]).await {
        hear_of_tasks_and_more(&wire).await;
    }
}

async fn hear_of_tasks_and_more(wire: &Wire) {
    let id = wire.create("wait", json!({"gate": "g"})).await;
    let filter = json!({"taskIds": [id, "never"], "toolsListChanged": true, "promptsListChanged": true});
    let request = Request::new("subscriptions/listen", json!({"notifications": filter})).id(json!("both"));
    let mut listening = wire.listen(&request).await;
    assert_eq!(
        listening.acknowledged().await,
        json!({"toolsListChanged": true, "taskIds": [id]})
    );
    let mut methods = Vec::new();
    for _ in 0..2 {
        let message = listening.next().await.unwrap();
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            "both"
        );
        methods.push(message["method"].as_str().unwrap().to_owned());
    }
    methods.sort();
    assert_eq!(methods, ["notifications/tasks", "notifications/tools/list_changed"]);
    wire.open("g").await;
    assert_eq!(listening.task().await["status"], "completed");
    wire.open("end").await;
    listening.is_over().await;
    if !wire.is_http() {
        let ended = |message: &&Value| {
            message["id"] == "both" || message["method"] == "notifications/subscriptions/acknowledged"
        };
        assert_eq!(wire.received().iter().filter(ended).count(), 2);
    }

    // Without the handler's part it is over with its tasks.
    let mut listening = wire.listen(&Request::listen(json!(1), &[&id])).await;
    assert_eq!(listening.acknowledged().await, json!({"taskIds": [id]}));
    listening.task().await;
    listening.is_over().await;
}

/// Several listeners on one task hear the same, and one listener hears of several tasks.
#[tokio::test]
async fn listeners_do_not_take_from_each_other() {
    for wire in Wire::both().await {
        let a = wire.create("wait", json!({"gate": "a"})).await;
        let b = wire.create("wait", json!({"gate": "b"})).await;
        let mut one = wire.listen(&Request::listen(json!("one"), &[&a, &b])).await;
        let mut two = wire.listen(&Request::listen(json!("two"), &[&b])).await;
        one.acknowledged().await;
        two.acknowledged().await;
        wire.open("b").await;
        assert_eq!(two.reaches("completed").await.0["taskId"], *b);
        two.is_over().await;
        assert_eq!(one.reaches("completed").await.0["taskId"], *b);
        wire.open("a").await;
        assert_eq!(one.reaches("completed").await.0["taskId"], *a);
        one.is_over().await;
    }
}

/// 2026-07-28, "Security & Endpoint": what is checked for other requests is checked here.
#[tokio::test]
async fn the_door_is_the_same_for_listeners() {
    let wire = Wire::http().await;
    let id = wire.create("wait", json!({"gate": "g"})).await;
    let good = Request::listen(json!(1), &[&id]);
    let body = wire.body(&good).to_string();
    let headers = wire.headers("subscriptions/listen", None);
    let with = |name: &'static str, value: &str| {
        let mut headers = headers.clone();
        headers.insert(name, value.parse().unwrap());
        headers
    };
    for (name, value, status) in [
        ("host", "evil.example", 403),
        ("origin", "http://evil.example", 403),
        ("accept", "application/json", 406),
        ("content-type", "text/plain", 415),
        ("mcp-method", "tools/call", 400),
        ("mcp-protocol-version", "2025-11-25", 400),
    ] {
        let (reply, _) = wire.post(with(name, value), body.clone()).await;
        assert_eq!(reply.status, Some(status), "{name}: {reply:?}");
    }
    for (from, to) in [
        (r#""method""#, r#""unknown":1,"method""#),
        (r#""notifications""#, r#""unknown":"\ud800","notifications""#),
        (&*id, r"\ud800"),
    ] {
        let (reply, _) = wire.post(headers.clone(), body.replacen(from, to, 1)).await;
        assert!(reply.text.find("acknowledged").is_none(), "{to}: {reply:?}");
    }
    let (reply, _) = wire.post(headers.clone(), body.replacen(&*id, r"\ud800", 1)).await;
    assert_eq!(reply.status, Some(415));

    // A page of this machine may.
    wire.open("g").await;
    wire.reaches(&id, "completed").await;
    let (reply, _) = wire.post(with("origin", "http://localhost:6274"), body).await;
    assert_eq!(
        reply.notifications[0]["params"]["notifications"],
        json!({"taskIds": [id]})
    );
    assert_eq!(reply.result()["resultType"], "complete");
}

/// What a listener costs: as many as a server may have are opened, hear of their task, and are gone again.
#[tokio::test]
async fn many_listeners_hear_of_one_task() {
    const MANY: usize = 500;
    let wire = Wire::http().await;
    let id = wire.create("wait", json!({"gate": "g"})).await;
    let mut all = Vec::new();
    for n in 0..MANY {
        let mut listening = wire.listen(&Request::listen(json!(n), &[&id])).await;
        listening.acknowledged().await;
        all.push(listening);
    }
    wire.open("g").await;
    for mut listening in all {
        listening.reaches("completed").await;
        listening.is_over().await;
    }
}
