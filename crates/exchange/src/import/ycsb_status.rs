//! YCSB's status lines (`-s`): the course of a run.

use crate::import::{BadFile, Input, count, counted, in_interval, latency};
use dyno_rundir::imported::ImportedInterval;
use dyno_rundir::schema::Latency;
use dyno_types::limits::IMPORT_COUNT;

/// One status line.
#[derive(Clone, Debug)]
pub(super) struct StatusLine {
    /// Clock: milliseconds since the epoch, its time zone taken for UTC; `None` where none can be read.
    clock_ms: Option<i64>,
    /// Seconds since the start, as it says.
    seconds: u64,
    /// Operations since the start.
    operations: u64,
    /// Operation, samples and latency of the interval.
    metrics: Vec<(String, u64, Latency)>,
}

impl StatusLine {
    /// When a run of this length began whose last line this is.
    pub(super) fn started(&self, seconds: f64) -> Option<String> {
        let begun = self.clock_ms? - (seconds * 1e3).round() as i64;
        jiff::Timestamp::from_millisecond(begun).ok().map(|at| at.to_string())
    }
}

/// Reads all of a file.
pub(super) fn read(input: &Input) -> Result<Vec<StatusLine>, BadFile> {
    let lines = input.text.lines().enumerate().filter(|(_, line)| line.contains(" operations; "));
    lines
        .map(|(number, line)| {
            let expected =
                "a status line: DATE TIME N sec: N operations; N current ops/sec; [METRIC: Count=N, ...]";
            parse(line).ok_or_else(|| BadFile::new(&input.path, number + 1, expected, line))
        })
        .collect()
}

fn parse(line: &str) -> Option<StatusLine> {
    let (before, rest) = line.split_once(" sec: ")?;
    let (operations, rest) = rest.split_once(" operations; ")?;
    let most = |text: &str| text.parse().ok().filter(|n| *n <= IMPORT_COUNT);
    let seconds = most(before.rsplit(' ').next()?)?;
    let metrics = rest.split('[').skip(1).map(metric).collect::<Option<Vec<_>>>()?;
    Some(StatusLine {
        clock_ms: clock(before),
        seconds,
        operations: most(operations.trim())?,
        metrics: metrics.into_iter().flatten().collect(),
    })
}

/// `2026-11-21 03:30:18:417` before the seconds, whatever label stands in front.
fn clock(before: &str) -> Option<i64> {
    let mut words = before.rsplit(' ').skip(1);
    let (time, date) = (words.next()?, words.next()?);
    let (time, ms) = time.rsplit_once(':')?;
    let at: jiff::civil::DateTime = format!("{date}T{time}.{ms}").parse().ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// `READ: Count=3, Max=34911, Min=24608, Avg=28981.33, 50=27439, ...]`; `Some(None)` for one without samples.
fn metric(text: &str) -> Option<Option<(String, u64, Latency)>> {
    let text = text.trim_end().strip_suffix(']')?;
    let (name, values) = text.split_once(": ")?;
    let mut found = latency(0, f64::NAN);
    for part in values.split(", ") {
        let (key, value) = part.split_once('=')?;
        // Java writes a mean of nothing as U+FFFD, which other encodings turn into a question mark.
        let value: f64 = match value.trim() {
            "?" | "\u{fffd}" | "NaN" => f64::NAN,
            value => value.parse().ok()?,
        };
        match key.trim() {
            "Count" => found.count = counted(value)?,
            "Max" => found.max_us = Some(value),
            "Min" => found.min_us = Some(value),
            "Avg" => found.mean_us = value,
            p => drop(found.percentiles_us.insert(format!("p{p}"), Some(value))),
        }
    }
    Some((found.count > 0 && found.mean_us.is_finite()).then(|| (name.to_owned(), found.count, found)))
}

/// The intervals between the lines of a run of this length.
pub(super) fn intervals(lines: &[StatusLine], seconds: f64, closed: bool) -> Vec<ImportedInterval> {
    let whole_ms = (seconds * 1e3).round() as i64;
    let last = lines.last().and_then(|line| line.clock_ms);
    // By the clock, which has milliseconds; the last line is written when the run ends.
    let at_ms = |line: &StatusLine| match (line.clock_ms, last) {
        (Some(at), Some(last)) => whole_ms - (last - at),
        _ => line.seconds as i64 * 1_000,
    };
    let (mut before_ms, mut before) = (0, 0);
    let mut all = Vec::new();
    for line in lines {
        let end_ms = at_ms(line).max(before_ms);
        let ended = line.operations.saturating_sub(before);
        let metrics = line.metrics.iter();
        all.push(ImportedInterval {
            start_ms: before_ms as u64,
            length_ms: (end_ms - before_ms) as u64,
            // Status lines do not tell failures.
            ended: count(ended),
            metrics: metrics.map(|(name, n, l)| in_interval(name, *n, Some(l.clone()), closed)).collect(),
        });
        (before_ms, before) = (end_ms, line.operations.max(before));
    }
    all
}
