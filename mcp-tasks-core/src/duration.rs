//! Durations as people write them in attributes and configuration.
//!
//! Two spellings are read: ISO 8601 (`PT1H30M`, `P1D`, `P2W`), known by its leading `P`, and the human form of the
//! `humantime` crate (`1h 30m`, `300ms`). The grammars are those of [`jiff`] and [`humantime`]; this module adds the
//! rules of tasks:
//!
//! | written | result |
//! |---|---|
//! | `PT1H`, `pt1h` | one hour; ISO designators are read in either case |
//! | `PT0.5S`, `PT0,5S`, `0.5s` | 500 ms; ISO 8601 allows both decimal signs, on the last unit only |
//! | `P1D`, `P2W` | 24 h and 14 × 24 h; a task's clock knows no daylight saving |
//! | `P1M`, `P1Y`, `1month`, `1y` | refused: the length depends on a calendar |
//! | `PT0.0001S`, `1us` | refused: whole milliseconds only, as that is what the wire carries |
//! | `-PT1H`, `PT0S`, `0s` | refused: a duration is longer than nothing |
//! | `P100000D` | refused: over [`MAX_DURATION`] |
//! | `P`, `PT`, `P1DT` | refused: a designator without a number behind it |
//! | `PT1H1H`, `PT1M1H` | refused: each ISO unit once, from the largest to the smallest |
//! | `1H`, `PT1e3S`, `90` | refused: human units are lower case, no exponents, no bare numbers |
//!
//! Blanks around the value are ignored, because values come out of environment files.

use std::time::Duration;

use jiff::SpanRelativeTo;
use jiff::fmt::temporal::{SpanParser, SpanPrinter};

/// The longest duration any setting takes: 3650 days, which is ten years.
///
/// Added to any creation time of this era it stays far below 2^53 milliseconds, the largest integer that every JSON
/// reader keeps exact, so neither `ttlMs` nor a deadline can be rounded on its way to a client.
pub const MAX_DURATION: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// The longest poll interval: one day. A client that polls less often has in effect given the task up.
pub const MAX_POLL_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest grace: the client waits with its request open, and requests usually time out after a minute.
pub const MAX_GRACE: Duration = Duration::from_secs(30);

/// The shortest duration any setting takes, and the unit all of them are whole multiples of.
const MILLISECOND: Duration = Duration::from_millis(1);

const ACCEPTED: &str =
    "write ISO 8601 such as `PT1H30M`, `PT0.5S` or `P1D`, or the human form such as `1h 30m` or `300ms`";

/// Why a text was refused as a duration.
///
/// The message quotes the value without the blanks around it, says what is wrong and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is in neither spelling, or holds a number out of range.
    #[error("`{value}` is not a duration: {reason}; {ACCEPTED}")]
    #[non_exhaustive]
    Malformed {
        /// The text as it was written.
        value: String,
        /// What the parser of its spelling said.
        reason: String,
    },
    /// The text counts in years or months.
    #[error(
        "`{value}` counts in {unit}, which have no fixed length; count in weeks, days, hours, minutes or seconds, such as `P30D`"
    )]
    #[non_exhaustive]
    Calendar {
        /// The text as it was written.
        value: String,
        /// `years` or `months`.
        unit: &'static str,
    },
    /// The text is more precise than a millisecond.
    #[error("`{value}` is not a whole number of milliseconds; the finest accepted is `PT0.001S` or `1ms`")]
    #[non_exhaustive]
    Precision {
        /// The text as it was written.
        value: String,
    },
    /// The text is zero or negative.
    #[error("`{value}` is not longer than zero; {ACCEPTED}")]
    #[non_exhaustive]
    NotPositive {
        /// The text as it was written.
        value: String,
    },
    /// The duration is longer than this setting takes.
    #[error("`{value}` is too long; at most `{max}` is accepted")]
    #[non_exhaustive]
    TooLong {
        /// The text as it was written.
        value: String,
        /// The longest accepted, in the ISO form of [`format_iso`].
        max: String,
    },
    /// The poll interval is longer than the ttl, so a client that keeps to it would not see the result.
    #[error("the poll interval `{poll}` is longer than the ttl `{ttl}`; choose a poll interval of at most the ttl")]
    #[non_exhaustive]
    PollBeyondTtl {
        /// The poll interval, in ISO form.
        poll: String,
        /// The time to live, in ISO form.
        ttl: String,
    },
}

