//! The file that open tasks are kept in.
//!
//! It may hold answers that a server has not taken yet, so it is for its owner alone. Processes take turns by a lock on a
//! file beside it, and put it in place whole: a reader sees one state or the next.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::CommandError;
use mcp_tasks::client::SavedTask;

/// The format of the file. A program that reads another would lose what it does not know.
const FORMAT: u64 = 1;

/// How long another process may hold the lock. It writes one small file, so one that holds it longer is frozen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the lock is tried meanwhile.
const RETRY: Duration = Duration::from_millis(10);

/// A saved task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The server, as it is named on the command line.
    pub(crate) server: String,
    /// Whether a secret was left out of its URL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    /// Names of variables that the server was started with. Their values may be secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) env: Vec<String>,
    /// The task.
    pub(crate) task: SavedTask,
}

impl Entry {
    pub(crate) fn id(&self) -> String {
        self.task.id().as_str().to_owned()
    }

    fn is(&self, other: &Self) -> bool {
        self.task.id() == other.task.id() && self.server == other.server
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u64,
    tasks: Vec<Entry>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskFileError {
    #[error("{} cannot be {what}: {source}", path.display())]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
    #[error("{} is damaged ({why}). It was left as it is; mend it, or move it away", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("{} was written by a newer version of this program, and left alone; --state names another file", path.display())]
    Newer { path: PathBuf },
    #[error("{} is held by another process for too long", path.display())]
    Held { path: PathBuf },
    #[error("there is no home directory to keep tasks in; --state names a file")]
    NoHome,
}

impl From<TaskFileError> for CommandError {
    fn from(problem: TaskFileError) -> Self {
        Self::local(problem.to_string())
    }
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct TaskFile {
    path: PathBuf,
}

impl TaskFile {
    /// The file that is named, or else the one in the user's state directory.
    pub(crate) fn at(named: Option<PathBuf>) -> Result<Self, TaskFileError> {
        if let Some(path) = named {
            return Ok(Self { path });
        }
        let places = etcetera::choose_base_strategy().map_err(|_| TaskFileError::NoHome)?;
        // Windows has no directory for state.
        let place = places.state_dir().unwrap_or_else(|| places.data_dir());
        Ok(Self {
            path: place.join("mcp-tasks").join("tasks.json"),
        })
    }

    fn io(&self, what: &'static str) -> impl Fn(io::Error) -> TaskFileError + '_ {
        move |source| TaskFileError::Io {
            path: self.path.clone(),
            what,
            source,
        }
    }

    /// All tasks; none if there is no file.
    pub(crate) fn read(&self) -> Result<Vec<Entry>, TaskFileError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io("read")(error)),
        };
        let damaged = |why: String| TaskFileError::Damaged {
            path: self.path.clone(),
            why,
        };
        let value: Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        match value.get("format").and_then(Value::as_u64) {
            Some(FORMAT) => {}
            Some(_) => {
                return Err(TaskFileError::Newer {
                    path: self.path.clone(),
                });
            }
            None => return Err(damaged("it names no format".to_owned())),
        }
        let content: Content = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        Ok(content.tasks)
    }

    /// Changes the tasks. A file that is damaged is set aside, and where it is now is returned.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Result<Option<PathBuf>, TaskFileError> {
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        make_private(directory).map_err(self.io("made"))?;
        let _lock = self.lock()?;
        let mut aside = None;
        let mut tasks = match self.read() {
            Ok(tasks) => tasks,
            Err(TaskFileError::Damaged { .. }) => {
                let place = self.set_aside()?;
                aside = Some(place);
                Vec::new()
            }
            Err(other) => return Err(other),
        };
        let before = tasks.clone();
        change(&mut tasks);
        if tasks == before && aside.is_none() {
            return Ok(None);
        }
        let content = Content { format: FORMAT, tasks };
        let text = serde_json::to_vec_pretty(&content).map_err(|error| self.io("written")(error.into()))?;
        // Such a file is for its owner alone from the start.
        let write = || {
            let mut new = tempfile::NamedTempFile::new_in(directory)?;
            new.write_all(&text)?;
            new.as_file().sync_all()?;
            new.persist(&self.path)?;
            Ok(())
        };
        write().map_err(self.io("written"))?;
        Ok(aside)
    }

    /// Saves a task, in the place of what was saved of it.
    pub(crate) fn save(&self, entry: Entry) -> Result<Option<PathBuf>, TaskFileError> {
        self.update(|tasks| match tasks.iter_mut().find(|kept| kept.is(&entry)) {
            Some(kept) => *kept = entry,
            None => tasks.push(entry),
        })
    }

