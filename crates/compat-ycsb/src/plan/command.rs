//! A command line of YCSB, understood.

use crate::bindings::Binding;
use dyno_config::settings::Settings;
use std::path::PathBuf;

/// Command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Insert the records.
    Load,
    /// Run the mix of operations.
    Run,
    /// Talk to the database.
    Shell,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Load, Mode::Run, Mode::Shell];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Load => "load",
            Mode::Run => "run",
            Mode::Shell => "shell",
        }
    }
}

/// Our own options, which start with two dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Exit as YCSB would, which is with 0 for nearly everything.
    pub compat_exit: bool,
    /// Place of the run directory; `None` for none.
    pub out: Option<PathBuf>,
    /// No run directory is wanted, which is the default.
    pub no_out: bool,
    /// Nothing is watched beside the load.
    pub no_monitor: bool,
    /// `summary.json` instead of the report on standard output.
    pub json: bool,
    /// Nothing on standard error but errors.
    pub quiet: bool,
}

/// A command line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YcsbCommand {
    /// Command.
    pub mode: Mode,
    /// The database.
    pub binding: Binding,
    /// All properties with their sources.
    pub settings: Settings,
    /// Notes for the user, each a line of its own without an end.
    pub notes: Vec<String>,
    /// Our own options.
    pub extras: Extras,
}
