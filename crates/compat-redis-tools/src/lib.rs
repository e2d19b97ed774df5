//! memtier_benchmark, redis-benchmark and valkey-benchmark: their command lines, their loads, and what they print.
//!
//! ```text
//! words --args--> settings --plan--> dyno_workload::commands::Commands --(the program runs them)--> histograms --report--> text
//! ```

pub mod front;
pub mod memtier;
pub mod redis_benchmark;
