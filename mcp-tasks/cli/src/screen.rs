//! The only way to the terminal: whatever is shown goes through here, or through the [prompts](super::prompt).

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::args::Format;
use super::bar::Bar;
use super::text;

/// Standard output and standard error. A clone is the same.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    pub(super) format: Format,
    quiet: bool,
    bar: Arc<Mutex<Bar>>,
}

impl Screen {
    pub(super) fn new(format: Format, quiet: bool) -> Self {
        Self {
            format,
            quiet,
            bar: Arc::new(Mutex::new(Bar::new(io::stderr().is_terminal()))),
        }
    }

    /// Whether there is somebody to ask.
    pub(super) fn has_user() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Bar> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows how far something is.
    pub(super) fn progress(&self, done: Option<(f64, Option<f64>)>, words: &str) {
        if !self.quiet {
            self.bar().show(done, words);
        }
    }

    /// Takes the bar away, because a question comes or the end, and until [`unpause`](Self::unpause) no other is shown.
    pub(super) fn pause(&self) {
        self.bar().pause();
    }

    pub(super) fn unpause(&self) {
        self.bar().unpause();
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        self.bar().clear();
    }

    /// A line on standard error, whatever is wanted otherwise.
    pub(super) fn note(&self, words: &str) {
        self.bar().aside(&text::block(words));
    }

    /// A line on standard error that one can do without.
    pub(super) fn hint(&self, words: &str) {
        if !self.quiet {
            self.note(words);
        }
    }

    /// Text on standard output, with a line end behind it.
    pub(super) fn out(&self, words: &str) -> io::Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        let words = text::block(words);
        let mut out = io::stdout().lock();
        out.write_all(words.as_bytes())?;
        if !words.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// A document on standard output.
    pub(super) fn json(&self, document: &Value) -> io::Result<()> {
        self.out(&text::json(document))
    }

    /// One of several documents on standard output, each a line.
    pub(super) fn json_line(&self, document: &Value) -> io::Result<()> {
        self.out(&text::json_line(document))
    }
}
