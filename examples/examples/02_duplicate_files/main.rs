//! Real work on your own files: finds files with equal content below a directory, and removes the copies if you agree.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 02_duplicate_files -- DIRECTORY
//! ```
//!
//! It serves MCP over Streamable HTTP at <http://127.0.0.1:8080/mcp>, or over stdio with `MCP_TASKS_TRANSPORT=stdio`.
//! `DIRECTORY`, or the setting `duplicates.root` (in the environment `DUPLICATES_ROOT`), is all it may touch.
//!
//! What it shows: progress and cancellation of blocking work, a result kept in a step (nothing is hashed twice, however
//! long the question stays open), a question with a form, structured results, errors a model can read. Finding and
//! removing is ordinary code in [`duplicates`], with its own tests: `cargo test -p mcp-tasks-examples`.

mod duplicates;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_tasks::Config;
use mcp_tasks::prelude::*;

use crate::duplicates::{Found, Group, Root, Skipped, Watch};

/// How many copies a question names; a longer one is not read by anybody.
const NAMED: usize = 40;

/// What was found, for the client.
#[derive(Serialize, JsonSchema)]
struct Report {
    directory: String,
    /// Ordinary files, empty ones not counted
    files: u64,
    /// Bytes that the copies take
    wasted_bytes: u64,
    groups: Vec<ReportedGroup>,
    /// Files and directories that could not be looked at
    skipped: Vec<Skipped>,
}

#[derive(Serialize, JsonSchema)]
struct ReportedGroup {
    sha256: String,
    bytes: u64,
    /// The oldest file: the one that is kept when copies are removed
    kept: String,
    copies: Vec<String>,
}

impl From<Found> for Report {
    fn from(found: Found) -> Self {
        let path = |file: duplicates::Hashed| file.path;
        Self {
            files: found.files,
            wasted_bytes: found.wasted(),
            groups: found
                .groups
                .into_iter()
                .map(|group| ReportedGroup {
                    sha256: group.sha256,
                    bytes: group.len,
                    kept: group.kept.path,
                    copies: group.copies.into_iter().map(path).collect(),
                })
                .collect(),
            directory: found.directory,
            skipped: found.skipped,
        }
    }
}

/// Find files with equal content below a directory. Nothing is changed.
#[mcp_task(read_only, ttl = "PT4H", poll_interval = "PT1S")]
async fn find_duplicates(
    ctx: ToolContext,
    root: State<Root>,
    /// The directory, relative to the one this server may touch; all of that if left out
    directory: Option<String>,
) -> Result<Report, ToolError> {
    let found = find(&ctx, &root, &directory.unwrap_or_default()).await?;
    Ok(found.into())
}

// What the user is asked before anything is removed.
#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Removal {
    /// What to do with the copies
    copies: Copies,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
#[serde(rename_all = "lowercase")]
enum Copies {
    Leave,
    Remove,
}

/// What was removed.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
struct Removed {
    removed: Vec<String>,
    freed_bytes: u64,
    /// Copies that are still there, and why
    left: Vec<Skipped>,
}

/// Find files with equal content below a directory and, if the user agrees, remove all but the oldest of each.
#[mcp_task(required, destructive, ttl = "P1D", poll_interval = "PT1S")]
async fn remove_duplicates(
    ctx: ToolContext,
    root: State<Root>,
    /// The directory, relative to the one this server may touch; all of that if left out
    directory: Option<String>,
) -> Result<Removed, ToolError> {
    let found = find(&ctx, &root, &directory.unwrap_or_default()).await?;
    if found.groups.is_empty() {
        return Ok(Removed::default());
    }
    match ctx.elicit::<Removal>(question(&found)).await? {
        Elicited::Accept(Removal { copies: Copies::Remove }) => {}
        _ => return Err(ToolError::new("nothing was removed: the user did not agree")),
    }
    // A step again: if the process dies after this, the list of what was removed is not lost.
    let root = root.clone();
    ctx.step("remove", || async {
        tokio::task::spawn_blocking(move || remove_all(&root, &found.groups)).await
    })
    .await
}

