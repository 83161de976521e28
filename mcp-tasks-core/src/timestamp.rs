//! Instants as they are stored and as they go on the wire.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Json;
use crate::duration::whole_millis;
use crate::json::{deserialize_text, to_json};

/// The last millisecond that RFC 3339 can spell (9999-12-31T23:59:59.999Z).
const MAX_MILLIS: u64 = 253_402_300_799_999;

/// An instant in UTC, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// It is written as RFC 3339 with three decimals and `Z`, in stored records and on the wire alike, and it never leaves
/// the range 1970 to 9999: arithmetic saturates at the ends.
///
/// ```
/// use mcp_tasks_core::Timestamp;
///
/// let t = Timestamp::from_millis(1_785_196_800_250);
/// assert_eq!(t.to_string(), "2026-07-28T00:00:00.250Z");
/// assert_eq!("2026-07-28T00:00:00.250Z".parse::<Timestamp>()?, t);
/// # Ok::<(), mcp_tasks_core::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The latest instant that can be held: 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(MAX_MILLIS);

    /// The instant `millis` milliseconds after the epoch, or [`Timestamp::MAX`] if that is later.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(if millis > MAX_MILLIS { MAX_MILLIS } else { millis })
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This instant plus `duration` (cut to whole milliseconds), or [`Timestamp::MAX`] if that is later.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(duration)))
    }

    /// How long from `earlier` to this instant; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The instant as JSON.
    pub(crate) fn to_json(self) -> Json {
        to_json(&self)
    }

    fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

impl From<SystemTime> for Timestamp {
    /// Cut to whole milliseconds; an instant before 1970 becomes 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::default().saturating_add(since)
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.to_system_time()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&humantime::format_rfc3339_millis(self.to_system_time()), f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not an RFC 3339 instant in UTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an instant in UTC such as 2026-07-28T00:00:00.000Z")]
#[non_exhaustive]
pub struct TimestampError {
    /// The text that was refused.
    pub text: String,
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text)
            .map(Self::from)
            .map_err(|_| TimestampError { text: text.to_owned() })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_text(deserializer, "an instant", str::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(
            Timestamp::from_millis(1).saturating_since(Timestamp::MAX),
            Duration::ZERO
        );
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)).as_millis(), 0);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn text_without_z_is_refused_in_words() {
        let error = "2026-07-28 00:00".parse::<Timestamp>().unwrap_err();
        assert!(error.to_string().contains("2026-07-28 00:00"), "{error}");
    }
}
