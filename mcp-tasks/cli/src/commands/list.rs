//! `mcp-tasks list` and `forget`: the tasks that are kept.

use serde_json::{Value, json};

use super::session::Context;
use crate::outcome::{CommandError, Outcome, Report};
use crate::task_file::Entry;
use crate::text;
use mcp_tasks::host::{Clock, SystemClock};

pub(super) fn list(context: &Context) -> Result<Report, CommandError> {
    let tasks = context.task_file()?.read()?;
    let now = SystemClock::new().now();
    let lines: Vec<_> = tasks
        .iter()
        .map(|entry| {
            let due = if entry.task.is_past_due(now) { "  past due" } else { "" };
            let created = entry.task.created_at().map(|at| at.to_string()).unwrap_or_default();
            let tool = text::line(entry.task.tool().unwrap_or("-"));
            format!(
                "{}  {tool}  {}  {created}{due}",
                text::line(&entry.id()),
                text::line(&entry.server)
            )
        })
        .collect();
    let document = |entry: &Entry| {
        json!({
            "taskId": entry.id(),
            "server": entry.server,
            "tool": entry.task.tool(),
            "createdAt": entry.task.created_at().map(|at| at.to_string()),
            "pastDue": entry.task.is_past_due(now),
        })
    };
    let report = Report::new(Outcome::Success)
        .text(lines.join("\n"))
        .member("tasks", tasks.iter().map(document).collect::<Value>());
    Ok(match tasks.is_empty() {
        true => report.note("no task is kept"),
        false => report,
    })
}

pub(super) fn forget(context: &Context, ids: &[String], past_due: bool) -> Result<Report, CommandError> {
    let file = context.task_file()?;
    let now = SystemClock::new().now();
    let mut gone = Vec::new();
    for id in ids {
        let entry = file.find(id)?;
        gone.push(
            entry.ok_or_else(|| CommandError::usage(format!("the task {:?} is not kept", text::short(id, 200))))?,
        );
    }
    if past_due {
        gone.extend(file.read()?.into_iter().filter(|entry| entry.task.is_past_due(now)));
    }
    for entry in &gone {
        file.remove(entry)?;
    }
    let ids: Vec<_> = gone.iter().map(|entry| text::line(&entry.id())).collect();
    Ok(Report::new(Outcome::Success)
        .text(ids.join("\n"))
        .member("forgotten", ids))
}
