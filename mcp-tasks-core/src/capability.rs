//! What a client declared that it can be asked.

use std::collections::BTreeMap;

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

impl ClientCapabilities {
    /// Capabilities as a JSON object. What is no object declares nothing, and neither does a member that is none.
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
        let declared = |capability: &str| member(&self.0, capability);
        match kind {
            InputKind::Form | InputKind::Url => declared("elicitation").is_some_and(|modes| {
                let (form, url) = (member(&modes, "form").is_some(), member(&modes, "url").is_some());
                match kind {
                    InputKind::Url => url,
                    _ => form || !url,
                }
            }),
            InputKind::Sampling => declared("sampling").is_some(),
            InputKind::Roots => declared("roots").is_some(),
        }
    }
}

/// The member of this name, if both it and what it is in are objects.
fn member(object: &Json, name: &str) -> Option<Json> {
    let mut members: BTreeMap<String, Json> = object.decode().ok()?;
    members.remove(name).filter(Json::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_an_object_and_may_be_asked() {
        use InputKind::{Form, Roots, Sampling, Url};

        let table: [(&str, &[InputKind]); 14] = [
            (r#"{"elicitation":{}}"#, &[Form]),
            (r#"{"elicitation":{"form":{}}}"#, &[Form]),
            (r#"{"elicitation":{"url":{}}}"#, &[Url]),
            (r#"{"elicitation":{"form":{},"url":{}},"more":1}"#, &[Form, Url]),
            (r#"{"sampling":{"tools":{}}}"#, &[Sampling]),
            (r#"{"roots":{"listChanged":true}}"#, &[Roots]),
            (r#"{"elicitation":true,"sampling":{},"roots":{}}"#, &[Sampling, Roots]),
            (r#"{"elicitation":[],"sampling":true,"roots":null}"#, &[]),
            (r#"{"elicitation":{"url":true}}"#, &[Form]),
            ("{}", &[]),
            ("[]", &[]),
            ("[{},{},{}]", &[]),
            ("null", &[]),
            ("7", &[]),
        ];
        for (declared, allowed) in table {
            let capabilities = ClientCapabilities::new(serde_json::from_str(declared).unwrap());
            let may: Vec<_> = [Form, Url, Sampling, Roots]
                .into_iter()
                .filter(|kind| capabilities.allow(*kind))
                .collect();
            assert_eq!(may, allowed, "{declared}");
        }
    }
}
