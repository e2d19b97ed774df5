//! Pure functions of recorded data: summaries, verdicts, thresholds, and the closed forms they are checked against.

pub mod closed_form;
pub mod compare;
pub mod diagnose;
pub mod faults;
mod felt;
pub mod interval;
pub mod laws;
mod monitored;
pub mod promql;
pub mod queueing;
pub mod scalability;
pub mod series;
mod summarise;
mod thresholds;
mod verdict;
mod verdict_client;
mod verdict_further;

pub use felt::Felt;
pub use monitored::{is_summarised, monitored};
pub use summarise::{PhaseFacts, latency, phase};
pub use thresholds::{BadThreshold, Condition, ThresholdProblem};
pub use verdict::{Evidence, Further, users_by_littles_law, verdict};
pub use verdict_further::load_failed;
