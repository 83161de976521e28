//! How far a task is.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::text;

/// A bar shows parts of this; progress may be any number.
const PARTS: f64 = 1000.0;

/// Often enough for a spinner to turn, and seldom enough for a slow connection to the terminal.
const TICK: Duration = Duration::from_millis(120);

/// A progress bar on a terminal, and lines where there is none.
#[derive(Debug)]
pub(crate) struct Bar {
    is_terminal: bool,
    shown: Option<ProgressBar>,
    paused: bool,
    last: String,
}

impl Bar {
    pub(crate) const fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            shown: None,
            paused: false,
            last: String::new(),
        }
    }

    pub(crate) fn show(&mut self, done: Option<(f64, Option<f64>)>, words: &str) {
        let (done, words) = match done {
            Some(done) => (Some(done), words),
            None => read(words),
        };
        let numbers = match done {
            Some((done, Some(total))) => format!("{done}/{total} "),
            Some((done, None)) => format!("{done} "),
            None => String::new(),
        };
        let line = format!("{numbers}{}", text::line(words));
        if self.paused {
            return;
        }
        if !self.is_terminal {
            if line != self.last {
                let _ = writeln!(std::io::stderr().lock(), "{line}");
                self.last = line;
            }
            return;
        }
        let bar = self.shown.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(TICK);
            bar
        });
        match done {
            Some((done, Some(total))) if total > 0.0 => {
                bar.set_style(style("{spinner} [{bar:24}] {wide_msg}"));
                bar.set_length(PARTS as u64);
                bar.set_position(((done / total).clamp(0.0, 1.0) * PARTS) as u64);
            }
            _ => bar.set_style(style("{spinner} {wide_msg}")),
        }
        bar.set_message(line);
    }

    /// A line above the bar.
    pub(crate) fn print_above(&self, words: &str) {
        let write = || {
            let _ = writeln!(std::io::stderr().lock(), "{words}");
        };
        match &self.shown {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
        self.clear();
    }

    pub(crate) const fn unpause(&mut self) {
        self.paused = false;
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are those above; the other style is for a mistake in them.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .progress_chars("=> ")
}

/// The numbers that a status message begins with: `2/3: rendered`, `2 of 3`, or `40%`. Our servers write the first.
fn read(words: &str) -> (Option<(f64, Option<f64>)>, &str) {
    let nothing = (None, words);
    let Some((done, rest)) = number(words) else {
        return nothing;
    };
    let rest = rest.trim_start();
    let (total, rest) = if let Some(rest) = rest.strip_prefix('%') {
        (100.0, rest)
    } else {
        let rest = rest.strip_prefix('/').or_else(|| rest.strip_prefix("of "));
        match rest.and_then(|rest| number(rest.trim_start())) {
            Some(read) => read,
            None => return nothing,
        }
    };
    // Not `1/2nd`, nor a date.
    if !(rest.is_empty() || rest.starts_with([':', ' ', ',', ')'])) {
        return nothing;
    }
    (Some((done, Some(total))), rest.trim_start_matches([':', ' ', ',', ')']))
}

fn number(words: &str) -> Option<(f64, &str)> {
    let end = words
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(words.len());
    let (number, rest) = words.split_at(end);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_where_they_are_meant() {
        let some = |done, total| Some((done, Some(total)));
        assert_eq!(read("2/3: rendered page 2"), (some(2.0, 3.0), "rendered page 2"));
        assert_eq!(read("0.5/1"), (some(0.5, 1.0), ""));
        assert_eq!(read("2 of 3"), (some(2.0, 3.0), ""));
        assert_eq!(read("40% done"), (some(40.0, 100.0), "done"));
        for words in ["", "working", "3 files", "1/2nd", "2026-07-28", "1/2/2026", "./a", "1/"] {
            assert_eq!(read(words), (None, words));
        }
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let mut bar = Bar::new(true);
        for (done, total) in [
            (f64::NAN, 1.0),
            (1.0, 0.0),
            (-1.0, 2.0),
            (1e300, 1e-300),
            (1.0, f64::INFINITY),
        ] {
            bar.show(Some((done, Some(total))), "words");
        }
    }
}
