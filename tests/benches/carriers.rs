//! What a round of a synchronous call costs beside its body: sealing and opening its `requestState`.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench carriers
//! ```

use std::error::Error;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_tasks::__private::Tokens;
use mcp_tasks_core::{InputKind, Ledger, Timestamp};
use serde_json::json;

const KEY: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

type Bench<T> = Result<T, Box<dyn Error>>;

/// The state of a call with so many answers, as it is between two rounds.
fn state(answers: u32) -> Bench<Vec<u8>> {
    let entries: Vec<_> = (0..answers)
        .map(|n| {
            json!({
                "ordinal": n,
                "kind": InputKind::Form.entry_kind(),
                "key": format!("elicit-{n}"),
                "label": format!("Go on after {n}?"),
                "fingerprint": "5".repeat(64),
                "response": {"action": "accept", "content": {"proceed": true}},
                "turn": n,
                "issued": n + 1,
            })
        })
        .collect();
    // Read back, so that what is sealed is a ledger indeed.
    let ledger: Ledger = serde_json::from_value(json!(entries))?;
    Ok(serde_json::to_vec(
        &json!({"id": "0".repeat(32), "ledger": ledger, "open": []}),
    )?)
}

fn must<T>(outcome: Bench<T>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

fn tokens(c: &mut Criterion) {
    let codec = must(Tokens::new(KEY).map_err(Into::into));
    let mut group = c.benchmark_group("request state");
    for answers in [1, 10, 100] {
        let state = must(state(answers));
        let token = must(codec.seal(NOW, &state));
        group.throughput(Throughput::Bytes(state.len() as u64));
        group.bench_with_input(BenchmarkId::new("seal", answers), &state, |b, state| {
            b.iter(|| must(codec.seal(NOW, black_box(state))));
        });
        group.bench_with_input(BenchmarkId::new("open", answers), &token, |b, token| {
            b.iter(|| codec.open(NOW, black_box(token)));
        });
    }
    group.finish();
    // What is thrown at a server must cost it little.
    let long = "A".repeat(1 << 20);
    c.bench_function("request state/refuse 1 MiB", |b| {
        b.iter(|| codec.open(NOW, black_box(&long)))
    });
    let forged = "AQ".repeat(64 * 1024);
    c.bench_function("request state/refuse 128 KiB of another key", |b| {
        b.iter(|| codec.open(NOW, black_box(&forged)));
    });
}

criterion_group!(benches, tokens);
criterion_main!(benches);
