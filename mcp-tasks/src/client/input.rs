//! Input requests of servers, and the handler that answers them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use mcp_tasks_core::{Elicited, InputKind};

/// One thing a server asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    key: String,
    raw: Value,
}

impl InputRequest {
    pub(super) fn decode(key: &str, raw: &Value) -> Self {
        Self {
            key: key.to_owned(),
            raw: raw.clone(),
        }
    }

    /// The name the server gave it; any text.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Which kind it is; `None` for one that this version does not know.
    #[must_use]
    pub fn kind(&self) -> Option<InputKind> {
        let params = self.raw.get("params");
        match self.raw.get("method")?.as_str()? {
            "elicitation/create" => match params?.get("mode").and_then(Value::as_str) {
                // A form is what has no mode, as in revisions that had only forms.
                None | Some("form") => Some(InputKind::Form),
                Some("url") => Some(InputKind::Url),
                Some(_) => None,
            },
            "sampling/createMessage" => Some(InputKind::Sampling),
            "roots/list" => Some(InputKind::Roots),
            _ => None,
        }
    }

    /// What the user is asked, if it is a question to the user.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.raw.get("params")?.get("message")?.as_str()
    }

    /// The request as the server sent it: `method` and `params`.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.raw
    }

    fn params(&self) -> Map<String, Value> {
        match self.raw.get("params") {
            Some(Value::Object(params)) => params.clone(),
            _ => Map::new(),
        }
    }

    fn text(&self, member: &str) -> String {
        let text = self.raw.get("params").and_then(|params| params.get(member));
        text.and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// A form to be filled in (`elicitation/create`, form mode).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FormRequest {
    /// The name the server gave the question; the method on a connection that gives none.
    pub key: String,
    /// What the user is asked.
    pub message: String,
    /// The JSON Schema of the form: an object with flat properties, in the server's order.
    pub schema: Map<String, Value>,
    /// All params of the request.
    pub params: Map<String, Value>,
}

/// A page to be visited (`elicitation/create`, URL mode).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UrlRequest {
    /// The name the server gave the question; the method on a connection that gives none.
    pub key: String,
    /// What the user is asked.
    pub message: String,
    /// The page. Show it and ask before opening it: it comes from the server.
    pub url: String,
    /// All params of the request.
    pub params: Map<String, Value>,
}

/// A completion to be made by the client's model (`sampling/createMessage`).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// All params of the request: `messages`, `maxTokens` and so on.
    pub params: Map<String, Value>,
}

/// Why a handler has no answer. The question stays open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The handler does not answer this kind.
    #[error("questions of this kind are not answered here")]
    NotSupported,
    /// The question cannot be answered now, for instance because there is no terminal. The wait ends with
    /// [`ClientError::InputNeeded`](super::ClientError::InputNeeded).
    #[error("{0}")]
    Later(String),
}

impl InputError {
    /// The question cannot be answered now, with the reason.
    #[must_use]
    pub fn later(reason: impl fmt::Display) -> Self {
        Self::Later(reason.to_string())
    }
}

/// Answers what servers ask, on behalf of a user.
///
/// A request is handed over once: its key is remembered, and so is the answer until the server has taken it. One question
/// of a task is asked at a time, and one that comes over the connection of a server of 2025-11-25.
///
/// # Cancel safety
/// A future of this trait is dropped when its question is not open any more, because the task has ended or another client
/// has answered, and when the future that waits for the task is dropped. A question without an answer is asked again by
/// the next wait.
///
/// ```
/// use mcp_tasks::client::{Elicited, FormRequest, InputError, InputHandler, InputKind};
/// use serde_json::{Map, Value, json};
///
/// struct Agreeable;
///
/// impl InputHandler for Agreeable {
///     fn kinds(&self) -> Vec<InputKind> {
///         vec![InputKind::Form]
///     }
///
///     async fn form(&self, form: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
///         println!("{}", form.message);
///         Ok(Elicited::Accept(Map::from_iter([("confirm".to_owned(), json!(true))])))
///     }
/// }
/// ```
pub trait InputHandler: Send + Sync + 'static {
    /// The kinds this handler answers. They are what every request declares, so a server asks nothing else.
    fn kinds(&self) -> Vec<InputKind>;

    /// Fills in a form. The answer should fit its schema; the server checks.
    ///
    /// # Errors
    /// [`InputError`] if there is no answer now.
    fn form(&self, form: FormRequest) -> impl Future<Output = Result<Elicited<Map<String, Value>>, InputError>> + Send {
        let _ = form;
        std::future::ready(Err(InputError::NotSupported))
    }

    /// Visits a page; [`Elicited::Accept`] means that the user agreed to.
    ///
    /// # Errors
    /// [`InputError`] if there is no answer now.
    fn url(&self, url: UrlRequest) -> impl Future<Output = Result<Elicited<()>, InputError>> + Send {
        let _ = url;
        std::future::ready(Err(InputError::NotSupported))
    }

    /// Makes a completion; the answer is a `CreateMessageResult`.
    ///
    /// # Errors
    /// [`InputError`] if there is no answer now.
    fn sampling(&self, request: SamplingRequest) -> impl Future<Output = Result<Value, InputError>> + Send {
        let _ = request;
        std::future::ready(Err(InputError::NotSupported))
    }

    /// The client's roots; the answer is a `ListRootsResult`.
    ///
    /// # Errors
    /// [`InputError`] if there is no answer now.
    fn roots(&self) -> impl Future<Output = Result<Value, InputError>> + Send {
        std::future::ready(Err(InputError::NotSupported))
    }
}

