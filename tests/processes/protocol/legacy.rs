//! Clients of 2025-11-25, which know no tasks.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, TASKS, Wire, declared};

/// 2025-11-25, "Lifecycle": a handshake that names a revision without one is answered with the newest that has one.
#[tokio::test]
async fn an_initialize_that_names_2026_07_28_is_answered_with_2025_11_25() {
    for mut wire in Wire::both().await {
        let answer = wire.initialize("2026-07-28").await;
        assert_eq!(answer["protocolVersion"], "2025-11-25");
        let reply = wire.call("optional", json!({"text": "a", "times": 2})).await;
        assert_eq!(reply.words(), "aa");
    }
}

/// The extension is of 2026-07-28: a session is not told of it, nor of the tasks 2025-11-25 had.
#[tokio::test]
async fn a_session_is_not_told_of_tasks() {
    for mut wire in Wire::both().await {
        let answer = wire.initialize("2025-11-25").await;
        let capabilities = &answer["capabilities"];
        assert!(capabilities["tools"].is_object());
        assert!(capabilities.get("tasks").is_none(), "{capabilities}");
        let extensions = capabilities.get("extensions").unwrap_or(&Value::Null);
        assert!(extensions.get(TASKS).is_none(), "{capabilities}");
        let list = wire.ask(&Request::new("tools/list", json!({}))).await;
        assert!(!list.text.contains("taskSupport"), "{}", list.text);
    }
}

/// Tasks, "Capability Negotiation": no task for a client that did not declare the extension; a session cannot.
#[tokio::test]
async fn optional_task_tools_run_inside_the_call_of_a_session() {
    for wire in Wire::legacy().await {
        let reply = wire.call("optional", json!({"text": "ab", "times": 2})).await;
        assert_eq!(reply.words(), "abab");
        assert!(reply.result().get("resultType").is_none(), "{reply:?}");
        assert!(reply.result().get("taskId").is_none());
        let plain = wire.call("plain", json!({"text": "ab", "times": 2})).await;
        assert_eq!(plain.words(), "abab");
        let fails = wire.call("fail", json!({})).await;
        assert_eq!(
            (fails.words(), &fails.result()["isError"]),
            ("out of paper", &json!(true))
        );
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// What a session declares at its start or in a request does not make tasks of its calls.
#[tokio::test]
async fn a_session_cannot_declare_the_extension() {
    for wire in Wire::legacy().await {
        let call = Request::call("optional", json!({"text": "a", "times": 1}))
            .meta("io.modelcontextprotocol/clientCapabilities", declared());
        let reply = wire.ask(&call).await;
        assert!(reply.result().get("taskId").is_none(), "{reply:?}");
        let with_task = json!({"name": "optional", "arguments": {"text": "a", "times": 1}, "task": {"ttl": 1000}});
        let reply = wire.ask(&Request::new("tools/call", with_task)).await;
        assert_eq!(reply.words(), "a");
        assert_eq!(wire.seen().await.minted, 0);
    }
}

/// A required tool gives a session an error that a person can read, and on sessions errors are HTTP 200.
#[tokio::test]
async fn a_required_tool_gives_a_session_an_error_a_person_can_read() {
    for wire in Wire::legacy().await {
        let reply = wire.call("required", json!({"text": "a", "times": 1})).await;
        reply.refused(-32021, 200);
        let words = reply.error_words();
        assert!(words.contains("only as a task") && words.contains(TASKS), "{words}");
        assert_eq!(wire.seen().await.count("required"), 0);
    }
}

/// 2025-11-25, "Tools": a listing shows what can be called. A required tool cannot, in a session.
#[tokio::test]
async fn a_required_tool_is_not_listed_in_a_session() {
    let is_listed = |reply: &Value, name: &str| {
        let tools = reply["tools"].as_array().unwrap();
        tools.iter().any(|tool| tool["name"] == name)
    };
    for wire in Wire::legacy().await {
        let list = wire.ask(&Request::new("tools/list", json!({}))).await.result().clone();
        assert!(is_listed(&list, "optional") && !is_listed(&list, "required"), "{list}");
    }
    for wire in Wire::both().await {
        let list = wire.ask(&Request::new("tools/list", json!({}))).await.result().clone();
        assert!(is_listed(&list, "optional") && is_listed(&list, "required"), "{list}");
    }
}

/// `tasks/*` need a declaration, which a session cannot give.
#[tokio::test]
async fn tasks_methods_are_refused_in_a_session() {
    for wire in Wire::legacy().await {
        for request in [Request::get("x"), Request::update("x", json!({})), Request::cancel("x")] {
            let reply = wire.ask(&request).await;
            reply.refused(-32021, 200);
        }
        for method in ["tasks/list", "tasks/result"] {
            let reply = wire.ask(&Request::new(method, json!({}))).await;
            assert_eq!(reply.code(), -32601);
        }
    }
}

/// Unknown tools, guards and arguments are the same for a session.
#[tokio::test]
async fn the_checks_of_a_call_are_the_same_in_a_session() {
    for wire in Wire::legacy().await {
        let unknown = wire.call("no_such_tool", json!({})).await;
        unknown.refused(-32602, 200);
        assert_eq!(unknown.error_words(), "Unknown tool: no_such_tool");
        for tool in ["guarded_plain", "guarded_optional", "guarded_required"] {
            wire.call(tool, json!({})).await.refused(-32010, 200);
        }
        let invalid = wire.call("optional", json!({"times": "x"})).await;
        assert_eq!(invalid.result()["isError"], true);
        for name in ["text", "times"] {
            assert!(invalid.words().contains(name), "{}", invalid.words());
        }
        assert_eq!(wire.call("optional", json!([])).await.code(), -32602);
    }
}

/// Who calls is read from each request of a session, not from its first.
#[tokio::test]
async fn a_guard_in_a_session_sees_who_sends_the_request() {
    let [wire, _] = Wire::legacy().await;
    let member = json!({"sub": "alice", "claims": {"member": true}});
    let call = Request::call("guarded_plain", json!({"text": "a"}));
    assert_eq!(wire.ask(&call.clone().user(&member)).await.words(), "a");
    wire.ask(&call).await.refused(-32010, 200);
    let list = Request::new("tools/list", json!({}));
    assert!(
        wire.ask(&list.clone().user(&member))
            .await
            .text
            .contains("guarded_plain")
    );
    assert!(!wire.ask(&list).await.text.contains("guarded_plain"));
}
