//! From the arguments of a call to the parameters of a function.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rmcp::model::{CallToolResult, ContentBlock};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::tool::parameter::{Absent, ToolArgument};
use crate::tool::schema;

/// All arguments of a tool in one type, in place of a parameter for each.
///
/// For what parameters cannot say: renamed or defaulted properties, `deny_unknown_fields`, more words in the schema.
/// The schema of `T` is the input schema of the tool and has to be an object, or the server does not start.
///
/// Arguments are decoded, not validated: clients see a limit such as `#[schemars(range(max = 10))]`, and the function has to
/// check it.
///
/// ```standalone_crate
/// use mcp_tasks::{Args, mcp_tool};
/// use mcp_tasks::prelude::{Deserialize, JsonSchema};
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// struct Search {
///     search_text: String,
///     #[serde(default)]
///     max_hits: u32,
/// }
///
/// #[mcp_tool]
/// async fn search(Args(search): Args<Search>) -> String {
///     format!("{} hits for {}", search.max_hits, search.search_text)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::exhaustive_structs, reason = "made to be taken apart in a parameter")]
pub struct Args<T>(pub T);

impl<T> Deref for Args<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Args<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// What is wrong with one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    path: String,
    message: String,
}

impl ArgumentProblem {
    /// The path of the value, as `sources[2].uri`; empty for the arguments as a whole.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    fn missing(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            message: "missing".to_owned(),
        }
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The arguments of one call, while they are decoded.
///
/// Decoding goes on after a problem, so that the caller learns all of them at once.
#[derive(Debug)]
pub struct Arguments {
    properties: Map<String, Value>,
    problems: Vec<ArgumentProblem>,
}

impl Arguments {
    /// The `arguments` of a `tools/call`; absent ones are an empty map.
    #[must_use]
    pub const fn new(properties: Map<String, Value>) -> Self {
        Self {
            properties,
            problems: Vec::new(),
        }
    }

