//! The plain tools: what `tools/list` says about them, and which function answers a call.

use std::sync::Arc;

use rmcp::model::{CallToolResponse, ErrorData, JsonObject, Tool};
use serde_json::{Value, json};

use crate::{
    changes::{Change, Changes},
    content,
    questions::{Call, Stop},
};

const EXTRA: &str = "test_changing_tool";

/// Every tool in the order of its name.
pub(crate) fn list(changes: &Changes) -> Vec<Tool> {
    let none = || json!({ "type": "object", "properties": {} });
    let mut tools = vec![
        tool(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            rich_schema(),
        ),
        tool("test_audio_content", "Returns a sound", none()),
        tool(
            "test_custom_header",
            "Takes an argument that is also sent as an HTTP header",
            header_schema(),
        ),
        tool("test_embedded_resource", "Returns an embedded resource", none()),
        tool("test_error_handling", "Always fails", none()),
        tool("test_image_content", "Returns an image", none()),
        tool(
            "test_logging_tool",
            "Logs three messages where the request wants them",
            none(),
        ),
        tool(
            "test_multiple_content_types",
            "Returns a text, an image and a resource",
            none(),
        ),
        tool("test_reconnection", "Answers after a moment", none()),
        tool("test_simple_text", "Returns a text", none()),
        tool("test_tool_with_logging", "Logs three messages", none()),
        tool("test_tool_with_progress", "Reports its progress", none()),
        tool(
            "test_trigger_prompt_change",
            "Adds a prompt to the list, or removes it",
            none(),
        ),
        tool(
            "test_trigger_resource_update",
            "Raises the revision of the watched resource",
            none(),
        ),
        tool(
            "test_trigger_tool_change",
            "Adds a tool to the list, or removes it",
            none(),
        ),
    ];
    if changes.extra_tool() {
        tools.push(tool(EXTRA, "A tool that comes and goes", none()));
        tools.sort_by(|a, b| a.name.cmp(&b.name));
    }
    tools
}

/// `tools/call`.
pub(crate) async fn call(name: &str, call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let changes = call.fixtures.changes();
    let result = match name {
        "json_schema_2020_12_tool" => Ok(check_contact(&call.arguments)),
        "test_audio_content" => Ok(content::audio()),
        "test_custom_header" => Ok(content::text(format!(
            "region: {}",
            call.arguments.get("region").and_then(Value::as_str).unwrap_or("(none)")
        ))),
        "test_embedded_resource" => Ok(content::embedded_resource()),
        "test_error_handling" => Ok(content::error()),
        "test_image_content" => Ok(content::image()),
        "test_logging_tool" | "test_tool_with_logging" => content::logging(call).await,
        "test_multiple_content_types" => Ok(content::multiple_content_types()),
        "test_reconnection" => Ok(content::reconnection().await),
        "test_simple_text" => Ok(content::simple_text()),
        "test_tool_with_progress" => content::progress(call).await,
        "test_trigger_prompt_change" => Ok(change(changes, Change::Prompts)),
        "test_trigger_resource_update" => Ok(change(changes, Change::WatchedResource)),
        "test_trigger_tool_change" => Ok(change(changes, Change::Tools)),
        EXTRA if changes.extra_tool() => Ok(content::text("This tool is listed only at times.")),
        _ => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None).into()),
    };
    Stop::of_tool(result)
}

fn tool(name: &'static str, description: &'static str, schema: Value) -> Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(name, description, Arc::new(schema))
}

fn change(changes: &Changes, change: Change) -> rmcp::model::CallToolResult {
    changes.apply(change);
    content::text("Changed.")
}

/// Keywords beyond `properties`, which must reach the client as they are.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn header_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "description": "Where to work", "x-mcp-header": "Region" },
        },
        "required": ["region"],
    })
}

/// `json_schema_2020_12_tool`.
fn check_contact(arguments: &JsonObject) -> rmcp::model::CallToolResult {
    let wanted = match arguments.get("contactMethod").and_then(Value::as_str) {
        Some("phone") => "phone",
        _ => "email",
    };
    match arguments.get(wanted).and_then(Value::as_str) {
        Some(contact) => content::text(format!("Contact by {wanted}: {contact}")),
        None => {
            let text = format!("{wanted}: a text is required");
            rmcp::model::CallToolResult::error(vec![rmcp::model::ContentBlock::text(text)])
        }
    }
}
