//! Whether a request declares the Tasks extension.

use rmcp::ErrorData;
use rmcp::model::{ProtocolVersion, TASKS_EXTENSION_ID};
use serde_json::{Value, json};

use crate::tool::elicit_error::missing_capability;

/// The revision of the protocol whose Tasks extension this release speaks.
pub(crate) const REVISION: &str = "2026-07-28";

/// [`REVISION`] in rmcp's type.
pub(crate) const PROTOCOL_VERSION: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// The member of the extension's settings that names a revision of it (SEP-3392, "Identifiers and compatibility").
const SETTING: &str = "revision";

/// What one request says about the Tasks extension (Tasks extension, "Capability Negotiation"). Neither an earlier
/// request nor an `initialize` counts, and revisions before 2026-07-28 have no extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TasksExtension {
    Declared,
    Undeclared,
    /// Its value is no object.
    Malformed,
}

impl TasksExtension {
    /// What these client capabilities say.
    pub(crate) fn of(capabilities: &Value) -> Self {
        let value = capabilities
            .get("extensions")
            .and_then(|extensions| extensions.get(TASKS_EXTENSION_ID));
        match value {
            None => Self::Undeclared,
            // What a client means by a revision that is not known here cannot be served.
            Some(Value::Object(settings)) if settings.get(SETTING).is_some_and(|revision| revision != REVISION) => {
                Self::Undeclared
            }
            Some(Value::Object(_)) => Self::Declared,
            Some(_) => Self::Malformed,
        }
    }

    /// Whether it is declared.
    ///
    /// # Errors
    /// `-32602` when its value is no object.
    pub(crate) fn is_declared(self) -> Result<bool, ErrorData> {
        match self {
            Self::Declared => Ok(true),
            Self::Undeclared => Ok(false),
            Self::Malformed => Err(ErrorData::invalid_params(
                format!("_meta: the value of {TASKS_EXTENSION_ID:?} must be an object"),
                None,
            )),
        }
    }

    /// Refuses a request about tasks that does not declare the extension, whatever its client declared before.
    ///
    /// # Errors
    /// `-32021`, or `-32602` when its value is no object.
    pub(crate) fn require(self) -> Result<(), ErrorData> {
        if self.is_declared()? {
            return Ok(());
        }
        Err(missing(
            "Missing required client capability: declare the extension io.modelcontextprotocol/tasks in this request's _meta",
        ))
    }
}

/// `-32021`: the request does not declare the extension.
pub(crate) fn missing(message: &'static str) -> ErrorData {
    missing_capability(message, json!({"extensions": {TASKS_EXTENSION_ID: {}}}))
}
