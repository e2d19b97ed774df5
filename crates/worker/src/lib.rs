//! What dyno starts on other hosts and in pods: `dyno worker`, `dyno host`, `dyno pod` and `dyno relay`.
//!
//! `dyno` has these commands too; the program `dyno-worker` has nothing else, and is half the size.

pub mod args;

use crate::args::{HostArgs, PlaceArgs, PodArgs, RelayArgs, TendArgs, WorkerArgs};
use dyno_compat_pocdriver::WorkFrontEnd;
use dyno_compat_pocdriver::work::PocWork;
use dyno_compat_sysbench_mongodb::work::SysbenchWork;
use dyno_config::experiment::Experiment;
use dyno_config::server::placement::Placement;
use dyno_config::server::tuning::HostTuning;
use dyno_engine::files::OutOfFiles;
use dyno_hosts::kubernetes::run_pods::wait_for_words;
use dyno_hosts::protocol::frame::FrameError;
use dyno_hosts::remote::agent::serve_agent;
use dyno_hosts::remote::relay;
use dyno_hosts::remote::worker::group::host::serve_group;
use dyno_hosts::remote::worker::serve::serve_controller;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::tuning::{Tuned, apply_settings};
use dyno_session::environment::read_environment;
use dyno_session::work::Work;
use dyno_types::units::parse_duration_ns;
use dyno_types::{RefusalCode, Refused};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io::{self, IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why a command of this crate ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Wrong usage.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The controller's frames cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file, a socket or a process; it names the limit of this process where that is behind it.
    #[error(transparent)]
    Io(io::Error),
}

impl From<LocalError> for WorkerError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Refused(refused) => WorkerError::Refused(refused),
            other => WorkerError::Io(io::Error::other(other)),
        }
    }
}

impl From<io::Error> for WorkerError {
    fn from(error: io::Error) -> Self {
        WorkerError::Io(dyno_rundir::files::name_limit(OutOfFiles::name_limit(error)))
    }
}

/// Reads the work of an experiment, of every kind.
///
/// # Errors
/// Names the key whose value cannot be used.
pub fn read_work(spec: &Experiment, caller: WorkFrontEnd) -> Result<Box<dyn Work>, Refused> {
    let workload = &spec.workload;
    Ok(match (&workload.sysbench, &workload.pocdriver) {
        (Some(variables), _) => Box::new(SysbenchWork::read(spec, variables)?),
        (_, Some(flags)) => Box::new(PocWork::read(spec, flags, caller)?),
        _ => dyno_session::work::read(spec)?,
    })
}

/// Applies load as a controller says (`dyno worker --stdio`), or has several workers do so (`--group`).
///
/// # Errors
/// Standard input is a terminal, or the controller is not understood.
pub fn worker(args: &WorkerArgs, caller: WorkFrontEnd) -> Result<(), WorkerError> {
    no_terminal("a worker")?;
    if args.group {
        return ended(serve_group(stdin(), stdout(), &std::env::current_exe()?, &args.token));
    }
    ended(serve_controller(stdin(), stdout(), &|spec| read_work(spec, caller)))
}

/// Does on this host what a controller elsewhere asks for (`dyno host --stdio`).
///
/// # Errors
/// Standard input is a terminal, or the controller is not understood.
pub fn host(args: &HostArgs) -> Result<(), WorkerError> {
    no_terminal("a host")?;
    let cache = || {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
        folder("XDG_CACHE_HOME")
            .or_else(|| Some(folder("HOME")?.join(".cache")))
            .map(|cache| cache.join("dyno"))
    };
    let directory = args.directory.clone().or_else(cache).unwrap_or_else(|| "/var/tmp/dyno".into());
    ended(serve_agent(stdin(), stdout(), &directory, read_environment()))
}

