//! The least of an HTTP client: one connection, one request at a time, JSON answers of a stated length.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More headers than any of the servers sends.
const HEADERS: usize = 24;

/// The longest answer that is waited for; everything asked for here is far shorter.
const LONGEST: usize = 1 << 20;

/// A connection that is kept.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// What has come and was not given out yet, and before it the last answer.
    buffer: Vec<u8>,
    /// How much of the buffer was given out.
    used: usize,
}

/// What the head of an answer says.
struct Head {
    length: usize,
    body: usize,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
            used: 0,
        })
    }

    /// This end's port, another one for each connection.
    pub(crate) fn port(&self) -> anyhow::Result<u16> {
        Ok(self.stream.local_addr()?.port())
    }

    /// Sends a request and waits for its answer, which must have status 200; returns the body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await.context("cannot send")?;
        self.buffer.drain(..self.used);
        self.used = 0;
        let head = loop {
            if let Some(head) = head(&self.buffer)? {
                break head;
            }
            self.more().await?;
        };
        let end = head.body + head.length;
        while self.buffer.len() < end {
            self.more().await?;
        }
        self.used = end;
        Ok(&self.buffer[head.body..end])
    }

    /// Sends a request that is answered with a stream.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.buffer.clear();
        self.used = 0;
        self.stream.write_all(request).await.context("cannot send")
    }

    /// Reads on until these words have come. Servers send an event in one piece, so none falls apart over the frames of
    /// a stream; if one did, this would wait in vain and not count what has not come.
    pub(crate) async fn until(&mut self, words: &[u8]) -> anyhow::Result<()> {
        loop {
            if let Some(place) = memchr::memmem::find(&self.buffer, words) {
                self.buffer.drain(..place + words.len());
                return Ok(());
            }
            self.more().await?;
        }
    }

    /// What has come and was not looked for.
    pub(crate) fn rest(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        ensure!(self.buffer.len() < LONGEST, "an answer has no end");
        let read = self.stream.read_buf(&mut self.buffer).await.context("cannot receive")?;
        ensure!(read > 0, "the server closed the connection");
        Ok(())
    }
}

/// The head of an answer, once it is there.
fn head(buffer: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(body) = response.parse(buffer).context("no HTTP")? else {
        return Ok(None);
    };
    let status = response.code.unwrap_or_default();
    if status != 200 {
        bail!("status {status}: {}", String::from_utf8_lossy(&buffer[body..]));
    }
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .context("an answer without a length")?;
    let length = std::str::from_utf8(length.value)?.parse()?;
    ensure!(length <= LONGEST, "an answer of {length} bytes");
    Ok(Some(Head { length, body }))
}
