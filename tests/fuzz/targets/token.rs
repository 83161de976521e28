//! A `requestState` as a client may send it (2026-07-28, "Multi Round-Trip Requests": it is attacker-controlled input). It
//! is the token that was sealed, or it does not open.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mcp_tasks::__private::Tokens;
use mcp_tasks_core::Timestamp;

const KEY: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const STATE: &[u8] = br#"{"id":"a","ledger":[],"open":[]}"#;

/// The codec and one good token.
static SEALED: LazyLock<(Tokens, String)> = LazyLock::new(|| {
    let tokens = Tokens::new(KEY).expect("the key is one");
    let token = tokens.seal(NOW, STATE).expect("it fits");
    (tokens, token)
});

fuzz_target!(|data: &[u8]| {
    let (tokens, good) = &*SEALED;
    // As text that is no token, and as changes to a good one: the first bytes say where, the others what.
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(text == good || tokens.open(NOW, text).is_none());
    }
    let Some((at, change)) = data.split_first_chunk::<2>() else {
        return;
    };
    let at = usize::from(u16::from_be_bytes(*at)) % good.len();
    let mut changed = good.clone().into_bytes();
    for (byte, change) in changed.iter_mut().skip(at).zip(change) {
        *byte ^= change & 0x7f;
    }
    if let Ok(text) = std::str::from_utf8(&changed) {
        let opened = tokens.open(NOW, text);
        assert_eq!(opened.as_deref(), (text == good).then_some(STATE));
    }
});
