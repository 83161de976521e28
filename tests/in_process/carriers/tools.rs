//! The tools. Each is asked for on every carrier.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::{FuturesUnordered, StreamExt};
use mcp_tasks::Retry;
use mcp_tasks::context::InputKind;
use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::Log;

mod turns;

pub(crate) fn register(runtime: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    runtime
        .register::<pair>()
        .register::<both>()
        .register::<insist>()
        .register::<restless>()
        .register::<swallow>()
        .register::<race>()
        .register::<fill_in>()
        .register::<free_form>()
        .register::<visit>()
        .register::<model>()
        .register::<places>()
        .register::<abilities>()
        .register::<gated>()
        .register::<once_only>()
        .register::<versioned>()
        .register::<heavy>()
        .register::<steady>()
        .register::<stubborn>()
        .register::<reporting>()
        .register::<turns::deferred>()
        .register::<turns::deferred_only>()
        .register::<turns::not_deferred>()
        .register::<turns::graceful>()
        .register::<turns::pass_round>()
}

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
pub(crate) struct Go {
    go: bool,
}

async fn go(ctx: &ToolContext, words: impl Into<String>) -> Result<bool, ToolError> {
    Ok(ctx.elicit::<Go>(words).await?.accepted().is_some_and(|form| form.go))
}

async fn step(ctx: &ToolContext, work: &Log, name: &str) -> Result<usize, ToolError> {
    let work = work.clone();
    let owned = name.to_owned();
    ctx.step(name, || async move { Ok::<_, ToolError>(work.done(&owned)) })
        .await
}

/// Two questions, one after the other, with work before, between and after.
#[mcp_task]
async fn pair(ctx: ToolContext, work: State<Log>, name: Option<String>) -> Result<String, ToolError> {
    let before = step(&ctx, &work, "before").await?;
    let first = go(&ctx, format!("first, {}?", name.unwrap_or_default())).await?;
    let between = step(&ctx, &work, "between").await?;
    let second = go(&ctx, "second?").await?;
    let after = step(&ctx, &work, "after").await?;
    Ok(format!("{before} {first} {between} {second} {after}"))
}

/// Two questions at the same time.
#[mcp_task]
async fn both(ctx: ToolContext) -> Result<String, ToolError> {
    let a = ctx.elicit::<Go>("a?").key("a");
    let b = ctx.elicit::<Go>("b?").key("b");
    let (a, b) = tokio::join!(a, b);
    Ok(format!("{:?} {:?}", a?, b?))
}

/// The same words three times.
#[mcp_task]
async fn insist(ctx: ToolContext) -> Result<String, ToolError> {
    let mut said = Vec::new();
    for _ in 0..3 {
        said.push(go(&ctx, "really?").await?);
    }
    Ok(format!("{said:?}"))
}

/// Words that are others on every run.
#[mcp_task]
async fn restless(ctx: ToolContext, work: State<Log>, how: String) -> Result<String, ToolError> {
    let number = work.done("restless") - 1;
    let words = match how.as_str() {
        "clock" => format!("{:?}", std::time::Instant::now()),
        "counter" => format!("attempt {number}"),
        "map" => {
            // A new map has another order, most times; with so many keys it always has.
            let map: HashMap<usize, usize> = (0..100).map(|n| (n, n)).collect();
            format!("{map:?}")
        }
        _ if number == 0 => "the first question".to_owned(),
        _ => {
            step(&ctx, &work, "another path").await?;
            "a second question".to_owned()
        }
    };
    let first = go(&ctx, words).await?;
    let second = go(&ctx, "and?").await?;
    Ok(format!("{first} {second}"))
}

