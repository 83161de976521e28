//! The stores of this crate, and which of them `mcp.tasks.store.url` names.

use std::sync::Arc;

use mcp_tasks_core::{StoreError, TaskStore};

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// A store that a URL names, understood and not opened yet.
#[derive(Debug)]
pub(crate) enum Choice {
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::PostgresOptions>),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::SqliteOptions),
}

impl Choice {
    /// Reads the URL; `prefix` sets this deployment's tasks apart where others are kept too. The error says what is wrong with
    /// the URL without showing it, as it may hold a password.
    pub(crate) fn parse(url: &str, prefix: &str) -> Result<Self, String> {
        let _ = prefix;
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err("it is no URL; write the kind of store first, such as `sqlite:tasks.db`".to_owned());
        };
        match scheme.to_ascii_lowercase().as_str() {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                postgres::PostgresOptions::from_url(url).map(|options| Self::Postgres(Box::new(options.prefix(prefix))))
            }
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => Err(
                "this build has no PostgreSQL store; switch on the feature `postgres` of the crate `mcp-tasks`"
                    .to_owned(),
            ),
            #[cfg(feature = "sqlite")]
            "sqlite" => sqlite::SqliteOptions::from_url(rest).map(Self::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => {
                let _ = rest;
                Err(
                    "this build has no SQLite store; switch on the feature `sqlite` of the crate `mcp-tasks`"
                        .to_owned(),
                )
            }
            _ => Err(format!(
                "this build knows no store for `{scheme}:`, it knows `sqlite:<file>` and `postgres://<server>`; another \
                 store can be given in code, with `TaskRuntime::builder().store(..)`"
            )),
        }
    }

    /// Opens a file, and waits for that; a store on a server connects when it is first used.
    pub(crate) fn open(self) -> Result<Arc<dyn TaskStore>, StoreError> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => Ok(Arc::new(options.open()?)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(options) => Ok(Arc::new(options.open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_names_no_store_is_refused_without_showing_it() {
        for url in ["tasks.db", "redis://:hunter2@db", "oracle:hunter2"] {
            let error = Choice::parse(url, "p:").unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("sqlite:"), "{error}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn postgres_that_is_not_in_the_build_names_its_feature() {
        let error = Choice::parse("postgres://app:hunter2@db/app", "p:").unwrap_err();
        assert!(
            error.contains("feature `postgres`") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn postgres_options_are_read_and_the_password_is_not_shown() {
        for (url, wanted) in [
            (
                "postgres://app:hunter2@db/app",
                &["verify: Nothing", "Prefer", r#"prefix: "p:""#][..],
            ),
            (
                "PostgreSQL://app:hunter2@db/app?sslmode=verify-full",
                &["verify: Full", "roots: None", "Require"],
            ),
            (
                "postgres://app:hunter2@a,b:6432/app?sslmode=require&sslrootcert=%2Fetc%2Fca.pem&schema=my%20own",
                &[
                    "verify: Chain",
                    r#"File("/etc/ca.pem")"#,
                    r#"schema: Some("my own")"#,
                    "6432",
                ],
            ),
            (
                "postgres://app:hun%40ter2@db?pool_size=3&sslrootcert=system",
                &["pool_size: 3", "System"],
            ),
            ("postgres://%2Ftmp/app", &[r#"Unix("/tmp")"#]),
        ] {
            let choice = format!("{:?}", Choice::parse(url, "p:").unwrap());
            assert!(!choice.contains("ter2"), "{choice}");
            for wanted in wanted {
                assert!(choice.contains(wanted), "{url}: {choice}");
            }
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_store_that_is_not_in_the_build_names_its_feature() {
        let error = Choice::parse("sqlite:tasks.db", "p:").unwrap_err();
        assert!(error.contains("feature `sqlite`"), "{error}");
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
            let error = Choice::parse(url, "p:").unwrap_err();
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
            let choice = format!("{:?}", Choice::parse(url, "p:").unwrap());
            assert!(choice.contains(wanted), "{choice}");
        }
        for url in ["sqlite:t.db?synchronous=off", "sqlite:t.db?mode=memory", "sqlite:t.db?"] {
            let error = Choice::parse(url, "p:").unwrap_err();
            assert!(error.contains("synchronous=normal"), "{url}: {error}");
        }
    }
}