/// [`InputHandler`] behind a pointer.
trait DynHandler: Send + Sync {
    fn answer(self: Arc<Self>, request: InputRequest) -> BoxFuture<'static, Result<Value, InputError>>;
}

impl<H: InputHandler> DynHandler for H {
    fn answer(self: Arc<Self>, request: InputRequest) -> BoxFuture<'static, Result<Value, InputError>> {
        Box::pin(async move {
            match request.kind() {
                Some(InputKind::Form) => {
                    let params = request.params();
                    let schema = match params.get("requestedSchema") {
                        Some(Value::Object(schema)) => schema.clone(),
                        _ => Map::new(),
                    };
                    let message = request.text("message");
                    let form = FormRequest {
                        key: request.key,
                        message,
                        schema,
                        params,
                    };
                    Ok(match self.form(form).await? {
                        Elicited::Accept(content) => json!({"action": "accept", "content": content}),
                        Elicited::Decline => json!({"action": "decline"}),
                        Elicited::Cancel => json!({"action": "cancel"}),
                    })
                }
                Some(InputKind::Url) => {
                    let url = UrlRequest {
                        message: request.text("message"),
                        url: request.text("url"),
                        params: request.params(),
                        key: request.key,
                    };
                    Ok(match self.url(url).await? {
                        Elicited::Accept(()) => json!({"action": "accept"}),
                        Elicited::Decline => json!({"action": "decline"}),
                        Elicited::Cancel => json!({"action": "cancel"}),
                    })
                }
                Some(InputKind::Sampling) => {
                    let params = request.params();
                    self.sampling(SamplingRequest { params }).await
                }
                Some(InputKind::Roots) => self.roots().await,
                _ => Err(InputError::NotSupported),
            }
        })
    }
}

/// What a client without a handler is to do, at the end of a sentence.
pub(super) const NO_HANDLER: &str =
    "this client has no input handler: TaskClient::builder().input(handler) gives it one that answers";

/// The handler of a client, and what it can do.
#[derive(Clone)]
pub(super) struct InputSupport {
    handler: Option<Arc<dyn DynHandler>>,
    kinds: Vec<InputKind>,
}

impl fmt::Debug for InputSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InputSupport").field(&self.kinds).finish()
    }
}

impl InputSupport {
    pub(super) const fn none() -> Self {
        Self {
            handler: None,
            kinds: Vec::new(),
        }
    }

    pub(super) fn new(handler: impl InputHandler) -> Self {
        let kinds = handler.kinds();
        Self {
            handler: Some(Arc::new(handler)),
            kinds,
        }
    }

    /// What the client declares: what its handler answers, and, where there are tasks, the extension.
    pub(super) fn capabilities(&self, tasks: bool) -> Value {
        let mut capabilities = Map::new();
        let mut elicitation = Map::new();
        for kind in &self.kinds {
            match kind {
                InputKind::Form => drop(elicitation.insert("form".to_owned(), json!({}))),
                InputKind::Url => drop(elicitation.insert("url".to_owned(), json!({}))),
                InputKind::Sampling => drop(capabilities.insert("sampling".to_owned(), json!({}))),
                InputKind::Roots => drop(capabilities.insert("roots".to_owned(), json!({}))),
                // A kind of a later version has no method in the trait above.
                _ => {}
            }
        }
        if !elicitation.is_empty() {
            capabilities.insert("elicitation".to_owned(), Value::Object(elicitation));
        }
        if tasks {
            let extensions = json!({ rmcp::model::TASKS_EXTENSION_ID: {} });
            capabilities.insert("extensions".to_owned(), extensions);
        }
        Value::Object(capabilities)
    }

    pub(super) const fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// Why [`answer`](Self::answer) gives `None`.
    pub(super) const fn unsupported_reason(&self) -> &'static str {
        match self.has_handler() {
            true => "the client's input handler does not answer this kind",
            false => NO_HANDLER,
        }
    }

    /// The future of an answer; `None` if the handler does not answer this kind.
    pub(super) fn answer(&self, request: &InputRequest) -> Option<BoxFuture<'static, Result<Value, InputError>>> {
        let kind = request.kind()?;
        let handler = self.handler.as_ref().filter(|_| self.kinds.contains(&kind))?;
        Some(handler.clone().answer(request.clone()))
    }
}
