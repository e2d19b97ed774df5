//! What every learned workload says of itself, whatever it was learned from.

use super::arrivals::{Arrivals, OperationSizes, SCALES_NS};
use super::model::{ModelSpace, model_distances};
use super::reuse::ReuseDistances;
use crate::format::{Lack, RecordingHeader};
use crate::replay::RecordingSurvey;

/// Requests of keys whose distances are looked at, and compared with as many of the workload.
pub(super) const COMPARED: u64 = 20_000_000;

/// Sizes of caches that are told, percent of the keys.
const CACHES: [u64; 3] = [1, 10, 50];

/// A workload that was learned.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedWorkload {
    /// The file, as `dyno run --workload` takes it.
    pub text: String,
    /// How well it fits, and what it leaves out: a line each.
    pub findings: Vec<String>,
    /// Operations a second: sequences, and commands that stand for themselves; `None` where there are no times.
    pub rate: Option<f64>,
    /// Connections.
    pub connections: u32,
}

/// The first lines of a workload's file: how fast the traffic was.
pub(super) fn start_line(rate: Option<f64>, connections: u32, is_even: bool) -> String {
    let kind = if is_even { "constant" } else { "poisson" };
    let rate = rate.map_or(String::new(), |rate| format!("--rate {rate:.1} "));
    format!(
        "# Learned from a recording by `dyno learn`. See docs/learn.md.\n\
         # As it was: {rate}--connections {connections} --arrivals {kind}\n"
    )
}

/// Returns whether operations came one after the other, evenly.
pub(super) fn is_even(arrivals: &Arrivals) -> bool {
    arrivals.dispersion().iter().flatten().all(|index| *index < 0.5)
}

/// How soon keys are asked for again, then and in a workload that draws each key anew.
pub(super) fn model_findings(reuse: &ReuseDistances, model: &[ModelSpace<'_>], seed: u64) -> Vec<String> {
    let keys: u64 = model.iter().map(|space| space.keys).sum();
    if reuse.requests() == 0 || keys < 2 {
        return Vec::new();
    }
    let made = model_distances(model, &[], (reuse.requests(), reuse.requests()), seed);
    reuse_findings((reuse, &made), keys, true)
}

/// The greatest difference of the shares of the requests that caches of the last used keys would answer, at any size.
pub(super) fn greatest_difference(reuse: &ReuseDistances, made: &ReuseDistances, keys: u64) -> f64 {
    (0..)
        .map(|doublings| 1u64 << doublings)
        .take_while(|size| *size < keys)
        .map(|size| (reuse.hit_ratio(size) - made.hit_ratio(size)).abs())
        .fold(0.0, f64::max)
}

/// How soon keys are asked for again, then and in the workload. `is_still`: popularity does not change in the workload.
pub(super) fn reuse_findings(
    (reuse, made): (&ReuseDistances, &ReuseDistances),
    keys: u64,
    is_still: bool,
) -> Vec<String> {
    let sizes = |percent: u64| (keys * percent / 100).max(1);
    let shares = |of: &ReuseDistances| {
        CACHES.map(|percent| format!("{:.1}", of.hit_ratio(sizes(percent)) * 100.0)).join(", ")
    };
    let off = greatest_difference(reuse, made, keys) * 100.0;
    let caches = CACHES.map(|percent| percent.to_string()).join(", ");
    let of_first = match reuse.requests() {
        COMPARED => format!(" (the first {COMPARED} requests)"),
        _ => String::new(),
    };
    let mut findings = vec![format!(
        "a cache that keeps {caches} % of the keys, the last used ones, would have answered {} % of the requests of \
         keys, and {} % of the workload's; off by at most {off:.1} points at any size{of_first}",
        shares(reuse),
        shares(made)
    )];
    findings.extend(reuse.popularity_difference(made).map(|off| {
        format!(
            "over all keys the curves of popularity are off by at most {:.1} % of the requests",
            off * 100.0
        )
    }));
    let drift = reuse.drift().filter(|_| of_first.is_empty());
    findings.extend(drift.map(|drift| match made.drift() {
        Some(own) if !is_still => format!(
            "index of drift of the keys' popularity {drift:.1}, and {own:.1} of the workload's (1: each key is as popular in the \
             second half as in the first)"
        ),
        _ => format!(
            "index of drift of the keys' popularity {drift:.1} (1: each key is as popular in the second half as in the \
             first, as it is in the workload)"
        ),
    }));
    findings
}

/// How bursty the arrivals were.
pub(super) fn arrival_findings(arrivals: &Arrivals, header: &RecordingHeader) -> Option<String> {
    let scales = arrivals.dispersion();
    let known: Vec<String> = scales
        .iter()
        .zip(SCALES_NS)
        .filter_map(|(index, scale)| Some(format!("{:.2} at {} ms", (*index)?, scale / 1_000_000)))
        .collect();
    (!known.is_empty() && !header.is_without(Lack::Times)).then(|| {
        format!(
            "index of dispersion of the arrivals {} (1: Poisson; those of the workload are as --arrivals and --rate say)",
            known.join(", ")
        )
    })
}

/// How bursty the commands were, and those of the workload are, with operations of these sizes at this rate.
pub(super) fn command_arrivals(
    commands: &Arrivals,
    (sizes, rate, is_even): (&OperationSizes, f64, bool),
) -> Option<String> {
    let known: Vec<String> = commands
        .dispersion()
        .iter()
        .zip(SCALES_NS)
        .filter_map(|(index, scale)| {
            let own = sizes.dispersion(rate, scale, is_even);
            Some(format!("{:.2} in {} ms (the workload's {own:.2})", (*index)?, scale / 1_000_000))
        })
        .collect();
    (!known.is_empty()).then(|| {
        format!(
            "index of dispersion of the commands {}; 1: each comes by itself, by chance",
            known.join(", ")
        )
    })
}

/// What is not sent in a replay, and so not learned, and what the source does not tell.
pub(super) fn gap_findings(header: &RecordingHeader, survey: &RecordingSurvey) -> Vec<String> {
    let mut findings = Vec::new();
    for (reason, count) in &survey.left_out {
        findings.push(format!("left out: {count} {reason}"));
    }
    for lack in &header.lacks {
        findings.push(format!(
            "the recording's source ({}) does not tell {}",
            header.source,
            lack.lack_words()
        ));
    }
    findings
}
