//! Sealing what a synchronous call carries from round to round in its client's hands (2026-07-28, "Multi Round-Trip
//! Requests": `requestState` is opaque to the client, and a server must not trust what it cannot verify).
//!
//! A token is `base64url(version ‖ key id ‖ nonce ‖ ciphertext)`. The cipher is XChaCha20-Poly1305: the client can neither
//! read a token nor change it. What the token belongs to (caller, method, tool, arguments) is authenticated with it and
//! not in it, so that a token is worthless anywhere else; when it expires stands inside.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use mcp_tasks_core::{Fingerprint, Principal, Timestamp};

use crate::config::sealing_keys::{KEY_BYTES, SealingKeys};

/// The version of the token's layout, and of what is inside.
const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;
const EXPIRY_BYTES: usize = 8;

/// The longest token, in characters. It travels in a JSON member both ways, and servers refuse bodies of a few MiB; a
/// call that must carry more should be a task.
pub(crate) const MOST_CHARACTERS: usize = 256 * 1024;

/// What a token belongs to. Where any part differs, the token does not open.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) method: &'static str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: Fingerprint,
}

impl Binding<'_> {
    /// The parts, each with its length, so that no two bindings have one form.
    fn to_bytes(&self) -> Vec<u8> {
        let issuer = self.principal.and_then(|principal| principal.issuer.as_deref());
        let subject = self.principal.map(|principal| &*principal.subject);
        let mut bytes = vec![VERSION];
        for part in [Some(self.method), Some(self.tool), issuer, subject] {
            match part {
                None => bytes.push(0),
                Some(part) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
                    bytes.extend_from_slice(part.as_bytes());
                }
            }
        }
        bytes.extend_from_slice(self.arguments.as_bytes());
        bytes
    }
}

/// Seals and opens tokens.
pub(crate) struct RequestStateCodec {
    /// The first one seals, all open.
    keys: Vec<SealingKey>,
    ttl: Duration,
}

struct SealingKey {
    id: [u8; KEY_ID_BYTES],
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for RequestStateCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestStateCodec")
            .field("keys", &self.keys.len())
            .field("ttl", &self.ttl)
            .finish()
    }
}

/// Why a state cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    #[error("the call carries more between its rounds than a token holds ({MOST_CHARACTERS} characters)")]
    TooLarge,
    #[error("the system's random generator fails")]
    NoRandomness,
}

impl SealingKey {
    fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        // The id tells keys apart and says nothing about them.
        let id = Fingerprint::of(
            "request-state-key",
            "",
            Some(&serde_json::Value::from(STANDARD.encode(bytes))),
        );
        let mut short = [0; KEY_ID_BYTES];
        short.copy_from_slice(&id.as_bytes()[..KEY_ID_BYTES]);
        Self {
            id: short,
            cipher: XChaCha20Poly1305::new(<&Key>::from(bytes)),
        }
    }
}

impl RequestStateCodec {
    /// A codec with these keys, the newest first.
    pub(crate) fn new(keys: &SealingKeys, ttl: Duration) -> Self {
        Self {
            keys: keys.iter().map(SealingKey::new).collect(),
            ttl,
        }
    }

    /// A codec with a key of this process's own.
    ///
    /// # Errors
    /// When the system's random generator fails.
    pub(crate) fn ephemeral(ttl: Duration) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            keys: vec![SealingKey::new(&bytes)],
            ttl,
        })
    }

    /// Seals `state` for `binding` until the codec's time to live from `now`.
    ///
    /// # Errors
    /// When it is larger than a token may be.
    pub(crate) fn seal(&self, binding: &Binding<'_>, now: Timestamp, state: &[u8]) -> Result<String, SealError> {
        // base64 makes four characters of three bytes.
        if state.len() > MOST_CHARACTERS / 4 * 3 - 128 {
            return Err(SealError::TooLarge);
        }
        let Some(key) = self.keys.first() else {
            return Err(SealError::NoRandomness);
        };
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let mut inside = now.saturating_add(self.ttl).as_millis().to_be_bytes().to_vec();
        inside.extend_from_slice(state);
        let sealed = key
            .cipher
            .encrypt(
                <&XNonce>::from(&nonce),
                Payload {
                    msg: &inside,
                    aad: &binding.to_bytes(),
                },
            )
            // Only a message of more than 256 GiB fails.
            .map_err(|_| SealError::TooLarge)?;
        let mut token = vec![VERSION];
        token.extend_from_slice(&key.id);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(token))
    }

    /// The state in `token`, and when the token expires; `None` for every token that is not good, whatever is wrong with
    /// it, so that nothing can be learnt from trying.
    pub(crate) fn open(&self, binding: &Binding<'_>, now: Timestamp, token: &str) -> Option<(Vec<u8>, Timestamp)> {
        if token.len() > MOST_CHARACTERS {
            return None;
        }
        let token = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (&version, rest) = token.split_first()?;
        let (id, rest) = rest.split_at_checked(KEY_ID_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES)?;
        if version != VERSION {
            return None;
        }
        let key = self.keys.iter().find(|key| key.id == id)?;
        let mut inside = key
            .cipher
            .decrypt(
                <&XNonce>::try_from(nonce).ok()?,
                Payload {
                    msg: sealed,
                    aad: &binding.to_bytes(),
                },
            )
            .ok()?;
        let state = inside.split_off(EXPIRY_BYTES.min(inside.len()));
        let expiry = Timestamp::from_millis(u64::from_be_bytes(inside.try_into().ok()?));
        (now <= expiry).then_some((state, expiry))
    }
}

#[cfg(test)]
mod tests;
