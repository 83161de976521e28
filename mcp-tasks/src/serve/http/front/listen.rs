//! `subscriptions/listen` with `taskIds`, as a stream of events.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::response::Response;
use futures::stream::unfold;
use rmcp::ServerHandler;
use serde_json::Map;

use super::{Shared, answer};
use crate::serve::message::{Checked, Request, decode};
use crate::serve::subscription::{LISTEN, Params, Said, Subscription, Wanted};
use crate::task_server::answered;

impl<H: ServerHandler> Shared<H> {
    pub(super) async fn listen(&self, parts: &Parts, body: &str) -> Option<Response> {
        // What is not looked at here has to be in order too.
        serde_json::from_str::<Checked>(body).ok()?;
        let request: Request<'_, Params<'_>> = decode(body)?;
        if request.method != LISTEN {
            return None;
        }
        let ids = match request.params.0.wanted(&self.known) {
            Wanted::Tasks(ids) => ids,
            Wanted::Refused(error) => return Some(answer::error(&request.id, error)),
            Wanted::Nothing => return None,
        };
        let id = request.id.into_owned();
        let opened = answered(async {
            let (caller, server) = (self.runtime.caller(parts), (self.handler)().get_info().server_info);
            Subscription::open(&self.runtime.engine, id.clone(), &ids, caller, server).await
        });
        Some(match opened.await {
            Ok(subscription) => self.stream(subscription),
            Err(error) => answer::error(&id, error),
        })
    }

    /// What the subscription says, as events, until all is said or the server stops.
    fn stream(&self, subscription: Subscription) -> Response {
        let stop = self.stop.clone();
        let events = unfold(subscription, move |mut subscription| {
            let stop = stop.clone();
            async move {
                let nothing = Map::new();
                let said = tokio::select! {
                    biased;
                    said = subscription.next(&nothing) => said?,
                    () = stop.cancelled() => Said::Message(subscription.close()),
                };
                Some((Ok::<_, Infallible>(event(said)), subscription))
            }
        });
        let mut response = Response::new(Body::from_stream(events));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // Proxies that hold events back would make the stream useless.
        let buffering = HeaderName::from_static("x-accel-buffering");
        headers.insert(buffering, HeaderValue::from_static("no"));
        response
    }
}

fn event(said: Said) -> Bytes {
    match said {
        Said::Message(message) => {
            const AROUND: usize = "data: \n\n".len();
            let mut event = Vec::with_capacity(message.len() + AROUND);
            event.extend_from_slice(b"data: ");
            event.extend_from_slice(&message);
            event.extend_from_slice(b"\n\n");
            event.into()
        }
        Said::Quiet => Bytes::from_static(b":\n\n"),
    }
}
