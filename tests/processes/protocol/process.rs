//! The server as a process: how it stops.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use crate::protocol::harness::{Request, Wire, until};

/// A file that is not there until a test makes it, and goes with the test.
struct Flag(std::path::PathBuf);

impl Flag {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-tasks-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn raise(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A signal takes the server out of service; what is under way ends first, and the code is 0.
#[tokio::test]
async fn a_call_in_flight_ends_after_a_signal_over_http() {
    for signal in ["TERM", "INT"] {
        let flag = Flag::new(&format!("http-{signal}"));
        let wire = Wire::http().await;
        let call = Request::call("wait_for_file", json!({"path": flag.path()})).undeclared();
        let stop = async {
            wire.noted("wait_for_file started").await;
            wire.fixture.signal(signal).await;
            until("no more connections", async || {
                TcpStream::connect(wire.fixture.authority())
                    .await
                    .is_err()
                    .then_some(())
            })
            .await;
            flag.raise();
        };
        let (reply, ()) = tokio::join!(wire.ask(&call), stop);
        assert_eq!(reply.words(), "it is there");
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0), "{}", exit.log);
    }
}

/// So it does on stdio.
#[tokio::test]
async fn a_call_in_flight_ends_after_a_signal_on_stdio() {
    for signal in ["TERM", "INT"] {
        let flag = Flag::new(&format!("stdio-{signal}"));
        let wire = Wire::stdio();
        let call = Request::call("wait_for_file", json!({"path": flag.path()})).undeclared();
        let stop = async {
            wire.noted("wait_for_file started").await;
            wire.fixture.signal(signal).await;
            wire.fixture.logged("stopping").await;
            flag.raise();
        };
        let (reply, ()) = tokio::join!(wire.ask(&call), stop);
        assert_eq!(reply.words(), "it is there");
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0), "{}", exit.log);
    }
}

/// A task's execution is under way as well: it ends before the process does.
#[tokio::test]
async fn a_running_task_ends_before_a_stopped_server_does() {
    for (wire, name) in Wire::both().await.into_iter().zip(["task-http", "task-stdio"]) {
        let flag = Flag::new(name);
        wire.create("wait_for_file", json!({"path": flag.path()})).await;
        wire.noted("wait_for_file started").await;
        wire.fixture.signal("TERM").await;
        wire.fixture.logged("stopping").await;
        flag.raise();
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0));
        assert!(exit.log.contains("task finished"), "{}", exit.log);
    }
}

/// What never ends does not keep the server, be it a call, a task or work on a blocking thread: five seconds for all of
/// it together, and the server is gone, with code 0.
async fn patience_is_five_seconds(wire: Wire) {
    wire.create("sleep", json!({})).await;
    wire.create("block", json!({})).await;
    for tool in ["sleep", "block"] {
        wire.start(&Request::call(tool, json!({})).undeclared()).await;
    }
    until("all run", async || {
        let seen = wire.seen().await;
        (seen.count("sleep started") == 2 && seen.count("block started") == 2).then_some(())
    })
    .await;
    wire.fixture.signal("TERM").await;
    wire.fixture.logged("stopping").await;
    let exit = wire.fixture.exit().await;
    assert_eq!(exit.code, Some(0), "{}", exit.log);
    assert!(exit.took < Duration::from_secs(8), "{:?}", exit.took);
}

#[tokio::test]
async fn patience_with_what_never_ends_is_five_seconds_over_http() {
    patience_is_five_seconds(Wire::http().await).await;
}

#[tokio::test]
async fn patience_with_what_never_ends_is_five_seconds_on_stdio() {
    patience_is_five_seconds(Wire::stdio()).await;
}

