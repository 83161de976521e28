//! The engine and the sealed state without a wire, for the benchmarks and the fuzzer of the project.

use std::sync::Arc;

use serde_json::Value;

use crate::tool::caller::Caller;

/// The engine without a wire in front of it, for the project's own benchmarks.
#[derive(Debug, Clone)]
pub struct Direct(crate::TaskRuntime);

impl Direct {
    /// The engine of `runtime`.
    #[must_use]
    pub const fn new(runtime: crate::TaskRuntime) -> Self {
        Self(runtime)
    }

    fn client() -> Result<crate::run::origin::RequestOrigin, serde_json::Error> {
        Ok(crate::run::origin::RequestOrigin {
            caller: Caller::anonymous(),
            capabilities: serde_json::from_str(r#"{"elicitation":{}}"#)?,
            trace: None,
        })
    }

    /// Creates a task, as a `tools/call` whose checks are done would.
    pub async fn create(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<Arc<mcp_tasks_core::TaskRecord>, Box<dyn std::error::Error + Send + Sync>> {
        let engine = &self.0.engine;
        let tool = engine.registry().get(tool).ok_or("no such tool")?;
        let new = crate::task::NewTask {
            tool,
            arguments: mcp_tasks_core::Json::of(arguments)?,
            client: Self::client()?,
            before: None,
        };
        Ok(engine.create(new).await?)
    }

    /// Looks a task up, as `tasks/get` does.
    pub async fn get(&self, id: &mcp_tasks_core::TaskId) -> Result<Arc<mcp_tasks_core::TaskRecord>, rmcp::ErrorData> {
        self.0.engine.get(id, None).await
    }

    /// Answers, as `tasks/update` does.
    pub async fn answer(
        &self,
        id: &mcp_tasks_core::TaskId,
        responses: std::collections::BTreeMap<String, mcp_tasks_core::Json>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.engine.answer(id, &Self::client()?, responses).await?)
    }
}

/// The tokens of synchronous calls, all of one call of one anonymous caller, for the project's own benchmarks and fuzzing.
#[derive(Debug)]
pub struct Tokens(crate::call::request_state::RequestStateCodec);

impl Tokens {
    /// Tokens under `keys`, as the configuration has them.
    pub fn new(keys: &str) -> Result<Self, String> {
        let ttl = std::time::Duration::from_secs(300);
        let keys = crate::config::sealing_keys::SealingKeys::parse(keys)?;
        Ok(Self(crate::call::request_state::RequestStateCodec::new(&keys, ttl)))
    }

    fn binding() -> crate::call::request_state::Binding<'static> {
        crate::call::request_state::Binding {
            principal: None,
            method: "tools/call",
            tool: "tool",
            arguments: mcp_tasks_core::Fingerprint::of("arguments", "", None),
        }
    }

    /// Seals, as a call that asks does.
    pub fn seal(&self, now: mcp_tasks_core::Timestamp, state: &[u8]) -> Result<String, Box<dyn std::error::Error>> {
        Ok(self.0.seal(&Self::binding(), now, state)?)
    }

    /// Opens, as a call that is retried does.
    #[must_use]
    pub fn open(&self, now: mcp_tasks_core::Timestamp, token: &str) -> Option<Vec<u8>> {
        self.0.open(&Self::binding(), now, token).map(|(state, _)| state)
    }
}
