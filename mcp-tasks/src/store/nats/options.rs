//! How to reach a bucket, in code and as a URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use async_nats::ServerAddr;
use mcp_tasks_core::StoreError;
use mcp_tasks_core::store::DEFAULT_KEY_PREFIX;
use percent_encoding::percent_decode_str;

use super::error::refused;
use super::{NatsStore, name};
use crate::store::defaults::TIMEOUT;

/// What a wrong URL is answered with.
const USAGE: &str = "write `nats://host`, `nats://user:password@host:4222,other-host` or `tls://token@host`, characters other \
                     than letters, digits, `-`, `.`, `_` and `~` in user, password and token as `%` and two hexadecimal \
                     digits, optionally followed by `?` and, joined by `&`: `creds=<file>`, `nkey=<file>`, `tlsca=<file>`, \
                     `tlscert=<file>` with `tlskey=<file>`, `domain=<name>`, `inbox-prefix=<subject>`, `replicas=<1 to 5>`, \
                     `max-bytes=<number>`";

/// How the client shows who it is.
#[derive(Clone, Default)]
pub(super) enum Auth {
    #[default]
    Anonymous,
    Password(String, String),
    Token(String),
    Credentials(PathBuf),
    Nkey(PathBuf),
}

/// Where the connection comes from.
#[derive(Clone)]
pub(super) enum Origin {
    Servers(Vec<ServerAddr>),
    Given(async_nats::Client),
}

/// How to open a [`NatsStore`].
///
/// ```
/// use std::time::Duration;
/// use mcp_tasks::store::NatsOptions;
///
/// let store = NatsOptions::new("nats://nats-1.internal,nats-2.internal")?
///     .credentials_file("/etc/app/tasks.creds")
///     .replicas(3)
///     .timeout(Duration::from_secs(5))
///     .open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct NatsOptions {
    pub(super) origin: Origin,
    pub(super) auth: Auth,
    pub(super) prefix: String,
    pub(super) timeout: Duration,
    pub(super) replicas: Option<usize>,
    pub(super) max_bytes: Option<i64>,
    pub(super) domain: Option<String>,
    pub(super) inbox_prefix: Option<String>,
    pub(super) authority: Option<PathBuf>,
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
}

