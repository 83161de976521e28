//! The file that open tasks are kept in.

use std::os::unix::fs::PermissionsExt;

use crate::cli::exits::scripted;
use crate::cli::harness::{Fixture, Reply, User, created, done, working};

#[tokio::test(flavor = "multi_thread")]
async fn open_tasks_are_kept_for_their_owner_and_ended_ones_are_not() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut calls = Vec::new();
    for _ in 0..6 {
        calls.push(
            user.command(&["call", server.url(), "ask", "--detach"])
                .spawn()
                .unwrap(),
        );
    }
    for call in calls {
        assert!(call.wait_with_output().await.unwrap().status.success());
    }
    // Processes that write at once take turns.
    assert_eq!(user.saved_tasks().await.len(), 6);
    let mode = std::fs::metadata(user.state()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(user.run(&["call", server.url(), "fail"]).await.code, 1);
    assert_eq!(
        user.run(&["call", server.url(), "optional", "-a", "text=a", "-a", "times=1"])
            .await
            .code,
        0
    );
    assert_eq!(user.saved_tasks().await.len(), 6);

    let kept = user.saved_tasks().await;
    assert_eq!(
        (&kept[0]["tool"], &kept[0]["server"]),
        (&"ask".into(), &server.url().into())
    );
    let id = kept[0]["taskId"].as_str().unwrap();
    assert_eq!(user.run(&["forget", id]).await.code, 0);
    assert_eq!(user.run(&["forget", id]).await.code, 2);
    assert_eq!(user.saved_tasks().await.len(), 5);
    let ambiguous = user.run(&["get", ""]).await;
    assert_eq!(ambiguous.code, 2);
}

/// A look takes nothing away: a task that has ended can be looked at again, until its end was waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_keeps_a_task_that_has_ended() {
    let script = scripted(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(done()),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let user = User::new();
    let url = script.listen().await;
    assert_eq!(user.run(&["call", &url, "t", "--detach"]).await.code, 0);
    for _ in 0..2 {
        let looked = user.run(&["get", "t1"]).await;
        assert_eq!(looked.code, 0);
        assert!(looked.out.contains("status   completed"), "{}", looked.out);
    }
    assert_eq!(user.run(&["resume", "t1"]).await.code, 0);
    assert!(user.saved_tasks().await.is_empty());
    let gone = user.run(&["get", "t1"]).await;
    assert_eq!(gone.code, 2);
    assert!(gone.err.contains("it has ended and its end was shown"), "{}", gone.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_reported_and_not_lost() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let state = user.file("tasks.json", "{\"format\": 1, \"tasks\": [tru");
    let user = user.with("MCP_TASKS_STATE", state.to_str().unwrap());
    let listed = user.run(&["list"]).await;
    assert_eq!(listed.code, 8);
    assert!(listed.err.contains("is damaged"), "{}", listed.err);
    assert_eq!(
        std::fs::read_to_string(&state).unwrap(),
        "{\"format\": 1, \"tasks\": [tru"
    );

    let called = user.run(&["call", server.url(), "ask", "--detach"]).await;
    assert_eq!(called.code, 0);
    assert!(called.err.contains("tasks.json.damaged-1"), "{}", called.err);
    let aside = state.with_file_name("tasks.json.damaged-1");
    assert_eq!(
        std::fs::read_to_string(aside).unwrap(),
        "{\"format\": 1, \"tasks\": [tru"
    );
    assert_eq!(user.saved_tasks().await.len(), 1);

    // A newer one is left alone; what cannot be kept can be resumed all the same.
    std::fs::write(&state, "{\"format\": 2}").unwrap();
    let called = user.run(&["call", server.url(), "ask", "--detach"]).await;
    assert_eq!(called.code, 0);
    assert!(called.err.contains("a newer version"), "{}", called.err);
    let by_hand = format!("mcp-tasks resume --server {} {}", server.url(), called.out.trim());
    assert!(called.err.contains(&by_hand), "{by_hand}: {}", called.err);
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "{\"format\": 2}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_url_is_not_kept() {
    let script = scripted(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(working()),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let url = format!("{}?key=tell-nobody", script.listen().await);
    let user = User::new();
    let called = user.run(&["call", &url, "t", "--detach"]).await;
    assert!(
        called.err.contains("mcp-tasks resume --server URL t1"),
        "{}",
        called.err
    );
    assert!(!called.err.contains("tell-nobody"), "{}", called.err);
    assert!(!std::fs::read_to_string(user.state()).unwrap().contains("tell-nobody"));
    let resumed = user.run(&["get", "t1"]).await;
    assert_eq!(resumed.code, 2);
    assert!(resumed.err.contains("--server"), "{}", resumed.err);
    assert_eq!(user.run(&["get", "t1", "--server", &url]).await.code, 0);
}
