//! Configuration: where values come from, the settings of the server, and why a start fails. For operators, and for
//! applications that set values in code.
//!
//! Strongest first: set in code, environment, TOML file. A key such as `mcp.tasks.default-ttl` is the environment variable
//! `MCP_TASKS_DEFAULT_TTL` and in the file either dotted or in nested tables. The file is `mcp-tasks.toml` in the working
//! directory, if there is one, or the one `MCP_TASKS_CONFIG` names.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use mcp_tasks_core::placeholder::env_name;

use self::start::{Problems, Warnings};

pub(crate) mod authority;
pub(crate) mod sealing_keys;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod tools;

pub use mcp_tasks_core::duration::{PollInterval, Ttl};

pub use self::sealing_keys::SealingKeys;
pub use self::settings::{Secret, Settings, Transport};
pub use self::start::{StartError, StartProblem, StartProblems};

const FILE: &str = "mcp-tasks.toml";
const FILE_VARIABLE: &str = "MCP_TASKS_CONFIG";

/// What the command line reads, which may be in the environment of a server too.
const COMMAND_LINE_VARIABLES: [&str; 2] = ["MCP_TASKS_STATE", "MCP_TASKS_TOKEN"];

/// Configured values, and where each was found.
///
/// ```
/// use mcp_tasks::Config;
///
/// # fn main() -> Result<(), mcp_tasks::StartError> {
/// let config = Config::builder().set("mcp.tasks.default-ttl", "PT5M").build()?;
/// assert_eq!(config.get("mcp.tasks.default-ttl").as_deref(), Some("PT5M"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Config {
    code: BTreeMap<String, String>,
    environment: Environment,
    file: Option<ConfigFile>,
}

#[derive(Clone)]
enum Environment {
    Process,
    Given(BTreeMap<String, OsString>),
}

impl Environment {
    fn get(&self, name: &str) -> Option<OsString> {
        match self {
            Self::Process => env::var_os(name),
            Self::Given(variables) => variables.get(name).cloned(),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Process => env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            Self::Given(variables) => variables.keys().cloned().collect(),
        }
    }
}

#[derive(Clone)]
struct ConfigFile {
    path: PathBuf,
    /// Dotted key to value; a table is there under its own key too, as [`FileEntry::NotText`].
    entries: BTreeMap<String, FileEntry>,
}

#[derive(Clone)]
enum FileEntry {
    Text(String),
    Table,
    NotText(&'static str),
}

/// A value and where it came from, for messages.
pub(crate) struct ConfiguredValue {
    pub(crate) value: String,
    pub(crate) origin: String,
}

impl Config {
    /// The environment over the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not TOML.
    pub fn from_env() -> Result<Self, StartError> {
        Self::builder().build()
    }

    /// To set values in code, or to read from elsewhere.
    #[must_use]
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder {
            code: BTreeMap::new(),
            environment: Environment::Process,
            file: FileChoice::Standard,
        }
    }

    /// The value of a key; `None` if it is nowhere, or there and not text, a number or a truth value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        self.find(key).ok().flatten().map(|found| found.value)
    }

    /// Like [`get`](Self::get), and a value that cannot be used is a problem rather than none.
    pub(crate) fn find(&self, key: &str) -> Result<Option<ConfiguredValue>, StartProblem> {
        if let Some(value) = self.code.get(key) {
            return Ok(Some(ConfiguredValue {
                value: value.clone(),
                origin: "set in code".to_owned(),
            }));
        }
        let name = env_name(key);
        if let Some(value) = self.environment.get(&name) {
            let value = value
                .into_string()
                .map_err(|_| StartProblem::new(format!("`{key}`: the environment variable `{name}` is not UTF-8")))?;
            return Ok(Some(ConfiguredValue {
                value,
                origin: format!("environment variable `{name}`"),
            }));
        }
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let kind = match file.entries.get(key) {
            None => return Ok(None),
            Some(FileEntry::Text(value)) => {
                let origin = format!("`{}`", file.path.display());
                return Ok(Some(ConfiguredValue {
                    value: value.clone(),
                    origin,
                }));
            }
            Some(FileEntry::Table) => "a table",
            Some(FileEntry::NotText(kind)) => kind,
        };
        Err(StartProblem::new(format!(
            "`{key}`: `{}` gives {kind}; write text, a number, `true` or `false`",
            file.path.display()
        )))
    }

    /// What is wrong with the keys themselves, given all that are used: two that share an environment variable, and
    /// keys of ours in the file that do not exist.
    pub(crate) fn check_keys<'a>(
        &self,
        used: impl IntoIterator<Item = &'a str>,
        problems: &mut Problems,
        warnings: &mut Warnings,
    ) {
        let used: BTreeSet<&str> = used.into_iter().collect();
        let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for key in &used {
            names.entry(env_name(key)).or_default().push(key);
        }
        for (name, keys) in names.iter().filter(|(_, keys)| keys.len() > 1) {
            problems.add(format!(
                "the keys `{}` are one environment variable, `{name}`; rename all but one",
                keys.join("`, `")
            ));
        }
        let ours = env_name(settings::PREFIX);
        for name in self.environment.names() {
            let elsewhere = name == FILE_VARIABLE || COMMAND_LINE_VARIABLES.contains(&name.as_str());
            if name.starts_with(&ours) && !elsewhere && !names.contains_key(&name) {
                // No error: the variable may be meant for another program on the same machine.
                warnings.add(format!(
                    "the environment variable `{name}` looks like a setting, but there is no such setting; is it misspelt?"
                ));
            }
        }
        let Some(file) = &self.file else {
            return;
        };
        for (key, entry) in &file.entries {
            if matches!(entry, FileEntry::Table) || !key.starts_with(settings::NAMESPACE) || used.contains(key.as_str())
            {
                continue;
            }
            let known: Vec<_> = used
                .iter()
                .copied()
                .filter(|key| key.starts_with(settings::NAMESPACE))
                .collect();
            problems.add(format!(
                "`{key}` in `{}` is not a known key; known are `{}`",
                file.path.display(),
                known.join("`, `")
            ));
        }
    }
}

