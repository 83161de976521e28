//! What is asked in a test, and who answers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use mcp_tasks_core::{InputKind, InputRequest, Json};
use serde::Serialize;
use serde_json::{Value, json};

/// A question that the tool asked, as its client would see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TestQuestion {
    key: String,
    kind: InputKind,
    params: Value,
}

impl TestQuestion {
    pub(super) fn of(request: &InputRequest) -> Self {
        let mut whole: Value = request.request.decode().unwrap_or_default();
        Self {
            key: request.key.to_string(),
            kind: request.kind,
            params: whole.get_mut("params").map(Value::take).unwrap_or_default(),
        }
    }

    /// The key it was published under; `confirm~2` for one that is asked again because an answer did not fit.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it asks of the client.
    #[must_use]
    pub const fn kind(&self) -> InputKind {
        self.kind
    }

    /// Its words; with the reason in front where it is asked again, and empty for sampling and roots.
    #[must_use]
    pub fn message(&self) -> &str {
        self.params.get("message").and_then(Value::as_str).unwrap_or_default()
    }

    /// The schema of its form, if it is one.
    #[must_use]
    pub fn schema(&self) -> Option<&Value> {
        self.params.get("requestedSchema")
    }

    /// The parameters of the request that the client gets.
    #[must_use]
    pub const fn params(&self) -> &Value {
        &self.params
    }

    /// The key without what was added when it was asked again.
    fn first_key(&self) -> &str {
        self.key.split_once('~').map_or(&self.key, |(first, _)| first)
    }
}

/// Such as `"confirm" ("3 min. Go?")`.
impl fmt::Display for TestQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.key)?;
        match self.kind {
            InputKind::Form | InputKind::Url => write!(f, " ({:?})", self.message()),
            kind => write!(f, " ({})", kind.method()),
        }
    }
}

/// What the client of a test does with a question.
#[derive(Debug, Clone, PartialEq)]
pub struct TestAnswer(Reply);

#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Accept(Value),
    Decline,
    Cancel,
    Error(String),
}

impl TestAnswer {
    /// Agrees, with this content of the form, which is checked as any client's is. For sampling and roots it is the
    /// whole of what the client returns.
    ///
    /// # Panics
    /// When the content has no JSON form.
    #[track_caller]
    #[must_use]
    pub fn accept(content: impl Serialize) -> Self {
        Self(Reply::Accept(to_value(content)))
    }

    /// Says no.
    #[must_use]
    pub const fn decline() -> Self {
        Self(Reply::Decline)
    }

    /// Closes the question.
    #[must_use]
    pub const fn cancel() -> Self {
        Self(Reply::Cancel)
    }

    /// Answers with an error, as clients with sessions (2025-11-25) can; the tool gets
    /// [`ElicitError::Client`](crate::ElicitError::Client).
    #[must_use]
    pub fn error(detail: impl Into<String>) -> Self {
        Self(Reply::Error(detail.into()))
    }

    /// The entry of `inputResponses`, or the words of the client's error.
    pub(super) fn to_response(&self, kind: InputKind) -> Result<Json, String> {
        let response = match &self.0 {
            Reply::Error(detail) => return Err(detail.clone()),
            Reply::Accept(content) if matches!(kind, InputKind::Form | InputKind::Url) => {
                json!({"action": "accept", "content": content})
            }
            Reply::Accept(whole) => whole.clone(),
            Reply::Decline => json!({"action": "decline"}),
            Reply::Cancel => json!({"action": "cancel"}),
        };
        Ok(super::json_of(&response))
    }
}

#[track_caller]
pub(super) fn to_value(value: impl Serialize) -> Value {
    match serde_json::to_value(value) {
        Ok(value) => value,
        Err(error) => panic!("the value given to the test has no JSON form: {error}"),
    }
}

/// The answers of a test.
#[derive(Clone, Default)]
pub(super) struct Script {
    keyed: BTreeMap<String, VecDeque<TestAnswer>>,
    next: VecDeque<TestAnswer>,
    fallback: Option<Fallback>,
}

type Fallback = Arc<dyn Fn(&TestQuestion) -> Option<TestAnswer> + Send + Sync>;

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("keyed", &self.keyed)
            .field("next", &self.next)
            .field("fallback", &self.fallback.is_some())
            .finish()
    }
}

impl Script {
    pub(super) fn add(&mut self, key: String, answer: TestAnswer) {
        self.keyed.entry(key).or_default().push_back(answer);
    }

    pub(super) fn add_next(&mut self, answer: TestAnswer) {
        self.next.push_back(answer);
    }

    pub(super) fn set_fallback(&mut self, fallback: Fallback) {
        self.fallback = Some(fallback);
    }

    /// The answer to `question`: by its very key, by its first one, the next without a key, by what answers the rest.
    pub(super) fn answer(&mut self, question: &TestQuestion) -> Option<TestAnswer> {
        for key in [question.key(), question.first_key()] {
            if let Some(answer) = self.keyed.get_mut(key).and_then(VecDeque::pop_front) {
                return Some(answer);
            }
        }
        let fallback = || self.fallback.as_ref().and_then(|fallback| fallback(question));
        self.next.pop_front().or_else(fallback)
    }

    /// The answers that nothing was asked for, in words.
    pub(super) fn unused(&self) -> Vec<String> {
        let keyed = self.keyed.iter().flat_map(|(key, answers)| {
            let one = format!("one for the key {key:?}");
            answers.iter().map(move |_| one.clone())
        });
        let next = self.next.iter().map(|_| "one for the next question".to_owned());
        keyed.chain(next).collect()
    }
}
