//! `dyno run`: one target, measured; or an experiment.
//!
//! `spec` makes an experiment of the options, `requested_target` reads the target, `resolve` reads work and thresholds, without
//! touching anything; `single_run` carries them out.

mod requested_target;
mod resolve;
mod settings;
mod single_run;
mod spec;
mod versus;

use crate::experiment;
use crate::options::RunArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::junit;
use dyno_types::secret::mask_text;
use requested_target::RequestedTarget;
use spec::RunSpec;
use std::path::Path;

/// The command.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    if let Some(other) = &args.versus {
        return versus::versus(args, other);
    }
    if let Some(parent) = std::env::var(versus::TURN_OF).ok().and_then(|pid| pid.parse().ok()) {
        versus::end_with(parent)?;
    }
    let name = args.target.as_deref().map_or_else(|| "dyno run".to_owned(), mask_text);
    junit::keep(args.result.junit.as_deref(), &name, |place| run_to(args, place))
}

/// The same; `place`: the file of `--junit`.
fn run_to(args: &RunArgs, place: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(name) = args.target.as_deref().filter(|name| experiment::is_experiment(name)) {
        if args.password_from.is_some() {
            return Err(Failure::usage(format!(
                "--password-from: goes with a target's URI; {name} has its own"
            )));
        }
        if args.repeat.is_some() {
            let message = format!("--repeat: {name} says it itself: use --set repetitions=N");
            return Err(Failure::usage(message));
        }
        return experiment::run(args, name, place);
    }
    if args.in_cluster {
        return Err(Failure::usage(
            "--in-cluster: goes with an experiment, a .yaml file with a section `kubernetes`",
        ));
    }
    if let Some(rate) = &args.require_rate {
        let message =
            format!("--require-rate {rate}: goes with an experiment; use --require 'throughput > {rate}'");
        return Err(Failure::usage(message));
    }
    if let Some(set) = args.sets.first() {
        return Err(Failure::usage(format!("--set {set}: goes with an experiment, a .yaml file")));
    }
    let run = RunSpec::from_args(args)?;
    let password_from = args.password_from.as_ref();
    let target = RequestedTarget::read(args.target.as_deref(), password_from, run.client_driver())?;
    match args.repeat {
        Some(repetitions) => {
            let text = run.as_experiment(args, resolve::work_name(&run)?, repetitions)?;
            experiment::repeat(args, &text, &target.as_uri(), place)
        }
        None => single_run::carry_out(run, target, &args.result, &args.live, place),
    }
}
