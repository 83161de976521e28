//! Responses to lines that are not decoded.

use rmcp::ErrorData;

use super::id_scanner::{IdScanner, MessageKind};
use super::lines::MAX_LINE;
use crate::serve::subscription::refusal;

/// The response to a line that is too long, unless it was a message that gets none.
pub(super) fn too_long(kind: MessageKind) -> Option<Vec<u8>> {
    let id = match kind {
        MessageKind::Request(id) => Some(id),
        MessageKind::RequestWithoutId | MessageKind::Unknown => None,
        MessageKind::Unanswered => {
            tracing::warn!("a notification or a response of more than {MAX_LINE} bytes is ignored");
            return None;
        }
    };
    let error = ErrorData::invalid_request(
        format!("Invalid request: it is longer than {MAX_LINE} bytes, which is what this server reads"),
        None,
    );
    Some(refusal(id.as_ref(), &error))
}

/// The response to a line that is not JSON (JSON-RPC 2.0, section 5.1), unless it looks like a response or a notification,
/// which get none: it may be an error on its way back to its sender. A blank line is no message.
pub(super) fn undecodable(line: &[u8], reason: &serde_json::Error) -> Option<Vec<u8>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let mut scanner = IdScanner::default();
    scanner.scan(line);
    let id = match scanner.kind() {
        MessageKind::Request(id) => Some(id),
        MessageKind::RequestWithoutId | MessageKind::Unknown => None,
        MessageKind::Unanswered => {
            tracing::debug!(%reason, "a notification or a response that is not JSON is ignored");
            return None;
        }
    };
    let error = ErrorData::parse_error(format!("Parse error: it is not JSON: {reason}"), None);
    Some(refusal(id.as_ref(), &error))
}
