//! Drop-ins that send commands to Redis and its kin: `dyno memtier`, `dyno redis-benchmark` and `dyno valkey-benchmark`.
//!
//! Each reads its words into a load and prints what came of it; `load` runs it in between.

mod load;
mod memtier;
mod redis_benchmark;
mod statsd;

pub use memtier::memtier;
pub use redis_benchmark::{redis_benchmark, valkey_benchmark};

use clap::Args;

/// Words of another program.
#[derive(Clone, Debug, Args)]
pub struct ToolArgs {
    /// The program's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub words: Vec<String>,
}
