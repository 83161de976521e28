//! The tables, and their version.

use deadpool_postgres::Client;
use mcp_tasks_core::StoreError;
use tokio_postgres::Error;

use super::error::store_error;
use crate::store::failure::refused;

/// The layout this release reads and writes. A change of the tables raises it and adds a step to [`lay_out`].
const LAYOUT: i32 = 1;

/// "mcptasks": under this number nodes that start at once take turns in setting the tables up.
const LOCK: i64 = 0x6d63_7074_6173_6b73;

/// What the tables are called in statements.
#[derive(Debug)]
pub(super) struct Names {
    schema: Option<String>,
    pub(super) tasks: String,
    pub(super) feed: String,
    layout: String,
}

impl Names {
    pub(super) fn new(schema: Option<&str>) -> Self {
        let within = |table: &str| match schema {
            Some(schema) => format!("{}.{table}", quoted(schema)),
            None => table.to_owned(),
        };
        Self {
            schema: schema.map(str::to_owned),
            tasks: within("mcp_tasks"),
            feed: within("mcp_tasks_feed"),
            layout: within("mcp_tasks_layout"),
        }
    }

    /// Each statement does nothing where its table is there, so that the second of two nodes changes nothing.
    ///
    /// Names are compared byte for byte, which is what ids are and what an index is fastest with. Most writes leave deadline
    /// and lease alone: where a page has room beside the row they touch no index, hence the fill factor. The indexes hold only
    /// what can expire and what runs, so that looking for what is over costs nothing where nothing can be.
    fn creation(&self) -> String {
        let Self {
            tasks, feed, layout, ..
        } = self;
        format!(
            r#"
            CREATE TABLE IF NOT EXISTS {tasks} (
                prefix text COLLATE "C" NOT NULL,
                id text COLLATE "C" NOT NULL,
                revision bigint NOT NULL,
                deadline bigint,
                lease bigint,
                record text NOT NULL,
                PRIMARY KEY (prefix, id)
            ) WITH (fillfactor = 80);
            CREATE INDEX IF NOT EXISTS mcp_tasks_deadline ON {tasks} (prefix, deadline, id) WHERE deadline IS NOT NULL;
            CREATE INDEX IF NOT EXISTS mcp_tasks_lease ON {tasks} (prefix, lease, id) WHERE lease IS NOT NULL;
            CREATE TABLE IF NOT EXISTS {feed} (
                prefix text COLLATE "C" NOT NULL PRIMARY KEY,
                wanted_until timestamptz NOT NULL
            );
            CREATE TABLE IF NOT EXISTS {layout} (layout integer NOT NULL);
            INSERT INTO {layout} SELECT {LAYOUT} WHERE NOT EXISTS (SELECT FROM {layout});
            "#
        )
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What is in the database.
enum Present {
    Nothing { has_schema: bool },
    Layout(i32),
}

/// Creates what is missing, and refuses what is not ours or of a later release.
pub(super) async fn set_up(client: &Client, names: &Names) -> Result<(), StoreError> {
    let mut created = false;
    loop {
        match look(client, names).await? {
            Present::Layout(LAYOUT) => return Ok(()),
            Present::Layout(later) if later > LAYOUT => {
                return Err(refused(format!(
                    "the PostgreSQL tables have layout {later}, and this release knows layouts up to {LAYOUT}: upgrade this \
                     node, the tables were left as they are"
                )));
            }
            Present::Nothing { has_schema } if !created => {
                lay_out(client, names, has_schema).await.map_err(store_error)?;
                created = true;
            }
            _ => {
                return Err(refused(format!(
                    "the table {} does not say which layout it has",
                    names.layout
                )));
            }
        }
    }
}

async fn look(client: &Client, names: &Names) -> Result<Present, StoreError> {
    let query = "SELECT to_regclass($1::text) IS NOT NULL, to_regclass($2::text) IS NOT NULL, \
                 current_setting('server_encoding'), EXISTS (SELECT FROM pg_namespace WHERE nspname = $3::text)";
    let row = client
        .query_one(query, &[&names.layout, &names.tasks, &names.schema])
        .await
        .map_err(store_error)?;
    let encoding: &str = row.get(2);
    if encoding != "UTF8" {
        return Err(refused(format!(
            "the PostgreSQL database has the encoding {encoding}, which cannot hold every text; take one with UTF8"
        )));
    }
    match (row.get(0), row.get(1)) {
        (true, _) => {
            let query = format!("SELECT max(layout) FROM {}", names.layout);
            let row = client.query_one(&query, &[]).await.map_err(store_error)?;
            Ok(row
                .get::<_, Option<i32>>(0)
                .map_or(Present::Nothing { has_schema: true }, Present::Layout))
        }
        (false, true) => Err(refused(format!(
            "the PostgreSQL table {} is another program's; give the tasks a schema of their own, with `schema=`",
            names.tasks
        ))),
        (false, false) => Ok(Present::Nothing { has_schema: row.get(3) }),
    }
}

/// As one step: statements that are sent as one are one transaction.
async fn lay_out(client: &Client, names: &Names, has_schema: bool) -> Result<(), Error> {
    // Asked for only where it is missing, because it takes a right of its own even where it is not.
    let schema = match &names.schema {
        Some(schema) if !has_schema => format!("CREATE SCHEMA IF NOT EXISTS {};", quoted(schema)),
        _ => String::new(),
    };
    let creation = names.creation();
    client
        .batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK}); {schema} {creation}"))
        .await
}