/// Reads a duration in ISO 8601 or in the human form.
///
/// The result is a whole number of milliseconds, at least one and at most [`MAX_DURATION`]. The [module](self) has the
/// table of what is accepted.
///
/// # Errors
///
/// [`DurationError`], which quotes `text`.
///
/// ```
/// use mcp_tasks_core::duration::parse_duration;
/// use std::time::Duration;
///
/// assert_eq!(parse_duration("PT1H30M"), Ok(Duration::from_secs(5400)));
/// assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
/// assert_eq!(parse_duration("PT0.5S"), Ok(Duration::from_millis(500)));
/// assert!(parse_duration("P1M").unwrap_err().to_string().contains("months"));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    let parsed = if is_iso(trimmed) {
        parse_iso(trimmed)?
    } else {
        parse_human(trimmed)?
    };
    check_range(text, parsed, MAX_DURATION)
}

/// Reads how long a call may take before it becomes a task: a duration of at most [`MAX_GRACE`].
///
/// # Errors
///
/// As [`parse_duration`], and when it is over [`MAX_GRACE`].
pub fn parse_grace(text: &str) -> Result<Duration, DurationError> {
    check_range(text, parse_duration(text)?, MAX_GRACE)
}

/// Writes a duration in ISO 8601, with hours as its largest unit: `PT1H30M`, `PT0.5S`, `PT48H`.
///
/// What [`parse_duration`] returned is written exactly, so reading it back gives the same duration.
///
/// ```
/// use mcp_tasks_core::duration::{format_iso, parse_duration};
///
/// assert_eq!(format_iso(parse_duration("90m").unwrap()), "PT1H30M");
/// ```
#[must_use]
pub fn format_iso(duration: Duration) -> String {
    SpanPrinter::new().unsigned_duration_to_string(&duration)
}

/// How long a task lives, counted from its creation.
///
/// The `Limited` variant can be read everywhere but built through [`Ttl::parse`] and [`Ttl::limited`] only, so a value
/// of it is always in range.
///
/// ```
/// use mcp_tasks_core::duration::Ttl;
///
/// assert_eq!(Ttl::parse("PT2H").unwrap().as_millis(), Some(7_200_000));
/// assert_eq!(Ttl::parse("unlimited").unwrap().as_millis(), None);
/// assert!(Ttl::parse("PT0S").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ttl {
    /// Until it is deleted; `ttlMs` is null.
    Unlimited,
    /// Whole milliseconds, at least one and at most [`MAX_DURATION`].
    #[non_exhaustive]
    Limited(Duration),
}

impl Ttl {
    /// Reads `unlimited` or a duration.
    ///
    /// # Errors
    ///
    /// As [`parse_duration`].
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        parse_duration(text).map(Self::Limited)
    }

    /// A limited life of this length.
    ///
    /// # Errors
    ///
    /// [`DurationError`] when it is zero, over [`MAX_DURATION`] or no whole number of milliseconds.
    pub fn limited(duration: Duration) -> Result<Self, DurationError> {
        check_range(&format_iso(duration), duration, MAX_DURATION).map(Self::Limited)
    }

    /// The length, or `None` for an unlimited life.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::Unlimited => None,
            Self::Limited(duration) => Some(duration),
        }
    }

    /// The value of `ttlMs`: milliseconds, or `None` for null.
    #[must_use]
    pub fn as_millis(self) -> Option<u64> {
        self.duration().map(whole_millis)
    }
}

/// How long a client should wait between two polls: whole milliseconds, at least one and at most
/// [`MAX_POLL_INTERVAL`].
///
/// ```
/// use mcp_tasks_core::duration::{PollInterval, Ttl};
///
/// let poll = PollInterval::parse("PT5S").unwrap();
/// assert_eq!(poll.as_millis(), 5000);
/// assert!(poll.check_within(Ttl::parse("PT2H").unwrap()).is_ok());
/// assert!(poll.check_within(Ttl::parse("PT2S").unwrap()).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PollInterval(Duration);

impl PollInterval {
    /// Reads a duration.
    ///
    /// # Errors
    ///
    /// As [`parse_duration`], and when it is over [`MAX_POLL_INTERVAL`].
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        check_range(text, parse_duration(text)?, MAX_POLL_INTERVAL).map(Self)
    }

    /// An interval of this length.
    ///
    /// # Errors
    ///
    /// [`DurationError`] when it is zero, over [`MAX_POLL_INTERVAL`] or no whole number of milliseconds.
    pub fn new(duration: Duration) -> Result<Self, DurationError> {
        check_range(&format_iso(duration), duration, MAX_POLL_INTERVAL).map(Self)
    }

    /// Refuses an interval that is longer than the task lives.
    ///
    /// Not part of parsing, because the two come from different attributes and either may be a default.
    ///
    /// # Errors
    ///
    /// [`DurationError::PollBeyondTtl`].
    pub fn check_within(self, ttl: Ttl) -> Result<(), DurationError> {
        match ttl.duration() {
            Some(life) if self.0 > life => Err(DurationError::PollBeyondTtl {
                poll: format_iso(self.0),
                ttl: format_iso(life),
            }),
            _ => Ok(()),
        }
    }

    /// The length.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// The value of `pollIntervalMs`.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        whole_millis(self.0)
    }
}

