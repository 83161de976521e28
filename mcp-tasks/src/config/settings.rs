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

/// How the table shows a default.
macro_rules! shown {
    (none) => {
        "none"
    };
    ($default:literal) => {
        concat!("`", $default, "`")
    };
}

/// Reads one key: the value, or its default, or `None` where there is none.
macro_rules! read {
    ($reader:ident, $key:ident, none, $parse:expr) => {
        $reader.optional($key, $parse)
    };
    ($reader:ident, $key:ident, $default:literal, $parse:expr) => {
        $reader.or_default($key, $default, $parse)
    };
}

/// One row a key: constant, key, field and its type, default, parser, and what it is for. The keys, the struct, its
/// documentation and its reader are made of the table.
macro_rules! settings {
    ($($constant:ident $key:literal $field:ident: $type:ty = $default:tt, $parse:expr, $purpose:literal;)*) => {
        $(pub(crate) const $constant: &str = $key;)*

        /// All of them.
        pub(crate) const KEYS: [&str; [$($key),*].len()] = [$($constant),*];

        /// The settings of the server itself.
        ///
        /// | key | default | |
        /// |---|---|---|
        $(#[doc = concat!("| `", $key, "` | ", shown!($default), " | ", $purpose, " |")])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct Settings {
            $(
                #[doc = concat!("`", $key, "`: ", $purpose, ".")]
                pub $field: $type,
            )*
        }

        impl Settings {
            /// Reads and checks every key.
            ///
            /// # Errors
            ///
            /// Every key with a value that is not accepted, in one error.
            pub fn read(config: &Config) -> Result<Self, StartError> {
                let mut reader = SettingsReader {
                    config,
                    problems: Problems::default(),
                };
                $(let $field = read!(reader, $constant, $default, $parse);)*
                let settings = (|| Some(Self { $($field: $field?),* }))();
                if let Some(settings) = &settings
                    && let Err(error) = settings.default_poll_interval.check_within(settings.default_ttl)
                {
                    reader.problems.add(format!("`{DEFAULT_POLL_INTERVAL}`: {error}"));
                }
                reader.problems.finish_with(settings)
            }
        }
    };
}

