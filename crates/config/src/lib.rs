//! Configuration of what is to be run, in words: experiments and their servers, settings with their provenance, `.properties`
//! files, inventories and document workloads in YAML.
//!
//! Nothing here prints, opens a connection or touches a file, save that the files a configuration names are read. What a workload
//! makes of its properties is `dyno-workload`'s affair; the grammar of drop-ins is in `compat-*`.

pub mod client;
pub mod experiment;
pub mod inventory;
pub mod properties;
pub mod server;
pub mod settings;
pub mod template;
pub mod tree;
pub mod values;
pub mod yaml;