/// No human form begins with `p`, so the first letter tells which parser's error to show.
fn is_iso(text: &str) -> bool {
    text.strip_prefix(['+', '-']).unwrap_or(text).starts_with(['P', 'p'])
}

fn parse_iso(text: &str) -> Result<Duration, DurationError> {
    let malformed = |error: jiff::Error| DurationError::Malformed {
        value: text.to_owned(),
        reason: error.to_string(),
    };
    let span = SpanParser::new().parse_span(text).map_err(malformed)?;
    for (count, unit) in [(i32::from(span.get_years()), "years"), (span.get_months(), "months")] {
        if count != 0 {
            return Err(DurationError::Calendar {
                value: text.to_owned(),
                unit,
            });
        }
    }
    let signed = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(malformed)?;
    Duration::try_from(signed).map_err(|_| DurationError::NotPositive { value: text.to_owned() })
}

fn parse_human(text: &str) -> Result<Duration, DurationError> {
    // humantime replaces months and years by a mean length, which the result does not show.
    for word in text.split(|c: char| !c.is_alphabetic()) {
        let unit = match word {
            "M" | "month" | "months" => "months",
            "y" | "yr" | "yrs" | "year" | "years" => "years",
            _ => continue,
        };
        return Err(DurationError::Calendar {
            value: text.to_owned(),
            unit,
        });
    }
    humantime::parse_duration(text).map_err(|error| DurationError::Malformed {
        value: text.to_owned(),
        reason: error.to_string(),
    })
}

fn check_range(text: &str, duration: Duration, max: Duration) -> Result<Duration, DurationError> {
    let value = text.trim().to_owned();
    if duration.is_zero() {
        return Err(DurationError::NotPositive { value });
    }
    if !duration.subsec_nanos().is_multiple_of(MILLISECOND.subsec_nanos()) {
        return Err(DurationError::Precision { value });
    }
    if duration > max {
        return Err(DurationError::TooLong {
            value,
            max: format_iso(max),
        });
    }
    Ok(duration)
}