    /// Removes a task.
    pub(crate) fn remove(&self, entry: &Entry) -> Result<(), TaskFileError> {
        if self.read()?.iter().any(|kept| kept.is(entry)) {
            self.update(|tasks| tasks.retain(|kept| !kept.is(entry)))?;
        }
        Ok(())
    }

    /// The task with this id, or the only one whose id begins so.
    pub(crate) fn find(&self, id: &str) -> Result<Option<Entry>, CommandError> {
        let tasks = self.read()?;
        let exact: Vec<_> = tasks.iter().filter(|kept| kept.id() == id).collect();
        let found = match exact.is_empty() {
            true => tasks
                .iter()
                .filter(|kept| !id.is_empty() && kept.id().starts_with(id))
                .collect(),
            false => exact,
        };
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some((*one).clone())),
            several => {
                let several: Vec<_> = several
                    .iter()
                    .map(|kept| format!("{} on {}", kept.id(), kept.server))
                    .collect();
                Err(CommandError::usage(format!(
                    "{id:?} is more than one task; write more of its id, or --server:\n  {}",
                    several.join("\n  ")
                )))
            }
        }
    }

    /// Beside the file, which is replaced again and again.
    fn lock(&self) -> Result<File, TaskFileError> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(self.io("locked"))?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(RETRY),
                Err(TryLockError::WouldBlock) => return Err(TaskFileError::Held { path: path.into() }),
                Err(TryLockError::Error(error)) => return Err(self.io("locked")(error)),
            }
        }
    }

    fn set_aside(&self) -> Result<PathBuf, TaskFileError> {
        for number in 1_u32.. {
            let mut place = self.path.clone().into_os_string();
            place.push(format!(".damaged-{number}"));
            let place = PathBuf::from(place);
            if !place.exists() {
                fs::rename(&self.path, &place).map_err(self.io("set aside"))?;
                return Ok(place);
            }
        }
        Err(self.io("set aside")(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Makes a directory for its owner alone, unless it is there.
fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> Entry {
        Entry {
            server: "http://h/mcp".to_owned(),
            partial: false,
            env: Vec::new(),
            task: SavedTask::new(id),
        }
    }

    fn ids(file: &TaskFile) -> Vec<String> {
        file.read().unwrap().iter().map(Entry::id).collect()
    }

    fn new_file() -> (tempfile::TempDir, TaskFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = TaskFile::at(Some(directory.path().join("deep/er/tasks.json"))).unwrap();
        (directory, file)
    }

    #[test]
    fn what_is_kept_is_found_by_the_start_of_its_id() {
        let (_directory, file) = new_file();
        assert!(ids(&file).is_empty());
        for id in ["abc", "abd", "b"] {
            file.save(entry(id)).unwrap();
        }
        assert_eq!(file.find("abc").unwrap(), Some(entry("abc")));
        assert_eq!(file.find("b").unwrap(), Some(entry("b")));
        assert_eq!(file.find("c").unwrap(), None);
        file.find("ab").unwrap_err();
        file.remove(&entry("abc")).unwrap();
        assert_eq!(ids(&file), ["abd", "b"]);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, file) = new_file();
        file.save(entry("a")).unwrap();
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o644)).unwrap();
        file.save(entry("b")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file.path), 0o600);
        assert_eq!(mode(file.path.parent().unwrap()), 0o700);
    }

    #[test]
    fn a_damaged_file_is_reported_and_set_aside() {
        let (_directory, file) = new_file();
        for (number, damage) in ["", "{", "[]", r#"{"format": 1, "tasks": [{}]}"#]
            .into_iter()
            .enumerate()
        {
            file.update(|tasks| tasks.push(entry("x"))).unwrap();
            fs::write(&file.path, damage).unwrap();
            assert!(matches!(file.read(), Err(TaskFileError::Damaged { .. })));
            assert_eq!(fs::read_to_string(&file.path).unwrap(), damage);
            let aside = file.save(entry("a")).unwrap().unwrap();
            assert!(aside.to_str().unwrap().ends_with(&format!(".damaged-{}", number + 1)));
            assert_eq!(fs::read_to_string(aside).unwrap(), damage);
            assert_eq!(ids(&file), ["a"]);
        }
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let (_directory, file) = new_file();
        file.save(entry("a")).unwrap();
        let newer = r#"{"format": 2}"#;
        fs::write(&file.path, newer).unwrap();
        assert!(matches!(file.save(entry("b")), Err(TaskFileError::Newer { .. })));
        assert_eq!(fs::read_to_string(&file.path).unwrap(), newer);
    }

    #[test]
    fn those_who_write_at_once_take_turns() {
        let (_directory, file) = new_file();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let file = &file;
                scope.spawn(move || (0..10).for_each(|n| drop(file.save(entry(&format!("{thread}-{n}"))).unwrap())));
            }
        });
        assert_eq!(ids(&file).len(), 80);
    }
}
