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
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::listen::Subscriptions;

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
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Arc<OnceLock<Instant>>,
}

impl Input {
    /// Starts to read. Lines that are for `subscriptions` go there, and the others to rmcp. `ended` is set, and `over`
    /// dropped, when the input ends, or `stop` ends it.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn open(
        stop: CancellationToken,
        ended: Arc<OnceLock<Instant>>,
        subscriptions: Subscriptions,
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
            stop: Box::pin(stop.cancelled_owned()),
            ended,
        })
    }

    fn end(&mut self) -> Poll<io::Result<()>> {
        let _ = self.ended.set(Instant::now());
        self.over = None;
        Poll::Ready(Ok(()))
    }
}

/// The longest line that is looked at, as long as a body over HTTP may be. What is longer goes to rmcp as it comes.
const LONGEST: usize = 4 * 1024 * 1024;

/// Puts chunks together to lines.
#[derive(Debug, Default)]
struct Lines {
    /// A line that has not ended yet.
    begun: Vec<u8>,
    /// Whether the line is handed on as it comes.
    is_long: bool,
}

impl Lines {
    /// Takes in a chunk. The lines that end with it and that `take` does not take are added to `out`.
    fn split(&mut self, chunk: &[u8], out: &mut Vec<u8>, take: impl Fn(&[u8]) -> bool) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if self.is_long {
                out.extend_from_slice(part);
                self.is_long = !ends;
                continue;
            }
            self.begun.extend_from_slice(part);
            if ends {
                if !take(&self.begun) {
                    out.extend_from_slice(&self.begun);
                }
                self.begun.clear();
            } else if self.begun.len() > LONGEST {
                out.append(&mut self.begun);
                self.is_long = true;
            }
        }
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
        while this.taken == this.ready.len() {
            (this.ready, this.taken) = (Vec::new(), 0);
            match ready!(this.chunks.poll_recv(cx)) {
                Some(Ok(chunk)) => {
                    let Self {
                        lines,
                        subscriptions,
                        ready,
                        ..
                    } = this;
                    lines.split(&chunk, ready, |line| subscriptions.take(line));
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {
                    // A last line without its end is rmcp's to judge.
                    std::mem::swap(&mut this.ready, &mut this.lines.begun);
                    if this.ready.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_chunks_of_any_size() {
        let text = b"one\n\ntwo taken\nthree\nrest";
        for size in 1..text.len() {
            let (mut lines, mut out) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.split(chunk, &mut out, |line| line.ends_with(b"taken\n"));
            }
            assert_eq!(out, b"one\n\nthree\n");
            assert_eq!(lines.begun, b"rest");
        }
    }

    #[test]
    fn a_line_without_end_is_handed_on_as_it_comes() {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        for _ in 0..=LONGEST / 1024 {
            lines.split(&[b'x'; 1024], &mut out, |_| true);
        }
        assert!(lines.begun.is_empty());
        let before = out.len();
        lines.split(b"end\nnext\n", &mut out, |line| line == b"next\n");
        assert_eq!(&out[before..], b"end\n");
    }
}
