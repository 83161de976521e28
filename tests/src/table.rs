//! Numbers as people read them, for benchmarks.

use std::time::Duration;

/// A Markdown table.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these over its columns.
    #[must_use]
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).into()],
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Prints it, with its columns in line; the first is words, the others are numbers.
    pub fn print(&self) {
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
pub const NOT_MEASURED: &str = "not measured";

/// The one in the middle, of the two in the middle the mean.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// A whole number with its thousands apart.
#[must_use]
pub fn whole(number: f64) -> String {
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
#[must_use]
pub fn ratio(number: f64) -> String {
    if number.is_finite() {
        format!("{number:.2}")
    } else {
        "-".to_owned()
    }
}

/// Whole microseconds.
#[must_use]
pub fn micros(duration: Duration) -> String {
    whole(duration.as_secs_f64() * 1e6)
}

/// Milliseconds and tenths.
#[must_use]
pub fn millis(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1e3)
}

/// Seconds and hundredths.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    format!("{seconds:.2}")
}
