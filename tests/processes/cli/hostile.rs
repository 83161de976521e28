//! Servers that want to drive the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::cli::harness::{Reply, Script, User, task};

/// Sets the window's title, clears the screen, goes up, writes to the clipboard, and asks the terminal who it is.
const EVIL: &str = "a\u{1b}]0;pwned\u{7}\u{1b}[2J\u{1b}[1A\u{9b}31m\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}[c\u{202e}z\rb";

/// A server that writes it wherever it can.
fn hostile() -> Script {
    let answered = Arc::new(AtomicBool::new(false));
    Script::new(move |asked| match asked.method.as_str() {
        "tools/list" => Reply::Result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [
                {"name": "t", "description": EVIL, "inputSchema": {"type": "object", "properties": {
                    EVIL: {"type": "string", "description": EVIL, "default": EVIL, "enum": [EVIL]},
                }}},
                {"name": EVIL, "inputSchema": {"type": "object"}},
                {"name": "fails", "inputSchema": {"type": "object"}},
            ],
        })),
        "tools/call" if asked.params["name"] == "fails" => Reply::Error(-32000, "\u{1b}]0;pwned\u{7}\u{9b}2J"),
        "tools/call" => Reply::Result(task("working", json!({"resultType": "task", "statusMessage": EVIL}))),
        "tasks/update" => {
            answered.store(true, Ordering::SeqCst);
            Reply::Result(json!({"resultType": "complete"}))
        }
        "tasks/get" if asked.before == 0 => {
            Reply::Result(task("working", json!({"statusMessage": format!("1/2: {EVIL}")})))
        }
        "tasks/get" if !answered.load(Ordering::SeqCst) => Reply::Result(task(
            "input_required",
            json!({
                "inputRequests": {EVIL: {"method": "elicitation/create", "params": {"message": EVIL, "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "one": {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL, "pattern": EVIL},
                        "two": {"type": "string", "title": EVIL, "oneOf": [{"const": EVIL, "title": EVIL}]},
                    },
                    "required": ["one", "two"],
                }}}},
            }),
        )),
        "tasks/get" => Reply::Result(task(
            "completed",
            json!({"result": {
                "content": [
                    {"type": "text", "text": EVIL},
                    {"type": EVIL, "uri": EVIL},
                    {"type": "resource", "resource": {"uri": EVIL, "text": EVIL, "mimeType": EVIL}},
                ],
                "structuredContent": {EVIL: EVIL},
            }}),
        )),
        _ => Reply::Error(-32601, "unknown method"),
    })
}

fn is_inert(text: &str) {
    for (at, c) in text.char_indices() {
        let acts = (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
        assert!(!acts, "{:?}", &text[at.saturating_sub(20)..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_from_a_server_drives_the_terminal() {
    let url = hostile().listen().await;
    let user = User::new();
    let mut terminal = user.open(&["call", &url, "t"]);
    terminal.sees("a\\u{1b}]0;pwned\\u{7}").await;
    terminal.sees("Esc for other choices").await;
    terminal.enter("x");
    terminal.sees("x").await;
    terminal.press("\u{1b}");
    terminal.sees("Decline to answer").await;
    terminal.press("\u{1b}[B\r");
    assert_eq!(terminal.exit().await, 0, "{}", terminal.screen());
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    for evil in ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{1b}[c", "\u{7}"] {
        assert!(!bytes.contains(evil), "{evil:?} in {bytes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_from_a_server_comes_out_unseen() {
    let user = User::new();
    let answers = user.file(
        "answers.json",
        &json!({"two": EVIL, "one": EVIL, EVIL: {"action": "decline"}}).to_string(),
    );
    let answers = answers.to_str().unwrap();
    for arguments in [
        &["tools"][..],
        &["call", "t"],
        &["call", "t", "--answers", answers],
        &["call", "fails"],
        &["call", EVIL],
        &["call", "nothing"],
        &["call", "t", "-a", "x=1"],
    ] {
        for format in ["text", "json"] {
            let url = hostile().listen().await;
            let mut all = vec![arguments[0], url.as_str()];
            all.extend(&arguments[1..]);
            all.extend(["-o", format]);
            let ran = user.run(&all).await;
            is_inert(&ran.out);
            is_inert(&ran.err);
            if format == "json" {
                ran.document();
            }
        }
    }
    // What scripts read is exact.
    let url = hostile().listen().await;
    let tools: Value = user.run(&["tools", &url, "-o", "json"]).await.document();
    assert_eq!(tools["tools"][0]["description"], EVIL);
    let log = user
        .run(&["tools", "stdio:sh -c 'printf \"\\033]0;pwned\\007\\n\" >&2'"])
        .await;
    assert!(log.err.contains("server: \\u{1b}]0;pwned"), "{}", log.err);
    is_inert(&log.err);
}
