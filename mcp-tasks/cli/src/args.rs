//! What the program is told.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The exit codes, as `--help` has them. They are those of [`Outcome`](crate::outcome::Outcome).
const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  the tool says that it failed
    2  the command line is wrong, or the arguments do not fit the tool
    3  the task failed, or the server refused
    4  the task was cancelled
    5  the task asks something that was not answered
    6  the task has expired, or the server does not know it
    7  the server cannot be reached, or makes no sense
    8  a file of this machine cannot be read or written
  130  detached: the task goes on

Environment:
  MCP_TASKS_TOKEN  the bearer token for HTTP servers. It is not taken from the command line, where others see it.
  MCP_TASKS_STATE  the file that open tasks are kept in; otherwise mcp-tasks/tasks.json in the user's state directory";

const SERVER: &str = "\
The URL of a server (http://127.0.0.1:8080/mcp), or a command to start one on standard streams
(\"stdio:npx -y @modelcontextprotocol/server-everything\")";

/// Call tools of MCP servers, and see their tasks through.
#[derive(Debug, Parser)]
#[command(name = "mcp-tasks", version, after_help = EXIT_CODES, subcommand_required = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What all commands understand.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// What standard output is for: people, or one JSON document for scripts
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Show no progress and no hints
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The file that open tasks are kept in
    #[arg(long, global = true, value_name = "FILE", env = "MCP_TASKS_STATE", hide_env = true)]
    pub(crate) state: Option<PathBuf>,
    /// A variable for a server that is started by a command; may be given several times
    #[arg(long = "env", short, global = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) envs: Vec<(String, String)>,
}

/// What standard output is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// People
    Text,
    /// Scripts
    Json,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools of a server
    Tools {
        #[arg(help = SERVER)]
        server: String,
    },
    /// Call a tool, and wait for its result
    Call(Call),
    /// Go on with a task: wait for its result, and answer its questions
    Resume {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        answers: Answers,
    },
    /// Watch a task until it ends, without answering its questions
    Watch {
        #[command(flatten)]
        target: Target,
    },
    /// Look at a task once
    Get {
        #[command(flatten)]
        target: Target,
    },
    /// Answer a question of a task, and do not wait for its result
    Answer(Answer),
    /// Cancel a task
    Cancel {
        #[command(flatten)]
        target: Target,
    },
    /// List the tasks that are kept
    List,
    /// Remove tasks from those that are kept. On their servers they go on
    Forget {
        /// The tasks
        #[arg(value_name = "TASK", required_unless_present = "past_due")]
        tasks: Vec<String>,
        /// All whose time is over
        #[arg(long)]
        past_due: bool,
    },
}

/// A call.
#[derive(Debug, Args)]
pub(crate) struct Call {
    #[arg(help = SERVER)]
    pub(crate) server: String,
    /// The name of the tool
    pub(crate) tool: String,
    /// An argument, read as the type that the tool wants; one of an array may be given several times
    #[arg(long = "arg", short, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) args: Vec<(String, String)>,
    /// All arguments as a JSON object; @FILE reads it from a file, @- from standard input. Each --arg replaces one
    #[arg(long, value_name = "JSON")]
    pub(crate) json: Option<String>,
    /// If the call becomes a task, print its id and do not wait for its result
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) answers: Answers,
}

/// Answers that are there before the questions.
#[derive(Debug, Args)]
pub(crate) struct Answers {
    /// Answers to questions, as a JSON object: by the key of a question (`{"elicit-1": {"publish": true}}`), or by the
    /// names of the fields of its form (`{"publish": true}`). `{"elicit-1": {"action": "decline"}}` declines. @- is
    /// standard input
    #[arg(long = "answers", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// A task.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The id of the task, or the start of the id of one that is kept
    pub(crate) task: String,
    /// Its server, if the task is not kept, or was reached by a URL with a secret in it
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
}

/// An answer by hand.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The key of the question; not needed if there is one alone
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// A field of the form, read as the type that it wants. Without any, the question is asked in the terminal
    #[arg(long = "arg", short, value_name = "FIELD=VALUE", value_parser = pair, conflicts_with_all = ["decline", "dismiss"])]
    pub(crate) args: Vec<(String, String)>,
    /// The whole form as a JSON object; @FILE and @- as for calls
    #[arg(long, value_name = "JSON", conflicts_with_all = ["decline", "dismiss"])]
    pub(crate) json: Option<String>,
    /// Agree, to a question without a form such as a page to be visited
    #[arg(long, conflicts_with_all = ["args", "json", "decline", "dismiss"])]
    pub(crate) accept: bool,
    /// Decline to answer
    #[arg(long, conflicts_with = "dismiss")]
    pub(crate) decline: bool,
    /// Dismiss the question without a choice (the protocol's "cancel"); this does not cancel the task
    #[arg(long)]
    pub(crate) dismiss: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn the_parser_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_exit_code() {
        for outcome in Outcome::ALL {
            let code = format!("\n{:>5}  ", outcome.code());
            assert!(EXIT_CODES.contains(&code), "{outcome:?}");
        }
    }
}
