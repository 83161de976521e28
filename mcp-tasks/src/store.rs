//! The stores of this crate, and which of them `mcp.tasks.store.url` names.

use std::sync::Arc;

pub(crate) mod defaults;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod failure;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod feed;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod message;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod pauses;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod version;

#[cfg(feature = "nats")]
pub(crate) mod nats;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

pub use mcp_tasks_core::{MemoryStore, StoreError, TaskStore};

#[cfg(feature = "nats")]
pub use self::nats::{NatsOptions, NatsStore};
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use self::redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{Durability, SqliteOptions, SqliteStore};

/// A store that a URL names, understood and not opened yet.
#[derive(Debug)]
pub(crate) enum Choice {
    #[cfg(feature = "nats")]
    Nats(Box<nats::NatsOptions>),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::PostgresOptions>),
    #[cfg(feature = "redis")]
    Redis(Box<redis::RedisOptions>),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::SqliteOptions),
}

impl Choice {
    /// Reads the URL; `prefix` is what keeps apart what shares a server. The error says what is wrong with the URL without
    /// showing it, as it may hold a password.
    pub(crate) fn parse(url: &str, prefix: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err("it is no URL; write the kind of store first, such as `sqlite:tasks.db`".to_owned());
        };
        // What is in the build decides which of them are used.
        let _ = (rest, prefix);
        match scheme.to_ascii_lowercase().as_str() {
            #[cfg(feature = "nats")]
            "nats" | "tls" => nats::NatsOptions::from_url(url, prefix).map(Box::new).map(Self::Nats),
            #[cfg(not(feature = "nats"))]
            "nats" | "tls" => Err(not_built("NATS", "nats")),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => postgres::PostgresOptions::from_url(url)
                .map(|options| Self::Postgres(Box::new(options.key_prefix(prefix)))),
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => Err(not_built("PostgreSQL", "postgres")),
            #[cfg(feature = "redis")]
            scheme if is_redis(scheme) => redis::RedisOptions::from_url(url, prefix)
                .map(Box::new)
                .map(Self::Redis),
            #[cfg(not(feature = "redis"))]
            scheme if is_redis(scheme) => Err(not_built("Redis", "redis")),
            #[cfg(feature = "sqlite")]
            "sqlite" => sqlite::SqliteOptions::from_url(rest).map(Self::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Err(not_built("SQLite", "sqlite")),
            _ => Err(format!(
                "there is no store for `{scheme}:`; there are `sqlite:<file>`, `postgres://<server>`, `redis://<server>` and \
                 `nats://<server>`; another store can be given in code, with `TaskRuntime::builder().store(..)`"
            )),
        }
    }

    /// Opens a file, and waits for that. What is on a server connects when it is first used.
    pub(crate) fn open(self) -> Result<Arc<dyn TaskStore>, StoreError> {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "redis")]
            Self::Redis(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(options) => Ok(Arc::new(options.open()?)),
        }
    }
}

/// The words for a store that the build leaves out.
#[cfg(not(all(feature = "nats", feature = "postgres", feature = "redis", feature = "sqlite")))]
fn not_built(store: &str, feature: &str) -> String {
    format!("this build has no {store} store; switch on the feature `{feature}` of the crate `mcp-tasks`")
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

    fn parse(url: &str) -> Result<Choice, String> {
        Choice::parse(url, "mcp-tasks:")
    }

    #[test]
    fn a_url_that_names_no_store_is_refused_without_showing_it() {
        for url in ["tasks.db", "mysql://:hunter2@db", "oracle:hunter2"] {
            let error = parse(url).unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("sqlite:"), "{error}");
        }
    }

    #[test]
    fn a_store_that_is_not_in_the_build_names_its_feature() {
        for (scheme, feature, is_built) in [
            ("sqlite", "sqlite", cfg!(feature = "sqlite")),
            ("nats", "nats", cfg!(feature = "nats")),
            ("tls", "nats", cfg!(feature = "nats")),
            ("postgres", "postgres", cfg!(feature = "postgres")),
            ("postgresql", "postgres", cfg!(feature = "postgres")),
            ("redis", "redis", cfg!(feature = "redis")),
            ("rediss", "redis", cfg!(feature = "redis")),
            ("valkey", "redis", cfg!(feature = "redis")),
            ("redis-cluster", "redis", cfg!(feature = "redis")),
            ("redis+unix", "redis", cfg!(feature = "redis")),
        ] {
            let outcome = parse(&format!("{scheme}://:hunter2@db"));
            if !is_built {
                let error = outcome.unwrap_err();
                assert!(error.contains(&format!("feature `{feature}`")), "{error}");
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn postgres_is_chosen_with_the_prefix_and_shows_no_password() {
        for url in ["postgres://me:hunter2@db/tasks", "POSTGRESQL://me:hunter2@db"] {
            let choice = format!("{:?}", Choice::parse(url, "prod:").unwrap());
            assert!(choice.contains("db") && choice.contains("prod:"), "{choice}");
            assert!(!choice.contains("hunter2"), "{choice}");
        }
        let error = parse("postgres://me:hunter2@db?sslmode=perhaps").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[cfg(feature = "nats")]
    #[test]
    fn nats_is_read_with_its_prefix() {
        let choice = format!("{:?}", Choice::parse("tls://me:hunter2@host", "prod:").unwrap());
        assert!(choice.contains("tls://host") && choice.contains("prod:"), "{choice}");
        assert!(!choice.contains("hunter2"), "{choice}");
        assert!(Choice::parse("nats://host", "a.b:").unwrap_err().contains("`a.b:`"));
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
            let error = parse(url).unwrap_err();
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
            let choice = format!("{:?}", parse(url).unwrap());
            assert!(choice.contains(wanted), "{choice}");
        }
        for url in ["sqlite:t.db?synchronous=off", "sqlite:t.db?mode=memory", "sqlite:t.db?"] {
            let error = parse(url).unwrap_err();
            assert!(error.contains("synchronous=normal"), "{url}: {error}");
        }
    }
}
