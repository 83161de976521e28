//! Why a server does not start: every problem of tools and configuration, and warnings.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a server does not start.
///
/// Mistakes in tools and configuration are collected, so that one start shows all of them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Tools or configuration are not right.
    #[error("{0}")]
    Problems(StartProblems),
    /// The configuration file is there, or was asked for, and cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    #[non_exhaustive]
    ReadConfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration file is not TOML.
    #[error("the configuration file `{}` is not TOML: line {line}: {message}", path.display())]
    #[non_exhaustive]
    ParseConfig {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there. The line itself is not shown, because it may hold a secret.
        message: String,
    },
}

/// The same words as `Display`, with the causes: it is what a `main` that returns this error prints.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mcp_tasks_core::error_chain(self))
    }
}

impl StartError {
    /// The problems, if tools or configuration are the reason.
    #[must_use]
    pub fn problems(&self) -> &[StartProblem] {
        match self {
            Self::Problems(problems) => &problems.0,
            _ => &[],
        }
    }
}

/// What is not right, all of it; shown one on a line.
#[derive(Debug)]
pub struct StartProblems(Vec<StartProblem>);

impl fmt::Display for StartProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server cannot start:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

/// One thing that is not right; its text names the tool, attribute or key, the value, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartProblem {
    text: String,
}

impl StartProblem {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl fmt::Display for StartProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What an operator should know although the server starts. It is logged at once, and kept for a program without a log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Warnings(Vec<String>);

impl Warnings {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        tracing::warn!("{text}");
        self.0.push(text);
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.0
    }
}

/// Collects problems, so that no check hides behind another.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<StartProblem>);

impl Problems {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        self.0.push(StartProblem::new(text));
    }

    /// The value, or its problem noted.
    pub(crate) fn note<T>(&mut self, result: Result<T, StartProblem>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem)).ok()
    }

    /// Adds the problems of another check, without those that are there already; any other error is returned.
    pub(crate) fn absorb<T>(&mut self, result: Result<T, StartError>) -> Result<Option<T>, StartError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(StartError::Problems(problems)) => {
                for problem in problems.0 {
                    if !self.0.contains(&problem) {
                        self.0.push(problem);
                    }
                }
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// The value, if it is there and nothing was noted.
    pub(crate) fn finish_with<T>(mut self, value: Option<T>) -> Result<T, StartError> {
        match value {
            Some(value) => self.finish().map(|()| value),
            None => {
                if self.0.is_empty() {
                    self.add("nothing to start with");
                }
                Err(StartError::Problems(StartProblems(self.0)))
            }
        }
    }

    pub(crate) fn finish(self) -> Result<(), StartError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(StartError::Problems(StartProblems(self.0)))
        }
    }
}
