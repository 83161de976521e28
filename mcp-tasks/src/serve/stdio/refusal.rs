//! What is said of lines that come no further than the door.

use rmcp::ErrorData;

use super::id_scanner::{IdScanner, MessageKind};
use super::lines::MAX_LINE;
use crate::serve::message::Id;
use crate::serve::subscription::refusal;

/// What is said of a line that was too long, where there is anybody to say it to.
pub(super) fn too_long(kind: MessageKind) -> Option<Vec<u8>> {
    let id = match kind {
        MessageKind::Request(id) => Some(id),
        MessageKind::RequestWithoutId | MessageKind::Unknown => None,
        MessageKind::Unanswered => {
            tracing::warn!("a notification or a response of more than {MAX_LINE} bytes is passed over");
            return None;
        }
    };
    let error = ErrorData::invalid_request(
        format!("Invalid request: it is longer than {MAX_LINE} bytes, which is what this server reads"),
        None,
    );
    Some(line(id.as_ref(), &error))
}

/// What is said of a line that `reason` keeps from being decoded, if it is a request for all one can see. Anything else may
/// be no message at all, or an error on its way back to whom it came from: answers to those could go on without end.
pub(super) fn undecodable(text: &[u8], reason: &str) -> Option<Vec<u8>> {
    let mut scanner = IdScanner::default();
    scanner.scan(text);
    let id = match scanner.kind() {
        MessageKind::Request(id) => Some(id),
        MessageKind::RequestWithoutId => None,
        MessageKind::Unanswered | MessageKind::Unknown => {
            tracing::debug!(reason, "a line that is no message is passed over");
            return None;
        }
    };
    let error = ErrorData::parse_error(format!("Parse error: {reason}"), None);
    Some(line(id.as_ref(), &error))
}

fn line(id: Option<&Id<'static>>, error: &ErrorData) -> Vec<u8> {
    let mut line = refusal(id, error);
    line.push(b'\n');
    line
}
