//! One iteration: its folder, its experiment, its logs.

use super::args::{Backend, WsfArgs};
use super::iteration::{Iteration, folder_name, note};
use super::{config, deployment, logs};
use crate::folder::{CONFIG, EXPERIMENT};
use dyno_config::experiment::estimate::estimate_duration;
use dyno_config::experiment::read_plan;
use dyno_config::server::ServerKind;
use dyno_engine::Control;
use dyno_experiment::directory::Directory;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::experiment::Findings;
use dyno_frontend::terminal;
use dyno_rundir::files;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the made text in messages.
fn called(iteration: &Iteration) -> String {
    iteration.resolved.full_name()
}

/// `--dry-run`: refuses what the run would, but for programs that are missing.
pub fn dry(args: &WsfArgs, iterations: &[Iteration]) -> Result<Exit, Failure> {
    let mut refusals = Vec::new();
    for one in iterations {
        let (text, name) = (&one.lowered.text, called(one));
        let planned = experiment::planned(text, &name, &[])?;
        terminal::out(&format!("# {}\n", folder_name(one, "")));
        terminal::out(&format!(
            "# workload-config.yaml\n{}\n# experiment.yaml\n{text}\n",
            config::text(args, one, &one.resolved)
        ));
        let estimate = estimate_duration(&planned);
        terminal::note(&format!(
            "{name}: {} server-client pairs, {} runs",
            one.lowered.pairs,
            planned.runs.len()
        ));
        let least = if estimate.open_ended { "at least " } else { "about " };
        terminal::note(&format!("{name}: {least}{:.0} s, plus loading", estimate.seconds));
        note(one);
        let findings = Findings::of(&planned.cells);
        findings.warn();
        refusals.extend(findings.refusal());
    }
    refusals.dedup();
    if refusals.is_empty() { Ok(Exit::Ok) } else { Err(Failure::usage(refusals.join("\n"))) }
}

/// Says what can be done where the server's program is not there.
pub fn available(args: &WsfArgs) -> Result<(), Failure> {
    if args.target.is_some() || args.deployment.backend != Backend::Local {
        return Ok(());
    }
    let kind = ServerKind::from(args.server);
    let there = match &args.program {
        Some(path) => path.is_file() || on_path(path),
        None => on_path(Path::new(kind.program_name())),
    };
    if there {
        return Ok(());
    }
    let missing = args.program.as_ref().map_or(kind.program_name().into(), |path| path.display().to_string());
    let message = "--target URI names a server that runs, --server ferretdb or redis starts another one";
    Err(Failure::usage(format!("{missing} is not there: {message}; --dry-run needs none")))
}

fn on_path(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.components().count() == 1
        && std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A folder that is not there yet: logs are never overwritten.
fn folder(args: &WsfArgs, iteration: &Iteration) -> PathBuf {
    let stamp = jiff::Zoned::now().strftime("%m%d-%H%M%S").to_string();
    let plain = args.out.join(folder_name(iteration, ""));
    if iteration.number.is_none() && !plain.exists() {
        return plain;
    }
    let stamped = folder_name(iteration, &stamp);
    let numbered = (2..1_000).map(|n| args.out.join(format!("{stamped}-{n}")));
    std::iter::once(args.out.join(&stamped)).chain(numbered).find(|path| !path.exists()).unwrap_or(plain)
}

/// Carries an iteration out.
pub fn run(args: &WsfArgs, iteration: &Iteration, control: &Arc<Control>) -> Result<Exit, Failure> {
    let (text, name) = (&iteration.lowered.text, called(iteration));
    experiment::ready(&experiment::planned(text, &name, &[])?)?;
    let logs_dir = folder(args, iteration);
    std::fs::create_dir_all(&logs_dir)?;
    note(iteration);
    files::put_file(&logs_dir.join(CONFIG), config::text(args, iteration, &iteration.resolved).as_bytes())?;
    for point in &iteration.sweep {
        let own = logs_dir.join(logs::of_target(point.value("TARGET")));
        std::fs::create_dir_all(&own)?;
        files::put_file(&own.join(CONFIG), config::text(args, iteration, point).as_bytes())?;
    }
    let path = logs_dir.join(EXPERIMENT);
    let plan = read_plan(text, &name, &[])?;
    deployment::note(&plan, &logs_dir)?;
    let mut directory = Directory::create(&path, text, &name, &[], &plan)?;
    let made = experiment::carry_out(
        &plan,
        &mut directory,
        control.clone(),
        experiment::CarryOut { quiet: args.quiet, ..Default::default() },
    );
    // Also of what was interrupted: what has ended has logs.
    let passed = logs::write(&logs_dir, &directory.ended)?;
    let exit = made?;
    logs::show(&logs_dir, args.verbose)?;
    terminal::note(&format!("logs: {}", logs_dir.display()));
    Ok(if exit == Exit::Ok && !passed { Exit::Invalid } else { exit })
}
