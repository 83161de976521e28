//! One request and what came back.

use serde_json::{Map, Value, json};

/// The identifier of the extension.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The revision that has the extension.
pub(crate) const V2026: &str = "2026-07-28";

/// Capabilities that declare the extension.
pub(crate) fn declared() -> Value {
    json!({"elicitation": {}, "extensions": {TASKS: {}}})
}

/// Capabilities that do not.
pub(crate) fn undeclared() -> Value {
    json!({"elicitation": {}})
}

/// A request, before a wire adds what its transport and revision want.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) capabilities: Value,
    pub(crate) meta: Map<String, Value>,
    pub(crate) id: Option<Value>,
    pub(crate) user: Option<Value>,
    /// The `Mcp-Name` header, where it is not what the body says: `None` leaves it out.
    pub(crate) name: Option<Option<String>>,
}

impl Request {
    /// A request that declares the extension.
    pub(crate) fn new(method: &str, params: Value) -> Self {
        Self {
            method: method.to_owned(),
            params,
            capabilities: declared(),
            meta: Map::new(),
            id: None,
            user: None,
            name: None,
        }
    }

    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::new("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn get(id: &str) -> Self {
        Self::new("tasks/get", json!({"taskId": id}))
    }

    pub(crate) fn cancel(id: &str) -> Self {
        Self::new("tasks/cancel", json!({"taskId": id}))
    }

    pub(crate) fn update(id: &str, responses: Value) -> Self {
        Self::new("tasks/update", json!({"taskId": id, "inputResponses": responses}))
    }

    /// Without the extension.
    pub(crate) fn undeclared(self) -> Self {
        self.capabilities(undeclared())
    }

    pub(crate) fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn meta(mut self, key: &str, value: Value) -> Self {
        self.meta.insert(key.to_owned(), value);
        self
    }

    pub(crate) fn id(mut self, id: Value) -> Self {
        self.id = Some(id);
        self
    }

    /// From this user, as the fixture's `x-test-user` header has it.
    pub(crate) fn user(mut self, user: &Value) -> Self {
        self.user = Some(user.clone());
        self
    }

    pub(crate) fn header_name(mut self, name: Option<&str>) -> Self {
        self.name = Some(name.map(str::to_owned));
        self
    }

    /// What `Mcp-Name` has to say of the body.
    pub(super) fn name(&self) -> Option<String> {
        match &self.name {
            Some(name) => name.clone(),
            None => ["name", "taskId", "uri"]
                .iter()
                .find_map(|key| self.params.get(key)?.as_str().map(str::to_owned)),
        }
    }
}

/// What came back for a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The HTTP status, where there is one.
    pub(crate) status: Option<u16>,
    /// The response's body as text; for a stream of events that of its last one.
    pub(crate) text: String,
    /// The JSON-RPC response, or `null` if the body is none.
    pub(crate) message: Value,
    /// The notifications that came on the way, as far as the wire can tell whose they are.
    pub(crate) notifications: Vec<Value>,
}

impl Reply {
    #[track_caller]
    pub(crate) fn result(&self) -> &Value {
        match self.message.get("result") {
            Some(result) => result,
            None => panic!("no result: {self:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn error(&self) -> &Value {
        match self.message.get("error") {
            Some(error) => error,
            None => panic!("no error: {self:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap()
    }

    #[track_caller]
    pub(crate) fn error_words(&self) -> &str {
        self.error()["message"].as_str().unwrap()
    }

    /// The text of a tool's result.
    #[track_caller]
    pub(crate) fn words(&self) -> &str {
        words(self.result())
    }

    /// An error of this code, with this status where the wire is HTTP.
    #[track_caller]
    pub(crate) fn refused(&self, code: i64, status: u16) {
        assert_eq!(self.code(), code, "{self:?}");
        self.has_status(status);
    }

    /// This status, where the wire is HTTP.
    #[track_caller]
    pub(crate) fn has_status(&self, status: u16) {
        if let Some(got) = self.status {
            assert_eq!(got, status, "{self:?}");
        }
    }

    /// An acknowledgement: `resultType` and nothing else but `_meta`.
    #[track_caller]
    pub(crate) fn is_ack(&self) {
        let mut result = self.result().as_object().unwrap().clone();
        result.remove("_meta");
        assert_eq!(Value::Object(result), json!({"resultType": "complete"}));
        self.has_status(200);
    }
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn words(result: &Value) -> &str {
    match result["content"][0]["text"].as_str() {
        Some(text) => text,
        None => panic!("no text: {result}"),
    }
}
