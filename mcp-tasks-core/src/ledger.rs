//! What the body of a task was told so far, so that it can be run again from the top.
//!
//! A task that waits for an answer has no thread and no future: it is its record. When the answer comes, the body runs
//! again from its first line, and every call it made on its context before is answered from the [`Ledger`] instead of
//! being made again. [`Cursor`] is the machine that does so for one execution; [`Mismatch`] is its report when the body
//! does not ask what it asked before.

use serde::{Deserialize, Serialize};

use crate::Json;

mod cursor;
mod fingerprint;
mod input_request;
mod mismatch;
mod question;

pub use cursor::Cursor;
pub use fingerprint::{Fingerprint, InvalidFingerprint, canonical_json};
pub use input_request::InputRequest;
pub use mismatch::{Divergence, Mismatch};
pub(crate) use question::base_key;
pub use question::{Asked, Fault, Looked, MAX_BYTES, MAX_ENTRIES, Question, Slept, Suspension};

/// What kind of call on the context an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// A question to the user, form or URL.
    Elicit,
    /// A request for a completion by the client's model.
    Sample,
    /// A request for the client's roots.
    Roots,
    /// A named piece of work whose result is kept.
    Step,
    /// A wait; the response is the instant at which it ends.
    Sleep,
    /// A reading of the clock.
    Now,
    /// Random bytes.
    Random,
    /// The point from which a call goes on as a task.
    Defer,
    /// Facts about the client, read through the context.
    Client,
    /// A question that was not asked, or not answered in a usable way; the response says why.
    Refusal,
}

impl EntryKind {
    /// The word that goes into fingerprints and reports. It is part of the stored format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Elicit => "elicit",
            Self::Sample => "sample",
            Self::Roots => "roots",
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Now => "now",
            Self::Random => "random",
            Self::Defer => "defer",
            Self::Client => "client",
            Self::Refusal => "refusal",
        }
    }
}

/// What a question asks of the client, which decides the capability it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputKind {
    /// `elicitation/create` in form mode.
    Form,
    /// `elicitation/create` in URL mode.
    Url,
    /// `sampling/createMessage`.
    Sampling,
    /// `roots/list`.
    Roots,
}

impl InputKind {
    /// The method of the request that asks for it.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The kind of ledger entry that records the answer.
    #[must_use]
    pub const fn entry_kind(self) -> EntryKind {
        match self {
            Self::Form | Self::Url => EntryKind::Elicit,
            Self::Sampling => EntryKind::Sample,
            Self::Roots => EntryKind::Roots,
        }
    }
}

/// One answered call on the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Entry {
    /// Which call it was, counted from 0 in the order in which the body made them.
    pub ordinal: u32,
    /// What kind of call.
    pub kind: EntryKind,
    /// The key under which a question was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
    /// What was asked, in few words, for reports: a step's name, a question's message.
    pub label: Box<str>,
    /// What was asked, in full, as a hash.
    pub fingerprint: Fingerprint,
    /// What the body was told, or will be.
    pub response: Json,
    /// The place of this answer in the order in which answers reached the body; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// How many calls the body had made when the answer reached it, or, while it has not, when it was last known not to
    /// have reached it. On replay the answer waits until as many have been made.
    pub issued: u32,
}

/// The answered calls of a task in the order of their ordinals, which may have gaps.
///
/// A call that was made but never answered (a step that lost a race, a question the body dropped) has no entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// A ledger of these entries; of two with one ordinal the first is kept.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.ordinal);
        entries.dedup_by_key(|entry| entry.ordinal);
        entries.shrink_to_fit();
        Self { entries }
    }

    /// The entries in the order of their ordinals.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry in its place. An entry for an ordinal that has one is dropped: an answer is never replaced.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if let Err(at) = self.entries.binary_search_by_key(&entry.ordinal, |entry| entry.ordinal) {
            self.entries.insert(at, entry);
        }
    }
}

/// A label for reports: the first line of `text`, at most 120 characters, so that a long question does not fill
/// the record twice.
#[must_use]
pub(crate) fn label(text: &str) -> Box<str> {
    const LONGEST: usize = 120;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]).into(),
        None => line.into(),
    }
}
