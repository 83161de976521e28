//! The owner of a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Json;

/// The authenticated caller a task belongs to, as the server's authentication layer saw it.
///
/// Two principals are the same owner when issuer and subject are equal. The claims are what the server chose to keep
/// for the tool's use; they may differ from token to token and take no part in the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Principal {
    /// The authority that issued the identity, such as the `iss` claim of a token. The same subject of another issuer is
    /// another principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Arc<str>>,
    /// Who the caller is, such as the `sub` claim of a token.
    pub subject: Arc<str>,
    /// A JSON object of claims for the tool to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Json>,
}

impl Principal {
    /// A principal without an issuer and without claims.
    #[must_use]
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self {
            issuer: None,
            subject: subject.into(),
            claims: None,
        }
    }

    /// Sets the issuer.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<Arc<str>>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Keeps claims for the tool to read, as a JSON object.
    #[must_use]
    pub fn with_claims(mut self, claims: Json) -> Self {
        self.claims = Some(claims);
        self
    }

    /// One claim, decoded; `None` if it is absent or of another type.
    ///
    /// ```
    /// use mcp_tasks_core::{Json, Principal};
    ///
    /// let claims: Json = serde_json::from_str(r#"{"email":"alice@example.com"}"#)?;
    /// let alice = Principal::new("alice").with_claims(claims);
    /// assert_eq!(alice.claim::<String>("email").as_deref(), Some("alice@example.com"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn claim<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let claims: BTreeMap<String, Json> = self.claims.as_ref()?.decode().ok()?;
        claims.get(name)?.decode().ok()
    }

    /// Whether `caller` owns what belongs to `owner`: issuer and subject are equal, or both are anonymous.
    ///
    /// ```
    /// use mcp_tasks_core::Principal;
    ///
    /// let alice = Principal::new("alice").with_issuer("https://id.example");
    /// assert!(Principal::is_owner(Some(&alice), Some(&alice.clone())));
    /// assert!(!Principal::is_owner(Some(&alice), Some(&Principal::new("alice"))));
    /// assert!(!Principal::is_owner(Some(&alice), None));
    /// assert!(Principal::is_owner(None, None));
    /// ```
    #[must_use]
    pub fn is_owner(owner: Option<&Self>, caller: Option<&Self>) -> bool {
        match (owner, caller) {
            (None, None) => true,
            (Some(owner), Some(caller)) => owner.issuer == caller.issuer && owner.subject == caller.subject,
            _ => false,
        }
    }
}
