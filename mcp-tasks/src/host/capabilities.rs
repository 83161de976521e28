//! What clients declare, read once for each kind of client.

use std::sync::{PoisonError, RwLock};

use mcp_tasks_core::{ClientCapabilities, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::extension::TasksExtension;

/// The client capabilities of one request.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredCapabilities {
    /// As text, as records keep it.
    pub(crate) capabilities: ClientCapabilities,
    #[cfg_attr(
        not(any(feature = "http", feature = "stdio")),
        allow(dead_code, reason = "rmcp's handler reads it by itself")
    )]
    pub(crate) extension: TasksExtension,
}

/// The capabilities that came last, by their text. Clients of one kind send the same bytes with every request, so reading
/// them is comparing them with what was read before; and the records of their tasks share one copy.
#[derive(Debug, Default)]
pub(crate) struct CapabilitiesCache(RwLock<Vec<(Box<str>, DeclaredCapabilities)>>);

/// How many kinds of clients are kept: more than a deployment has.
const MAX_ENTRIES: usize = 32;

/// The longest text that is kept, in bytes. With [`MAX_ENTRIES`] of them the memory is bounded.
const MAX_TEXT: usize = 4096;

/// In how many containers the capabilities lie in a request: the message, its params, their `_meta`.
const DEPTH: usize = 3;

impl CapabilitiesCache {
    /// What this JSON text declares; `None` if rmcp would not decode it.
    pub(crate) fn read(&self, text: &str) -> Option<DeclaredCapabilities> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, declared)) = entries.iter().find(|(known, _)| **known == *text) {
            return Some(declared.clone());
        }
        drop(entries);
        let mut declared = decode(text)?;
        if text.len() <= MAX_TEXT {
            let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let same = |(_, known): &&(_, DeclaredCapabilities)| known.capabilities == declared.capabilities;
            if let Some((_, known)) = entries.iter().find(same) {
                declared = known.clone();
            }
            if entries.len() >= MAX_ENTRIES {
                entries.remove(0);
            }
            entries.push((text.into(), declared.clone()));
        }
        Some(declared)
    }

    /// Capabilities that rmcp has decoded, as records keep them.
    pub(crate) fn share(&self, declared: &impl Serialize) -> ClientCapabilities {
        // They are a JSON object already, which has a JSON form.
        let json = Json::of(declared).unwrap_or_else(|_| Json::from(serde_json::value::RawValue::NULL.to_owned()));
        match self.read(json.get()) {
            Some(declared) => declared.capabilities,
            None => ClientCapabilities::new(json),
        }
    }
}

fn decode(text: &str) -> Option<DeclaredCapabilities> {
    // As deep as it lay in its request: what is nested too deeply there is so here.
    let nested = format!("{}{text}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let [[[value]]]: [[[Value; 1]; 1]; 1] = serde_json::from_str(&nested).ok()?;
    rmcp::model::ClientCapabilities::deserialize(&value).ok()?;
    Some(DeclaredCapabilities {
        capabilities: ClientCapabilities::new(Json::of(&value).ok()?),
        extension: TasksExtension::of(&value),
    })
}

#[cfg(test)]
mod tests {
    use rmcp::model::TASKS_EXTENSION_ID;

    use super::*;

    fn read(cache: &CapabilitiesCache, text: &str) -> Option<bool> {
        let declared = cache.read(text)?;
        Some(declared.extension.is_declared().unwrap())
    }

    #[test]
    fn only_an_object_under_the_identifier_declares_the_extension() {
        let cache = CapabilitiesCache::default();
        let extension = |value: &str| format!(r#"{{"extensions":{{"{TASKS_EXTENSION_ID}":{value}}}}}"#);
        for _ in 0..2 {
            assert_eq!(read(&cache, &extension("{}")), Some(true));
            assert_eq!(read(&cache, "{}"), Some(false));
            assert_eq!(read(&cache, r#"{"extensions":{"other":{}}}"#), Some(false));
            assert_eq!(read(&cache, &extension(r#"{"revision":"2026-07-28"}"#)), Some(true));
            for other in [r#""2027-01-01""#, "1", "null"] {
                assert_eq!(
                    read(&cache, &extension(&format!(r#"{{"revision":{other}}}"#))),
                    Some(false),
                    "{other}"
                );
            }
            for value in ["true", "[]", "1", "\"\""] {
                assert_eq!(read(&cache, &extension(value)), None, "{value}");
            }
            assert_eq!(read(&cache, "[]"), None);
            assert_eq!(read(&cache, r#"{"x":"\ud800"}"#), None);
        }
    }

    #[test]
    fn records_share_one_copy_whichever_way_the_request_came() {
        let cache = CapabilitiesCache::default();
        let by_text = cache.read(r#"{ "elicitation": {} }"#).unwrap().capabilities;
        let by_value = cache.share(&serde_json::json!({"elicitation": {}}));
        assert!(std::ptr::eq(by_text.as_json().get(), by_value.as_json().get()));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = CapabilitiesCache::default();
        for n in 0..1000 {
            assert_eq!(
                read(&cache, &format!(r#"{{"experimental":{{"x":{{"n":{n}}}}}}}"#)),
                Some(false)
            );
        }
        assert_eq!(cache.0.read().unwrap().len(), MAX_ENTRIES);
        let long = format!(r#"{{"experimental":{{"x":{{"n":"{}"}}}}}}"#, "x".repeat(MAX_TEXT));
        assert_eq!(read(&cache, &long), Some(false));
        assert!(cache.0.read().unwrap().iter().all(|(text, _)| text.len() <= MAX_TEXT));
    }
}
