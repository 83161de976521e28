//! Random bodies: whatever the order of answers and however often an execution is interrupted, the end is the same.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Client, Dice, Mode, Node, Word, status, text, word};

/// A body, small enough to be read when it fails.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Body {
    /// A step that takes some time, and may fail.
    Step { id: u32, ms: u64, fails: bool },
    /// A question.
    Ask { id: u32 },
    /// A question with something random in its words.
    Roll { id: u32 },
    /// A wait.
    Sleep { ms: u64 },
    /// A report.
    Report { progress: u32 },
    /// One after the other.
    Sequence { parts: Vec<Body> },
    /// A question whose answer decides.
    Branch { id: u32, yes: Box<Body>, no: Box<Body> },
    /// All at once.
    Join { parts: Vec<Body> },
    /// The first that is there, in their order. Who wins is a matter of timing, so nothing that follows depends on it.
    Select { parts: Vec<Body> },
}

fn interpret<'a>(ctx: &'a ToolContext, body: &'a Body) -> BoxFuture<'a, Result<String, ToolError>> {
    async move {
        Ok(match body {
            Body::Step { id, ms, fails } => {
                let step = ctx.step(&format!("s{id}"), || async {
                    if *ms > 0 {
                        tokio::time::sleep(Duration::from_millis(*ms)).await;
                    }
                    if *fails {
                        return Err(ToolError::new(format!("f{id}")));
                    }
                    Ok(format!("s{id}"))
                });
                step.await.unwrap_or_else(|error| error.to_string())
            }
            Body::Ask { id } => word(ctx.elicit::<Word>(format!("q{id}")).await?),
            Body::Roll { id } => {
                let [byte] = ctx.random::<1>().await?;
                word(ctx.elicit::<Word>(format!("q{id} {byte}")).await?)
            }
            Body::Sleep { ms } => {
                ctx.sleep(Duration::from_millis(*ms)).await?;
                String::new()
            }
            Body::Report { progress } => {
                ctx.progress(f64::from(*progress)).send();
                String::new()
            }
            Body::Sequence { parts } => {
                let mut said = Vec::new();
                for part in parts {
                    said.push(interpret(ctx, part).await?);
                }
                format!("[{}]", said.join(" "))
            }
            Body::Branch { id, yes, no } => {
                let answer = word(ctx.elicit::<Word>(format!("q{id}")).await?);
                let way = if answer.len().is_multiple_of(2) { yes } else { no };
                format!("{answer}? {}", interpret(ctx, way).await?)
            }
            Body::Join { parts } => {
                let all = join_all(parts.iter().map(|part| interpret(ctx, part))).await;
                let said: Result<Vec<_>, _> = all.into_iter().collect();
                format!("({})", said?.join(" & "))
            }
            Body::Select { parts } => {
                // `select_all` would poll in an order of its own later on.
                let mut parts: Vec<_> = parts.iter().map(|part| interpret(ctx, part)).collect();
                let won = std::future::poll_fn(|cx| {
                    for part in &mut parts {
                        if let std::task::Poll::Ready(said) = part.poll_unpin(cx) {
                            return std::task::Poll::Ready(said);
                        }
                    }
                    std::task::Poll::Pending
                });
                won.await?;
                "one of".to_owned()
            }
        })
    }
    .boxed()
}

/// Runs a body that it is given.
#[mcp_task(ttl = "unlimited")]
async fn generic(ctx: ToolContext, body: Body) -> Result<String, ToolError> {
    interpret(&ctx, &body).await
}

/// Makes bodies.
struct Maker {
    dice: Dice,
    next: u32,
}

impl Maker {
    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn parts(&mut self, depth: u32, most: u32) -> Vec<Body> {
        (0..=self.dice.below(most)).map(|_| self.body(depth)).collect()
    }

