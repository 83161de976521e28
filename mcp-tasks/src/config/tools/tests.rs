//! From annotated functions to registered tools that can be called.

use std::sync::Arc;

use mcp_tasks_core::{ClientCapabilities, Json, Ledger, TaskId};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::host::SystemClock;
use crate::run::{Deferral, InCall, Run, RunStart};
use crate::tool::ToolDefinition;
use crate::tool::argument::Arguments;
use crate::tool::descriptor::ToolKind;
use crate::tool::invocation::Invocation;
use crate::{Args, Caller, Denied, State, ToolContext, ToolError, mcp_task, mcp_tool};

#[derive(Serialize, JsonSchema)]
struct Encoded {
    uri: String,
    lines: u32,
}

/// Re-encode a video
///
/// and publish it.
#[mcp_task(
    ttl = "${video.ttl:PT2H}",
    poll_interval = "PT5S",
    title = "Encode",
    destructive = false,
    idempotent
)]
async fn encode(
    _ctx: ToolContext,
    /// Where the source is
    uri: String,
    height: Option<u32>,
    caller: Caller,
    State(base): State<String>,
) -> Result<Encoded, ToolError> {
    let _ = caller;
    let base: Arc<String> = base;
    if uri.is_empty() {
        return Err(ToolError::new("no source"));
    }
    Ok(Encoded {
        uri: format!("{}{uri}", *base),
        lines: height.unwrap_or(720),
    })
}

async fn nobody(caller: &Caller) -> Result<(), Denied> {
    match caller.subject() {
        Some(_) => Ok(()),
        None => Err(Denied::new("log in first")),
    }
}

#[mcp_tool(name = "up-per", guard = nobody, read_only)]
fn r#type(r#fn: String) -> String {
    r#fn.to_uppercase()
}

#[mcp_tool]
fn explodes() {
    panic!("on purpose");
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Search {
    /// What to look for
    search_text: String,
    #[serde(default)]
    max_hits: u32,
}

#[mcp_tool]
async fn search(Args(search): Args<Search>) -> String {
    format!("{} {}", search.search_text, search.max_hits)
}

#[mcp_task(required)]
async fn not_an_object(_all: Args<Vec<u8>>, _ctx: ToolContext) {}

macro_rules! stamp {
    ($($name:ident($context:ty, $argument:ty) as $tool:literal)*) => {
        $(#[mcp_tool(name = $tool)]
        async fn $name(_ctx: $context, value: $argument) -> $argument {
            value
        })*
    };
}

stamp! {
    first(ToolContext, Option<u8>) as "stamped"
    second(ToolContext, Option<u8>) as "stamped"
}

const TOOLS: [ToolDescriptor; 4] = [encode::TOOL, r#type::TOOL, explodes::TOOL, search::TOOL];

fn states() -> StateMap {
    let mut states = StateMap::default();
    states.insert("store:".to_owned());
    states
}

fn config(values: &[(&str, &str)]) -> Config {
    let none: [(&str, &str); 0] = [];
    let builder = Config::builder().environment(none).without_file();
    values
        .iter()
        .fold(builder, |builder, (key, value)| builder.set(*key, *value))
        .build()
        .unwrap()
}

fn collect(
    tools: Vec<ToolDescriptor>,
    use_inventory: bool,
    config: &Config,
    states: &StateMap,
) -> Result<Registry, StartError> {
    super::collect(tools, use_inventory, config, states, &mut Warnings::default())
}

fn registry(values: &[(&str, &str)]) -> Result<Registry, StartError> {
    collect(TOOLS.to_vec(), false, &config(values), &states())
}

fn invocation(arguments: Value) -> Invocation {
    let Value::Object(arguments) = arguments else {
        panic!("not an object")
    };
    let run = Run::new(RunStart {
        carrier: Box::new(InCall),
        id: TaskId::from_entropy([0; 16]),
        capabilities: ClientCapabilities::new(Json::of(&json!({})).unwrap()),
        ledger: &Ledger::default(),
        deferral: Deferral::Refused,
        clock: Arc::new(SystemClock::new()),
        token: CancellationToken::new(),
        progress: None,
    });
    Invocation::new(run, Caller::anonymous(), Arc::new(states()), arguments)
}

async fn call(name: &str, arguments: Value) -> Result<CallToolResult, ToolError> {
    let registry = registry(&[]).unwrap();
    (registry.get(name).unwrap().descriptor.call)(invocation(arguments)).await
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

fn lines(error: StartError) -> Vec<String> {
    error.problems().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn an_annotated_function_is_called_with_its_arguments_and_what_is_injected() {
    let result = call("encode", json!({"uri": "x", "height": 3.0})).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({"uri": "store:x", "lines": 3})));
    let result = call("encode", json!({"uri": "x"})).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({"uri": "store:x", "lines": 720})));
    assert_eq!(
        call("encode", json!({"uri": ""})).await.unwrap_err().to_string(),
        "no source"
    );
}

