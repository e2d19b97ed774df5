//! `dyno worker --stdio`, `dyno host --stdio` and `dyno relay --stdio`: the other ends of an experiment's pipes.

use crate::args::{HostArgs, PodArgs, RelayArgs};
use crate::exit::{Exit, Failure};
use crate::run::environment;
use crate::signals;
use dyno_engine::Control;
use dyno_kubernetes::place::wait_for_words;
use dyno_protocol::frame::FrameError;
use dyno_remote::agent::agent;
use dyno_remote::relay;
use dyno_remote::worker::serve::serve;
use dyno_types::units::parse_duration_ns;
use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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

/// `dyno pod`.
pub fn pod(args: &PodArgs) -> Result<Exit, Failure> {
    let patience = parse_duration_ns(&args.patience, 1_000_000_000)
        .map_err(|e| Failure::Usage(format!("--patience: {e}")))?;
    signals::listen(&Arc::new(Control::default()))?;
    let listening = match (args.port, &args.token) {
        (Some(port), Some(token)) => {
            let program = std::env::current_exe()?;
            Some(relay::pod::listen(port, relay::token(token)?, &program)?)
        }
        _ => None,
    };
    // A pod has process numbers of its own: who is here was brought by a controller.
    let spoken_to = || {
        if listening.as_ref().is_some_and(|listening| listening.programs() > 0) {
            return true;
        }
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.contains(&&b"--stdio"[..])
        })
    };
    wait_for_words(Duration::from_nanos(patience), &spoken_to, &signals::interrupted);
    Ok(Exit::Ok)
}

/// `dyno relay`.
pub fn relay(args: &RelayArgs) -> Result<Exit, Failure> {
    no_terminal("a relay")?;
    relay::hub::hub(stdin(), stdout(), relay::token(&args.token)?)?;
    Ok(Exit::Ok)
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