    /// Removes one argument and decodes it; `None` is a problem, and noted.
    ///
    /// One that is absent decodes as serde decodes an absent field: an `Option` is `None`, all else is missing.
    pub fn decode<T: ToolArgument>(&mut self, name: &str) -> Option<T> {
        let decoded = match self.properties.remove(name) {
            Some(value) => decode_value(&value, name),
            None => T::deserialize(Absent).map_err(|_| ArgumentProblem::missing(name)),
        };
        decoded.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Removes all arguments and decodes them as one value; `None` is a problem, and noted.
    pub fn decode_all<T: ToolArgument>(&mut self) -> Option<T> {
        let value = Value::Object(std::mem::take(&mut self.properties));
        let problem = match decode_value(&value, "") {
            Ok(decoded) => return Some(decoded),
            Err(problem) => problem,
        };
        // Serde stops at the first problem and looks for absent fields last; the schema knows all of them.
        let missing = schema::required_properties::<T>()
            .into_iter()
            .filter(|name| value.get(name.as_str()).is_none())
            .map(|name| ArgumentProblem::missing(&name));
        let known = self.problems.len();
        self.problems.extend(missing);
        if self.problems.len() == known || !problem.message.starts_with("missing field") {
            self.problems.push(problem);
        }
        None
    }

    /// The problems so far, in the order of the parameters.
    #[must_use]
    pub fn problems(&self) -> &[ArgumentProblem] {
        &self.problems
    }
}

/// The answer to a call with invalid arguments: a result with `isError` that the model can read and act on, each
/// problem on its own line (SEP-1303).
#[must_use]
pub fn invalid_arguments_result(tool: &str, problems: &[ArgumentProblem]) -> CallToolResult {
    let mut text = format!("Invalid arguments for tool `{tool}`:");
    for problem in problems {
        text.push_str("\n- ");
        text.push_str(&problem.to_string());
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn decode_value<T: DeserializeOwned>(value: &Value, name: &str) -> Result<T, ArgumentProblem> {
    let error = match serde_path_to_error::deserialize(value) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    // JSON knows one kind of number, and JSON Schema counts 3.0 as an integer; serde does not. Only after a failure, so
    // that a type that takes floats is given what the client wrote.
    if let Some(decoded) = integral(value).and_then(|value| T::deserialize(value).ok()) {
        return Ok(decoded);
    }
    let inner = match error.path().to_string() {
        root if root == "." => String::new(),
        path => path,
    };
    let path = match (name, inner.as_str()) {
        (name, "") => name.to_owned(),
        ("", inner) => inner.to_owned(),
        (name, inner) if inner.starts_with('[') => format!("{name}{inner}"),
        (name, inner) => format!("{name}.{inner}"),
    };
    Err(ArgumentProblem {
        path,
        message: error.into_inner().to_string(),
    })
}

/// The value with every whole float written as an integer, if it has any.
fn integral(value: &Value) -> Option<Value> {
    /// 2^53: beyond it several integers share one float.
    const EXACT: f64 = 9_007_199_254_740_992.0;

    fn rewrite(value: &mut Value) -> bool {
        match value {
            Value::Number(number) if number.is_f64() => {
                let float = number.as_f64().unwrap_or(f64::NAN);
                let whole = float.fract() == 0.0 && float.abs() < EXACT;
                if whole {
                    #[expect(clippy::cast_possible_truncation, reason = "whole and within ±2^53")]
                    let integer = float as i64;
                    *number = integer.into();
                }
                whole
            }
            // `fold` and not `any`, which would stop at the first.
            Value::Array(items) => items.iter_mut().fold(false, |any, item| rewrite(item) | any),
            Value::Object(members) => members.values_mut().fold(false, |any, item| rewrite(item) | any),
            _ => false,
        }
    }

    let mut value = value.clone();
    rewrite(&mut value).then_some(value)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        match value {
            Value::Object(properties) => Arguments::new(properties),
            other => panic!("not an object: {other}"),
        }
    }

    fn problems(arguments: &Arguments) -> Vec<String> {
        arguments.problems().iter().map(ToString::to_string).collect()
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Source {
        uri: String,
        height: u32,
        #[serde(default)]
        tags: Vec<String>,
    }

    #[test]
    fn an_option_takes_absent_and_null() {
        for given in [json!({}), json!({"x": null})] {
            assert_eq!(arguments(given.clone()).decode::<Option<u32>>("x"), Some(None));
            assert_eq!(arguments(given).decode::<Option<Option<u32>>>("x"), Some(None));
        }
        assert_eq!(arguments(json!({"x": 3})).decode::<Option<u32>>("x"), Some(Some(3)));
    }

    #[test]
    fn all_problems_are_reported_in_the_order_of_the_parameters() {
        let mut given = arguments(json!({"sources": [{"uri": "a", "height": "tall"}], "n": null}));
        assert!(given.decode::<Vec<Source>>("sources").is_none());
        assert!(given.decode::<u32>("n").is_none());
        assert!(given.decode::<String>("name").is_none());
        assert_eq!(
            problems(&given),
            [
                "sources[0].height: invalid type: string \"tall\", expected u32",
                "n: invalid type: null, expected u32",
                "name: missing",
            ]
        );
    }

    #[test]
    fn all_arguments_in_one_type_report_every_absent_field() {
        let mut given = arguments(json!({"tags": "x"}));
        assert!(given.decode_all::<Source>().is_none());
        assert_eq!(
            problems(&given),
            [
                "uri: missing",
                "height: missing",
                "tags: invalid type: string \"x\", expected a sequence"
            ]
        );
    }

    #[test]
    fn a_whole_float_is_an_integer_and_stays_a_float_where_it_fits_as_one() {
        assert_eq!(arguments(json!({"n": 3.0})).decode::<u32>("n"), Some(3));
        assert_eq!(arguments(json!({"n": 3.0})).decode::<Value>("n"), Some(json!(3.0)));
        assert_eq!(
            arguments(json!({"n": [1.0, 2]})).decode::<Vec<i8>>("n"),
            Some(vec![1, 2])
        );
        for bad in [json!(1.5), json!(-3.0), json!("3"), json!(true), json!(1e300)] {
            assert_eq!(arguments(json!({ "n": bad })).decode::<u32>("n"), None, "{bad}");
        }
    }

    #[test]
    fn the_answer_names_the_tool_and_each_argument_on_its_own_line() {
        let mut given = arguments(json!({}));
        let _: Option<u32> = given.decode("a");
        let _: Option<u32> = given.decode("b");
        let result = invalid_arguments_result("encode", given.problems());
        assert_eq!(result.is_error, Some(true));
        let text = &result.content[0].as_text().unwrap().text;
        assert_eq!(text, "Invalid arguments for tool `encode`:\n- a: missing\n- b: missing");
    }
}
