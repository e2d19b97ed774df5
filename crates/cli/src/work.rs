//! The work of an experiment, of every kind.

use dyno_compat_pocdriver::front::CALLER;
use dyno_config::experiment::Experiment;
use dyno_session::work::Work;
use dyno_types::Refused;

/// Reads the work of an experiment, of every kind.
pub fn read_work(spec: &Experiment) -> Result<Box<dyn Work>, Refused> {
    dyno_worker::read_work(spec, CALLER)
}
