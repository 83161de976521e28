//! A server is killed while its tool waits for the user. Another one is started, the user answers, and the tool goes on.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 05_kill_and_resume
//! ```
//!
//! The program plays both sides: it starts itself as the server, is the client, and says what happens. Tasks are in a
//! SQLite file, which goes when the program ends. The first argument names another store, as `mcp.tasks.store.url` would:
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 05_kill_and_resume -- sqlite:/tmp/tasks.db
//! cargo run -p mcp-tasks-examples --example 05_kill_and_resume --features redis -- redis://127.0.0.1:6379
//! ```

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

// ---------------------------------------------------------------------------------------------------- the server

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Delete them for good
    delete: bool,
}

/// Find old backups and, if the user agrees, delete them.
#[mcp_task(ttl = "P1D", poll_interval = "PT0.2S")]
async fn clean_up(
    ctx: ToolContext,
    /// How old a backup has to be, in days
    days: u32,
) -> Result<String, ToolError> {
    // The result is kept with the task: whichever process goes on with it does not search again.
    let found = ctx.step("search", || search(days)).await?;
    match ctx.elicit(format!("Delete {found} backups?")).key("sure").await? {
        Elicited::Accept(Confirm { delete: true }) => {
            Ok(format!("process {} deleted the {found} backups", std::process::id()))
        }
        _ => Ok("nothing was deleted".to_owned()),
    }
}

/// Stands for work that one would not like to do twice.
async fn search(days: u32) -> Result<u32, ToolError> {
    println!("process {} searches", std::process::id());
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(100 / days.max(1))
}

/// What makes the tasks outlive the process is in the configuration: `mcp.tasks.store.url`.
async fn serve() -> mcp_tasks::Result<()> {
    let served = Server::from_env()?.name("backups", env!("CARGO_PKG_VERSION"));
    served.on_ready(|url| println!("{url}")).serve().await
}

// ----------------------------------------------------------------------------------------------------- the story

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Says who the process is to be.
const SERVE: &str = "--serve";

#[tokio::main]
async fn main() -> Outcome<()> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some(SERVE) {
        mcp_tasks_examples::log_to_stderr();
        return Ok(serve().await?);
    }
    let directory = std::env::temp_dir().join(format!("mcp-tasks-kill-and-resume-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let store = argument.unwrap_or_else(|| format!("sqlite:{}", directory.join("tasks.db").display()));
    let told = tell(&store).await;
    std::fs::remove_dir_all(&directory)?;
    told
}

async fn tell(store: &str) -> Outcome<()> {
    println!("1. A server is started, and a client calls its tool.\n");
    let mut first = Running::start(store).await?;
    let call = json!({"name": "clean_up", "arguments": {"days": 30}});
    let created = first.request("tools/call", "clean_up", call).await?;
    let id = created["taskId"]
        .as_str()
        .ok_or("the call should become a task")?
        .to_owned();
    println!("   task {id} is {}", created["status"]);

    let asking = first.settled(&id).await?;
    let question = &asking["inputRequests"]["sure"]["params"]["message"];
    println!("   task {id} is {}: {question}\n", asking["status"]);

    println!(
        "2. The user thinks about it, and meanwhile the server dies: kill -9 {}.\n",
        first.pid()
    );
    first.process.kill().await?;

    println!("3. A new server is started on the same store. The task is as it was.\n");
    let second = Running::start(store).await?;
    let task = second.settled(&id).await?;
    if task != asking {
        return Err(format!("the task should be as it was, and is {task}").into());
    }
    println!("   task {id} is {}: {question}\n", task["status"]);

    println!("4. The user says yes, and the tool goes on in the new process, behind the search.\n");
    let yes = json!({"sure": {"action": "accept", "content": {"delete": true}}});
    second
        .request("tasks/update", &id, json!({"taskId": id, "inputResponses": yes}))
        .await?;
    let done = second.settled(&id).await?;
    println!(
        "   task {id} is {}: {}",
        done["status"], done["result"]["content"][0]["text"]
    );
    if done["status"] != "completed" {
        return Err(format!("the task should have been completed: {done}").into());
    }
    Ok(())
}

/// A server process, killed when it is dropped, and a client of it.
struct Running {
    process: Child,
    url: String,
    client: reqwest::Client,
}

impl Running {
    async fn start(store: &str) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            // Not among the arguments, where every user of the machine could read a password in it.
            .env("MCP_TASKS_STORE_URL", store)
            .env("MCP_TASKS_TRANSPORT", "http")
            .env("MCP_TASKS_HTTP_ADDR", "127.0.0.1:0")
            .env(
                "RUST_LOG",
                std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()),
            )
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("its output is a pipe")?).lines();
        let url = lines.next_line().await?.ok_or("the server did not start")?;
        println!("   process {} serves {url}", process.id().unwrap_or_default());
        // From here on it says what its tool does.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                println!("   {line}");
            }
        });
        let client = reqwest::Client::new();
        Ok(Self { process, url, client })
    }

    fn pid(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    /// Sends a request of revision 2026-07-28 that declares the Tasks extension, and returns its result.
    async fn request(&self, method: &str, name: &str, mut params: Value) -> Outcome<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "kill-and-resume", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {"form": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
        });
        let response = self
            .client
            .post(&self.url)
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method)
            .header("Mcp-Name", name)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .send()
            .await?;
        let text = response.text().await?;
        // The response comes as JSON, or as the last event of a stream.
        let last_event = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let mut message: Value = serde_json::from_str(last_event.unwrap_or(&text))?;
        match message["result"].take() {
            Value::Null => Err(format!("{method}: {}", message["error"]).into()),
            result => Ok(result),
        }
    }

    /// Polls until the task works no more: it asks, or has ended.
    async fn settled(&self, id: &str) -> Outcome<Value> {
        loop {
            let task = self.request("tasks/get", id, json!({"taskId": id})).await?;
            if task["status"] != "working" {
                return Ok(task);
            }
            let interval = task["pollIntervalMs"].as_u64().unwrap_or(200);
            tokio::time::sleep(Duration::from_millis(interval)).await;
        }
    }
}