#[tokio::test]
async fn a_function_that_is_not_async_runs_and_its_panic_goes_on() {
    assert_eq!(text(&call("up-per", json!({"fn": "x"})).await.unwrap()), "X");
    let panicked = tokio::spawn(call("explodes", json!({}))).await.unwrap_err();
    assert_eq!(*panicked.into_panic().downcast::<&str>().unwrap(), "on purpose");
}

#[tokio::test]
async fn all_arguments_come_in_one_type() {
    let result = call("search", json!({"searchText": "a", "maxHits": 2})).await.unwrap();
    assert_eq!(text(&result), "a 2");
}

#[test]
fn arguments_are_checked_without_running_the_function() {
    let tool = encode::TOOL;
    let mut arguments = Arguments::new(Map::from_iter([("height".to_owned(), json!("x"))]));
    (tool.check)(&mut arguments);
    let problems: Vec<_> = arguments.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["uri: missing", "height: invalid type: string \"x\", expected u32"]
    );
}

#[tokio::test]
async fn invalid_arguments_that_were_not_checked_before_are_an_error_result() {
    let result = call("encode", json!({})).await.unwrap();
    assert_eq!(result.is_error, Some(true));
}

#[test]
fn a_tool_is_listed_as_its_attribute_says() {
    let registry = registry(&[]).unwrap();
    let names: Vec<_> = registry.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["encode", "explodes", "search", "up-per"]);
    let encode = registry.get("encode").unwrap();
    assert_eq!(
        serde_json::to_value(&encode.model).unwrap(),
        json!({
            "name": "encode",
            "title": "Encode",
            "description": "Re-encode a video\n\nand publish it.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "uri": {"type": "string", "description": "Where the source is"},
                    "height": {"type": ["integer", "null"], "minimum": 0, "maximum": 4_294_967_295_u32},
                },
                "required": ["uri"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "uri": {"type": "string"},
                    "lines": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
                },
                "required": ["uri", "lines"],
            },
            "annotations": {"destructiveHint": false, "idempotentHint": true},
        })
    );
    assert_eq!(encode.ttl, Some(Duration::from_secs(7200)));
    assert_eq!(encode.poll_interval, Duration::from_secs(5));
    assert_eq!((encode.kind, encode.required), (ToolKind::Task, false));
    assert!(registry.get("up-per").unwrap().guard.is_some());
}

#[tokio::test]
async fn a_guard_is_asked_about_the_caller() {
    let guard = r#type::TOOL.guard.unwrap();
    assert_eq!(guard(&Caller::anonymous()).await.unwrap_err().reason(), "log in first");
}

#[test]
fn tools_are_collected_at_link_time_and_one_that_comes_both_ways_is_one() {
    let mut known: Vec<_> = inventory::iter::<ToolDescriptor>
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    known.sort_unstable();
    assert!(known.contains(&"encode") && known.contains(&"not_an_object"));
    // Those of the tests below that stop a start are collected too, so it fails; but no tool is its own double.
    let error = collect(TOOLS.to_vec(), true, &config(&[]), &states()).unwrap_err();
    let doubles = lines(error)
        .into_iter()
        .filter(|line| line.contains("two tools"))
        .count();
    assert_eq!(doubles, 2);
}

#[test]
fn arguments_that_are_no_object_stop_the_start() {
    let error = collect(vec![not_an_object::TOOL], false, &config(&[]), &states()).unwrap_err();
    let lines = lines(error);
    assert!(
        lines[0].contains("not_an_object") && lines[0].contains("`type` \"array\""),
        "{lines:?}"
    );
}

#[test]
fn a_macro_can_write_tools_and_two_of_one_name_are_two_though_they_stand_in_one_place() {
    let registry = collect(vec![first::TOOL], false, &config(&[]), &states()).unwrap();
    let schema = registry.get("stamped").unwrap().model.input_schema.clone();
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
    let tools = vec![first::TOOL, second::TOOL];
    assert!(collect(tools, false, &config(&[]), &states()).is_err());
}

