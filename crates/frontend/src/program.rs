//! What the program around the front ends adds to them: they know neither the drop-ins' work nor its other commands.

use crate::exit::{Exit, Failure};
use dyno_config::experiment::Experiment;
use dyno_session::work::Work;
use dyno_types::Refused;
use std::path::Path;
use std::sync::OnceLock;

/// Functions of the program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Reads the work of an experiment, of every kind.
    pub read_work: fn(&Experiment) -> Result<Box<dyn Work>, Refused>,
    /// Returns the command that goes on with the experiment in a directory, where a drop-in has begun it.
    pub continues: fn(&Path) -> Option<String>,
    /// Returns the price of an hour that a drop-in has noted of an experiment.
    pub price: fn(&Path) -> Option<f64>,
    /// Lists runs and experiments in a folder.
    pub list: fn(&Path) -> Result<Exit, Failure>,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Sets the functions: once, before any front end begins.
pub fn set_program(program: Program) {
    let is_first = PROGRAM.set(program).is_ok();
    debug_assert!(is_first, "the program is set once");
}

/// The functions of a program that has no drop-ins.
static ALONE: Program = Program {
    read_work: |spec| dyno_session::work::read(spec),
    continues: |_| None,
    price: |_| None,
    list: |folder| Err(Failure::internal(format!("{}: nothing lists it", folder.display()))),
};

/// Returns the functions; of a program that has set none, those of one without drop-ins.
pub fn program() -> &'static Program {
    PROGRAM.get().unwrap_or(&ALONE)
}

/// Reads the work of an experiment, of every kind.
///
/// # Errors
/// Names the key whose value cannot be used.
pub fn read_work(spec: &Experiment) -> Result<Box<dyn Work>, Refused> {
    (program().read_work)(spec)
}
