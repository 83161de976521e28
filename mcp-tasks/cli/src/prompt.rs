//! Who answers what servers ask: the file of answers, and the user.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::answers::Answers;
use crate::form::{Reply, ask_consent, ask_form};
use crate::interrupt::Interrupt;
use crate::screen::Screen;
use crate::text;
use mcp_tasks::client::{Elicited, FormRequest, InputError, InputHandler, InputKind, UrlRequest};

/// Whether a prompt has the terminal.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back as it was, if a prompt has it still.
pub(crate) fn restore_terminal() {
    if OPEN.swap(false, Ordering::SeqCst) {
        let _ = crossterm::execute!(
            io::stderr(),
            crossterm::event::DisableBracketedPaste,
            crossterm::cursor::Show
        );
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(io::stderr(), crossterm::style::Print("\r\n"));
    }
}

/// Answers from a file, and from the user where there is one.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    screen: Screen,
    answers: Answers,
    interrupts: mpsc::UnboundedSender<Interrupt>,
    /// One question has the terminal at a time, until its thread has ended.
    terminal: Arc<Mutex<()>>,
}

/// A question that is being asked. When it is dropped, the user is told that it is not open any more.
struct OpenQuestion<'a> {
    screen: &'a Screen,
    is_open: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let words = "\nThis question is not open any more, and what you type is not sent. Press Esc.";
            self.screen.note(words);
        }
    }
}

impl Prompt {
    pub(crate) fn new(screen: &Screen, answers: Answers, interrupts: mpsc::UnboundedSender<Interrupt>) -> Self {
        Self {
            screen: screen.clone(),
            answers,
            interrupts,
            terminal: Arc::default(),
        }
    }

    /// Asks on a thread of its own, since asking blocks. `lack` is why the file of answers has none.
    async fn ask<T: Send + 'static>(
        &self,
        intro: &str,
        lack: Option<String>,
        ask: impl FnOnce() -> Reply<T> + Send + 'static,
    ) -> Result<Elicited<T>, InputError> {
        if !Screen::has_user() {
            return Err(match lack {
                Some(lack) => InputError::later(lack),
                None => InputError::later(
                    "there is no terminal to ask in; --answers FILE answers beforehand, `mcp-tasks answer` afterwards",
                ),
            });
        }
        let turn = self.terminal.clone().lock_owned().await;
        self.screen.pause();
        self.screen.note(intro);
        let mut open = OpenQuestion {
            screen: &self.screen,
            is_open: true,
        };
        let (sender, asked) = oneshot::channel();
        let screen = self.screen.clone();
        std::thread::spawn(move || {
            OPEN.store(true, Ordering::SeqCst);
            let asked = ask();
            OPEN.store(false, Ordering::SeqCst);
            screen.unpause();
            drop(turn);
            // A question that is not open any more needs no answer.
            let _ = sender.send(asked);
        });
        let asked = asked.await;
        open.is_open = false;
        match asked {
            Ok(Reply::Accept(content)) => Ok(Elicited::Accept(content)),
            Ok(Reply::Decline) => Ok(Elicited::Decline),
            Ok(Reply::Cancel) => Ok(Elicited::Cancel),
            Ok(Reply::Later) => Err(InputError::later("it was left open")),
            Ok(Reply::Interrupted) => {
                // The terminal was raw, so the key raised no signal. The receiver of the interrupt stops the wait.
                let _ = self.interrupts.send(Interrupt::Key);
                std::future::pending().await
            }
            Ok(Reply::Broken(why)) => Err(InputError::later(format!("the terminal cannot be used: {why}"))),
            Err(_) => Err(InputError::later("the question could not be shown")),
        }
    }

    /// Asks for a form, by the file first.
    pub(crate) async fn fill(
        &self,
        key: &str,
        message: &str,
        schema: Map<String, Value>,
    ) -> Result<Elicited<Map<String, Value>>, InputError> {
        if let Some(answer) = self.answers.form(key, &schema).map_err(InputError::later)? {
            return Ok(answer);
        }
        let lack = self.answers.why_missing(key, Some(&schema));
        self.ask(&intro(message), lack, move || ask_form(&schema)).await
    }

    /// Shows a page, unless the file has the answer.
    pub(crate) async fn visit(&self, key: &str, message: &str, url: &str) -> Result<Elicited<()>, InputError> {
        if let Some(answer) = self.answers.url(key) {
            return Ok(answer);
        }
        let intro = format!(
            "{}\nThe server wants you to open this page in a browser:\n  {}",
            intro(message),
            text::line(url)
        );
        let lack = self.answers.why_missing(key, None);
        self.ask(&intro, lack, || ask_consent("I have opened it")).await
    }
}

/// What the server asks, marked as its words.
fn intro(message: &str) -> String {
    let message = text::block(message);
    let mut lines = message.lines();
    let mut intro = format!("? {}", lines.next().unwrap_or("The server asks:"));
    for line in lines {
        intro.push_str("\n  ");
        intro.push_str(line);
    }
    intro
}

impl InputHandler for Prompt {
    fn kinds(&self) -> Vec<InputKind> {
        vec![InputKind::Form, InputKind::Url]
    }

    async fn form(&self, form: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
        self.fill(&form.key, &form.message, form.schema).await
    }

    async fn url(&self, url: UrlRequest) -> Result<Elicited<()>, InputError> {
        self.visit(&url.key, &url.message, &url.url).await
    }
}

/// Has the questions of a task shown, and leaves the answers to another run of the program.
#[derive(Debug)]
pub(crate) struct Unattended;

impl InputHandler for Unattended {
    fn kinds(&self) -> Vec<InputKind> {
        vec![InputKind::Form, InputKind::Url, InputKind::Sampling, InputKind::Roots]
    }

    async fn form(&self, _: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
        std::future::pending().await
    }

    async fn url(&self, _: UrlRequest) -> Result<Elicited<()>, InputError> {
        std::future::pending().await
    }

    async fn sampling(&self, _: mcp_tasks::client::SamplingRequest) -> Result<Value, InputError> {
        std::future::pending().await
    }

    async fn roots(&self) -> Result<Value, InputError> {
        std::future::pending().await
    }
}
