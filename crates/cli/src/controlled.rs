//! Experiments that a pod conducts: both ends of them.

use crate::args::{self, CliCommand};
use crate::options::{ConductArgs, SendArgs, StatusArgs};
use crate::run;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment::ResumeArgs;
use dyno_frontend::{experiment, in_cluster};
use dyno_hosts::kubernetes::transfer::send_folder;
use std::ffi::OsString;
use std::io::stdout;

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
    let job = in_cluster::own_job();
    let words = in_cluster::conducted_words(&args.experiment, &args.out, (&args.again, &job))?;
    let words = std::iter::once("dyno".to_owned()).chain(words).map(OsString::from).collect();
    let (cli, _) = args::parse(words).map_err(|error| Failure::usage(error.to_string()))?;
    match cli.command {
        CliCommand::Run(options) => run::run(&options),
        CliCommand::Resume(options) => experiment::resume(&options),
        _ => Err(Failure::internal("an experiment is run or resumed")),
    }
}

/// `dyno send`.
pub fn send(args: &SendArgs) -> Result<Exit, Failure> {
    send_folder(&args.dir, stdout().lock())?;
    Ok(Exit::Ok)
}
