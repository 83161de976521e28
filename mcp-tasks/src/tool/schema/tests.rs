//! Tables of what strict clients take.

use std::collections::HashMap;

use serde::Deserialize;

use super::*;

fn property<T: ToolArgument>() -> (Value, bool) {
    let mut input = InputSchema::new();
    input.property::<T>("x", None);
    let schema = input.finish().unwrap();
    (schema["properties"]["x"].clone(), schema.contains_key("required"))
}

#[test]
fn numbers_have_bounds_and_no_formats() {
    let u32_max = u64::from(u32::MAX);
    let table = [
        (
            property::<u8>(),
            json!({"type": "integer", "minimum": 0, "maximum": 255}),
        ),
        (
            property::<u32>(),
            json!({"type": "integer", "minimum": 0, "maximum": u32_max}),
        ),
        (
            property::<i32>(),
            json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        ),
        (property::<u64>(), json!({"type": "integer", "minimum": 0})),
        (property::<usize>(), json!({"type": "integer", "minimum": 0})),
        (property::<i64>(), json!({"type": "integer"})),
        (property::<i128>(), json!({"type": "integer"})),
        (property::<f32>(), json!({"type": "number"})),
        (property::<f64>(), json!({"type": "number"})),
    ];
    for ((found, required), expected) in table {
        assert_eq!(found, expected);
        assert!(required);
    }
}

#[test]
fn what_takes_anything_is_an_empty_object() {
    let table = [
        (property::<Value>(), json!({}), true),
        (property::<Option<Value>>(), json!({}), false),
        (
            property::<HashMap<String, Value>>(),
            json!({"type": "object", "additionalProperties": {}}),
            true,
        ),
        (property::<Vec<Value>>(), json!({"type": "array", "items": {}}), true),
        (property::<()>(), json!({"type": "null"}), true),
    ];
    for ((found, required), expected, expected_required) in table {
        assert_eq!(found, expected);
        assert_eq!(required, expected_required);
    }
}

#[test]
fn an_option_is_not_required_however_it_is_spelled() {
    type Maybe = Option<u8>;
    assert!(!property::<Option<u8>>().1);
    assert!(!property::<Maybe>().1);
    assert!(!property::<Option<Option<u8>>>().1);
}

#[test]
fn parameters_stay_in_their_order() {
    let mut input = InputSchema::new();
    for name in ["zoom", "angle", "mode"] {
        input.property::<u8>(name, None);
    }
    let schema = input.finish().unwrap();
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["zoom", "angle", "mode"]);
}

#[test]
fn no_arguments_are_an_empty_object() {
    let schema = InputSchema::new().finish().unwrap();
    assert_eq!(Value::Object(schema), json!({"type": "object", "properties": {}}));
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only described")]
struct Node {
    /// What it is called
    name: String,
    #[serde(default = "one")]
    weight: f64,
    children: Vec<Node>,
}

fn one() -> f64 {
    1.0
}

#[test]
fn definitions_stand_at_the_root_and_a_closed_object_stays_closed() {
    let mut input = InputSchema::new();
    input.property::<Node>("tree", Some("Where to start"));
    let schema = Value::Object(input.finish().unwrap());
    let node = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What it is called"},
            "weight": {"type": "number", "default": 1.0},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": ["name", "children"],
        "additionalProperties": false,
    });
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Node", "description": "Where to start"}},
            "required": ["tree"],
            "$defs": {"Node": node},
        })
    );
}

#[test]
fn one_type_for_all_arguments_stands_at_the_root() {
    let mut input = InputSchema::new();
    input.all::<Node>();
    let schema = input.finish().unwrap();
    assert_eq!(
        schema["properties"]["children"],
        json!({"type": "array", "items": {"$ref": "#/$defs/Node"}})
    );
    assert!(schema["$defs"]["Node"].is_object());
    assert!(!schema.contains_key("title") && !schema.contains_key("$schema"));
    let mut input = InputSchema::new();
    input.all::<HashMap<String, u8>>();
    assert_eq!(input.finish().unwrap()["properties"], json!({}));
}

#[test]
fn all_arguments_that_are_no_object_are_refused() {
    fn refusal<T: ToolArgument>() -> String {
        let mut input = InputSchema::new();
        input.all::<T>();
        input.finish().unwrap_err()
    }
    assert!(refusal::<u8>().contains("\"integer\""));
    assert!(refusal::<Option<Node>>().contains("no `type`"));
}

#[test]
fn an_output_schema_may_have_any_root_and_is_left_out_when_it_says_nothing() {
    let mut output = OutputSchema::default();
    output.structured::<Vec<Option<u8>>>();
    let items = json!({"type": ["integer", "null"], "minimum": 0, "maximum": 255});
    assert_eq!(
        output.finish().map(Value::Object),
        Some(json!({"type": "array", "items": items}))
    );
    let mut output = OutputSchema::default();
    output.structured::<Value>();
    assert_eq!(output.finish(), None);
}