/// An open stream of a 2025-11-25 session never ends by itself: it is cut when patience is over.
#[tokio::test]
async fn an_open_stream_of_a_session_does_not_keep_the_server() {
    let [wire, _] = Wire::legacy().await;
    let get = reqwest::Client::new()
        .get(wire.fixture.url())
        .headers(wire.headers("", None))
        .send()
        .await
        .unwrap();
    assert_eq!(get.status(), 200);
    wire.fixture.signal("TERM").await;
    let exit = wire.fixture.exit().await;
    assert_eq!(exit.code, Some(0), "{}", exit.log);
    assert!(exit.took < Duration::from_secs(8), "{:?}", exit.took);
    drop(get);
}

/// Who signals twice will not wait.
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let wire = Wire::http().await;
    wire.create("sleep", json!({})).await;
    wire.fixture.signal("TERM").await;
    wire.fixture.logged("stopping").await;
    wire.fixture.signal("INT").await;
    assert_eq!(wire.fixture.exit().await.code, Some(130));
}

/// So does the process when its runtime waits for a blocking thread that takes no notice.
#[tokio::test]
async fn a_second_signal_ends_a_process_that_a_blocking_thread_keeps() {
    let wire = Wire::stdio();
    wire.create("stubborn", json!({})).await;
    wire.noted("stubborn started").await;
    wire.fixture.signal("TERM").await;
    wire.fixture.logged("stopping with executions under way").await;
    wire.fixture.signal("TERM").await;
    assert_eq!(wire.fixture.exit().await.code, Some(130));
}

/// An idle server stops at once, also one that has had no request yet.
#[tokio::test]
async fn an_idle_server_stops_at_once() {
    let [http, stdio] = Wire::both().await;
    http.seen().await;
    stdio.seen().await;
    let [silent_http, silent_stdio] = Wire::both().await;
    silent_stdio.fixture.logged("serving").await;
    for wire in [http, stdio, silent_http, silent_stdio] {
        wire.fixture.signal("TERM").await;
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0));
        assert!(exit.took < Duration::from_secs(3), "{:?}", exit.took);
    }
}

/// 2026-07-28, "stdio", "Shutdown": the end of stdin ends the server, before and after the first message.
#[tokio::test]
async fn the_end_of_stdin_ends_the_stdio_server() {
    let silent = Wire::stdio();
    let spoke = Wire::stdio();
    spoke.seen().await;
    let [_, session] = Wire::legacy().await;
    for wire in [silent, spoke, session] {
        wire.close_stdin().await;
        let exit = wire.fixture.exit().await;
        assert_eq!(exit.code, Some(0), "{}", exit.log);
    }
}

/// A client that closes stdin after its last request still gets the answer.
#[tokio::test]
async fn a_call_in_flight_is_answered_after_the_end_of_stdin() {
    let flag = Flag::new("eof");
    let wire = Wire::stdio();
    let call = Request::call("wait_for_file", json!({"path": flag.path()})).undeclared();
    let hang_up = async {
        wire.noted("wait_for_file started").await;
        wire.close_stdin().await;
        flag.raise();
    };
    let (reply, ()) = tokio::join!(wire.ask(&call), hang_up);
    assert_eq!(reply.words(), "it is there");
    assert_eq!(wire.fixture.exit().await.code, Some(0));
}

/// 2026-07-28, "stdio": a line that is no message does not end the conversation.
#[tokio::test]
async fn a_line_that_is_no_message_does_not_end_the_stdio_server() {
    let wire = Wire::stdio();
    for line in [
        "{",
        "[]",
        "7",
        "",
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"a\ud800b"}}"#,
    ] {
        wire.write_line(line).await;
        wire.seen().await;
    }
}

/// 2026-07-28, "stdio": nothing but messages on stdout, whatever a log says meanwhile.
#[tokio::test]
async fn stdout_holds_messages_only() {
    let wire = Wire::stdio();
    let id = wire.create("explode", json!({"way": "macro"})).await;
    wire.settled(&id).await;
    assert!(wire.received().iter().all(|message| message["jsonrpc"] == "2.0"));
}
