//! Connections that hand on results verbatim.
//!
//! rmcp decodes a result without knowing what was asked: it takes the first of some twenty shapes that fits, and drops what
//! that shape has no place for. The connections of this client wrap the results of its own requests before rmcp decodes
//! them, so that each one is decoded here, by the request it answers. The same goes for notifications of a
//! `subscriptions/listen`, whose task ids rmcp has no place for.

mod http;
mod legacy_handshake;
mod lines;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage, RequestId, ServerResult};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub(super) use self::http::http_transport;
pub(super) use self::legacy_handshake::LegacyHandshake;
pub(super) use self::lines::LineTransport;

/// The most one message may take, as text. rmcp's own clients have the same limit.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The member that a wrapped result is under. No result of the protocol has it.
const WRAPPED: &str = "mcp-tasks/whole";

/// The `_meta` member that says which `subscriptions/listen` a notification is for.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What came in for a `subscriptions/listen` so far. Each notification has the whole task, so only the newest one is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct SubscriptionState {
    /// The params of the acknowledgement.
    pub(super) acknowledged: Option<Value>,
    /// The params of the newest `notifications/tasks`.
    pub(super) task: Option<Value>,
}

/// Marks a request, unseen by the server: its result is handed on verbatim.
#[derive(Debug, Clone, Default)]
pub(super) struct Verbatim {
    /// Where the notifications of a `subscriptions/listen` go.
    pub(super) subscription: Option<watch::Sender<SubscriptionState>>,
}

impl Verbatim {
    /// The request's mark and id, if it has a mark.
    fn of(message: &ClientJsonRpcMessage) -> Option<(Self, RequestId)> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        let ClientRequest::CustomRequest(custom) = &request.request else {
            return None;
        };
        let mark = custom.extensions().get::<Self>()?;
        Some((mark.clone(), request.id.clone()))
    }

    /// Takes a notification that belongs to the request, and says whether it did.
    fn consume_notification(&self, message: &mut Value) -> bool {
        let Some(subscription) = &self.subscription else {
            return false;
        };
        let method = message.get("method").and_then(Value::as_str);
        let acknowledged = method == Some("notifications/subscriptions/acknowledged");
        if !acknowledged && method != Some("notifications/tasks") {
            return false;
        }
        let params = message.get_mut("params").map_or(Value::Null, Value::take);
        subscription.send_modify(|subscription| {
            if acknowledged {
                subscription.acknowledged = Some(params);
            } else {
                subscription.task = Some(params);
            }
        });
        true
    }
}

/// Wraps the result of a response, if it is one.
fn wrap(message: &mut Value) {
    if let Some(result) = message.get_mut("result") {
        let whole = result.take();
        *result = json!({ WRAPPED: whole });
    }
}

/// The result as the server sent it; where rmcp has decoded it, what rmcp left of it.
pub(super) fn unwrap(result: ServerResult) -> Value {
    let value = match result {
        ServerResult::CustomResult(custom) => custom.0,
        other => serde_json::to_value(other).unwrap_or_default(),
    };
    match value {
        Value::Object(mut object) if object.len() == 1 => match object.remove(WRAPPED) {
            Some(whole) => whole,
            None => Value::Object(object),
        },
        other => other,
    }
}

/// The id of the request that a response is for.
fn response_id(message: &Map<String, Value>) -> Option<RequestId> {
    let is_response = message.contains_key("result") || message.contains_key("error");
    is_response
        .then(|| message.get("id"))
        .flatten()
        .and_then(RequestId::deserialize_lenient)
}

/// The id of the `subscriptions/listen` that a notification is for.
fn subscription_id(message: &Map<String, Value>) -> Option<RequestId> {
    let id = message.get("params")?.get("_meta")?.get(SUBSCRIPTION)?;
    RequestId::deserialize_lenient(id)
}

trait LenientId: Sized {
    fn deserialize_lenient(value: &Value) -> Option<Self>;
}

impl LenientId for RequestId {
    /// Our ids are numbers; servers that send them back as text or as `1.0` mean the same.
    fn deserialize_lenient(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number
                .as_i64()
                .or_else(|| {
                    number
                        .as_f64()
                        .filter(|n| n.fract() == 0.0 && n.abs() < 9e15)
                        .map(|n| n as i64)
                })
                .map(Self::Number),
            Value::String(text) => Some(match text.parse() {
                Ok(number) => Self::Number(number),
                Err(_) => Self::String(text.as_str().into()),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerJsonRpcMessage;

    use super::*;

    /// Whatever a result looks like, rmcp hands it on.
    #[test]
    fn a_wrapped_result_comes_through_whole() {
        for result in [
            json!({}),
            json!({"resultType": "complete"}),
            json!({"content": [], "action": "accept", "tools": [], "odd": 1}),
            json!({"resultType": "task", "ttlMs": 500.0}),
            json!([1]),
            Value::Null,
        ] {
            let mut message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
            wrap(&mut message);
            let decoded: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
            let JsonRpcMessage::Response(response) = decoded else {
                panic!("{decoded:?}")
            };
            assert_eq!(unwrap(response.result), result);
        }
    }

    #[test]
    fn ids_are_known_again_in_other_spellings() {
        for id in [json!(7), json!("7"), json!(7.0)] {
            assert_eq!(RequestId::deserialize_lenient(&id), Some(RequestId::Number(7)));
        }
        assert_eq!(RequestId::deserialize_lenient(&json!([7])), None);
    }
}
