//! A ledger that was written once resumes for good, whatever features other crates switch on in serde_json: what a body
//! asked is told by fingerprints, and these must not hang on the order of a map's members or on how numbers are held.
//!
//! `cargo test -p mcp-tasks-tests --test in_process --features serde_json/arbitrary_precision golden` runs it with other
//! features; `KIT_WRITE_GOLDEN=1` writes the file anew, which only a new format of records may need.

use std::time::Duration;

use mcp_tasks::context::InputKind;
use mcp_tasks::prelude::*;
use mcp_tasks::testing::{EntryKind, Ledger, TestTool};
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/in_process/kit/golden.json");

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    zebra: u64,
    apple: f64,
    tiny: f64,
    nested: Option<Vec<i64>>,
}

/// Makes a call of every kind, with numbers that are hard to print.
#[mcp_task]
async fn everything(ctx: ToolContext) -> Result<String, ToolError> {
    let measured = || async {
        Ok::<_, ToolError>(Measured {
            zebra: u64::MAX,
            apple: 0.1,
            tiny: 5e-324,
            nested: Some(vec![i64::MIN, -1]),
        })
    };
    let measured = ctx.step("measure", measured).await?;
    let form = json!({
        "type": "object",
        "properties": {
            "zoom": {"type": "number"},
            "count": {"type": "integer", "minimum": -9_007_199_254_740_993_i64, "maximum": 4},
            "colour": {"type": "string", "enum": ["red", "green"]},
        },
        "required": ["zoom", "colour"],
    });
    let (asked, now, random) = tokio::join!(
        ctx.elicit_schema(format!("{} and {}?", measured.zebra, measured.apple), &form)
            .key("zoom"),
        ctx.now(),
        ctx.random::<3>(),
    );
    let asked = match asked? {
        Elicited::Accept(content) => format!("{} {}", content["zoom"].as_f64().unwrap_or_default(), content["colour"]),
        refused => format!("{refused:?}"),
    };
    ctx.sleep(Duration::from_millis(1500)).await?;
    let failed = ctx
        .step("fail", || async { Err::<(), _>(ToolError::new("no paper")) })
        .await;
    let failed = failed.map_or_else(|error| error.to_string(), |()| String::new());
    let model: Value = ctx
        .sample(&json!({"maxTokens": 12, "temperature": 0.7, "messages": []}))
        .await?;
    let url = ctx.can_ask(InputKind::Url).await?;
    Ok(format!(
        "{asked}; {measured:?}; {now:?}; {random:?}; {failed}; {}; {url}",
        model["content"]["text"],
        now = now?.duration_since(std::time::UNIX_EPOCH)?.as_millis(),
        random = random?,
    ))
}

/// Where the random bytes are in what the tool returns.
const RANDOM: usize = 3;

fn zoom() -> Value {
    json!({"zoom": 2.5, "colour": "green"})
}

fn said() -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "fine"}})
}

fn test() -> TestTool {
    TestTool::new::<everything>().answer("zoom", zoom()).answer_next(said())
}

#[derive(Serialize, Deserialize)]
struct Golden {
    /// What was stored, write by write.
    ledgers: Vec<Ledger>,
    /// How the tool ended.
    text: String,
}

#[tokio::test]
async fn a_golden_ledger_resumes_to_its_end() {
    if std::env::var_os("KIT_WRITE_GOLDEN").is_some() {
        let outcome = test().run().await;
        let (ledgers, text) = (outcome.ledgers().to_vec(), outcome.text());
        let golden = serde_json::to_string_pretty(&Golden { ledgers, text }).unwrap();
        std::fs::write(FILE, golden + "\n").unwrap();
    }
    let golden: Golden = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    assert!(golden.ledgers.len() > 4);
    for (at, ledger) in golden.ledgers.iter().enumerate() {
        let has = |kind| ledger.entries().iter().any(|entry| entry.kind == kind);
        let mut resumed = TestTool::new::<everything>().from_ledger(ledger.clone());
        if !has(EntryKind::Elicit) {
            resumed = resumed.answer("zoom", zoom());
        }
        if !has(EntryKind::Sample) {
            resumed = resumed.answer_next(said());
        }
        for resumed in [resumed.clone(), resumed.replaying()] {
            let text = resumed.run().await.text();
            let (mut now, mut then): (Vec<_>, Vec<_>) = (text.split("; ").collect(), golden.text.split("; ").collect());
            if !has(EntryKind::Random) {
                now.remove(RANDOM);
                then.remove(RANDOM);
            }
            assert_eq!(now, then, "from ledger {at}");
        }
    }
    let outcome = test().run().await;
    let prints = |ledger: &Ledger| -> Vec<_> {
        let entries = ledger.entries().iter();
        entries
            .map(|entry| (entry.ordinal, entry.label.clone(), entry.fingerprint))
            .collect()
    };
    assert_eq!(
        prints(outcome.ledgers().last().unwrap()),
        prints(golden.ledgers.last().unwrap())
    );
}
