//! Connections, and statements on them.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod};
use futures::StreamExt;
use futures::stream::BoxStream;
use mcp_tasks_core::StoreError;
use tokio::sync::OnceCell;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Config, Error, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{is_broken, is_collision, pool_error, store_error, too_late};
use super::layout::{self, Names};
use super::options::PostgresOptions;
use super::tls;

/// What a statement is given.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The driver's two hours, which is to say that nobody chose.
const NEVER: Duration = Duration::from_secs(2 * 60 * 60);

/// A connection that a firewall forgot while it lay in the pool is found dead in a minute or two, and not by a task's write.
const ALIVE: Duration = Duration::from_secs(60);
const ALIVE_AGAIN: Duration = Duration::from_secs(10);
const ALIVE_TRIES: u32 = 3;

/// Where the server is, and how it is spoken to.
#[derive(Clone)]
pub(super) struct Server {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Server {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let mut config = options.config.clone();
        if config.get_connect_timeout().is_none() {
            // So that a host that does not answer leaves time for the next one.
            let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
            config.connect_timeout(options.timeout / u32::try_from(hosts).unwrap_or(u32::MAX));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(options.timeout);
        }
        if config.get_keepalives_idle() == NEVER {
            config
                .keepalives_idle(ALIVE)
                .keepalives_interval(ALIVE_AGAIN)
                .keepalives_retries(ALIVE_TRIES);
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(options.verify, options.roots.as_ref())?),
        };
        Ok(Self { config, tls })
    }

    fn pool(&self, options: &PostgresOptions) -> Result<Pool, StoreError> {
        // A connection that is known to be dead is not handed out; a dead one that is not known to be shows with the first
        // statement, which is repeated on another.
        let manager = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = match &self.tls {
            Some(tls) => Manager::from_config(self.config.clone(), tls.clone(), manager),
            None => Manager::from_config(self.config.clone(), NoTls, manager),
        };
        // What was given up here is given up there too, or it would wait on for a lock and hold a connection.
        let limit = format!(
            "SET statement_timeout = {}",
            options.timeout.as_millis().clamp(1, 1 << 30)
        );
        Pool::builder(manager)
            .max_size(options.pool_size.get())
            // The one used last: its process on the server is awake, and has what it needs in its caches. In turn, as by
            // default, each statement would wake another process and prepare itself there anew.
            .queue_mode(QueueMode::Lifo)
            .post_create(Hook::async_fn(move |client, _| {
                let limit = limit.clone();
                Box::pin(async move { client.batch_execute(&limit).await.map_err(HookError::Backend) })
            }))
            .build()
            .map_err(|error| StoreError::Refused {
                reason: "the pool of PostgreSQL connections cannot be made".to_owned(),
                source: Some(Box::new(error)),
            })
    }

    /// A connection outside the pool, and what the server says on it. It lives while the latter is asked for.
    pub(super) async fn connect(
        &self,
    ) -> Result<(tokio_postgres::Client, BoxStream<'static, Result<AsyncMessage, Error>>), Error> {
        Ok(match &self.tls {
            Some(tls) => {
                let (client, mut connection) = self.config.connect(tls.clone()).await?;
                let messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
                (client, messages.boxed())
            }
            None => {
                let (client, mut connection) = self.config.connect(NoTls).await?;
                let messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
                (client, messages.boxed())
            }
        })
    }
}

/// The database of a store: its tables, set up before they are first used.
pub(super) struct Database {
    pool: Pool,
    pub(super) names: Names,
    timeout: Duration,
    is_ready: OnceCell<()>,
}

impl Database {
    /// Over connections to `server`, or those of the application's pool.
    pub(super) fn new(server: &Server, options: &PostgresOptions) -> Result<Self, StoreError> {
        let pool = match &options.pool {
            Some(pool) => pool.clone(),
            None => server.pool(options)?,
        };
        Ok(Self::over(pool, options.schema.as_deref(), options.timeout))
    }

    pub(super) fn over(pool: Pool, schema: Option<&str>, timeout: Duration) -> Self {
        Self {
            pool,
            names: Names::new(schema),
            timeout,
            is_ready: OnceCell::new(),
        }
    }

    /// Gives `operation` the time there is. What is under way when it is over is given up together with its connection.
    pub(super) async fn in_time<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.timeout, operation).await {
            Ok(outcome) => outcome,
            Err(_) => Err(too_late(self.timeout)),
        }
    }

    /// The rows that `sql` returns. Repeated if it collided with others, and on another connection if the one that lay ready
    /// turns out to be dead: whatever the store says may be said twice.
    pub(super) async fn rows(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.ready().await?;
        loop {
            let lent = Lent::from(&self.pool).await?;
            let outcome = match lent.prepare_cached(sql).await {
                Ok(statement) => lent.query(&statement, parameters).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(rows) => {
                    lent.give_back();
                    return Ok(rows);
                }
                // How often is up to the time that the operation has.
                Err(error) if is_collision(&error) => lent.give_back(),
                Err(error) if !is_broken(&error) => {
                    lent.give_back();
                    return Err(store_error(error));
                }
                Err(error) if !lent.was_ready() => return Err(store_error(error)),
                // Each round leaves the pool with a connection less that lay ready.
                Err(_) => {}
            }
        }
    }

    /// Sets the tables up, once; a failure is tried again by the next operation.
    pub(super) async fn ready(&self) -> Result<(), StoreError> {
        let set_up = async || {
            let lent = Lent::from(&self.pool).await?;
            layout::set_up(&lent, &self.names).await?;
            lent.give_back();
            Ok(())
        };
        self.is_ready.get_or_try_init(set_up).await.copied()
    }
}

/// A connection of the pool. Unless it is given back it is closed: a statement whose answer nobody waited for is still under
/// way on it, and if the server does not answer, nor would it answer the next.
struct Lent {
    client: Option<Client>,
}

impl Lent {
    async fn from(pool: &Pool) -> Result<Self, StoreError> {
        let client = Some(pool.get().await.map_err(pool_error)?);
        Ok(Self { client })
    }

    /// Whether it was used before, and so may have died while it lay in the pool.
    fn was_ready(&self) -> bool {
        Object::metrics(self).recycled.is_some()
    }

    fn give_back(mut self) {
        drop(self.client.take());
    }
}

impl Deref for Lent {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
            .as_ref()
            .expect("only giving it back, which ends it, takes it away")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
