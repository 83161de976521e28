//! An open question, as the record keeps it.

use serde::{Deserialize, Serialize};

use crate::Json;
use crate::ledger::{Fingerprint, InputKind};

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequest {
    /// Which call on the context asked it.
    pub ordinal: u32,
    /// The key it is published under, unique over the task's life.
    pub key: Box<str>,
    /// What it asks of the client.
    pub kind: InputKind,
    /// The hash of what the body asked.
    pub fingerprint: Fingerprint,
    /// The request as it goes to the client: `method` and `params`.
    pub request: Json,
    /// The request as the body put it, where `request` says in front of it why an earlier answer did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Json>,
    /// How many calls the body had made when the task was parked.
    pub issued: u32,
    /// How many answers to it did not fit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub misfits: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl InputRequest {
    /// A question asked for the first time.
    #[must_use]
    pub const fn new(ordinal: u32, key: Box<str>, kind: InputKind, fingerprint: Fingerprint, request: Json) -> Self {
        Self {
            ordinal,
            key,
            kind,
            fingerprint,
            request,
            original: None,
            issued: 0,
            misfits: 0,
        }
    }
}
