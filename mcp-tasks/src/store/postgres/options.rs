//! How a store is told where its server is.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::Pool;
use mcp_tasks_core::StoreError;
use mcp_tasks_core::store::DEFAULT_KEY_PREFIX;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::PostgresStore;
use crate::store::defaults::TIMEOUT;
use crate::store::failure::refused;

/// Enough that concurrent writes share flushes of the server's log, and six nodes stay below the hundred connections that
/// a server allows unless told otherwise.
const POOL_SIZE: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// What a wrong URL is answered with.
const USAGE: &str = "write `postgres://user:password@host:5432/database`, with what is no letter or digit in the password \
                     percent-encoded, optionally with `?sslmode=verify-full` and `&sslrootcert=FILE`, `&schema=NAME`, \
                     `&pool_size=16` and what tokio-postgres knows";

/// What of the server's certificate is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verify {
    Nothing,
    Chain,
    Full,
}

/// Which certificates are trusted to sign the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    System,
    File(PathBuf),
}

/// How to reach the server of a [`PostgresStore`].
///
/// # The URL
///
/// `postgres://user:password@host:port/database?option=value&…`, as for psql. No environment variable and no password file
/// is read. Several hosts, separated by commas, are tried in turn; with a standby among them say
/// `target_session_attrs=read-write`. The options are those of tokio-postgres (`application_name`, `connect_timeout`,
/// `options`, `keepalives`, `channel_binding`, …), and:
///
/// | option | |
/// |---|---|
/// | `sslmode=disable` | no TLS |
/// | `sslmode=prefer` | TLS if the server has it, and nothing is verified: the default, as everywhere |
/// | `sslmode=require` | TLS; nothing is verified, unless `sslrootcert` is given: then as `verify-ca` |
/// | `sslmode=verify-ca` | TLS; the certificate is valid and signed by somebody trusted |
/// | `sslmode=verify-full` | TLS; and it was made out to the host of the URL: the choice across networks |
/// | `sslrootcert=FILE` | who is trusted: certificates in PEM; without it, or with `system`, whoever the operating system trusts |
/// | `schema=NAME` | the schema of the tables; without it the first of the search path |
/// | `pool_size=16` | connections at most |
#[derive(Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) verify: Verify,
    pub(super) roots: Option<Roots>,
    pub(super) schema: Option<String>,
    pub(super) prefix: String,
    pub(super) timeout: Duration,
    pub(super) pool_size: NonZeroUsize,
    pub(super) pool: Option<Pool>,
}

