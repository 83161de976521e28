//! Tasks in a SQLite file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{
    ExpiredLeases, Mutation, StoreError, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

mod error;
mod open;
mod parsed;
mod queue;
mod readers;
mod rows;
mod scan;
mod writer;

use super::defaults::TIMEOUT;
use parsed::Parsed;
use readers::Readers;
use writer::Writer;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The process being killed, the operating system crashing, and the power going (`synchronous = FULL`): each commit is
    /// flushed to the disk before it is acknowledged, as far as the disk is honest.
    #[default]
    Full,
    /// The process being killed (`synchronous = NORMAL`). If the operating system crashes or the power goes, the last
    /// commits may be gone, and tasks that clients were told of with them; what is there is whole. Many times faster where
    /// flushing is slow.
    Normal,
}

/// Keeps tasks in a SQLite file: durable, for all processes of one machine.
///
/// # Guarantees
///
/// * **Durable at commit.** What was acknowledged is there after `kill -9` and after a power cut; see [`Durability`] for
///   the setting that trades the latter for speed. Writers that come at once share one commit.
/// * **One atomic step per update**, across threads and processes. Several processes may use one file: whoever finds it
///   locked waits, and no caller sees "database is locked".
/// * **Nothing hangs.** Every operation is answered within [`timeout`](SqliteOptions::timeout), in the worst case by
///   [`StoreError::Unavailable`].
/// * **The async runtime is not kept waiting.** One thread writes and a few read what may take long, each on its own
///   connection. The one row of a `get` is read where the caller is, on a connection that waits for nobody, which takes
///   microseconds while the operating system has the file in memory. Readers do not wait for writers.
/// * **A full disk**, a read-only file and a damaged one are [`StoreError::Refused`]; what was stored stays as it was.
/// * **The sweep** costs what has expired, finds it by an index, and lets other writes go in between. A record that cannot
///   be read, or that a later release wrote, is left alone, with a warning that names it.
/// * **Tasks of a process that died** are found by an index on their leases, by whichever process looks first.
/// * **Releases.** The file carries the version of its layout. One of a later release is refused, and so is a file that
///   holds another program's tables.
///
/// # Limits
///
/// The file lies on a local disk: SQLite's write-ahead log does not work over network file systems. It belongs to its
/// `-wal` and `-shm` neighbours: copy all three with no process running, or use `VACUUM INTO`. It keeps its largest size,
/// as space that is freed is used again and not given back. It holds arguments and results as clients sent them: who may
/// read it is up to the permissions of its directory. One writer at a time is SQLite's nature; where a few thousand writes a
/// second on one machine are not enough, take a database server.
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use mcp_tasks::store::SqliteStore;
/// use mcp_tasks::{Config, TaskRuntime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("mcp-tasks-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("tasks.db");
/// let store = SqliteStore::open(path)?;
/// let runtime = TaskRuntime::builder().store(Arc::new(store)).build()?;
/// # drop(runtime);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
///
/// The same without code: `mcp.tasks.store.url = "sqlite:tasks.db"`, or `"sqlite:/var/lib/app/tasks.db?synchronous=normal"`.
///
/// Needs tokio, with its timer. Cloning shares the store. When the last clone is dropped its threads finish what is under
/// way and end.
///
/// Cancel safety: a write whose future is dropped before its turn is not made; otherwise it is made, whole.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    parsed: Arc<Parsed>,
}

impl SqliteStore {
    /// Opens the file, or creates it, with the default [`SqliteOptions`]. Blocks for the moments that takes.
    ///
    /// # Errors
    /// See [`SqliteOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteOptions::new(path).open()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

/// How to open a [`SqliteStore`].
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct SqliteOptions {
    path: PathBuf,
    durability: Durability,
    timeout: Duration,
    max_size: Option<u64>,
}

/// What a wrong URL is answered with.
const USAGE: &str = "write `sqlite:tasks.db` or `sqlite:/path/tasks.db`, optionally with `?synchronous=full` (the default) or \
                     `?synchronous=normal`";

impl SqliteOptions {
    /// The file at `path`, with everything else as by default.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            durability: Durability::default(),
            timeout: TIMEOUT,
            max_size: None,
        }
    }

    /// What an acknowledged write survives; everything, unless told otherwise.
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long an operation may take before it is answered with [`StoreError::Unavailable`]: 10 s, unless told otherwise.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The size in bytes beyond which the file does not grow; a write that would need more is refused, as by a full disk.
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Opens the file, or creates it. Blocks for the moments that takes.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the path cannot be used: no directory, no rights, another program's file, the layout of
    /// a later release, or `:memory:`. [`StoreError::Unavailable`] if other processes keep it locked.
    pub fn open(self) -> Result<SqliteStore, StoreError> {
        open::check_path(&self.path)?;
        open::check_place(&self.path)?;
        let writer = Writer::start(&self)?;
        let readers = Readers::start(&self)?;
        Ok(SqliteStore {
            inner: Arc::new(Inner {
                path: self.path,
                writer,
                readers,
                parsed: Arc::default(),
            }),
        })
    }

    /// Reads what follows `sqlite:` in a URL. The path is taken literally up to a `?`.
    pub(crate) fn from_url(rest: &str) -> Result<Self, String> {
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, parameters) = match rest.split_once('?') {
            Some((path, parameters)) => (path, Some(parameters)),
            None => (rest, None),
        };
        if path.is_empty() {
            return Err(format!("it names no file; {USAGE}"));
        }
        open::check_path(Path::new(path)).map_err(|error| format!("{error}; {USAGE}"))?;
        let mut options = Self::new(path);
        for parameter in parameters.into_iter().flat_map(|parameters| parameters.split('&')) {
            options.durability = match parameter.to_ascii_lowercase().as_str() {
                "synchronous=full" => Durability::Full,
                "synchronous=normal" => Durability::Normal,
                _ => return Err(format!("`{parameter}` is no option of it; {USAGE}")),
            };
        }
        Ok(options)
    }
}

impl TaskStore for SqliteStore {
    fn create(&self, mut record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        record.version = 1;
        let record = Arc::new(record);
        Box::pin(async move { self.inner.writer.run(move |rows| rows.create(&record)).await })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(async move {
            let inner = &self.inner;
            let record = match inner
                .readers
                .here(|connection| rows::record(connection, id, &inner.parsed))
            {
                Some(outcome) => outcome?,
                None => {
                    let (id, parsed) = (id.clone(), inner.parsed.clone());
                    let read = move |connection: &_| rows::record(connection, &id, &parsed);
                    inner.readers.run(read).await?
                }
            };
            Ok(record?.filter(|record| !record.is_expired(now)))
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let id = id.clone();
        Box::pin(async move {
            self.inner
                .writer
                .run(move |rows| rows.update(&id, now, write, &mutation))
                .await
        })
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        let id = id.clone();
        Box::pin(async move { self.inner.writer.run(move |rows| rows.delete(&id)).await })
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }
}

impl ExpiredLeases for SqliteStore {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        Box::pin(scan::expired_leases(&self.inner, now, limit))
    }
}

impl Sweep for SqliteStore {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(scan::sweep(&self.inner, now))
    }
}
