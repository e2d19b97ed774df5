//! `--stop`, `--status`, `--continue`: of the experiments below folders of logs.

use super::logs;
use crate::folder::EXPERIMENT;
use dyno_experiment::directory::{finished, holder, read_journal, read_record};
use dyno_experiment::left_behind;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::experiment::ResumeArgs;
use dyno_frontend::metrics::LiveArgs;
use dyno_frontend::{signals, terminal};
use std::path::{Path, PathBuf};

/// Folders of logs with an experiment, in the order of their names.
fn folders(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(out) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.join(EXPERIMENT).join("experiment.json").is_file());
    all.sort();
    all
}

fn none(out: &Path) -> Exit {
    terminal::note(&format!("no logs in {}", out.display()));
    Exit::Ok
}

/// Shows how far everything is.
pub fn status(out: &Path) -> Result<Exit, Failure> {
    let all = folders(out);
    if all.is_empty() {
        return Ok(none(out));
    }
    for logs_dir in all {
        terminal::out(&format!("{}\n", logs_dir.display()));
        experiment::status(&logs_dir.join(EXPERIMENT), false)?;
    }
    Ok(Exit::Ok)
}

/// Ends what runs, and what a dyno that was killed has left running.
pub fn stop(out: &Path, prefix: &str) -> Result<Exit, Failure> {
    let named = |logs_dir: &PathBuf| {
        let name = logs_dir.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        prefix == "all" || name.starts_with(prefix) || name.contains(&format!("logs-{prefix}"))
    };
    let mut all = folders(out);
    // Things that a killed dyno has left are put back.
    let stands = |dir: &Path| holder(dir).is_some() || left_behind(dir) > 0;
    all.retain(|logs_dir| named(logs_dir) && stands(&logs_dir.join(EXPERIMENT)));
    if all.is_empty() {
        terminal::note(&format!("{}: nothing runs", out.display()));
    }
    Ok(experiment::stop_all(all.iter().map(|logs_dir| logs_dir.join(EXPERIMENT))))
}

/// Goes on with everything that is not at its end.
pub fn go_on(out: &Path, quiet: bool) -> Result<Exit, Failure> {
    let mut worst = Exit::Ok;
    for logs_dir in folders(out) {
        // A path from the root: the experiment goes on where it was begun.
        let dir = std::fs::canonicalize(logs_dir.join(EXPERIMENT))?;
        let logs_dir = std::fs::canonicalize(&logs_dir)?;
        let planned = read_record(&dir)?.runs;
        if finished(read_journal(&dir)?).len() >= planned || holder(&dir).is_some() {
            continue;
        }
        let exit = experiment::resume(&ResumeArgs {
            dir: dir.clone(),
            failed: false,
            invalid: false,
            sets: Vec::new(),
            json: false,
            quiet,
            live: LiveArgs::default(),
            junit: None,
            again_once: None,
            copy: None,
        })?;
        let passed = logs::write(&logs_dir, &finished(read_journal(&dir)?))?;
        logs::show(&logs_dir, 0)?;
        if signals::interrupted() {
            return Ok(Exit::Interrupted);
        }
        let exit = if exit == Exit::Ok && !passed { Exit::Invalid } else { exit };
        worst = if worst == Exit::Ok { exit } else { worst };
    }
    Ok(worst)
}
