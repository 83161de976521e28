//! PostgreSQL, beside tokio-postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mcp_tasks::store::PostgresStore;
use mcp_tasks_tests::servers::{postgres, until_exit};
use tokio_postgres::{Client, NoTls, Statement};

use super::compare::{self, Driver, Raw, Row};
use super::options::Options;
use super::work::{Bench, DEADLINE};

/// What the store puts before its ids, and the channel on which it tells of a write while a client listens.
const PREFIX: &str = "mcp-tasks:";

/// What is told.
const PAYLOAD: &str = "2 0123456789abcdef0123456789abcdef";

const TELLING: &str =
    "RETURNING (SELECT pg_notify($7, $8) FROM mcp_tasks_feed WHERE prefix = $1 AND wanted_until > now())";

/// A connection to the store's own tables, with the store's statements.
struct TokioPostgres {
    client: Client,
    read: Statement,
    insert: Statement,
    update: Statement,
    next: AtomicI64,
}

impl TokioPostgres {
    async fn open(url: &str) -> Bench<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let insert = format!(
            "INSERT INTO mcp_tasks (prefix, id, revision, deadline, lease, record) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (prefix, id) DO NOTHING {TELLING}"
        );
        let update = format!(
            "UPDATE mcp_tasks SET revision = $3, deadline = $4, lease = $5, record = $6 \
             WHERE prefix = $1 AND id = $2 AND revision = $9 {TELLING}"
        );
        Ok(Self {
            read: client
                .prepare("SELECT record, revision FROM mcp_tasks WHERE prefix = $1 AND id = $2")
                .await?,
            insert: client.prepare(&insert).await?,
            update: client.prepare(&update).await?,
            client,
            next: AtomicI64::new(1),
        })
    }
}

impl Driver for TokioPostgres {
    fn create<'a>(&'a self, id: &'a str, text: &'a str) -> Raw<'a, u64> {
        Box::pin(async move {
            let revision = self.next.fetch_add(1, Ordering::Relaxed);
            let (deadline, lease) = (Some(DEADLINE), None::<i64>);
            let rows = self
                .client
                .query(
                    &self.insert,
                    &[&PREFIX, &id, &revision, &deadline, &lease, &text, &PREFIX, &PAYLOAD],
                )
                .await?;
            match rows.len() {
                1 => Ok(revision.cast_unsigned()),
                _ => Err("the row is there".into()),
            }
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> Raw<'a, Row> {
        Box::pin(async move {
            let rows = self.client.query(&self.read, &[&PREFIX, &id]).await?;
            let row = rows.first().ok_or("the row is gone")?;
            Ok(Row {
                text: row.try_get(0)?,
                version: row.try_get::<_, i64>(1)?.cast_unsigned(),
            })
        })
    }

    fn update<'a>(&'a self, id: &'a str, version: u64, text: &'a str) -> Raw<'a, Option<u64>> {
        Box::pin(async move {
            let revision = self.next.fetch_add(1, Ordering::Relaxed);
            let (deadline, lease, version) = (Some(DEADLINE), None::<i64>, version.cast_signed());
            let rows = self
                .client
                .query(
                    &self.update,
                    &[
                        &PREFIX, &id, &revision, &deadline, &lease, &text, &PREFIX, &PAYLOAD, &version,
                    ],
                )
                .await?;
            Ok((rows.len() == 1).then_some(revision.cast_unsigned()))
        })
    }
}

pub(crate) fn compare(options: &Options) -> Bench<()> {
    let Some(server) = postgres(&[]) else { return Ok(()) };
    let server = until_exit(server);
    let runtime = compare::runtime()?;
    let store = PostgresStore::open(&format!("{}?sslmode=disable", server.url()))?;
    // The first operation makes the tables.
    runtime.block_on(compare::first(&store))?;
    let driver = runtime.block_on(TokioPostgres::open(server.url()))?;
    compare::compare(options, "PostgreSQL", &runtime, Arc::new(store), driver)
}