settings! {
    DEFAULT_TTL "mcp.tasks.default-ttl" default_ttl: Ttl = "PT1H", Ttl::parse,
        "how long a task of a tool without `ttl` is kept; `unlimited` is possible";
    DEFAULT_POLL_INTERVAL "mcp.tasks.default-poll-interval" default_poll_interval: PollInterval = "PT2S", PollInterval::parse,
        "how often clients should poll a task of a tool without `poll_interval`";
    SWEEP_INTERVAL "mcp.tasks.sweep-interval" sweep_interval: Duration = "PT1M", parse_duration,
        "how often expired tasks are removed";
    LEASE "mcp.tasks.lease" lease: Duration = "PT30S", parse_duration,
        "how long a node holds the lease of an execution without renewing it";
    WORK "mcp.tasks.work" work: bool = "true", switch,
        "`false` leaves every task to other nodes of the deployment";
    TRANSPORT "mcp.tasks.transport" transport: Transport = "http", transport,
        "`http` or `stdio`";
    HTTP_ADDR "mcp.tasks.http.addr" http_addr: String = "127.0.0.1:8080", address,
        "host and port to listen on";
    HTTP_FRONT "mcp.tasks.http.front" http_front: bool = "true", switch,
        "answer requests about tasks in front of rmcp; `false` leaves all to rmcp";
    HTTP_REQUIRE_NAME "mcp.tasks.http.require-name" http_require_name: bool = "true", switch,
        "refuse `tasks/*` without the `Mcp-Name` header";
    // Long enough for a person to answer a question without a new session for it.
    HTTP_SESSION_TIMEOUT "mcp.tasks.http.session-timeout" http_session_timeout: Duration = "PT5M", parse_duration,
        "how long a session of 2025-11-25 is kept while it has no stream open";
    // Some 70 MB, and more clients than one process has between two of their requests.
    HTTP_MAX_SESSIONS "mcp.tasks.http.max-sessions" http_max_sessions: usize = "1000", at_least_one,
        "how many such sessions are kept; the one that was idle longest ends first";
    HTTP_ALLOWED_HOSTS "mcp.tasks.http.allowed-hosts" http_allowed_hosts: Option<Vec<String>> = none,
        |text| list(text, allowed::host),
        "`Host` headers that are served, comma-separated, as `tools.example.com` or with a port; none is the loopback names";
    HTTP_ALLOWED_ORIGINS "mcp.tasks.http.allowed-origins" http_allowed_origins: Option<Vec<String>> = none,
        |text| list(text, allowed::origin),
        "`Origin` headers that are served, comma-separated, as `https://app.example.com`, with a port or `:*` for any; none is the loopback pages";
    STORE_URL "mcp.tasks.store.url" store_url: Option<Secret> = none, |text| not_empty(text).map(Secret),
        "where tasks are kept: `sqlite:<file>`, `postgres://<server>`, `redis://<server>`, `nats://<server>` or `tls://<server>`, each with the feature of its store; none is memory";
    STORE_KEY_PREFIX "mcp.tasks.store.key-prefix" store_key_prefix: String = "mcp-tasks:", not_empty,
        "before every key in a shared store; names the bucket of a NATS store; a SQLite file is not shared and has none";
    REQUEST_STATE_KEYS "mcp.tasks.request-state.keys" request_state_keys: Option<SealingKeys> = none, SealingKeys::parse,
        "keys that seal the state of synchronous calls; none is a key of this process";
    REQUEST_STATE_TTL "mcp.tasks.request-state.ttl" request_state_ttl: Duration = "PT5M", parse_duration,
        "how long such a state is accepted";
    QUOTA_OPEN "mcp.tasks.quota.open-per-principal" quota_open_per_principal: Option<u64> = none, limit,
        "how many tasks of one caller may be open; none is no limit";
    QUOTA_RUNNING "mcp.tasks.quota.running" quota_running: Option<u64> = none, limit,
        "how many executions a node runs at a time: above it calls are refused, and answered tasks wait for a slot; none is no limit";
}

fn transport(text: &str) -> Result<Transport, &'static str> {
    match text {
        "http" => Ok(Transport::Http),
        "stdio" => Ok(Transport::Stdio),
        _ => Err("write `http` or `stdio`"),
    }
}

fn address(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("write host and port, as in `127.0.0.1:8080` or `[::1]:8080`"),
    }
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a whole number of at least 1"),
        Ok(count) => Ok(count),
    }
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("write `true` or `false`"),
    }
}

fn not_empty(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        Err("it must not be empty")
    } else {
        Ok(text.to_owned())
    }
}

fn list(text: &str, item: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.iter().any(|item| item.is_empty()) {
        // rmcp takes an empty list for every host, which must not happen by accident.
        return Err("write one or more, separated by commas".to_owned());
    }
    parse_each(items, item)
}

/// All items as `item` reads them, or what is wrong with those that it refuses.
pub(crate) fn parse_each<T: AsRef<str>>(
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

struct SettingsReader<'a> {
    config: &'a Config,
    problems: Problems,
}

impl SettingsReader<'_> {
    /// The value or its default; `None` is a problem, and noted.
    fn or_default<T, E: fmt::Display>(
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

    /// The value, if there is one; the outer `None` is a problem, and noted. The parser of a secret does not repeat it in
    /// its error.
    fn optional<T, E: fmt::Display>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<Option<T>> {
        let Some(found) = self.problems.note(self.config.find(key))? else {
            return Some(None);
        };
        let error = match parse(&found.value) {
            Ok(value) => return Some(Some(value)),
            Err(error) => error,
        };
        let value = if is_secret(key) {
            String::new()
        } else {
            format!(" is `{}`", found.value)
        };
        self.problems.add(format!("`{key}`{value} ({}): {error}", found.origin));
        None
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
