//! Clients that leave `Mcp-Name` out of `tasks/*`.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use super::gate::{METHOD, NAME};

/// The methods whose name is a task's id (Tasks extension, "Streamable HTTP: Routing Headers").
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

/// Whether the header is wanted and not there. One that is there stays as it is, and is refused if it is wrong.
pub(super) fn is_missing(headers: &HeaderMap) -> bool {
    if headers.contains_key(&NAME) {
        return false;
    }
    let method = headers.get(&METHOD).and_then(|method| method.to_str().ok());
    method.is_some_and(|method| METHODS.contains(&method))
}

/// Fills the header in from the body. What has no task id gets the answer it would get anyway.
pub(super) fn fill_in(headers: &mut HeaderMap, body: &[u8]) {
    let name = serde_json::from_slice::<Message>(body)
        .ok()
        .and_then(|message| HeaderValue::from_str(&message.params.task_id).ok());
    if let Some(name) = name {
        headers.insert(&NAME, name);
    }
}

/// Says once in the log why clients that leave the header out get nowhere: they themselves rarely show the answer.
pub(super) fn warn() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a client sends tasks/* without the Mcp-Name header and is refused, as the Tasks extension says; to serve such \
             clients set mcp.tasks.http.require-name = false"
        );
    }
}
