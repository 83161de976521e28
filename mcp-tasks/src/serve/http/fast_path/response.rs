//! Responses as rmcp gives them, to the byte.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde::Serialize;

use crate::host::wire::TaskJson;
use crate::serve::message::Id;

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id<'a>,
    result: &'a T,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    id: &'a Id<'a>,
    error: &'a ErrorData,
}

/// How many bytes are reserved for a response: those without a payload of their own fit in.
const CAPACITY: usize = 512;

/// The acknowledgement of `tasks/update` and `tasks/cancel`: exactly this member, as published clients refuse more.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Acknowledgement {
    result_type: &'static str,
}

impl Acknowledgement {
    pub(super) const fn new() -> Self {
        Self {
            result_type: "complete",
        }
    }
}

/// A result.
pub(super) fn result<T: Serialize>(id: &Id<'_>, result: &T) -> Response {
    json(
        StatusCode::OK,
        &Success {
            jsonrpc: "2.0",
            id,
            result,
        },
        CAPACITY,
    )
}

/// A task as the result.
pub(super) fn task(id: &Id<'_>, task: &TaskJson<'_>) -> Response {
    let mut text = Vec::with_capacity(CAPACITY.saturating_add(task.payload_length()));
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    // A number or text, which have a JSON form.
    let _ = serde_json::to_writer(&mut text, id);
    text.extend_from_slice(br#","result":"#);
    task.write(&mut text);
    text.push(b'}');
    response(StatusCode::OK, HeaderValue::from_static("application/json"), text)
}

/// An error, with the HTTP status that the transport has for its code.
pub(super) fn error(id: &Id<'_>, mut error: ErrorData) -> Response {
    if error.code == ErrorCode::RESOURCE_NOT_FOUND {
        // The code of older revisions.
        error.code = ErrorCode::INVALID_PARAMS;
    }
    let status = match error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    let failure = Failure {
        jsonrpc: "2.0",
        id,
        error: &error,
    };
    json(status, &failure, CAPACITY)
}

fn json(status: StatusCode, message: &impl Serialize, capacity: usize) -> Response {
    let mut text = Vec::with_capacity(capacity);
    let (status, kind, text) = match serde_json::to_writer(&mut text, message) {
        Ok(()) => (status, HeaderValue::from_static("application/json"), text),
        Err(error) => {
            tracing::error!(%error, "a response has no JSON form");
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                kind,
                b"Internal Server Error".to_vec(),
            )
        }
    };
    response(status, kind, text)
}

fn response(status: StatusCode, kind: HeaderValue, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
