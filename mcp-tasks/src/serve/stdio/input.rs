//! Standard input, read in a way that a stopping process does not wait for.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What a pipe holds on the systems we know: more at a time never comes.
const CHUNK: usize = 64 * 1024;

/// How many chunks may wait for the server before the client has to.
const WAITING: usize = 4;

/// Standard input, until it ends or the server is told to stop.
///
/// Tokio's own standard input is read on a thread that its runtime waits for at its end, so that a server told to stop
/// would stay until its client says one thing more. The thread here goes with the process.
pub(super) struct Input {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// How much of `chunk` has been handed on.
    taken: usize,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Arc<OnceLock<Instant>>,
}

impl Input {
    /// Starts to read. `ended` is set when the input ends, or `stop` ends it.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn open(stop: CancellationToken, ended: Arc<OnceLock<Instant>>) -> io::Result<Self> {
        let (into, chunks) = mpsc::channel(WAITING);
        thread::Builder::new()
            .name("mcp-tasks-stdin".to_owned())
            .spawn(move || read(io::stdin(), &into))?;
        Ok(Self {
            chunks,
            chunk: Vec::new(),
            taken: 0,
            stop: Box::pin(stop.cancelled_owned()),
            ended,
        })
    }

    fn end(&self) -> Poll<io::Result<()>> {
        let _ = self.ended.set(Instant::now());
        Poll::Ready(Ok(()))
    }
}

fn read(mut from: impl Read, into: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let outcome = match from.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                chunk.truncate(length);
                Ok(chunk)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = outcome.is_err();
        if into.blocking_send(outcome).is_err() || failed {
            return;
        }
    }
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.stop.as_mut().poll(cx).is_ready() {
            return this.end();
        }
        if this.taken == this.chunk.len() {
            match ready!(this.chunks.poll_recv(cx)) {
                Some(Ok(chunk)) => (this.chunk, this.taken) = (chunk, 0),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return this.end(),
            }
        }
        let rest = this.chunk.get(this.taken..).unwrap_or_default();
        let (now, _) = rest.split_at(rest.len().min(buf.remaining()));
        buf.put_slice(now);
        this.taken += now.len();
        Poll::Ready(Ok(()))
    }
}
