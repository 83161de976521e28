//! Requests as bytes, made once and sent many times.

use std::io::Write;

use serde_json::{Value, json};

/// The revision that has the extension.
const VERSION: &str = "2026-07-28";

/// Stands for a task's id in what a template is made of.
const ID: &str = "{task}";

/// Capabilities of a client that knows tasks and can ask its user.
fn declared() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Capabilities of a client that can ask its user and does not know tasks.
fn undeclared() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// One request, whole but for the id of its task.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// The head up to the value of `Mcp-Name`, or to its end if the request has no such header.
    head: Vec<u8>,
    /// What `Mcp-Name` says, if that is not the task.
    name: Option<String>,
    /// The body in the pieces between which the id stands.
    body: Vec<String>,
}

impl Template {
    /// A request for `path` of the server at `authority`.
    fn new(authority: &str, path: &str, method: &str, params: Value, capabilities: &Value) -> Self {
        let name = match params.get("name").or_else(|| params.get("taskId")) {
            Some(Value::String(name)) => name.clone(),
            _ => String::new(),
        };
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n"
        );
        if !name.is_empty() {
            head.push_str("Mcp-Name: ");
        }
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        Self {
            head: head.into_bytes(),
            name: (name != ID).then_some(name),
            body: body.split(ID).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn call(authority: &str, path: &str, tool: &str) -> Self {
        let params = json!({"name": tool, "arguments": {}});
        Self::new(authority, path, "tools/call", params, &declared())
    }

    pub(crate) fn undeclared_call(authority: &str, path: &str, tool: &str) -> Self {
        let params = json!({"name": tool, "arguments": {}});
        Self::new(authority, path, "tools/call", params, &undeclared())
    }

    pub(crate) fn get(authority: &str, path: &str) -> Self {
        Self::new(authority, path, "tasks/get", json!({"taskId": ID}), &declared())
    }

    /// Answers the question under `key`.
    pub(crate) fn update(authority: &str, path: &str, key: &str) -> Self {
        let responses = json!({key: {"action": "accept", "content": {"proceed": true}}});
        let params = json!({"taskId": ID, "inputResponses": responses});
        Self::new(authority, path, "tasks/update", params, &declared())
    }

    /// Listens to the changes of one task.
    pub(crate) fn listen(authority: &str, path: &str) -> Self {
        let params = json!({"notifications": {"taskIds": [ID]}});
        Self::new(authority, path, "subscriptions/listen", params, &declared())
    }

    /// Writes the request for the task `id` into `out`, in place of what was there.
    pub(crate) fn render(&self, id: &str, out: &mut Vec<u8>) {
        let gaps = self.body.len() - 1;
        let length = self.body.iter().map(String::len).sum::<usize>() + gaps * id.len();
        out.clear();
        out.extend_from_slice(&self.head);
        match self.name.as_deref() {
            Some("") => {}
            name => {
                out.extend_from_slice(name.unwrap_or(id).as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        // Writing to a vector does not fail.
        let _ = write!(out, "Content-Length: {length}\r\n\r\n");
        for (place, piece) in self.body.iter().enumerate() {
            if place > 0 {
                out.extend_from_slice(id.as_bytes());
            }
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// The request for the task `id`.
    pub(crate) fn prepare(&self, id: &str) -> Vec<u8> {
        let mut request = Vec::new();
        self.render(id, &mut request);
        request
    }
}
