//! What every front end of a run in this process shares, `dyno run` as well as the drop-ins: the two streams, signals, exit
//! codes, the conductor of a run, its directory and its reports.

pub mod conductor;
pub mod environment;
pub mod exit;
pub mod experiment;
pub mod highest_rate;
mod http_agent;
pub mod in_cluster;
pub mod junit;
pub mod live;
pub mod metrics;
pub mod object_store;
pub mod pages;
pub mod program;
pub mod push;
pub mod run_directory;
pub mod secret;
pub mod signals;
pub mod summary;
pub mod terminal;
