//! The work of an experiment, of every kind.

use crate::{signals, terminal};
use dyno_compat_pocdriver::Caller;
use dyno_config::experiment::Experiment;
use dyno_session::work::Work;
use dyno_types::Refused;

/// Functions of this program that POCDriver's load uses.
pub const CALLER: Caller = Caller { warn: terminal::warn, interrupted: signals::interrupted };

/// Reads the work of an experiment, of every kind.
pub fn read_work(spec: &Experiment) -> Result<Box<dyn Work>, Refused> {
    dyno_worker::read_work(spec, CALLER)
}
