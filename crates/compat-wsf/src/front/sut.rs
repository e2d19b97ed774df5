//! `--prepare-sut`, `--reuse-sut`, `--cleanup-sut`: the system under test is this host. Preparing it means looking whether it
//! has what the test needs and noting how it is set up; servers are started and ended with each run.

use super::args::Backend;
use super::iteration::{Iteration, test_name};
use super::{WsfArgs, config, run};
use crate::folder::CONFIG;
use dyno_frontend::environment;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::terminal;
use dyno_rundir::files;
use dyno_session::environment::read_system;
use std::path::PathBuf;

const FACTS: &str = "sutinfo.json";

fn folder(args: &WsfArgs, iteration: &Iteration) -> PathBuf {
    args.out.join(format!("sut-logs-{}", test_name(&iteration.typed, iteration.resolved.case.name)))
}

/// `--prepare-sut`.
pub fn prepare(args: &WsfArgs, iterations: &[Iteration]) -> Result<Exit, Failure> {
    if args.deployment.backend != Backend::Local {
        let message = "looks at this host; hosts of another backend are looked at with each run";
        return Err(Failure::usage(format!("--prepare-sut: {message}")));
    }
    run::available(args)?;
    for one in iterations {
        experiment::ready(&experiment::planned(&one.lowered.text, &one.resolved.full_name(), &[])?)?;
        let sut_dir = folder(args, one);
        std::fs::create_dir_all(&sut_dir)?;
        let facts = serde_json::json!({ "system": read_system() });
        files::put_file(&sut_dir.join(FACTS), format!("{facts:#}\n").as_bytes())?;
        files::put_file(&sut_dir.join(CONFIG), config::text(args, one, &one.resolved).as_bytes())?;
        terminal::note(&format!("{}: this host has what the test needs", sut_dir.display()));
    }
    Ok(Exit::Ok)
}

/// `--reuse-sut`: says what differs from the host as it was prepared.
pub fn reuse(args: &WsfArgs, iterations: &[Iteration]) -> Result<(), Failure> {
    if args.burst.is_some_and(|n| n > 1) {
        return Err(Failure::usage("--reuse-sut: there is one system: no --burst"));
    }
    for one in iterations {
        let path = folder(args, one).join(FACTS);
        if !path.is_file() {
            let message = "was not prepared; --prepare-sut does that";
            return Err(Failure::usage(format!("--reuse-sut: {}: {message}", path.display())));
        }
        for change in environment::read_system(&path)?.list_differences(&read_system()) {
            let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
            terminal::warn(&format!(
                "{}.{} has changed since the host was prepared: {} -> {}",
                change.group,
                change.name,
                side(&change.first),
                side(&change.second)
            ));
        }
    }
    Ok(())
}

/// `--cleanup-sut`.
pub fn clean_up(args: &WsfArgs, iterations: &[Iteration]) -> Result<Exit, Failure> {
    for one in iterations {
        let sut_dir = folder(args, one);
        match sut_dir.join(FACTS).is_file() {
            true => std::fs::remove_dir_all(&sut_dir)?,
            false => terminal::note(&format!("{}: nothing was prepared", sut_dir.display())),
        }
    }
    Ok(Exit::Ok)
}
