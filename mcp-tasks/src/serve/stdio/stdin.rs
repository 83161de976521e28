//! Standard input, read in a way that a stopping process does not wait for.

use std::io::{self, Read};
use std::thread;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a pipe holds on the systems we know: more never comes at a time.
const CHUNK: usize = 64 * 1024;

/// How many chunks may wait for the server before the client has to.
const QUEUED_CHUNKS: usize = 4;

/// What the client writes.
pub(super) struct Stdin {
    pub(super) chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Fires when the client has closed its end, though chunks of it may still wait.
    pub(super) closed: CancellationToken,
}

/// Starts to read standard input.
///
/// Tokio's own standard input is read on a thread that its runtime waits for at its end: a server told to stop would stay
/// until its client writes once more. The thread here ends with the process.
///
/// # Errors
/// When the thread cannot be started.
pub(super) fn start_reader() -> io::Result<Stdin> {
    let (queue, chunks) = mpsc::channel(QUEUED_CHUNKS);
    let closed = CancellationToken::new();
    let on_end = closed.clone().drop_guard();
    thread::Builder::new()
        .name("mcp-tasks-stdin".to_owned())
        .spawn(move || {
            let _on_end = on_end;
            read(io::stdin(), &queue);
        })?;
    Ok(Stdin { chunks, closed })
}

fn read(mut from: impl Read, queue: &mpsc::Sender<io::Result<Vec<u8>>>) {
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
        if queue.blocking_send(outcome).is_err() || failed {
            return;
        }
    }
}
