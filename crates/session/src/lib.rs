//! One run: its phases (load, warm-up, measure) and their boundaries, the monitors beside them, and the run directory that they
//! fill.

pub mod collection_stats;
pub mod conductor;
pub mod cores;
pub mod dataset_check;
pub mod environment;
pub mod hosts;
pub mod interval_history;
pub mod keyspace;
pub mod load_generator;
pub mod loaded_data;
pub mod oracle;
pub mod parts;
pub mod phase_boundaries;
pub mod presence;
pub mod session;
pub mod silence;
pub mod watch;
pub mod work;
