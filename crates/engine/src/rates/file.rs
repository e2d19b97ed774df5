//! A file of times and rates: two columns, one point a line.

use super::pieces::{Pieces, Stretch};
use dyno_types::units::{BadUnit, parse_duration_ns, parse_rate_or_zero};

/// Points that a file may have.
pub const POINTS: usize = 1_000_000;

/// A file that is no rate over time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// A line without its two columns.
    #[error("line {line}: {text:?}: expected two columns, a time and a rate")]
    Columns {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A time or a rate that is none.
    #[error("line {line}: {why}")]
    Quantity {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        why: BadUnit,
    },
    /// A time that is not behind the one before.
    #[error("line {line}: {text:?} is not later than the line before: expected times in ascending order")]
    Order {
        /// Its number, from 1.
        line: usize,
        /// The time.
        text: String,
    },
    /// A file of one point or none.
    #[error("{0} lines with a time and a rate: expected 2 or more")]
    Few(usize),
    /// A file of too many points.
    #[error("more than {POINTS} lines: expected so many at most")]
    Many,
    /// A file whose rates are all 0.
    #[error("every rate is 0: nothing would ever be due")]
    Nothing,
}

/// How the rate goes from point to point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileManner {
    /// Each rate holds until the next point; otherwise a straight line leads there.
    pub steps: bool,
    /// The last point is the end of a period, after which all begins again; otherwise its rate holds for ever.
    pub repeat: bool,
}

/// Reads a file's points: `TIME,RATE` or with a semicolon, a tab or spaces between them. A head line, empty lines and those that
/// begin with `#` are passed over. Times are seconds or durations such as `90s`, and count from the first one.
///
/// # Errors
/// Names the line.
pub(super) fn read_points(text: &str, manner: FileManner) -> Result<Pieces, FileProblem> {
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut head = true;
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = split_columns(line);
        let [time, rate] = parts[..] else {
            return Err(FileProblem::Columns { line: number, text: line.chars().take(80).collect() });
        };
        let is_head = std::mem::take(&mut head) && ![time, rate].iter().any(|part| begins_as_number(part));
        if is_head {
            continue;
        }
        let quantity = |why| FileProblem::Quantity { line: number, why };
        let at_ns = parse_duration_ns(time, 1_000_000_000).map_err(quantity)?;
        let rate = parse_rate_or_zero(rate).map_err(quantity)?;
        let behind =
            points.last().is_none_or(|(before, _)| at_ns > *before || at_ns == *before && !manner.steps);
        if !behind {
            return Err(FileProblem::Order { line: number, text: time.to_owned() });
        }
        if points.len() == POINTS {
            return Err(FileProblem::Many);
        }
        points.push((at_ns, rate));
    }
    if points.len() < 2 || points.first().map(|p| p.0) == points.last().map(|p| p.0) {
        return Err(FileProblem::Few(points.len().min(1)));
    }
    let stretch = |pair: &[(u64, f64)]| Stretch {
        length_ns: pair[1].0 - pair[0].0,
        from: pair[0].1,
        to: if manner.steps { pair[0].1 } else { pair[1].1 },
    };
    let then = points.last().map(|(_, rate)| *rate).filter(|_| !manner.repeat);
    Pieces::from_stretches(points.windows(2).map(stretch), then).ok_or(FileProblem::Nothing)
}

fn begins_as_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

fn split_columns(line: &str) -> Vec<&str> {
    match [',', ';', '\t'].into_iter().find(|mark| line.contains(*mark)) {
        Some(mark) => line.split(mark).map(unquote).collect(),
        None => line.split_whitespace().collect(),
    }
}

fn unquote(part: &str) -> &str {
    part.trim().trim_matches('"').trim()
}
