//! The grammar of `--set`.
//!
//! ```text
//! VAR=a b c            one value after the other
//! VAR=a b c ...stop    goes on by the same difference, or the same factor, up (or down) to stop
//! VAR=... |d   m|      only multiples of d; only divisors of m
//! A=1 2/B=x y          every combination; the last varies fastest
//! VAR=                 empties it
//! ```
//!
//! `%20` stands for a blank inside a value. Several options advance together, each beginning anew at its own end.

/// One `--set`: its combinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOption {
    /// As typed.
    pub text: String,
    /// Names and their values.
    pub axes: Vec<(String, Vec<String>)>,
}

/// Most values of one series.
const VALUES: usize = 10_000;

/// A `--set` that is not understood.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("--set {text:?}: {problem}")]
pub struct SetError {
    /// As typed.
    pub text: String,
    /// Problem of the option.
    #[source]
    pub problem: SetProblem,
}

/// Problem of a `--set`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SetProblem {
    /// A part that is no assignment.
    #[error("expected VAR=VALUES, such as THREADS=8 16 32")]
    NoAssignment,
    /// The same variable in two parts.
    #[error("{0} is listed twice")]
    Twice(String),
    /// The values of a variable.
    #[error("{name}: {source}")]
    Values {
        /// The variable.
        name: String,
        /// Problem of the series.
        source: SeriesError,
    },
}

/// Values that are no series, or that a filter cannot take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// A filter that is none.
    #[error("{0:?}: expected |d or m| with a whole number from 1")]
    Filter(String),
    /// A filter of a value that is no whole number.
    #[error("{0:?}: a filter needs whole numbers")]
    FilterValue(String),
    /// A filter that nothing passes.
    #[error("the filter leaves no value")]
    FilterLeavesNone,
    /// Dots without a value behind them, or with several.
    #[error("expected one value behind the dots, such as ...64")]
    Stop,
    /// Less than three values before the dots.
    #[error("{0} values before the dots: expected 3 or more")]
    TooFew(usize),
    /// A value that is no number.
    #[error("{0:?}: a series needs numbers")]
    NotANumber(String),
    /// Values that are all the same.
    #[error("the values before the dots do not change")]
    Constant,
    /// Values that are neither an arithmetic nor a geometric series.
    #[error("the values before the dots have neither the same difference nor the same factor")]
    NoSeries,
    /// The stop lies in the other direction.
    #[error("{stop} does not lie beyond {last}")]
    StopBefore {
        /// The stop.
        stop: f64,
        /// The last value before the dots.
        last: f64,
    },
    /// More values than a set may have.
    #[error("more than {VALUES} values")]
    TooMany,
}

impl SetOption {
    /// Reads one.
    pub fn parse(text: &str) -> Result<SetOption, SetError> {
        let wrong = |problem| SetError { text: text.to_owned(), problem };
        let mut axes: Vec<(String, Vec<String>)> = Vec::new();
        for part in split(text) {
            let Some((name, rest)) = part.split_once('=').filter(|(name, _)| is_name(name)) else {
                return Err(wrong(SetProblem::NoAssignment));
            };
            if axes.iter().any(|(known, _)| known == name) {
                return Err(wrong(SetProblem::Twice(name.to_owned())));
            }
            let all = match name {
                // Phrases of a log have blanks.
                "EVENT_TRACE_PARAMS" => vec![rest.replace("%20", " ")],
                _ => values(rest)
                    .map_err(|source| wrong(SetProblem::Values { name: name.to_owned(), source }))?,
            };
            axes.push((name.to_owned(), all));
        }
        Ok(SetOption { text: text.to_owned(), axes })
    }

    /// Number of combinations.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|(_, values)| values.len()).product()
    }

    /// The values of an iteration (from 0); they begin anew after the last.
    pub fn at(&self, iteration: usize) -> Vec<(&str, &str)> {
        let mut left = iteration % self.count();
        let mut out: Vec<(&str, &str)> = Vec::new();
        for (name, values) in self.axes.iter().rev() {
            out.push((name, &values[left % values.len()]));
            left /= values.len();
        }
        out.reverse();
        out
    }
}

