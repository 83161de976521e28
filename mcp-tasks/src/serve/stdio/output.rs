//! Standard output, shared by rmcp and the subscriptions in front of it, line by line.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;

use super::subscriptions::{RmcpLine, Subscriptions};

/// How many lines may wait for the client to read them. Subscriptions whose lines do not get in wait with a look at their
/// tasks, so that what a slow client reads then is new.
const QUEUED_LINES: usize = 8;

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
pub(super) fn start_writer() -> io::Result<(mpsc::Sender<Vec<u8>>, Written)> {
    let (lines, waiting) = mpsc::channel(QUEUED_LINES);
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
    wait_for: Option<oneshot::Receiver<()>>,
    /// The line that rmcp has not ended yet.
    partial: Vec<u8>,
}

impl Output {
    /// Lines go to `lines`, unless `subscriptions` keeps them.
    pub(super) fn new(lines: mpsc::Sender<Vec<u8>>, subscriptions: Subscriptions) -> Self {
        Self {
            lines: PollSender::new(lines),
            subscriptions,
            wait_for: None,
            partial: Vec::new(),
        }
    }
}

fn broken_pipe<E>(_: E) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(wait_for) = &mut this.wait_for {
            // Said, or never to be.
            let _ = ready!(Pin::new(wait_for).poll(cx));
            this.wait_for = None;
        }
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            this.partial.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        };
        ready!(this.lines.poll_reserve(cx)).map_err(broken_pipe)?;
        let (ending, _) = bytes.split_at(end + 1);
        let mut line = std::mem::take(&mut this.partial);
        line.extend_from_slice(ending);
        match this.subscriptions.inspect(&line) {
            RmcpLine::Forward => this.lines.send_item(line).map_err(broken_pipe)?,
            RmcpLine::Withhold(wait_for) => {
                this.lines.abort_send();
                this.wait_for = Some(wait_for);
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
