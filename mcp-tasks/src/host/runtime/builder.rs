//! Puts a runtime together, and checks everything before it starts.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "http")]
use mcp_tasks_core::Principal;
use mcp_tasks_core::{MemoryStore, TaskStore, error_chain};

use super::TaskRuntime;
use crate::call::CallRunner;
use crate::call::request_state::RequestStateCodec;
use crate::config::Config;
use crate::config::settings::{STORE_URL, Settings, WORK};
use crate::config::start::{Problems, StartError, StartProblem, Warnings};
use crate::config::tools;
use crate::host::operations::Operations;
#[cfg(feature = "http")]
use crate::host::operations::PrincipalHook;
use crate::run::clock::{Clock, SystemClock};
use crate::store::Choice;
use crate::task::TaskEngine;
use crate::tool::descriptor::{ToolDefinition, ToolDescriptor};
use crate::tool::registry::Registry;
use crate::tool::state::StateMap;

/// Puts a [`TaskRuntime`] together.
#[derive(Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct TaskRuntimeBuilder {
    config: Option<Config>,
    tools: Vec<ToolDescriptor>,
    without_inventory: bool,
    expected: Vec<String>,
    states: StateMap,
    store: Option<Arc<dyn TaskStore>>,
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "http")]
    principal: Option<PrincipalHook>,
}

impl fmt::Debug for TaskRuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRuntimeBuilder")
            .field("config", &self.config)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl TaskRuntimeBuilder {
    /// The configuration, instead of [`Config::from_env`].
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Registers a tool by the name of its function, without link-time collection: `register::<encode>()`. A tool that is
    /// collected too is listed once.
    pub fn register<T: ToolDefinition>(mut self) -> Self {
        self.tools.push(T::TOOL);
        self
    }

    /// Leaves out the tools collected at link time. The registered ones are all there are then.
    pub const fn without_inventory(mut self) -> Self {
        self.without_inventory = true;
        self
    }

    /// Makes [`build`](Self::build) fail if one of these tools is missing. The linker silently drops a library of tools that
    /// nothing refers to. Without this, a server that has no tool left starts, with a warning.
    pub fn expect_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.expected.extend(names.into_iter().map(Into::into));
        self
    }

    /// Shares a value with tools, which take it as [`State<T>`](crate::State). Give the value itself, without an `Arc` around
    /// it. A second value of the same type replaces the first.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// The store of the tasks. `mcp.tasks.store.url` is ignored then.
    pub fn store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// The clock, instead of the system's. Tests set the time with it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Reads the principal of an HTTP request, as a rule from the request's extensions, where an authentication layer in
    /// front has put it. Without this hook, where it returns `None`, and on stdio, callers are anonymous, and all anonymous
    /// callers share their tasks. If it panics the request is answered with `-32603`.
    ///
    /// ```standalone_crate
    /// use mcp_tasks::{Principal, TaskRuntime};
    ///
    /// #[derive(Clone)]
    /// struct User {
    ///     name: String,
    /// }
    ///
    /// let runtime = TaskRuntime::builder()
    ///     .principal(|request| request.extensions.get::<User>().map(|user| Principal::new(user.name.as_str())))
    ///     .build()?;
    /// # let _ = runtime;
    /// # Ok::<(), mcp_tasks::StartError>(())
    /// ```
    #[cfg(feature = "http")]
    pub fn principal(
        mut self,
        read: impl Fn(&http::request::Parts) -> Option<Principal> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Some(Arc::new(read));
        self
    }

    /// Checks everything and builds the runtime. A store that `mcp.tasks.store.url` names is opened, which blocks the thread
    /// meanwhile.
    ///
    /// # Errors
    /// All mistakes in tools and configuration, in one error; if there are none, a store that cannot be opened.
    pub fn build(self) -> Result<TaskRuntime, StartError> {
        let config = match self.config {
            Some(config) => config,
            None => Config::from_env()?,
        };
        let mut problems = Problems::default();
        let mut warnings = Warnings::default();
        let settings = problems.absorb(Settings::read(&config))?;
        // A store that is given in code is not looked for elsewhere. The chosen one is opened last, so that a server that
        // cannot start leaves no file behind.
        let chosen = settings
            .as_ref()
            .and_then(|settings| Some((settings.store_url.as_ref()?, settings.store_key_prefix.as_str())));
        let choice = match chosen {
            Some((url, prefix)) if self.store.is_none() => {
                problems.note(Choice::parse(url.reveal(), prefix).map_err(store_problem))
            }
            _ => None,
        };
        if settings.as_ref().is_some_and(|settings| !settings.work) && self.store.is_none() && chosen.is_none() {
            problems.add(format!(
                "{WORK}: `false` leaves tasks to other nodes, and no other node sees the in-memory store; set {STORE_URL} to a \
                 store that they share"
            ));
        }
        let registry = tools::collect(
            self.tools,
            !self.without_inventory,
            &config,
            &self.states,
            &mut warnings,
        );
        let registry = problems.absorb(registry)?;
        if let Some(registry) = &registry {
            problems.absorb(tools::expect_tools(registry, &self.expected))?;
            if let Some(text) = no_tools(registry, !self.without_inventory) {
                warnings.add(text);
            }
        }
        let mut seed = [0; 16];
        if let Err(error) = getrandom::fill(&mut seed) {
            problems.add(format!("the system's random generator fails: {error}"));
        }
        let request_state = settings
            .as_ref()
            .and_then(|settings| codec(settings, &mut problems, &mut warnings));
        let checked = settings.zip(registry).zip(request_state);
        let ((settings, registry), request_state) = problems.finish_with(checked)?;
        let store = match (self.store, choice) {
            (Some(store), _) => store,
            (None, Some(choice)) => open(choice)?,
            (None, None) => {
                warnings.add(
                    "using the in-memory task store: tasks are lost when this process ends, and no other node sees them; \
                     set mcp.tasks.store.url to a durable store for anything that must survive",
                );
                Arc::new(MemoryStore::new())
            }
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let states = Arc::new(self.states);
        let seed = u128::from_be_bytes(seed);
        let calls = CallRunner::new(request_state, clock.clone(), states.clone());
        let engine = TaskEngine::new(store, registry, states, settings, clock, seed);
        Ok(TaskRuntime {
            operations: Operations::new(
                engine,
                calls,
                #[cfg(feature = "http")]
                self.principal,
            ),
            warnings: Arc::new(warnings),
        })
    }
}

