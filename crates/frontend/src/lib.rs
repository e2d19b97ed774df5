//! What every front end of a run in this process shares, `dyno run` as well as the drop-ins: the two streams, signals, exit
//! codes, the conductor of a run, its directory and its reports.

pub mod conductor;
pub mod exit;
pub mod highest_rate;
pub mod pages;
pub mod run_directory;
pub mod signals;
pub mod summary;
pub mod terminal;
