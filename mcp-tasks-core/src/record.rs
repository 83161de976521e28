//! The record of a task: all that is kept of it between two executions.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use crate::duration::whole_millis as millis;
use crate::{ClientCapabilities, Fingerprint, InputRequest, Json, Ledger, Principal, TaskId, Timestamp, WriteId};

/// The newest format this release reads and writes. A change that an older reader would misread raises it.
///
/// A record is written in the oldest format that can say what it says, so that nodes of an earlier release go on with
/// everything that is not new to them:
///
/// | format | for |
/// |---|---|
/// | 1 | every record that is not of another format |
/// | 2 | a working task that no node runs ([`Execution::idle`]): an earlier release would read it as one whose node died, and fail it |
pub const FORMAT: u32 = 2;

/// The format of a record in which nothing is newer.
const FIRST_FORMAT: u32 = 1;

/// The status of a task (Tasks extension, "Task Status").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The body runs, or is about to.
    Working,
    /// The task waits for answers and needs no process.
    InputRequired,
    /// There is a result, `isError` included.
    Completed,
    /// There is a JSON-RPC error.
    Failed,
    /// The client cancelled it.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing changes any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why no node runs a working task, though no node died.
///
/// From its [`lease_until`](Execution::lease_until) on, any node may [claim](TaskRecord::claimed) it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Idle {
    /// The body waits until an instant, and needs no process until then.
    Asleep,
    /// Any node that has its tool may claim it, and none has yet.
    Unclaimed,
}

/// Which node runs the task, and in which execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Execution {
    /// Counts executions from 1; 0 before the first. Every write of an execution names the epoch it was started with and
    /// changes nothing once the record has moved on to another.
    pub epoch: u64,
    /// The node that runs it; absent when none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// The last instant at which no other node may claim it: until then its node holds the lease, or it is
    /// [idle](Self::idle).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Why no node runs it; absent while one does, and where none has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// W3C trace context of the call, so that later executions continue its trace (SEP-414).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceContext {
    /// The `traceparent` value.
    pub traceparent: Box<str>,
    /// The `tracestate` value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<Box<str>>,
}

impl TraceContext {
    /// A trace context as the call's `_meta` gave it.
    #[must_use]
    pub const fn new(traceparent: Box<str>, tracestate: Option<Box<str>>) -> Self {
        Self {
            traceparent,
            tracestate,
        }
    }
}

/// A task, whole.
///
/// It is stored data: what one release writes, every later release reads. Changes are made by the transitions (the
/// methods in "Transitions" below), which are total: a terminal record, or one that another execution owns, stays as it
/// is. A store stamps [`version`](Self::version) and [`last_write`](Self::last_write).
///
/// `lastUpdatedAt` moves with every change a client can see and with nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRecord {
    /// The format it is written in, see [`FORMAT`]; kept right by the transitions.
    pub format: u32,
    /// The task's id.
    pub task_id: TaskId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The `version` of the tool's attribute when the task was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_version: Option<Arc<str>>,
    /// The hash of the tool's input schema when the task was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Fingerprint>,
    /// The arguments of the call: a JSON object.
    pub arguments: Json,
    /// The owner; absent where callers are anonymous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<Principal>>,
    /// What the client of the request that triggered the present execution can be asked.
    pub client_capabilities: ClientCapabilities,
    /// The trace the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceContext>>,
    /// The status.
    pub status: TaskStatus,
    /// Words on the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<Box<str>>,
    /// The highest progress any execution reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When the task was created.
    pub created_at: Timestamp,
    /// When a client could last see a change.
    pub last_updated_at: Timestamp,
    /// Time to live from creation, in milliseconds; absent for a task that never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How often clients should poll, in milliseconds.
    pub poll_interval_ms: u64,
    /// The answers and results that the body has got so far. Empty once the task is terminal.
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub ledger: Ledger,
    /// The questions that wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<InputRequest>,
    /// The result of a completed task: a JSON object as it goes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The JSON-RPC error of a failed task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
    /// Which node runs it.
    pub execution: Execution,
    /// Counts the writes from 1; stamped by the store.
    pub version: u64,
    /// The write that made this version; stamped by the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write: Option<WriteId>,
}

/// A stored record that this release cannot read. The record itself is to be left alone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A later release wrote it.
    #[error(
        "the record is of format {found}, and this release reads formats up to {FORMAT}: upgrade this node, the record was left as it is"
    )]
    #[non_exhaustive]
    NewerFormat {
        /// The format it is in.
        found: u32,
    },
    /// It is not a record.
    #[error("the record cannot be read")]
    Corrupt(#[source] serde_json::Error),
}

impl TaskRecord {
    /// A task that works, in its first execution, not stored yet.
    ///
    /// `ttl` is cut to whole milliseconds; `None` never expires.
    #[must_use]
    pub fn new(
        task_id: TaskId,
        tool: Arc<str>,
        arguments: Json,
        client_capabilities: ClientCapabilities,
        now: Timestamp,
        ttl: Option<Duration>,
        poll_interval: Duration,
    ) -> Self {
        Self {
            format: FIRST_FORMAT,
            task_id,
            tool,
            body_version: None,
            input_schema: None,
            arguments,
            principal: None,
            client_capabilities,
            trace: None,
            status: TaskStatus::Working,
            status_message: None,
            progress: None,
            created_at: now,
            last_updated_at: now,
            ttl_ms: ttl.map(millis),
            poll_interval_ms: millis(poll_interval),
            ledger: Ledger::default(),
            open: Vec::new(),
            result: None,
            error: None,
            execution: Execution {
                epoch: 1,
                node: None,
                lease_until: None,
                idle: None,
            },
            version: 0,
            last_write: None,
        }
    }

    /// Sets which node runs the task, or why none does, and the format that this needs.
    pub(crate) fn set_execution(&mut self, execution: Execution) {
        self.format = match execution.idle {
            None => FIRST_FORMAT,
            Some(Idle::Asleep | Idle::Unclaimed) => 2,
        };
        self.execution = execution;
    }

    /// The last instant at which the task is there: creation plus time to live. Absent for one that never expires.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.ttl_ms
            .map(|ttl| self.created_at.saturating_add(Duration::from_millis(ttl)))
    }

    /// Whether the deadline has passed. At the deadline itself the task is still there.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.deadline().is_some_and(|deadline| now > deadline)
    }

    /// The record as stored: compact JSON.
    ///
    /// # Errors
    /// Never for a record that was built by this crate; the signature leaves room for a store's own error handling.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// [`RecordError::NewerFormat`] for a record of a later release, [`RecordError::Corrupt`] for anything else that is
    /// not a record.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Probe {
            format: u32,
        }
        match serde_json::from_str::<Self>(text) {
            Ok(record) if (1..=FORMAT).contains(&record.format) => Ok(record),
            Ok(record) if record.format == 0 => {
                Err(RecordError::Corrupt(serde::de::Error::custom("there is no format 0")))
            }
            Ok(record) => Err(RecordError::NewerFormat { found: record.format }),
            Err(error) => match serde_json::from_str::<Probe>(text) {
                Ok(Probe { format }) if format > FORMAT => Err(RecordError::NewerFormat { found: format }),
                _ => Err(RecordError::Corrupt(error)),
            },
        }
    }

    /// Reads a stored record from bytes.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json); [`RecordError::Corrupt`] for bytes that are not UTF-8.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        let text = std::str::from_utf8(bytes).map_err(|error| RecordError::Corrupt(serde::de::Error::custom(error)))?;
        Self::from_json(text)
    }
}
