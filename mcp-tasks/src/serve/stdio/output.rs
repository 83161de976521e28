//! Standard output, shared by rmcp and the subscriptions in front of it, line by line.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;

use super::listen::{Subscriptions, Verdict};

/// How many lines may wait for the client to read them. Subscriptions whose lines do not get in wait with a look at their
/// tasks, so that what a slow client reads then is new.
const WAITING: usize = 8;

/// Whether all was written, once it is.
pub(super) type Written = oneshot::Receiver<io::Result<()>>;

/// Starts to write lines to standard output. The lines are complete, with their line breaks. What comes back tells when all
/// is written.
///
/// Tokio's own standard output is written on a thread that its runtime waits for at its end, so that a server would stay for
/// as long as its client does not read. The thread here goes with the process.
///
/// # Errors
/// When the thread cannot be started.
pub(super) fn open() -> io::Result<(mpsc::Sender<Vec<u8>>, Written)> {
    let (lines, waiting) = mpsc::channel(WAITING);
    let (done, written) = oneshot::channel();
    thread::Builder::new()
        .name("mcp-tasks-stdout".to_owned())
        .spawn(move || done.send(write(io::stdout(), waiting)))?;
    Ok((lines, written))
}

fn write(mut into: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        into.write_all(&line)?;
        if lines.is_empty() {
            into.flush()?;
        }
    }
    into.flush()
}

/// What rmcp writes to.
pub(super) struct Output {
    lines: PollSender<Vec<u8>>,
    subscriptions: Subscriptions,
    /// What has to be said before rmcp goes on.
    first: Option<oneshot::Receiver<()>>,
    /// The line that rmcp has not ended yet.
    line: Vec<u8>,
}

impl Output {
    /// Lines go to `lines`, unless `subscriptions` keeps them.
    pub(super) fn new(lines: mpsc::Sender<Vec<u8>>, subscriptions: Subscriptions) -> Self {
        Self {
            lines: PollSender::new(lines),
            subscriptions,
            first: None,
            line: Vec::new(),
        }
    }
}

fn closed<E>(_: E) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(first) = &mut this.first {
            // Said, or never to be.
            let _ = ready!(Pin::new(first).poll(cx));
            this.first = None;
        }
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            this.line.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        };
        ready!(this.lines.poll_reserve(cx)).map_err(closed)?;
        let (ending, _) = bytes.split_at(end + 1);
        let mut line = std::mem::take(&mut this.line);
        line.extend_from_slice(ending);
        match this.subscriptions.judge(&line) {
            Verdict::Out => this.lines.send_item(line).map_err(closed)?,
            Verdict::Kept(first) => {
                this.lines.abort_send();
                this.first = Some(first);
            }
        }
        Poll::Ready(Ok(ending.len()))
    }

    /// A line that is handed over is written without further asking.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lines.close();
        Poll::Ready(Ok(()))
    }
}