/// Waits in a pod for a controller to speak to it (`dyno pod`), and ends at a signal or when none does; `say` prints for the
/// pod's log.
///
/// # Errors
/// The patience is no duration, the token cannot be read, or nothing can listen at the port.
pub fn pod(args: &PodArgs, say: fn(&str)) -> Result<(), WorkerError> {
    let patience = parse_duration_ns(&args.patience, 1_000_000_000)
        .map_err(|e| Refused::new(RefusalCode::BadValue, "--patience", format!("--patience: {e}")))?;
    let interrupted = interrupted_by_signals()?;
    if let Some(placement) = &args.placement {
        say(&dyno_hosts::kubernetes::place::enter(&read_placement(placement)?)?);
    }
    let listening = match (args.port, &args.token) {
        (Some(port), Some(token)) => {
            let program = std::env::current_exe()?;
            Some(relay::pod::listen_on(port, relay::token(token)?, &program)?)
        }
        _ => None,
    };
    // A pod has process numbers of its own: who is here was brought by a controller.
    let spoken_to = || {
        if listening.as_ref().is_some_and(|listening| listening.count_programs() > 0) {
            return true;
        }
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.contains(&&b"--stdio"[..])
        })
    };
    wait_for_words(Duration::from_nanos(patience), &spoken_to, &|| interrupted.load(Ordering::Relaxed));
    Ok(())
}

/// Writes how a server is started on the cores of this node (`dyno place`).
///
/// # Errors
/// The placement cannot be read or is none of this node's, or the file cannot be written.
pub fn place(args: &PlaceArgs) -> Result<(), WorkerError> {
    Ok(dyno_hosts::kubernetes::place::write_script(
        &args.script,
        &read_placement(&args.placement)?,
        &args.ports,
        args.number,
    )?)
}

fn read_placement(text: &str) -> Result<Placement, Refused> {
    serde_json::from_str(text)
        .map_err(|e| Refused::new(RefusalCode::BadValue, "--placement", format!("--placement: {e}")))
}

/// Changes settings of a server's host, waits for a signal that ends it, puts them back and removes the server's data
/// (`dyno tend`); `say` prints what could not be changed.
///
/// # Errors
/// A setting cannot be changed or put back, or something in the folder cannot be removed.
pub fn tend(args: &TendArgs, say: fn(&str)) -> Result<(), WorkerError> {
    let folder = std::env::temp_dir().join("dyno-tend");
    let ready = folder.join("ready");
    if args.ready {
        return Ok(std::fs::metadata(ready).map(drop)?);
    }
    let interrupted = interrupted_by_signals()?;
    std::fs::create_dir_all(&folder)?;
    let tuned = match &args.host {
        Some(text) => {
            let tuning: HostTuning = serde_json::from_str(text)
                .map_err(|e| Refused::new(RefusalCode::BadValue, "--host", format!("--host: {e}")))?;
            let tuned = apply_settings(&tuning, &Machine::default(), &folder, args.go_on)?;
            tuned.lost.iter().for_each(|lost| say(&format!("{lost}\n")));
            Some(tuned)
        }
        None => None,
    };
    std::fs::write(&ready, "")?;
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
    // One that fails keeps the other from nothing.
    let discarded = args.discard.as_ref().map(std::fs::remove_dir_all);
    tuned.map_or(Ok(()), Tuned::revert_settings)?;
    match discarded {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Becomes true at a signal that ends a program.
fn interrupted_by_signals() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    Ok(interrupted)
}

/// Carries what a controller and the pods of its run say to each other (`dyno relay --stdio`).
///
/// # Errors
/// Standard input is a terminal, the token cannot be read, or the controller is not understood.
pub fn relay(args: &RelayArgs) -> Result<(), WorkerError> {
    no_terminal("a relay")?;
    relay::hub::serve_hub(stdin(), stdout(), relay::token(&args.token)?)?;
    Ok(())
}

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail instead of ending the process. Children have the usual
/// action again.
pub fn outlive_long_files() {
    // Where it cannot be had, the signal ends dyno as it ends others.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

fn no_terminal(what: &str) -> Result<(), Refused> {
    if stdin().is_terminal() {
        return Err(Refused::new(
            RefusalCode::Unsupported,
            "standard input",
            format!("{what} is started by dyno itself and speaks through its standard input and output"),
        ));
    }
    Ok(())
}

fn ended(served: Result<(), FrameError>) -> Result<(), WorkerError> {
    match served {
        // The controller closes the pipe when it needs no more.
        Err(FrameError::Closed) => Ok(()),
        served => Ok(served?),
    }
}
