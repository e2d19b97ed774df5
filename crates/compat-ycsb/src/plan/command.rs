//! A command line of YCSB, understood.

use crate::bindings::Binding;
use dyno_config::settings::PropertySettings;
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

impl YcsbCommand {
    /// The arguments of YCSB's client that its wrapper makes of this command line: without our own, and without the wrapper's.
    pub fn as_original(&self, arguments: &[String]) -> Vec<String> {
        let mode = if self.mode == Mode::Load { "-load" } else { "-t" };
        let mut shown = vec![mode.to_owned(), "-db".to_owned(), self.binding.class().to_owned()];
        let (mut rest, mut words) = (arguments.iter(), 0);
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--out" | "--client" | "-cp" | "-jvm-args" => drop(rest.next()),
                own if ["--", "-jvm-args=", "-cp="].iter().any(|begin| own.starts_with(begin)) => {}
                "-P" | "-p" | "-db" | "-l" | "-table" | "-threads" | "-target" => {
                    shown.extend([Some(argument), rest.next()].into_iter().flatten().cloned());
                }
                // The command, and the binding.
                word if !word.starts_with('-') && words < 2 => words += 1,
                _ => shown.push(argument.clone()),
            }
        }
        shown
    }
}

/// A command line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YcsbCommand {
    /// Command.
    pub mode: Mode,
    /// The database.
    pub binding: Binding,
    /// All properties with their sources.
    pub settings: PropertySettings,
    /// Notes for the user, each a line of its own without an end.
    pub notes: Vec<String>,
    /// Our own options.
    pub extras: Extras,
}
