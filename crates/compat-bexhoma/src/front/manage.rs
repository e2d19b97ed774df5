//! `status`, `stop`, `summary`, `localresults`: of the experiments in the folder of results.

use super::folders::experiments;
use super::run::show;
use crate::catalogue::price;
use crate::plan::flags::TypedFlags;
use dyno_experiment::directory::holder;
use dyno_experiment::left_behind;
use dyno_experiment::persistent_servers::PersistentServers;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::program::program;
use dyno_frontend::{pages, terminal};
use std::path::Path;

/// Shows what runs, what is stored, and how far each experiment is.
pub fn status(typed: &TypedFlags) -> Result<Exit, Failure> {
    let all = experiments(typed)?;
    terminal::out(&super::status::text(typed, &all)?);
    if all.is_empty() {
        terminal::note(&format!("no experiments in {}", typed.value("resultfolder")));
    }
    for dir in all {
        terminal::out(&format!("{}\n", dir.display()));
        experiment::status(&dir, false)?;
        let stands = PersistentServers::of(&dir).is_ok_and(|found| found.is_some());
        if !stands && holder(&dir).is_none() && left_behind(&dir) > 0 {
            terminal::note(&format!(
                "{}: a dyno that was killed has left something behind; `dyno bexhoma stop` clears up",
                dir.display()
            ));
        }
    }
    Ok(Exit::Ok)
}

/// Ends what runs; of one code what was left behind, too.
pub fn stop(typed: &TypedFlags) -> Result<Exit, Failure> {
    let mut all = experiments(typed)?;
    if typed.value("experiment").is_empty() {
        let stands = |dir: &Path| PersistentServers::of(dir).is_ok_and(|found| found.is_some());
        all.retain(|dir| holder(dir).is_some() || stands(dir) || left_behind(dir) > 0);
    }
    if all.is_empty() {
        terminal::note(&format!("{}: nothing runs", typed.value("resultfolder")));
    }
    Ok(experiment::stop_all(all))
}

/// The summary once more, made anew.
pub fn summary(typed: &TypedFlags) -> Result<Exit, Failure> {
    if typed.value("experiment").is_empty() {
        return Err(Failure::usage("summary: expected -e CODE; `dyno bexhoma localresults` lists codes"));
    }
    let mut failed = false;
    for dir in experiments(typed)? {
        pages::leave_experiment(&dir, price(&dir));
        failed |= show(&dir)?;
    }
    Ok(if failed { Exit::Threshold } else { Exit::Ok })
}

/// Everything in the folder, a line each.
pub fn results(typed: &TypedFlags) -> Result<Exit, Failure> {
    (program().list)(Path::new(typed.value("resultfolder")))
}
