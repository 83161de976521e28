//! Subscriptions to what this server never tells of.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, Wire, undeclared};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// 2026-07-28, "Subscriptions", "Acknowledgment": what the server does not support is omitted from the acknowledgement; it is
/// no error. With nothing left to tell of the subscription is over at once, by the response that a server ends one with.
#[tokio::test]
async fn what_is_never_told_of_is_left_out_of_the_acknowledgement() {
    for wire in Wire::both().await {
        for (n, filter) in [
            json!({}),
            json!({"toolsListChanged": true}),
            json!({"promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["file:///x"]}),
            json!({"toolsListChanged": false}),
            json!({"somethingElse": {"x": 1}}),
        ]
        .into_iter()
        .enumerate()
        {
            for capabilities in [None, Some(undeclared())] {
                let id = json!(format!("sub-{n}-{}", capabilities.is_some()));
                let mut request = Request::new("subscriptions/listen", json!({"notifications": filter})).id(id.clone());
                if let Some(capabilities) = capabilities {
                    request = request.capabilities(capabilities);
                }
                let reply = wire.ask(&request).await;
                assert!(matches!(reply.status, None | Some(200)), "{filter}: {reply:?}");
                assert_eq!(reply.result()["resultType"], "complete", "{filter}: {reply:?}");
                assert_eq!(reply.result()["_meta"][SUBSCRIPTION], id);
                let is_ours = |message: &&Value| message["params"]["_meta"][SUBSCRIPTION] == id;
                let said = if wire.is_http() {
                    reply.notifications
                } else {
                    wire.received().iter().filter(is_ours).cloned().collect()
                };
                let [said] = &said[..] else {
                    panic!("{filter}: {said:?}")
                };
                assert_eq!(said["method"], "notifications/subscriptions/acknowledged");
                assert_eq!(said["params"]["notifications"], json!({}), "{filter}");
                assert_eq!(said["params"]["_meta"][SUBSCRIPTION], id);
            }
        }
    }
}

/// 2026-07-28, "Subscriptions", "Opening a Stream": a request without a filter is none.
#[tokio::test]
async fn a_subscription_without_a_filter_is_refused() {
    for wire in Wire::both().await {
        for params in [
            json!({}),
            json!({"notifications": null}),
            json!({"notifications": 7}),
            json!({"notifications": {"toolsListChanged": "yes"}}),
        ] {
            let reply = wire.ask(&Request::new("subscriptions/listen", params.clone())).await;
            assert_eq!(reply.code(), -32602, "{params}: {reply:?}");
        }
    }
}

/// 2025-11-25 does not have the method.
#[tokio::test]
async fn a_session_has_no_such_method() {
    for wire in Wire::legacy().await {
        let request = Request::new(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        );
        wire.ask(&request).await.refused(-32601, 200);
    }
}