/// What an author may wrap around a question.
#[mcp_task]
async fn swallow(ctx: ToolContext, work: State<Log>, how: String) -> Result<String, ToolError> {
    let question = ctx.elicit::<Go>("go?");
    let answer = match how.as_str() {
        "default" => question
            .await
            .ok()
            .and_then(Elicited::accepted)
            .map(|form| form.go)
            .unwrap_or_default(),
        "timeout" => match tokio::time::timeout(Duration::from_secs(1), question).await {
            Ok(answer) => answer?.accepted().is_some_and(|form| form.go),
            Err(_) => false,
        },
        "catch" => {
            let caught = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(question)).await;
            caught.is_ok_and(|answer| answer.is_ok_and(|answer| answer.accepted().is_some_and(|form| form.go)))
        }
        "boxed" => {
            let answer: Result<_, Box<dyn std::error::Error + Send + Sync>> = async { Ok(question.await?) }.await;
            answer
                .map_err(ToolError::from_boxed)?
                .accepted()
                .is_some_and(|form| form.go)
        }
        // The other branch is ready at once, and its result must not count.
        _ => tokio::select! {
            biased;
            answer = question => answer?.accepted().is_some_and(|form| form.go),
            () = std::future::ready(()) => false,
        },
    };
    if !answer {
        work.push("fallback");
    }
    Ok(answer.to_string())
}

/// Questions beside each other, and beside other things.
#[mcp_task]
async fn race(ctx: ToolContext, work: State<Log>, how: String) -> Result<String, ToolError> {
    let sequence = async |name: &'static str| -> Result<String, ToolError> {
        let one = step(&ctx, &work, &format!("{name}1")).await?;
        let answer = go(&ctx, format!("{name}?")).await?;
        let two = step(&ctx, &work, &format!("{name}2")).await?;
        Ok(format!("{one}{answer}{two}"))
    };
    match how.as_str() {
        "sequences" => {
            let (a, b, c) = tokio::try_join!(sequence("a"), sequence("b"), sequence("c"))?;
            Ok(format!("{a} {b} {c}"))
        }
        "beside a step" => {
            let slow = ctx.step("slow", || async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok::<_, ToolError>(work.done("slow"))
            });
            let (answer, slow) = tokio::join!(ctx.elicit::<Go>("go?"), slow);
            Ok(format!("{:?} {}", answer?, slow?))
        }
        "a timer" => {
            let timer = Box::pin(tokio::time::sleep(Duration::from_millis(20)));
            match select(ctx.elicit::<Go>("go?"), timer).await {
                Either::Left((answer, _)) => Ok(format!("{:?}", answer?)),
                Either::Right(_) => Ok("the timer".to_owned()),
            }
        }
        "unordered" => {
            let mut questions: FuturesUnordered<_> = (0..3)
                .map(|n| ctx.elicit::<Go>(format!("{n}?")).key(format!("q{n}")))
                .collect();
            let mut answers = 0;
            while let Some(answer) = questions.next().await {
                answers += usize::from(answer?.accepted().is_some_and(|form| form.go));
            }
            Ok(answers.to_string())
        }
        _ => {
            let leaked = ctx.clone();
            let spawned = tokio::spawn(async move { leaked.elicit::<Go>("from elsewhere?").await });
            match spawned.await? {
                Ok(answer) => Ok(format!("{answer:?}")),
                Err(error) => Err(error.into()),
            }
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
#[expect(dead_code, reason = "shown by its debug form")]
struct Order {
    zeal: u32,
    amount: f64,
    note: Option<String>,
    size: Size,
    extras: Vec<Size>,
}

/// A form with every kind of field.
#[mcp_task]
async fn fill_in(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(format!("{:?}", ctx.elicit::<Order>("order?").await?))
}

/// A form whose schema is an argument.
#[mcp_task]
async fn free_form(ctx: ToolContext, schema: Value) -> Result<String, ToolError> {
    Ok(match ctx.elicit_schema("fill in", &schema).await? {
        Elicited::Accept(content) => json!(content).to_string(),
        other => format!("{other:?}"),
    })
}

/// A page to go to.
#[mcp_task]
async fn visit(ctx: ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit_url("sign in", "https://sign.example/in?a=1&b=2").await?;
    Ok(format!("{answer:?}"))
}

/// A completion.
#[mcp_task]
async fn model(ctx: ToolContext) -> Result<String, ToolError> {
    let params = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "capital of France?"}}],
        "maxTokens": 10,
    });
    let answer: Value = ctx.sample(&params).await?;
    Ok(answer["content"]["text"].to_string())
}

