//! The protocol end to end: a server in a process of its own, and clients that look at what it sends.
//!
//! Every test starts its servers itself, and nothing is shared between tests. Each is named for the rule it checks and
//! says where the rule stands: "Tasks" is the extension's specification, "2026-07-28" and "2025-11-25" are the core's.

mod answers;
mod cancel;
mod decision;
mod declaration;
mod door;
mod errors;
mod guards;
mod harness;
mod identifiers;
mod legacy;
mod listen;
mod owners;
mod panics;
mod polling;
mod process;
mod progress;
mod quota;
mod sdk_client;
mod sessions;
mod shape;
mod startup;
mod stdio;
mod subscriptions;
mod two_ways;

/// `mcp.tasks.http.front`: the same tests, against servers that leave every request to rmcp. Both ways say the same.
#[test]
fn servers_that_leave_all_to_rmcp_pass_the_same_tests() {
    // What there is in front alone, what compares the two, what is not over HTTP, and this test.
    let others = [
        "listen::",
        "sessions::",
        "stdio::",
        "two_ways::",
        "servers_that_leave_all_to_rmcp",
    ];
    let skipped = others
        .iter()
        .flat_map(|name| ["--skip".to_owned(), format!("protocol::{name}")]);
    let tests = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("protocol::")
        .args(skipped)
        .env(crate::harness::FRONT, "false")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, err) = (text(tests.stdout), text(tests.stderr));
    assert!(tests.status.success() && !out.contains(" 0 passed"), "{out}\n{err}");
}
