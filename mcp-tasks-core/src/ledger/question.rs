//! What the body asks of the replay machine, and what the machine says.

use super::{EntryKind, Fingerprint, InputKind, Ledger};
use crate::ledger::InputRequest;
use crate::{Json, Timestamp};

/// A question, as the body puts it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question<'a> {
    /// What it asks of the client.
    pub kind: InputKind,
    /// The author's key; without one the key is `elicit-<ordinal>`.
    pub key: Option<&'a str>,
    /// What is asked, in few words.
    pub label: &'a str,
    /// The request as it would go to the client: method and params.
    pub request: &'a Json,
    /// The hash of the request.
    pub fingerprint: Fingerprint,
    /// Why the client cannot be asked, as the refusal to record; absent if it can be.
    pub refusal: Option<&'a Json>,
}

impl<'a> Question<'a> {
    /// A question that the client can be asked, under the key the ordinal gives.
    #[must_use]
    pub const fn new(kind: InputKind, label: &'a str, request: &'a Json, fingerprint: Fingerprint) -> Self {
        Self {
            kind,
            key: None,
            label,
            request,
            fingerprint,
            refusal: None,
        }
    }
}

/// What became of a look into the ledger.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "the body goes on, waits or ends by it"]
#[non_exhaustive]
pub enum Looked {
    /// The recorded response, delivered with this look: the body goes on with it.
    Delivered {
        /// What kind of entry it was; [`EntryKind::Refusal`] where a question was not answered.
        kind: EntryKind,
        /// The response.
        response: Json,
    },
    /// The body waits: for the turn of its answer, for the replay to catch up, or because a question is open.
    Held,
    /// Nothing is recorded at this place.
    Absent,
    /// Something else is recorded at this place: the run is over, see [`Cursor::mismatch`](super::Cursor::mismatch).
    Diverged,
}

/// What became of a question that was put.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "the body goes on or waits by it"]
#[non_exhaustive]
pub enum Asked {
    /// The answer, or the refusal, delivered.
    Delivered {
        /// What kind of entry it was.
        kind: EntryKind,
        /// The response.
        response: Json,
    },
    /// The body waits: the question is open, or its answer's turn has not come, or the run is over.
    Pending,
}

/// What became of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the body goes on or waits by it"]
#[non_exhaustive]
pub enum Slept {
    /// It is over, and the body goes on.
    Over,
    /// The body is to be woken at this instant, to look again.
    Until(Timestamp),
    /// The body waits for something else first: its turn, the end of the replay, or an open question.
    Held,
    /// Something else is recorded at this place: the run is over, see [`Cursor::mismatch`](super::Cursor::mismatch).
    Diverged,
}

/// A mistake in the body that no replay can mend; it fails the task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Two questions of one task under one key (Tasks extension, "Task Update Requests": a key must be unique over the
    /// lifetime of a task).
    #[error("the key {key:?} was used for two questions of this task; give each question a key of its own")]
    KeyUsedTwice {
        /// The key.
        key: Box<str>,
    },
    /// A key in the space the framework uses itself.
    #[error("the key {key:?} cannot be used: a key is not empty, has no `~` and does not start with `elicit-`")]
    KeyReserved {
        /// The key.
        key: Box<str>,
    },
    /// The body made more calls on its context, questions included, than a ledger holds, or was told more.
    #[error(
        "the task keeps too much: a ledger holds at most {MAX_ENTRIES} entries and {MAX_BYTES} bytes of results; keep less \
         in each step, or hand the work on to further tasks"
    )]
    LedgerFull,
}

/// The most entries a ledger holds. A body that makes more calls is a loop without an end, or should be several tasks: a
/// replay goes through all of them.
pub const MAX_ENTRIES: usize = 10_000;

/// The most bytes that the results in a ledger may have together. A record is read and written whole.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What one write has to store when the body is parked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Suspension {
    /// The ledger as it stands.
    pub ledger: Ledger,
    /// The questions to publish, in the order of their ordinals.
    pub open: Vec<InputRequest>,
}

/// The keys the framework gives to questions whose author gave none.
const OWN_KEYS: &str = "elicit-";

/// The key a question is published under first: the author's, or one made of the ordinal.
pub(super) fn first_key(ordinal: u32, key: Option<&str>) -> Result<Box<str>, Fault> {
    match key {
        None => Ok(format!("{OWN_KEYS}{ordinal}").into()),
        Some(key) if key.is_empty() || key.contains('~') || key.starts_with(OWN_KEYS) => {
            Err(Fault::KeyReserved { key: key.into() })
        }
        Some(key) => Ok(key.into()),
    }
}

/// The key of a question's first asking: `confirm` for `confirm~2`.
pub(crate) fn base_key(key: &str) -> &str {
    key.split_once('~').map_or(key, |(base, _)| base)
}
