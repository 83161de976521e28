//! The stores of this crate, and which of them `mcp.tasks.store.url` names.

use std::sync::Arc;

use mcp_tasks_core::{StoreError, TaskStore};

#[cfg(feature = "nats")]
pub(crate) mod nats;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// A store that a URL names, understood and not opened yet.
#[derive(Debug)]
pub(crate) enum Choice {
    #[cfg(feature = "nats")]
    Nats(Box<nats::NatsOptions>),
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
            "nats" | "tls" => nats::NatsOptions::from_url(url, prefix).map(|options| Self::Nats(Box::new(options))),
            #[cfg(not(feature = "nats"))]
            "nats" | "tls" => {
                Err("this build has no NATS store; switch on the feature `nats` of the crate `mcp-tasks`".to_owned())
            }
            #[cfg(feature = "sqlite")]
            "sqlite" => sqlite::SqliteOptions::from_url(rest).map(Self::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Err(
                "this build has no SQLite store; switch on the feature `sqlite` of the crate `mcp-tasks`".to_owned(),
            ),
            _ => Err(format!(
                "this build knows no store for `{scheme}:`, it knows `sqlite:<file>` and `nats://<host>`; another store can \
                 be given in code, with `TaskRuntime::builder().store(..)`"
            )),
        }
    }

    /// Connects; waits for that.
    pub(crate) fn open(self) -> Result<Arc<dyn TaskStore>, StoreError> {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(options) => Ok(Arc::new(options.open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Choice, String> {
        Choice::parse(url, "mcp-tasks:")
    }

    #[test]
    fn a_url_that_names_no_store_is_refused_without_showing_it() {
        for url in ["tasks.db", "redis://:hunter2@db", "oracle:hunter2"] {
            let error = parse(url).unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("sqlite:"), "{error}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_store_that_is_not_in_the_build_names_its_feature() {
        let error = parse("sqlite:tasks.db").unwrap_err();
        assert!(error.contains("feature `sqlite`"), "{error}");
    }

    #[cfg(not(feature = "nats"))]
    #[test]
    fn nats_is_not_in_the_build_and_its_feature_is_named() {
        for url in ["nats://me:hunter2@host", "tls://host"] {
            let error = parse(url).unwrap_err();
            assert!(
                error.contains("feature `nats`") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[cfg(feature = "nats")]
    #[test]
    fn nats_is_read_with_its_prefix() {
        let choice = format!("{:?}", Choice::parse("tls://me:hunter2@host", "prod:").unwrap());
        assert!(choice.contains("tls://host") && choice.contains("prod:"), "{choice}");
        assert!(!choice.contains("hunter2"), "{choice}");
        assert!(Choice::parse("nats://host", "a.b:").unwrap_err().contains("`a.b:`"));
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