/// The search, as a step: its result is in the task's record before the user is asked.
async fn find(ctx: &ToolContext, root: &State<Root>, directory: &str) -> Result<Found, ToolError> {
    ctx.step("find", || search(ctx, root, directory)).await
}

async fn search(ctx: &ToolContext, root: &State<Root>, directory: &str) -> Result<Found, ToolError> {
    let (root, directory) = (root.clone(), directory.to_owned());
    let mut follow = Follow::new(ctx.clone());
    // Dropping this future does not reach the thread; the cancellation token, which `Follow` looks at, does.
    let found = tokio::task::spawn_blocking(move || {
        let directory = root.directory(&directory)?;
        Ok::<_, ToolError>(duplicates::search(&directory, &mut follow)?)
    });
    found.await?
}

/// Ties the search to the run it is in.
struct Follow {
    ctx: ToolContext,
    reported: u64,
}

impl Follow {
    const fn new(ctx: ToolContext) -> Self {
        Self { ctx, reported: 0 }
    }
}

impl Watch for Follow {
    fn stopped(&self) -> bool {
        self.ctx.cancellation().is_cancelled()
    }

    fn read(&mut self, read: u64, total: u64, path: &str) {
        // A client that gets each report as a message of its own wants a hundred, not one for every chunk.
        if read == total || read >= self.reported + total / 100 {
            self.reported = read;
            let report = self.ctx.progress(read as f64).total(total as f64);
            report.message(format!("bytes read, now {path}")).send();
        }
    }
}

/// Says what is kept and what would go. It is asked again word for word when the task goes on, so it is made of the
/// kept result of the search and nothing else.
fn question(found: &Found) -> String {
    let mut text = format!(
        "{} copies of {} files take {} bytes. The oldest of each is kept. Remove the copies?\n",
        found.copies(),
        found.groups.len(),
        found.wasted(),
    );
    let mut named = 0;
    for group in &found.groups {
        if named >= NAMED {
            break;
        }
        // Writing into a `String` cannot fail.
        let _ = write!(text, "\nkeep   {}\n", group.kept.path);
        for copy in group.copies.iter().take(NAMED - named) {
            let _ = writeln!(text, "remove {}", copy.path);
            named += 1;
        }
    }
    if named < found.copies() {
        let _ = write!(
            text,
            "\nand {} copies more; the tool find_duplicates lists all",
            found.copies() - named
        );
    }
    text
}

fn remove_all(root: &Root, groups: &[Group]) -> Removed {
    let mut all = Removed::default();
    for group in groups {
        for copy in &group.copies {
            match duplicates::remove(root, group, copy) {
                Ok(()) => {
                    all.freed_bytes += group.len;
                    all.removed.push(copy.path.clone());
                }
                Err(error) => all.left.push(Skipped {
                    path: copy.path.clone(),
                    reason: error.to_string(),
                }),
            }
        }
    }
    all
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    mcp_tasks_examples::log_to_stderr();
    let config = Config::from_env()?;
    let root = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .or_else(|| config.get("duplicates.root").map(PathBuf::from))
        .ok_or("name the directory that may be touched: as the argument, or in DUPLICATES_ROOT")?;
    let root = Root::new(&root)?;
    let shown = Arc::<str>::from(root.path().display().to_string());
    let runtime = TaskRuntime::builder().config(config).state(root).build()?;
    Server::new(runtime)
        .name("duplicate-files", env!("CARGO_PKG_VERSION"))
        .instructions(format!("Works on files below {shown}, and on nothing else."))
        .on_ready(move |place| {
            eprintln!("`find_duplicates` and `remove_duplicates` for {shown} are served at {place}; connect an MCP client to it");
        })
        .serve()
        .await?;
    Ok(())
}
