//! The settings of the server itself, read and checked at start-up.

use std::fmt;
use std::time::Duration;

use mcp_tasks_core::duration::{PollInterval, Ttl, parse_duration};

use crate::config::Config;
use crate::config::sealing_keys::SealingKeys;
use crate::config::start::{Problems, StartError};

pub(crate) mod allowed;

/// Every key of the server itself begins with it.
pub(crate) const PREFIX: &str = "mcp.tasks.";

/// What else begins with this in a file is a key of the server that is misspelt, such as `mcp.task.lease`.
pub(crate) const NAMESPACE: &str = "mcp.";

pub(crate) const DEFAULT_TTL: &str = "mcp.tasks.default-ttl";
pub(crate) const DEFAULT_POLL_INTERVAL: &str = "mcp.tasks.default-poll-interval";
pub(crate) const SWEEP_INTERVAL: &str = "mcp.tasks.sweep-interval";
pub(crate) const LEASE: &str = "mcp.tasks.lease";
pub(crate) const WORK: &str = "mcp.tasks.work";
pub(crate) const TRANSPORT: &str = "mcp.tasks.transport";
pub(crate) const HTTP_ADDR: &str = "mcp.tasks.http.addr";
pub(crate) const HTTP_ALLOWED_HOSTS: &str = "mcp.tasks.http.allowed-hosts";
pub(crate) const HTTP_ALLOWED_ORIGINS: &str = "mcp.tasks.http.allowed-origins";
pub(crate) const HTTP_FRONT: &str = "mcp.tasks.http.front";
pub(crate) const HTTP_REQUIRE_NAME: &str = "mcp.tasks.http.require-name";
pub(crate) const HTTP_SESSION_TIMEOUT: &str = "mcp.tasks.http.session-timeout";
pub(crate) const HTTP_MAX_SESSIONS: &str = "mcp.tasks.http.max-sessions";
pub(crate) const STORE_URL: &str = "mcp.tasks.store.url";
pub(crate) const STORE_KEY_PREFIX: &str = "mcp.tasks.store.key-prefix";
pub(crate) const REQUEST_STATE_KEYS: &str = "mcp.tasks.request-state.keys";
pub(crate) const REQUEST_STATE_TTL: &str = "mcp.tasks.request-state.ttl";
pub(crate) const QUOTA_OPEN: &str = "mcp.tasks.quota.open-per-principal";
pub(crate) const QUOTA_RUNNING: &str = "mcp.tasks.quota.running";

/// All of them.
pub(crate) const KEYS: [&str; 19] = [
    DEFAULT_TTL,
    DEFAULT_POLL_INTERVAL,
    SWEEP_INTERVAL,
    LEASE,
    WORK,
    TRANSPORT,
    HTTP_ADDR,
    HTTP_ALLOWED_HOSTS,
    HTTP_ALLOWED_ORIGINS,
    HTTP_FRONT,
    HTTP_REQUIRE_NAME,
    HTTP_SESSION_TIMEOUT,
    HTTP_MAX_SESSIONS,
    STORE_URL,
    STORE_KEY_PREFIX,
    REQUEST_STATE_KEYS,
    REQUEST_STATE_TTL,
    QUOTA_OPEN,
    QUOTA_RUNNING,
];

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// Standard input and output.
    Stdio,
}