/// Exact for every duration in range; saturates beyond.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;

    /// The name of the error's variant, or the milliseconds.
    fn parsed(text: &str) -> Result<u64, &'static str> {
        parse_duration(text).map(whole_millis).map_err(|error| {
            assert!(error.to_string().contains(text.trim()), "{error} does not quote {text}");
            match error {
                DurationError::Malformed { .. } => "malformed",
                DurationError::Calendar { unit, .. } => unit,
                DurationError::Precision { .. } => "precision",
                DurationError::NotPositive { .. } => "not positive",
                DurationError::TooLong { .. } => "too long",
                DurationError::PollBeyondTtl { .. } => "poll beyond ttl",
            }
        })
    }

    #[test]
    fn every_iso_spelling_has_one_result() {
        let table = [
            ("PT1H", Ok(HOUR)),
            ("pt1h", Ok(HOUR)),
            ("+PT1H", Ok(HOUR)),
            ("  PT1H\n", Ok(HOUR)),
            ("PT90M", Ok(HOUR * 3 / 2)),
            ("PT1H30M", Ok(HOUR * 3 / 2)),
            ("PT0.5S", Ok(500)),
            ("PT0,5S", Ok(500)),
            ("PT0.5H", Ok(HOUR / 2)),
            ("PT0.001S", Ok(1)),
            ("P1D", Ok(DAY)),
            ("P2W", Ok(14 * DAY)),
            ("P25D", Ok(25 * DAY)),
            ("P1DT1S", Ok(DAY + 1000)),
            ("P3650D", Ok(3650 * DAY)),
            ("P3650DT0.001S", Err("too long")),
            ("P100000D", Err("too long")),
            ("PT9223372036854775807S", Err("malformed")),
            ("PT99999999999999999999999S", Err("malformed")),
            ("P1M", Err("months")),
            ("P1Y", Err("years")),
            ("P1Y2M3D", Err("years")),
            ("P", Err("malformed")),
            ("PT", Err("malformed")),
            ("P1DT", Err("malformed")),
            ("PT1H1H", Err("malformed")),
            ("PT1M1H", Err("malformed")),
            ("PT0.5H1M", Err("malformed")),
            ("PT1e3S", Err("malformed")),
            ("P 1D", Err("malformed")),
            ("PT1H and more", Err("malformed")),
            ("-PT1H", Err("not positive")),
            ("PT0S", Err("not positive")),
            ("-PT0S", Err("not positive")),
            ("PT0.0001S", Err("precision")),
            ("PT1.0005S", Err("precision")),
            ("PT0.0000000001S", Err("malformed")),
        ];
        for (text, expected) in table {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn every_human_spelling_has_one_result() {
        let table = [
            ("1h 30m", Ok(HOUR * 3 / 2)),
            ("1h30m", Ok(HOUR * 3 / 2)),
            ("300ms", Ok(300)),
            ("0.5s", Ok(500)),
            ("2 weeks", Ok(14 * DAY)),
            ("1000us", Ok(1)),
            ("1H", Err("malformed")),
            ("90", Err("malformed")),
            ("", Err("malformed")),
            ("soon", Err("malformed")),
            ("-1h", Err("malformed")),
            ("1e3s", Err("malformed")),
            ("99999999999999999999h", Err("malformed")),
            ("18446744073709551615h", Err("malformed")),
            ("0s", Err("not positive")),
            ("1us", Err("precision")),
            ("1M", Err("months")),
            ("1 month", Err("months")),
            ("1y", Err("years")),
            ("1d2years", Err("years")),
            ("3651d", Err("too long")),
        ];
        for (text, expected) in table {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_accepted() {
        let error = parse_duration("P1M").unwrap_err().to_string();
        assert_eq!(
            error,
            "`P1M` counts in months, which have no fixed length; count in weeks, days, hours, minutes or seconds, such as `P30D`"
        );
        assert!(parse_duration("1H").unwrap_err().to_string().contains("`PT1H30M`"));
        assert!(
            parse_duration("P100000D")
                .unwrap_err()
                .to_string()
                .contains("at most `PT87600H`")
        );
    }

    #[test]
    fn ttl_takes_unlimited_and_stays_exact_on_the_wire() {
        assert_eq!(Ttl::parse(" unlimited "), Ok(Ttl::Unlimited));
        assert!(Ttl::parse("Unlimited").is_err());
        assert!(Ttl::parse("").is_err());
        let longest = Ttl::limited(MAX_DURATION).unwrap().as_millis().unwrap();
        // The year 9999 in milliseconds, plus the longest life, is still an integer a double holds.
        assert!(253_402_300_800_000 + longest < 1 << 53);
        assert!(Ttl::limited(MAX_DURATION + MILLISECOND).is_err());
        assert!(Ttl::limited(Duration::MAX).is_err());
        assert!(Ttl::limited(Duration::ZERO).is_err());
        assert!(Ttl::limited(Duration::from_micros(1500)).is_err());
    }

    #[test]
    fn poll_interval_has_its_own_bounds() {
        assert_eq!(PollInterval::parse("1ms").unwrap().as_millis(), 1);
        assert_eq!(PollInterval::parse("P1D").unwrap().duration(), MAX_POLL_INTERVAL);
        for refused in ["PT0S", "PT0.0001S", "PT24H1S", "unlimited", "-PT1S"] {
            assert!(PollInterval::parse(refused).is_err(), "{refused}");
        }
        let poll = PollInterval::new(Duration::from_secs(2)).unwrap();
        assert_eq!(poll.check_within(Ttl::Unlimited), Ok(()));
        assert_eq!(poll.check_within(Ttl::parse("2s").unwrap()), Ok(()));
        assert_eq!(
            poll.check_within(Ttl::parse("1s").unwrap()).unwrap_err().to_string(),
            "the poll interval `PT2S` is longer than the ttl `PT1S`; choose a poll interval of at most the ttl"
        );
    }

    #[test]
    fn grace_is_short() {
        assert_eq!(parse_grace("PT0.3S"), Ok(Duration::from_millis(300)));
        assert_eq!(parse_grace("30s"), Ok(MAX_GRACE));
        for refused in ["PT30.001S", "PT0S", "1us"] {
            assert!(parse_grace(refused).is_err(), "{refused}");
        }
        let error = parse_grace(" PT1M ").unwrap_err().to_string();
        assert_eq!(error, "`PT1M` is too long; at most `PT30S` is accepted");
    }

    #[test]
    fn what_is_written_reads_back() {
        for millis in [1, 999, 1000, 1001, 59_999, 3_600_000, 86_400_001, 3650 * DAY] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&format_iso(duration)), Ok(duration));
        }
        assert_eq!(format_iso(Duration::ZERO), "PT0S");
        assert!(!format_iso(Duration::MAX).is_empty());
    }
}
