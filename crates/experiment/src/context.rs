//! Means by which an experiment is made, and its watchers.

use crate::journal::RunRecord;
use crate::point::SearchPoint;
use dyno_config::experiment::MatrixCell;
use dyno_engine::Control;
use dyno_hosts::remote::worker::serve::ReadWork;
use dyno_rundir::schema::{Environment, Summary};
use dyno_session::session::Observer;
use std::path::Path;
use std::sync::Arc;

/// Watches an experiment.
pub trait Watcher: Observer {
    /// A run begins: its cell, its point, and how many of the planned runs have ended.
    fn run_begins(&mut self, cell: &MatrixCell, point: &SearchPoint, ended: usize, planned: usize);
    /// A run has ended.
    fn run_ended(&mut self, cell: &MatrixCell, record: &RunRecord, summary: Option<&Summary>);
}

/// Context of an experiment: control, host, programs.
pub struct ExperimentContext<'a> {
    /// Ends it early.
    pub control: Arc<Control>,
    /// This host.
    pub environment: &'a Environment,
    /// Reads works.
    pub read_work: ReadWork<'a>,
    /// This program, to be started as worker.
    pub program: &'a Path,
    /// The directory of an experiment whose servers stand: they are used instead of new ones.
    pub persistent: Option<&'a Path>,
}
