//! One message a line: standard streams of a child process, or any pair of streams.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio_util::codec::{AnyDelimiterCodec, FramedRead};

use super::{MAX_MESSAGE, Verbatim, response_id, subscription_id, wrap};

/// How long a server may take to read what is on its way to it before its input is closed; how long a child may take to end
/// then, and once more after it was asked to. Servers that store something on the way out are done well before, and no user wants
/// to wait longer for a program to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// SIGTERM, the same number on every Unix.
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// Requests whose results are to be left whole.
type Marked = Arc<Mutex<HashMap<RequestId, Verbatim>>>;

/// A connection on which every line is a message.
pub(in crate::client) struct LineTransport<R, W> {
    // Bytes: a line that is no UTF-8 is no message, and no reason to end.
    lines: FramedRead<R, AnyDelimiterCodec>,
    // Messages are sent at the same time, and a line must not be cut by another.
    writer: Arc<tokio::sync::Mutex<Option<W>>>,
    marked: Marked,
    /// The `server/discover` that was given up for an `initialize`, because a slow start left it without an answer. The
    /// answer that comes after all is not one to the `initialize`.
    discover: Option<RequestId>,
    abandoned_discover: Option<RequestId>,
    child: Option<Box<dyn ChildWrapper>>,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    pub(in crate::client) fn new(reader: R, writer: W) -> Self {
        Self {
            lines: FramedRead::new(
                reader,
                AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), MAX_MESSAGE),
            ),
            writer: Arc::new(tokio::sync::Mutex::new(Some(writer))),
            marked: Marked::default(),
            discover: None,
            abandoned_discover: None,
            child: None,
        }
    }
}

impl LineTransport<ChildStdout, ChildStdin> {
    /// Starts a server as a child, whose standard error stays what the command says.
    pub(in crate::client) fn spawn(mut command: Command) -> io::Result<Self> {
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut child = CommandWrap::from(command).wrap(KillOnDrop).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let mut lines = Self::new(stdout, stdin);
        lines.child = Some(child);
        Ok(lines)
    }
}

fn lock(marked: &Marked) -> std::sync::MutexGuard<'_, HashMap<RequestId, Verbatim>> {
    marked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R, W> LineTransport<R, W> {
    /// What a line says to rmcp; nothing if it is for us, or no message.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let mut value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                if !line.trim_ascii().is_empty() {
                    tracing::debug!(%error, "the server wrote a line that is no message");
                }
                return None;
            }
        };
        let object = value.as_object()?;
        if let Some(id) = response_id(object) {
            if self.abandoned_discover.as_ref() == Some(&id) {
                return None;
            }
            if lock(&self.marked).remove(&id).is_some() {
                // In our spelling.
                value["id"] = id.into_json_value();
                wrap(&mut value);
            }
        } else if let Some(id) = subscription_id(object) {
            let mark = lock(&self.marked).get(&id).cloned();
            if mark.is_some_and(|mark| mark.consume_notification(&mut value)) {
                return None;
            }
        }
        match serde_json::from_value(value) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::debug!(%error, "the server sent something that is no message of the protocol");
                None
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let Some((mark, id)) = Verbatim::of(&message) {
            lock(&self.marked).insert(id, mark);
        } else if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            lock(&self.marked).remove(id);
        }
        if let JsonRpcMessage::Request(request) = &message {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.abandoned_discover = self.discover.take(),
                _ => {}
            }
        }
        let writer = self.writer.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.lines.next().await? {
                Ok(line) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Err(error) => {
                    // Whose answer that line was is not known, so all who wait have to be told: by the end.
                    tracing::warn!(%error, "the connection to the server is closed, its output cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A server that reads no more holds up whatever is written to it, and is not to hold up its end as well.
        let closing = async {
            if let Some(mut writer) = self.writer.lock().await.take() {
                // A server that is gone already has closed its end.
                let _ = writer.shutdown().await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, child.wait()).await.is_ok() {
            return Ok(());
        }
        #[cfg(unix)]
        if child.signal(SIGTERM).is_ok() && tokio::time::timeout(CLOSE_TIMEOUT, child.wait()).await.is_ok() {
            return Ok(());
        }
        Box::into_pin(child.kill()).await
    }
}
