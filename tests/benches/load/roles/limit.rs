//! How fast a server can be that speaks HTTP and does nothing else: it reads the body and answers constant bytes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

/// The bodies that our server answered with, each to be served at the path of its name.
pub(super) struct Answers(BTreeMap<String, String>);

impl Answers {
    /// They come as one line of JSON.
    pub(super) fn read(from: &mut impl Read) -> anyhow::Result<Self> {
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line)?;
        Ok(Self(serde_json::from_str(&line).context("what to answer")?))
    }
}

pub(super) async fn serve(answers: Answers, ready: impl FnOnce(&str)) -> anyhow::Result<()> {
    let mut router = Router::new();
    for (name, body) in answers.0 {
        let body = Bytes::from(body);
        router = router.route(
            &format!("/mcp/{name}"),
            post(move |request: Bytes| {
                drop(request);
                let answer = ([(CONTENT_TYPE, "application/json")], body.clone());
                std::future::ready(answer)
            }),
        );
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let local = listener.local_addr()?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    ready(&format!("http://{local}/mcp"));
    axum::serve(listener, router).await?;
    Ok(())
}