/// What to say of a runtime without tools, which the linker brings about. A program that leaves out what is collected, and
/// registers nothing, has none on purpose.
fn no_tools(registry: &Registry, collected: bool) -> Option<&'static str> {
    (registry.is_empty() && collected).then_some(
        "there are no tools: a library of tools that nothing refers to is left out by the linker, so name it in code, as in \
         `use my_tools as _;`; `TaskRuntime::builder().expect_tools([..])` stops a start without them",
    )
}

fn store_problem(reason: String) -> StartProblem {
    StartProblem::new(format!("{STORE_URL}: {reason}"))
}

fn open(choice: Choice) -> Result<Arc<dyn TaskStore>, StartError> {
    choice.open().or_else(|error| {
        let mut problems = Problems::default();
        problems.note::<()>(Err(store_problem(error_chain(&error))));
        problems.finish_with(None)
    })
}

/// What seals the state of synchronous calls.
fn codec(settings: &Settings, problems: &mut Problems, warnings: &mut Warnings) -> Option<RequestStateCodec> {
    let ttl = settings.request_state_ttl;
    match &settings.request_state_keys {
        Some(keys) => Some(RequestStateCodec::new(keys, ttl)),
        None => {
            warnings.add(
                "mcp.tasks.request-state.keys is not set: the state of calls that ask is sealed with a key of this process \
                 alone, so they cannot go on after a restart or on another node",
            );
            RequestStateCodec::ephemeral(ttl)
                .map_err(|error| problems.add(format!("the system's random generator fails: {error}")))
                .ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp_tool;

    #[mcp_tool]
    async fn one() {}

    fn built(builder: TaskRuntimeBuilder) -> TaskRuntime {
        let nothing: [(&str, &str); 0] = [];
        let config = Config::builder().environment(nothing).without_file().build().unwrap();
        builder.config(config).build().unwrap()
    }

    #[test]
    fn a_runtime_without_tools_is_warned_of_unless_it_was_asked_for() {
        let text = no_tools(&Registry::default(), true).unwrap();
        assert!(text.contains("use my_tools as _;") && text.contains("expect_tools"));
        assert_eq!(no_tools(&Registry::default(), false), None);
        let some = built(TaskRuntime::builder().without_inventory().register::<one>());
        assert_eq!(no_tools(some.engine().registry(), true), None);
    }

    #[test]
    fn the_warnings_of_a_start_are_kept_for_a_program_without_a_log() {
        let runtime = built(TaskRuntime::builder().without_inventory());
        let texts = runtime.warnings.texts();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("mcp.tasks.request-state.keys"));
        assert!(texts[1].contains("in-memory task store"));
    }
}
