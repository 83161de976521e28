//! Whose a task is: owner by caller by method by state of the task.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::protocol::harness::{Reply, Request, Wire, until};

const HOUR_MS: u64 = 3_600_000;

fn alice() -> Value {
    json!({"iss": "https://id.example", "sub": "alice", "claims": {"member": true}})
}

fn by(request: Request, user: Option<&Value>) -> Request {
    match user {
        Some(user) => request.user(user),
        None => request,
    }
}

fn methods(id: &str) -> [Request; 3] {
    [
        Request::get(id),
        Request::update(id, json!({"go": {"action": "decline"}})),
        Request::cancel(id),
    ]
}

/// The one answer for tasks that are unknown, expired or another caller's.
#[track_caller]
fn is_unknown(reply: &Reply) {
    reply.refused(-32602, 200);
    let error = json!({"code": -32602, "message": "Unknown task: it does not exist, has expired, or is not yours"});
    assert_eq!(reply.error(), &error);
}

async fn parked(wire: &Wire, owner: Option<&Value>) -> String {
    let id = wire.create_by(by(Request::call("ask", json!({})), owner)).await;
    until("the question", async || {
        let reply = wire.ask(&by(Request::get(&id), owner)).await;
        (reply.result()["status"] == "input_required").then_some(())
    })
    .await;
    id
}

/// Tasks, "Security Considerations" and "Protocol Errors": only the owner, an anonymous caller's tasks to anonymous callers included; all else is one
/// answer in code, words and status.
#[tokio::test]
async fn only_the_owner_reaches_a_task_and_all_others_get_one_answer() {
    let wire = Wire::http().await;
    let alice = alice();
    let strangers = [
        json!({"iss": "https://id.example", "sub": "bob"}),
        // The same subject from another issuer, and from none.
        json!({"iss": "https://other.example", "sub": "alice"}),
        json!({"sub": "alice"}),
        json!({"iss": "https://id.example", "sub": "Alice"}),
    ];
    for owner in [None, Some(&alice)] {
        let callers = strangers.iter().map(Some).chain([None, Some(&alice)]);
        for caller in callers.filter(|caller| *caller != owner) {
            let id = parked(&wire, owner).await;
            let before = wire.ask(&by(Request::get(&id), owner)).await;
            for request in methods(&id) {
                is_unknown(&wire.ask(&by(request, caller)).await);
            }
            for request in methods("never-existed") {
                is_unknown(&wire.ask(&by(request, caller)).await);
            }
            let after = wire.ask(&by(Request::get(&id), owner)).await;
            assert_eq!(after.result(), before.result(), "{owner:?} {caller:?}");
        }
    }
}

/// Owners are issuer and subject: a refreshed token with other claims is the same owner, on any connection.
#[tokio::test]
async fn a_refreshed_token_with_other_claims_is_the_same_owner() {
    let wire = Wire::http().await;
    for refreshed in [
        json!({"iss": "https://id.example", "sub": "alice"}),
        json!({"iss": "https://id.example", "sub": "alice", "claims": {"member": false, "session": "new"}}),
    ] {
        let id = parked(&wire, Some(&alice())).await;
        let [get, update, cancel] = methods(&id).map(|request| request.user(&refreshed));
        assert_eq!(wire.ask(&get).await.result()["status"], "input_required");
        wire.ask(&update).await.is_ack();
        wire.ask(&cancel).await.is_ack();
    }
}

/// The owner's own calls work for every state, and a body sees the caller its task was created for.
#[tokio::test]
async fn the_owner_reaches_its_task_and_the_body_sees_who_created_it() {
    let wire = Wire::http().await;
    for (owner, seen) in [
        (None, "nobody nobody false"),
        (Some(alice()), "https://id.example alice true"),
        (Some(json!({"sub": "carol"})), "nobody carol false"),
    ] {
        let owner = owner.as_ref();
        let id = wire.create_by(by(Request::call("whoami", json!({})), owner)).await;
        let words = until("the end", async || {
            let reply = wire.ask(&by(Request::get(&id), owner)).await;
            let task = reply.result();
            (task["status"] == "completed").then(|| task["result"]["content"][0]["text"].clone())
        })
        .await;
        assert_eq!(words, seen);
        for request in &methods(&id)[1..] {
            wire.ask(&by(request.clone(), owner)).await.is_ack();
        }
    }
}

/// Tasks, "Protocol Errors": an expired task is an unknown one, to its owner as to everybody; until then it is there.
#[tokio::test]
async fn an_expired_task_is_unknown_to_all_and_a_live_one_is_not() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        wire.settled(&id).await;
        wire.advance(HOUR_MS - 60_000).await;
        assert_eq!(wire.task(&id).await["status"], "input_required");
        wire.advance(60_001).await;
        for request in methods(&id) {
            is_unknown(&wire.ask(&request).await);
        }
        let bob = json!({"sub": "bob"});
        if wire.is_http() {
            for request in methods(&id) {
                is_unknown(&wire.ask(&request.user(&bob)).await);
            }
        }
        let unlimited = wire.create("unlimited", json!({})).await;
        wire.settled(&unlimited).await;
        wire.advance(1_000 * HOUR_MS).await;
        assert_eq!(wire.task(&unlimited).await["status"], "completed");
    }
}

/// Tasks, "Security Considerations": that an id exists cannot be told from how long a refusal takes.
#[tokio::test]
async fn refusals_of_foreign_and_of_unknown_tasks_take_about_the_same_time() {
    let wire = Wire::http().await;
    let id = parked(&wire, Some(&alice())).await;
    let mut foreign = Vec::new();
    let mut unknown = Vec::new();
    for _ in 0..200 {
        for (id, times) in [(id.as_str(), &mut foreign), ("never-existed", &mut unknown)] {
            let start = Instant::now();
            is_unknown(&wire.ask(&Request::get(id)).await);
            times.push(start.elapsed());
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (foreign, unknown) = (median(&mut foreign), median(&mut unknown));
    // Far above noise, far below what a second look into a store over a network would add.
    let gap = foreign.abs_diff(unknown);
    assert!(gap < Duration::from_millis(5), "{foreign:?} against {unknown:?}");
}
