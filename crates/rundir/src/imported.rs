//! Writes results of other programs as run directories. What they do not say is left out of the files.

use crate::hlog;
use crate::intervals::IntervalLine;
use crate::schema::{Environment, Latency, Run, Status, Summary};
use crate::writer::RunWriter;
use dyno_record::Scale;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// One operation in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedMetric {
    /// Name.
    pub name: String,
    /// Requests by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Latencies of successes by kind (`service`, `response`), as far as they are known without a histogram.
    pub known: BTreeMap<String, Latency>,
}

/// One interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedInterval {
    /// Begin, milliseconds since the beginning of the phase.
    pub start_ms: u64,
    /// Length, milliseconds.
    pub length_ms: u64,
    /// Operations by outcome.
    pub ended: BTreeMap<String, u64>,
    /// By operation, where that is known.
    pub metrics: Vec<ImportedMetric>,
}

/// Everything that becomes files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// `run.json`, with the names of the metrics.
    pub run: Run,
    /// `environment.json`.
    pub environment: Environment,
    /// `summary.json`.
    pub summary: Summary,
    /// The phase of the intervals and histograms.
    pub phase: String,
    /// In the order of time.
    pub intervals: Vec<ImportedInterval>,
    /// Lines of the histogram log, with tags, in the unit of `run`.
    pub log: String,
}

/// Writes a directory that must be new or empty.
pub fn write(path: &Path, imported: &Imported) -> io::Result<()> {
    let scale = if imported.run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
    let mut writer = RunWriter::unlogged(path, imported.run.clone(), &imported.environment, scale)?;
    let begun = imported.run.started.parse::<jiff::Timestamp>().unwrap_or_default();
    let mut lines = String::new();
    let mut rows = String::new();
    for interval in &imported.intervals {
        let line = serde_json::to_string(&line(&imported.phase, interval))?;
        let _ = writeln!(lines, "{line}");
        rows.push_str(&series(&imported.phase, interval));
    }
    let head = hlog::log_header(begun.into(), scale);
    for (name, text) in [("latency.hlog", format!("{head}{}", imported.log)), ("intervals.jsonl", lines)] {
        std::fs::write(path.join(name), text)?;
    }
    std::fs::write(path.join("series.csv"), format!("{}{rows}", crate::series::HEADER))?;
    let seconds = imported.summary.measured_phase().map_or(0.0, |phase| phase.seconds);
    let end = begun.checked_add(std::time::Duration::from_secs_f64(seconds.max(0.0))).unwrap_or(begun);
    writer.event_at(begun.into(), "begin", &imported.phase);
    writer.event_at(end.into(), "end", &imported.phase);
    writer.finish(&imported.summary, Status::Complete);
    match writer.first_failure() {
        Some(message) => Err(io::Error::other(message.to_owned())),
        None => Ok(()),
    }
}

fn line(phase: &str, interval: &ImportedInterval) -> IntervalLine {
    let mut known = BTreeMap::new();
    for metric in &interval.metrics {
        let tags = metric.known.iter().map(|(kind, l)| (format!("{}.ok.{kind}", metric.name), l.clone()));
        known.extend(tags);
    }
    IntervalLine {
        phase: phase.to_owned(),
        second: interval.start_ms / 1_000,
        ms: (interval.start_ms % 1_000) as u32,
        length_ms: u32::try_from(interval.length_ms).unwrap_or(u32::MAX),
        arrivals: interval.ended.values().sum(),
        ended: interval.ended.clone(),
        outcomes: interval.metrics.iter().map(|m| (m.name.clone(), m.outcomes.clone())).collect(),
        known,
        ..IntervalLine::default()
    }
}

/// Rows of `series.csv`: what is not known is empty.
fn series(phase: &str, interval: &ImportedInterval) -> String {
    let second = match interval.start_ms % 1_000 {
        0 => (interval.start_ms / 1_000).to_string(),
        _ => format!("{:.3}", interval.start_ms as f64 / 1e3),
    };
    let counts = |outcomes: &BTreeMap<String, u64>| {
        let ok = outcomes.get("ok").copied().unwrap_or(0);
        format!("{ok},{}", outcomes.values().sum::<u64>() - ok)
    };
    let mut out = String::new();
    for metric in &interval.metrics {
        let (service, response) = (metric.known.get("service"), metric.known.get("response"));
        let shown = |value: Option<f64>| value.map_or(String::new(), |us| format!("{us:.1}"));
        let at =
            |l: Option<&Latency>, p: &str| shown(l.and_then(|l| l.percentiles_us.get(p).copied().flatten()));
        let rest = |l: Option<&Latency>| {
            let max = shown(l.and_then(|l| l.max_us));
            format!("{},{},{},{max}", at(l, "p50"), at(l, "p99"), at(l, "p99.9"))
        };
        let mean = shown(service.map(|l| l.mean_us));
        let _ = writeln!(
            out,
            "{second},{phase},{},{},,{mean},{},{},,,",
            metric.name,
            counts(&metric.outcomes),
            rest(service),
            rest(response)
        );
    }
    let _ = writeln!(out, "{second},{phase},TOTAL,{},,,,,,,,,,,,,", counts(&interval.ended));
    out
}

#[cfg(test)]
#[path = "imported_tests.rs"]
mod tests;
