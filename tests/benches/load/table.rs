//! Numbers as people read them.

use std::time::Duration;

use crate::drive::Sample;

/// A Markdown table.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).into()],
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Prints it, with its columns in line; the first is words, the others are numbers.
    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(3)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
            if number == 0 {
                let rules = widths.iter().enumerate().map(|(column, &width)| {
                    if column == 0 {
                        "-".repeat(width)
                    } else {
                        format!("{}:", "-".repeat(width - 1))
                    }
                });
                println!("| {} |", rules.collect::<Vec<_>>().join(" | "));
            }
        }
        println!();
    }
}

/// What was not measured.
pub(crate) const NOT_MEASURED: &str = "not measured";

/// The one in the middle, of the two in the middle the mean.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// A whole number with its thousands apart.
pub(crate) fn whole(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio.
pub(crate) fn ratio(number: f64) -> String {
    if number.is_finite() {
        format!("{number:.2}")
    } else {
        "-".to_owned()
    }
}

pub(crate) fn micros(duration: Duration) -> String {
    whole(duration.as_secs_f64() * 1e6)
}

pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1e3)
}

pub(crate) fn seconds(seconds: f64) -> String {
    format!("{seconds:.2}")
}

/// Several goes at the same, and what comes of them.
#[derive(Debug, Default)]
pub(crate) struct Rounds(pub(crate) Vec<Sample>);

impl Rounds {
    /// The median of the rates.
    pub(crate) fn rate(&self) -> f64 {
        median(self.0.iter().map(Sample::rate))
    }

    /// The median of what each round's rate is to that of the other's round next to it: a machine that slows down for a
    /// while slows down both.
    pub(crate) fn rate_to(&self, other: &Self) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(a, b)| a.rate() / b.rate()))
    }

    /// CPU seconds of the server for 10,000 requests, over all the rounds: the clock that counts them is a coarse one.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let cpu: Option<Duration> = self.0.iter().map(|sample| sample.cpu).sum();
        let requests: u64 = self.0.iter().map(|sample| sample.requests).sum();
        cpu.filter(|_| requests > 0)
            .map(|cpu| cpu.as_secs_f64() * 1e4 / requests as f64)
    }

    /// How many requests an operation took.
    pub(crate) fn requests(&self) -> f64 {
        let requests: u64 = self.0.iter().map(|sample| sample.requests).sum();
        let operations: u64 = self.0.iter().map(|sample| sample.operations).sum();
        requests as f64 / operations as f64
    }

    /// The median over the rounds of a quantile of their latencies.
    pub(crate) fn latency(&self, share: f64) -> Duration {
        let nanos = median(self.0.iter().map(|sample| sample.quantile(share).as_secs_f64()));
        Duration::try_from_secs_f64(nanos).unwrap_or_default()
    }
}
