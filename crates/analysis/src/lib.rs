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
pub mod queueing;
pub mod scalability;
pub mod series;
mod summarise;
mod thresholds;
mod verdict;

pub use arrival_latency::ArrivalLatency;
pub use blocks::Blocks;
pub use estimate::add_intervals;
pub use latency::latency;
pub use monitored::{HostCpuUse, cores_used, host_cpu, is_summarised, monitored};
pub use series::silence::{pauses, silences};
pub use summarise::{PhaseFacts, phase};
pub use thresholds::{BadThreshold, Condition, Figure, ThresholdProblem};
pub use verdict::observations::load_failed;
pub use verdict::{
    Evidence, OverTime, ResponseTime, RunObservations, steadiness, steadiness_of_responses,
    users_by_littles_law, verdict,
};
