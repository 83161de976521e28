//! A connection, and what belongs to it on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use crate::args::{self, Target};
use crate::interrupt::Interrupts;
use crate::outcome::{CommandError, Report};
use crate::screen::Screen;
use crate::server::Server;
use crate::task_file::{Entry, TaskFile, TaskFileError};
use crate::text;
use mcp_tasks::client::{InputHandler, SavedTask, TaskClient, TaskEvent, TaskHandle, TaskState};

/// What commands work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) screen: Screen,
    pub(crate) task_file: Result<TaskFile, TaskFileError>,
    pub(crate) interrupts: Interrupts,
    pub(crate) envs: Vec<(String, String)>,
}

impl Context {
    pub(super) fn task_file(&self) -> Result<&TaskFile, CommandError> {
        self.task_file
            .as_ref()
            .map_err(|problem| CommandError::local(problem.to_string()))
    }

    /// Answers that are there beforehand.
    pub(super) fn answers(args: &args::Answers) -> Result<crate::answers::Answers, CommandError> {
        crate::answers::Answers::read(args)
    }

    /// The task that is meant, and its server.
    pub(super) fn target(&self, target: &Target) -> Result<(Server, SavedTask), CommandError> {
        let server = target.server.as_deref().map(Server::parse).transpose()?;
        let found = match (self.task_file().and_then(|file| file.find(&target.task)), &server) {
            (Ok(found), _) => found,
            // Without the file it can be done too.
            (Err(stop), Some(_)) => {
                self.screen.hint(&format!(
                    "tasks that are kept cannot be used: {}",
                    Report::from(stop).message()
                ));
                None
            }
            (Err(stop), None) => return Err(stop),
        };
        match (found, server) {
            // Another server is taken by its word; the client compares the names of the two.
            (Some(entry), Some(server)) => Ok((server, entry.task)),
            (None, Some(server)) => Ok((server, SavedTask::new(target.task.as_str()))),
            (Some(entry), None) if entry.partial => Err(CommandError::usage(format!(
                "the URL of the task's server, {}, had a secret in it that is not kept; give it by --server",
                entry.server
            ))),
            (Some(entry), None) => {
                let missing: Vec<_> = entry
                    .env
                    .iter()
                    .filter(|name| !self.envs.iter().any(|(n, _)| n == *name))
                    .collect();
                if !missing.is_empty() {
                    let missing: Vec<_> = missing.iter().map(|name| format!("-e {name}=…")).collect();
                    self.screen.hint(&format!(
                        "the server was started with {} before; the values are not kept",
                        missing.join(" ")
                    ));
                }
                Ok((Server::parse(&entry.server)?, entry.task))
            }
            (None, None) => Err(CommandError::usage(format!(
                "the task {:?} is not kept here: it has ended and its end was shown, or it was never here; --server says \
                 where it is (`mcp-tasks list` shows what is kept)",
                text::short(&target.task, 200)
            ))),
        }
    }

    /// Connects to a server, does the work, and ends the connection however the work ended: a server that was started for it
    /// sees the end of its input, and may store what it has.
    pub(super) async fn with_session<T>(
        &mut self,
        server: Server,
        handler: impl InputHandler,
        work: impl AsyncFnOnce(&mut Self, &Session) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let session = self.connect(server, handler).await?;
        let outcome = work(self, &session).await;
        self.screen.clear();
        session.client.close().await;
        outcome
    }

    /// Connects to a server; what comes of its tasks is shown and kept.
    async fn connect(&mut self, server: Server, handler: impl InputHandler) -> Result<Session, CommandError> {
        let tracker = TaskTracker {
            screen: self.screen.clone(),
            file: self.task_file.as_ref().ok().cloned(),
            server: server.clone(),
            envs: self.envs.iter().map(|(name, _)| name.clone()).collect(),
            has_warned: Arc::default(),
            last_message: Arc::default(),
        };
        let watcher = tracker.clone();
        let builder = TaskClient::builder()
            .input(handler)
            .observe(move |event| watcher.observe(&event));
        let connecting = server.connect(builder, &self.envs, &self.screen);
        let client = self.interrupts.or(connecting).await??;
        Ok(Session { client, tracker })
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: TaskClient,
    pub(super) tracker: TaskTracker,
}

impl Session {
    /// Takes a task up. An id that is known to be another server's is refused.
    pub(super) fn resume(&self, task: SavedTask) -> Result<TaskHandle, CommandError> {
        Ok(self.client.resume(task)?)
    }
}

/// Shows the tasks of one server and keeps them in the task file.
#[derive(Debug, Clone)]
pub(super) struct TaskTracker {
    screen: Screen,
    file: Option<TaskFile>,
    pub(super) server: Server,
    envs: Vec<String>,
    has_warned: Arc<Mutex<bool>>,
    /// The status message with the last question.
    last_message: Arc<Mutex<Option<String>>>,
}

impl TaskTracker {
    fn entry(&self, task: &SavedTask) -> Entry {
        let (server, whole) = self.server.to_saved();
        Entry {
            server,
            partial: !whole,
            env: if self.server.is_child() {
                self.envs.clone()
            } else {
                Vec::new()
            },
            task: task.clone(),
        }
    }