/// A value that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value, to hand it on to where it is needed.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The settings of the server itself.
///
/// | key | default | |
/// |---|---|---|
/// | `mcp.tasks.default-ttl` | `PT1H` | for tools without `ttl`; `unlimited` is possible |
/// | `mcp.tasks.default-poll-interval` | `PT2S` | for tools without `poll_interval` |
/// | `mcp.tasks.sweep-interval` | `PT1M` | how often expired tasks are removed |
/// | `mcp.tasks.lease` | `PT30S` | how long an execution is its node's without a renewal |
/// | `mcp.tasks.work` | `true` | `false` leaves every task to other nodes of the deployment |
/// | `mcp.tasks.transport` | `http` | or `stdio` |
/// | `mcp.tasks.http.addr` | `127.0.0.1:8080` | host and port |
/// | `mcp.tasks.http.allowed-hosts` | loopback | `Host` headers that are served, comma-separated, as `tools.example.com` or with a port; the list replaces the loopback names |
/// | `mcp.tasks.http.allowed-origins` | loopback | `Origin` headers that are served, comma-separated, as `https://app.example.com`, with a port or `:*` for any; the list replaces the loopback pages |
/// | `mcp.tasks.http.front` | `true` | answer what is asked of tasks in front of rmcp; `false` leaves all to rmcp |
/// | `mcp.tasks.http.require-name` | `true` | refuse `tasks/*` without the `Mcp-Name` header |
/// | `mcp.tasks.http.session-timeout` | `PT5M` | how long a session of 2025-11-25 is kept while it has no stream open |
/// | `mcp.tasks.http.max-sessions` | `1000` | how many such sessions are kept; the one heard of least lately ends first |
/// | `mcp.tasks.store.url` | none | where tasks are kept: `sqlite:<file>`, `postgres://<server>`, `redis://<server>`, `nats://<server>` or `tls://<server>`, each with the feature of its store; none is memory |
/// | `mcp.tasks.store.key-prefix` | `mcp-tasks:` | before every key in a shared store; names the bucket of a NATS store; a SQLite file is not shared and has none |
/// | `mcp.tasks.request-state.keys` | none | seal the state of synchronous calls; none is a key of this process |
/// | `mcp.tasks.request-state.ttl` | `PT5M` | how long such a state is good |
/// | `mcp.tasks.quota.open-per-principal` | none | tasks one caller may have that have not ended |
/// | `mcp.tasks.quota.running` | none | executions of this node at a time: over it calls are refused, and tasks that were answered wait for a place |
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// `mcp.tasks.default-ttl`.
    pub default_ttl: Ttl,
    /// `mcp.tasks.default-poll-interval`.
    pub default_poll_interval: PollInterval,
    /// `mcp.tasks.sweep-interval`.
    pub sweep_interval: Duration,
    /// `mcp.tasks.lease`.
    pub lease: Duration,
    /// `mcp.tasks.work`.
    pub work: bool,
    /// `mcp.tasks.transport`.
    pub transport: Transport,
    /// `mcp.tasks.http.addr`.
    pub http_addr: String,
    /// `mcp.tasks.http.allowed-hosts`.
    pub http_allowed_hosts: Option<Vec<String>>,
    /// `mcp.tasks.http.allowed-origins`, each with its port.
    pub http_allowed_origins: Option<Vec<String>>,
    /// `mcp.tasks.http.front`.
    pub http_front: bool,
    /// `mcp.tasks.http.require-name`.
    pub http_require_name: bool,
    /// `mcp.tasks.http.session-timeout`.
    pub http_session_timeout: Duration,
    /// `mcp.tasks.http.max-sessions`.
    pub http_max_sessions: usize,
    /// `mcp.tasks.store.url`; hidden, because it can hold a password.
    pub store_url: Option<Secret>,
    /// `mcp.tasks.store.key-prefix`.
    pub store_key_prefix: String,
    /// `mcp.tasks.request-state.keys`.
    pub request_state_keys: Option<SealingKeys>,
    /// `mcp.tasks.request-state.ttl`.
    pub request_state_ttl: Duration,
    /// `mcp.tasks.quota.open-per-principal`.
    pub quota_open_per_principal: Option<u64>,
    /// `mcp.tasks.quota.running`.
    pub quota_running: Option<u64>,
}

