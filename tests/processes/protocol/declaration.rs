//! What declares the extension, and what does not.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, TASKS, Wire, declared, undeclared};

fn call(capabilities: Value) -> Request {
    Request::call("optional", json!({"text": "a", "times": 1})).capabilities(capabilities)
}

/// Tasks, "Capability Negotiation": the capability is in the request's own envelope.
#[tokio::test]
async fn only_the_envelope_of_the_request_itself_declares() {
    for wire in Wire::both().await {
        let bare = call(undeclared()).meta(TASKS, json!({}));
        assert_eq!(wire.ask(&bare).await.result()["resultType"], "complete");

        let of_2025 = call(json!({"tasks": {"requests": {"tools": {"call": {}}}}}));
        assert_eq!(wire.ask(&of_2025).await.result()["resultType"], "complete");

        let experimental = call(json!({"experimental": {TASKS: {}}}));
        assert_eq!(wire.ask(&experimental).await.result()["resultType"], "complete");

        assert_eq!(wire.ask(&call(declared())).await.result()["resultType"], "task");
    }
}

/// 2026-07-28, "Statelessness": nothing is inferred from an earlier request of the connection.
#[tokio::test]
async fn a_declaration_counts_for_its_own_request_and_no_later_one() {
    for wire in Wire::both().await {
        for (capabilities, expected) in [
            (declared(), "task"),
            (undeclared(), "complete"),
            (declared(), "task"),
            (json!({}), "complete"),
        ] {
            assert_eq!(wire.ask(&call(capabilities)).await.result()["resultType"], expected);
        }
    }
}

/// SEP-3392: a client that means a revision of the extension which this server does not know has not declared the one it knows.
#[tokio::test]
async fn a_revision_that_is_not_known_does_not_declare() {
    for wire in Wire::both().await {
        for (settings, expected) in [
            (json!({"revision": "2026-07-28"}), "task"),
            (json!({"other": 1}), "task"),
            (json!({"revision": "2027-01-01"}), "complete"),
            (json!({"revision": 1}), "complete"),
        ] {
            let capabilities = json!({"extensions": {TASKS: settings}});
            assert_eq!(wire.ask(&call(capabilities)).await.result()["resultType"], expected);
        }
    }
}

/// 2026-07-28, "Capabilities": the value of an extension is an object; settings in it do not matter.
#[tokio::test]
async fn an_extension_value_that_is_no_object_is_invalid_params() {
    for wire in Wire::both().await {
        for value in [json!(null), json!(true), json!([]), json!("yes"), json!(1)] {
            let reply = wire.ask(&call(json!({"extensions": {TASKS: value}}))).await;
            reply.refused(-32602, 400);

            let get = Request::get("some-id").capabilities(json!({"extensions": {TASKS: value}}));
            wire.ask(&get).await.refused(-32602, 400);
        }
        assert_eq!(wire.seen().await.minted, 0);

        for capabilities in [
            json!(null),
            json!([]),
            json!("x"),
            json!({"extensions": []}),
            json!({"extensions": "x"}),
        ] {
            wire.ask(&call(capabilities)).await.refused(-32602, 400);
        }
        assert_eq!(wire.seen().await.minted, 0);

        let settings = call(json!({"extensions": {TASKS: {"future": [1]}}}));
        assert_eq!(wire.ask(&settings).await.result()["resultType"], "task");
    }
}

/// Tasks, "Protocol Errors": `-32021` for `tasks/*` of clients that do not declare, and nothing happens to the task.
#[tokio::test]
async fn tasks_methods_without_the_extension_are_refused_and_touch_nothing() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        let before = wire.settled(&id).await;
        for request in [
            Request::get(&id),
            Request::update(&id, json!({"go": {"action": "accept", "content": {"confirm": true}}})),
            Request::cancel(&id),
        ] {
            for capabilities in [undeclared(), json!({}), json!({"tasks": {}})] {
                let reply = wire.ask(&request.clone().capabilities(capabilities)).await;
                reply.refused(-32021, 400);
                assert_eq!(
                    reply.error()["data"],
                    json!({"requiredCapabilities": {"extensions": {TASKS: {}}}})
                );
            }
        }
        assert_eq!(wire.task(&id).await, before);
    }
}

/// Without the extension, unknown ids and malformed params are no different: the gate comes first.
#[tokio::test]
async fn the_extension_is_asked_for_before_the_params_are_looked_at() {
    for wire in Wire::both().await {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            for params in [
                json!({}),
                json!({"taskId": 7}),
                json!({"taskId": "unknown", "inputResponses": {}}),
            ] {
                let reply = wire.ask(&Request::new(method, params).undeclared()).await;
                reply.refused(-32021, 400);
            }
        }
    }
}
