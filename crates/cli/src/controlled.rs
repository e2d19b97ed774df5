//! Experiments that a pod conducts: both ends of them.

use crate::args::{self, CliCommand};
use crate::options::{ConductArgs, RunArgs, SendArgs, StatusArgs, StoreArgs};
use crate::run;
use dyno_experiment::directory::{DirectoryCopy, DirectoryError};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment::ResumeArgs;
use dyno_frontend::{experiment, in_cluster};
use dyno_hosts::kubernetes::transfer::send_folder;
use std::ffi::OsString;
use std::io::stdout;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that an object store may be out of reach while results are taken out of it.
const FETCH_OUTAGE: Duration = Duration::from_secs(60);

/// `dyno status`, of experiments of this host and of those that a pod conducts.
pub fn status(args: &StatusArgs) -> Result<Exit, Failure> {
    match in_cluster::controller_of(&args.dir)? {
        Some(controller) => in_cluster::status(&args.dir, &controller, args.json, args.wait),
        None if args.wait => {
            let message = "no pod conducts it: it ends where it was started";
            Err(Failure::usage(format!("--wait: {}: {message}", args.dir.display())))
        }
        None => experiment::status(&args.dir, args.json),
    }
}

/// `dyno resume`, of experiments of this host and of those that a pod has conducted.
pub fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    match in_cluster::controller_of(&args.dir)? {
        Some(controller) => in_cluster::resume(&controller, args),
        None => experiment::resume(args),
    }
}

/// `dyno conduct`: what the pod of a controller does.
pub fn conduct(args: &ConductArgs) -> Result<Exit, Failure> {
    in_cluster::await_cluster()?;
    let outage = Duration::from_secs(args.outage_s);
    let copy = open_store(&args.store, &args.out, outage)?;
    let job = in_cluster::own_job();
    let words = in_cluster::conducted_words(&args.experiment, &args.out, (&args.again, &job))?;
    let words = std::iter::once("dyno".to_owned()).chain(words).map(OsString::from).collect();
    let (cli, _) = args::parse(words).map_err(|error| Failure::usage(error.to_string()))?;
    let ended = match cli.command {
        CliCommand::Run(options) => run::run(&RunArgs { copy: copy.clone(), ..*options }),
        CliCommand::Resume(options) => experiment::resume(&ResumeArgs { copy: copy.clone(), ..options }),
        _ => Err(Failure::internal("an experiment is run or resumed")),
    };
    // Pages and tables are made after the last run. What went wrong first is told first.
    match (ended, copy.map_or(Ok(()), |copy| copy.update(&args.out))) {
        (Ok(_), Err(error)) => Err(DirectoryError::NotCopied(error).into()),
        (ended, _) => ended,
    }
}

fn open_store(
    args: &StoreArgs,
    out: &Path,
    outage: Duration,
) -> Result<Option<Arc<dyn DirectoryCopy>>, Failure> {
    let Some((store, login)) = args.store.as_ref().zip(args.login.as_ref()) else { return Ok(None) };
    Ok(Some(in_cluster::open_store(store, login, out, outage)?))
}

/// `dyno send`.
pub fn send(args: &SendArgs) -> Result<Exit, Failure> {
    if args.dir.exists() || args.store.store.is_none() {
        send_folder(&args.dir, stdout().lock())?;
        return Ok(Exit::Ok);
    }
    // Not into the directory: in the pod of a controller that is about to begin that is its own.
    let taken = tempfile::tempdir()?;
    let folder = taken.path().join(args.dir.file_name().unwrap_or_default());
    open_store(&args.store, &folder, FETCH_OUTAGE)?;
    send_folder(&folder, stdout().lock())?;
    Ok(Exit::Ok)
}
