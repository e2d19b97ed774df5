//! Turns what dyno counted into the metrics that YCSB would have: names, return codes, and which latency goes where.
//!
//! Input are [`Totals`] in microseconds, of a whole run or of one interval, with the names of their metrics. Each
//! operation becomes a metric of its successes (with `Return=` lines for all its outcomes) and metrics of its
//! failures; a few measurements of YCSB's workload have rules of their own ([`MeasurementKind`]). How the numbers are shown is
//! the business of `forms`.

use crate::report::java;
use crate::report::options::{Interval, MeasurementOptions};
use crate::report::return_code::ReturnCode;
use dyno_record::{Buckets, MergedSlot, RawSample, Scale, Totals};
use dyno_types::Outcome;
use dyno_types::metric::{CLEANUP, READ_MODIFY_WRITE, SCAN_PER_RECORD, VERIFY};
use std::time::{SystemTime, UNIX_EPOCH};

/// One sample of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricSample {
    /// Completion, milliseconds since the Unix epoch.
    pub done_ms: u64,
    /// Latency, microseconds, truncated.
    pub latency_us: u64,
}

/// A metric of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, without the prefix of a form.
    pub name: String,
    /// Latencies in microseconds.
    pub buckets: Buckets,
    /// Single latencies in order of completion; empty unless [`MeasurementOptions::needs_samples`].
    pub points: Vec<MetricSample>,
    /// `Return=` lines.
    pub returns: Vec<(ReturnCode, u64)>,
}

impl Metric {
    /// A metric without a sample.
    pub fn empty(name: &str) -> Metric {
        Metric {
            name: name.to_owned(),
            buckets: Buckets::new(Scale::Micros),
            points: Vec::new(),
            returns: Vec::new(),
        }
    }
}

/// All metrics of a run or an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The metrics, in YCSB's order: plain names, then `Intended-` names.
    pub list: Vec<Metric>,
    /// Lines for standard error.
    pub warnings: Vec<String>,
    /// True if every latency is there as a single sample.
    pub samples: bool,
}

/// Way in which YCSB's workload measures something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeasurementKind {
    /// An operation of the database: failures apart, with return codes.
    Operation,
    /// Successes and failures together, no return codes.
    Whole,
    /// As `Whole`, but without an intended start.
    WholeOp,
    /// Verification of a read: together, with return codes, without an intended start.
    Verify,
}

impl MeasurementKind {
    fn of(name: &str) -> MeasurementKind {
        match name {
            READ_MODIFY_WRITE | CLEANUP => MeasurementKind::Whole,
            SCAN_PER_RECORD => MeasurementKind::WholeOp,
            VERIFY => MeasurementKind::Verify,
            _ => MeasurementKind::Operation,
        }
    }

    fn has_returns(self) -> bool {
        matches!(self, MeasurementKind::Operation | MeasurementKind::Verify)
    }

    fn has_intended(self) -> bool {
        matches!(self, MeasurementKind::Operation | MeasurementKind::Whole)
    }
}

/// Source of a series' latencies.
enum LatencySource<'a> {
    /// In these slots, whole.
    Slots(Vec<&'a MergedSlot>),
    /// In samples only: a part of a slot.
    Samples,
}

/// A metric before it is decided which of its latencies are shown.
struct Series<'a> {
    name: String,
    kind: MeasurementKind,
    metric: usize,
    outcomes: Vec<Outcome>,
    held: LatencySource<'a>,
    returns: Vec<(ReturnCode, u64)>,
}

