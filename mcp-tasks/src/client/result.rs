//! What a tool returned.

use rmcp::model::CallToolResult;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::malformed::Malformed;

/// What a tool returned, whether at once or as a task.
///
/// It is kept as the server sent it: members and kinds of content that this release does not know are still there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ToolResult {
    raw: Map<String, Value>,
}

impl ToolResult {
    /// Refuses what has nothing of a result in it, so that no other answer passes for an empty success.
    pub(super) fn decode(raw: Map<String, Value>) -> Result<Self, Malformed> {
        let is_result = raw.get("content").is_some_and(Value::is_array)
            || raw.contains_key("structuredContent")
            || raw.get("isError").is_some_and(Value::is_boolean);
        if !is_result {
            return Err(Malformed::new("a result of a tool without content"));
        }
        if raw.get("content").is_some_and(|content| !content.is_array()) {
            return Err(Malformed::new("a result of a tool whose content is no array"));
        }
        Ok(Self { raw })
    }

    /// Whether the tool says that it failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.raw.get("isError").and_then(Value::as_bool).unwrap_or_default()
    }

    /// The pieces of content, as they came.
    #[must_use]
    pub fn content(&self) -> &[Value] {
        match self.raw.get("content") {
            Some(Value::Array(content)) => content,
            _ => &[],
        }
    }

    /// The text in the content, one piece a line.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self
            .content()
            .iter()
            .filter(|piece| piece.get("type").and_then(Value::as_str) == Some("text"))
            .filter_map(|piece| piece.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured content.
    #[must_use]
    pub fn structured(&self) -> Option<&Value> {
        self.raw.get("structuredContent")
    }

    /// The structured content as a type of yours; without any, the text read as JSON, which is what servers send to
    /// clients of older revisions.
    ///
    /// # Errors
    /// If it does not fit `T`.
    pub fn decode_structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.structured() {
            Some(value) => T::deserialize(value),
            None => serde_json::from_str(&self.text()),
        }
    }

    /// rmcp's type for it, which leaves out what rmcp does not know.
    ///
    /// # Errors
    /// If there is content of a kind that rmcp does not know.
    pub fn to_rmcp(&self) -> Result<CallToolResult, serde_json::Error> {
        serde_json::from_value(Value::Object(self.raw.clone()))
    }

    /// Everything the server sent.
    #[must_use]
    pub const fn raw(&self) -> &Map<String, Value> {
        &self.raw
    }
}
