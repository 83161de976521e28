//! Standard input, read in a way that a stopping process does not wait for.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard, PollSender, WaitForCancellationFutureOwned};

use super::json_line;
use super::lines::{InputLine, LineSplitter};
use super::refusal::{too_long, undecodable};
use super::subscriptions::{LineRoute, Subscriptions};

/// What a pipe holds on the systems we know: more at a time never comes.
const CHUNK: usize = 64 * 1024;

/// How many chunks may wait for the server before the client has to.
const QUEUED_CHUNKS: usize = 4;

/// Standard input, until it ends or the server is told to stop.
///
/// Tokio's own standard input is read on a thread that its runtime waits for at its end, so that a server told to stop
/// would stay until its client says one thing more. The thread here goes with the process.
pub(super) struct Input {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    lines: LineSplitter,
    subscriptions: Subscriptions,
    /// Goes when the input ends, so that the subscriptions do.
    over: Option<DropGuard>,
    /// What rmcp is to have, and how much of it was handed on.
    ready: Vec<u8>,
    consumed: usize,
    /// What is said of lines that nobody else sees.
    refusals: VecDeque<Vec<u8>>,
    answers: PollSender<Vec<u8>>,
    /// Fires once the client has closed its end, though what it said before is not taken yet.
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Arc<OnceLock<Instant>>,
}

impl Input {
    /// Starts to read. Lines that are for `subscriptions` go there, and the others to rmcp; those that neither takes are
    /// answered in `answers`. Nothing is read while there is no room in `answers`. `ended` is set, and `over` dropped, when the input ends, or `stop` ends it.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(
        stop: CancellationToken,
        ended: Arc<OnceLock<Instant>>,
        subscriptions: Subscriptions,
        answers: mpsc::Sender<Vec<u8>>,
        over: DropGuard,
    ) -> io::Result<Self> {
        let (into, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let closed = CancellationToken::new();
        let closes = closed.clone().drop_guard();
        thread::Builder::new()
            .name("mcp-tasks-stdin".to_owned())
            .spawn(move || {
                let _closes = closes;
                read(io::stdin(), &into);
            })?;
        Ok(Self {
            chunks,
            lines: LineSplitter::default(),
            subscriptions,
            over: Some(over),
            ready: Vec::new(),
            consumed: 0,
            refusals: VecDeque::new(),
            answers: PollSender::new(answers),
            closed: Box::pin(closed.cancelled_owned()),
            stop: Box::pin(stop.cancelled_owned()),
            ended,
        })
    }

    /// Hands over what is said of lines that were refused, and waits until one thing more could be said: a client that
    /// takes no answers has to wait with its requests, or they would fill the memory.
    fn poll_send_refusals(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // No more than what is read already can come from a client that has closed its end, and it may wait for the server
        // to end without a look at its answers.
        while self.closed.as_mut().poll(cx).is_pending() {
            // Whoever writes next finds out that nobody reads.
            let has_room = ready!(self.answers.poll_reserve(cx)).is_ok();
            let refusal = self.refusals.pop_front();
            if let Some(refusal) = refusal
                && has_room
            {
                // There is room for it.
                let _ = self.answers.send_item(refusal);
            } else {
                self.answers.abort_send();
                break;
            }
        }
        Poll::Ready(())
    }

    fn finish(&mut self) -> Poll<io::Result<()>> {
        let _ = self.ended.set(Instant::now());
        self.over = None;
        let refusals = std::mem::take(&mut self.refusals);
        if let Some(answers) = self.answers.get_ref().cloned()
            && !refusals.is_empty()
        {
            tokio::spawn(async move {
                for refusal in refusals {
                    if answers.send(refusal).await.is_err() {
                        return;
                    }
                }
            });
        }
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
            return this.finish();
        }
        while this.consumed == this.ready.len() {
            ready!(this.poll_send_refusals(cx));
            (this.ready, this.consumed) = (Vec::new(), 0);
            let chunk = ready!(this.chunks.poll_recv(cx));
            let Self {
                lines,
                subscriptions,
                ready,
                refusals,
                ..
            } = this;
            let route = |line: InputLine<'_>| {
                let line = match line {
                    InputLine::Complete(line) => line,
                    InputLine::TooLong(kind) => return refusals.extend(too_long(kind)),
                };
                match json_line::parse(line).map(|line| subscriptions.route(&line)) {
                    Ok(LineRoute::Rmcp) => {
                        ready.extend_from_slice(line);
                        // The end of the input ends a line too, but rmcp passes over one that has none of its own.
                        if !line.ends_with(b"\n") {
                            ready.push(b'\n');
                        }
                    }
                    Ok(LineRoute::Handled) => {}
                    Ok(LineRoute::Refused(mut answer)) => {
                        answer.push(b'\n');
                        refusals.push_back(answer);
                    }
                    Err(reason) => refusals.extend(undecodable(line, &reason)),
                }
            };
            match chunk {
                Some(Ok(chunk)) => lines.split(&chunk, route),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {
                    lines.end(route);
                    if ready.is_empty() {
                        return this.finish();
                    }
                }
            }
        }
        let rest = this.ready.get(this.consumed..).unwrap_or_default();
        let (now, _) = rest.split_at(rest.len().min(buf.remaining()));
        buf.put_slice(now);
        this.consumed += now.len();
        Poll::Ready(Ok(()))
    }
}
