//! From what a function returns to the result of a call.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::tool::error::ToolError;
use crate::tool::schema::OutputSchema;

/// What a tool can return, alone or in a `Result`.
///
/// It is implemented for every type that is `Serialize + JsonSchema`:
///
/// | returned | the result of the call |
/// |---|---|
/// | `String`, `&'static str`, `Cow<'static, str>`, `Box<str>`, `Arc<str>` | the text |
/// | `()` | no content |
/// | [`ContentBlock`], `Vec<ContentBlock>` | that content |
/// | [`CallToolResult`] | itself |
/// | anything else | structured content, with an output schema, and its JSON as text for clients that show text |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a tool",
    label = "not `Serialize + JsonSchema`",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for a type of your own, or return text or a `CallToolResult`"
)]
pub trait ToolOutput: Serialize + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + 'static> ToolOutput for T {}

/// What a tool can fail with: every error, and [`ToolError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "does not turn into `ToolError`",
    note = "implement `std::error::Error` for it, or return `Result<_, ToolError>` and use `?`; for `anyhow::Error` and `Box<dyn Error>` use `.map_err(ToolError::from_boxed)?`"
)]
pub trait ToolFailure: Into<ToolError> {}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> ToolFailure for E {}

/// How generated code describes and converts the return type `R` of a function.
pub struct OutputFunctions<R> {
    describe: fn(&mut OutputSchema),
    convert: fn(R) -> Result<CallToolResult, ToolError>,
}

impl<R> OutputFunctions<R> {
    /// Describes the output schema.
    pub fn describe(&self, schema: &mut OutputSchema) {
        (self.describe)(schema);
    }

    /// Turns a returned value into the result of the call.
    ///
    /// # Errors
    ///
    /// The error the function returned, or the value could not be written as JSON.
    pub fn convert(&self, returned: R) -> Result<CallToolResult, ToolError> {
        (self.convert)(returned)
    }
}

impl<R> fmt::Debug for OutputFunctions<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputFunctions").finish_non_exhaustive()
    }
}

/// Tells a `Result` from all other return types by its type, so that aliases of it are known too.
///
/// `Returned::<R>::new().functions()` finds the method below for a `Result`, and by dereferencing that of `Plain` for
/// all else: no trait has to be in scope for it.
pub struct Returned<R>(Plain<R>);

/// See [`Returned`].
pub struct Plain<R>(PhantomData<fn() -> R>);

impl<R> Returned<R> {
    /// For generated code.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub const fn new() -> Self {
        Self(Plain(PhantomData))
    }
}

impl<T, E> Returned<Result<T, E>> {
    /// For a function that can fail.
    #[must_use]
    pub fn functions(&self) -> OutputFunctions<Result<T, E>>
    where
        T: ToolOutput,
        E: ToolFailure,
    {
        OutputFunctions {
            describe: describe::<T>,
            convert: |returned| returned.map_err(Into::into).and_then(convert),
        }
    }
}

impl<T> Plain<T> {
    /// For a function that cannot fail.
    #[must_use]
    pub fn functions(&self) -> OutputFunctions<T>
    where
        T: ToolOutput,
    {
        OutputFunctions {
            describe: describe::<T>,
            convert: convert::<T>,
        }
    }
}

impl<R> Deref for Returned<R> {
    type Target = Plain<R>;

    fn deref(&self) -> &Plain<R> {
        &self.0
    }
}

impl<R> fmt::Debug for Returned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Returned")
    }
}

impl<R> fmt::Debug for Plain<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plain")
    }
}

fn describe<T: ToolOutput>(schema: &mut OutputSchema) {
    let unstructured = [
        TypeId::of::<()>(),
        TypeId::of::<String>(),
        TypeId::of::<&'static str>(),
        TypeId::of::<Cow<'static, str>>(),
        TypeId::of::<Box<str>>(),
        TypeId::of::<Arc<str>>(),
        TypeId::of::<ContentBlock>(),
        TypeId::of::<Vec<ContentBlock>>(),
        TypeId::of::<CallToolResult>(),
    ];
    if !unstructured.contains(&TypeId::of::<T>()) {
        schema.structured::<T>();
    }
}

