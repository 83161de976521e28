//! A connection, and what belongs to it on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use crate::args::{self, Target};
use crate::interrupt::Interrupts;
use crate::kept::{Entry, Kept, Problem};
use crate::outcome::{Report, Stop};
use crate::screen::Screen;
use crate::server::Server;
use crate::text;
use mcp_tasks::client::{InputHandler, SavedTask, TaskClient, TaskEvent, TaskHandle, TaskState};

/// What commands work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) screen: Screen,
    pub(crate) kept: Result<Kept, Problem>,
    pub(crate) interrupts: Interrupts,
    pub(crate) envs: Vec<(String, String)>,
}

impl Context {
    pub(super) fn kept(&self) -> Result<&Kept, Stop> {
        self.kept.as_ref().map_err(|problem| Stop::local(problem.to_string()))
    }

    /// Answers that are there beforehand.
    pub(super) fn answers(args: &args::Answers) -> Result<crate::answers::Answers, Stop> {
        crate::answers::Answers::read(args)
    }

    /// The task that is meant, and its server.
    pub(super) fn target(&self, target: &Target) -> Result<(Server, SavedTask), Stop> {
        let server = target.server.as_deref().map(Server::parse).transpose()?;
        let found = match (self.kept().and_then(|kept| kept.find(&target.task)), &server) {
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
            (Some(entry), None) if entry.partial => Err(Stop::usage(format!(
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
            (None, None) => Err(Stop::usage(format!(
                "the task {:?} is not kept here: it has ended and its end was shown, or it was never here; --server says \
                 where it is (`mcp-tasks list` shows what is kept)",
                text::short(&target.task, 200)
            ))),
        }
    }

    /// Connects to a server, does the work, and ends the connection however the work ended: a server that was started for it
    /// hears that nothing more comes, and may store what it has.
    pub(super) async fn with_session<T>(
        &mut self,
        server: Server,
        handler: impl InputHandler,
        work: impl AsyncFnOnce(&mut Self, &Session) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let session = self.connect(server, handler).await?;
        let outcome = work(self, &session).await;
        self.screen.clear();
        session.client.close().await;
        outcome
    }

    /// Connects to a server; what comes of its tasks is shown and kept.
    async fn connect(&mut self, server: Server, handler: impl InputHandler) -> Result<Session, Stop> {
        let book = Book {
            screen: self.screen.clone(),
            kept: self.kept.as_ref().ok().cloned(),
            server: server.clone(),
            envs: self.envs.iter().map(|(name, _)| name.clone()).collect(),
            warned: Arc::default(),
            said: Arc::default(),
        };
        let watcher = book.clone();
        let builder = TaskClient::builder()
            .input(handler)
            .observe(move |event| watcher.observe(&event));
        let connecting = server.connect(builder, &self.envs, &self.screen);
        let client = self.interrupts.or(connecting).await??;
        Ok(Session { client, book })
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: TaskClient,
    pub(super) book: Book,
}

impl Session {
    /// Takes a task up. An id that is known to be another server's is refused.
    pub(super) fn resume(&self, task: SavedTask) -> Result<TaskHandle, Stop> {
        Ok(self.client.resume(task)?)
    }
}

/// What is shown and kept of a server's tasks.
#[derive(Debug, Clone)]
pub(super) struct Book {
    screen: Screen,
    kept: Option<Kept>,
    pub(super) server: Server,
    envs: Vec<String>,
    warned: Arc<Mutex<bool>>,
    /// What the task said of itself when it last asked.
    said: Arc<Mutex<Option<String>>>,
}

impl Book {
    fn entry(&self, task: &SavedTask) -> Entry {
        let (server, whole) = self.server.kept();
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
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *warned, true) {
            self.screen.note(words);
        }
    }

    /// Keeps a task. What goes wrong is said once; the task itself goes on.
    pub(super) fn keep(&self, task: &SavedTask) {
        let Some(kept) = &self.kept else {
            self.warn("there is no place to keep the task in; --state names a file");
            return;
        };
        match kept.keep(self.entry(task)) {
            Ok(None) => {}
            Ok(Some(aside)) => self.warn(&format!(
                "the file that tasks are kept in was damaged; it is now {}, and a new one was begun",
                aside.display()
            )),
            Err(problem) => self.warn(&format!("the task is not kept: {problem}")),
        }
    }

    /// Keeps a task no longer, because it has ended.
    pub(super) fn forget(&self, task: &SavedTask) {
        if let Some(kept) = &self.kept
            && let Err(problem) = kept.forget(&self.entry(task))
        {
            self.warn(&format!("the task has ended, and is still kept: {problem}"));
        }
    }

    /// The command that goes on with a task.
    pub(super) fn resume_command(&self, task: &SavedTask) -> String {
        let mut words = vec!["mcp-tasks".to_owned(), "resume".to_owned()];
        let id = task.id();
        let (server, whole) = self.server.kept();
        let is_kept = self
            .kept
            .as_ref()
            .and_then(|kept| kept.read().ok())
            .is_some_and(|tasks| {
                tasks
                    .iter()
                    .any(|entry| entry.task.id() == id && entry.server == server)
            });
        if !whole {
            words.extend(["--server".to_owned(), "URL".to_owned()]);
        } else if !is_kept {
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
            TaskEvent::Created(task) | TaskEvent::Checkpoint(task) => self.keep(task),
            TaskEvent::Status(task) => {
                let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
                let words = match (&task.state, task.status_message.as_deref()) {
                    // What it said before the question stays until it says something new, and is no progress after it.
                    (TaskState::Working, Some(words)) if !words.is_empty() && said.as_deref() != Some(words) => words,
                    (TaskState::Working, _) => "working",
                    (TaskState::InputRequired { .. }, words) => {
                        *said = words.map(str::to_owned);
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
