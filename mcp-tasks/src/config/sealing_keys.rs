//! The keys that seal the state of synchronous calls (`mcp.tasks.request-state.keys`).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// The length of a key of XChaCha20-Poly1305.
pub(crate) const KEY_BYTES: usize = 32;

/// Keys, the newest first: the first one seals, all open. They are not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKeys(Vec<[u8; KEY_BYTES]>);

impl SealingKeys {
    /// Reads keys in base64, separated by commas.
    ///
    /// # Errors
    /// When a key is not 32 bytes in base64; the message does not show it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let key = |(at, key): (usize, &str)| {
            STANDARD
                .decode(key)
                .or_else(|_| URL_SAFE_NO_PAD.decode(key.trim_end_matches('=')))
                .ok()
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(|| {
                    format!(
                        "key {} is not {KEY_BYTES} bytes in base64; make one with `openssl rand -base64 {KEY_BYTES}`",
                        at + 1
                    )
                })
        };
        text.split(',')
            .map(str::trim)
            .enumerate()
            .map(key)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8; KEY_BYTES]> {
        self.0.iter()
    }
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKeys").field("keys", &self.0.len()).finish()
    }
}
