//! sysbench-mongodb's tables (TSV): of transactions, or of a load; both versions.

use crate::import::{BadFile, Found, ImportDetails, Input, count, in_interval, latency, metric};
use dyno_compat_sysbench_mongodb::report::average::AverageWindow;
use dyno_rundir::imported::ImportedInterval;
use dyno_types::limits::{IMPORT_COUNT, IMPORT_FIGURE};
use std::collections::BTreeMap;

/// Columns that a table must have: of transactions, or of a load.
const EXPECTED: &str =
    "columns elap_secs and int_tps (transactions), or tot_inserts and elap_secs (a load), separated by tabs";

/// One line: seconds, events so far or of the interval, failures so far, mean latency.
struct SysbenchRow {
    seconds: f64,
    events: f64,
    failed: Option<u64>,
    latency_ms: Option<f64>,
}

/// Reads a table, or the lines of it that lie in `window` (seconds, as the lines tell them): what is quoted is often the second
/// hour alone.
pub fn read(input: &Input, said: &ImportDetails, window: Option<AverageWindow>) -> Result<Found, BadFile> {
    let mut lines = input.text.lines().enumerate();
    let head: Vec<&str> = lines.next().map_or("", |(_, line)| line).split('\t').collect();
    let at = |name: &str| head.iter().position(|known| *known == name);
    let load = at("tot_inserts").is_some();
    let events = if load { at("tot_inserts") } else { at("int_tps") };
    let (Some(seconds), Some(events)) = (at("elap_secs"), events) else {
        return Err(BadFile::new(&input.path, 1, EXPECTED, &head.join(" ")));
    };
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        // A load's last lines end before the latency.
        let cell = |column: Option<usize>| cells.get(column?).copied().filter(|cell| !cell.is_empty());
        let number_in = |column: usize, most: f64| {
            let text = cell(Some(column)).unwrap_or("");
            let expected = format!("a number from 0 to {most:e} in column {}", head[column]);
            let read = text.parse::<f64>().ok().filter(|x| (0.0..=most).contains(x));
            read.ok_or_else(|| BadFile::new(&input.path, number + 1, &expected, text))
        };
        rows.push(SysbenchRow {
            seconds: number_in(seconds, IMPORT_FIGURE)?,
            events: number_in(events, if load { IMPORT_COUNT as f64 } else { IMPORT_FIGURE })?,
            failed: cell(at("cum_excp"))
                .and_then(|text| text.parse().ok())
                .filter(|all| *all <= IMPORT_COUNT),
            latency_ms: cell(at("int_lat")).and_then(|text| text.parse().ok()),
        });
    }
    let Some(last) = rows.last().map(|row| row.seconds).filter(|seconds| *seconds > 0.0) else {
        return Err(BadFile::new(&input.path, 2, "lines of intervals", ""));
    };
    let name = if load { "INSERT" } else { "TRANSACTION" };
    let mut found = Found {
        program: "sysbench-mongodb",
        phase: if load { "load" } else { "measure" },
        ..Found::default()
    };
    found.seconds = last;
    found.intervals = intervals(&rows, load, name);
    if let Some(window) = window {
        cut(&mut found, window).ok_or_else(|| {
            BadFile::new(&input.path, 2, &format!("lines within {window}"), &format!("{last} s"))
        })?;
    }
    whole(&mut found, &rows, name);
    if found.users.is_none() && said.users.is_none() {
        found.unknown.push("the number of users (--users)".into());
    }
    Ok(found)
}

/// Leaves the intervals that lie in `window`; `None` where there is none.
fn cut(found: &mut Found, window: AverageWindow) -> Option<()> {
    let (from, to) = (window.after_s.saturating_mul(1_000), window.to_s.saturating_mul(1_000));
    found.intervals.retain(|one| one.start_ms >= from && one.start_ms + one.length_ms <= to);
    let begin = found.intervals.first()?.start_ms;
    let end = found.intervals.last().map(|last| last.start_ms + last.length_ms)?;
    found.intervals.iter_mut().for_each(|one| one.start_ms -= begin);
    found.seconds = (end - begin) as f64 / 1e3;
    let value = format!("{} to {} s", begin / 1_000, end / 1_000);
    found.facts.insert("window".into(), value);
    Some(())
}

/// Counts are exact in a load; of transactions they are the rate of the interval times its length.
fn intervals(rows: &[SysbenchRow], load: bool, name: &str) -> Vec<ImportedInterval> {
    let mut all: Vec<ImportedInterval> = Vec::new();
    let (mut before_s, mut inserted, mut failures) = (0.0, 0.0, 0);
    for row in rows {
        let length_s = (row.seconds - before_s).max(0.0);
        let ok = if load { (row.events - inserted).max(0.0) } else { (row.events * length_s).round() } as u64;
        let failed = row.failed.map(|all| all.saturating_sub(failures)).filter(|n| *n > 0);
        (inserted, failures) =
            (inserted.max(row.events), row.failed.map_or(failures, |all| all.max(failures)));
        if length_s == 0.0 {
            // A load tells its total once more at the end.
            if let Some(last) = all.last_mut() {
                *last.ended.entry("ok".into()).or_default() += ok;
                let metrics = last.metrics.iter_mut();
                metrics.for_each(|metric| *metric.outcomes.entry("ok".into()).or_default() += ok);
            }
            continue;
        }
        let mean = row.latency_ms.filter(|_| ok > 0).map(|ms| latency(ok, ms * 1e3));
        let mut metric = in_interval(name, ok, mean, true);
        metric.outcomes.extend(failed.map(|n| ("server_error".to_owned(), n)));
        all.push(ImportedInterval {
            start_ms: (before_s * 1e3).round() as u64,
            length_ms: (length_s * 1e3).round() as u64,
            ended: metric.outcomes.clone(),
            metrics: vec![metric],
        });
        before_s = row.seconds;
    }
    all
}

fn whole(found: &mut Found, rows: &[SysbenchRow], name: &str) {
    let mut outcomes: BTreeMap<String, u64> = count(0);
    for (outcome, n) in found.intervals.iter().flat_map(|interval| &interval.ended) {
        *outcomes.entry(outcome.clone()).or_default() += n;
    }
    let known =
        || found.intervals.iter().flat_map(|interval| &interval.metrics).flat_map(|m| m.known.get("service"));
    let samples: u64 = known().map(|l| l.count).sum();
    let sum: f64 = known().map(|l| l.mean_us * l.count as f64).sum();
    // The mean over all is told only if every interval that did anything tells its own.
    let every = samples == outcomes["ok"] && samples > 0;
    let service = every.then(|| latency(samples, sum / samples as f64));
    if service.is_none() {
        found.unknown.push("the mean latency (not every interval tells its own)".into());
    }
    if rows.iter().all(|row| row.failed.is_none()) {
        found.unknown.push("failures".into());
    }
    found.unknown.push("histograms and percentiles (the table has means)".into());
    found.metrics = vec![metric(name, outcomes.clone(), service, true)];
    found.outcomes = outcomes;
}
