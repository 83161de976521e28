//! Reads the tools of a server, once, at start-up: collects their descriptors, applies the configuration to them, and checks
//! them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::duration::{PollInterval, Ttl, parse_grace};
use mcp_tasks_core::ledger::Fingerprint;
use mcp_tasks_core::placeholder::Template;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::config::settings::{self, Settings};
use crate::config::start::{Problems, StartError, Warnings};
use crate::tool::descriptor::ToolDescriptor;
use crate::tool::registry::{Placement, RegisteredTool, Registry};
use crate::tool::schema::{InputSchema, OutputSchema};
use crate::tool::state::StateMap;

/// Puts together the tools registered by hand and, if wanted, those collected at link time.
///
/// A tool that comes both ways is one tool.
pub(crate) fn collect(
    explicit: Vec<ToolDescriptor>,
    use_inventory: bool,
    config: &Config,
    states: &StateMap,
    warnings: &mut Warnings,
) -> Result<Registry, StartError> {
    let mut problems = Problems::default();
    let settings = problems.absorb(Settings::read(config))?;
    let collected = inventory::iter::<ToolDescriptor>.into_iter().filter(|_| use_inventory);
    let mut descriptors: Vec<ToolDescriptor> = explicit.into_iter().chain(collected.copied()).collect();
    // By place, so that problems come in the order of the source, and the linker's order never shows.
    descriptors.sort_by_key(|tool| tool.source);
    descriptors.dedup_by_key(|tool| tool.source);

    let mut keys: Vec<String> = settings::KEYS.iter().map(|key| (*key).to_owned()).collect();
    let mut tools: BTreeMap<Arc<str>, Arc<RegisteredTool>> = BTreeMap::new();
    for descriptor in descriptors {
        let mut reader = DescriptorReader {
            config,
            descriptor,
            problems: &mut problems,
            keys: &mut keys,
        };
        let Some(tool) = reader.tool(settings.as_ref(), states) else {
            continue;
        };
        match tools.entry(Arc::clone(&tool.name)) {
            Entry::Vacant(place) => {
                place.insert(Arc::new(tool));
            }
            Entry::Occupied(first) => problems.add(format!(
                "two tools are called `{}`: at {} and at {}; rename one, with `name = \"…\"` for example",
                tool.name,
                first.get().descriptor.source,
                descriptor.source,
            )),
        }
    }
    config.check_keys(keys.iter().map(String::as_str), &mut problems, warnings);
    problems.finish()?;
    Ok(Registry::new(tools))
}

/// Fails if one of these tools is not there, which is how a library of tools that the linker dropped shows.
pub(crate) fn expect_tools<N: AsRef<str>>(
    registry: &Registry,
    names: impl IntoIterator<Item = N>,
) -> Result<(), StartError> {
    let known: Vec<&str> = registry.iter().map(|tool| &*tool.name).collect();
    let mut problems = Problems::default();
    for name in names {
        let name = name.as_ref();
        if registry.get(name).is_none() {
            problems.add(format!(
                "the tool `{name}` is expected and not there; found: {}. If it is in a library crate, name the crate in code, as in `use my_tools as _;`, or register the tool by hand",
                if known.is_empty() { "none".to_owned() } else { format!("`{}`", known.join("`, `")) }
            ));
        }
    }
    problems.finish()
}

/// Reads one descriptor.
struct DescriptorReader<'a> {
    config: &'a Config,
    descriptor: ToolDescriptor,
    problems: &'a mut Problems,
    /// Every key that is used, for the check that no two share an environment variable.
    keys: &'a mut Vec<String>,
}

