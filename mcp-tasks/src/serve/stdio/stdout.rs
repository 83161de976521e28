//! Standard output, written line by line.

use std::io::{self, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// How many lines may wait for the client to read them. A subscription whose line does not get in does not look at its tasks
/// meanwhile, so that what a slow client reads then is new.
const QUEUED_LINES: usize = 8;

/// Tells whether all was written.
pub(super) type Written = oneshot::Receiver<io::Result<()>>;

/// Starts to write lines to standard output, each with a line break. [`Written`] follows once every sender is gone.
///
/// Tokio's own standard output is written on a thread that its runtime waits for at its end: the server would stay for as
/// long as its client does not read. The thread here ends with the process.
///
/// # Errors
/// When the thread cannot be started.
pub(super) fn start_writer() -> io::Result<(mpsc::Sender<Vec<u8>>, Written)> {
    let (outgoing, lines) = mpsc::channel(QUEUED_LINES);
    let (done, written) = oneshot::channel();
    thread::Builder::new()
        .name("mcp-tasks-stdout".to_owned())
        .spawn(move || done.send(write(io::stdout(), lines)))?;
    Ok((outgoing, written))
}

fn write(mut to: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut line) = lines.blocking_recv() {
        line.push(b'\n');
        to.write_all(&line)?;
        if lines.is_empty() {
            to.flush()?;
        }
    }
    to.flush()
}
