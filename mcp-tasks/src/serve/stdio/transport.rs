//! rmcp's transport over standard input and output.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};

use rmcp::model::ProtocolVersion;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;
use tokio_util::sync::CancellationToken;

use super::handshake::HandshakeFilter;
use super::lines::{InputLine, LineSplitter};
use super::refusal::{too_long, undecodable};
use super::stdin::Stdin;
use super::subscriptions::{Route, Subscriptions};
use super::unanswered::Unanswered;
use crate::serve::subscription::refusal;

/// What the client says, until it closes its end or the server is told to stop; and what rmcp says, in the order in which it
/// says it.
///
/// Subscriptions to tasks are taken out, and what rmcp's own transport passes over in silence is answered.
pub(super) struct StdioTransport {
    stdin: Stdin,
    splitter: LineSplitter,
    /// Of the chunk that was read last.
    lines: VecDeque<InputLine>,
    /// Responses to lines that go no further.
    refusals: VecDeque<Vec<u8>>,
    handshake: HandshakeFilter,
    subscriptions: Arc<Subscriptions>,
    unanswered: Arc<Unanswered>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Held by the message of rmcp's that is sent next.
    turn: Arc<Mutex<()>>,
    stop: CancellationToken,
    input_end: CancellationToken,
    /// When the input ended.
    ended: Arc<OnceLock<Instant>>,
}

impl StdioTransport {
    /// Reads until `stdin` ends or `stop` fires; then `input_end` fires and `ended` is set. `versions` are those of the protocol
    /// that the server speaks.
    pub(super) fn new(
        stdin: Stdin,
        outgoing: mpsc::Sender<Vec<u8>>,
        subscriptions: Arc<Subscriptions>,
        versions: Vec<ProtocolVersion>,
        stop: CancellationToken,
        input_end: CancellationToken,
        ended: Arc<OnceLock<Instant>>,
    ) -> Self {
        Self {
            stdin,
            splitter: LineSplitter::default(),
            lines: VecDeque::new(),
            refusals: VecDeque::new(),
            handshake: HandshakeFilter::new(versions),
            subscriptions,
            unanswered: Arc::default(),
            outgoing,
            turn: Arc::default(),
            stop,
            input_end,
            ended,
        }
    }

    /// The next message for rmcp. Cancel safe.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while let Some(line) = self.lines.pop_front() {
                if let Some(message) = self.message(line) {
                    return Some(message);
                }
            }
            self.send_refusals().await;
            self.unanswered.wait_while_many().await;
            match self.stdin.chunks.recv().await {
                Some(Ok(chunk)) => self.splitter.split(&chunk, &mut self.lines),
                Some(Err(error)) => {
                    tracing::error!(%error, "stdin cannot be read");
                    return None;
                }
                None => self.lines.push_back(self.splitter.finish()?),
            }
        }
    }

    /// The message in a line, if it is for rmcp.
    fn message(&mut self, line: InputLine) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = match line {
            InputLine::Complete(line) => line,
            InputLine::TooLong(kind) => {
                self.refusals.extend(too_long(kind));
                return None;
            }
        };
        match JsonRpcMessageCodec::new().decode(&mut BytesMut::from(&*line)) {
            Ok(message) => {
                let message = message?;
                match self.subscriptions.route(&message, &line) {
                    Route::Rmcp => {
                        if !self.handshake.admits(&message) {
                            return None;
                        }
                        self.unanswered.received(&message);
                        return Some(message);
                    }
                    Route::Handled => {}
                    Route::Refused(response) => self.refusals.push_back(response),
                }
            }
            // JSON that is no message: rmcp's own transport says the same.
            Err(JsonRpcMessageCodecError::Serde(error)) if error.is_data() => {
                tracing::debug!(%error, "a line is no message");
                let error = ErrorData::invalid_request("Invalid request", None);
                self.refusals.push_back(refusal(None, &error));
            }
            Err(JsonRpcMessageCodecError::Serde(error)) => self.refusals.extend(undecodable(&line, &error)),
            Err(error) => tracing::error!(%error, "a line cannot be decoded"),
        }
        None
    }

    /// Hands over the refusals and waits until one more could be: a client that does not read its answers has to wait with
    /// its requests, or they would fill the memory. Cancel safe.
    async fn send_refusals(&mut self) {
        // A client that has closed its end may wait for the server to end without reading, and sends no more than what is
        // here already.
        while let Some(permit) = self.stdin.closed.run_until_cancelled(self.outgoing.reserve()).await {
            match (permit, self.refusals.pop_front()) {
                (Ok(permit), Some(refusal)) => permit.send(refusal),
                // All are handed over, or stdout is closed, which rmcp finds out when it writes next.
                _ => return,
            }
        }
    }

    fn finish(&mut self) {
        let _ = self.ended.set(Instant::now());
        self.input_end.cancel();
        let (refusals, outgoing) = (std::mem::take(&mut self.refusals), self.outgoing.clone());
        if !refusals.is_empty() {
            tokio::spawn(async move {
                for refusal in refusals {
                    if outgoing.send(refusal).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (turn, outgoing) = (self.turn.clone(), self.outgoing.clone());
        let (subscriptions, unanswered) = (self.subscriptions.clone(), self.unanswered.clone());
        async move {
            let _turn = turn.lock().await;
            // With room for it first: a subscription counts as open until its response is handed over.
            let permit = outgoing.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
            unanswered.sent(&message);
            match subscriptions.inspect(&message) {
                None => permit.send(serde_json::to_vec(&message)?),
                Some(acknowledged) => {
                    drop(permit);
                    // An error is a subscription that ended before it was acknowledged.
                    let _ = acknowledged.await;
                }
            }
            Ok(())
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let stop = self.stop.clone();
        let message = stop.run_until_cancelled(self.next()).await.flatten();
        if message.is_none() {
            self.finish();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
