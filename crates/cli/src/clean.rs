//! `dyno clean`: removes what runs have loaded into a database.

use crate::list::runs_below;
use crate::options::CleanArgs;
use dyno_databases::registry;
use dyno_db::target::{ClientDriver, OpenTarget, Target};
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{secret, signals, terminal};
use dyno_rundir::RunDir;
use dyno_session::loaded_data::{FoundData, LoadedData};
use dyno_types::units::counted;
use std::path::Path;
use std::sync::Arc;

/// The command: names what it would remove, and removes it if that is asked for.
pub fn clean(args: &CleanArgs) -> Result<Exit, Failure> {
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let target =
        registry::parse_for(&secret::uri(&args.target, args.password_from.as_ref())?, ClientDriver::Wire)?;
    let runs = runs_below(&args.folder)?;
    let own: Vec<&RunDir> = runs.iter().filter(|run| run.run.target == target.redacted()).collect();
    let mut known: Vec<FoundData> = Vec::new();
    let mut all: Vec<(LoadedData, Box<dyn OpenTarget>)> = Vec::new();
    for run in &own {
        let Some(data) = LoadedData::of_run(run, &own)? else {
            if LoadedData::is_of(run) {
                let path = run.path.display();
                terminal::note(&format!(
                    "{path}: what it has loaded cannot be told again: commands of your own have --reload, the rest goes by hand"
                ));
            }
            continue;
        };
        let opened = target.open(data.content(), &signals::interrupted)?;
        let found = data.find(opened.as_ref(), &control)?;
        // Data that were loaded again are the same data.
        let new: Vec<FoundData> = found.into_iter().filter(|one| !known.contains(one)).collect();
        for one in &new {
            terminal::line(&format!("{}, loaded by {}", one.message, run.path.display()));
        }
        if !new.is_empty() {
            known.extend(new);
            all.push((data, opened));
        }
    }
    if known.is_empty() {
        return Err(nothing(target.as_ref(), &args.folder, &own, &runs));
    }
    if !args.yes {
        terminal::note("nothing was removed; --yes removes this");
        return Ok(Exit::Ok);
    }
    let count = |data: &LoadedData, opened: &dyn OpenTarget| -> Result<u64, Failure> {
        Ok(data.find(opened, &control)?.iter().map(|one| one.count).sum())
    };
    let mut removed = 0;
    for (data, opened) in &all {
        // Runs may have loaded the same records.
        removed += count(data, opened.as_ref())?;
        data.remove(opened.as_ref(), &control)?;
        let left = count(data, opened.as_ref())?;
        if left > 0 {
            return Err(Failure::internal(format!("{left} are still there: {}", target.redacted())));
        }
    }
    terminal::line(&format!("removed from {}: {}", target.redacted(), counted(removed as usize, "record")));
    Ok(Exit::Ok)
}

/// Why there is nothing to be removed.
fn nothing(target: &dyn Target, folder: &Path, own: &[&RunDir], all: &[RunDir]) -> Failure {
    let (target, folder) = (target.redacted(), folder.display());
    if !own.is_empty() {
        return Failure::usage(format!(
            "{target}: nothing is there of what the runs in {folder} have loaded"
        ));
    }
    let mut others: Vec<&str> = all.iter().map(|run| run.run.target.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    let others = if others.is_empty() { "no target".to_owned() } else { others.join(", ") };
    Failure::usage(format!(
        "{target}: no run in {folder} has loaded data there, so nothing is known to be dyno's; runs there are of {others}"
    ))
}
