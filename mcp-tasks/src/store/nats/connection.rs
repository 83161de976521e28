//! The connection to the servers and to the bucket, made when it is first used.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerError};
use mcp_tasks_core::StoreError;
use tokio::sync::{Mutex, broadcast, watch};
use tokio::time::timeout;

use super::bucket::Bucket;
use super::error::{late, of_connecting, refused, unavailable};
use super::options::{Auth, NatsOptions, Origin};
use super::tls;

/// How long one server of a cluster may take to be connected to, before the next is tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the server is asked whether it is there: after two questions without an answer the driver connects anew, in
/// time for an execution that renews its lease of 30 s.
const PING: Duration = Duration::from_secs(5);

/// How many denials may come at once without one of them being missed by whom it concerns, which then waits in vain.
const DENIALS: usize = 64;

/// Connects, finds the bucket, and watches over what is asked of them.
pub(super) struct Connection {
    options: NatsOptions,
    bucket_name: String,
    current: RwLock<Option<Arc<Bucket>>>,
    /// Held while connecting, so that it is done once.
    client: Mutex<Option<Connected>>,
    /// Whether the bucket was ever reached: what refuses a first use is an interruption later.
    reached: AtomicBool,
    /// What the server says that this user may not do.
    denied: broadcast::Sender<String>,
    /// Counts the interruptions of the connection.
    interruptions: watch::Sender<u64>,
}

#[derive(Clone)]
struct Connected {
    client: Client,
    /// Lives as long as the driver's tasks do, which end with the runtime they were started on.
    alive: Option<Weak<()>>,
}

impl Connected {
    fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }
}

impl Connection {
    pub(super) fn new(options: NatsOptions, bucket_name: String) -> Self {
        Self {
            options,
            bucket_name,
            current: RwLock::default(),
            client: Mutex::default(),
            reached: AtomicBool::new(false),
            denied: broadcast::Sender::new(DENIALS),
            interruptions: watch::Sender::default(),
        }
    }

    pub(super) const fn options(&self) -> &NatsOptions {
        &self.options
    }

    pub(super) fn bucket_name(&self) -> &str {
        &self.bucket_name
    }

    /// Tells of interruptions from now on.
    pub(super) fn interruptions(&self) -> watch::Receiver<u64> {
        self.interruptions.subscribe()
    }

    /// The bucket; connects, and finds or makes it, where that has not been done.
    pub(super) async fn bucket(&self) -> Result<Arc<Bucket>, StoreError> {
        if let Some(bucket) = self.known() {
            return Ok(bucket);
        }
        let name = &self.bucket_name;
        let subjects = [format!("STREAM.INFO.KV_{name}"), format!("STREAM.CREATE.KV_{name}")];
        self.watched(&[&subjects[0], &subjects[1]], self.reach()).await
    }

    fn known(&self) -> Option<Arc<Bucket>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|bucket| bucket.is_alive())
    }

    async fn reach(&self) -> Result<Arc<Bucket>, StoreError> {
        let mut held = self.client.lock().await;
        if let Some(bucket) = self.known() {
            return Ok(bucket);
        }
        let connected = match held.clone().filter(Connected::is_alive) {
            Some(connected) => connected,
            None => held.insert(self.connect().await?).clone(),
        };
        let reached = self.reached.load(Ordering::Relaxed);
        let bucket = Bucket::find(self, connected.client, connected.alive, reached).await?;
        self.reached.store(true, Ordering::Relaxed);
        let bucket = Arc::new(bucket);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(bucket.clone());
        Ok(bucket)
    }

    /// What is known of the bucket may be wrong: the next use looks again.
    pub(super) fn forget_bucket(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn connect(&self) -> Result<Connected, StoreError> {
        let servers = match &self.options.origin {
            Origin::Given(client) => {
                return Ok(Connected {
                    client: client.clone(),
                    alive: None,
                });
            }
            Origin::Servers(servers) => servers.clone(),
        };
        let of_tls = self.options.clone();
        let tls = tokio::task::spawn_blocking(move || tls::config(&of_tls))
            .await
            .map_err(|error| unavailable("TLS files could not be read", error))??;
        let alive = Arc::new(());
        let weak = Arc::downgrade(&alive);
        let (denied, interruptions) = (self.denied.clone(), self.interruptions.clone());
        let mut options = ConnectOptions::new()
            .name("mcp-tasks")
            .connection_timeout(PATIENCE.min(self.options.timeout))
            .request_timeout(Some(self.options.timeout))
            .ping_interval(PING)
            .tls_client_config(tls)
            .event_callback(move |event| {
                let _held = &alive;
                heed(&event, &denied, &interruptions);
                std::future::ready(())
            });
        if let Some(prefix) = &self.options.inbox_prefix {
            options = options.custom_inbox_prefix(prefix);
        }
        let options = self.authenticated(options).await?;
        let client = options.connect(servers).await.map_err(of_connecting)?;
        Ok(Connected {
            client,
            alive: Some(weak),
        })
    }

    async fn authenticated(&self, options: ConnectOptions) -> Result<ConnectOptions, StoreError> {
        Ok(match &self.options.auth {
            Auth::Anonymous => options,
            Auth::Password(user, password) => options.user_and_password(user.clone(), password.clone()),
            Auth::Token(token) => options.token(token.clone()),
            Auth::Credentials(path) => options.credentials_file(path).await.map_err(|error| {
                // The driver's words hold nothing of the file's content; a kind of error says enough.
                refused(format!(
                    "the credentials file {} cannot be used: {}",
                    path.display(),
                    error.kind()
                ))
            })?,
            Auth::Nkey(path) => {
                let seed = tokio::fs::read_to_string(path).await;
                let seed =
                    seed.map_err(|error| refused(format!("the NKey file {} cannot be read: {error}", path.display())))?;
                options.nkey(seed.trim().to_owned())
            }
        })
    }

    /// Bounds what is asked of the server in time, and hears of it when the server says that it may not be asked: then it
    /// does not answer. `subjects` are parts of the subjects that are published to.
    pub(super) async fn watched<T>(
        &self,
        subjects: &[&str],
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut denied = self.denied.subscribe();
        let work = timeout(self.options.timeout, work);
        tokio::select! {
            biased;
            outcome = work => outcome.unwrap_or_else(|_| Err(late(self.options.timeout))),
            said = denial(&mut denied, subjects) => {
                Err(refused(format!("this user of the NATS server lacks a right: {said}")))
            }
        }
    }
}

/// The next denial that concerns these subjects, or the subscription that answers come back on.
async fn denial(denied: &mut broadcast::Receiver<String>, subjects: &[&str]) -> String {
    loop {
        match denied.recv().await {
            Ok(said) if subjects.iter().any(|subject| said.contains(subject)) || said.contains("Subscription") => {
                return said;
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            // The sender is held by whoever waits here.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// What the driver tells of the connection.
fn heed(event: &Event, denied: &broadcast::Sender<String>, interruptions: &watch::Sender<u64>) {
    match event {
        Event::Disconnected | Event::Closed => {
            tracing::warn!("the connection to the NATS server is interrupted");
            interruptions.send_modify(|count| *count += 1);
        }
        Event::Connected => tracing::debug!("connected to the NATS server"),
        Event::ServerError(ServerError::Other(said)) if said.to_ascii_lowercase().contains("permissions violation") => {
            tracing::warn!(said, "the NATS server denies something to this user");
            // Nobody may be waiting for anything.
            let _ = denied.send(said.clone());
        }
        event => tracing::debug!(%event, "the NATS connection"),
    }
}
