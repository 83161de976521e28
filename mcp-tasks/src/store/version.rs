//! Versions for databases that have none of their own.

use mcp_tasks_core::StoreError;
use mcp_tasks_core::store::CasVersion;

/// A version that no other state of the key has had, even if it was removed in between. Random, because a counter of the
/// database goes back with it, to a backup or to what a replica had received, and would then name two states alike.
pub(super) fn random() -> Result<CasVersion, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable {
        reason: format!("the system's random generator fails: {error}"),
        source: None,
    })?;
    Ok(CasVersion::new(u64::from_ne_bytes(bytes)))
}
