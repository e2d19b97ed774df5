//! Evidence that the checks of the verdict look at.

use dyno_record::Totals;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::schema::{Claim, Phase};
use dyno_types::Outcome;

/// Evidence for the verdict.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The measured phase.
    pub phase: &'a Phase,
    /// Totals.
    pub totals: &'a Totals,
    /// Think time of the users in nanoseconds; `None` for the open loop.
    pub think_ns: Option<u64>,
    /// True if the engine's own threads apply the load (false for embedded stores).
    pub wire: bool,
    /// True if the run was ended early by a signal.
    pub interrupted: bool,
    /// True if the record ends before the run does: operations may be under way.
    pub partial: bool,
    /// Workers that were lost on the way, in words.
    pub lost: Vec<String>,
    /// Thresholds as written, with the claims that each rests on.
    pub asked: Vec<(String, Vec<Claim>)>,
    /// The response times that thresholds are on.
    pub responses: Vec<ResponseTime>,
    /// Further observations.
    pub observations: RunObservations,
}

/// A response time that a threshold is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseTime {
    /// `mean`, `min`, `max`, or a percentile: `p99.9`.
    pub statistic: String,
    /// The operation in lower case, `all` for every one.
    pub metric: String,
}

/// Operations of the load before the measured phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFailures {
    /// Those that failed.
    pub failed: u64,
    /// All of them.
    pub all: u64,
    /// The outcome of most of those that failed.
    pub most: Option<Outcome>,
}

/// Observations of a run while it is made, beyond its counts.
#[derive(Clone, Debug, Default)]
pub struct RunObservations {
    /// Operations of a schedule that the workload keeps by itself: those that it had not come to when the time was over, and
    /// all.
    pub missed: Option<(u64, u64)>,
    /// Successful operations of each whole second of the measured phase; nothing is done in an empty one.
    pub series: Vec<f64>,
    /// The parts of seconds before and behind these that are measured as well: successful operations, and length in seconds.
    pub partial_seconds: [(f64, f64); 2],
    /// Longest queue of due arrivals in each of them.
    pub backlog: Vec<f64>,
    /// Mean response time of the successful requests that ended in each of them, seconds; 0 where none did.
    pub response_s: Vec<f64>,
    /// The 99th percentile of response times, seconds, in intervals of so many seconds that hold enough operations for it, and
    /// when the first begins, seconds after the warm-up; `None` where that leaves too few intervals.
    pub tail: Option<(f64, f64, Vec<f64>)>,
    /// True if the load was to change on the way: its levels and drifts are what was asked for.
    pub varied: bool,
    /// Arrivals that a rate which changes asks for in the first half of the whole seconds, and before them.
    pub due_by_half: Option<f64>,
    /// True if the load ends by the number of its operations: users end one after the other then.
    pub counted: bool,
    /// Successes a second until the first user had nothing left to do, where the load ends by the number of its operations.
    pub busy_rate: Option<f64>,
    /// Distinct keys in a sample of the operations, and the number of records.
    pub keys: Option<(u64, u64)>,
    /// Difference between the run's lengths by the wall clock and by the steady clock, seconds.
    pub clock_skew_s: f64,
    /// Metrics in the engine's order, and the share of the arrivals that each was to have: `NaN` where none was asked for.
    pub mix: Vec<(String, f64)>,
    /// Numbers of the metrics whose requests may well find nothing.
    pub accepted_misses: Vec<usize>,
    /// True if the data belong on a disk, not in memory alone.
    pub on_disk: bool,
    /// Bytes of the data, and of the memory that may hold them, where both are known.
    pub data: Option<(u64, u64)>,
    /// True if monitors were to look on.
    pub watched: bool,
    /// Sources of the monitors that had fallen silent by the end of the phase.
    pub silent: Vec<String>,
    /// Changes between begin and end, in words.
    pub changed: Vec<String>,
    /// Nodes of the target that did not answer before the run, in words.
    pub missing: Option<String>,
    /// Faults that the experiment asked for, and what they did.
    pub faults: Vec<FaultFigures>,
    /// Failed operations that belong to them.
    pub failed_in_faults: u64,
    /// Faults that were asked for and did not come, in words.
    pub not_carried_out: Vec<String>,
    /// Operations of the run's load, where there was one.
    pub load_failed: Option<LoadFailures>,
}
