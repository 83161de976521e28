//! How a tool fails.

use std::error::Error;
use std::fmt;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::tool::elicit_error::ElicitError;

/// How a tool fails: with a result the model reads, or with a JSON-RPC error.
///
/// Like `anyhow::Error` it does not implement [`std::error::Error`], so that `?` turns every error into one:
///
/// ```standalone_crate
/// use mcp_tasks::{ToolError, mcp_tool};
///
/// #[mcp_tool]
/// async fn lines(path: String) -> Result<String, ToolError> {
///     let text = std::fs::read_to_string(&path)?;
///     if text.is_empty() {
///         return Err(ToolError::new("the file is empty"));
///     }
///     Ok(text.lines().count().to_string())
/// }
/// ```
///
/// An error that comes through `?` becomes a result with `isError` and the text of the error and its sources, joined
/// by `: `. If an [`rmcp::ErrorData`] or a question that could not be asked is anywhere in that chain, it decides instead.
///
/// What the client gets is the text as it is, so an error with secrets in it has to be replaced before it is returned.
pub struct ToolError {
    // Boxed, because it is in every `Result` that a tool returns.
    kind: Box<Kind>,
}

#[derive(Debug)]
enum Kind {
    Result(CallToolResult),
    Protocol(ErrorData),
}

impl ToolError {
    /// A result with `isError` whose text is the message. A task that ends with it is `completed`.
    #[must_use]
    pub fn new(message: impl fmt::Display) -> Self {
        Self::result(CallToolResult::error(vec![ContentBlock::text(message.to_string())]))
    }

    /// A result with any content; `isError` is set. A task that ends with it is `completed`.
    #[must_use]
    pub fn result(mut result: CallToolResult) -> Self {
        result.is_error = Some(true);
        Self {
            kind: Box::new(Kind::Result(result)),
        }
    }

    /// A JSON-RPC error. A task that ends with it is `failed`.
    #[must_use]
    pub fn protocol(error: ErrorData) -> Self {
        Self {
            kind: Box::new(Kind::Protocol(error)),
        }
    }

    /// From a boxed error or what turns into one, such as `anyhow::Error`, which `?` cannot convert.
    ///
    /// ```
    /// # use mcp_tasks::ToolError;
    /// let boxed: Box<dyn std::error::Error + Send + Sync> = "out of paper".into();
    /// assert_eq!(ToolError::from_boxed(boxed).to_string(), "out of paper");
    /// ```
    #[must_use]
    pub fn from_boxed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::from_chain(&*error.into())
    }

    /// The answer: `Ok` holds a result with `isError`, `Err` a JSON-RPC error.
    ///
    /// # Errors
    ///
    /// The error given to [`protocol`](Self::protocol), or found in the chain of the error this was made from.
    pub fn into_outcome(self) -> Result<CallToolResult, ErrorData> {
        match *self.kind {
            Kind::Result(result) => Ok(result),
            Kind::Protocol(error) => Err(error),
        }
    }

    fn from_chain(error: &(dyn Error + 'static)) -> Self {
        let mut message = String::new();
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(data) = error.downcast_ref::<ErrorData>() {
                return Self::protocol(data.clone());
            }
            if let Some(data) = error.downcast_ref::<ElicitError>().and_then(ElicitError::to_error_data) {
                return Self::protocol(data);
            }
            let text = error.to_string();
            // Many errors print their source themselves; a second time would be noise.
            if message.is_empty() {
                message = text;
            } else if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            next = error.source();
        }
        Self::new(message)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::from_chain(&error)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Protocol(error) => f.write_str(&error.message),
            Kind::Result(result) => {
                let mut texts = result.content.iter().filter_map(ContentBlock::as_text);
                match texts.next() {
                    Some(first) => f.write_str(&first.text)?,
                    None => f.write_str("the tool failed")?,
                }
                texts.try_for_each(|block| write!(f, "\n{}", block.text))
            }
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.kind).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot publish")]
    struct Publish<E: Error + 'static>(#[source] E);

    fn question_mark<E>(error: E) -> ToolError
    where
        ToolError: From<E>,
    {
        fn inner<E>(error: E) -> Result<(), ToolError>
        where
            ToolError: From<E>,
        {
            Err(error)?;
            Ok(())
        }
        inner(error).unwrap_err()
    }

    #[test]
    fn an_error_becomes_a_result_with_its_chain_as_text() {
        let error = question_mark(Publish(io::Error::other("disk full")));
        assert_eq!(error.to_string(), "cannot publish: disk full");
        let result = error.into_outcome().unwrap();
        assert_eq!(result.is_error, Some(true));
    }

    #[test]
    fn a_protocol_error_anywhere_in_the_chain_decides() {
        let deep = Publish(Publish(ErrorData::invalid_params("no such page", None)));
        let error = question_mark(deep).into_outcome().unwrap_err();
        assert_eq!(error.message, "no such page");
    }

    #[test]
    fn a_question_that_cannot_be_asked_anywhere_in_the_chain_decides() {
        let deep = Publish(ElicitError::NotSupported {
            kind: crate::context::InputKind::Form,
        });
        assert!(question_mark(deep).into_outcome().is_err());
    }

    #[test]
    fn a_tool_error_passes_through_the_question_mark_unchanged() {
        let error = question_mark(ToolError::protocol(ErrorData::internal_error("x", None)));
        assert!(error.into_outcome().is_err());
    }

    #[test]
    fn a_given_result_is_an_error_result() {
        let result = CallToolResult::success(vec![ContentBlock::text("half done")]);
        assert_eq!(ToolError::result(result).into_outcome().unwrap().is_error, Some(true));
    }
}