/// The metrics of `totals`, whose metrics are called `names` and whose unit must be microseconds; `epoch` is the
/// instant from which the samples' completions count.
pub fn metrics(
    names: &[String],
    totals: &Totals,
    epoch: SystemTime,
    options: &MeasurementOptions,
    interval: Interval,
) -> Metrics {
    assert_eq!(totals.slot_scale(), Scale::Micros, "YCSB reports microseconds");
    // A dropped operation has an outcome but no latency, and so no sample.
    let recorded: u64 = totals.slots.iter().flatten().map(|slot| slot.service.count()).sum();
    let samples = totals.samples.len() as u64 == recorded;
    let mut warnings = Vec::new();
    let mut series = Vec::new();
    for (metric, name) in names.iter().enumerate() {
        if MeasurementKind::of(name) == MeasurementKind::Operation {
            series.extend(operation(name, metric, totals, options, samples, &mut warnings));
        } else {
            series.extend(whole(name, metric, totals));
        }
    }
    let points = Points::new(names.len(), totals, epoch, options);
    let mut list = Vec::new();
    if interval == Interval::Intended {
        // Without an intended start there is no latency, but return codes are counted all the same.
        let shown: Vec<&Series<'_>> =
            series.iter().filter(|s| s.kind.has_intended() || !s.returns.is_empty()).collect();
        list.extend(in_order(shown, |s| {
            points.metric(s, s.kind.has_intended().then_some(SampleClock::Response))
        }));
    } else {
        list.extend(in_order(series.iter().collect(), |s| points.metric(s, Some(SampleClock::Service))));
    }
    if interval == Interval::Both {
        let shown: Vec<&Series<'_>> =
            series.iter().filter(|s| s.kind.has_intended() && s.is_recorded(totals)).collect();
        list.extend(in_order(shown, |s| Metric {
            name: format!("Intended-{}", s.name),
            returns: Vec::new(),
            ..points.metric(s, Some(SampleClock::Response))
        }));
    }
    Metrics { list, warnings, samples }
}

/// Metrics in the order of Java's map of their names.
fn in_order<'a>(series: Vec<&Series<'a>>, metric: impl Fn(&Series<'a>) -> Metric) -> Vec<Metric> {
    let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
    java::concurrent_map_order(&names).into_iter().map(|i| metric(series[i])).collect()
}

impl Series<'_> {
    /// Returns whether a latency was recorded, not only a return code.
    fn is_recorded(&self, totals: &Totals) -> bool {
        self.outcomes.iter().any(|&o| totals.outcomes[self.metric][o as usize] > 0)
    }
}

/// Counts of a metric's return codes. Of records that were not read, for whatever reason, YCSB's verification says ERROR.
fn returns(kind: MeasurementKind, counts: &[u64; Outcome::COUNT]) -> Vec<(ReturnCode, u64)> {
    let code_of = move |outcome| match (kind, ReturnCode::of(outcome)) {
        (MeasurementKind::Verify, code) if !matches!(code, ReturnCode::Ok | ReturnCode::UnexpectedState) => {
            ReturnCode::Error
        }
        (_, code) => code,
    };
    let count = |code| Outcome::ALL.into_iter().filter(move |&o| code_of(o) == code);
    ReturnCode::ALL
        .into_iter()
        .map(|code| (code, count(code).map(|o| counts[o as usize]).sum()))
        .filter(|&(_, n)| n > 0)
        .collect()
}

/// A measurement that holds successes and failures together.
fn whole<'a>(name: &str, metric: usize, totals: &'a Totals) -> Option<Series<'a>> {
    let slots: Vec<&MergedSlot> =
        [totals.ok_slot(metric), totals.failed_slot(metric)].into_iter().flatten().collect();
    let kind = MeasurementKind::of(name);
    (!slots.is_empty()).then(|| Series {
        name: name.to_owned(),
        kind,
        metric,
        outcomes: Outcome::ALL.to_vec(),
        held: LatencySource::Slots(slots),
        returns: if kind.has_returns() { returns(kind, &totals.outcomes[metric]) } else { Vec::new() },
    })
}

/// The outcomes of a metric, less those of operations that were due but never sent when the run was ended: YCSB's
/// threads do not know of them.
fn without_unsent(metric: usize, totals: &Totals) -> [u64; Outcome::COUNT] {
    let mut counts = totals.outcomes[metric];
    counts[Outcome::Aborted as usize] -= totals.unsent_operations(metric);
    counts
}

