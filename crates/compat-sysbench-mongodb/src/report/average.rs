//! The average that published results are quoted with: the mean rate of the second hour.

/// A part of a run, seconds since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AverageWindow {
    /// Lines later than this count.
    pub after_s: u64,
    /// Lines up to this count.
    pub to_s: u64,
}

impl AverageWindow {
    /// 3600 < t <= 7200.
    pub const SECOND_HOUR: AverageWindow = AverageWindow { after_s: 3_600, to_s: 7_200 };
}

/// A window that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected FROM-TO in whole seconds, such as 3600-7200")]
pub struct BadWindow;

impl std::str::FromStr for AverageWindow {
    type Err = BadWindow;

    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let (from, to) = text.split_once('-').ok_or(BadWindow)?;
        let seconds = |text: &str| text.trim().parse::<u64>().map_err(|_| BadWindow);
        let window = AverageWindow { after_s: seconds(from)?, to_s: seconds(to)? };
        if window.after_s < window.to_s { Ok(window) } else { Err(BadWindow) }
    }
}

impl std::fmt::Display for AverageWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {} s", self.after_s, self.to_s)
    }
}

/// An average of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// Mean of the lines' rates, per second.
    pub mean: f64,
    /// Number of lines.
    pub lines: usize,
}

impl Average {
    /// As quoted: cut off after the point, not rounded.
    pub fn truncated(&self) -> u64 {
        self.mean as u64
    }
}

/// A table that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTable {
    /// A column is missing.
    #[error("line 1: expected columns elap_secs and int_tps or int_ips, found {0:?}")]
    Header(String),
    /// A value is no number.
    #[error("line {line}: expected a number in column {column}, found {value:?}")]
    Value {
        /// Line, from 1.
        line: usize,
        /// Column.
        column: &'static str,
        /// Text of the cell.
        value: String,
    },
    /// No line lies in the window.
    #[error("no line lies after {from} s and up to {to} s: the last is of {last_s} s", from = window.after_s, to = window.to_s)]
    Empty {
        /// The window.
        window: AverageWindow,
        /// Time of the last line, seconds.
        last_s: u64,
    },
}

/// The mean rate of the lines of a table, of either version and either phase, that lie in `window`.
pub fn average(table: &str, window: AverageWindow) -> Result<Average, BadTable> {
    let mut lines = table.lines();
    let header = lines.next().unwrap_or_default();
    let columns: Vec<&str> = header.split('\t').collect();
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let time = place("elap_secs");
    let rate =
        place("int_tps").map(|at| (at, "int_tps")).or_else(|| place("int_ips").map(|at| (at, "int_ips")));
    let (Some(time), Some((rate, rate_name))) = (time, rate) else {
        return Err(BadTable::Header(header.to_owned()));
    };
    let (mut sum, mut count, mut last) = (0.0, 0, 0);
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let values: Vec<&str> = line.split('\t').collect();
        let value = |at: usize, column| {
            let text = values.get(at).copied().unwrap_or_default();
            let bad = || BadTable::Value { line: number + 2, column, value: text.to_owned() };
            text.trim().parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(bad)
        };
        last = value(time, "elap_secs")? as u64;
        if (window.after_s + 1..=window.to_s).contains(&last) {
            sum += value(rate, rate_name)?;
            count += 1;
        }
    }
    if count == 0 {
        return Err(BadTable::Empty { window, last_s: last });
    }
    Ok(Average { mean: sum / count as f64, lines: count })
}
