//! The servers that are connected to.

use std::fmt;

use redis::Client;
use redis::aio::ConnectionManager;
use redis::cluster::ClusterClient;

/// What there is to connect to.
pub(super) enum Endpoint {
    Server(Client),
    /// The client is for the change feed.
    Managed(Client, ConnectionManager),
    /// The clients are for the change feed, one for each node that was named.
    Cluster(Box<ClusterClient>, Vec<Client>),
}

impl Endpoint {
    /// The servers that a change feed may listen to: in a cluster each of them passes on what any of them is told.
    pub(super) fn clients(&self) -> &[Client] {
        match self {
            Self::Server(client) | Self::Managed(client, _) => std::slice::from_ref(client),
            Self::Cluster(_, clients) => clients,
        }
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(..))
    }
}

impl fmt::Debug for Endpoint {
    /// Addresses alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self
            .clients()
            .iter()
            .map(|client| client.get_connection_info().addr().to_string());
        f.debug_list().entries(addresses).finish()
    }
}
