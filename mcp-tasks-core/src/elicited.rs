//! What came of a question to the user.

/// What the user did with a question. All three are answers: none is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has three actions, and a body matches all of them"
)]
pub enum Elicited<T> {
    /// Agreed, with the form filled in.
    Accept(T),
    /// Said no.
    Decline,
    /// Closed the question without an answer.
    Cancel,
}

impl<T> Elicited<T> {
    /// The form, if the user agreed.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(form) => Some(form),
            Self::Decline | Self::Cancel => None,
        }
    }
}
