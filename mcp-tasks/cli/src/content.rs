//! Results, questions and tasks as text.

use serde_json::Value;

use crate::arguments::described;
use crate::schema::fields;
use crate::text;
use mcp_tasks::client::{InputKind, InputRequest, ToolResult};

/// What a tool returned: text as it is, structured content laid out, everything else described.
pub(crate) fn result(result: &ToolResult) -> String {
    let structured = result.structured();
    let mut pieces: Vec<String> = result
        .content()
        .iter()
        .filter(|piece| !repeats(piece, structured))
        .map(piece)
        .collect();
    if let Some(structured) = structured {
        pieces.push(text::json(structured));
    }
    pieces.join("\n")
}

/// Whether a piece is the structured content once more, as text: servers send it for older clients.
fn repeats(piece: &Value, structured: Option<&Value>) -> bool {
    let Some(structured) = structured else { return false };
    let words = piece.get("text").and_then(Value::as_str);
    words.is_some_and(|words| serde_json::from_str::<Value>(words).is_ok_and(|value| value == *structured))
}

fn piece(piece: &Value) -> String {
    let member = |name: &str| piece.get(name).and_then(Value::as_str);
    match member("type") {
        Some("text") => member("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let size = member("data").map(size).unwrap_or_default();
            format!("[{kind}: {}{size}]", member("mimeType").unwrap_or("of no stated type"))
        }
        Some("resource_link") => {
            let name = member("title").or_else(|| member("name"));
            let mut words = format!("[resource: {}", member("uri").unwrap_or("without a URI"));
            for more in [name, member("mimeType"), member("description")].into_iter().flatten() {
                words.push_str(", ");
                words.push_str(more);
            }
            words + "]"
        }
        Some("resource") => embedded(piece.get("resource").unwrap_or(&Value::Null)),
        Some(kind) => format!("[{kind}: {}]", text::json(piece)),
        None => text::json(piece),
    }
}

fn embedded(resource: &Value) -> String {
    let member = |name: &str| resource.get(name).and_then(Value::as_str);
    let mut head = format!("[resource: {}", member("uri").unwrap_or("without a URI"));
    if let Some(mime) = member("mimeType") {
        head.push_str(", ");
        head.push_str(mime);
    }
    match (member("text"), member("blob")) {
        (Some(words), _) => format!("{head}]\n{words}"),
        (None, blob) => format!("{head}{}]", blob.map(size).unwrap_or_default()),
    }
}

/// The size of what base64 stands for.
fn size(base64: &str) -> String {
    let data = base64.trim_end_matches('=').len();
    format!(", {} bytes", data * 3 / 4)
}

/// A question: who it is for, and what can be answered.
pub(crate) fn question(request: &InputRequest) -> String {
    let mut words = format!("question {}", text::line(request.key()));
    if let Some(message) = request.message() {
        words.push_str(&format!(": {message}"));
    }
    let params = request.raw().get("params");
    let param = |name: &str| params.and_then(|params| params.get(name));
    match request.kind() {
        Some(InputKind::Form) => {
            for field in param("requestedSchema").map(fields).unwrap_or_default() {
                words.push_str(&format!("\n  {}", described(&field)));
            }
        }
        Some(InputKind::Url) => {
            let url = param("url").and_then(Value::as_str).unwrap_or_default();
            words.push_str(&format!("\n  the page {}", text::line(url)));
        }
        Some(InputKind::Sampling) => words.push_str("\n  a completion (sampling), which this program does not make"),
        Some(InputKind::Roots) => words.push_str("\n  the client's roots, of which this program has none"),
        _ => words.push_str("\n  something that this program does not know"),
    }
    words
}
