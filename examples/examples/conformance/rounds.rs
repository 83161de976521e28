//! Tools that ask the client: forms, its model, its roots. Each is one function, whether the question goes back as a round
//! of the call (2026-07-28) or as a request of the server's own (2025-11-25).

use std::time::Duration;

use mcp_tasks::context::{Asking, InputKind};
use mcp_tasks::prelude::*;
use serde_json::{Map, Value, json};

/// Asks the client's model.
#[mcp_tool]
async fn test_sampling(
    ctx: ToolContext,
    /// What to ask it
    prompt: String,
) -> Result<String, ToolError> {
    Ok(format!("LLM response: {}", message(&sample(&ctx, &prompt).await?)))
}

/// Asks the user for a name and an address.
#[mcp_tool]
async fn test_elicitation(
    ctx: ToolContext,
    /// What the user reads
    message: String,
) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    Ok(format!(
        "User response: {}",
        outcome(ctx.elicit_schema(message, &schema).await?)
    ))
}

/// Asks with a default in every field.
#[mcp_tool]
async fn test_elicitation_sep1034_defaults(ctx: ToolContext) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        },
    });
    let answer = ctx.elicit_schema("Please review the defaults", &schema).await?;
    Ok(format!("Elicitation completed: {}", outcome(answer)))
}

/// Asks for choices of every kind.
#[mcp_tool]
async fn test_elicitation_sep1330_enums(ctx: ToolContext) -> Result<String, ToolError> {
    let titled = |title: &str| {
        json!([
            { "const": "value1", "title": format!("First {title}") },
            { "const": "value2", "title": format!("Second {title}") },
            { "const": "value3", "title": format!("Third {title}") },
        ])
    };
    let untitled = ["option1", "option2", "option3"];
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": untitled },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": untitled } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    });
    let answer = ctx.elicit_schema("Please choose", &schema).await?;
    Ok(format!("Elicitation completed: {}", outcome(answer)))
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Name {
    /// A name
    name: String,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Colour {
    /// A colour
    color: String,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirmation {
    /// Whether it is all right
    ok: bool,
}

fn ask_name(ctx: &ToolContext) -> Asking<Elicited<Name>> {
    ctx.elicit("What is your name?").key("user_name")
}

fn named(answer: Elicited<Name>) -> String {
    answer.accepted().map_or_else(|| "nobody".to_owned(), |form| form.name)
}

/// Asks the user for a name.
#[mcp_tool]
async fn test_input_required_result_elicitation(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", named(ask_name(&ctx).await?)))
}

/// Asks the client's model.
#[mcp_tool]
async fn test_input_required_result_sampling(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(message(&sample(&ctx, "What is the capital of France?").await?))
}

/// Asks the client for its roots.
#[mcp_tool]
async fn test_input_required_result_list_roots(ctx: ToolContext) -> Result<String, ToolError> {
    let roots: Roots = ctx.roots().await?;
    let uris: Vec<_> = roots.roots.into_iter().map(|root| root.uri).collect();
    Ok(format!("Roots: {}", uris.join(", ")))
}

async fn confirmed(ctx: &ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Confirmation>("Please confirm").key("confirm").await?;
    Ok(format!("state-ok: {}", answer.accepted().is_some_and(|form| form.ok)))
}

/// Asks for a confirmation, which counts with the state of its round.
#[mcp_tool]
async fn test_input_required_result_request_state(ctx: ToolContext) -> Result<String, ToolError> {
    confirmed(&ctx).await
}

/// Asks for a confirmation, and refuses a state that was tampered with.
#[mcp_tool]
async fn test_input_required_result_tampered_state(ctx: ToolContext) -> Result<String, ToolError> {
    confirmed(&ctx).await
}

/// Asks three questions at once.
#[mcp_tool]
async fn test_input_required_result_multiple_inputs(ctx: ToolContext) -> Result<String, ToolError> {
    let (name, greeting, roots) = tokio::join!(
        ask_name(&ctx),
        sample(&ctx, "Generate a greeting").key("greeting"),
        ctx.roots::<Roots>().key("client_roots"),
    );
    Ok(format!(
        "{} {} ({} roots)",
        message(&greeting?),
        named(name?),
        roots?.roots.len()
    ))
}

/// Asks the user twice, one question after the other.
#[mcp_tool]
async fn test_input_required_result_multi_round(ctx: ToolContext) -> Result<String, ToolError> {
    let name = named(ctx.elicit("Step 1: What is your name?").key("step1").await?);
    let colour = ctx
        .elicit::<Colour>("Step 2: What is your favorite color?")
        .key("step2")
        .await?;
    let colour = colour
        .accepted()
        .map_or_else(|| "no colour".to_owned(), |form| form.color);
    Ok(format!("{name} likes {colour}."))
}

/// Asks only what the client can answer.
#[mcp_tool]
async fn test_input_required_result_capabilities(ctx: ToolContext) -> Result<String, ToolError> {
    let (forms, model) = (
        ctx.can_ask(InputKind::Form).await?,
        ctx.can_ask(InputKind::Sampling).await?,
    );
    let greeting = |ctx: &ToolContext| sample(ctx, "Generate a greeting").key("greeting");
    Ok(match (forms, model) {
        (true, true) => {
            let (name, greeting) = tokio::join!(ask_name(&ctx), greeting(&ctx));
            format!("{} {}", message(&greeting?), named(name?))
        }
        (false, true) => message(&greeting(&ctx).await?),
        _ => named(ask_name(&ctx).await?),
    })
}

/// Works only for a client with sampling.
#[mcp_tool]
async fn test_missing_capability(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(message(&sample(&ctx, "Generate a greeting").await?))
}

/// Reports progress while it works, then asks.
#[mcp_tool]
async fn test_streaming_elicitation(ctx: ToolContext) -> Result<String, ToolError> {
    for progress in [0.0, 50.0, 100.0] {
        ctx.progress(progress).total(100.0).message("working").send();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(format!("Hello, {}!", named(ask_name(&ctx).await?)))
}

fn sample(ctx: &ToolContext, prompt: &str) -> Asking<Value> {
    ctx.sample(&json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100,
    }))
}

/// The text of a sampled message.
fn message(sampled: &Value) -> String {
    let content = &sampled["content"];
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<Root>,
}

#[derive(Deserialize)]
struct Root {
    uri: String,
}

/// What the user did with a form, and what they filled in.
fn outcome(answer: Elicited<Map<String, Value>>) -> String {
    match answer {
        Elicited::Accept(content) => format!("action=accept, content={}", Value::Object(content)),
        Elicited::Decline => "action=decline".to_owned(),
        Elicited::Cancel => "action=cancel".to_owned(),
    }
}
