//! Why a request, or the connection, fails: rmcp's errors in the client's terms.

use std::error::Error;
use std::time::{Duration, SystemTime};

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, Peer, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use rmcp::{ErrorData, RoleClient};

use super::{ClientError, TransportError};

/// The most of a `Retry-After` that is honoured: it may be a day, and no poll waits that long.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(900);

/// How a request fails.
#[derive(Debug)]
pub(super) enum RequestError {
    Refused(ErrorData),
    Transport(TransportError),
    Protocol(String),
}

impl From<RequestError> for ClientError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(error) => Self::refused(error),
            RequestError::Transport(source) => Self::Transport { source, task: None },
            RequestError::Protocol(message) => Self::protocol(message),
        }
    }
}

/// Why there is no connection.
pub(super) fn connect_error(error: ClientInitializeError) -> ClientError {
    let transport = |message: String| {
        RequestError::Transport(TransportError {
            message,
            status: None,
            retry_after: None,
            is_temporary: false,
            is_silent_child: false,
        })
    };
    let failed = match error {
        ClientInitializeError::JsonRpcError(error) => RequestError::Refused(error),
        ClientInitializeError::TransportError { error, .. } => send_error(&error, false),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return connect_error(*fallback),
        ClientInitializeError::ConnectionClosed(when) => {
            transport(format!("the server closed the connection ({when})"))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            RequestError::Protocol(format!("the server speaks only {}", versions.join(", ")))
        }
        // The rest show whole messages in their text.
        _ => {
            RequestError::Protocol("the server does not speak MCP: its answer to the first request is none".to_owned())
        }
    };
    failed.into()
}

/// The time for an answer is over.
pub(super) fn timed_out(timeout: Duration) -> RequestError {
    RequestError::Transport(TransportError {
        message: format!("the server did not answer within {timeout:?}"),
        status: None,
        retry_after: None,
        is_temporary: true,
        is_silent_child: false,
    })
}

pub(super) fn service_error(peer: &Peer<RoleClient>, error: ServiceError) -> RequestError {
    let transport = |message: String, is_temporary| {
        RequestError::Transport(TransportError {
            message,
            status: None,
            retry_after: None,
            is_temporary,
            is_silent_child: false,
        })
    };
    match error {
        ServiceError::McpError(error) => RequestError::Refused(error),
        // One response that ended early, or the whole connection.
        ServiceError::TransportClosed if peer.is_transport_closed() => {
            transport("the connection to the server is closed".to_owned(), false)
        }
        ServiceError::TransportClosed => transport("the server ended its response without an answer".to_owned(), true),
        ServiceError::TransportSend(error) => send_error(&error, !peer.is_transport_closed()),
        other => RequestError::Protocol(other.to_string()),
    }
}

fn send_error(error: &DynamicTransportError, is_open: bool) -> RequestError {
    let mut failed = TransportError {
        message: String::new(),
        status: None,
        retry_after: None,
        is_temporary: false,
        is_silent_child: false,
    };
    let http = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    match http {
        Some(StreamableHttpError::HttpStatus(error)) => {
            failed.message = match error.status {
                300..=399 => format!(
                    "the server sends the request to another place (HTTP {}), which is not followed: connect to that place",
                    error.status
                ),
                status => format!("the server answered with HTTP {status}"),
            };
            failed.status = Some(error.status);
            failed.retry_after = retry_after(error);
            failed.is_temporary = matches!(error.status, 408 | 425 | 429 | 500..=599);
        }
        Some(StreamableHttpError::AuthRequired(_)) => {
            failed.message = "the server wants another token (HTTP 401)".to_owned();
            failed.status = Some(401);
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            failed.message = "the token does not allow this (HTTP 403)".to_owned();
            failed.status = Some(403);
        }
        Some(StreamableHttpError::Client(error)) => {
            // Not the error itself, whose text has the URL in it, and a URL may hold a secret.
            failed.message = format!("the server cannot be reached: {}", causes(error));
            failed.is_temporary = !error.is_builder();
        }
        Some(
            error @ (StreamableHttpError::UnexpectedServerResponse(_)
            | StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::Deserialize(_)),
        ) => {
            let words = format!("the server sent no answer: {error}");
            // rmcp puts the body of a response behind a colon, and there may be none.
            let words = words.trim_end().trim_end_matches(':');
            return RequestError::Protocol(words.to_owned());
        }
        _ => {
            failed.message = format!("the server cannot be reached: {}", error.error);
            failed.is_temporary = is_open;
        }
    }
    RequestError::Transport(failed)
}

/// What an HTTP error comes from, without the error itself.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    match causes.is_empty() {
        true => "the connection failed".to_owned(),
        false => causes.join(": "),
    }
}

/// RFC 9110, section 10.2.3: seconds, or a date.
fn retry_after(error: &HttpStatusError) -> Option<Duration> {
    let text = error.retry_after.as_deref()?.trim();
    let after = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date is one of the wall clock.
        Err(_) => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(SystemTime::now())
            .unwrap_or_default(),
    };
    Some(after.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let after = |text: &str| retry_after(&HttpStatusError::new(429, Some(text.to_owned())));
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("99999999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(after("Fri, 31 Dec 9999 23:59:59 GMT"), Some(MAX_RETRY_AFTER));
        for odd in ["", "soon", "-1", "1.5"] {
            assert_eq!(after(odd), None, "{odd}");
        }
    }
}
