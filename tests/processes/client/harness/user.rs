//! A user who says yes, and remembers what was asked.

use std::sync::{Arc, Mutex};

use mcp_tasks::Elicited;
use mcp_tasks::client::{FormRequest, InputError, InputHandler, SamplingRequest, UrlRequest};
use mcp_tasks::context::InputKind;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

/// A clone is the same user.
#[derive(Debug, Clone)]
pub(crate) struct User {
    asked: Arc<Mutex<Vec<String>>>,
    /// How many questions the user may answer; the others wait.
    pub(crate) patience: Arc<Semaphore>,
    kinds: Vec<InputKind>,
}

impl User {
    /// Who answers at once.
    pub(crate) fn new() -> Self {
        Self {
            asked: Arc::default(),
            patience: Arc::new(Semaphore::new(1000)),
            kinds: vec![InputKind::Form, InputKind::Url, InputKind::Sampling, InputKind::Roots],
        }
    }

    /// Who answers only when a permit is added to the patience.
    pub(crate) fn slow() -> Self {
        Self {
            patience: Arc::new(Semaphore::new(0)),
            ..Self::new()
        }
    }

    /// Who answers these kinds alone.
    pub(crate) fn of(kinds: &[InputKind]) -> Self {
        Self {
            kinds: kinds.to_vec(),
            ..Self::new()
        }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn think(&self, about: String) {
        self.asked.lock().unwrap().push(about);
        self.patience.acquire().await.unwrap().forget();
    }
}

impl InputHandler for User {
    fn kinds(&self) -> Vec<InputKind> {
        self.kinds.clone()
    }

    async fn form(&self, form: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
        self.think(form.message).await;
        let properties = form.schema["properties"].as_object().unwrap();
        let values = properties.iter().map(|(name, property)| {
            let value = match property["type"].as_str() {
                Some("boolean") => json!(true),
                Some("integer" | "number") => json!(3),
                _ => json!("word"),
            };
            (name.clone(), value)
        });
        Ok(Elicited::Accept(values.collect()))
    }

    async fn url(&self, request: UrlRequest) -> Result<Elicited<()>, InputError> {
        self.think(request.url).await;
        Ok(Elicited::Accept(()))
    }

    async fn sampling(&self, request: SamplingRequest) -> Result<Value, InputError> {
        self.think(request.params["maxTokens"].to_string()).await;
        Ok(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}}))
    }

    async fn roots(&self) -> Result<Value, InputError> {
        self.think("roots".to_owned()).await;
        Ok(json!({"roots": [{"uri": "file:///tmp"}]}))
    }
}
