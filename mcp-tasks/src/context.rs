// stub
//! What the function of a tool can ask of its run.

/// What the function of a tool can ask of its run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolContext {}

/// Why there is no answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// The client of this request did not declare that it can ask its user.
    #[error("the client cannot be asked")]
    NotSupported,
}

impl ElicitError {
    /// The protocol error to answer with, if it is one.
    #[must_use]
    pub fn to_error_data(&self) -> Option<rmcp::ErrorData> {
        Some(rmcp::ErrorData::internal_error(self.to_string(), None))
    }
}
