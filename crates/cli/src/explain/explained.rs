//! Explanations as data: of runs, of sweeps over users and rates, and of runs beside these.

use dyno_analysis::diagnose::{DiagnosisFinding, ThroughputChange};
use dyno_analysis::laws::{LawCheck, Observed, Rates, Sweep};
use dyno_analysis::series::{Stability, StabilityAnswer};
use serde::Serialize;

/// A run explained.
#[derive(Debug, Serialize)]
pub struct OfRun {
    /// Run directory.
    pub dir: String,
    /// Title of the run.
    pub title: String,
    /// Reasons of the verdict against the run.
    pub verdict: Vec<String>,
    /// Users, throughput, times, resources; `None` where nothing succeeded.
    pub observed: Option<Observed>,
    /// The laws.
    pub laws: Vec<LawCheck>,
    /// Seconds in each interval of `stability`.
    pub step_s: u64,
    /// Begin of the first interval of `stability`, seconds after the warm-up: later than 0 where records are missing.
    pub from_s: u64,
    /// Levels, period, drift of its throughput.
    pub stability: Option<Stability>,
    /// Whether its response times are steady.
    pub responses: Option<StabilityAnswer>,
    /// What was found in its response times, in words.
    pub responses_found: Option<String>,
    /// The greatest change of throughput, and what moved with it.
    pub change: Option<ThroughputChange>,
    /// Limits of the run.
    pub findings: Vec<DiagnosisFinding>,
    /// Notes on what cannot be said, and why.
    pub missing: Vec<String>,
    /// True if monitors looked on.
    #[serde(skip)]
    pub watched: bool,
}

/// A sweep over users explained.
#[derive(Debug, Serialize)]
pub struct OfSweep {
    /// Levels that its cells have in common.
    pub what: String,
    /// The analysis.
    pub sweep: Sweep,
}

/// A sweep over rates explained.
#[derive(Debug, Serialize)]
pub struct OfRates {
    /// Levels that its cells have in common.
    pub what: String,
    /// The analysis.
    pub rates: Rates,
}

/// Runs beside a sweep that are no points of it.
#[derive(Debug, Serialize)]
pub struct OutsideSweep {
    /// Levels of the runs.
    pub what: String,
    /// Number of the runs.
    pub runs: usize,
    /// Mean throughput of the runs, operations per second.
    pub throughput: f64,
    /// Mean response time of the runs, seconds.
    pub response_s: f64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct ExplainedParts {
    /// Runs.
    pub runs: Vec<OfRun>,
    /// Sweeps over users.
    pub sweeps: Vec<OfSweep>,
    /// Sweeps over rates.
    pub rates: Vec<OfRates>,
    /// Other runs of an experiment with a sweep.
    pub alone: Vec<OutsideSweep>,
}
