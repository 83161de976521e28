//! Who calls, and whether they may.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcp_tasks_core::Principal;
use serde::de::DeserializeOwned;

/// Who called the tool.
///
/// In a task it holds the issuer, the subject and the claims kept when the task was created, the same at every
/// execution. Without authentication it is [anonymous](Self::anonymous).
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    principal: Option<Arc<Principal>>,
}

impl Caller {
    /// A caller without authentication.
    #[must_use]
    pub const fn anonymous() -> Self {
        Self { principal: None }
    }

    /// An authenticated caller.
    #[must_use]
    pub fn from_principal(principal: Principal) -> Self {
        Self {
            principal: Some(Arc::new(principal)),
        }
    }

    /// The authenticated principal, if there is one.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_deref()
    }

    /// The authority that issued the identity: the `iss` of a token.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.principal
            .as_ref()
            .and_then(|principal| principal.issuer.as_deref())
    }

    /// The identity: the `sub` of a token. Unique only together with the issuer.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.principal.as_ref().map(|principal| &*principal.subject)
    }

    /// A kept claim, decoded; `None` if it was not kept or is no `T`.
    #[must_use]
    pub fn claim<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.principal.as_ref().and_then(|principal| principal.claim(name))
    }
}

impl Caller {
    /// The caller a task was created for, as its record has it.
    pub(crate) const fn of_shared(principal: Option<Arc<Principal>>) -> Self {
        Self { principal }
    }

    /// The principal, to be shared with a record.
    pub(crate) fn shared_principal(&self) -> Option<Arc<Principal>> {
        self.principal.clone()
    }
}

/// Shows who it is; claims can hold personal data and stay out of logs.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("issuer", &self.issuer())
            .field("subject", &self.subject())
            .finish_non_exhaustive()
    }
}

/// A guard's refusal. The client sees `Forbidden: ` and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Denied {
    reason: String,
}

impl Denied {
    /// A refusal; the reason is shown to the client.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A `guard = path` function, boxed by the attribute; written as `async fn(&Caller) -> Result<(), Denied>`.
pub type Guard = for<'a> fn(&'a Caller) -> Pin<Box<dyn Future<Output = Result<(), Denied>> + Send + 'a>>;

#[cfg(test)]
mod tests {
    use mcp_tasks_core::Json;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kept_claim_is_decoded_and_not_shown_in_logs() {
        let claims = Json::of(&json!({"email": "a@example.org", "level": 3})).unwrap();
        let caller = Caller::from_principal(Principal::new("alice").with_claims(claims));
        assert_eq!(caller.claim::<String>("email").as_deref(), Some("a@example.org"));
        assert_eq!(caller.claim::<String>("level"), None);
        assert_eq!(caller.claim::<u8>("age"), None);
        assert!(!format!("{caller:?}").contains("example"));
    }

    #[test]
    fn an_anonymous_caller_has_nothing() {
        let caller = Caller::anonymous();
        assert_eq!((caller.issuer(), caller.subject()), (None, None));
        assert_eq!(caller.claim::<String>("email"), None);
    }
}
