//! Random bodies as data, and the one tool that does what they say.

use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use mcp_tasks::context::InputKind;
use mcp_tasks::prelude::*;
use serde_json::json;

/// What a body does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Node {
    /// A step whose work is pending so many times.
    Step(u8),
    /// A step that fails.
    Fail,
    Ask,
    Now,
    Random,
    CanAsk,
    Sleep(u16),
    Progress(u16),
    /// Pending once, outside of a step.
    Yield,
    /// Which of the two hangs on the answer to a question.
    Branch(Box<Node>, Box<Node>),
    Sequence(Vec<Node>),
    Join(Vec<Node>),
    /// The first to end, polled in their order.
    Race(Vec<Node>),
}

type Told = Pin<Box<dyn Future<Output = Result<u64, ToolError>> + Send>>;

pub(crate) fn mix(told: u64, what: impl Hash) -> u64 {
    // Made with fixed keys, so the same in every process of one build.
    let mut hasher = DefaultHasher::new();
    (told, what).hash(&mut hasher);
    hasher.finish()
}

/// Does what the tree says.
#[mcp_task(ttl = "unlimited")]
pub(crate) async fn interpret(ctx: ToolContext, tree: Node) -> Result<String, ToolError> {
    let told = perform(ctx, tree, 0).await?;
    Ok(told.to_string())
}

/// What a node asks and is told depends on what its branch was told before, so that an answer that goes to another branch
/// shows.
fn perform(ctx: ToolContext, node: Node, told: u64) -> Told {
    Box::pin(async move {
        Ok(match node {
            Node::Step(yields) => {
                let work = || async move {
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                    Ok::<_, ToolError>(mix(told, "step"))
                };
                ctx.step(&format!("step {told:x}"), work).await?
            }
            Node::Fail => {
                let work = || async move { Err::<u64, _>(ToolError::new(mix(told, "fail"))) };
                match ctx.step(&format!("fail {told:x}"), work).await {
                    Ok(told) => told,
                    Err(error) => mix(told, error.to_string()),
                }
            }
            Node::Ask => ask(&ctx, told).await?,
            Node::Now => {
                ctx.now().await?;
                mix(told, "now")
            }
            Node::Random => {
                ctx.random::<4>().await?;
                mix(told, "random")
            }
            Node::CanAsk => mix(told, ctx.can_ask(InputKind::Form).await?),
            Node::Sleep(millis) => {
                ctx.sleep(Duration::from_millis(millis.into())).await?;
                mix(told, "slept")
            }
            Node::Progress(progress) => {
                ctx.progress(f64::from(progress)).send();
                told
            }
            Node::Yield => {
                tokio::task::yield_now().await;
                told
            }
            Node::Branch(even, odd) => {
                let told = ask(&ctx, told).await?;
                perform(ctx, if told.is_multiple_of(2) { *even } else { *odd }, told).await?
            }
            Node::Sequence(nodes) => {
                let mut told = told;
                for node in nodes {
                    told = perform(ctx.clone(), node, told).await?;
                }
                told
            }
            Node::Join(nodes) => join(branches(&ctx, nodes, told)).await?,
            Node::Race(nodes) => race(branches(&ctx, nodes, told)).await?,
        })
    })
}

async fn ask(ctx: &ToolContext, told: u64) -> Result<u64, ToolError> {
    let form = json!({
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 0}},
        "required": ["number"],
    });
    let mut asking = ctx.elicit_schema(format!("{told:x}?"), &form);
    if told.is_multiple_of(3) {
        asking = asking.key(format!("q-{told:x}"));
    }
    let answer = match asking.await? {
        Elicited::Accept(content) => content["number"].to_string(),
        Elicited::Decline => "no".to_owned(),
        Elicited::Cancel => "closed".to_owned(),
    };
    Ok(mix(told, answer))
}

fn branches(ctx: &ToolContext, nodes: Vec<Node>, told: u64) -> Vec<Told> {
    let at = |(at, node)| perform(ctx.clone(), node, mix(told, at));
    nodes.into_iter().enumerate().map(at).collect()
}

/// All of them, as `join!` does it.
async fn join(mut branches: Vec<Told>) -> Result<u64, ToolError> {
    let mut told: Vec<Option<u64>> = vec![None; branches.len()];
    poll_fn(|cx| {
        for (branch, told) in branches.iter_mut().zip(&mut told) {
            if told.is_none()
                && let Poll::Ready(ready) = branch.as_mut().poll(cx)
            {
                *told = Some(ready?);
            }
        }
        match told.iter().copied().collect::<Option<Vec<u64>>>() {
            Some(told) => Poll::Ready(Ok(mix(0, told))),
            None => Poll::Pending,
        }
    })
    .await
}

/// The first of them, as a biased `select!` does it.
async fn race(mut branches: Vec<Told>) -> Result<u64, ToolError> {
    poll_fn(|cx| {
        for (at, branch) in branches.iter_mut().enumerate() {
            if let Poll::Ready(told) = branch.as_mut().poll(cx) {
                return Poll::Ready(told.map(|told| mix(told, at)));
            }
        }
        Poll::Pending
    })
    .await
}
