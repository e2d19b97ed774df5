//! One run: its phases (load, warm-up, measure) and their boundaries, the monitors beside them, and the run directory that they
//! fill.

pub mod collection_stats;
pub mod conductor;
pub mod cores;
pub mod dataset_check;
pub mod environment;
pub mod existing_records;
pub mod hosts;
pub mod in_process_workers;
pub mod interval_history;
pub mod keyspace;
pub mod load_generator;
pub mod loaded_data;
pub mod oracle;
pub mod phase_boundaries;
pub mod session;
pub mod unresponsive_target;
pub mod watch;
pub mod work;