fn convert<T: ToolOutput>(value: T) -> Result<CallToolResult, ToolError> {
    let text = |text: String| Ok(CallToolResult::success(vec![ContentBlock::text(text)]));
    // Stable Rust has no specialisation; a downcast to each known type costs a few comparisons per call.
    let mut slot = Some(value);
    let slot: &mut dyn Any = &mut slot;
    if let Some(result) = take_as::<CallToolResult>(slot) {
        return Ok(result);
    }
    if let Some(value) = take_as::<String>(slot) {
        return text(value);
    }
    if let Some(value) = take_as::<&'static str>(slot) {
        return text(value.to_owned());
    }
    if let Some(value) = take_as::<Cow<'static, str>>(slot) {
        return text(value.into_owned());
    }
    if let Some(value) = take_as::<Box<str>>(slot) {
        return text(value.into_string());
    }
    if let Some(value) = take_as::<Arc<str>>(slot) {
        return text(value.as_ref().to_owned());
    }
    if take_as::<()>(slot).is_some() {
        return Ok(CallToolResult::success(Vec::new()));
    }
    if let Some(block) = take_as::<ContentBlock>(slot) {
        return Ok(CallToolResult::success(vec![block]));
    }
    if let Some(blocks) = take_as::<Vec<ContentBlock>>(slot) {
        return Ok(CallToolResult::success(blocks));
    }
    let written = take_as::<T>(slot).map(serde_json::to_value);
    match written {
        Some(Ok(value)) => Ok(CallToolResult::structured(value)),
        Some(Err(error)) => Err(unwritable(&error)),
        // Every branch above that takes the value returns.
        None => Err(unwritable(&"already taken")),
    }
}

fn take_as<U: 'static>(slot: &mut dyn Any) -> Option<U> {
    slot.downcast_mut::<Option<U>>()?.take()
}

/// The author's mistake, not the caller's: a map with keys that are no text, for one.
fn unwritable(error: &dyn fmt::Display) -> ToolError {
    let message = format!("the value the tool returned cannot be written as JSON: {error}");
    ToolError::protocol(ErrorData::internal_error(message, None))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn texts(result: &CallToolResult) -> Vec<&str> {
        result
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .map(|text| text.text.as_str())
            .collect()
    }

    fn schema<T: ToolOutput>() -> Option<Value> {
        let mut schema = OutputSchema::default();
        describe::<T>(&mut schema);
        schema.finish().map(Value::Object)
    }

    #[test]
    fn text_types_are_text_and_have_no_schema() {
        fn check<T: ToolOutput>(value: T) {
            assert_eq!(texts(&convert(value).unwrap()), ["hi"]);
            assert_eq!(schema::<T>(), None);
        }
        check("hi");
        check("hi".to_owned());
        check(Cow::Borrowed("hi"));
        check(Box::<str>::from("hi"));
        check(Arc::<str>::from("hi"));
        check(ContentBlock::text("hi"));
        check(vec![ContentBlock::text("hi")]);
        check(CallToolResult::success(vec![ContentBlock::text("hi")]));
    }

    #[test]
    fn nothing_is_no_content() {
        assert!(convert(()).unwrap().content.is_empty());
        assert_eq!(schema::<()>(), None);
    }

    #[test]
    fn all_else_is_structured_with_its_json_as_text() {
        let result = convert(vec![1_u8, 2]).unwrap();
        assert_eq!(result.structured_content, Some(json!([1, 2])));
        assert_eq!(texts(&result), ["[1,2]"]);
        let items = json!({"type": "integer", "minimum": 0, "maximum": 255});
        assert_eq!(schema::<Vec<u8>>(), Some(json!({"type": "array", "items": items})));
        assert_eq!(schema::<Value>(), None);
    }

    #[test]
    fn a_value_that_json_cannot_hold_is_a_protocol_error() {
        let error = convert(BTreeMap::from([(vec![1], 1)])).unwrap_err();
        assert!(error.into_outcome().is_err());
    }

    #[test]
    fn a_result_is_known_by_its_type() {
        type Alias = Result<String, ToolError>;
        let functions = Returned::<Alias>::new().functions();
        assert_eq!(texts(&functions.convert(Ok("hi".to_owned())).unwrap()), ["hi"]);
        assert!(functions.convert(Err(ToolError::new("no"))).is_err());
        let mut schema = OutputSchema::default();
        functions.describe(&mut schema);
        assert!(schema.finish().is_none());
        let plain = Returned::<Option<u8>>::new().functions();
        assert_eq!(plain.convert(None).unwrap().structured_content, Some(Value::Null));
    }
}