impl PostgresOptions {
    /// The server and database at `url`, with everything else as by default.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL cannot be understood. The error does not show it, as it may hold a password.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        Self::from_url(url)
            .map_err(|reason| refused(format!("the URL of the PostgreSQL server is not accepted: {reason}")))
    }

    /// The password, in place of the URL's.
    pub fn password(mut self, password: impl AsRef<[u8]>) -> Self {
        self.config.password(password);
        self
    }

    /// What sets the tasks of one deployment apart from others' in the same tables: `mcp-tasks:`, unless told otherwise.
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The schema of the tables, in place of the first of the search path. It is created if it is not there.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// How long an operation may take, connecting included, before it is answered with [`StoreError::Unavailable`]: 10 s,
    /// unless told otherwise.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connections at most: 16, unless told otherwise. The change feed has one besides.
    pub const fn pool_size(mut self, connections: NonZeroUsize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Takes connections from the application's pool. The URL is left for the connection of the change feed, which cannot be
    /// a pooled one.
    pub fn pool(mut self, pool: Pool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Makes the store. It connects, and sets its tables up, when it is first used.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the file of `sslrootcert` cannot be read.
    pub fn open(self) -> Result<PostgresStore, StoreError> {
        PostgresStore::with_options(self)
    }

    /// The error says what is wrong with the URL and does not show it.
    pub(crate) fn from_url(url: &str) -> Result<Self, String> {
        let wrong = |reason: &str| format!("{reason}; {USAGE}");
        // Schemes may be written in capitals; the driver knows them in small letters.
        let rest = url
            .split_once("://")
            .map(|(_, rest)| rest)
            .ok_or_else(|| wrong("`//` is missing"))?;
        // The credentials end at the first `@`. Another one in the host is a password's, and would go to the resolver.
        let after = rest.find('@').map_or(0, |at| at + 1);
        // The driver would take all that is in front of an `@` in an option for the user.
        if rest[..after].contains(['/', '?']) {
            return Err(wrong("a `/` or a `?` is in front of an `@`"));
        }
        let host = rest[after..].split(['/', '?']).next().unwrap_or_default();
        if host.contains('@') {
            return Err(wrong("there is more than one `@`"));
        }
        let (start, query) = match rest[after..].find('?') {
            Some(at) => (&rest[..after + at], Some(&rest[after + at + 1..])),
            None => (rest, None),
        };
        let mut options = Self {
            config: Config::new(),
            verify: Verify::Nothing,
            roots: None,
            schema: None,
            prefix: DEFAULT_KEY_PREFIX.to_owned(),
            timeout: TIMEOUT,
            pool_size: POOL_SIZE,
            pool: None,
        };
        let mut mode = SslMode::Prefer;
        let mut theirs = Vec::new();
        for pair in query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.is_empty())
        {
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong("an option has no `=`"))?;
            match key {
                "sslmode" => (mode, options.verify) = ssl_mode(value).ok_or_else(|| wrong("`sslmode` is none"))?,
                "sslrootcert" => {
                    options.roots = Some(match decoded(value).ok_or_else(|| wrong("`sslrootcert` is no text"))? {
                        path if path.is_empty() => return Err(wrong("`sslrootcert` is empty")),
                        path if path == "system" => Roots::System,
                        path => Roots::File(path.into_owned().into()),
                    });
                }
                "schema" => match decoded(value) {
                    Some(name) if !name.is_empty() => options.schema = Some(name.into_owned()),
                    _ => return Err(wrong("`schema` is no name")),
                },
                "pool_size" => {
                    options.pool_size = value
                        .parse()
                        .map_err(|_| wrong("`pool_size` is no number of at least 1"))?;
                }
                "sslcert" | "sslkey" | "sslpassword" | "sslcrl" => {
                    return Err(format!(
                        "`{key}` is not supported; hand in a pool of the application's, with `PostgresStore::with_pool`"
                    ));
                }
                _ => theirs.push(pair),
            }
        }
        let plain = format!("postgres://{start}?{}", theirs.join("&"));
        options.config = plain.parse().map_err(|error: tokio_postgres::Error| {
            // What is below names an option, never a value.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            wrong(cause.as_deref().unwrap_or("it cannot be read"))
        })?;
        options.config.ssl_mode(mode);
        if options.config.get_hosts().is_empty() && options.config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host"));
        }
        // As libpq has it: who names the trusted wants somebody to be verified by them.
        if mode == SslMode::Require && options.verify == Verify::Nothing && options.roots.is_some() {
            options.verify = Verify::Chain;
        }
        if options.config.get_application_name().is_none() {
            options.config.application_name("mcp-tasks");
        }
        Ok(options)
    }
}

fn decoded(value: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(value).decode_utf8().ok()
}

fn ssl_mode(value: &str) -> Option<(SslMode, Verify)> {
    Some(match value {
        "disable" => (SslMode::Disable, Verify::Nothing),
        "prefer" => (SslMode::Prefer, Verify::Nothing),
        "require" => (SslMode::Require, Verify::Nothing),
        "verify-ca" => (SslMode::Require, Verify::Chain),
        "verify-full" => (SslMode::Require, Verify::Full),
        _ => return None,
    })
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver hides the password in `config`.
        f.debug_struct("PostgresOptions")
            .field("config", &self.config)
            .field("verify", &self.verify)
            .field("roots", &self.roots)
            .field("schema", &self.schema)
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("pool_size", &self.pool_size)
            .field("pool", &self.pool.is_some())
            .finish()
    }
}
