//! Identifiers: of a task, and of one write to it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::deserialize_text;

/// The identifier of a task: opaque to clients, shared when cloned.
///
/// A task id may serve as a bearer token (Tasks extension, "Security Considerations"), so it carries 128 bits of the
/// caller's randomness and nothing else.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// The id made of 16 random bytes: 32 lower-case hexadecimal digits, which are safe in an HTTP header.
    ///
    /// ```
    /// use mcp_tasks_core::TaskId;
    /// assert_eq!(TaskId::from_entropy([0xab; 16]).as_str(), "ab".repeat(16));
    /// ```
    #[must_use]
    pub fn from_entropy(entropy: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(entropy)).into())
    }

    /// An id that came from a client or a store. Nothing is checked: an unknown id is simply not found.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for TaskId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The name of one attempt to write a record, kept in the record it wrote.
///
/// When a store's acknowledgement is lost, the writer finds its own id in the record and knows that the write took
/// place. The caller makes it unique: 16 random bytes, or a node's random number and a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteId(u128);

impl WriteId {
    /// The write id with this number.
    #[must_use]
    pub const fn new(id: u128) -> Self {
        Self(id)
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for WriteId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WriteId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_text(deserializer, "a write id", |text| {
            u128::from_str_radix(text, 16).map(Self)
        })
    }
}
