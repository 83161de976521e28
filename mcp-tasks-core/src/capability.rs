//! What a client declared that it can be asked.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::{InputKind, Json};

/// The client capabilities of one request, as its `_meta` declared them, kept as text.
///
/// A question is gated by the capabilities of the request that triggered the execution which asks it: the call, or the
/// `tasks/update` that resumed the task (2026-07-28, "Multi Round-Trip Requests": a server must not send an input
/// request the client has not declared support for).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientCapabilities(Json);

#[derive(Default, Deserialize)]
struct Declared {
    #[serde(default)]
    elicitation: Option<Elicitation>,
    #[serde(default)]
    sampling: Option<IgnoredAny>,
    #[serde(default)]
    roots: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Elicitation {
    #[serde(default)]
    form: Option<IgnoredAny>,
    #[serde(default)]
    url: Option<IgnoredAny>,
}

impl ClientCapabilities {
    /// Capabilities as a JSON object. Anything that is no such object declares nothing.
    #[must_use]
    pub const fn new(declared: Json) -> Self {
        Self(declared)
    }

    /// The text as it was declared.
    #[must_use]
    pub const fn as_json(&self) -> &Json {
        &self.0
    }

    /// Whether a client with these capabilities may be asked a question of this kind. An empty `elicitation` object
    /// stands for form mode alone (2026-07-28, "Elicitation", "Capabilities").
    ///
    /// ```
    /// use mcp_tasks_core::{ClientCapabilities, InputKind, Json};
    ///
    /// let declared = |text| ClientCapabilities::new(serde_json::from_str::<Json>(text).unwrap());
    /// assert!(declared(r#"{"elicitation":{}}"#).allow(InputKind::Form));
    /// assert!(!declared(r#"{"elicitation":{"url":{}}}"#).allow(InputKind::Form));
    /// assert!(!declared("{}").allow(InputKind::Form));
    /// ```
    #[must_use]
    pub fn allow(&self, kind: InputKind) -> bool {
        let declared: Declared = self.0.decode().unwrap_or_default();
        match kind {
            InputKind::Form => declared
                .elicitation
                .is_some_and(|e| e.form.is_some() || e.url.is_none()),
            InputKind::Url => declared.elicitation.is_some_and(|e| e.url.is_some()),
            InputKind::Sampling => declared.sampling.is_some(),
            InputKind::Roots => declared.roots.is_some(),
        }
    }
}
