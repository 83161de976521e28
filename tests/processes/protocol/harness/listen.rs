//! Subscriptions, as a client sees them.

use serde_json::{Value, json};

use super::wire::Transport;
use super::{Request, Wire, until, within};

/// What a subscription says, on either wire.
#[derive(Debug)]
pub(crate) struct Listening<'a> {
    wire: &'a Wire,
    id: Value,
    from: From,
}

#[derive(Debug)]
enum From {
    Http {
        response: reqwest::Response,
        text: String,
    },
    /// How many of the lines that came in were looked at, and whether the last of ours was among them.
    Stdio {
        seen: usize,
        is_over: bool,
    },
}

impl Request {
    /// A request to listen to these tasks, which has an id of its own.
    pub(crate) fn listen(id: Value, tasks: &[&str]) -> Self {
        Self::new("subscriptions/listen", json!({"notifications": {"taskIds": tasks}})).id(id)
    }
}

impl Wire {
    /// Opens a subscription.
    pub(crate) async fn listen(&self, request: &Request) -> Listening<'_> {
        let id = request.id.clone().unwrap();
        let from = match &self.transport {
            Transport::Http(_) => {
                let response = self.send(request).await;
                assert_eq!(response.status(), 200, "{response:?}");
                assert_eq!(response.headers()["content-type"], "text/event-stream");
                assert_eq!(response.headers()["x-accel-buffering"], "no");
                let text = String::new();
                From::Http { response, text }
            }
            Transport::Stdio(_) => {
                let seen = self.received().len();
                self.start(request).await;
                From::Stdio { seen, is_over: false }
            }
        };
        Listening { wire: self, id, from }
    }
}

impl Listening<'_> {
    /// The next message of the subscription; `None` once it is over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        match &mut self.from {
            From::Http { response, text } => loop {
                if let Some(end) = text.find("\n\n") {
                    let event: String = text.drain(..end + 2).collect();
                    if let Some(data) = event.trim_end().strip_prefix("data: ") {
                        return Some(serde_json::from_str(data).unwrap());
                    }
                    continue;
                }
                let chunk = within("an event", response.chunk()).await.unwrap()?;
                text.push_str(std::str::from_utf8(&chunk).unwrap());
            },
            From::Stdio { seen, is_over } => {
                if *is_over {
                    return None;
                }
                let (wire, id) = (self.wire, &self.id);
                let message = until("a message", async || {
                    let received = wire.received();
                    let (at, message) = received
                        .iter()
                        .enumerate()
                        .skip(*seen)
                        .find(|(_, message)| subscription(message) == Some(id) || message.get("id") == Some(id))?;
                    *seen = at + 1;
                    Some(message.clone())
                })
                .await;
                *is_over = message.get("method").is_none();
                Some(message)
            }
        }
    }

    /// The acknowledgement. Returns what it grants.
    pub(crate) async fn acknowledged(&mut self) -> Value {
        let message = self.next().await.unwrap();
        assert_eq!(
            message["method"], "notifications/subscriptions/acknowledged",
            "{message}"
        );
        assert_eq!(subscription(&message), Some(&self.id), "{message}");
        message["params"]["notifications"].clone()
    }

    /// The next task that is told of.
    pub(crate) async fn task(&mut self) -> Value {
        let mut message = self.next().await.unwrap();
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        assert_eq!(message["jsonrpc"], "2.0");
        assert_eq!(subscription(&message), Some(&self.id), "{message}");
        let params = message["params"].as_object_mut().unwrap();
        params.remove("_meta");
        params.clone().into()
    }

    /// The first that is told of this status, and how many came before.
    pub(crate) async fn reaches(&mut self, status: &str) -> (Value, usize) {
        let mut before = 0;
        loop {
            let task = self.task().await;
            if task["status"] == status {
                return (task, before);
            }
            before += 1;
        }
    }

    /// The response to the request to listen, with which all is said.
    pub(crate) async fn is_over(&mut self) {
        let message = self.next().await.unwrap();
        let result = &message["result"];
        assert_eq!(message["id"], self.id, "{message}");
        assert_eq!(result["resultType"], "complete", "{message}");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/subscriptionId"], self.id,
            "{message}"
        );
        assert_eq!(self.next().await, None);
    }
}

fn subscription(message: &Value) -> Option<&Value> {
    message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId")
}
