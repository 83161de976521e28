//! How a command ends: for people, for scripts, and as an exit code.

use std::io;

use serde_json::{Map, Value, json};

use crate::screen::Screen;
use mcp_tasks::client::{ClientError, InputRequest, SavedTask};

/// How a command ended. The codes are part of what users rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    ToolError,
    Usage,
    Failed,
    Refused,
    Cancelled,
    InputNeeded,
    Expired,
    Unknown,
    Transport,
    Protocol,
    Local,
    Detached,
}

impl Outcome {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 13] = [
        Self::Success,
        Self::ToolError,
        Self::Usage,
        Self::Failed,
        Self::Refused,
        Self::Cancelled,
        Self::InputNeeded,
        Self::Expired,
        Self::Unknown,
        Self::Transport,
        Self::Protocol,
        Self::Local,
        Self::Detached,
    ];

    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::ToolError => 1,
            // What clap ends with, and most programs do.
            Self::Usage => 2,
            Self::Failed | Self::Refused => 3,
            Self::Cancelled => 4,
            Self::InputNeeded => 5,
            Self::Expired | Self::Unknown => 6,
            Self::Transport | Self::Protocol => 7,
            Self::Local => 8,
            // What shells give a program that SIGINT ended.
            Self::Detached => 130,
        }
    }

    /// The name in JSON documents.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool_error",
            Self::Usage => "usage",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::InputNeeded => "input_needed",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::Local => "local",
            Self::Detached => "detached",
        }
    }
}

/// What a command has to say in the end.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    /// For standard output.
    text: String,
    /// For standard error: what went wrong, and what to do.
    notes: Vec<String>,
    document: Map<String, Value>,
    in_one_line: bool,
}

impl Report {
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            text: String::new(),
            notes: Vec::new(),
            document: Map::new(),
            in_one_line: false,
        }
    }

    /// The document is the last of several, each a line.
    pub(crate) fn in_one_line(mut self) -> Self {
        self.in_one_line = true;
        self
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        self.notes.first().map_or("", String::as_str)
    }

    pub(crate) fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// A member of the JSON document.
    pub(crate) fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.document.insert(name.to_owned(), value.into());
        self
    }

    /// The task it is about, which can be gone on with.
    pub(crate) fn task(self, task: &SavedTask) -> Self {
        let handle = serde_json::to_value(task).unwrap_or_default();
        self.member("taskId", task.id().as_str()).member("handle", handle)
    }

    /// Writes the document that scripts read.
    pub(crate) fn write(&self, screen: &Screen) -> io::Result<()> {
        match self.in_one_line {
            true => screen.json_line(&self.document()),
            false => screen.json(&self.document()),
        }
    }

    fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("outcome".to_owned(), self.outcome.name().into());
        document.insert("exitCode".to_owned(), self.outcome.code().into());
        if self.outcome != Outcome::Success && !self.notes.is_empty() {
            document.insert("message".to_owned(), self.message().into());
        }
        document.extend(self.document.clone());
        Value::Object(document)
    }

    pub(crate) fn print(&self, screen: &Screen) -> io::Result<()> {
        screen.out(&self.text)?;
        for note in &self.notes {
            screen.note(note);
        }
        Ok(())
    }
}

/// A command that came to its end early.
#[derive(Debug)]
pub(crate) struct CommandError(Box<Report>);

impl CommandError {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self(Box::new(Report::new(outcome).note(message)))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Outcome::Usage, message)
    }

    pub(crate) fn local(message: impl Into<String>) -> Self {
        Self::new(Outcome::Local, message)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Changes what is reported.
    pub(crate) fn with(self, change: impl FnOnce(Report) -> Report) -> Self {
        Self(Box::new(change(*self.0)))
    }
}

impl From<CommandError> for Report {
    fn from(stop: CommandError) -> Self {
        *stop.0
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        let outcome = match &error {
            ClientError::UnknownTask(_) => Outcome::Unknown,
            ClientError::Expired(_) => Outcome::Expired,
            ClientError::Failed { .. } => Outcome::Failed,
            ClientError::Cancelled { .. } => Outcome::Cancelled,
            ClientError::InputNeeded(_) => Outcome::InputNeeded,
            ClientError::MissingCapability { .. } | ClientError::Refused(_) => Outcome::Refused,
            ClientError::Transport { .. } => Outcome::Transport,
            ClientError::OtherServer { .. } => Outcome::Usage,
            // A kind that a later client adds is at least no end of the task: it stays in the task file.
            ClientError::Protocol { .. } | _ => Outcome::Protocol,
        };
        let mut report = Report::new(outcome).note(error.to_string());
        match &error {
            ClientError::Failed { error, .. } => {
                report = report.member("error", serde_json::to_value(error).unwrap_or_default());
            }
            ClientError::Refused(error) => {
                report = report.member("error", serde_json::to_value(error).unwrap_or_default());
            }
            ClientError::MissingCapability { required, .. } => {
                report = report.member("requiredCapabilities", required.clone()).note(
                    "This program fills in forms and shows pages. It makes no completions (sampling) and has no roots.",
                );
            }
            ClientError::InputNeeded(needed) => report = report.member("requests", requests(&needed.requests)),
            ClientError::Transport { source, .. } if source.status == Some(401) => {
                report = report.note("The token is what the environment variable MCP_TASKS_TOKEN holds.");
            }
            _ => {}
        }
        Self(Box::new(report))
    }
}

/// Questions, for scripts.
pub(crate) fn requests(requests: &[InputRequest]) -> Value {
    let one = |request: &InputRequest| json!({"key": request.key(), "request": request.raw()});
    requests.iter().map(one).collect()
}
