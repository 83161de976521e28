//! The `inputResponses` of a `tasks/update` or of a retried call, whatever they are: every open question stays open, is
//! asked again under a further key, or gets one entry in the ledger; nothing else changes (Tasks extension, "Task Update
//! Requests").

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mcp_tasks_core::{Answers, InputRequest, Json, Ledger};

/// One question of every kind.
static OPEN: LazyLock<Vec<InputRequest>> = LazyLock::new(|| {
    let form = r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object",
        "properties":{"s":{"type":"string","format":"email","minLength":2,"maxLength":9},"n":{"type":"number","minimum":0},
        "i":{"type":"integer"},"b":{"type":"boolean"},"e":{"type":"string","enum":["x","y"]},
        "l":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1},
        "d":{"type":"string","format":"date-time"},"u":{"type":"string","format":"uri"}},"required":["i"]}}}"#;
    let url = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example"}}"#;
    let sampling = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    let roots = r#"{"method":"roots/list","params":{}}"#;
    [("f", "form", form), ("u", "url", url), ("s", "sampling", sampling), ("r", "roots", roots)]
        .into_iter()
        .enumerate()
        .map(|(ordinal, (key, kind, request))| {
            let print = "0".repeat(64);
            let stored = format!(
                r#"{{"ordinal":{ordinal},"key":"{key}","kind":"{kind}","fingerprint":"{print}","issued":4,"request":{request}}}"#
            );
            serde_json::from_str(&stored).expect("it is a question")
        })
        .collect()
});

fuzz_target!(|data: &[u8]| {
    let Ok(responses) = serde_json::from_slice::<BTreeMap<String, Json>>(data) else {
        return;
    };
    let mut open = OPEN.clone();
    let mut ledger = Ledger::default();
    // A client may send the same again, under the next keys.
    for _ in 0..4 {
        let renamed: BTreeMap<String, Json> = open
            .iter()
            .filter_map(|request| {
                let base = request.key.split('~').next().unwrap_or_default();
                Some((request.key.to_string(), responses.get(base)?.clone()))
            })
            .chain(responses.clone())
            .collect();
        let taken = Answers::apply(&ledger, &open, &renamed);
        assert_eq!(taken.open.len() + taken.ledger.entries().len(), OPEN.len());
        assert_eq!(taken.changed, taken.open != open || taken.ledger != ledger);
        for request in &taken.open {
            assert!(
                taken
                    .ledger
                    .entries()
                    .iter()
                    .all(|entry| entry.ordinal != request.ordinal)
            );
            assert!(request.misfits < 3);
            assert!(serde_json::from_str::<Json>(request.request.get()).is_ok());
        }
        let stored = serde_json::to_string(&taken.ledger).expect("a ledger has a JSON form");
        assert_eq!(
            serde_json::from_str::<Ledger>(&stored).expect("and is read back"),
            taken.ledger
        );
        (open, ledger) = (taken.open, taken.ledger);
    }
});
