//! Tools that ask the client: forms, its model, its roots.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::{
    content::text,
    questions::{self, Call, Kept, Stop},
};

type ToolResult = Result<CallToolResult, Stop>;

/// `test_sampling`.
pub(crate) async fn sampling(call: &Call<'_>) -> ToolResult {
    let question = questions::sample(argument(call, "prompt")?, 100)?;
    let answers = call.ask([("completion", question)], None).await?;
    Ok(text(format!("LLM response: {}", answers.message("completion"))))
}

/// `test_elicitation`.
pub(crate) async fn elicitation(call: &Call<'_>) -> ToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    let question = questions::form(argument(call, "message")?, schema)?;
    let answers = call.ask([("user", question)], None).await?;
    Ok(text(format!("User response: {}", answers.outcome("user"))))
}

/// `test_elicitation_sep1034_defaults`: a default for every primitive type.
pub(crate) async fn elicitation_defaults(call: &Call<'_>) -> ToolResult {
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
    completed_form(call, "Please review the defaults", schema).await
}

/// `test_elicitation_sep1330_enums`: every way to offer a choice.
pub(crate) async fn elicitation_enums(call: &Call<'_>) -> ToolResult {
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
    completed_form(call, "Please choose", schema).await
}

async fn completed_form(call: &Call<'_>, message: &str, schema: Value) -> ToolResult {
    let answers = call.ask([("form", questions::form(message, schema)?)], None).await?;
    Ok(text(format!("Elicitation completed: {}", answers.outcome("form"))))
}

/// `test_input_required_result_elicitation`.
pub(crate) async fn ask_name(call: &Call<'_>) -> ToolResult {
    let question = questions::text_form("What is your name?", "name")?;
    let answers = call.ask([("user_name", question)], None).await?;
    Ok(text(format!("Hello, {}!", answers.field("user_name", "name"))))
}

/// `test_input_required_result_sampling`.
pub(crate) async fn ask_model(call: &Call<'_>) -> ToolResult {
    let question = questions::sample("What is the capital of France?", 100)?;
    let answers = call.ask([("capital_question", question)], None).await?;
    Ok(text(answers.message("capital_question")))
}

/// `test_input_required_result_list_roots`.
pub(crate) async fn ask_roots(call: &Call<'_>) -> ToolResult {
    let answers = call.ask([("client_roots", questions::roots()?)], None).await?;
    Ok(text(format!("Roots: {}", answers.roots("client_roots").join(", "))))
}

/// `test_input_required_result_request_state` and `test_input_required_result_tampered_state`: an answer counts only
/// together with the state of the round that asked for it.
pub(crate) async fn confirm_with_state(call: &Call<'_>) -> ToolResult {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    let question = questions::form("Please confirm", schema)?;
    let answers = call
        .ask([("confirm", question.clone())], Some(&Kept::default()))
        .await?;
    if call.in_rounds() && call.kept.is_none() {
        return Err(call.asked([("confirm", question)], Some(&Kept::default()))?);
    }
    Ok(text(format!("state-ok: {}", answers.field("confirm", "ok"))))
}

/// `test_input_required_result_multiple_inputs`: a form, a prompt and the roots in one round.
pub(crate) async fn ask_all(call: &Call<'_>) -> ToolResult {
    let questions = [
        ("user_name", questions::text_form("What is your name?", "name")?),
        ("greeting", questions::sample("Generate a greeting", 50)?),
        ("client_roots", questions::roots()?),
    ];
    let answers = call.ask(questions, Some(&Kept::default())).await?;
    Ok(text(format!(
        "{} {} ({} roots)",
        answers.message("greeting"),
        answers.field("user_name", "name"),
        answers.roots("client_roots").len()
    )))
}

/// `test_input_required_result_multi_round`: the second question comes after the first answer, which travels in the
/// state.
pub(crate) async fn two_rounds(call: &Call<'_>) -> ToolResult {
    let name = match call.kept.as_ref().and_then(|kept| kept.name.clone()) {
        Some(name) => name,
        None => {
            let question = questions::text_form("Step 1: What is your name?", "name")?;
            let answers = call.ask([("step1", question)], Some(&Kept::default())).await?;
            answers.field("step1", "name")
        }
    };
    let question = questions::text_form("Step 2: What is your favorite color?", "color")?;
    let kept = Kept {
        name: Some(name.clone()),
    };
    let answers = call.ask([("step2", question)], Some(&kept)).await?;
    Ok(text(format!("{name} likes {}.", answers.field("step2", "color"))))
}

/// `test_input_required_result_capabilities`: asks only what the client can answer.
pub(crate) async fn ask_what_is_supported(call: &Call<'_>) -> ToolResult {
    let capabilities = call.capabilities();
    let form = questions::text_form("What is your name?", "name")?;
    let sample = questions::sample("Generate a greeting", 50)?;
    match (
        questions::supports(&capabilities, &form),
        questions::supports(&capabilities, &sample),
    ) {
        (true, true) => {
            let answers = call.ask([("user_name", form), ("greeting", sample)], None).await?;
            Ok(text(format!(
                "{} {}",
                answers.message("greeting"),
                answers.field("user_name", "name")
            )))
        }
        (false, true) => {
            let answers = call.ask([("greeting", sample)], None).await?;
            Ok(text(answers.message("greeting")))
        }
        _ => {
            let answers = call.ask([("user_name", form)], None).await?;
            Ok(text(answers.field("user_name", "name")))
        }
    }
}

/// `test_missing_capability`: works only for a client with sampling.
pub(crate) async fn needs_sampling(call: &Call<'_>) -> ToolResult {
    let answers = call
        .ask([("greeting", questions::sample("Generate a greeting", 50)?)], None)
        .await?;
    Ok(text(answers.message("greeting")))
}

/// `test_streaming_elicitation`: progress while it works, then a question.
pub(crate) async fn streaming_elicitation(call: &Call<'_>) -> ToolResult {
    crate::content::progress(call).await?;
    ask_name(call).await
}

fn argument<'a>(call: &'a Call<'_>, name: &str) -> Result<&'a str, Stop> {
    call.arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Stop::Failed(format!("{name}: a text is required")))
}
