//! Standard input, read in a way that a stopping process does not wait for.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread;

use rmcp::ErrorData;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard, PollSender, WaitForCancellationFutureOwned};

use super::glance::Seen;
use super::lines::{LONGEST, Lines};
use super::listen::Subscriptions;
use crate::serve::subscription::refusal;

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
    lines: Lines,
    subscriptions: Subscriptions,
    /// Goes when the input ends, so that the subscriptions do.
    over: Option<DropGuard>,
    /// What rmcp is to have, and how much of it was handed on.
    ready: Vec<u8>,
    taken: usize,
    /// What is said of lines that nobody else sees. Nothing more is read before the client has room for it.
    refused: VecDeque<Vec<u8>>,
    refusals: PollSender<Vec<u8>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Arc<OnceLock<Instant>>,
}

impl Input {
    /// Starts to read. Lines that are for `subscriptions` go there, and the others to rmcp; those that are too long are
    /// answered in `refusals`. `ended` is set, and `over` dropped, when the input ends, or `stop` ends it.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn open(
        stop: CancellationToken,
        ended: Arc<OnceLock<Instant>>,
        subscriptions: Subscriptions,
        refusals: mpsc::Sender<Vec<u8>>,
        over: DropGuard,
    ) -> io::Result<Self> {
        let (into, chunks) = mpsc::channel(WAITING);
        thread::Builder::new()
            .name("mcp-tasks-stdin".to_owned())
            .spawn(move || read(io::stdin(), &into))?;
        Ok(Self {
            chunks,
            lines: Lines::default(),
            subscriptions,
            over: Some(over),
            ready: Vec::new(),
            taken: 0,
            refused: VecDeque::new(),
            refusals: PollSender::new(refusals),
            stop: Box::pin(stop.cancelled_owned()),
            ended,
        })
    }

    /// Hands over what is said of lines that were too long.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(refusal) = self.refused.pop_front() {
            match self.refusals.poll_reserve(cx) {
                Poll::Ready(Ok(())) => drop(self.refusals.send_item(refusal)),
                // Whoever writes next finds out that nobody reads.
                Poll::Ready(Err(_)) => {}
                Poll::Pending => {
                    self.refused.push_front(refusal);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }

    fn end(&mut self) -> Poll<io::Result<()>> {
        let _ = self.ended.set(Instant::now());
        self.over = None;
        Poll::Ready(Ok(()))
    }
}

/// What is said of a line that was too long, where there is anybody to say it to.
fn answer(seen: Seen) -> Option<Vec<u8>> {
    let id = match seen {
        Seen::Request(id) => Some(id),
        Seen::Unknown => None,
        Seen::Unanswered => {
            tracing::warn!("a notification or a response of more than {LONGEST} bytes is passed over");
            return None;
        }
    };
    let error = ErrorData::invalid_request(
        format!("Invalid request: it is longer than {LONGEST} bytes, which is what this server reads"),
        None,
    );
    let mut line = refusal(id.as_ref(), &error);
    line.push(b'\n');
    Some(line)
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
        while this.taken == this.ready.len() {
            ready!(this.poll_refuse(cx));
            (this.ready, this.taken) = (Vec::new(), 0);
            let chunk = ready!(this.chunks.poll_recv(cx));
            let Self {
                lines,
                subscriptions,
                ready,
                refused,
                ..
            } = this;
            let line = |line: &[u8]| {
                if !subscriptions.take(line) {
                    ready.extend_from_slice(line);
                }
            };
            match chunk {
                Some(Ok(chunk)) => lines.split(&chunk, line, |seen| refused.extend(answer(seen))),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {
                    // A last line without its end is rmcp's to judge.
                    lines.end(
                        |line| ready.extend_from_slice(line),
                        |seen| refused.extend(answer(seen)),
                    );
                    if ready.is_empty() && refused.is_empty() {
                        return this.end();
                    }
                }
            }
        }
        let rest = this.ready.get(this.taken..).unwrap_or_default();
        let (now, _) = rest.split_at(rest.len().min(buf.remaining()));
        buf.put_slice(now);
        this.taken += now.len();
        Poll::Ready(Ok(()))
    }
}
