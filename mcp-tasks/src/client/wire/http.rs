//! Streamable HTTP: rmcp's client, except that this file reads the answers to verbatim requests.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use super::{MAX_MESSAGE, Verbatim, response_id, wrap};

type Headers = HashMap<HeaderName, HeaderValue>;
type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;
type Events = BoxStream<'static, std::result::Result<Sse, SseError>>;

const SESSION: &str = "mcp-session-id";

/// The shortest time between two attempts to go on with a stream that has ended, in milliseconds. A server may ask for
/// none at all, and would be asked in a loop.
const MIN_RETRY: u64 = 1000;

/// The HTTP client.
#[derive(Debug, Clone)]
pub(in crate::client) struct HttpClient(reqwest::Client);

/// A connection to `url`.
pub(in crate::client) fn http_transport(
    client: reqwest::Client,
    url: &str,
    token: Option<&str>,
    headers: Headers,
) -> StreamableHttpClientTransport<HttpClient> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.auth_header = token.map(str::to_owned);
    config.custom_headers = headers;
    config.max_json_response_size = MAX_MESSAGE;
    config.max_sse_event_size = MAX_MESSAGE;
    StreamableHttpClientTransport::with_client(HttpClient(client), config)
}

impl HttpClient {
    async fn post_verbatim(
        &self,
        request: reqwest::RequestBuilder,
        mark: Verbatim,
        id: RequestId,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse> {
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let challenge = response
                .headers()
                .get(WWW_AUTHENTICATE)
                .and_then(|value| value.to_str().ok());
            if let Some(challenge) = challenge {
                return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                    challenge.to_owned(),
                )));
            }
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let refused = HttpStatusError::new(status.as_u16(), retry_after);
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(refused.into());
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        match content_type.as_deref() {
            Some("application/json") => {
                let body = read(response).await;
                if !status.is_success() && !matches!(&body, Ok(body) if is_error(body)) {
                    return Err(refused.into());
                }
                message(&body?, &id).map(|message| StreamableHttpPostResponse::Json(message, None))
            }
            Some("text/event-stream") if status.is_success() => {
                let body = response.bytes_stream().map_err(reqwest::Error::without_url);
                let events = events(body, mark, id);
                Ok(StreamableHttpPostResponse::Sse(
                    limit_reconnects(events, in_session),
                    None,
                ))
            }
            _ if !status.is_success() => Err(refused.into()),
            other => Err(StreamableHttpError::UnexpectedContentType(other.map(str::to_owned))),
        }
    }
}

/// The error without the URL, which may hold a secret: rmcp logs the errors of streams.
fn failed(error: reqwest::Error) -> StreamableHttpError<reqwest::Error> {
    StreamableHttpError::Client(error.without_url())
}