/// Names the sources; values stay out of logs, because some are secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("set_in_code", &self.code.keys().collect::<Vec<_>>())
            .field("file", &self.file.as_ref().map(|file| &file.path))
            .finish_non_exhaustive()
    }
}

/// Puts a [`Config`] together.
#[derive(Clone)]
pub struct ConfigBuilder {
    code: BTreeMap<String, String>,
    environment: Environment,
    file: FileChoice,
}

#[derive(Debug, Clone)]
enum FileChoice {
    Standard,
    None,
    At(PathBuf),
}

impl ConfigBuilder {
    /// Sets a value over all other sources.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.code.insert(key.into(), value.into());
        self
    }

    /// Takes these environment variables in place of those of the process; for tests.
    #[must_use]
    pub fn environment<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<OsString>,
    {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment = Environment::Given(variables.collect());
        self
    }

    /// Reads this file, which has to be there, whatever `MCP_TASKS_CONFIG` says.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = FileChoice::At(path.into());
        self
    }

    /// Reads no file.
    #[must_use]
    pub fn without_file(mut self) -> Self {
        self.file = FileChoice::None;
        self
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML or gives a key twice. That there is no `mcp-tasks.toml` is no error.
    pub fn build(self) -> Result<Config, StartError> {
        let named = self.environment.get(FILE_VARIABLE).filter(|name| !name.is_empty());
        let file = match (self.file, named) {
            (FileChoice::None, _) => None,
            (FileChoice::At(path), _) => Some(read(&path)?),
            (FileChoice::Standard, Some(path)) => Some(read(Path::new(&path))?),
            (FileChoice::Standard, None) => match read(Path::new(FILE)) {
                Err(StartError::ReadConfig { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                other => Some(other?),
            },
        };
        Ok(Config {
            code: self.code,
            environment: self.environment,
            file,
        })
    }
}

impl fmt::Debug for ConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigBuilder")
            .field("set_in_code", &self.code.keys().collect::<Vec<_>>())
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<ConfigFile, StartError> {
    let text = std::fs::read_to_string(path).map_err(|source| StartError::ReadConfig {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<ConfigFile, StartError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        StartError::ParseConfig {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            message: error.message().to_owned(),
        }
    })?;
    let mut file = ConfigFile {
        path: path.to_owned(),
        entries: BTreeMap::new(),
    };
    let mut problems = Problems::default();
    flatten("", table, &mut file, &mut problems);
    problems.finish()?;
    Ok(file)
}

/// Dotted keys and nested tables are the same to TOML; a quoted key with dots in it is made the same here.
fn flatten(prefix: &str, table: toml::Table, file: &mut ConfigFile, problems: &mut Problems) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        let entry = match value {
            toml::Value::String(text) => FileEntry::Text(text),
            toml::Value::Integer(number) => FileEntry::Text(number.to_string()),
            toml::Value::Float(number) => FileEntry::Text(number.to_string()),
            toml::Value::Boolean(truth) => FileEntry::Text(truth.to_string()),
            toml::Value::Datetime(_) => FileEntry::NotText("a date"),
            toml::Value::Array(_) => FileEntry::NotText("an array"),
            toml::Value::Table(inner) => {
                flatten(&key, inner, file, problems);
                file.entries.entry(key).or_insert(FileEntry::Table);
                continue;
            }
        };
        match file.entries.insert(key.clone(), entry) {
            None | Some(FileEntry::Table) => {}
            Some(_) => problems.add(format!("`{}` gives `{key}` twice", file.path.display())),
        }
    }
}

#[cfg(test)]
mod tests;
