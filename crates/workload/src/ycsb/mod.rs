//! YCSB's workloads: properties in, operations out.
//!
//! The picture: a lookup of properties -> a config, checked as a whole before anything runs -> a workload for the
//! load phase or the run phase. [`properties`] reads, [`config`] checks, [`requests`] chooses keys, [`content`]
//! renders, [`core`] ties them together; [`mod@builtin_workloads`] holds the stock workload files and [`mod@table`] describes
//! every property. The facts come from the project's own sheet on YCSB; where its behaviour is a fault the module
//! says what is done instead.

pub mod builtin_workloads;
pub mod config;
pub mod content;
pub mod core;
pub mod economy;
pub mod occupancy;
mod operations;
mod prior_inserts;
pub mod properties;
pub mod request_distribution;
pub mod requests;
pub mod table;
pub mod timeseries;

pub use self::builtin_workloads::{WorkloadClass, stock_by_letter, stock_file, workload_class};
pub use self::config::CoreConfig;
pub use self::core::CoreWorkload;
pub use self::economy::{Audit, EconomyConfig, EconomyWorkload};
pub use self::occupancy::ConstantOccupancy;
pub use self::prior_inserts::PriorInserts;
pub use self::properties::BadProperty;
pub use self::table::{Property, Scope, known_properties};
pub use self::timeseries::{TimeSeriesConfig, TimeSeriesWorkload};