impl DescriptorReader<'_> {
    /// The finished tool; `None` is a problem, and noted. Every check is made before the first `?`.
    fn tool(&mut self, settings: Option<&Settings>, states: &StateMap) -> Option<RegisteredTool> {
        let descriptor = self.descriptor;
        let name = self.text("name", Some(descriptor.name), check_name);
        let title = self.text("title", descriptor.title, keep);
        let description = self.text("description", descriptor.description, keep);
        let version = self.text("version", descriptor.version, keep);
        let ttl = self.text("ttl", descriptor.ttl, Ttl::parse);
        let grace = self.text("grace", descriptor.grace, parse_grace);
        let placement = self.text("placement", descriptor.placement, Placement::parse);
        let poll_interval = self.text("poll_interval", descriptor.poll_interval, PollInterval::parse);
        self.states(states);
        let input = self.input();
        let output = self.output();

        let (ttl, poll_interval) = self.lifetime(settings, ttl?, poll_interval?)?;
        let (name, input) = (Arc::<str>::from(name??), input?);
        let (title, description, version) = (title?, description?, version?);
        let placement = self.fitting_placement(placement?, descriptor.grace)?;
        // Wherever it stands in the schema: what may mean it is treated as if it did.
        let has_header_params = Value::Object(input.clone()).to_string().contains("x-mcp-header");
        let schema_hash = Fingerprint::of("input-schema", "", Some(&Value::Object(input.clone())));

        let mut model = Tool::default();
        model.name = name.as_ref().to_owned().into();
        model.title = title;
        model.description = description.or(descriptor.doc.map(str::to_owned)).map(Into::into);
        model.input_schema = Arc::new(input);
        model.output_schema = output.map(Arc::new);
        model.annotations = annotations(&descriptor);
        Some(RegisteredTool {
            descriptor,
            name,
            model,
            ttl: ttl.duration(),
            poll_interval: poll_interval.duration(),
            required: descriptor.required,
            grace: self.fitting_grace(grace?, ttl)?,
            placement,
            version: version.map(Into::into),
            schema_hash,
            guard: descriptor.guard,
            has_header_params,
            kind: descriptor.kind,
        })
    }

    /// One attribute, resolved and parsed; the outer `None` is a problem, and noted.
    fn text<T, E: fmt::Display>(
        &mut self,
        attribute: &str,
        written: Option<&'static str>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        let Some(written) = written else {
            return Some(None);
        };
        let template = match Template::parse(written) {
            Ok(template) => template,
            Err(error) => {
                self.problem(&format!("`{attribute} = \"{written}\"`: {error}"));
                return None;
            }
        };
        self.keys.extend(template.keys().map(str::to_owned));
        // A value that is there and cannot be used must not fall back to the default.
        let mut usable = true;
        let mut origins = String::new();
        for key in template.keys() {
            match self.problems.note(self.config.find(key)) {
                Some(Some(found)) => origins.push_str(&format!(" (`{key}`: {})", found.origin)),
                Some(None) => {}
                None => usable = false,
            }
        }
        if !usable {
            return None;
        }
        let error = match template.resolve(|key| self.config.get(key)) {
            Ok(value) => match parse(&value) {
                Ok(parsed) => return Some(Some(parsed)),
                Err(_) if template.keys().any(settings::is_secret) => {
                    "the configured value, which is not shown, is not accepted".to_owned()
                }
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        self.problem(&format!("`{attribute} = \"{written}\"`{origins}: {error}"));
        None
    }

    /// The attributes or else the defaults. A default poll interval gives way to a shorter ttl; a written one may not.
    fn lifetime(
        &mut self,
        settings: Option<&Settings>,
        ttl: Option<Ttl>,
        poll_interval: Option<PollInterval>,
    ) -> Option<(Ttl, PollInterval)> {
        let settings = settings?;
        let ttl = ttl.unwrap_or(settings.default_ttl);
        let Some(written) = poll_interval else {
            let default = settings.default_poll_interval;
            let fitting = match (default.check_within(ttl), ttl.duration()) {
                (Err(_), Some(ttl)) => PollInterval::new(ttl).unwrap_or(default),
                _ => default,
            };
            return Some((ttl, fitting));
        };
        match written.check_within(ttl) {
            Ok(()) => Some((ttl, written)),
            Err(error) => {
                self.problem(&format!("`poll_interval`: {error}"));
                None
            }
        }
    }

    /// The grace, if it is shorter than the task's life.
    fn fitting_grace(&mut self, grace: Option<Duration>, ttl: Ttl) -> Option<Option<Duration>> {
        match (grace, ttl.duration()) {
            (Some(grace), Some(ttl)) if grace >= ttl => {
                self.problem("`grace`: it must be shorter than the ttl");
                None
            }
            _ => Some(grace),
        }
    }

    /// The placement, if it goes along with the grace.
    fn fitting_placement(&mut self, placement: Option<Placement>, grace: Option<&str>) -> Option<Placement> {
        let placement = placement.unwrap_or(Placement::Local);
        if placement == Placement::Any && grace.is_some() {
            self.problem(
                "`placement`: with `grace` the node that accepts a call runs it at once, with `any` any node may run it; leave \
                 out one",
            );
            return None;
        }
        Some(placement)
    }

    fn states(&mut self, states: &StateMap) {
        for state in self.descriptor.states {
            if states.contains(state.type_id()) {
                continue;
            }
            let wanted = state.type_name();
            if states.contains(state.shared_type_id()) {
                self.problem(&format!(
                    "it takes `State<{wanted}>` and the server has an `Arc<{wanted}>`; give \
                     `TaskRuntime::builder().state(..)` the value itself, which `State` shares, or take \
                     `State<Arc<{wanted}>>`"
                ));
                continue;
            }
            let there = match states.type_names().as_slice() {
                [] => "it has no state at all".to_owned(),
                names => format!("what it has is `{}`", names.join("`, `")),
            };
            self.problem(&format!(
                "it takes `State<{wanted}>` and the server has no `{wanted}`, {there}; give it one with \
                 `TaskRuntime::builder().state(..)`"
            ));
        }
    }

    fn input(&mut self) -> Option<Map<String, Value>> {
        let mut input = InputSchema::new();
        (self.descriptor.input)(&mut input);
        match input.finish() {
            Ok(schema) => Some(schema),
            Err(error) => {
                self.problem(&error);
                None
            }
        }
    }

    fn output(&self) -> Option<Map<String, Value>> {
        let mut output = OutputSchema::default();
        (self.descriptor.output)(&mut output);
        output.finish()
    }

    fn problem(&mut self, text: &str) {
        let (name, source) = (self.descriptor.name, self.descriptor.source);
        self.problems.add(format!("tool `{name}` ({source}): {text}"));
    }
}

fn keep(text: &str) -> Result<String, &'static str> {
    Ok(text.to_owned())
}

/// The rule of the core specification, 2026-07-28, server/tools, "Tool Names".
fn check_name(name: &str) -> Result<String, String> {
    let fitting = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=128).contains(&name.len()) && name.chars().all(fitting) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "`{name}` is not a tool name; a name has 1 to 128 of the characters A to Z, a to z, 0 to 9, `_`, `-` and `.`"
        ))
    }
}

fn annotations(tool: &ToolDescriptor) -> Option<ToolAnnotations> {
    let hints = [tool.read_only, tool.destructive, tool.idempotent, tool.open_world];
    let [read_only, destructive, idempotent, open_world] = hints;
    hints
        .iter()
        .any(Option::is_some)
        .then(|| ToolAnnotations::from_raw(None, read_only, destructive, idempotent, open_world))
}

#[cfg(test)]
mod tests;
