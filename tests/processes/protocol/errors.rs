//! Errors of the methods themselves.

use serde_json::json;

use crate::protocol::harness::{Request, Wire, declared};

/// Tasks: the extension has `tasks/get`, `tasks/update` and `tasks/cancel`; what 2025-11-25 had besides is gone.
/// 2026-07-28, "Streamable HTTP": a method that is not implemented is `-32601`, HTTP 404.
#[tokio::test]
async fn tasks_list_and_tasks_result_are_no_methods() {
    for wire in Wire::both().await {
        let id = wire.create("unlimited", json!({})).await;
        for method in ["tasks/list", "tasks/result"] {
            for params in [json!({}), json!({"taskId": id}), json!({"cursor": "x"})] {
                let request = Request::new(method, params);
                wire.ask(&request).await.refused(-32601, 404);
                wire.ask(&request.undeclared()).await.refused(-32601, 404);
            }
        }
    }
}

/// JSON-RPC 2.0, section 5.1: the message says what is wrong, and names the method.
#[tokio::test]
async fn a_method_that_is_not_there_is_named() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::new("no/such", json!({}))).await;
        reply.refused(-32601, 404);
        assert_eq!(reply.error_words(), "Method not found: no/such");
    }
}

/// A known method with params that do not decode is `-32602`, and never `-32601`.
#[tokio::test]
async fn malformed_params_of_known_methods_are_invalid_params() {
    for wire in Wire::both().await {
        for (method, params) in [
            ("tasks/get", json!({})),
            ("tasks/get", json!({"taskId": 7})),
            ("tasks/get", json!({"taskId": null})),
            ("tasks/update", json!({"taskId": "x"})),
            ("tasks/update", json!({"taskId": "x", "inputResponses": []})),
            ("tasks/update", json!({"taskId": "x", "inputResponses": "a"})),
            ("tasks/update", json!({"taskId": "x", "inputResponses": null})),
            ("tasks/cancel", json!({"taskId": ["x"]})),
            ("tools/call", json!({})),
            ("tools/call", json!({"name": 7})),
        ] {
            let reply = wire.ask(&Request::new(method, params.clone())).await;
            assert_eq!(reply.code(), -32602, "{method} {params}");
            if let Some(status) = reply.status {
                assert!(matches!(status, 200 | 400), "{method} {params}: {status}");
            }
        }
    }
}

/// 2026-07-28, "Streamable HTTP": clients show an HTTP error instead of the code, so `tasks/*` answer with 200 or 400.
#[tokio::test]
async fn answers_of_the_tasks_methods_are_http_200_or_400_only() {
    let wire = Wire::http().await;
    let id = wire.create("ask", json!({})).await;
    wire.settled(&id).await;
    for id in [id.as_str(), "unknown", "-", "ffffffffffffffffffffffffffffffff"] {
        for capabilities in [declared(), json!({})] {
            for request in [
                Request::get(id),
                Request::update(id, json!({})),
                Request::update(id, json!([])),
                Request::cancel(id),
            ] {
                for name in [Some(id), None] {
                    let request = request.clone().capabilities(capabilities.clone()).header_name(name);
                    let reply = wire.ask(&request).await;
                    let status = reply.status.unwrap();
                    assert!(matches!(status, 200 | 400), "{status}: {request:?}");
                }
            }
        }
    }
}

/// A synchronous call has no state to resume: one that names some is refused in the one opaque way.
#[tokio::test]
async fn a_request_state_that_is_not_ours_is_invalid_params() {
    for wire in Wire::both().await {
        for state in ["", "x", "AAAA"] {
            let params = json!({"name": "ask", "arguments": {}, "requestState": state});
            let reply = wire.ask(&Request::new("tools/call", params).undeclared()).await;
            reply.refused(-32602, 200);
        }
        let absent = json!({"name": "plain", "arguments": {"text": "a", "times": 1}, "requestState": null});
        let reply = wire.ask(&Request::new("tools/call", absent).undeclared()).await;
        assert_eq!(reply.words(), "a");
    }
}
