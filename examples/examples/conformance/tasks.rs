//! The tools of the suite's `tasks-*` scenarios.

use std::time::Duration;

use mcp_tasks::prelude::*;

/// Greets by name; never a task.
#[mcp_tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Computes for as long as it is told to.
#[mcp_task]
async fn slow_compute(
    ctx: ToolContext,
    /// How long to compute, in seconds
    seconds: f64,
    /// What to call the result
    label: Option<String>,
) -> Result<String, ToolError> {
    let time = Duration::try_from_secs_f64(seconds)?;
    ctx.progress(0.0).total(seconds).message("computing").send();
    tokio::time::sleep(time).await;
    Ok(format!(
        "{}: computed for {seconds} s",
        label.as_deref().unwrap_or("result")
    ))
}

/// Works for a second and fails as a tool does; a task or nothing.
#[mcp_task(required = true)]
async fn failing_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("the job failed, as it always does"))
}

/// Fails as the protocol does.
#[mcp_task]
async fn protocol_error_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    Err(ToolError::protocol(mcp_tasks::rmcp::ErrorData::internal_error(
        "the job broke the protocol",
        None,
    )))
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Whether to go on
    confirm: bool,
}

/// Deletes a file, if the user agrees. (It deletes nothing.)
#[mcp_task]
async fn confirm_delete(
    ctx: ToolContext,
    /// The file to delete
    filename: String,
) -> Result<String, ToolError> {
    Ok(match ctx.elicit(format!("Delete {filename}?")).await? {
        Elicited::Accept(Confirm { confirm: true }) => format!("deleted {filename}"),
        _ => format!("kept {filename}"),
    })
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Name {
    /// A name
    name: String,
}

/// Asks two questions at the same time.
#[mcp_task]
async fn multi_input(ctx: ToolContext) -> Result<String, ToolError> {
    let first = ctx.elicit::<Name>("What is the first name?").key("first");
    let second = ctx.elicit::<Name>("What is the second name?").key("second");
    let (first, second) = tokio::join!(first, second);
    let name = |answer: Elicited<Name>| answer.accepted().map_or_else(|| "nobody".to_owned(), |form| form.name);
    Ok(format!("{} and {}", name(first?), name(second?)))
}

/// Asks for a name while it is still a call, and greets as a task.
#[mcp_task(required = true, defer)]
async fn test_tool_with_task(ctx: ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Name>("What is your name?").key("user_name").await?;
    ctx.defer().await?;
    Ok(match answer {
        Elicited::Accept(Name { name }) => format!("Hello, {name}!"),
        _ => "Hello, whoever you are!".to_owned(),
    })
}
