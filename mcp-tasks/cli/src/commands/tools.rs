//! `mcp-tasks tools`

use rmcp::model::Tool;
use serde_json::Value;

use super::session::{Context, Session};
use crate::arguments::described;
use crate::outcome::{CommandError, Outcome, Report};
use crate::prompt::Unattended;
use crate::schema::fields;
use crate::server::Server;
use crate::text;

pub(super) async fn run(context: &mut Context, server: &str) -> Result<Report, CommandError> {
    let server = Server::parse(server)?;
    // Listing asks nothing; what is declared here decides what a server lists.
    let list = async |context: &mut Context, session: &Session| {
        let tools = context.interrupts.or(session.client.tools()).await??;
        Ok((tools, session.client.server_name()))
    };
    let (tools, name) = context.with_session(server, Unattended, list).await?;
    let text = match tools.is_empty() {
        true => "The server has no tools.".to_owned(),
        false => tools.iter().map(described_tool).collect::<Vec<_>>().join("\n"),
    };
    Ok(Report::new(Outcome::Success)
        .text(text)
        .member("server", name)
        .member("tools", serde_json::to_value(&tools).unwrap_or_default()))
}

/// A tool with its arguments.
fn described_tool(tool: &Tool) -> String {
    let mut words = text::line(&tool.name);
    if let Some(description) = tool.description.as_deref().or(tool.title.as_deref()) {
        words.push_str(" – ");
        words.push_str(&text::line(description));
    }
    for field in fields(&Value::Object((*tool.input_schema).clone())) {
        words.push_str("\n    ");
        words.push_str(&described(&field));
    }
    words
}
