//! Is B better than A? Runs are the unit of analysis: operations of one run are not independent of each other.

pub mod bootstrap;
pub mod decide;
pub mod drift;
pub mod history;
pub mod quantiles;
pub mod rank;

pub use bootstrap::IntervalEstimate;
pub use decide::{Comparison, Conclusion, Decision, LeftOpen, Margin, compare_samples, runs_needed};
pub use drift::{Drift, estimate_drift};
pub use quantiles::{Quantiles, Shift};
