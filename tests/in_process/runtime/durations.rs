//! Durations that configuration gives, checked when the server starts.

use mcp_tasks::prelude::*;
use mcp_tasks::{Config, StartError};

/// Does nothing.
#[mcp_task(ttl = "${test.ttl:PT1H}", poll_interval = "${test.poll:PT1S}")]
async fn timed() -> String {
    String::new()
}

fn start(values: &[(&str, &str)]) -> Result<(), StartError> {
    let config = values
        .iter()
        .fold(Config::builder(), |config, (key, value)| config.set(*key, *value));
    TaskRuntime::builder()
        .without_inventory()
        .register::<timed>()
        .config(config.build()?)
        .build()
        .map(drop)
}

/// A duration that no wire value can carry, or that means nothing, stops the start and never the first request.
#[test]
fn a_duration_that_cannot_be_used_stops_the_start_and_is_named() {
    for (key, value) in [
        ("test.ttl", "PT0S"),
        ("test.ttl", "-PT1H"),
        ("test.ttl", "P100000D"),
        ("test.ttl", "PT9223372036854775807S"),
        ("test.ttl", "PT99999999999999999999999999S"),
        ("test.ttl", "soon"),
        ("test.ttl", ""),
        ("test.poll", "PT0S"),
        ("test.poll", "PT0.0001S"),
        ("test.poll", "PT2H"),
        ("test.poll", "unlimited"),
    ] {
        let error = start(&[(key, value)]).expect_err(value).to_string();
        assert!(error.contains("timed"), "{key}={value}: {error}");
        if !value.is_empty() {
            assert!(error.contains(value), "{key}={value}: {error}");
        }
    }
}

/// The server's own keys are checked the same way.
#[test]
fn a_default_that_cannot_be_used_stops_the_start_and_is_named() {
    for (key, value) in [
        ("mcp.tasks.default-ttl", "PT0S"),
        ("mcp.tasks.default-poll-interval", "PT0.0001S"),
        ("mcp.tasks.default-poll-interval", "PT2H"),
        ("mcp.tasks.lease", "-PT1S"),
        ("mcp.tasks.sweep-interval", "unlimited"),
    ] {
        let error = start(&[(key, value)]).expect_err(value).to_string();
        assert!(error.contains(key), "{key}={value}: {error}");
    }
}

/// What is merely long, or written another way, starts.
#[test]
fn long_and_unlimited_durations_are_accepted() {
    for (key, value) in [
        ("test.ttl", "P25D"),
        ("test.ttl", "unlimited"),
        ("test.ttl", "1h 30m"),
        ("test.poll", "PT0.001S"),
        ("test.poll", "PT1H"),
    ] {
        start(&[(key, value)]).expect(value);
    }
}
