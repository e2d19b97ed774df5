//! The long table: one row for each interval and operation, and one (`TOTAL`) over arrivals.

use crate::export::ExportError;
use crate::export::source::{ExportSource, SourceRun};
use crate::export::table::{Cell, ColumnKind, ExportTable};
use dyno_analysis::latency_from_buckets;
use dyno_record::Buckets;
use dyno_rundir::schema::Latency;
use dyno_rundir::{RecordedInterval, RecordedMetric};

/// Percentiles of an interval, each where enough samples support it.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

type NamedIntervals = (String, ColumnKind, Cell);

fn text(name: &str, value: &str) -> NamedIntervals {
    (name.to_owned(), ColumnKind::Text, value.into())
}

/// The run's name and levels, with which every row begins.
pub(super) fn place(source: &ExportSource, run: &SourceRun) -> Vec<NamedIntervals> {
    let mut place = vec![text("run", &run.name)];
    let level = |name: &String| (name.clone(), ColumnKind::Text, run.level(name).into());
    place.extend(source.factors.iter().map(level));
    if let Some(ended) = &run.ended {
        place.push(("cell".into(), ColumnKind::Int, (ended.cell as u64).into()));
        place.push(("repetition".into(), ColumnKind::Int, u64::from(ended.repetition).into()));
    }
    place
}

/// Every interval of every run.
pub fn intervals(source: &ExportSource) -> Result<ExportTable, ExportError> {
    let mut table = ExportTable::default();
    for run in &source.runs {
        let Some(dir) = &run.dir else { continue };
        let place = place(source, run);
        dir.each_interval(|interval| {
            for metric in &interval.metrics {
                table.push([place.clone(), of_metric(&interval, metric)].concat());
            }
            table.push([place.clone(), total(&interval)].concat());
        })?;
    }
    table.numbers(&source.factors);
    Ok(table)
}

fn when(interval: &RecordedInterval, metric: &str) -> Vec<NamedIntervals> {
    vec![
        text("phase", &interval.phase),
        ("second".into(), ColumnKind::Real, interval.start_s.into()),
        ("length_s".into(), ColumnKind::Real, interval.length_s.into()),
        text("metric", metric),
    ]
}

/// Successes, all failures but drops, drops, then every outcome but success in a column of its own.
fn counts(outcomes: &std::collections::BTreeMap<String, u64>) -> Vec<NamedIntervals> {
    let of = |name: &str| outcomes.get(name).copied().unwrap_or(0);
    let all: u64 = outcomes.values().sum();
    let int = |name: &str, count: u64| (name.to_owned(), ColumnKind::Int, Cell::from(count));
    let (ok, dropped) = (of("ok"), of("dropped"));
    let mut out = vec![int("ok", ok), int("failed", all - ok - dropped), int("dropped", dropped)];
    let others = outcomes.iter().filter(|(name, _)| !["ok", "dropped"].contains(&name.as_str()));
    out.extend(others.map(|(name, count)| int(&format!("outcome_{name}"), *count)));
    out
}

fn of_metric(interval: &RecordedInterval, metric: &RecordedMetric) -> Vec<NamedIntervals> {
    let mut row = when(interval, &metric.name);
    row.extend(counts(&metric.outcomes));
    for (short, kind) in [("service", "ok.service"), ("response", "ok.response")] {
        let found =
            metric.histograms.get(kind).and_then(|buckets: &Buckets| latency_from_buckets(buckets, 0));
        latencies(short, found.as_ref().or(metric.known.get(kind)), &mut row);
    }
    row
}

/// Mean, percentiles and maximum as columns `NAME_mean_us`, `NAME_p50_us`, ...
pub(super) fn latencies(name: &str, found: Option<&Latency>, row: &mut Vec<NamedIntervals>) {
    let mut put = |what: &str, value: Option<f64>| {
        row.push((format!("{name}_{what}_us"), ColumnKind::Real, value.into()));
    };
    put("mean", found.map(|l| l.mean_us));
    for p in PERCENTILES {
        put(p, found.and_then(|l| l.percentiles_us.get(p).copied().flatten()));
    }
    put("max", found.and_then(|l| l.max_us));
}

fn total(interval: &RecordedInterval) -> Vec<NamedIntervals> {
    let mut row = when(interval, "TOTAL");
    row.extend(counts(&interval.ended));
    row.push(("backlog".into(), ColumnKind::Int, interval.backlog.into()));
    row
}
