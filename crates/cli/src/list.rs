//! `dyno list` and `dyno stop`: of runs, experiments and proofs.

use crate::options::StopArgs;
use crate::serve;
use dyno_experiment::directory::read_record;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::run_directory::is_under_way;
use dyno_frontend::{in_cluster, terminal};
use dyno_localhost::temporary::remove_abandoned;
use dyno_localhost::trusted;
use dyno_prove::front as prove;
use dyno_report::html::served::ListedKind;
use dyno_rundir::{ExperimentDir, RunDir};
use dyno_types::secret::conceal_json;
use dyno_types::units::Rate;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// `dyno list [FOLDER]`.
pub fn list(folder: &Path, json: bool) -> Result<Exit, Failure> {
    if let Err(error) = std::fs::read_dir(folder) {
        return Err(Failure::usage(format!("{}: {error}", folder.display())));
    }
    let found = directories(folder);
    if json {
        let all: Vec<Value> = found.iter().map(|path| entry(path)).collect();
        let text = serde_json::to_string_pretty(&all)?;
        terminal::out(&format!("{}\n", conceal_json(&text)));
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        terminal::note(&format!("no runs and no experiments in {}", folder.display()));
    }
    for path in found {
        let line = match path.join("experiment.json").is_file() {
            false => line_of_run(&path),
            true => match read_record(&path) {
                Ok(_) => experiment::state(&path).unwrap_or_else(|error| error.to_string()),
                Err(error) => error.to_string(),
            },
        };
        terminal::line(&format!("{}  {line}", path.display()));
    }
    Ok(Exit::Ok)
}

/// A run or an experiment as JSON; figures that are not known are null.
fn entry(path: &Path) -> Value {
    let listed = serve::listed(path);
    let text = |text: String| if text.is_empty() { Value::Null } else { text.into() };
    let kind = if listed.kind == ListedKind::Experiment { "experiment" } else { "run" };
    let (ended, planned) = listed.runs.unzip();
    json!({
        "directory": path.display().to_string(),
        "kind": kind,
        "title": text(listed.title),
        "target": text(listed.target),
        "started": text(listed.started),
        "state": text(listed.state),
        "verdict": text(listed.verdict),
        "throughput": listed.throughput,
        "p99_us": listed.p99_us.filter(|us| us.is_finite()),
        "runs_ended": ended,
        "runs_planned": planned,
        "error": text(listed.message),
    })
}

/// Runs and experiments in a folder, or the one that it is; the runs of an experiment are its own.
pub(crate) fn directories(folder: &Path) -> Vec<PathBuf> {
    let is_one = |path: &Path| ["experiment.json", "run.json"].iter().any(|name| path.join(name).is_file());
    if is_one(folder) {
        return vec![folder.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| is_one(path));
    found.sort();
    found
}

/// All runs in a folder, those of experiments among them; one that cannot be read says nothing.
pub(crate) fn runs_below(folder: &Path) -> Result<Vec<RunDir>, Failure> {
    std::fs::read_dir(folder).map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    let of = |path: PathBuf| -> Vec<PathBuf> {
        match ExperimentDir::open(&path) {
            Ok(experiment) => experiment.runs.iter().map(|run| path.join(&run.dir)).collect(),
            Err(_) => vec![path],
        }
    };
    let paths = directories(folder).into_iter().flat_map(of);
    Ok(paths.filter_map(|path| Some(RunDir::salvage_run(&path).ok()?.0)).collect())
}

/// A run on one line: its state, its verdict, what it did and on what.
fn line_of_run(path: &Path) -> String {
    let run = serve::listed(path);
    if !run.message.is_empty() {
        return run.message;
    }
    let rate = run.throughput.map(|rate| format!("{}/s", Rate(rate)));
    let parts = [Some(run.state), Some(run.verdict).filter(|word| !word.is_empty()), rate, Some(run.title)];
    format!("{} on {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "), run.target)
}

/// `dyno stop DIR`: as Ctrl-C does; what a dyno that was killed has left is put back.
pub fn stop(args: &StopArgs) -> Result<Exit, Failure> {
    remove_abandoned().iter().for_each(|line| terminal::note(line));
    let Some(dir) = &args.dir else { return experiment::stop_left() };
    trusted::check_directory(dir).map_err(Failure::usage)?;
    if prove::is_proof(dir) {
        return prove::stop(dir, args.password_from.as_ref());
    }
    if let Some(controller) = in_cluster::controller_of(dir)? {
        return in_cluster::stop(dir, &controller);
    }
    // A single run has nothing else to be put back.
    if dir.join("run.json").is_file() && !dir.join("experiment.json").is_file() {
        let (run, _) = RunDir::salvage_run(dir)?;
        let shown = dir.display();
        if is_under_way(dir, run.run.status) {
            let message = "under way; Ctrl-C ends it where it was started, or dyno stop its experiment";
            return Err(Failure::usage(format!("{shown}: {message}")));
        }
        terminal::note(&format!("{shown}: no dyno is at work on it"));
        return Ok(Exit::Ok);
    }
    experiment::stop(dir)
}
