//! Real work on your own files: finds files with equal content below a directory, and removes the copies if you agree.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 02_duplicate_files -- DIRECTORY
//! ```
//!
//! It serves MCP over Streamable HTTP at <http://127.0.0.1:8080/mcp>, or over stdio with `MCP_TASKS_TRANSPORT=stdio`.
//! `DIRECTORY` is all it may touch.
//!
//! What it shows: progress and cancellation of blocking work, a result kept in a step (nothing is hashed twice, however
//! long the question stays open), a question with a form, structured results, errors that a model can read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use mcp_tasks::prelude::*;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

/// How many copies a question names: a person does not read a longer list.
const NAMED: usize = 40;

/// The directory outside which nothing is read or removed.
struct Root(PathBuf);

/// Files with equal content; the oldest is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Group {
    sha256: String,
    bytes: u64,
    kept: PathBuf,
    copies: Vec<PathBuf>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Found {
    groups: Vec<Group>,
    /// Files and directories that could not be read, and why
    skipped: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, Default)]
struct Removed {
    removed: Vec<PathBuf>,
    freed_bytes: u64,
    /// Copies that are still there, and why
    left: Vec<String>,
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

/// Find files with equal content below a directory. Nothing is changed.
#[mcp_task(read_only, ttl = "PT4H", poll_interval = "PT1S")]
async fn find_duplicates(
    ctx: ToolContext,
    root: State<Root>,
    /// The directory, relative to the one this server may touch; all of that if left out
    directory: Option<String>,
) -> Result<Found, ToolError> {
    find(&ctx, &root, directory).await
}

/// Find files with equal content below a directory and, if the user agrees, remove all but the oldest of each.
#[mcp_task(required, destructive, ttl = "P1D", poll_interval = "PT1S")]
async fn remove_duplicates(
    ctx: ToolContext,
    root: State<Root>,
    /// The directory, relative to the one this server may touch; all of that if left out
    directory: Option<String>,
) -> Result<Removed, ToolError> {
    let found = find(&ctx, &root, directory).await?;
    if found.groups.is_empty() {
        return Ok(Removed::default());
    }
    match ctx.elicit::<Removal>(question(&found)).await? {
        Elicited::Accept(Removal { copies: Copies::Remove }) => {}
        _ => return Err(ToolError::new("nothing was removed: the user did not agree")),
    }
    // A step again: if the process dies after this, the list of what was removed is not lost.
    ctx.step("remove", || tokio::task::spawn_blocking(move || remove(&found.groups)))
        .await
}

/// The search, as a step: its result is in the task's record before the user is asked.
async fn find(ctx: &ToolContext, root: &Root, directory: Option<String>) -> Result<Found, ToolError> {
    let directory = inside(root, &directory.unwrap_or_default())?;
    // Dropping this future does not reach the thread; the cancellation token, which `search` looks at, does.
    ctx.step("find", || {
        let ctx = ctx.clone();
        async move { tokio::task::spawn_blocking(move || search(&ctx, &directory)).await? }
    })
    .await
}

/// A directory inside the root; where symbolic links lead is what counts.
fn inside(root: &Root, directory: &str) -> Result<PathBuf, ToolError> {
    match fs::canonicalize(root.0.join(directory)) {
        Ok(found) if found.starts_with(&root.0) && found.is_dir() => Ok(found),
        // One answer, so that it tells nothing about what is outside.
        _ => Err(ToolError::new(format!(
            "`{directory}` is no directory that this server may touch"
        ))),
    }
}

/// Groups the ordinary files below `directory` by content. Symbolic links and empty files are left out.
fn search(ctx: &ToolContext, directory: &Path) -> Result<Found, ToolError> {
    let (mut by_len, mut skipped) = (BTreeMap::<u64, Vec<PathBuf>>::new(), Vec::new());
    for entry in WalkDir::new(directory) {
        match entry.and_then(|entry| Ok((entry.metadata()?, entry))) {
            Ok((metadata, entry)) if metadata.is_file() && metadata.len() > 0 => {
                by_len.entry(metadata.len()).or_default().push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => skipped.push(error.to_string()),
        }
    }
    // A file whose length no other has is no copy, and need not be read.
    by_len.retain(|_, paths| paths.len() > 1);
    let mut progress = ctx.count_to(by_len.values().map(|paths| paths.len() as u64).sum());
    let mut groups = Vec::new();
    for (bytes, paths) in by_len {
        let mut by_hash = BTreeMap::<String, Vec<PathBuf>>::new();
        for path in paths {
            if ctx.cancellation().is_cancelled() {
                return Err(ToolError::new("stopped"));
            }
            progress.advance(1, format!("hashed {}", path.display()));
            match hash(&path) {
                Ok(sha256) => by_hash.entry(sha256).or_default().push(path),
                Err(error) => skipped.push(format!("{}: {error}", path.display())),
            }
        }
        for (sha256, mut copies) in by_hash.into_iter().filter(|(_, paths)| paths.len() > 1) {
            copies.sort_by_cached_key(|path| (fs::metadata(path).and_then(|it| it.modified()).ok(), path.clone()));
            let kept = copies.remove(0);
            groups.push(Group {
                sha256,
                bytes,
                kept,
                copies,
            });
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes * group.copies.len() as u64));
    Ok(Found { groups, skipped })
}

fn hash(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (BufReader::new(File::open(path)?), Sha256::new());
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        hasher.update(chunk);
        let read = chunk.len();
        file.consume(read);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What is kept and what would go. When the task goes on it is asked again, word for word, so it is made of the kept result of
/// the search and of nothing else.
fn question(found: &Found) -> String {
    let copies: Vec<_> = found
        .groups
        .iter()
        .flat_map(|group| group.copies.iter().map(move |copy| (copy, &group.kept)))
        .collect();
    let mut text = format!(
        "{} copies were found. The oldest of each is kept. Remove the copies?",
        copies.len()
    );
    for (copy, kept) in copies.iter().take(NAMED) {
        text.push_str(&format!("\nremove {}, a copy of {}", copy.display(), kept.display()));
    }
    if copies.len() > NAMED {
        text.push_str("\nand more; the tool find_duplicates lists all");
    }
    text
}

/// Removes the copies, each only if it and the kept file still have the content that was found.
fn remove(groups: &[Group]) -> Removed {
    let mut all = Removed::default();
    for group in groups {
        for copy in &group.copies {
            let is_same = |path| hash(path).is_ok_and(|sha256| sha256 == group.sha256);
            let unlinked = match is_same(&group.kept) && is_same(copy) {
                true => fs::remove_file(copy),
                false => Err(io::Error::other("it or the file that is kept has changed")),
            };
            match unlinked {
                Ok(()) => {
                    all.freed_bytes += group.bytes;
                    all.removed.push(copy.clone());
                }
                Err(error) => all.left.push(format!("{}: {error}", copy.display())),
            }
        }
    }
    all
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    mcp_tasks_examples::log_to_stderr();
    let directory = std::env::args_os()
        .nth(1)
        .ok_or("name the directory that may be touched")?;
    let root = fs::canonicalize(directory)?;
    let shown = root.display().to_string();
    let runtime = TaskRuntime::builder().state(Root(root)).build()?;
    Server::new(runtime)
        .name("duplicate-files", env!("CARGO_PKG_VERSION"))
        .instructions(format!("Works on files below {shown}, and on nothing else."))
        .on_ready(move |place| eprintln!("duplicates below {shown} are found at {place}; connect an MCP client to it"))
        .serve()
        .await?;
    Ok(())
}
