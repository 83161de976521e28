//! `subscriptions/listen` with `taskIds`, as a stream of events.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::extract::Request as HttpRequest;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::response::Response;
use futures::stream::unfold;
use futures::{Stream, StreamExt};
use rmcp::ServerHandler;

use super::{FastPath, response};
use crate::host::handler::TaskServer;
use crate::host::operations::answered;
use crate::serve::message::{Checked, Request, decode};
use crate::serve::subscription::{LISTEN, Params, Subscription, SubscriptionEvent, TaskFilter};

type EventStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

impl<H: ServerHandler> FastPath<H> {
    pub(super) async fn listen(&self, parts: &Parts, body: &str) -> Option<Response> {
        // What is not looked at here has to be in order too.
        serde_json::from_str::<Checked>(body).ok()?;
        let request: Request<'_, Params<'_>> = decode(body)?;
        if request.method != LISTEN {
            return None;
        }
        let params = request.params.0;
        let ids = match params.task_filter(self.operations.capabilities()) {
            TaskFilter::Tasks(ids) => ids,
            TaskFilter::Refused(error) => return Some(response::error(&request.id, error)),
            TaskFilter::Absent => return None,
        };
        let id = request.id.into_owned();
        let handler = TaskServer::new(self.operations.clone(), (self.handler)());
        let others = params.handler_filter(&handler);
        let mut rmcp_events = None;
        if !others.is_empty() {
            let whole = HttpRequest::from_parts(parts.clone(), Body::from(body.to_owned()));
            let response = self.forward(whole).await;
            if response.status() != StatusCode::OK {
                return Some(response);
            }
            rmcp_events = Some(events(response.into_body()));
        }
        let opened = answered(async {
            let (caller, server) = (self.operations.caller(parts)?, handler.get_info().server_info);
            Subscription::open(self.operations.engine(), id.clone(), &ids, caller, server).await
        });
        Some(match opened.await {
            Ok(subscription) => {
                let task_events = self.task_events(subscription.with_handler_filter(others));
                event_stream(merge(task_events, rmcp_events))
            }
            Err(error) => response::error(&id, error),
        })
    }

    /// The events of the subscription, until it ends or the server stops.
    fn task_events(&self, subscription: Subscription) -> impl Stream<Item = SubscriptionEvent> + Send + 'static {
        let stop = self.stop.clone();
        unfold(subscription, move |mut subscription| {
            let stop = stop.clone();
            async move {
                let event = tokio::select! {
                    biased;
                    event = subscription.next() => event?,
                    () = stop.cancelled() => SubscriptionEvent::Response(subscription.close()),
                };
                Some((event, subscription))
            }
        })
    }
}

/// Our events, and those of rmcp for the rest of the filter where there are any: then it is rmcp that ends the stream.
fn merge(ours: impl Stream<Item = SubscriptionEvent> + Send + 'static, theirs: Option<EventStream>) -> EventStream {
    let ours = ours.boxed();
    let Some(theirs) = theirs else {
        return ours.map(encode).boxed();
    };
    // Streams keep what they were about to say, so that either can be waited for.
    unfold((Some(ours), theirs), |(mut ours, mut theirs)| async move {
        loop {
            let next = async {
                match &mut ours {
                    Some(ours) => ours.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = next => match event {
                    None | Some(SubscriptionEvent::Response(_)) => ours = None,
                    Some(event) => return Some((encode(event), (ours, theirs))),
                },
                theirs_next = theirs.next() => return Some((theirs_next?, (ours, theirs))),
            }
        }
    })
    .boxed()
}

/// The events in a stream of rmcp's, each whole, without the acknowledgement at its beginning.
fn events(body: Body) -> EventStream {
    let chunks = body.into_data_stream();
    unfold((chunks, Vec::<u8>::new()), |(mut chunks, mut begun)| async move {
        loop {
            if let Some(end) = begun.windows(2).position(|two| two == b"\n\n") {
                let rest = begun.split_off(end + 2);
                let event = std::mem::replace(&mut begun, rest);
                return Some((Bytes::from(event), (chunks, begun)));
            }
            begun.extend_from_slice(&chunks.next().await?.ok()?);
        }
    })
    // Its comments are signs of life, of which ours are enough.
    .filter(|event| std::future::ready(!event.starts_with(b":")))
    .skip(1)
    .boxed()
}

fn event_stream(events: EventStream) -> Response {
    let mut response = Response::new(Body::from_stream(events.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that hold events back would make the stream useless.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

/// As a server-sent event.
fn encode(event: SubscriptionEvent) -> Bytes {
    match event {
        SubscriptionEvent::Notification(message) | SubscriptionEvent::Response(message) => {
            const AROUND: usize = "data: \n\n".len();
            let mut event = Vec::with_capacity(message.len() + AROUND);
            event.extend_from_slice(b"data: ");
            event.extend_from_slice(&message);
            event.extend_from_slice(b"\n\n");
            event.into()
        }
        SubscriptionEvent::KeepAlive => Bytes::from_static(b":\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::iter;

    use super::*;

    async fn shown(events: EventStream) -> Vec<String> {
        let text = |event: Bytes| String::from_utf8(event.to_vec()).unwrap();
        events.map(text).collect().await
    }

    #[tokio::test]
    async fn events_are_whole_and_come_without_acknowledgement_and_comments() {
        let text = b"data: ack\n\n:\n\ndata: one\n\ndata: two\n\n";
        for size in 1..text.len() {
            let chunks: Vec<_> = text
                .chunks(size)
                .map(|chunk| Ok::<_, Infallible>(chunk.to_vec()))
                .collect();
            let events = events(Body::from_stream(iter(chunks)));
            assert_eq!(shown(events).await, ["data: one\n\n", "data: two\n\n"]);
        }
    }

    #[tokio::test]
    async fn rmcp_ends_a_stream_that_it_has_a_part_in() {
        let said = |text: &str| SubscriptionEvent::Notification(text.into());
        let ours = || {
            iter([
                said("ack"),
                said("task"),
                SubscriptionEvent::Response(b"closed".to_vec()),
            ])
        };
        assert_eq!(
            shown(merge(ours(), None)).await,
            ["data: ack\n\n", "data: task\n\n", "data: closed\n\n"]
        );
        let theirs = iter([Bytes::from("data: list\n\n"), Bytes::from("data: result\n\n")]).boxed();
        assert_eq!(
            shown(merge(ours(), Some(theirs))).await,
            ["data: ack\n\n", "data: task\n\n", "data: list\n\n", "data: result\n\n"]
        );
    }
}