impl NatsOptions {
    /// The servers of a URL, with everything else as by default.
    ///
    /// `nats://host` or `tls://host`, the latter with TLS or not at all; several hosts of one cluster are joined by commas;
    /// the port is 4222 unless given. In front of the host, `user:password@` or `token@`; what is not a letter, digit, `-`,
    /// `.`, `_` or `~` in them is percent-encoded. After a `?`, joined by `&`:
    ///
    /// | option | the same in code |
    /// |---|---|
    /// | `creds=<file>` | [`credentials_file`](Self::credentials_file) |
    /// | `nkey=<file>` | [`nkey_file`](Self::nkey_file) |
    /// | `tlsca=<file>` | [`tls_authority`](Self::tls_authority) |
    /// | `tlscert=<file>` and `tlskey=<file>` | [`tls_certificate`](Self::tls_certificate) |
    /// | `domain=<name>` | [`domain`](Self::domain) |
    /// | `inbox-prefix=<subject>` | [`inbox_prefix`](Self::inbox_prefix) |
    /// | `replicas=<number>` | [`replicas`](Self::replicas) |
    /// | `max-bytes=<number>` | [`max_bytes`](Self::max_bytes) |
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL cannot be used; the URL is not shown, as it may hold a password.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        Self::from_url(url, DEFAULT_KEY_PREFIX)
            .map_err(|reason| refused(format!("the NATS URL cannot be used: {reason}")))
    }

    /// A connection that the application has, of the crate `async-nats` 0.51. What has to do with connecting is then up
    /// to the application: users, TLS, inboxes.
    ///
    /// The store is told less this way: a missing right shows as a time-out, and an interruption is noticed by the change
    /// feed after some 15 s instead of at once.
    pub fn from_client(client: async_nats::Client) -> Self {
        Self::of(Origin::Given(client))
    }

    fn of(origin: Origin) -> Self {
        Self {
            origin,
            auth: Auth::default(),
            prefix: DEFAULT_KEY_PREFIX.to_owned(),
            timeout: TIMEOUT,
            replicas: None,
            max_bytes: None,
            domain: None,
            inbox_prefix: None,
            authority: None,
            certificate: None,
        }
    }

    /// Names the bucket: the prefix without the `:` at its end, letters, digits, `-` and `_`. `mcp-tasks:` unless told
    /// otherwise, which is the bucket `mcp-tasks`.
    pub fn key_prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// A user and a password.
    pub fn user_and_password(mut self, user: &str, password: &str) -> Self {
        self.auth = Auth::Password(user.to_owned(), password.to_owned());
        self
    }

    /// A token.
    pub fn token(mut self, token: &str) -> Self {
        self.auth = Auth::Token(token.to_owned());
        self
    }

    /// A file with a user's JWT and seed, as `nsc generate creds` writes it. It is read when the store connects for the first
    /// time, and not when the driver connects again after an interruption: a file that is replaced counts from the next start.
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.auth = Auth::Credentials(path.into());
        self
    }

    /// A file with the seed of an NKey and nothing else.
    pub fn nkey_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.auth = Auth::Nkey(path.into());
        self
    }

    /// A PEM file with the authorities that vouch for the server's certificate, in place of the system's.
    pub fn tls_authority(mut self, path: impl Into<PathBuf>) -> Self {
        self.authority = Some(path.into());
        self
    }

    /// PEM files with the certificate that this client shows, and its key.
    pub fn tls_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// The JetStream domain the bucket is in, if it is not the server's own.
    pub fn domain(mut self, domain: &str) -> Self {
        self.domain = Some(domain.to_owned());
        self
    }

    /// What begins the subjects that answers come back on, where a user may not subscribe to `_INBOX.>`.
    pub fn inbox_prefix(mut self, prefix: &str) -> Self {
        self.inbox_prefix = Some(prefix.to_owned());
        self
    }

    /// On how many servers of a cluster a new bucket is kept, 1 to 5. One, unless told otherwise; with 3 the bucket
    /// survives the loss of a server. A bucket that exists is left as it is, with a warning if it differs.
    pub const fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// The size in bytes beyond which a new bucket refuses writes. Some accounts want one. Without it, the limits of the
    /// account and the server count.
    pub const fn max_bytes(mut self, bytes: u64) -> Self {
        // JetStream counts in signed numbers; one beyond them is no limit.
        self.max_bytes = Some(if bytes > i64::MAX as u64 {
            -1
        } else {
            bytes.cast_signed()
        });
        self
    }

    /// How long an operation may take before it is answered with [`StoreError::Unavailable`]: 10 s, unless told otherwise.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The store. It connects when it is first used, so this neither waits nor needs a runtime.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the options cannot be used: a key prefix that names no bucket, a number of replicas that
    /// JetStream does not have.
    pub fn open(self) -> Result<NatsStore, StoreError> {
        let bucket = self.check().map_err(refused)?;
        Ok(NatsStore::new(self, bucket))
    }

    fn check(&self) -> Result<String, String> {
        if self.replicas.is_some_and(|replicas| !(1..=5).contains(&replicas)) {
            return Err("a NATS bucket has 1 to 5 replicas".to_owned());
        }
        let is_name =
            |name: &String| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || ".*>".contains(c));
        if !self.domain.as_ref().is_none_or(is_name) {
            return Err("a JetStream domain has one word".to_owned());
        }
        let is_subject = |subject: &String| subject.split('.').all(|token| is_name(&token.to_owned()));
        if !self.inbox_prefix.as_ref().is_none_or(is_subject) {
            return Err("the inbox prefix is no NATS subject".to_owned());
        }
        name::bucket(&self.prefix)
    }

    /// Reads a whole URL. The error does not show it.
    pub(crate) fn from_url(url: &str, prefix: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; {USAGE}");
        let (place, query) = match url.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (url, None),
        };
        let (scheme, hosts) = place.split_once("://").ok_or_else(|| wrong("it names no server"))?;
        let (mut servers, mut auth) = (Vec::new(), None);
        for host in hosts.strip_suffix('/').unwrap_or(hosts).split(',') {
            let host = host.split_once("://").map_or(host, |(_, host)| host);
            let (user, host) = match host.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, host),
            };
            if host.is_empty() || host.contains('/') {
                return Err(wrong("it has an empty host or a path"));
            }
            let scheme = scheme.to_ascii_lowercase();
            let server = ServerAddr::from_str(&format!("{scheme}://{host}"));
            servers.push(server.map_err(|_| wrong("it has a host that is none"))?);
            if let Some(user) = user {
                if auth.as_ref().is_some_and(|known| *known != user) {
                    return Err(wrong("it has different users for its hosts"));
                }
                auth = Some(user);
            }
        }
        let mut options = Self::of(Origin::Servers(servers)).key_prefix(prefix);
        if let Some(user) = auth {
            options.auth = match user.split_once(':') {
                Some((user, password)) => Auth::Password(decode(user)?, decode(password)?),
                None => Auth::Token(decode(user)?),
            };
        }
        let (mut certificate, mut key) = (None, None);
        for option in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| wrong("it has an option without a value"))?;
            let value = decode(value)?;
            match name {
                "creds" => options.auth = Auth::Credentials(value.into()),
                "nkey" => options.auth = Auth::Nkey(value.into()),
                "tlsca" => options.authority = Some(value.into()),
                "tlscert" => certificate = Some(value),
                "tlskey" => key = Some(value),
                "domain" => options.domain = Some(value),
                "inbox-prefix" => options.inbox_prefix = Some(value),
                "replicas" => {
                    options.replicas = Some(value.parse().map_err(|_| wrong("its `replicas` is no number"))?);
                }
                "max-bytes" => {
                    let bytes = value.parse().map_err(|_| wrong("its `max-bytes` is no number"))?;
                    options = options.max_bytes(bytes);
                }
                // Not named, as a password with a `?` in it comes here too.
                _ => return Err(wrong("it has an option that is none")),
            }
        }
        match (certificate, key) {
            (Some(certificate), Some(key)) => options = options.tls_certificate(certificate, key),
            (None, None) => {}
            _ => return Err(wrong("`tlscert` and `tlskey` go together")),
        }
        options.check()?;
        Ok(options)
    }

    /// The servers, without anything that is secret.
    pub(super) fn servers(&self) -> Vec<String> {
        match &self.origin {
            Origin::Servers(servers) => servers.iter().map(|server| server.as_url_str().to_owned()).collect(),
            Origin::Given(_) => Vec::new(),
        }
    }
}