/// The client's roots.
#[mcp_task]
async fn places(ctx: ToolContext) -> Result<String, ToolError> {
    let answer: Value = ctx.roots().await?;
    Ok(answer["roots"][0]["uri"].to_string())
}

/// What the client can be asked.
#[mcp_task]
async fn abilities(ctx: ToolContext) -> Result<String, ToolError> {
    let mut can = Vec::new();
    for kind in [InputKind::Form, InputKind::Url, InputKind::Sampling, InputKind::Roots] {
        can.push(ctx.can_ask(kind).await?);
    }
    Ok(format!("{can:?}"))
}

/// A form, and then a page, and what became of both.
#[mcp_task]
async fn gated(ctx: ToolContext) -> Result<String, ToolError> {
    let form = ctx.elicit::<Go>("form?").await;
    let page = ctx.elicit_url("page?", "https://a.example").await;
    let shown = |error: ElicitError| matches!(error, ElicitError::NotSupported { .. });
    let form = form.map(|answer| format!("{answer:?}")).map_err(shown);
    let page = page.map(|answer| format!("{answer:?}")).map_err(shown);
    Ok(format!("{form:?} {page:?}"))
}

/// A question whose answer counts once.
#[mcp_task(single_use)]
async fn once_only(ctx: ToolContext, work: State<Log>) -> Result<String, ToolError> {
    let answer = go(&ctx, "redeem?").await?;
    Ok(format!("{answer} {}", work.done("redeemed")))
}

/// A question of a tool with a version.
#[mcp_task(version = "${body.version:1}")]
async fn versioned(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(go(&ctx, "go?").await?.to_string())
}

/// A question after a result of some size.
#[mcp_task]
async fn heavy(ctx: ToolContext, bytes: usize) -> Result<String, ToolError> {
    let kept = ctx
        .step("heavy", || async move { Ok::<_, ToolError>("x".repeat(bytes)) })
        .await?;
    let answer = go(&ctx, "go?").await?;
    Ok(format!("{answer} {}", kept.len()))
}

/// What must be the same on every run: asked about before and after a question.
#[mcp_task]
async fn steady(ctx: ToolContext, work: State<Log>) -> Result<String, ToolError> {
    let now = ctx.now().await?;
    let random: [u8; 16] = ctx.random().await?;
    let key = ctx.idempotency_key("charge");
    work.push(format!("{now:?} {random:?} {key}"));
    ctx.sleep(Duration::from_secs(20)).await?;
    let later = ctx.now().await?;
    let answer = go(&ctx, "go?").await?;
    let same = work.done(&format!("{now:?} {random:?} {key}"));
    Ok(format!("{answer} {same} {}", later.duration_since(now)?.as_secs()))
}

/// A step that works at its third try.
#[mcp_task]
async fn stubborn(ctx: ToolContext, work: State<Log>) -> Result<String, ToolError> {
    let tries = ctx
        .step_with_retry("try", Retry::times(5), || async {
            match work.done("try") {
                3 => Ok(3),
                n => Err(ToolError::new(format!("try {n}"))),
            }
        })
        .await?;
    Ok(format!("{tries} {}", go(&ctx, "go?").await?))
}

/// Reports on both sides of a question.
#[mcp_task]
async fn reporting(ctx: ToolContext) -> Result<String, ToolError> {
    for progress in [1.0, 2.0] {
        ctx.progress(progress).total(4.0).send();
    }
    go(&ctx, "go?").await?;
    for progress in [2.5, 2.0, f64::NAN, 3.0] {
        ctx.progress(progress).total(4.0).message("late").send();
    }
    Ok("reported".to_owned())
}
