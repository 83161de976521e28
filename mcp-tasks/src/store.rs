//! The stores of this crate, and which of them `mcp.tasks.store.url` names.

use std::sync::Arc;

use mcp_tasks_core::{StoreError, TaskStore};

#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// A store that a URL names, understood and not opened yet.
#[derive(Debug)]
pub(crate) enum Choice {
    #[cfg(feature = "redis")]
    Redis(Box<redis::RedisOptions>),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::SqliteOptions),
}

impl Choice {
    /// Reads the URL, and the prefix that keys of a shared store have. The error says what is wrong with it without showing
    /// it, as it may hold a password.
    pub(crate) fn parse(url: &str, prefix: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err("it is no URL; write the kind of store first, such as `sqlite:tasks.db`".to_owned());
        };
        // Each store uses what it needs of it.
        let _ = (rest, prefix);
        match scheme.to_ascii_lowercase().as_str() {
            #[cfg(feature = "redis")]
            scheme if is_redis(scheme) => redis::RedisOptions::from_url(url, prefix)
                .map(Box::new)
                .map(Self::Redis),
            #[cfg(not(feature = "redis"))]
            scheme if is_redis(scheme) => {
                Err("this build has no Redis store; switch on the feature `redis` of the crate `mcp-tasks`".to_owned())
            }
            #[cfg(feature = "sqlite")]
            "sqlite" => sqlite::SqliteOptions::from_url(rest).map(Self::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Err(
                "this build has no SQLite store; switch on the feature `sqlite` of the crate `mcp-tasks`".to_owned(),
            ),
            _ => Err(format!(
                "this build knows no store for `{scheme}:`, it knows `sqlite:<file>` and `redis://<host>`; another store can be given in \
                 code, with `TaskRuntime::builder().store(..)`"
            )),
        }
    }

    /// Opens the file, and waits for that. What is on a server connects when it is first used.
    pub(crate) fn open(self) -> Result<Arc<dyn TaskStore>, StoreError> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(options) => Ok(Arc::new(options.open()?)),
        }
    }
}

/// Whether the scheme is one of those that name Redis or Valkey.
fn is_redis(scheme: &str) -> bool {
    ["redis", "valkey"].iter().any(|name| {
        scheme
            .strip_prefix(name)
            .is_some_and(|rest| matches!(rest, "" | "s" | "-cluster" | "s-cluster" | "+unix"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_names_no_store_is_refused_without_showing_it() {
        for url in ["tasks.db", "mysql://:hunter2@db", "oracle:hunter2"] {
            let error = Choice::parse(url, "mcp-tasks:").unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("sqlite:"), "{error}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_store_that_is_not_in_the_build_names_its_feature() {
        let error = Choice::parse("sqlite:tasks.db", "mcp-tasks:").unwrap_err();
        assert!(error.contains("feature `sqlite`"), "{error}");
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn redis_that_is_not_in_the_build_names_its_feature() {
        for scheme in ["redis", "rediss", "valkey", "redis-cluster", "redis+unix"] {
            let error = Choice::parse(&format!("{scheme}://:hunter2@db"), "mcp-tasks:").unwrap_err();
            assert!(
                error.contains("feature `redis`") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn redis_is_chosen_with_the_prefix_and_shows_no_password() {
        for url in [
            "redis://user:hunter2@db/1",
            "rediss://:hunter2@db",
            "valkey://:hunter2@db",
            "VALKEYS://:hunter2@db",
            "redis-cluster://:hunter2@db,other",
            "redis+unix:///run/db?pass=hunter2",
        ] {
            let choice = format!("{:?}", Choice::parse(url, "mine:").unwrap());
            assert!(
                choice.contains("db") && choice.contains(r#"prefix: "mine:""#),
                "{choice}"
            );
            assert!(!choice.contains("hunter2"), "{choice}");
        }
        for (url, prefix) in [
            ("redis:hunter2", "mine:"),
            ("redis://db?hunter=2", "mine:"),
            ("redis://db", "{}"),
        ] {
            let error = Choice::parse(url, prefix).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_in_memory_is_refused_with_advice() {
        for url in [
            "sqlite::memory:",
            "sqlite://:memory:",
            "SQLite:",
            "sqlite://",
            "sqlite:file::memory:?cache=shared",
        ] {
            let error = Choice::parse(url, "mcp-tasks:").unwrap_err();
            assert!(error.contains("sqlite:tasks.db"), "{url}: {error}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_options_are_read_and_unknown_ones_refused() {
        for (url, wanted) in [
            ("sqlite:tasks.db", r#"path: "tasks.db", durability: Full"#),
            (
                "sqlite://tasks.db?synchronous=FULL",
                r#"path: "tasks.db", durability: Full"#,
            ),
            (
                "sqlite:///var/lib/tasks.db?synchronous=normal",
                r#"path: "/var/lib/tasks.db", durability: Normal"#,
            ),
        ] {
            let choice = format!("{:?}", Choice::parse(url, "mcp-tasks:").unwrap());
            assert!(choice.contains(wanted), "{choice}");
        }
        for url in ["sqlite:t.db?synchronous=off", "sqlite:t.db?mode=memory", "sqlite:t.db?"] {
            let error = Choice::parse(url, "mcp-tasks:").unwrap_err();
            assert!(error.contains("synchronous=normal"), "{url}: {error}");
        }
    }
}