fn decode(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(std::borrow::Cow::into_owned)
        .map_err(|_| format!("it has a percent-encoded part that is no text; {USAGE}"))
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let auth = match &self.auth {
            Auth::Anonymous => "none",
            Auth::Password(..) => "user and password",
            Auth::Token(_) => "token",
            Auth::Credentials(_) => "credentials file",
            Auth::Nkey(_) => "NKey file",
        };
        f.debug_struct("NatsOptions")
            .field("servers", &self.servers())
            .field("auth", &format_args!("{auth}"))
            .field("key_prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("replicas", &self.replicas)
            .field("max_bytes", &self.max_bytes)
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<NatsOptions, String> {
        NatsOptions::from_url(url, "mcp-tasks:")
    }

    #[test]
    fn servers_users_and_options_are_read() {
        let options =
            parse("nats://me:p%40ss%3Aw@a:4223,nats://b,[::1]:99/?replicas=3&max-bytes=1000&domain=hub").unwrap();
        assert_eq!(options.servers(), ["nats://a:4223", "nats://b", "nats://[::1]:99"]);
        assert!(matches!(&options.auth, Auth::Password(user, password) if user == "me" && password == "p@ss:w"));
        assert_eq!((options.replicas, options.max_bytes), (Some(3), Some(1_000)));
        assert_eq!(options.domain.as_deref(), Some("hub"));
        let options = parse("TLS://s3cr3t@host?tlsca=/a%20b.pem&tlscert=c&tlskey=k").unwrap();
        assert!(matches!(&options.auth, Auth::Token(token) if token == "s3cr3t"));
        assert_eq!(options.authority.as_deref(), Some("/a b.pem".as_ref()));
        assert_eq!(options.certificate, Some(("c".into(), "k".into())));
        let options = parse("nats://host?creds=/etc/x.creds").unwrap();
        assert!(matches!(&options.auth, Auth::Credentials(path) if path.ends_with("x.creds")));
    }

    #[test]
    fn a_wrong_url_is_refused_with_advice_and_without_showing_it() {
        for url in [
            "nats:",
            "nats://",
            "nats://hunter2@",
            "nats://me:hunter2@host/bucket",
            "nats://me:pass?hunter2@host",
            "nats://me:pass?hunter2=x@host",
            "nats://me:hunter2@a,you:hunter3@b",
            "nats://host?replicas=hunter2",
            "nats://host?tlscert=hunter2",
            "nats://%ff:hunter2@host",
            "nats://ho st",
        ] {
            let error = parse(url).unwrap_err();
            assert!(
                error.contains("nats://host") && !error.contains("hunter"),
                "{url}: {error}"
            );
        }
        for url in [
            "nats://host?replicas=0",
            "nats://host?replicas=6",
            "nats://host?domain=a.b",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
        let error = NatsOptions::from_url("nats://host", "a:b:").unwrap_err();
        assert!(error.contains("`a:b:`"), "{error}");
    }

    #[test]
    fn nothing_secret_is_shown() {
        let options = [
            parse("nats://me:hunter2@host").unwrap(),
            parse("nats://hunter2@host").unwrap(),
            parse("nats://host").unwrap().token("hunter2"),
            parse("nats://host").unwrap().user_and_password("me", "hunter2"),
        ];
        for options in options {
            let store = options.clone().open().unwrap();
            let shown = format!("{options:?} {options:#?} {store:?}");
            assert!(shown.contains("nats://host") && !shown.contains("hunter2"), "{shown}");
        }
    }
}
