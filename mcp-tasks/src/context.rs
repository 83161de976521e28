// stub
//! What the function of a tool can ask of its run.

/// What the function of a tool can ask of its run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolContext {}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
#[error("the client cannot be asked")]
#[non_exhaustive]
pub struct ElicitError {}

impl ElicitError {
    /// The protocol error to answer with, if it is one.
    #[must_use]
    pub fn to_error_data(&self) -> Option<rmcp::ErrorData> {
        Some(rmcp::ErrorData::internal_error(self.to_string(), None))
    }
}
