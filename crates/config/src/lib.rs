//! From what a user typed to what a run is told: properties, options and their provenance.
//!
//! Here live the grammar of `.properties` files ([`properties`]), the layers of settings ([`settings`]), YCSB's
//! command line ([`ycsb`]), sysbench-mongodb's configurations
//! ([`sysbench_mongodb`]), the Workload Services Framework's cases ([`wsf`]), document workloads of one's own in YAML
//! ([`template`]), and the reading of what belongs to a binding ([`bindings`]) and to the client ([`client`]). What a
//! workload makes of its properties is `dyno-workload`'s affair. Nothing here prints, opens a connection or touches a
//! file, save that property files are read.
//!
//! ```text
//! arguments, -P files, built-in workloads -> Settings (key -> value, source) -> ClientConfig, BindingTarget, workload
//! ```

pub mod client;
pub mod experiment;
pub mod inventory;
pub mod properties;
pub mod server;
pub mod settings;
pub mod suggest;
pub mod template;
pub mod tree;
pub mod values;
pub mod yaml;
