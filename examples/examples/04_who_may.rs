//! Who calls, and what they may: authentication in front, a guard on a tool, the caller and shared state inside it.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 04_who_may
//! ```
//!
//! It serves MCP over Streamable HTTP at <http://127.0.0.1:8080/mcp> to clients that send `Authorization: Bearer alice-token`
//! or `Bearer bob-token`. Both may list releases and sign one off; only Alice may deploy. What one starts, the other
//! cannot see.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use mcp_tasks::Principal;
use mcp_tasks::prelude::*;
use mcp_tasks::tool::Json;
use sha2::{Digest, Sha256};

/// Who signs in here. A real server checks a signed token; its issuer and subject are what tasks belong to.
const ISSUER: &str = "https://login.example.com";

/// The user a request comes from, as the authentication layer found out.
#[derive(Clone, Serialize)]
struct User {
    name: &'static str,
    roles: &'static [&'static str],
}

/// Tokens are looked up by their hash, so that the time a look-up takes says nothing about the tokens there are.
struct Tokens(HashMap<[u8; 32], User>);

impl Tokens {
    fn new(users: impl IntoIterator<Item = (&'static str, User)>) -> Self {
        Self(users.into_iter().map(|(token, user)| (hash(token), user)).collect())
    }

    fn user(&self, token: &str) -> Option<&User> {
        self.0.get(&hash(token))
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The layer in front of everything: it lets requests with a known token through, and says whose they are.
async fn authenticate(tokens: Arc<Tokens>, mut request: Request, next: Next) -> Response {
    let user = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .and_then(|token| tokens.user(token));
    match user {
        Some(user) => {
            request.extensions_mut().insert(user.clone());
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response(),
    }
}

/// The hook that tells the runtime whose a request is. The claims are kept with each task, for guards and tools to read.
fn principal(request: &axum::http::request::Parts) -> Option<Principal> {
    let user = request.extensions.get::<User>()?;
    let claims = Json::of(user).ok()?;
    Some(Principal::new(user.name).with_issuer(ISSUER).with_claims(claims))
}

/// What the tools share.
#[derive(Default)]
struct Releases {
    deployed: Mutex<Vec<String>>,
}

/// A guard. It decides what `tools/list` shows to this caller too.
async fn deployer(caller: &Caller) -> Result<(), Denied> {
    let roles: Vec<String> = caller.claim("roles").unwrap_or_default();
    if roles.iter().any(|role| role == "deployer") {
        Ok(())
    } else {
        Err(Denied::new("the role `deployer` is needed"))
    }
}

/// Deploy a version. Only as a task: it takes longer than a request may.
#[mcp_task(required, guard = deployer, ttl = "PT10M", poll_interval = "PT1S")]
async fn deploy(
    ctx: ToolContext,
    caller: Caller,
    releases: State<Releases>,
    /// The version to deploy, as in `1.4.2`
    version: String,
) -> Result<String, ToolError> {
    let by = caller.subject().unwrap_or("nobody").to_owned();
    for (done, stage) in (1_u32..).zip(["build", "copy", "restart"]) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ctx.progress(done.into()).total(3.0).message(stage).send();
    }
    let entry = format!("{version} by {by}");
    let mut deployed = releases.deployed.lock().unwrap_or_else(PoisonError::into_inner);
    deployed.push(entry.clone());
    Ok(format!("deployed {entry}"))
}

/// What has been deployed, and by whom.
#[mcp_tool(read_only)]
async fn deployments(releases: State<Releases>) -> String {
    let deployed = releases.deployed.lock().unwrap_or_else(PoisonError::into_inner);
    if deployed.is_empty() {
        "nothing yet".to_owned()
    } else {
        deployed.join("\n")
    }
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct SignOff {
    /// I have tested it
    tested: bool,
}

/// Ask the user to sign a version off.
#[mcp_task(required, ttl = "P1D", poll_interval = "PT1S")]
async fn sign_off(ctx: ToolContext, caller: Caller, version: String) -> Result<String, ToolError> {
    let by = caller.subject().unwrap_or("nobody").to_owned();
    let form = ctx.elicit::<SignOff>(format!("{by}, sign off {version}?")).await?;
    Ok(match form {
        Elicited::Accept(SignOff { tested: true }) => format!("{version} is signed off by {by}"),
        _ => format!("{version} is not signed off"),
    })
}

#[tokio::main]
async fn main() -> mcp_tasks::Result<()> {
    mcp_tasks_examples::log_to_stderr();
    let tokens = Arc::new(Tokens::new([
        (
            "alice-token",
            User {
                name: "alice",
                roles: &["deployer"],
            },
        ),
        (
            "bob-token",
            User {
                name: "bob",
                roles: &[],
            },
        ),
    ]));
    let runtime = TaskRuntime::builder()
        .state(Releases::default())
        .principal(principal)
        .build()?;
    Server::new(runtime)
        .name("releases", env!("CARGO_PKG_VERSION"))
        .router(move |router| {
            router.layer(from_fn(move |request, next| {
                authenticate(tokens.clone(), request, next)
            }))
        })
        .on_ready(|place| {
            eprintln!("releases are served at {place}; send `Authorization: Bearer alice-token` or `Bearer bob-token`");
        })
        .serve()
        .await
}
