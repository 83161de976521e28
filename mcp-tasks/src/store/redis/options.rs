//! How to reach the server.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_tasks_core::store::DEFAULT_KEY_PREFIX;
use mcp_tasks_core::{CasStore, StoreError};
use redis::aio::ConnectionManager;
use redis::cluster::ClusterClientBuilder;
use redis::{Client, ClientTlsConfig, ConnectionAddr, TlsCertificates};

use super::backend::RedisBackend;
use super::connection::Link;
use super::endpoint::Endpoint;
use super::feed::Channel;
use super::keys::Keys;
use super::url::{self, Target};
use super::{Inner, RedisStore};
use crate::store::defaults::TIMEOUT;
use crate::store::failure::refused;
use crate::store::feed::Feed;

/// How often a cluster connection follows a slot that has moved, or tries a node again, in one operation. The operation's
/// time-out ends it anyway.
const CLUSTER_RETRIES: u32 = 4;

/// How to reach the server of a [`RedisStore`], and under which names to keep tasks there.
#[derive(Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct RedisOptions {
    given: Given,
    manager: Option<ConnectionManager>,
    prefix: String,
    timeout: Duration,
    root_certificates: Option<Vec<u8>>,
    client_certificate: Option<ClientTlsConfig>,
}

#[derive(Clone)]
enum Given {
    Target(Target),
    Client(Box<Client>),
}

impl RedisOptions {
    /// The server that the URL names:
    ///
    /// * `redis://[user:password@]host[:port][/database]`, and `valkey://`, which is the same;
    /// * `rediss://…` or `valkeys://…` with TLS;
    /// * `redis-cluster://[user:password@]host[:port],host[:port],…` for a cluster, of which one node that is up has to be
    ///   named, and `rediss-cluster://…`; `valkey-cluster://` and `valkeys-cluster://` are the same;
    /// * `redis+unix:///path/to/socket[?db=0&user=…&pass=…]`.
    ///
    /// What has a meaning in URLs is percent-encoded in a user and a password. The parameter `protocol=resp3` is taken, no
    /// other.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL cannot be understood. The error does not show it, as it may hold a password.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let target = url::parse(url).map_err(|reason| refused(format!("the Redis URL cannot be used: {reason}")))?;
        Ok(Self::given(Given::Target(target)))
    }

    /// The server of a client of the application's, with its address, its credentials and its certificates.
    pub fn from_client(client: Client) -> Self {
        Self::given(Given::Client(Box::new(client)))
    }

    fn given(given: Given) -> Self {
        Self {
            given,
            manager: None,
            prefix: DEFAULT_KEY_PREFIX.to_owned(),
            timeout: TIMEOUT,
            root_certificates: None,
            client_certificate: None,
        }
    }

    /// Sends commands over a connection of the application's, which may use it for others too. It is up to the manager then
    /// when an answer is too late, if that is before [`timeout`](Self::timeout), and when to connect anew. The change feed
    /// has a connection of its own all the same, to the server of these options, as a connection that listens does nothing
    /// else.
    ///
    /// Not for a cluster.
    pub fn connection_manager(mut self, manager: ConnectionManager) -> Self {
        self.manager = Some(manager);
        self
    }

    /// What all keys begin with: `mcp-tasks:`, unless told otherwise. Nodes of one deployment have the same; deployments
    /// that share a server have different ones, none of them the beginning of another.
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long an operation may take before it is answered with [`StoreError::Unavailable`]: 10 s, unless told otherwise.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The certificates, in PEM, that the server's has to be signed by, in place of the system's. For a URL with TLS.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// The certificate and the key, in PEM, that a server is shown which asks for one. For a URL with TLS.
    pub fn client_certificate(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.client_certificate = Some(ClientTlsConfig {
            client_cert: certificate.into(),
            client_key: key.into(),
        });
        self
    }

    /// Makes the store. Connects to nothing yet: the first operation does, and every later one if it fails.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the options cannot be used: a certificate that cannot be read, a key prefix with an empty
    /// hash tag (`{}`).
    pub fn open(self) -> Result<RedisStore, StoreError> {
        let keys = Keys::new(&self.prefix).map_err(refused)?;
        let timeout = self.timeout;
        let link = Arc::new(Link::new(self.endpoint()?, timeout));
        let feed = Feed::new(Channel::new(&link, keys.channel()));
        // The backend makes the names itself.
        let tasks = CasStore::new(RedisBackend::new(link.clone(), keys.clone())).with_prefix("");
        Ok(RedisStore {
            inner: Arc::new(Inner {
                tasks,
                link,
                keys,
                feed,
            }),
        })
    }

    fn endpoint(self) -> Result<Endpoint, StoreError> {
        let certificates =
            (self.root_certificates.is_some() || self.client_certificate.is_some()).then(|| TlsCertificates {
                client_tls: self.client_certificate.clone(),
                root_cert: self.root_certificates.clone(),
            });
        let client = match self.given {
            Given::Client(_) if certificates.is_some() => {
                return Err(refused("a client that is handed in brings its certificates with it"));
            }
            Given::Target(Target::Cluster(_)) if self.manager.is_some() => {
                return Err(refused(
                    "a connection manager has one server; a cluster is followed without one",
                ));
            }
            Given::Target(Target::Cluster(nodes)) => {
                provide_cryptography();
                let clients = nodes.iter().map(|node| client_of(node.clone(), certificates.as_ref()));
                let clients = clients.collect::<Result<Vec<_>, _>>()?;
                let mut builder = ClusterClientBuilder::new(nodes)
                    .connection_timeout(self.timeout)
                    .response_timeout(self.timeout)
                    .retries(CLUSTER_RETRIES);
                if let Some(certificates) = certificates {
                    builder = builder.certs(certificates);
                }
                let cluster = builder.build().map_err(super::error::store_error)?;
                return Ok(Endpoint::Cluster(Box::new(cluster), clients));
            }
            Given::Target(Target::Server(info)) => client_of(*info, certificates.as_ref())?,
            Given::Client(client) => *client,
        };
        if matches!(client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. }) {
            provide_cryptography();
        }
        Ok(match self.manager {
            Some(manager) => Endpoint::Managed(client, manager),
            None => Endpoint::Server(client),
        })
    }

    /// Reads a whole URL, for the configuration.
    pub(crate) fn from_url(url: &str, prefix: &str) -> Result<Self, String> {
        Keys::new(prefix)?;
        Ok(Self::given(Given::Target(url::parse(url)?)).key_prefix(prefix))
    }
}

fn client_of(info: redis::ConnectionInfo, certificates: Option<&TlsCertificates>) -> Result<Client, StoreError> {
    match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates.clone()),
        None => Client::open(info),
    }
    .map_err(super::error::store_error)
}

/// rustls takes its cryptography from what the process has installed, and panics where there is nothing, or more than one
/// thing, to take. An application that has installed its own keeps it.
fn provide_cryptography() {
    static PROVIDED: OnceLock<()> = OnceLock::new();
    PROVIDED.get_or_init(|| {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // It fails only if another thread was faster, which is as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    });
}

impl fmt::Debug for RedisOptions {
    /// Shows no URL and no certificate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RedisOptions");
        match &self.given {
            Given::Target(target) => shown.field("target", target),
            Given::Client(client) => shown.field("target", &client.get_connection_info().addr().to_string()),
        };
        shown
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
