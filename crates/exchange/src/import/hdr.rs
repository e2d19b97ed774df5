//! YCSB's `.hdr` files: HdrHistogram's interval logs in microseconds, one a metric.

use crate::import::{BadFile, Input, count, in_interval};
use dyno_record::{Buckets, Scale};
use dyno_rundir::hlog;
use dyno_rundir::imported::ImportedInterval;
use dyno_rundir::schema::Latency;
use dyno_types::limits::IMPORT_COUNT;
use std::collections::BTreeMap;

/// One interval's line.
#[derive(Clone, Debug)]
pub(super) struct HdrLine {
    /// As it stands in the file.
    text: String,
    start_ms: u64,
    length_ms: u64,
    /// Samples.
    count: u64,
}

impl HdrLine {
    /// The line of a log with tags.
    pub(super) fn tagged(&self, tag: &str) -> String {
        format!("Tag={tag},{}\n", self.text)
    }
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct HdrLog {
    pub(super) metric: String,
    pub(super) lines: Vec<HdrLine>,
    /// All intervals together.
    pub(super) whole: Buckets,
}

/// Returns whether a text is such a file.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().take(3).any(|line| line.starts_with("#[Histogram log format"))
}

/// No run lasts for so many milliseconds: they are counted from the epoch.
const EPOCHAL_MS: u64 = 100_000_000_000;

/// Counts the times of logs from the first of all of them where they are since the epoch.
pub(super) fn align(logs: &mut [HdrLog]) {
    let lines = || logs.iter().flat_map(|log| &log.lines);
    let first = lines().map(|line| line.start_ms).min().filter(|first| *first > EPOCHAL_MS).unwrap_or(0);
    logs.iter_mut().flat_map(|log| &mut log.lines).for_each(|line| line.start_ms -= first);
}

/// Reads one.
pub(super) fn read(input: &Input) -> Result<HdrLog, BadFile> {
    let bad = |line: usize, expected: &str, found: &str| BadFile::new(&input.path, line, expected, found);
    let named = input.text.lines().find_map(|line| line.strip_prefix("#[Logging for: ")?.strip_suffix(']'));
    let first = input.text.lines().next().unwrap_or("");
    let metric = named.ok_or_else(|| bad(1, "#[Logging for: METRIC], as YCSB writes it", first))?;
    let mut log = HdrLog { metric: metric.to_owned(), lines: Vec::new(), whole: Buckets::new(Scale::Micros) };
    for (number, text) in input.text.lines().enumerate() {
        if text.starts_with(['#', '"']) || text.trim().is_empty() {
            continue;
        }
        let expected = "StartTimestamp,Interval_Length,Interval_Max,histogram";
        let mut parts = text.split(',').map(|part| part.parse::<f64>().ok());
        let (Some(Some(start)), Some(Some(length))) = (parts.next(), parts.next()) else {
            return Err(bad(number + 1, expected, text));
        };
        let found = hlog::read(&format!("{text}\n"), Scale::Micros)
            .map_err(|e| bad(number + 1, "a compressed HdrHistogram (V0, V1 or V2)", &e.why.to_string()))?;
        let buckets = found.into_values().next().unwrap_or_else(|| Buckets::new(Scale::Micros));
        if log.whole.count() + buckets.count() > IMPORT_COUNT {
            return Err(bad(number + 1, &format!("up to {IMPORT_COUNT} samples in all"), "more"));
        }
        log.whole.merge(&buckets);
        log.lines.push(HdrLine {
            text: text.to_owned(),
            start_ms: (start.max(0.0) * 1e3).round() as u64,
            length_ms: (length.max(0.0) * 1e3).round() as u64,
            count: buckets.count(),
        });
    }
    Ok(log)
}

/// Percentiles from the histogram; mean and extremes stay those of the report, which are exact.
pub(super) fn percentiles(slot: &mut Option<Latency>, whole: Buckets) {
    let Some(exact) = dyno_analysis::latency_from_buckets(&whole, 0) else { return };
    match slot {
        Some(known) if known.count == exact.count => known.percentiles_us = exact.percentiles_us,
        Some(_) => {}
        None => *slot = Some(exact),
    }
}

/// Begins of intervals this near, as a share of their length, are one: each metric's file has a zero of its own.
const TOGETHER: f64 = 0.1;

/// The begin that a line has in common with those before it.
fn common_begin(all: &BTreeMap<u64, ImportedInterval>, line: &HdrLine) -> u64 {
    let slack = (line.length_ms as f64 * TOGETHER) as u64;
    let near = all.range(line.start_ms.saturating_sub(slack)..=line.start_ms.saturating_add(slack));
    near.map(|(start, _)| *start).min_by_key(|start| start.abs_diff(line.start_ms)).unwrap_or(line.start_ms)
}

/// Intervals by their begin: successes of every metric.
pub(super) fn intervals(logs: &[HdrLog], derived: &[&str]) -> Vec<ImportedInterval> {
    let mut all: BTreeMap<u64, ImportedInterval> = BTreeMap::new();
    let own = |log: &&HdrLog| !log.metric.starts_with("Intended-") && !log.metric.ends_with("-FAILED");
    for log in logs.iter().filter(own) {
        for line in &log.lines {
            let start_ms = common_begin(&all, line);
            let interval = all.entry(start_ms).or_default();
            interval.start_ms = start_ms;
            interval.length_ms = interval.length_ms.max(line.length_ms);
            interval.metrics.push(in_interval(&log.metric, line.count, None, false));
            if !derived.contains(&log.metric.as_str()) {
                *interval.ended.entry("ok".into()).or_default() += line.count;
            }
        }
    }
    for interval in all.values_mut().filter(|interval| interval.ended.is_empty()) {
        interval.ended = count(0);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(metric: &str, starts: &[u64]) -> HdrLog {
        let line =
            |start_ms: &u64| HdrLine { text: String::new(), start_ms: *start_ms, length_ms: 1_000, count: 5 };
        HdrLog {
            metric: metric.into(),
            lines: starts.iter().map(line).collect(),
            whole: Buckets::new(Scale::Micros),
        }
    }

    #[test]
    fn intervals_of_files_whose_zeros_differ_by_a_millisecond_are_the_same() {
        let logs =
            [log("READ", &[10, 1_011, 2_010]), log("UPDATE", &[11, 1_010, 2_012]), log("SCAN", &[500])];
        let all = intervals(&logs, &[]);
        let seen: Vec<(u64, u64, usize)> =
            all.iter().map(|one| (one.start_ms, one.ended["ok"], one.metrics.len())).collect();
        assert_eq!(seen, [(10, 10, 2), (500, 5, 1), (1_011, 10, 2), (2_010, 10, 2)]);
    }
}
