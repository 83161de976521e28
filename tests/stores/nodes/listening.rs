//! Hearing on one node of what another does.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_tasks_tests::patience::{until, within};
use serde_json::{Value, json};

use crate::nodes::database::Database;
use crate::nodes::node::{ENDLESS_LEASE, Node, words, yes};

/// What a node tells of tasks.
#[derive(Debug)]
struct Listening {
    stream: reqwest::Response,
    text: Vec<u8>,
    events: VecDeque<Value>,
}

impl Listening {
    /// To all of these tasks.
    async fn to(node: &Node, ids: &[&str]) -> Self {
        let mut this = Self {
            stream: node.listen(ids).await,
            text: Vec::new(),
            events: VecDeque::new(),
        };
        let first = within("an acknowledgement", this.next()).await;
        let first = first.expect("there is an acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["notifications"], json!({"taskIds": ids}));
        this
    }

    /// The next message; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let chunk = within("an event", self.stream.chunk())
                .await
                .expect("the server is there");
            self.text.extend_from_slice(&chunk?);
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(data) = event.strip_prefix(b"data: ") {
                    self.events.push_back(serde_json::from_slice(data).expect("it is JSON"));
                }
            }
        }
    }

    /// Waits until it is told of this task that it is so. Signs of life do not put it off.
    async fn hears(&mut self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        within("news of the task", self.told(id, so)).await
    }

    async fn told(&mut self, id: &str, so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the stream goes on");
            assert_eq!(message["method"], "notifications/tasks", "{message}");
            let task = &message["params"];
            if task["taskId"] == id && so(task) {
                return task.clone();
            }
        }
    }

    /// The stream ends with the response.
    async fn is_over(&mut self) {
        let last = within("a response", self.next()).await.expect("there is a response");
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
        assert_eq!(self.next().await, None);
    }
}

fn has_status(status: &str) -> impl Fn(&Value) -> bool {
    move |task| task["status"] == status
}

fn says(words: &str) -> impl Fn(&Value) -> bool {
    move |task| task["statusMessage"] == words
}

/// Tasks extension, "Task Status Notifications": a listener on one node is told of the answer, the progress and the end that
/// another node sees to, in full tasks equal to what `tasks/get` shows. No lease ends meanwhile, at which it would look by
/// itself.
pub(crate) async fn what_is_done_there_is_heard_here(database: &mut Database) {
    let (here, there) = Node::two(database, ENDLESS_LEASE).await;
    let asks = there.create("ask", json!({})).await;
    let works = there.create("pass_gates", json!({"gates": ["a", "b"]})).await;
    there.reaches(&asks, "input_required").await;
    let mut listening = Listening::to(&here, &[&asks, &works]).await;
    let asked = listening.hears(&asks, has_status("input_required")).await;
    assert!(asked["inputRequests"]["go"].is_object(), "{asked}");
    there.answer(&asks).await;
    let done = listening.hears(&asks, has_status("completed")).await;
    assert_eq!(words(&done), "yes");
    there.open("a").await;
    listening.hears(&works, says("1/2: passed a")).await;
    there.open("b").await;
    let mut done = listening.hears(&works, has_status("completed")).await;
    assert_eq!(words(&done), "passed all");
    listening.is_over().await;
    // What tells a notification from a result is the envelope alone.
    done.as_object_mut().expect("it is an object").remove("_meta");
    done["resultType"] = json!("complete");
    assert_eq!(done, here.task(&works).await);
}

/// A listener does not lose the end of a task because the connection is cut over which its node hears of changes, and nobody
/// could tell it.
pub(crate) async fn an_end_is_heard_though_the_feed_was_cut(database: &mut Database) {
    let (here, there) = Node::two(database, ENDLESS_LEASE).await;
    let id = there.create("ask", json!({})).await;
    there.reaches(&id, "input_required").await;
    let mut listening = Listening::to(&here, &[&id]).await;
    listening.hears(&id, has_status("input_required")).await;
    let is_file = matches!(database, Database::File(_));
    if !is_file {
        // Those of both nodes, as soon as they are there.
        until("the feeds are cut", async || {
            (database.cut_feeds().await > 0).then_some(())
        })
        .await;
    }
    let answered = async {
        until("the answer is taken", async || {
            let answer = there.try_ask("tasks/update", yes(&id)).await;
            answer.expect("the server is there").ok()
        })
        .await;
        until("the task is done", async || {
            let task = there.try_ask("tasks/get", json!({"taskId": id})).await;
            let task = task.expect("the server is there").ok()?;
            (task["status"] == "completed").then_some(())
        })
        .await;
    };
    tokio::select! {
        () = answered => {}
        // Again and again until the task has ended: a node that connects anew in time is told nothing either.
        () = keep_cut(database) => {}
    }
    let done = listening.hears(&id, has_status("completed")).await;
    assert_eq!(words(&done), "yes");
    listening.is_over().await;
}

/// Does not end. A server that goes with its feeds is cut once, or nothing could be done in it.
async fn keep_cut(database: &mut Database) {
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if !database.url().starts_with("nats") {
            database.cut_feeds().await;
        }
    }
}
