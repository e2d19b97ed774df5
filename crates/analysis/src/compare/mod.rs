//! Is B better than A? Runs are the unit of analysis: operations of one run are not independent of each other.

pub mod bootstrap;
pub mod decide;
pub mod history;
pub mod rank;

pub use bootstrap::Estimate;
pub use decide::{Comparison, Conclusion, Margin, compare, compare_quantiles, runs_needed};
