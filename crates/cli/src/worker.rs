//! `dyno worker --stdio`, `dyno host --stdio`, `dyno pod` and `dyno relay --stdio`: the other ends of an experiment's pipes.

use dyno_compat_pocdriver::front::FRONT_END;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_worker::WorkerError;
use dyno_worker::args::{HostArgs, PlaceArgs, PodArgs, RelayArgs, TendArgs, WorkerArgs};

fn ended(result: Result<(), WorkerError>) -> Result<Exit, Failure> {
    match result {
        Ok(()) => Ok(Exit::Ok),
        Err(WorkerError::Refused(refused)) => Err(refused.into()),
        Err(WorkerError::Frame(error)) => Err(Failure::internal(error)),
        Err(WorkerError::Io(error)) => Err(error.into()),
    }
}

/// `dyno worker`.
pub fn worker(args: &WorkerArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::worker(args, FRONT_END))
}

/// `dyno host`.
pub fn host(args: &HostArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::host(args))
}

/// `dyno pod`.
pub fn pod(args: &PodArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::pod(args, terminal::out))
}

/// `dyno place`.
pub fn place(args: &PlaceArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::place(args))
}

/// `dyno tend`.
pub fn tend(args: &TendArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::tend(args, terminal::out))
}

/// `dyno relay`.
pub fn relay(args: &RelayArgs) -> Result<Exit, Failure> {
    ended(dyno_worker::relay(args))
}
