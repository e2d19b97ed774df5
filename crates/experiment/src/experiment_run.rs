//! One run of an experiment: its cell and its point, and what it is made with.

use crate::point::SearchPoint;
use dyno_config::experiment::MatrixCell;
use dyno_engine::Control;
use dyno_hosts::remote::worker::serve::ReadWork;
use dyno_localhost::machine::Machine;
use dyno_rundir::schema::Environment;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Starts load and measure phases of one run.
pub(super) struct ExperimentRun<'a> {
    pub cell: &'a MatrixCell,
    pub point: &'a SearchPoint,
    pub dir: PathBuf,
    pub environment: &'a Environment,
    pub control: Arc<Control>,
    pub read_work: ReadWork<'a>,
    /// This program, to be started as worker.
    pub program: &'a Path,
    /// The experiment's directory.
    pub experiment_dir: &'a Path,
    pub machine: &'a Machine,
}

impl ExperimentRun<'_> {
    /// Environment variables of hook commands.
    pub(super) fn hook_variables(&self) -> Vec<(String, String)> {
        vec![
            ("DYNO_RUN_DIR".into(), self.dir.display().to_string()),
            ("DYNO_CELL".into(), self.cell.number.to_string()),
            ("DYNO_CELL_LABEL".into(), self.cell.levels_label()),
            ("DYNO_REPETITION".into(), self.point.repetition.to_string()),
        ]
    }
}
