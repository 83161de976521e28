use super::*;

fn read(values: &[(&str, &str)]) -> Result<Settings, StartError> {
    let nothing: [(&str, &str); 0] = [];
    let builder = Config::builder().environment(nothing).without_file();
    Settings::read(
        &values
            .iter()
            .fold(builder, |builder, (key, value)| builder.set(*key, *value))
            .build()?,
    )
}

#[test]
fn there_is_a_default_for_every_key() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.default_ttl.duration(), Some(Duration::from_secs(3600)));
    assert_eq!(settings.default_poll_interval.duration(), Duration::from_secs(2));
    assert_eq!(
        (settings.sweep_interval, settings.lease),
        (Duration::from_secs(60), Duration::from_secs(30))
    );
    assert_eq!(settings.transport, Transport::Http);
    assert_eq!(settings.http_addr, "127.0.0.1:8080");
    assert!(settings.http_require_name && settings.work);
    assert_eq!(
        (settings.http_session_timeout, settings.http_max_sessions),
        (Duration::from_secs(300), 1000)
    );
    assert_eq!(
        (settings.store_url, settings.store_key_prefix.as_str()),
        (None, "mcp-tasks:")
    );
    assert_eq!(
        (settings.request_state_keys, settings.request_state_ttl),
        (None, Duration::from_secs(300))
    );
    assert_eq!(
        (settings.quota_open_per_principal, settings.quota_running),
        (None, None)
    );
}

#[test]
fn values_that_are_not_accepted_are_named_with_their_key_all_at_once() {
    let table = [
        (DEFAULT_TTL, "P1M"),
        (DEFAULT_POLL_INTERVAL, "PT0S"),
        (SWEEP_INTERVAL, "never"),
        (WORK, "sometimes"),
        (TRANSPORT, "pigeon"),
        (HTTP_ADDR, "8080"),
        (HTTP_REQUIRE_NAME, "yes"),
        (HTTP_SESSION_TIMEOUT, "PT0S"),
        (HTTP_MAX_SESSIONS, "0"),
        (HTTP_ALLOWED_HOSTS, "a,,b"),
        (STORE_KEY_PREFIX, ""),
        (QUOTA_OPEN, "0"),
        (QUOTA_RUNNING, "-1"),
    ];
    let error = read(&table).unwrap_err();
    assert_eq!(error.problems().len(), table.len(), "{error}");
    for (problem, (key, value)) in error.problems().iter().zip(table) {
        let text = problem.to_string();
        assert!(text.contains(key) && text.contains(value), "{text}");
    }
}

#[test]
fn hosts_and_origins_that_no_request_can_have_are_refused_one_by_one() {
    let bad = [
        (HTTP_ALLOWED_HOSTS, "x.com, https://y.com, z.com/mcp"),
        (HTTP_ALLOWED_ORIGINS, "https://x.com, app.example.com, *"),
    ];
    let error = read(&bad).unwrap_err();
    let [hosts, origins] = error.problems() else {
        panic!("{error}")
    };
    let (hosts, origins) = (hosts.to_string(), origins.to_string());
    for words in [HTTP_ALLOWED_HOSTS, "no scheme or path: write `y.com`", "write `z.com`"] {
        assert!(hosts.contains(words), "{words}: {hosts}");
    }
    for words in [
        HTTP_ALLOWED_ORIGINS,
        "has a scheme: write `https://app.example.com`",
        "`*`: ",
    ] {
        assert!(origins.contains(words), "{words}: {origins}");
    }
    let good = [
        (HTTP_ALLOWED_HOSTS, "x.com, [::1]:80"),
        (HTTP_ALLOWED_ORIGINS, "https://x.com, http://localhost:*"),
    ];
    let settings = read(&good).unwrap();
    assert_eq!(settings.http_allowed_hosts.unwrap(), ["x.com", "[::1]:80"]);
    // rmcp would take an origin without a port for any, and warn of it.
    assert_eq!(
        settings.http_allowed_origins.unwrap(),
        ["https://x.com:443", "http://localhost:*"]
    );
}

#[test]
fn a_default_poll_interval_beyond_the_default_ttl_is_refused() {
    assert!(read(&[(DEFAULT_TTL, "PT1S")]).is_err());
    assert!(read(&[(DEFAULT_TTL, "unlimited"), (DEFAULT_POLL_INTERVAL, "PT1H")]).is_ok());
}

#[test]
fn secrets_are_not_shown() {
    let keys = "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ=";
    let settings = read(&[(STORE_URL, "redis://:hunter2@db"), (REQUEST_STATE_KEYS, keys)]).unwrap();
    let shown = format!("{settings:?}");
    assert!(!shown.contains("hunter2") && !shown.contains(keys), "{shown}");
    let error = read(&[(REQUEST_STATE_KEYS, "hunter2")]).unwrap_err().to_string();
    assert!(
        error.contains("32 bytes in base64") && !error.contains("hunter2"),
        "{error}"
    );
    assert_eq!(settings.store_url.unwrap().reveal(), "redis://:hunter2@db");
}
