//! `dyno worker --stdio`, `dyno host --stdio`, `dyno pod` and `dyno relay --stdio`: the other ends of an experiment's pipes.

use crate::exit::{Exit, Failure};
use crate::work::CALLER;
use dyno_worker::WorkerError;
use dyno_worker::args::{HostArgs, PodArgs, RelayArgs};

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Refused(refused) => refused.into(),
            WorkerError::Frame(error) => Failure::Internal(error.to_string()),
            WorkerError::Io(error) => error.into(),
        }
    }
}

/// `dyno worker`.
pub fn worker() -> Result<Exit, Failure> {
    dyno_worker::worker(CALLER)?;
    Ok(Exit::Ok)
}

/// `dyno host`.
pub fn host(args: &HostArgs) -> Result<Exit, Failure> {
    dyno_worker::host(args)?;
    Ok(Exit::Ok)
}

/// `dyno pod`.
pub fn pod(args: &PodArgs) -> Result<Exit, Failure> {
    dyno_worker::pod(args)?;
    Ok(Exit::Ok)
}

/// `dyno relay`.
pub fn relay(args: &RelayArgs) -> Result<Exit, Failure> {
    dyno_worker::relay(args)?;
    Ok(Exit::Ok)
}
