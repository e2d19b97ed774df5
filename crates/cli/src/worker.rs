//! `dyno worker --stdio`: the other end of an experiment's pipe.

use crate::exit::{Exit, Failure};
use dyno_rig::worker::{FrameError, serve};
use std::io::{IsTerminal, stdin, stdout};

/// The command.
pub fn worker() -> Result<Exit, Failure> {
    if stdin().is_terminal() {
        let words = "a worker is started by dyno itself and speaks through its standard input and output";
        return Err(Failure::Usage(words.into()));
    }
    match serve(stdin(), stdout(), &crate::pocdriver::read_work) {
        // The controller closes the pipe when it needs no more.
        Ok(()) | Err(FrameError::Closed) => Ok(Exit::Ok),
        Err(error) => Err(Failure::Internal(error.to_string())),
    }
}