/// An operation's metric of successes, and its metrics of failures.
fn operation<'a>(
    name: &str,
    metric: usize,
    totals: &'a Totals,
    options: &MeasurementOptions,
    samples: bool,
    warnings: &mut Vec<String>,
) -> Vec<Series<'a>> {
    let counts = &without_unsent(metric, totals);
    let codes = returns(MeasurementKind::Operation, counts);
    if codes.is_empty() {
        return Vec::new();
    }
    let mut failures: Vec<(String, Vec<Outcome>)> = Vec::new();
    // A dropped operation has a return code but no latency.
    let timed = |o: Outcome| !matches!(o, Outcome::Ok | Outcome::Dropped);
    for outcome in Outcome::ALL.into_iter().filter(|&o| timed(o) && counts[o as usize] > 0) {
        let code = ReturnCode::of(outcome).name();
        let apart = options.each_error || options.tracked_errors.iter().any(|tracked| tracked == code);
        let name = format!("{name}-{}", if apart { code } else { "FAILED" });
        match failures.iter_mut().find(|(n, _)| *n == name) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => failures.push((name, vec![outcome])),
        }
    }
    if failures.len() > 1 && !samples {
        warnings.push(format!(
            "{name} failed in several ways, but single samples were not recorded: all failures are in {name}-FAILED."
        ));
        let all = failures.into_iter().flat_map(|(_, outcomes)| outcomes).collect();
        failures = vec![(format!("{name}-FAILED"), all)];
    }
    let several = failures.len() > 1;
    let series = |name: String, outcomes, held, returns| Series {
        name,
        kind: MeasurementKind::Operation,
        metric,
        outcomes,
        held,
        returns,
    };
    let ok = LatencySource::Slots(totals.ok_slot(metric).into_iter().collect());
    let mut all = vec![series(name.to_owned(), vec![Outcome::Ok], ok, codes)];
    for (name, outcomes) in failures {
        let held = match several {
            true => LatencySource::Samples,
            false => LatencySource::Slots(totals.failed_slot(metric).into_iter().collect()),
        };
        all.push(series(name, outcomes, held, Vec::new()));
    }
    all
}

/// Latency of a sample that is taken.
#[derive(Clone, Copy)]
enum SampleClock {
    Service,
    Response,
}

impl SampleClock {
    fn ns(self, sample: &RawSample) -> u64 {
        match self {
            SampleClock::Service => sample.service_ns,
            SampleClock::Response => sample.response_ns,
        }
    }

    fn buckets(self, slot: &MergedSlot) -> &Buckets {
        match self {
            SampleClock::Service => &slot.service,
            SampleClock::Response => &slot.response,
        }
    }
}

/// Single samples by metric, in order of completion; empty where the report does not need them.
struct Points<'a> {
    by_metric: Vec<Vec<&'a RawSample>>,
    epoch_ns: u128,
}

impl<'a> Points<'a> {
    fn new(metrics: usize, totals: &'a Totals, epoch: SystemTime, options: &MeasurementOptions) -> Self {
        let mut by_metric: Vec<Vec<&RawSample>> = vec![Vec::new(); metrics];
        if options.needs_samples() {
            for sample in &totals.samples {
                by_metric[usize::from(sample.metric)].push(sample);
            }
        }
        for samples in &mut by_metric {
            samples.sort_by_key(|sample| sample.done_ns);
        }
        Points { by_metric, epoch_ns: epoch.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() }
    }

    /// A series' metric with the latencies of `clock`, or without any.
    fn metric(&self, series: &Series<'_>, clock: Option<SampleClock>) -> Metric {
        let mut metric = Metric { returns: series.returns.clone(), ..Metric::empty(&series.name) };
        let Some(clock) = clock else { return metric };
        let samples =
            self.by_metric[series.metric].iter().filter(|sample| series.outcomes.contains(&sample.outcome));
        match &series.held {
            LatencySource::Slots(slots) => {
                slots.iter().for_each(|slot| metric.buckets.merge(clock.buckets(slot)))
            }
            LatencySource::Samples => {
                samples.clone().for_each(|sample| metric.buckets.record(clock.ns(sample)))
            }
        }
        metric.points = samples
            .map(|sample| MetricSample {
                done_ms: ((self.epoch_ns + u128::from(sample.done_ns)) / 1_000_000) as u64,
                latency_us: clock.ns(sample) / 1_000,
            })
            .collect();
        metric
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