impl Settings {
    /// Reads and checks every key.
    ///
    /// # Errors
    ///
    /// Every key with a value that is not accepted, in one error.
    pub fn read(config: &Config) -> Result<Self, StartError> {
        let mut reader = Reader {
            config,
            problems: Problems::default(),
        };
        let default_ttl = reader.parsed(DEFAULT_TTL, "PT1H", Ttl::parse);
        let default_poll_interval = reader.parsed(DEFAULT_POLL_INTERVAL, "PT2S", PollInterval::parse);
        let sweep_interval = reader.parsed(SWEEP_INTERVAL, "PT1M", parse_duration);
        let lease = reader.parsed(LEASE, "PT30S", parse_duration);
        let work = reader.parsed(WORK, "true", switch);
        let transport = reader.parsed(TRANSPORT, "http", |text| match text {
            "http" => Ok(Transport::Http),
            "stdio" => Ok(Transport::Stdio),
            _ => Err("write `http` or `stdio`"),
        });
        let http_addr = reader.parsed(HTTP_ADDR, "127.0.0.1:8080", |text| match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
            _ => Err("write host and port, as in `127.0.0.1:8080` or `[::1]:8080`"),
        });
        let http_front = reader.parsed(HTTP_FRONT, "true", switch);
        let http_require_name = reader.parsed(HTTP_REQUIRE_NAME, "true", switch);
        // Long enough for a person to answer a question without a session's being opened again for it.
        let http_session_timeout = reader.parsed(HTTP_SESSION_TIMEOUT, "PT5M", parse_duration);
        // Some 70 MB, and more clients than one process has that are between two requests.
        let http_max_sessions = reader.parsed(HTTP_MAX_SESSIONS, "1000", |text| match text.parse::<usize>() {
            Ok(0) | Err(_) => Err("write a whole number of at least 1"),
            Ok(most) => Ok(most),
        });
        let http_allowed_hosts = reader.optional(HTTP_ALLOWED_HOSTS, |text| list(text, allowed::host));
        let http_allowed_origins = reader.optional(HTTP_ALLOWED_ORIGINS, |text| list(text, allowed::origin));
        let store_url = reader.optional(STORE_URL, secret);
        let store_key_prefix = reader.parsed(STORE_KEY_PREFIX, mcp_tasks_core::store::DEFAULT_KEY_PREFIX, |text| {
            if text.is_empty() {
                Err("it must not be empty")
            } else {
                Ok(text.to_owned())
            }
        });
        let request_state_keys = reader.described(REQUEST_STATE_KEYS, SealingKeys::parse);
        let request_state_ttl = reader.parsed(REQUEST_STATE_TTL, "PT5M", parse_duration);
        let quota_open_per_principal = reader.optional(QUOTA_OPEN, limit);
        let quota_running = reader.optional(QUOTA_RUNNING, limit);
        let all = (|| {
            Some(Self {
                default_ttl: default_ttl?,
                default_poll_interval: default_poll_interval?,
                sweep_interval: sweep_interval?,
                lease: lease?,
                work: work?,
                transport: transport?,
                http_addr: http_addr?,
                http_allowed_hosts: http_allowed_hosts?,
                http_allowed_origins: http_allowed_origins?,
                http_front: http_front?,
                http_require_name: http_require_name?,
                http_session_timeout: http_session_timeout?,
                http_max_sessions: http_max_sessions?,
                store_url: store_url?,
                store_key_prefix: store_key_prefix?,
                request_state_keys: request_state_keys?,
                request_state_ttl: request_state_ttl?,
                quota_open_per_principal: quota_open_per_principal?,
                quota_running: quota_running?,
            })
        })();
        if let Some(settings) = &all
            && let Err(error) = settings.default_poll_interval.check_within(settings.default_ttl)
        {
            reader.problems.add(format!("`{DEFAULT_POLL_INTERVAL}`: {error}"));
        }
        reader.problems.finish_with(all)
    }
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("write `true` or `false`"),
    }
}

fn secret(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() {
        Err("it must not be empty")
    } else {
        Ok(Secret(text.to_owned()))
    }
}

fn list(text: &str, item: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.iter().any(|item| item.is_empty()) {
        // An empty list would let every host in, which nobody should ask for by accident.
        return Err("write one or more, separated by commas".to_owned());
    }
    checked(items, item)
}

/// All items as `item` reads them, or what is wrong with those that it refuses.
pub(crate) fn checked<T: AsRef<str>>(
    items: impl IntoIterator<Item = T>,
    item: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for text in items {
        match item(text.as_ref()) {
            Ok(text) => good.push(text),
            Err(error) => bad.push(error),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad.join("; ")) }
}

fn limit(text: &str) -> Result<u64, &'static str> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a whole number of at least 1, or leave it out for no limit"),
        Ok(limit) => Ok(limit),
    }
}

struct Reader<'a> {
    config: &'a Config,
    problems: Problems,
}

impl Reader<'_> {
    /// The value or its default; `None` is a problem, and noted.
    fn parsed<T, E: fmt::Display>(
        &mut self,
        key: &str,
        default: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        match self.optional(key, &parse)? {
            Some(value) => Some(value),
            None => parse(default).ok(),
        }
    }

    /// A secret whose error does not show it.
    fn described<T, E: fmt::Display>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<Option<T>> {
        let Some(found) = self.problems.note(self.config.find(key))? else {
            return Some(None);
        };
        match parse(&found.value) {
            Ok(value) => Some(Some(value)),
            Err(error) => {
                self.problems.add(format!("`{key}` ({}): {error}", found.origin));
                None
            }
        }
    }

    fn optional<T, E: fmt::Display>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<Option<T>> {
        let found = self.problems.note(self.config.find(key))?;
        let Some(found) = found else {
            return Some(None);
        };
        match parse(&found.value) {
            Ok(value) => Some(Some(value)),
            Err(error) => {
                self.problems.add(if is_secret(key) {
                    format!(
                        "`{key}` ({}): the value, which is not shown, is not accepted",
                        found.origin
                    )
                } else {
                    format!("`{key}` is `{}` ({}): {error}", found.value, found.origin)
                });
                None
            }
        }
    }
}

/// Whether the values of a key must not appear in messages, judged by its name.
pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    if key == STORE_KEY_PREFIX {
        return false;
    }
    ["key", "secret", "url", "password", "token"]
        .iter()
        .any(|word| key.contains(word))
}

#[cfg(test)]
mod tests;
