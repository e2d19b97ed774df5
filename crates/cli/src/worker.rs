//! `dyno worker --stdio` and `dyno host --stdio`: the other ends of an experiment's pipes.

use crate::args::HostArgs;
use crate::exit::{Exit, Failure};
use crate::run::environment;
use dyno_rig::remote::agent;
use dyno_rig::worker::{FrameError, serve};
use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

/// `dyno worker`.
pub fn worker() -> Result<Exit, Failure> {
    no_terminal("a worker")?;
    ended(serve(stdin(), stdout(), &crate::pocdriver::read_work))
}

/// `dyno host`.
pub fn host(args: &HostArgs) -> Result<Exit, Failure> {
    no_terminal("a host")?;
    let cache = || {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
        folder("XDG_CACHE_HOME")
            .or_else(|| Some(folder("HOME")?.join(".cache")))
            .map(|cache| cache.join("dyno"))
    };
    let directory = args.directory.clone().or_else(cache).unwrap_or_else(|| "/var/tmp/dyno".into());
    ended(agent(stdin(), stdout(), &directory, environment()))
}

fn no_terminal(what: &str) -> Result<(), Failure> {
    match stdin().is_terminal() {
        true => Err(Failure::Usage(format!(
            "{what} is started by dyno itself and speaks through its standard input and output"
        ))),
        false => Ok(()),
    }
}

fn ended(served: Result<(), FrameError>) -> Result<Exit, Failure> {
    match served {
        // The controller closes the pipe when it needs no more.
        Ok(()) | Err(FrameError::Closed) => Ok(Exit::Ok),
        Err(error) => Err(Failure::Internal(error.to_string())),
    }
}
