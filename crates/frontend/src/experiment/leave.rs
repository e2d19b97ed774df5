//! Servers that outlive the command: started, loaded where that is asked for, and left.

use super::watch::Watch;
use crate::exit::Failure;
use crate::pages;
use crate::program::{program, read_work};
use dyno_config::experiment::ExperimentPlan;
use dyno_engine::Control;
use dyno_experiment::context::ExperimentContext;
use dyno_experiment::directory::Directory;
use dyno_experiment::persistent_start::LeftServers;
use dyno_session::environment::read_environment;
use std::sync::Arc;

/// Starts the servers of a plan of one cell and leaves them; the reports of what was loaded are written.
pub fn leave(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    control: Arc<Control>,
    (quiet, load): (bool, bool),
) -> Result<LeftServers, Failure> {
    let environment = read_environment();
    let command = std::env::current_exe()?;
    let context = ExperimentContext {
        control,
        environment: &environment,
        read_work: &read_work,
        program: &command,
        persistent: None,
    };
    let mut watch = Watch::new(directory.path(), quiet, quiet, None);
    let left = dyno_experiment::persistent_start::leave(plan, directory, &context, load, &mut watch)?;
    if load {
        pages::leave_experiment(directory.path(), (program().price)(directory.path()));
    }
    Ok(left)
}
