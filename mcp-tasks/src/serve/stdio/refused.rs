//! What is said of lines that come no further than the door.

use rmcp::ErrorData;

use super::glance::{Glance, Seen};
use super::lines::LONGEST;
use crate::serve::message::Id;
use crate::serve::subscription::refusal;

/// What is said of a line that was too long, where there is anybody to say it to.
pub(super) fn too_long(seen: Seen) -> Option<Vec<u8>> {
    let id = match seen {
        Seen::Request(id) => Some(id),
        Seen::Nameless | Seen::Unknown => None,
        Seen::Unanswered => {
            tracing::warn!("a notification or a response of more than {LONGEST} bytes is passed over");
            return None;
        }
    };
    let error = ErrorData::invalid_request(
        format!("Invalid request: it is longer than {LONGEST} bytes, which is what this server reads"),
        None,
    );
    Some(line(id.as_ref(), &error))
}

/// What is said of a line that `reason` keeps from being decoded, if it is a request for all one can see. Anything else may
/// be no message at all, or an error on its way back to whom it came from: answers to those could go on without end.
pub(super) fn undecodable(text: &[u8], reason: &str) -> Option<Vec<u8>> {
    let mut glance = Glance::default();
    glance.look(text);
    let id = match glance.seen() {
        Seen::Request(id) => Some(id),
        Seen::Nameless => None,
        Seen::Unanswered | Seen::Unknown => {
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
