//! Pure functions of recorded data: summaries, verdicts, thresholds, and the closed forms they are checked against.

mod arrival_latency;
mod between_requests;
mod blocks;
pub mod closed_form;
pub mod compare;
pub mod diagnose;
mod estimate;
#[cfg(test)]
mod estimate_tests;
pub mod faults;
pub mod interval;
mod latency;
pub mod laws;
mod monitored;
pub mod pod_requests;
pub mod queueing;
pub mod scalability;
pub mod series;
mod summarise;
mod thresholds;
mod verdict;

pub use arrival_latency::ArrivalLatency;
pub use blocks::Blocks;
pub use estimate::add_intervals;
pub use latency::latency_from_buckets;
pub use monitored::{HostCpuUse, cores_used, host_cpu, is_summarised, summarise_monitors};
pub use series::silence::{find_pauses, find_silences};
pub use summarise::{PhaseFacts, summarise_phase};
pub use thresholds::{BadThreshold, Condition, ThresholdFigure, ThresholdProblem};
pub use verdict::observations::load_failed;
pub use verdict::{
    Evidence, IntervalFigures, ResponseTime, RunObservations, judge_run, judge_steadiness,
    steadiness_of_responses, users_by_littles_law,
};
