//! The saved form of a task, for another process to resume it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DetailedTask, InputRequest};
use mcp_tasks_core::{TaskId, Timestamp};

/// A task as it can be stored in a file: enough to go on in another process.
///
/// It holds answers that the server has not taken yet, and so may hold what a user typed; keep it as private as that.
/// It holds no token.
///
/// ```
/// use mcp_tasks::client::SavedTask;
///
/// let saved = SavedTask::new("786512e2");
/// let text = serde_json::to_string(&saved)?;
/// let again: SavedTask = serde_json::from_str(&text)?;
/// assert_eq!(again.id().as_str(), "786512e2");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedTask {
    task_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// When the client learned of it, by the client's clock: the server's may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<String, Answer>,
}

/// A question that was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// What was asked: another request under the same key is another question.
    request: Value,
    /// What is to be sent, and sent again if the server loses it. Gone once the server shows the question no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    /// Whether the server has acknowledged it.
    #[serde(default)]
    acknowledged: bool,
}

impl SavedTask {
    /// A task of which nothing is known but its id.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            task_id: id.into(),
            server: None,
            endpoint: None,
            tool: None,
            created_at: None,
            ttl_ms: None,
            poll_interval_ms: None,
            answers: BTreeMap::new(),
        }
    }

    pub(super) fn created(
        task: &DetailedTask,
        tool: &str,
        server: Option<String>,
        endpoint: Option<String>,
        now: Timestamp,
    ) -> Self {
        let mut saved = Self::new(task.id.as_str());
        saved.server = server;
        saved.endpoint = endpoint;
        saved.tool = Some(tool.to_owned());
        saved.created_at = Some(now);
        saved.update_times(task);
        saved
    }

    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId::new(&self.task_id)
    }

    /// The name of its server, as the server gave it.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Where the server was reached: its URL, if it has one.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// The tool that was called.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// When it was created, by this client's clock.
    #[must_use]
    pub const fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }

    /// How long the server keeps it, from its creation. `None` if that is unlimited, or not known.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl_ms.map(Duration::from_millis)
    }

    /// Whether its time is over. A server may have given it more since this was saved.
    #[must_use]
    pub fn is_past_due(&self, now: Timestamp) -> bool {
        match (self.created_at, self.ttl()) {
            (Some(created), Some(ttl)) => created.saturating_add(ttl) <= now,
            _ => false,
        }
    }

    /// The keys of the questions that were answered.
    pub fn answered(&self) -> impl Iterator<Item = &str> {
        self.answers.keys().map(String::as_str)
    }

    pub(super) fn poll_interval(&self) -> Option<Duration> {
        self.poll_interval_ms.map(Duration::from_millis)
    }

    /// Takes over what the server says, and says whether that was new.
    pub(super) fn update_times(&mut self, task: &DetailedTask) -> bool {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let times = (task.ttl.map(millis), task.poll_interval.map(millis));
        let new = times != (self.ttl_ms, self.poll_interval_ms);
        (self.ttl_ms, self.poll_interval_ms) = times;
        new
    }

    /// Forgets the answers to what is not asked any more; that they were given stays known.
    pub(super) fn forget_settled(&mut self, shown: &[InputRequest]) -> bool {
        let mut changed = false;
        for (key, answer) in &mut self.answers {
            if answer.response.is_some() && answer.acknowledged && !shown.iter().any(|request| request.key() == key) {
                answer.response = None;
                changed = true;
            }
        }
        changed
    }

    /// Whether this very question was answered.
    pub(super) fn has_answered(&self, request: &InputRequest) -> bool {
        let known = self.answers.get(request.key());
        if known.is_some_and(|answer| answer.request != *request.raw()) {
            tracing::debug!(
                key = request.key(),
                "the server asks something else under a key it used before"
            );
            return false;
        }
        known.is_some()
    }

    /// How much of what was asked is kept, in bytes.
    pub(super) fn recorded_bytes(&self) -> usize {
        let asked = self.answers.values().map(|answer| &answer.request);
        asked
            .map(|request| serde_json::to_vec(request).map_or(0, |text| text.len()))
            .sum()
    }

    /// Keeps an answer that is to be sent.
    pub(super) fn record_answer(&mut self, request: &InputRequest, response: Value) {
        let answer = Answer {
            request: request.raw().clone(),
            response: Some(response),
            acknowledged: false,
        };
        self.answers.insert(request.key().to_owned(), answer);
    }

    /// The answers to these questions that are there to be sent; with `again`, those too that were acknowledged.
    pub(super) fn unsent_answers(&self, shown: &[InputRequest], again: bool) -> BTreeMap<String, Value> {
        let answers = shown.iter().filter_map(|request| {
            let answer = self.answers.get(request.key())?;
            let wanted = again || !answer.acknowledged;
            let response = answer.response.as_ref().filter(|_| wanted)?;
            Some((request.key().to_owned(), response.clone()))
        });
        answers.collect()
    }

    /// Notes that the server has acknowledged these answers.
    pub(super) fn mark_acknowledged<'k>(&mut self, keys: impl Iterator<Item = &'k String>) {
        for key in keys {
            if let Some(answer) = self.answers.get_mut(key) {
                answer.acknowledged = true;
            }
        }
    }
}

impl From<TaskId> for SavedTask {
    fn from(id: TaskId) -> Self {
        Self::new(id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_past_due_when_its_time_is_over() {
        let mut saved = SavedTask::new("t");
        saved.created_at = Some(Timestamp::from_millis(1000));
        assert!(!saved.is_past_due(Timestamp::MAX));
        saved.ttl_ms = Some(500);
        assert!(!saved.is_past_due(Timestamp::from_millis(1499)));
        assert!(saved.is_past_due(Timestamp::from_millis(1500)));
    }

    #[test]
    fn another_question_under_the_same_key_is_another_question() {
        let ask = |message: &str| InputRequest::decode("ID:1f", &json!({"params": {"message": message}}));
        let mut saved = SavedTask::new("t");
        saved.record_answer(&ask("a"), json!(1));
        assert!(saved.has_answered(&ask("a")));
        assert!(!saved.has_answered(&ask("b")));
    }

    #[test]
    fn an_answer_is_kept_until_its_question_is_gone() {
        let shown = [InputRequest::decode("k", &json!({"method": "roots/list"}))];
        let mut saved = SavedTask::new("t");
        saved.record_answer(&shown[0], json!(1));
        assert_eq!(saved.unsent_answers(&shown, false).len(), 1);
        let mut saved: SavedTask = serde_json::from_value(serde_json::to_value(&saved).unwrap()).unwrap();
        saved.mark_acknowledged(["k".to_owned()].iter());
        assert!(saved.unsent_answers(&shown, false).is_empty());
        assert_eq!(saved.unsent_answers(&shown, true).len(), 1);
        assert!(saved.forget_settled(&[]));
        assert!(saved.unsent_answers(&shown, true).is_empty());
        assert!(saved.has_answered(&shown[0]));
    }
}
