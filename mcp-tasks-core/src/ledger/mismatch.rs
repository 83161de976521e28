//! The report on a body that does not ask what it asked before.

use std::fmt;

use super::{Entry, EntryKind};

/// How a replay left the recorded path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Divergence {
    /// The call at this place is another one now.
    Different {
        /// What is asked now: kind and label.
        attempted: (EntryKind, Box<str>),
    },
    /// The body ended, or got stuck, without making the recorded call.
    NotReached,
    /// The body made the call and ended without the answer, which had reached it when it was recorded.
    NotAwaited,
    /// The body waits for this answer, but not for what had come before it when it was recorded.
    OutOfOrder,
}

/// A replay that left the recorded path: the execution stops, and no answer reaches a question it was not given to.
///
/// Its `Display` is meant for the tool's author: where, what was recorded, what happens now, and the usual causes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Mismatch {
    /// The place: which call on the context, counted from 0.
    pub ordinal: u32,
    /// What the ledger holds there: kind and label.
    pub recorded: (EntryKind, Box<str>),
    /// What happens now.
    pub divergence: Divergence,
    /// Whether the tool's input schema is another one than when the task was created; absent if that is not known.
    pub schema_changed: Option<bool>,
}

impl Mismatch {
    pub(super) fn at(entry: &Entry, divergence: Divergence) -> Self {
        Self {
            ordinal: entry.ordinal,
            recorded: (entry.kind, entry.label.clone()),
            divergence,
            schema_changed: None,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, label) = &self.recorded;
        write!(
            f,
            "the tool does not repeat itself, or its handler changed since this was begun: call {} on the context was {} {label:?}, ",
            self.ordinal,
            kind.as_str(),
        )?;
        match &self.divergence {
            Divergence::Different {
                attempted: (kind, label),
            } if self.recorded.1 == *label && self.recorded.0 == *kind => {
                f.write_str("and is the same in its words now but not in its details (schema, options)")?;
            }
            Divergence::Different {
                attempted: (kind, label),
            } => write!(f, "and is {} {label:?} now", kind.as_str())?,
            Divergence::NotReached => f.write_str("and the handler does not get there now")?,
            Divergence::NotAwaited => f.write_str("and the handler ends without its answer now")?,
            Divergence::OutOfOrder => {
                f.write_str("and the handler now waits for it without what came before it")?;
            }
        }
        match self.schema_changed {
            Some(true) => f.write_str(". The tool's input schema changed too: another build runs now")?,
            Some(false) => f.write_str(". The tool's input schema is unchanged")?,
            None => {}
        }
        f.write_str(
            ". Usual causes: a clock, a random number, the order of a HashMap or an attempt counter in what is asked; \
             an unbiased select!; a new build of the server with tasks still parked (set `version` on the attribute)",
        )
    }
}
