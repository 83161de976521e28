//! Connections and the layout of the file.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use mcp_tasks_core::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::error::{busy, is_busy, of_file, store_error};
use super::{Durability, SqliteOptions};
use crate::store::failure::refused;

/// The layout this release reads and writes. A change of the tables raises it and adds a step to [`lay_out`].
const LAYOUT: i64 = 1;

/// "MCPT": says that the file is ours.
const APPLICATION_ID: i64 = 0x4d43_5054;

/// `last_write` is beside `version` because a task that was deleted and created anew begins at version 1 again. The indexes
/// hold only what can expire and what runs, so that looking for what is over costs nothing where nothing can be.
const TABLES: &str = "
    CREATE TABLE tasks (
        id TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        last_write TEXT,
        deadline INTEGER,
        lease INTEGER,
        record TEXT NOT NULL
    ) STRICT;
    CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;
    CREATE INDEX tasks_lease ON tasks (lease) WHERE lease IS NOT NULL;
";

/// After a burst the log shrinks to this again; it is checkpointed at about 4 MB.
const LOG_SIZE: i64 = 16 << 20;

const PAGE_SIZE: u64 = 4096;

/// Refuses what SQLite understands as something else than a file.
pub(super) fn check_path(path: &Path) -> Result<(), StoreError> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(refused(
            "SQLite in memory, or by its own kind of URI, keeps no task for anybody; name a file, or leave the store out to \
             keep tasks in memory",
        ));
    }
    Ok(())
}

/// Refuses a place where no file can be, which SQLite calls by the same words as a file it may not open.
pub(super) fn check_place(path: &Path) -> Result<(), StoreError> {
    let cannot = |why: String| Err(refused(format!("`{}` cannot be a SQLite file: {why}", path.display())));
    if path.is_dir() {
        return cannot("it is a directory; name a file in it".to_owned());
    }
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
        return Ok(());
    };
    // What cannot be looked at is left to SQLite.
    match directory.metadata() {
        Ok(found) if !found.is_dir() => cannot(format!("`{}` is not a directory", directory.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => cannot(format!(
            "the directory `{}` does not exist; create it",
            directory.display()
        )),
        _ => Ok(()),
    }
}

/// Waits for another connection, often at first as most transactions take milliseconds. It gives up after about a
/// second, for the caller to look at its own clock.
fn wait(tries: i32) -> bool {
    let pause = match tries {
        0..10 => 1,
        10..60 => 2,
        60..240 => 5,
        _ => return false,
    };
    std::thread::sleep(Duration::from_millis(pause));
    true
}

/// Repeats what fails because another connection is in the way, until `limit` has passed. SQLite does not ask its busy
/// handler in every case: not while another process opens or closes the file, nor while it switches to the log.
pub(super) fn patiently<T>(
    limit: Duration,
    mut attempt: impl FnMut() -> Result<T, rusqlite::Error>,
) -> Result<T, Patience> {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if !is_busy(&error) => return Err(Patience::Failed(error)),
            Err(_) if start.elapsed() >= limit => return Err(Patience::Over),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Why [`patiently`] ended without a value.
pub(super) enum Patience {
    Over,
    Failed(rusqlite::Error),
}

impl From<Patience> for StoreError {
    fn from(patience: Patience) -> Self {
        match patience {
            Patience::Over => busy(),
            Patience::Failed(error) => store_error(error),
        }
    }
}

fn connect(options: &SqliteOptions) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[allow(
        unused_mut,
        reason = "later releases of rusqlite set the handler through `&mut`, earlier ones do not"
    )]
    let mut connection = Connection::open_with_flags(&options.path, flags)?;
    connection.busy_handler(Some(wait))?;
    // A dozen statements at most, each prepared once.
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// The connection that writes; lays the file out if it is new.
pub(super) fn writer(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, StoreError> {
        let mut connection = patiently(options.timeout, || connect(options))?;
        // Before anything is changed, as it may be somebody else's file.
        let present = patiently(options.timeout, || layout(&connection))?.map_err(refused)?;
        let mode: String = patiently(options.timeout, || {
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        })?;
        if mode != "wal" {
            return Err(refused(format!(
                "the file cannot have a write-ahead log beside it (it stays in mode `{mode}`); put it on a local disk"
            )));
        }
        patiently(options.timeout, || set_up(&connection, options))?;
        // A file that is as it should be is not written to, and its other processes are not waited for.
        if present < LAYOUT {
            patiently(options.timeout, || lay_out(&mut connection))?.map_err(refused)?;
        }
        Ok(connection)
    };
    open().map_err(|error| of_file(&options.path, error))
}

/// A connection that only reads.
pub(super) fn reader(options: &SqliteOptions) -> Result<Connection, StoreError> {
    patiently(options.timeout, || {
        let connection = connect(options)?;
        connection.execute_batch("PRAGMA query_only = ON")?;
        Ok(connection)
    })
    .map_err(|error| of_file(&options.path, error.into()))
}

fn set_up(connection: &Connection, options: &SqliteOptions) -> Result<(), rusqlite::Error> {
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    // Where flushing does not reach the disk's own cache unless asked twice (macOS), it is asked twice.
    let twice = options.durability == Durability::Full;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA fullfsync = {twice}; PRAGMA journal_size_limit = {LOG_SIZE};"
    ))?;
    if let Some(bytes) = options.max_size {
        let pages = (bytes / PAGE_SIZE).max(1);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// Which layout the file has, 0 for none; or why it is not ours.
fn layout(connection: &Connection) -> Result<Result<i64, String>, rusqlite::Error> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let version = number("PRAGMA user_version")?;
    let owner = number("PRAGMA application_id")?;
    Ok(if tables == 0 && version == 0 {
        Ok(0)
    } else if owner != APPLICATION_ID {
        Err("the file is another program's SQLite database; name a file of its own for the tasks".to_owned())
    } else if version > LAYOUT {
        Err(format!(
            "the file has layout {version}, and this release knows layouts up to {LAYOUT}: upgrade this node, the file was \
             left as it is"
        ))
    } else {
        Ok(version)
    })
}

/// Brings the file to the present layout, as one step.
fn lay_out(connection: &mut Connection) -> Result<Result<(), String>, rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let present = match layout(&transaction)? {
        Ok(present) => present,
        Err(reason) => return Ok(Err(reason)),
    };
    if present < 1 {
        transaction.execute_batch(TABLES)?;
    }
    if present < LAYOUT {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LAYOUT};"
        ))?;
    }
    transaction.commit()?;
    Ok(Ok(()))
}
