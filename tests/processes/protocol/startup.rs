//! What keeps the server from starting, and the words for it.

use crate::protocol::harness::Fixture;

/// A value that cannot be used: the message names the tool, the attribute, the placeholder and the value.
#[tokio::test]
async fn a_bad_value_of_an_attribute_names_tool_attribute_placeholder_and_value() {
    let exit = Fixture::refused(&[("FIXTURE_TTL", "banana")]).await;
    assert_eq!(exit.code, Some(1));
    for word in ["`configured`", "ttl", "${fixture.ttl:PT10M}", "`banana`", "tools.rs"] {
        assert!(exit.log.contains(word), "{word}: {}", exit.log);
    }
}

/// Every mistake is in the one message.
#[tokio::test]
async fn all_mistakes_are_reported_at_once() {
    let exit = Fixture::refused(&[
        ("FIXTURE_TTL", "banana"),
        ("FIXTURE_POLL", "-PT1S"),
        ("MCP_TASKS_LEASE", "soon"),
        ("MCP_TASKS_QUOTA_RUNNING", "0"),
        ("MCP_TASKS_TRANSPORT", "pigeon"),
    ])
    .await;
    assert_eq!(exit.code, Some(1));
    for word in [
        "banana",
        "-PT1S",
        "mcp.tasks.lease",
        "soon",
        "mcp.tasks.quota.running",
        "mcp.tasks.transport",
        "pigeon",
    ] {
        assert!(exit.log.contains(word), "{word}: {}", exit.log);
    }
}

/// A poll interval that a task would not live to see.
#[tokio::test]
async fn a_poll_interval_beyond_the_ttl_names_both() {
    let exit = Fixture::refused(&[("FIXTURE_TTL", "PT1S"), ("FIXTURE_POLL", "PT2S")]).await;
    assert_eq!(exit.code, Some(1));
    assert!(exit.log.contains("`configured`"), "{}", exit.log);
}

/// Hosts and origins that no request can have would be a server that refuses everything.
#[tokio::test]
async fn hosts_and_origins_that_cannot_match_stop_the_start() {
    let exit = Fixture::refused(&[
        ("MCP_TASKS_HTTP_ALLOWED_HOSTS", "https://x.example"),
        ("MCP_TASKS_HTTP_ALLOWED_ORIGINS", "app.example"),
    ])
    .await;
    assert_eq!(exit.code, Some(1));
    for words in [
        "a host has no scheme or path: write `x.example`",
        "an origin has a scheme: write `https://app.example`",
    ] {
        assert!(exit.log.contains(words), "{words}: {}", exit.log);
    }
}

/// A program without a subscriber still says what a start has to say, on stderr: once, and nothing after it.
#[tokio::test]
async fn warnings_and_the_address_are_on_stderr_where_there_is_no_log() {
    let quiet = ("FIXTURE_NO_LOG", "1");
    let misspelt = ("MCP_TASKS_LEESE", "PT1M");
    let fixture = Fixture::http(&[quiet, misspelt]).await;
    let url = fixture.url().to_owned();
    fixture.signal("TERM").await;
    let log = fixture.exit().await.log;
    let lines: Vec<&str> = log.lines().collect();
    let [keys, variable, serving] = lines.as_slice() else {
        panic!("three lines: {log}")
    };
    assert!(
        variable.contains("`MCP_TASKS_LEESE`") || keys.contains("`MCP_TASKS_LEESE`"),
        "{log}"
    );
    assert!(log.contains("mcp.tasks.request-state.keys"), "{log}");
    assert_eq!(*serving, format!("mcp-tasks: serving at {url}"));

    let logged = Fixture::http(&[misspelt]).await;
    logged.signal("TERM").await;
    let log = logged.exit().await.log;
    assert_eq!(log.matches("`MCP_TASKS_LEESE`").count(), 1, "{log}");
    assert!(!log.contains("mcp-tasks: "), "{log}");
}

/// Values that are right take effect.
#[tokio::test]
async fn good_values_of_placeholders_take_effect() {
    let wire =
        crate::protocol::harness::Wire::http_with(&[("FIXTURE_TTL", "1h 30m"), ("FIXTURE_POLL", "PT0.5S")]).await;
    let reply = wire.call("configured", serde_json::json!({})).await;
    assert_eq!(reply.result()["ttlMs"], 5_400_000);
    assert_eq!(reply.result()["pollIntervalMs"], 500);
}

/// An address that is taken is named, with the key that sets another.
#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let first = Fixture::http(&[]).await;
    let exit = Fixture::refused(&[("MCP_TASKS_HTTP_ADDR", first.authority())]).await;
    assert_eq!(exit.code, Some(1));
    for word in [
        first.authority(),
        "mcp.tasks.http.addr",
        "MCP_TASKS_HTTP_ADDR",
        "in use",
    ] {
        assert!(exit.log.contains(word), "{word}: {}", exit.log);
    }
}

/// Nor is an address that is none.
#[tokio::test]
async fn an_address_that_is_none_is_named() {
    let exit = Fixture::refused(&[("MCP_TASKS_HTTP_ADDR", "nowhere")]).await;
    assert_eq!(exit.code, Some(1));
    for word in ["nowhere", "mcp.tasks.http.addr"] {
        assert!(exit.log.contains(word), "{word}: {}", exit.log);
    }
}
