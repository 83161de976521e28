// stub
//! What the function of a tool can ask of its run.

use serde::de::DeserializeOwned;

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

/// An authenticated principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    issuer: Option<String>,
    subject: String,
}

impl Principal {
    /// Who vouches for the subject.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Whom the issuer vouches for.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// A kept claim.
    #[must_use]
    pub fn claim<T: DeserializeOwned>(&self, _name: &str) -> Option<T> {
        None
    }
}
