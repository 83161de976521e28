//! Clients that leave `Mcp-Name` out of `tasks/*`.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

/// The header that routes a request to the node that holds its task (Tasks extension, "Streamable HTTP: Routing Headers").
const NAME: &str = "mcp-name";
const METHOD: &str = "mcp-method";

/// The methods whose name is a task's id.
const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

#[derive(Deserialize)]
struct Message {
    params: Params,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    task_id: String,
}

/// Fills an absent `Mcp-Name` of `tasks/*` in from the body, up to `limit` bytes of it. One that is there stays as it is,
/// and is refused further in if it is wrong.
pub(super) async fn fill_in(limit: usize, request: Request, next: Next) -> Response {
    if !lacks_name(request.headers()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, limit).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let name = serde_json::from_slice::<Message>(&bytes)
        .ok()
        .and_then(|message| HeaderValue::from_str(&message.params.task_id).ok());
    // What has no such id gets the answer it would get anyway.
    if let Some(name) = name {
        parts.headers.insert(NAME, name);
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// Says once in the log why clients that leave the header out get nowhere: they themselves rarely show the answer.
pub(super) async fn warn(request: Request, next: Next) -> Response {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if lacks_name(request.headers()) && !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a client sends tasks/* without the Mcp-Name header and is refused, as the Tasks extension says; to serve such \
             clients set mcp.tasks.http.require-name = false"
        );
    }
    next.run(request).await
}

fn lacks_name(headers: &HeaderMap) -> bool {
    let method = headers.get(METHOD).and_then(|method| method.to_str().ok());
    method.is_some_and(|method| METHODS.contains(&method)) && !headers.contains_key(NAME)
}
