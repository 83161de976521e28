//! What clients declare, looked at once for each kind of client.

use std::sync::{PoisonError, RwLock};

use mcp_tasks_core::Json;
use rmcp::model::{ClientCapabilities, TASKS_EXTENSION_ID};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What the capabilities of one request come to.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// As text, as records keep it.
    pub(super) json: Json,
    /// Whether the Tasks extension is declared.
    pub(super) tasks: bool,
}

/// The capabilities that came last, by their text. Clients of one kind send the same bytes with every request, so looking at
/// them is comparing them with what was looked at before.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<Vec<(Box<str>, Declared)>>);

/// How many kinds of clients are kept: more than a deployment has.
const MOST: usize = 32;

/// The longest text that is kept, in bytes. With [`MOST`] of them the memory is bounded.
const LONGEST: usize = 4096;

/// In how many containers the capabilities lie in a request: the message, its params, their `_meta`.
const DEPTH: usize = 3;

impl Known {
    /// What is declared; `None` if it is nothing that can be made sense of.
    pub(super) fn look(&self, text: &RawValue) -> Option<Declared> {
        let text = text.get();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, declared)) = known.iter().find(|(known, _)| **known == *text) {
            return Some(declared.clone());
        }
        drop(known);
        let declared = declared(text)?;
        if text.len() <= LONGEST {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.remove(0);
            }
            known.push((text.into(), declared.clone()));
        }
        Some(declared)
    }
}

fn declared(text: &str) -> Option<Declared> {
    // As deep as it lay in its request: what is nested too deeply there is so here.
    let nested = format!("{}{text}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let [[[value]]]: [[[Value; 1]; 1]; 1] = serde_json::from_str(&nested).ok()?;
    let typed = ClientCapabilities::deserialize(&value).ok()?;
    Some(Declared {
        json: Json::of(&value).ok()?,
        tasks: typed.supports_tasks()
            && value
                .get("extensions")
                .and_then(|extensions| extensions.get(TASKS_EXTENSION_ID))
                .is_some_and(Value::is_object),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(known: &Known, text: &str) -> Option<bool> {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        known.look(&raw).map(|declared| declared.tasks)
    }

    #[test]
    fn only_an_object_under_the_identifier_declares_the_extension() {
        let known = Known::default();
        let extension = |value: &str| format!(r#"{{"extensions":{{"{TASKS_EXTENSION_ID}":{value}}}}}"#);
        for _ in 0..2 {
            assert_eq!(look(&known, &extension("{}")), Some(true));
            assert_eq!(look(&known, "{}"), Some(false));
            assert_eq!(look(&known, r#"{"extensions":{"other":{}}}"#), Some(false));
            for value in ["true", "[]", "1", "\"\""] {
                assert_eq!(look(&known, &extension(value)), None, "{value}");
            }
            assert_eq!(look(&known, "[]"), None);
            assert_eq!(look(&known, r#"{"x":"\ud800"}"#), None);
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let known = Known::default();
        for n in 0..1000 {
            assert_eq!(
                look(&known, &format!(r#"{{"experimental":{{"x":{{"n":{n}}}}}}}"#)),
                Some(false)
            );
        }
        assert_eq!(known.0.read().unwrap().len(), MOST);
        let long = format!(r#"{{"experimental":{{"x":{{"n":"{}"}}}}}}"#, "x".repeat(LONGEST));
        assert_eq!(look(&known, &long), Some(false));
        assert!(known.0.read().unwrap().iter().all(|(text, _)| text.len() <= LONGEST));
    }
}