/// The body, which may be [`MAX_MESSAGE`] long.
async fn read(mut response: reqwest::Response) -> Result<Vec<u8>> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: MAX_MESSAGE };
    if response
        .content_length()
        .is_some_and(|length| length > MAX_MESSAGE as u64)
    {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if body.len() + piece.len() > MAX_MESSAGE {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn is_error(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| value.get("error").is_some_and(Value::is_object))
}

/// The answer to the request `id`. It is the only one this response can be for, so an id that a server leaves out of an
/// error, as it may, or makes up, does not matter.
fn message(body: &[u8], id: &RequestId) -> Result<ServerJsonRpcMessage> {
    let mut value: Value = serde_json::from_slice(body)?;
    let Some(object) = value.as_object_mut() else {
        return Err(StreamableHttpError::UnexpectedServerResponse(
            "the answer is no JSON object".into(),
        ));
    };
    if !object.contains_key("result") && !object.contains_key("error") {
        return Err(StreamableHttpError::UnexpectedServerResponse(
            "the answer has neither a result nor an error".into(),
        ));
    }
    if response_id(object).as_ref() != Some(id) {
        tracing::debug!(expected = %id, "the server answered under another id, or none");
    }
    object.insert("id".to_owned(), id.clone().into_json_value());
    wrap(&mut value);
    Ok(serde_json::from_value(value)?)
}

/// The events of a response to our request, with its result wrapped and its notifications taken out.
fn events<E>(
    body: impl Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
    mark: Verbatim,
    id: RequestId,
) -> Events
where
    E: std::error::Error + Send + Sync + 'static,
{
    let events = SseStream::from_bytes_stream(EventSizeLimit::new().apply(body));
    let ours = move |mut event: Sse| {
        let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
        let value = event.data.as_deref().filter(|_| is_message);
        let Some(mut value) = value.and_then(|data| serde_json::from_str::<Value>(data).ok()) else {
            return event;
        };
        if mark.consume_notification(&mut value) {
            event.data = None;
            return event;
        }
        let Some(object) = value.as_object_mut() else {
            return event;
        };
        if !object.contains_key("result") && !object.contains_key("error") {
            return event;
        }
        match response_id(object) {
            Some(other) if other != id => {
                tracing::debug!(expected = %id, %other, "the server sent an answer that is not waited for");
                event.data = None;
            }
            _ => {
                object.insert("id".to_owned(), id.clone().into_json_value());
                wrap(&mut value);
                event.data = Some(value.to_string());
            }
        }
        event
    };
    events.map(move |event| event.map(&ours)).boxed()
}

/// Events that cannot make rmcp go on with their stream more often than [`MIN_RETRY`] says, nor at all without a session:
/// streams of 2026-07-28 cannot be gone on with (Streamable HTTP), whatever their events say.
fn limit_reconnects(events: Events, in_session: bool) -> Events {
    let calmed = move |mut event: Sse| {
        event.retry = event.retry.map(|retry| retry.max(MIN_RETRY));
        if !in_session {
            event.id = None;
        }
        event
    };
    events.map(move |event| event.map(&calmed)).boxed()
}

/// Counts what comes between two empty lines.
#[derive(Debug, Default)]
struct EventSizeLimit {
    length: usize,
    line_is_empty: bool,
}

/// An event longer than [`MAX_MESSAGE`].
#[derive(Debug, thiserror::Error)]
enum TooLarge<E: std::error::Error> {
    #[error(transparent)]
    Body(E),
    #[error("an event is longer than {MAX_MESSAGE} bytes")]
    Event,
}

impl EventSizeLimit {
    fn new() -> Self {
        Self::default()
    }

    fn fits(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' if self.line_is_empty => {
                    self.length = 0;
                    continue;
                }
                b'\n' => self.line_is_empty = true,
                _ => self.line_is_empty = false,
            }
            self.length += 1;
            if self.length > MAX_MESSAGE {
                return false;
            }
        }
        true
    }

    fn apply<E>(
        mut self,
        body: impl Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
    ) -> impl Stream<Item = std::result::Result<Bytes, TooLarge<E>>> + Send + 'static
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        body.map(move |piece| {
            let piece = piece.map_err(TooLarge::Body)?;
            if self.fits(&piece) {
                Ok(piece)
            } else {
                Err(TooLarge::Event)
            }
        })
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse> {
        let in_session = session.is_some();
        let Some((mark, id)) = Verbatim::of(&message) else {
            let answer = self
                .0
                .post_message_with_response_limits(uri, message, session, token, headers, limits)
                .await?;
            return Ok(match answer {
                StreamableHttpPostResponse::Sse(events, session) => {
                    let in_session = in_session || session.is_some();
                    StreamableHttpPostResponse::Sse(limit_reconnects(events, in_session), session)
                }
                other => other,
            });
        };
        let mut request = self
            .0
            .post(uri.as_ref())
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        self.post_verbatim(request.json(&message), mark, id, in_session).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<()> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events> {
        let in_session = session.is_some();
        let events = self.0.get_stream(uri, session, last_event, token, headers).await?;
        Ok(limit_reconnects(events, in_session))
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events> {
        let in_session = session.is_some();
        let events = self
            .0
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max_sse_event_size)
            .await?;
        Ok(limit_reconnects(events, in_session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_counts_not_the_stream() {
        let mut limit = EventSizeLimit::new();
        let event = [b'x'; 1024];
        for _ in 0..2 * MAX_MESSAGE / 1024 {
            assert!(limit.fits(&event));
            assert!(limit.fits(b"\r\n\r\n"));
        }
        let line = [b'x'; 1023];
        let fitted = (0..2 * MAX_MESSAGE / 1024)
            .take_while(|_| limit.fits(&line) && limit.fits(b"\n"))
            .count();
        assert_eq!(fitted, MAX_MESSAGE / 1024);
    }
}