    fn warn(&self, words: &str) {
        let mut has_warned = self.has_warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *has_warned, true) {
            self.screen.note(words);
        }
    }

    /// Saves a task. A failure is said once; the task itself goes on.
    pub(super) fn save(&self, task: &SavedTask) {
        let Some(file) = &self.file else {
            self.warn("there is no place to keep the task in; --state names a file");
            return;
        };
        match file.save(self.entry(task)) {
            Ok(None) => {}
            Ok(Some(aside)) => self.warn(&format!(
                "the file that tasks are kept in was damaged; it is now {}, and a new one was begun",
                aside.display()
            )),
            Err(problem) => self.warn(&format!("the task is not kept: {problem}")),
        }
    }

    /// Removes a task that has ended.
    pub(super) fn remove(&self, task: &SavedTask) {
        if let Some(file) = &self.file
            && let Err(problem) = file.remove(&self.entry(task))
        {
            self.warn(&format!("the task has ended, and is still kept: {problem}"));
        }
    }

    /// The command that goes on with a task.
    pub(super) fn resume_command(&self, task: &SavedTask) -> String {
        let mut words = vec!["mcp-tasks".to_owned(), "resume".to_owned()];
        let id = task.id();
        let (server, whole) = self.server.to_saved();
        let is_saved = self
            .file
            .as_ref()
            .and_then(|file| file.read().ok())
            .is_some_and(|tasks| {
                tasks
                    .iter()
                    .any(|entry| entry.task.id() == id && entry.server == server)
            });
        if !whole {
            words.extend(["--server".to_owned(), "URL".to_owned()]);
        } else if !is_saved {
            words.extend(["--server".to_owned(), quoted(&server)]);
        }
        if self.server.is_child() {
            words.extend(self.envs.iter().flat_map(|name| ["-e".to_owned(), format!("{name}=…")]));
        }
        if id.as_str().starts_with('-') {
            words.push("--".to_owned());
        }
        words.push(quoted(id.as_str()));
        words.join(" ")
    }

    fn observe(&self, event: &TaskEvent<'_>) {
        match event {
            TaskEvent::Created(task) | TaskEvent::Checkpoint(task) => self.save(task),
            TaskEvent::Status(task) => {
                let mut last_message = self.last_message.lock().unwrap_or_else(PoisonError::into_inner);
                let words = match (&task.state, task.status_message.as_deref()) {
                    // What it said before the question stays until it says something new, and is no progress after it.
                    (TaskState::Working, Some(words))
                        if !words.is_empty() && last_message.as_deref() != Some(words) =>
                    {
                        words
                    }
                    (TaskState::Working, _) => "working",
                    (TaskState::InputRequired { .. }, words) => {
                        *last_message = words.map(str::to_owned);
                        "waiting for an answer"
                    }
                    // What there is to say of the end is said there.
                    _ => return,
                };
                self.screen.progress(None, words);
            }
            TaskEvent::Progress {
                progress,
                total,
                message,
                ..
            } => self
                .screen
                .progress(Some((*progress, *total)), message.unwrap_or_default()),
            TaskEvent::Retrying { error, after, .. } => {
                self.screen
                    .hint(&format!("{error}; again in {:.1} s", after.as_secs_f64()));
            }
            // Events that a later client adds have nothing to show here.
            _ => {}
        }
    }
}

/// A word as a shell wants it.
pub(super) fn quoted(word: &str) -> String {
    // A NUL, which no shell can be given, is in no id that can be typed.
    shlex::try_quote(word).map_or_else(|_| format!("{word:?}"), |quoted| quoted.into_owned())
}
