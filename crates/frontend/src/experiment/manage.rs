//! `dyno status` and `dyno stop` of experiments: what runs and what has run.

use super::table;
use crate::exit::{Exit, Failure};
use crate::highest_rate::searched;
use crate::terminal;
use dyno_experiment::directory::{
    ExperimentRecord, finished, holder, read_journal, read_record, verified_holder,
};
use dyno_experiment::journal::{Entry, RunRecord, RunStatus};
use dyno_experiment::{CleanupReport, ListedState, clean_up, clean_up_listed, listed};
use dyno_localhost::trusted;
use dyno_rundir::describe_progress;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Progress of an experiment.
struct Progress {
    ended: Vec<RunRecord>,
    by: Option<u32>,
    message: String,
    /// True if there is nothing left to be made.
    over: bool,
}

fn progress_of(path: &Path, record: &ExperimentRecord) -> Result<Progress, Failure> {
    let entries = read_journal(path)?;
    let last = entries.iter().rev().find_map(|entry| match entry {
        Entry::End { status } => Some(status.clone()),
        Entry::Begin { .. } => Some("cut off".into()),
        _ => None,
    });
    let by = holder(path);
    let ended = finished(entries);
    let state = match (by, last) {
        (Some(pid), _) => format!("running (process {pid})"),
        (None, Some(last)) => last,
        (None, None) => "cut off".into(),
    };
    let over = match record.searches {
        true => state == "complete",
        false => ended.len() >= record.runs,
    };
    let failed = ended.iter().filter(|run| run.status == RunStatus::Failed).count();
    let failed = if failed > 0 { format!(", {failed} of them failed") } else { String::new() };
    let message =
        format!("{state}, {} ended{failed}", describe_progress(ended.len(), record.runs, record.searches));
    Ok(Progress { ended, by, message, over })
}

/// Says how far an experiment is.
pub fn state(path: &Path) -> Result<String, Failure> {
    Ok(progress_of(path, &read_record(path)?)?.message)
}

/// The table of an experiment for `dyno report`, as text or JSON.
pub fn table_of(path: &Path, price: Option<f64>, json: bool) -> Result<String, Failure> {
    let record = read_record(path)?;
    let table = table::text(&table::rows(path, &record, &finished(read_journal(path)?), price), json)?;
    // What a search has found stands above the runs that it comes from.
    let found = if json { Vec::new() } else { searched(path) };
    Ok(found.iter().map(|sentence| format!("{sentence}\n")).chain([table]).collect())
}

/// `dyno status DIR`.
pub fn status(dir: &Path, json: bool) -> Result<Exit, Failure> {
    let record = read_record(dir)?;
    let now = progress_of(dir, &record)?;
    let rows = table::rows(dir, &record, &now.ended, None);
    if json {
        table::show(&rows, true)?;
        return Ok(Exit::Ok);
    }
    terminal::line(&format!("{}: {}", record.name, now.message));
    for run in now.ended.iter().filter(|run| run.status == RunStatus::Failed) {
        terminal::line(&format!("failed: {}: {}", run.dir, run.cause));
    }
    table::show(&rows, false)?;
    let left = dyno_experiment::persistent_servers::PersistentServers::of(dir).map_err(Failure::usage)?;
    if left.is_none() && now.by.is_none() && !now.over {
        terminal::note(&format!("`dyno resume {}` goes on", dir.display()));
    }
    Ok(Exit::Ok)
}

/// Time that a run may take to end when asked to.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a process what Ctrl-C sends.
fn interrupt(pid: u32) -> Result<(), Failure> {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(Failure::internal(format!("process {pid} is no process")));
    };
    kill_process(process, Signal::INT).map_err(std::io::Error::from)?;
    Ok(())
}

/// Asks the process that is at work on an experiment to stop, and does not wait; false if there is none.
pub fn ask_to_stop(path: &Path) -> Result<bool, Failure> {
    trusted::check_directory(path).map_err(Failure::usage)?;
    verified_holder(path)?.map(|pid| interrupt(pid).map(|_| true)).unwrap_or(Ok(false))
}

/// Interrupts the process that is at work on a directory, and waits for its end.
pub fn end(dir: &Path, pid: u32) -> Result<(), Failure> {
    interrupt(pid)?;
    let end = Instant::now() + PATIENCE;
    while verified_holder(dir)? == Some(pid) {
        if Instant::now() > end {
            let message = format!("process {pid} has not ended within {} s", PATIENCE.as_secs());
            return Err(Failure::internal(message));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Puts back what a dyno that was killed has left, and says so; an error names what is still there, and why.
pub fn put_back(dir: &Path) -> Result<(), Failure> {
    said(&clean_up(dir))
}

fn said(cleaned: &CleanupReport) -> Result<(), Failure> {
    cleaned.done.iter().for_each(|message| terminal::note(message));
    let left = cleaned.left();
    match (left.is_empty(), cleaned.refused.is_empty(), cleaned.unreachable.is_empty()) {
        (true, ..) => Ok(()),
        (_, false, _) => Err(Failure::usage(left)),
        (_, _, false) => Err(Failure::unreachable(left)),
        _ => Err(Failure::internal(left)),
    }
}

/// `dyno stop --left`.
pub fn stop_left() -> Result<Exit, Failure> {
    let cleaned = clean_up_listed();
    let standing = listed().into_iter().filter_map(|one| match one.state {
        ListedState::Standing(folder) => Some(folder),
        _ => None,
    });
    let standing: BTreeSet<PathBuf> = standing.collect();
    for folder in &standing {
        let shown = folder.display();
        terminal::note(&format!("{shown}: its servers stand on purpose; `dyno stop {shown}` ends them"));
    }
    said(&cleaned)?;
    if cleaned.done.is_empty() {
        terminal::note("no dyno that was killed has left anything on this host");
    }
    Ok(Exit::Ok)
}

/// The same for several: one that cannot be stopped does not keep the others running; how the first of those ended.
pub fn stop_all(dirs: impl IntoIterator<Item = PathBuf>) -> Exit {
    let mut ended = Exit::Ok;
    for dir in dirs {
        if let Err(failure) = stop(&dir) {
            terminal::error(&failure.to_string());
            ended = if ended == Exit::Ok { failure.exit() } else { ended };
        }
    }
    ended
}

/// `dyno stop DIR` of an experiment: as Ctrl-C does.
pub fn stop(dir: &Path) -> Result<Exit, Failure> {
    let record = read_record(dir)?;
    let Some(pid) = verified_holder(dir)? else {
        put_back(dir)?;
        terminal::note(&format!("{}: no dyno is at work on it", record.name));
        return Ok(Exit::Ok);
    };
    end(dir, pid)?;
    // A run on servers that stand was at work: they are to end as well.
    if dyno_experiment::persistent_servers::PersistentServers::of(dir).is_ok_and(|found| found.is_some()) {
        put_back(dir)?;
    }
    terminal::note(&format!("{}: stopped; `dyno resume {}` goes on", record.name, dir.display()));
    Ok(Exit::Ok)
}
