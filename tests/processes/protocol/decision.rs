//! The decision table, row by row, and the order of its checks.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, TASKS, Wire};

fn arguments() -> Value {
    json!({"text": "ab", "times": 2})
}

/// Tasks, "Capability Negotiation": a server is free to answer with a result, and a plain tool always does.
#[tokio::test]
async fn a_plain_tool_is_synchronous_whatever_the_client_declares() {
    for wire in Wire::both().await {
        for request in [
            Request::call("plain", arguments()),
            Request::call("plain", arguments()).undeclared(),
        ] {
            let reply = wire.ask(&request).await;
            assert_eq!(reply.result()["resultType"], "complete");
            assert_eq!(reply.words(), "abab");
            reply.has_status(200);
        }
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// Tasks, "Capability Negotiation" and "Task Creation".
#[tokio::test]
async fn a_task_tool_is_a_task_for_a_client_that_declares_the_extension() {
    for wire in Wire::both().await {
        let id = wire.create("optional", arguments()).await;
        let task = wire.settled(&id).await;
        assert_eq!(task["status"], "completed");
        assert_eq!(task["result"]["content"][0]["text"], "abab");
        assert_eq!(wire.seen().await.minted, 1);
    }
}

/// Tasks, "Capability Negotiation": no `CreateTaskResult` for a client that did not include the extension.
#[tokio::test]
async fn a_task_tool_is_synchronous_for_a_client_that_does_not_declare_the_extension() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::call("optional", arguments()).undeclared()).await;
        assert_eq!(reply.result()["resultType"], "complete");
        assert_eq!(reply.words(), "abab");
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// Tasks, "Capability Negotiation": `-32021` that names the extension; 2026-07-28, "Streamable HTTP": HTTP 400.
#[tokio::test]
async fn a_required_tool_without_the_extension_is_refused_and_its_body_never_runs() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::call("required", arguments()).undeclared()).await;
        reply.refused(-32021, 400);
        assert_eq!(
            reply.error()["data"],
            json!({"requiredCapabilities": {"extensions": {TASKS: {}}}})
        );
        let seen = wire.seen().await;
        assert_eq!((seen.minted, seen.count("required")), (0, 0));

        let id = wire.create("required", arguments()).await;
        assert_eq!(wire.settled(&id).await["status"], "completed");
        assert_eq!(wire.seen().await.count("required"), 1);
    }
}

/// 2026-07-28, "Tools", "Error Handling": an unknown tool is `-32602`, for every client and whatever the arguments.
#[tokio::test]
async fn an_unknown_tool_is_refused_before_anything_else() {
    for wire in Wire::both().await {
        for request in [
            Request::call("no_such_tool", json!({"text": 1})),
            Request::call("no_such_tool", json!({"text": 1})).undeclared(),
        ] {
            let reply = wire.ask(&request).await;
            reply.refused(-32602, 200);
            assert_eq!(reply.error_words(), "Unknown tool: no_such_tool");
        }
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// The guard is asked before the extension and the arguments: who may not call learns nothing about the tool.
#[tokio::test]
async fn a_guard_is_asked_before_the_extension_and_the_arguments() {
    for wire in Wire::both().await {
        for tool in ["guarded_plain", "guarded_optional", "guarded_required"] {
            for request in [
                Request::call(tool, json!({"text": 1})),
                Request::call(tool, json!({"text": 1})).undeclared(),
            ] {
                let reply = wire.ask(&request).await;
                reply.refused(-32010, 200);
                assert_eq!(reply.error_words(), "Forbidden: members only");
            }
        }
        let seen = wire.seen().await;
        assert_eq!((seen.minted, seen.journal.len()), (0, 0));
    }
}

/// The extension is asked for before the arguments are looked at.
#[tokio::test]
async fn a_missing_extension_is_reported_before_invalid_arguments() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::call("required", json!({})).undeclared()).await;
        reply.refused(-32021, 400);
    }
}

/// SEP-1303: invalid arguments are a result that the model reads, naming each of them, the same for a call that would
/// have been a task.
#[tokio::test]
async fn invalid_arguments_are_one_error_result_in_both_modes_and_mint_nothing() {
    for wire in Wire::both().await {
        for tool in ["plain", "optional", "required"] {
            for arguments in [json!({}), json!({"text": 5, "times": 300}), json!({"times": "x"})] {
                let task = wire.call(tool, arguments.clone()).await;
                let result = task.result();
                assert_eq!(result["resultType"], "complete");
                assert_eq!(result["isError"], true);
                for name in ["text", "times"] {
                    assert!(task.words().contains(name), "{}", task.words());
                }
                if tool != "required" {
                    let synchronous = wire.ask(&Request::call(tool, arguments).undeclared()).await;
                    assert_eq!(synchronous.result(), result);
                }
            }
        }
        let seen = wire.seen().await;
        assert_eq!((seen.minted, seen.journal.len()), (0, 0));
    }
}

/// 2026-07-28, "Tools": `arguments` is an object; anything else is malformed params, `-32602` in both modes.
#[tokio::test]
async fn arguments_that_are_no_object_are_invalid_params() {
    for wire in Wire::both().await {
        for arguments in [json!([]), json!(["a"]), json!("a"), json!(7)] {
            for request in [
                Request::call("optional", arguments.clone()),
                Request::call("optional", arguments.clone()).undeclared(),
            ] {
                assert_eq!(wire.ask(&request).await.code(), -32602);
            }
        }
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// Absent arguments are an empty object.
#[tokio::test]
async fn absent_and_null_arguments_are_an_empty_object() {
    for wire in Wire::both().await {
        for params in [
            json!({"name": "whoami"}),
            json!({"name": "whoami", "arguments": {}}),
            json!({"name": "whoami", "arguments": null}),
        ] {
            let reply = wire.ask(&Request::new("tools/call", params).undeclared()).await;
            assert_eq!(reply.words(), "nobody nobody false");
        }
    }
}

/// Tasks, "Capability Negotiation": clients do not ask for a task; the `task` member of 2025-11-25 means nothing.
#[tokio::test]
async fn the_task_parameter_of_the_revision_before_is_ignored() {
    for wire in Wire::both().await {
        let params = |tool| json!({"name": tool, "arguments": arguments(), "task": {"ttl": 60000}});
        let plain = wire.ask(&Request::new("tools/call", params("plain"))).await;
        assert_eq!(plain.words(), "abab");
        let undeclared = wire
            .ask(&Request::new("tools/call", params("optional")).undeclared())
            .await;
        assert_eq!(undeclared.words(), "abab");
        assert_eq!(wire.seen().await.minted, 0);

        let task = wire.ask(&Request::new("tools/call", params("optional"))).await;
        assert_eq!(task.result()["resultType"], "task");
        assert_eq!(task.result()["ttlMs"], 3_600_000, "not what the member said");
    }
}