    fn body(&mut self, depth: u32) -> Body {
        let kinds = if depth == 0 { 9 } else { 14 };
        match self.dice.below(kinds) {
            0..3 => Body::Step {
                id: self.id(),
                ms: [0, 0, 1, 5, 20][self.dice.place(5)],
                fails: self.dice.below(5) == 0,
            },
            3..6 => Body::Ask { id: self.id() },
            6 => Body::Report { progress: self.id() },
            7 => Body::Roll { id: self.id() },
            8 => Body::Sleep {
                // The longest is long enough for the run to be put away.
                ms: [0, 1, 10, 30, 12_000][self.dice.place(5)],
            },
            9 | 10 => Body::Sequence {
                parts: self.parts(depth - 1, 4),
            },
            11 => Body::Branch {
                id: self.id(),
                yes: Box::new(self.body(depth - 1)),
                no: Box::new(self.body(depth - 1)),
            },
            12 => Body::Select {
                parts: self.parts(depth - 1, 3),
            },
            _ => Body::Join {
                parts: self.parts(depth - 1, 3),
            },
        }
    }
}

/// The answer to a question depends on the question alone, however often and in whatever order it is asked.
fn answer_to(request: &Value) -> Value {
    let question = request["params"]["message"].as_str().expect("a question has words");
    let id = question.split(' ').next().unwrap_or_default();
    let number = id.trim_start_matches('q').parse().expect("and a number");
    match Dice::new(number).below(8) {
        0 => json!({"action": "decline"}),
        1 => json!({"action": "cancel"}),
        long => json!({"action": "accept", "content": {"word": format!("{id}{}", "!".repeat(long as usize))}}),
    }
}

/// Runs the body to its end, answering open questions a few at a time.
async fn run(client: &Client, body: &Body, dice: &mut Dice, all_at_once: bool) -> Value {
    let id = client.start("generic", json!({"body": body})).await;
    loop {
        let task = client.settled(&id).await;
        if status(&task) != "input_required" {
            return task;
        }
        let requests = task["inputRequests"].as_object().expect("there are questions");
        let skipped = dice.place(requests.len());
        let answers: serde_json::Map<String, Value> = requests
            .iter()
            .cycle()
            .skip(skipped)
            .take(if all_at_once {
                requests.len()
            } else {
                1 + dice.place(requests.len())
            })
            .map(|(key, request)| (key.clone(), answer_to(request)))
            .collect();
        client.update(&id, Value::Object(answers)).await.expect("acknowledged");
    }
}

/// Every run of one body, however disturbed, comes to the same end, and none reports a mismatch. Each failure prints the
/// seed to set in `MCP_TASKS_TEST_SEED` and the body; `MCP_TASKS_TEST_ROUNDS` makes it a longer search.
#[tokio::test(start_paused = true)]
async fn every_run_of_a_body_comes_to_the_same_end() {
    let seed = match std::env::var("MCP_TASKS_TEST_SEED") {
        Ok(seed) => seed.parse().expect("a seed is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    };
    println!("MCP_TASKS_TEST_SEED={seed}");
    let rounds = match std::env::var("MCP_TASKS_TEST_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("rounds are a number"),
        Err(_) => 60,
    };
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        let mut maker = Maker {
            dice: Dice::new(dice.roll()),
            next: 0,
        };
        let body = Body::Sequence {
            parts: maker.parts(3, 4),
        };
        let mut expected = None;
        for mode in [
            Mode::Straight,
            Mode::Straight,
            Mode::Replayed,
            Mode::Replayed,
            Mode::Hostile,
        ] {
            let first = expected.is_none();
            let (node, client) = Node::start(mode, |b| b.register::<generic>()).await;
            if !first {
                let jitter = Dice::new(dice.roll());
                node.store
                    .script(|script| script.update.jitter = Some((jitter, Duration::from_millis(8))));
            }
            let task = run(&client, &body, &mut dice, first).await;
            let what = format!("seed {seed}, round {round}, {mode:?}: {}", json!(body));
            assert_eq!(status(&task), "completed", "{what}\n{task}");
            let end = text(&task).to_owned();
            assert_eq!(*expected.get_or_insert_with(|| end.clone()), end, "{what}");
        }
    }
}
