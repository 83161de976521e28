//! Guards, over HTTP, where callers can be told apart.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, Wire, words};

fn alice(member: bool) -> Value {
    json!({"iss": "https://id.example", "sub": "alice", "claims": {"member": member}})
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The same answer as a synchronous call would get, and nothing is minted.
#[tokio::test]
async fn a_denied_call_is_forbidden_in_every_mode_and_mints_nothing() {
    let wire = Wire::http().await;
    for tool in ["guarded_plain", "guarded_optional", "guarded_required"] {
        let call = Request::call(tool, json!({"text": "a"}));
        for user in [None, Some(alice(false)), Some(json!({"sub": "bob"}))] {
            for request in [call.clone(), call.clone().undeclared()] {
                let request = match &user {
                    Some(user) => request.user(user),
                    None => request,
                };
                let reply = wire.ask(&request).await;
                reply.refused(-32010, 200);
                assert_eq!(reply.error_words(), "Forbidden: members only");
            }
        }
    }
    let seen = wire.seen().await;
    assert_eq!((seen.minted, seen.journal.len()), (0, 0));

    let call = |tool| Request::call(tool, json!({"text": "a"})).user(&alice(true));
    assert_eq!(wire.ask(&call("guarded_plain")).await.words(), "a");
    assert_eq!(wire.ask(&call("guarded_optional").undeclared()).await.words(), "a");
    assert_eq!(wire.ask(&call("guarded_optional")).await.result()["resultType"], "task");
    wire.ask(&call("guarded_required").undeclared())
        .await
        .refused(-32021, 400);
}

/// 2026-07-28, "Tools", "Listing Tools" and "Caching": a denied tool is not listed, so listings are private.
#[tokio::test]
async fn listings_hide_denied_tools_and_are_private() {
    let wire = Wire::http().await;
    let list = Request::new("tools/list", json!({}));
    let guarded = ["guarded_ask", "guarded_optional", "guarded_plain", "guarded_required"];
    let outside = wire.ask(&list).await;
    let inside = wire.ask(&list.clone().user(&alice(true))).await;
    for reply in [&outside, &inside] {
        assert_eq!(reply.result()["cacheScope"], "private");
        let names = names(reply.result());
        assert!(names.is_sorted(), "{names:?}");
    }
    assert!(!names(outside.result()).iter().any(|name| guarded.contains(name)));
    for name in guarded {
        assert!(names(inside.result()).contains(&name), "{name}");
    }
    assert!(names(outside.result()).contains(&"plain"));
}

/// The guard is asked on `tasks/update` too, before anything changes; the task's owner stays its owner.
#[tokio::test]
async fn an_update_by_an_owner_the_guard_now_denies_leaves_the_record_untouched() {
    let wire = Wire::http().await;
    let id = wire
        .create_by(Request::call("guarded_ask", json!({})).user(&alice(true)))
        .await;
    let get = Request::get(&id).user(&alice(false));
    let before = crate::protocol::harness::until("the question", async || {
        let task = wire.ask(&get).await.result().clone();
        (task["status"] == "input_required").then_some(task)
    })
    .await;
    let update = Request::update(&id, json!({"go": {"action": "decline"}}));
    let denied = wire.ask(&update.clone().user(&alice(false))).await;
    denied.refused(-32010, 200);
    assert_eq!(denied.error_words(), "Forbidden: members only");
    assert_eq!(wire.ask(&get).await.result(), &before);

    wire.ask(&update.user(&alice(true))).await.is_ack();
    let ended = crate::protocol::harness::until("the end", async || {
        let task = wire.ask(&get).await.result().clone();
        (task["status"] == "completed").then_some(task)
    })
    .await;
    assert_eq!(words(&ended["result"]), "declined");
}

/// Another caller's task is unknown, whether or not a guard would let them in.
#[tokio::test]
async fn a_foreign_task_is_unknown_before_its_guard_is_asked() {
    let wire = Wire::http().await;
    let id = wire
        .create_by(Request::call("guarded_ask", json!({})).user(&alice(true)))
        .await;
    let bob = json!({"sub": "bob"});
    let update = Request::update(&id, json!({"go": {"action": "decline"}}));
    wire.ask(&update.user(&bob)).await.refused(-32602, 200);
}
