//! The only way to the terminal: whatever is shown goes through here, or through the [prompts](crate::prompt).

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::args::Format;
use crate::bar::Bar;
use crate::text;

/// Standard output and standard error. A clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    pub(crate) format: Format,
    quiet: bool,
    bar: Arc<Mutex<Bar>>,
}

impl Screen {
    pub(crate) fn new(format: Format, quiet: bool) -> Self {
        Self {
            format,
            quiet,
            bar: Arc::new(Mutex::new(Bar::new(io::stderr().is_terminal()))),
        }
    }

    /// Whether there is a user to ask.
    pub(crate) fn has_user() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Bar> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows how far something is.
    pub(crate) fn progress(&self, done: Option<(f64, Option<f64>)>, words: &str) {
        if !self.quiet {
            self.bar().show(done, words);
        }
    }

    /// Takes the bar away, because a question comes or the end, and until [`unpause`](Self::unpause) no other is shown.
    pub(crate) fn pause(&self) {
        self.bar().pause();
    }

    pub(crate) fn unpause(&self) {
        self.bar().unpause();
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar().clear();
    }

    /// A line on standard error, whatever is wanted otherwise.
    pub(crate) fn note(&self, words: &str) {
        self.bar().print_above(&text::block(words));
    }

    /// A line on standard error that one can do without.
    pub(crate) fn hint(&self, words: &str) {
        if !self.quiet {
            self.note(words);
        }
    }

    /// Text on standard output, with a line end behind it.
    pub(crate) fn out(&self, words: &str) -> io::Result<()> {
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
    pub(crate) fn json(&self, document: &Value) -> io::Result<()> {
        self.out(&text::json(document))
    }

    /// One of several documents on standard output, each a line.
    pub(crate) fn json_line(&self, document: &Value) -> io::Result<()> {
        self.out(&text::json_line(document))
    }
}