/// Iterations that cover every option's combinations once.
pub fn covering(sets: &[SetOption]) -> usize {
    sets.iter().map(SetOption::count).max().unwrap_or(1)
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// At slashes that a name follows: paths have slashes too.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices('/') {
        let named = text[at + 1..]
            .split_once('=')
            .is_some_and(|(name, _)| is_name(name) && name.chars().all(|c| !c.is_ascii_lowercase()));
        if named {
            parts.push(&text[begin..at]);
            begin = at + 1;
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Condition on the numbers of a series that stay.
#[derive(Clone, Copy)]
enum SeriesFilter {
    MultiplesOf(u64),
    DivisorsOf(u64),
}

fn values(text: &str) -> Result<Vec<String>, SeriesError> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut filter = None;
    if let Some(last) = words.last().copied()
        && let Some((before, after)) = last.split_once('|')
    {
        let (number, rest, kind): (&str, &str, fn(u64) -> SeriesFilter) = match (before, after) {
            (m, "") => (m, "", SeriesFilter::DivisorsOf),
            (value, d) => (d, value, SeriesFilter::MultiplesOf),
        };
        let n = number.parse::<u64>().ok().filter(|n| *n > 0);
        let Some(n) = n else {
            return Err(SeriesError::Filter(last.to_owned()));
        };
        filter = Some(kind(n));
        words.pop();
        if !rest.is_empty() {
            words.push(rest);
        }
    }
    let mut all = series(&words)?;
    if let Some(filter) = filter {
        keep(&mut all, filter)?;
    }
    if all.is_empty() {
        all.push(String::new());
    }
    Ok(all.into_iter().map(|value| value.replace("%20", " ")).collect())
}

fn keep(all: &mut Vec<String>, filter: SeriesFilter) -> Result<(), SeriesError> {
    let mut kept = Vec::new();
    for value in all.drain(..) {
        let n: u64 = value.parse().map_err(|_| SeriesError::FilterValue(value.clone()))?;
        let stays = match filter {
            SeriesFilter::MultiplesOf(d) => n.is_multiple_of(d),
            SeriesFilter::DivisorsOf(m) => n > 0 && m.is_multiple_of(n),
        };
        if stays {
            kept.push(value);
        }
    }
    if kept.is_empty() {
        return Err(SeriesError::FilterLeavesNone);
    }
    *all = kept;
    Ok(())
}

/// The words as they are, or the series that they begin.
fn series(words: &[&str]) -> Result<Vec<String>, SeriesError> {
    let Some(at) = words.iter().position(|word| word.starts_with("...")) else {
        return Ok(words.iter().map(|word| (*word).to_owned()).collect());
    };
    // The stop may stand by itself: `... 64`.
    let stop = match (&words[at][3..], &words[at + 1..]) {
        (stop, []) if !stop.is_empty() => stop,
        ("", [stop]) => *stop,
        _ => return Err(SeriesError::Stop),
    };
    if at < 3 {
        return Err(SeriesError::TooFew(at));
    }
    let number = |word: &str| {
        let n = word.parse::<f64>().ok().filter(|n| n.is_finite());
        n.ok_or_else(|| SeriesError::NotANumber(word.to_owned()))
    };
    let (a, b, c, stop) =
        (number(words[at - 3])?, number(words[at - 2])?, number(words[at - 1])?, number(stop)?);
    let mut all: Vec<String> = words[..at].iter().map(|word| (*word).to_owned()).collect();
    let close = |x: f64, y: f64| (x - y).abs() <= 1e-9 * x.abs().max(y.abs());
    let next: Box<dyn Fn(f64) -> f64> = match () {
        () if b == a => return Err(SeriesError::Constant),
        () if close(c - b, b - a) => Box::new(move |steps| c + steps * (c - b)),
        () if a != 0.0 && b != 0.0 && close(c / b, b / a) && b / a > 0.0 => {
            Box::new(move |steps| c * (c / b).powf(steps))
        }
        () => return Err(SeriesError::NoSeries),
    };
    let up = c > b;
    if (stop - c) * if up { 1.0 } else { -1.0 } < 0.0 {
        return Err(SeriesError::StopBefore { stop, last: c });
    }
    // A falling series of factors never gets to 0.
    for step in 1..=VALUES {
        let value = (next(step as f64) * 1e9).round() / 1e9;
        let beyond = if up { value > stop * (1.0 + 1e-12) } else { value < stop };
        if beyond || value == 0.0 && stop != 0.0 {
            return Ok(all);
        }
        all.push(value.to_string());
        if value == 0.0 {
            return Ok(all);
        }
    }
    Err(SeriesError::TooMany)
}
