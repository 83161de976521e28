//! How the client says that an answer breaks the protocol.

/// An answer that breaks the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server sent {0}")]
pub(super) struct Malformed(String);

impl Malformed {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
