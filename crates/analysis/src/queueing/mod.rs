//! Queueing models: bounds of closed systems, mean value analysis, and open stations.
//!
//! Times and demands are in one unit of the caller's choice (seconds throughout dyno); throughput is per that unit.
//! A *station* is a resource with its service demand `D = V S`.
//! Sources: Lazowska, Zahorjan, Graham and Sevcik, "Quantitative System Performance" (1984), chapters 3, 5 and 6;
//! Zahorjan, Sevcik, Eager and Galler, "Balanced job bound analysis" (1982).

pub mod bounds;
pub mod mva;
pub mod open;

pub use bounds::{Bounds, ClosedSystem};