mod double {
    #[crate::mcp_tool(name = "encode")]
    pub(super) async fn again() {}
}

#[test]
fn two_tools_of_one_name_stop_the_start_and_both_places_are_named() {
    let tools = vec![encode::TOOL, double::again::TOOL];
    let error = collect(tools, false, &config(&[]), &states()).unwrap_err();
    let lines = lines(error);
    for tool in [encode::TOOL, double::again::TOOL] {
        assert!(lines[0].contains(&tool.source.to_string()), "{lines:?}");
    }
}

#[test]
fn configuration_fills_placeholders_and_problems_name_tool_attribute_placeholder_and_value() {
    let registry = registry(&[("video.ttl", "PT3H")]).unwrap();
    assert_eq!(registry.get("encode").unwrap().ttl, Some(Duration::from_secs(10_800)));
    let error = self::registry(&[("video.ttl", "P1M")]).unwrap_err();
    let lines = lines(error);
    for word in ["encode", "ttl", "${video.ttl:PT2H}", "P1M"] {
        assert!(lines[0].contains(word), "{lines:?}");
    }
    let error = self::registry(&[("video.ttl", "PT1S")]).unwrap_err();
    assert!(error.to_string().contains("poll interval"), "{error}");
}

#[test]
fn all_problems_of_a_start_come_at_once() {
    let values = [
        ("video.ttl", "soon"),
        ("mcp.tasks.transport", "pigeon"),
        ("video-ttl", "x"),
    ];
    let tools = vec![encode::TOOL, not_an_object::TOOL];
    let error = collect(tools, false, &config(&values), &StateMap::default()).unwrap_err();
    let text = error.to_string();
    for word in ["pigeon", "soon", "State<alloc::string::String>", "not_an_object"] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(lines(error).len(), 4, "{text}");
}

#[test]
fn a_state_that_is_not_there_is_told_from_one_that_was_given_in_an_arc() {
    let refused = |states: &StateMap| {
        collect(vec![encode::TOOL], false, &config(&[]), states)
            .unwrap_err()
            .to_string()
    };
    let none = refused(&StateMap::default());
    assert!(none.contains("it has no state at all"), "{none}");

    let mut states = StateMap::default();
    states.insert(7_u8);
    states.insert(7_u64);
    let others = refused(&states);
    assert!(others.contains("what it has is `u64`, `u8`"), "{others}");

    states.insert(Arc::new("store:".to_owned()));
    let shared = refused(&states);
    for words in [
        "the server has an `Arc<alloc::string::String>`",
        "the value itself, which `State` shares",
        "`State<Arc<alloc::string::String>>`",
    ] {
        assert!(shared.contains(words), "{words}: {shared}");
    }
}

#[test]
fn a_default_poll_interval_gives_way_to_a_shorter_ttl() {
    #[mcp_task(ttl = "PT1S")]
    async fn short() {}

    let registry = collect(vec![short::TOOL], false, &config(&[]), &states()).unwrap();
    assert_eq!(registry.get("short").unwrap().poll_interval, Duration::from_secs(1));
}

#[test]
fn two_keys_with_one_environment_variable_stop_the_start() {
    #[mcp_task(ttl = "${a.b:PT1H}", title = "${a-b:x}")]
    async fn shared() {}

    let error = collect(vec![shared::TOOL], false, &config(&[]), &states()).unwrap_err();
    assert!(error.to_string().contains("A_B"), "{error}");
}

#[test]
fn expected_tools_that_are_not_there_are_named() {
    let registry = registry(&[]).unwrap();
    assert!(expect_tools(&registry, ["encode", "search"]).is_ok());
    let error = expect_tools(&registry, ["encode", "publish"]).unwrap_err();
    assert!(error.to_string().contains("`publish`"), "{error}");
}

#[test]
fn a_secret_value_is_not_shown() {
    #[mcp_task(ttl = "${api.key:PT1H}")]
    async fn hidden() {}

    let config = config(&[("api.key", "hunter2"), ("mcp.tasks.store.url", "")]);
    let error = collect(vec![hidden::TOOL], false, &config, &states()).unwrap_err();
    assert_eq!(error.problems().len(), 2);
    assert!(!error.to_string().contains("hunter2"), "{error}");
}
