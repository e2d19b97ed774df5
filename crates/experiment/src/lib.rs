//! An experiment, carried out: runs in their order, each in its directory, with a journal that lets it go on after
//! anything.
//!
//! `check` says what is wrong with a file, `directory` is the experiment's directory and its lock, `journal` what has
//! begun and ended, `disk_room` room for results, `experiment_run` a single run, `execute_run` its making
//! (`experiment_error`: why it was not made),
//! `run_context` its target and workers, `run_phases` what it does with them, `provision` brings about the target
//! (`provisioned_target`: what that is), `pods` that of a cluster, `persistent_servers` servers that are left on purpose
//! (`persistent_start` leaves them, `persistent_target` uses them
//! again), `dataset_cache` copies of loaded data, `volumes` those that outlive their run (`volume_list` lists them),
//! `fault_targets` what faults are injected into, `pod_watchdog` who looks after pods, `watching` its monitors,
//! `participants` the hosts that take part, `strategy` which point of a cell comes next, `series` the figure of a run,
//! `hooks` the file's own commands, `faults` what is done to server and workers on purpose, `clock` when, `preflight` what this
//! machine does not have.
//!
//! ```text
//! Plan -> for each run: not in the journal? -> provision -> workers -> load, measure -> summary -> journal -> results.csv
//! ```

pub mod check;
pub mod clock;
pub mod context;
pub mod dataset_cache;
pub mod dataset_key;
pub mod directory;
mod disk_room;
pub mod execute_run;
pub mod experiment_error;
pub mod experiment_run;
pub mod fault_targets;
pub mod faults;
pub mod hooks;
pub mod hosts;
pub mod journal;
pub mod outage;
pub mod participants;
pub mod persistent_servers;
pub mod persistent_start;
pub mod persistent_target;
pub mod pod_watchdog;
pub mod pods;
pub mod point;
pub mod preflight;
pub mod provision;
pub mod provisioned_target;
pub mod proxy;
pub mod random;
pub mod rate_search;
pub mod remote_servers;
pub mod run_context;
pub mod series;

pub mod run_phases;
pub mod strategy;
pub mod traces;
pub mod tune;
pub mod volume_list;
pub mod volumes;
pub mod watching;

use crate::context::{ExperimentContext, Watcher};
use crate::directory::{Directory, DirectoryError, read_record};
use crate::experiment_run::ExperimentRun;
use crate::journal::{Entry, RunRecord, RunStatus};
use crate::outage::{Outage, is_out_of_reach};
use crate::point::SearchPoint;
use crate::provisioned_target::SharedServers;
use dyno_config::experiment::{ExperimentPlan, MatrixCell, OnFailure, Strategy};
use dyno_hosts::kubernetes::job_events::{JobEvent, put_on_own_job};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::{registry, trusted, tuning, undo};
use dyno_rundir::{Again, files, log};
use dyno_types::secret::MASK;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// End of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentEnding {
    /// Every run was made, or has failed.
    Complete,
    /// A signal came first.
    Interrupted,
    /// A run failed, and the file says to stop then.
    Stopped,
}

/// Makes every run that the journal does not hold.
pub fn run_experiment(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    context: &ExperimentContext<'_>,
    watcher: &mut dyn Watcher,
) -> Result<ExperimentEnding, DirectoryError> {
    let base = &plan.base;
    let told = [("DYNO_EXPERIMENT_DIR".to_owned(), directory.path().display().to_string())];
    let hook = |when: &str, commands: &[Vec<String>]| {
        hooks::run(when, commands, &base.hooks.timeout, directory.path(), &told, &context.control)
    };
    match hook("before_experiment", &base.hooks.before_experiment) {
        Err(_) if context.control.is_stopping() => {
            directory.note(Entry::End { status: "interrupted".into() })?;
            return Ok(ExperimentEnding::Interrupted);
        }
        done => done?,
    }
    let after = directory.path().to_owned();
    let machine = Machine::default();
    // Servers elsewhere have hosts of their own, which are tuned when they start.
    let elsewhere = !base.ssh.servers.is_empty() || base.kubernetes.is_some();
    let tuned = match base.host.is_nothing() || elsewhere {
        true => None,
        false => {
            let work_dir = directory.path().join("host");
            std::fs::create_dir_all(&work_dir)
                .map_err(|error| DirectoryError::Io { path: work_dir.clone(), error })?;
            let tuned = tuning::apply_settings(&base.host, &machine, &work_dir, false);
            tracing::info!(asked = ?base.host, done = tuned.is_ok(), "settings of this host are changed for the experiment");
            Some(tuned.map_err(|e| LocalError::failed_step("host", e))?)
        }
    };
    let mut shared = SharedServers::on(context.persistent);
    // Servers that stand are one run's at a time.
    let _alone = context.persistent.map(directory::lock).transpose()?;
    let ending = all_runs(plan, directory, context, &machine, &mut shared, watcher);
    let ended = shared.end();
    if let Some(tuned) = tuned {
        tuned.revert_settings().map_err(|e| LocalError::failed_step("host", e))?;
    }
    let hooks = &base.hooks;
    let told = [&told[..], &ending_variables(&ending, &directory.ended)].concat();
    let done = hooks::run(
        "after_experiment",
        &hooks.after_experiment,
        &hooks.timeout,
        &after,
        &told,
        &context.control,
    );
    let ending = ending?;
    ended?;
    keep_tunings(plan, directory)?;
    if ending != ExperimentEnding::Interrupted {
        dataset_cache::remove(&after);
        volumes::remove_own(&after);
    }
    let status = if ending == ExperimentEnding::Interrupted { "interrupted" } else { "complete" };
    directory.note(Entry::End { status: status.into() })?;
    done?;
    Ok(ending)
}

/// Environment variables of the commands after an experiment: how it has ended, for those that tell people.
fn ending_variables(
    ending: &Result<ExperimentEnding, DirectoryError>,
    ended: &[RunRecord],
) -> Vec<(String, String)> {
    let how = match ending {
        Ok(ExperimentEnding::Complete) => "complete",
        Ok(ExperimentEnding::Interrupted) => "interrupted",
        Ok(ExperimentEnding::Stopped) => "stopped",
        Err(_) => "failed",
    };
    let count = |is: &dyn Fn(&RunRecord) -> bool| ended.iter().filter(|run| is(run)).count().to_string();
    vec![
        ("DYNO_STATUS".into(), how.into()),
        ("DYNO_RUNS".into(), ended.len().to_string()),
        ("DYNO_RUNS_FAILED".into(), count(&|run| run.status == RunStatus::Failed)),
        ("DYNO_RUNS_INVALID".into(), count(&|run| run.trust == "invalid")),
        ("DYNO_RUNS_MISSED".into(), count(&|run| !run.passed)),
    ]
}

/// Leaves what tunings have found so far in the directory.
fn keep_tunings(plan: &ExperimentPlan, directory: &Directory) -> Result<(), DirectoryError> {
    let found = tune::found(plan, &directory.ended);
    if found.is_empty() {
        return Ok(());
    }
    let path = directory.path().join(dyno_rundir::tuning::FILE);
    let text = serde_json::to_string_pretty(&found).map_err(io::Error::from);
    text.and_then(|text| trusted::write(&path, (text + "\n").as_bytes()))
        .map_err(|error| DirectoryError::Io { path, error })
}

fn all_runs(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    context: &ExperimentContext<'_>,
    machine: &Machine,
    shared: &mut SharedServers,
    watcher: &mut dyn Watcher,
) -> Result<ExperimentEnding, DirectoryError> {
    let reached = directory.ended.iter().any(|run| run.status == RunStatus::Complete);
    let mut outage = Outage::new(Duration::from_nanos(plan.base.outage.0), reached);
    for planned in &plan.runs {
        let cell = &plan.cells[planned.cell];
        while let Some(point) = next_point(cell, planned.repetition, &directory.ended) {
            if context.control.is_stopping() {
                return Ok(ExperimentEnding::Interrupted);
            }
            outage.await_room(directory.path(), &context.control);
            if context.control.is_stopping() {
                continue;
            }
            watcher.run_begins(cell, &point, directory.ended.len(), plan.runs.len());
            let Some(record) =
                run(cell, &point, directory, (context, machine, &mut outage), shared, watcher)?
            else {
                continue;
            };
            tell_job(plan, &record, directory.ended.len());
            match record.status {
                RunStatus::Interrupted => return Ok(ExperimentEnding::Interrupted),
                RunStatus::Failed if plan.base.on_failure == OnFailure::Stop => {
                    return Ok(ExperimentEnding::Stopped);
                }
                _ => {}
            }
        }
    }
    Ok(ExperimentEnding::Complete)
}

/// Tells the Job of a controller in the cluster how a run has ended.
fn tell_job(plan: &ExperimentPlan, record: &RunRecord, ended: usize) {
    let Some(asked) = &plan.base.kubernetes else { return };
    let reason = match record.status {
        RunStatus::Complete if record.trust == "invalid" => "RunInvalid",
        RunStatus::Complete => "RunComplete",
        RunStatus::Failed => "RunFailed",
        RunStatus::Interrupted => "Interrupted",
    };
    let figure = record.throughput.map_or(String::new(), |figure| format!(", {figure:.0} operations/s"));
    let why = if record.cause.is_empty() { String::new() } else { format!(": {}", record.cause) };
    let message = format!("{ended} of {}, {}{figure}{why}", plan.runs.len(), record.dir);
    put_on_own_job(asked, JobEvent { is_warning: reason != "RunComplete", reason, message: &message });
}

/// Makes one run; none where it is to be made again, because its hosts were out of reach.
fn run(
    cell: &MatrixCell,
    point: &SearchPoint,
    directory: &mut Directory,
    (context, machine, outage): (&ExperimentContext<'_>, &Machine, &mut Outage),
    shared: &mut SharedServers,
    watcher: &mut dyn Watcher,
) -> Result<Option<RunRecord>, DirectoryError> {
    let dir = directory.run_directory(cell.number, point.repetition, &point.label);
    let experiment_dir = directory.path().to_owned();
    let shown = dir.strip_prefix(&experiment_dir).unwrap_or(&dir).display().to_string();
    directory.note(Entry::Run {
        cell: cell.number,
        repetition: point.repetition,
        point: point.label.clone(),
        dir: shown,
    })?;
    log::keep_waiting();
    tracing::info!(
        cell = cell.number,
        levels = cell.levels_label(),
        repetition = point.repetition,
        point = point.label,
        dir = %dir.display(),
        "a run begins"
    );
    let one = ExperimentRun {
        cell,
        point,
        dir,
        environment: context.environment,
        control: context.control.clone(),
        read_work: context.read_work,
        program: context.program,
        experiment_dir: &experiment_dir,
        machine,
    };
    let (record, summary) = one.make(shared, watcher);
    if record.status == RunStatus::Failed {
        tracing::error!(reason = record.cause, "the run has failed");
    }
    // Beside the place of the run directory, where there is none. A log that cannot be kept changes nothing of the run.
    let _ = log::end_run(&one.dir.with_extension("server"));
    let mut record = record;
    // What was measured is lost with its files.
    record.out_of_reach |= record.status == RunStatus::Failed && disk_room::is_full(&experiment_dir);
    let again = outage.ends_in_another_attempt(&record);
    if again && !outage.goes_on(&context.control) && context.control.is_stopping() {
        // It was not made, and is when the experiment goes on.
        record.status = RunStatus::Interrupted;
    }
    // What is left in the cluster would be in the way of the next run, and measured beside it.
    let mut told = false;
    while let Some(error) = clean_left(&experiment_dir) {
        if is_out_of_reach(&error) && !std::mem::replace(&mut told, true) {
            outage.tell(&error.to_string());
        }
        if !is_out_of_reach(&error) || !outage.goes_on(&context.control) {
            tracing::warn!(target: log::NOTICE, "{error}: `dyno stop` removes it");
            break;
        }
    }
    if again && record.status != RunStatus::Interrupted {
        return Ok(None);
    }
    // Else a run that was made would have no line in the journal.
    outage.await_room(&experiment_dir, &context.control);
    directory.note(Entry::Ended(record.clone()))?;
    watcher.run_ended(cell, &record, summary.as_ref());
    Ok(Some(record))
}

/// Removes what runs of this experiment have left in clusters; the first error, if there is one.
fn clean_left(experiment_dir: &Path) -> Option<LocalError> {
    let left = leftovers(experiment_dir).pods;
    // One that cannot be removed keeps no other.
    let errors: Vec<LocalError> =
        left.iter().filter_map(|journal| clean_pods(experiment_dir, journal).err()).collect();
    errors.into_iter().next()
}

/// Returns the next point of a planned run that is still to be made.
fn next_point(cell: &MatrixCell, repetition: u32, ended: &[RunRecord]) -> Option<SearchPoint> {
    let seed = cell.spec.seed;
    let of_cell = ended.iter().filter(|run| run.cell == cell.number);
    match &cell.spec.strategy {
        None => {
            let made = of_cell.into_iter().any(|run| run.repetition == repetition);
            (!made).then(|| SearchPoint::plain(repetition))
        }
        // It counts its own repetitions; the file's are not asked for.
        Some(strategy @ (Strategy::RepeatUntil(_) | Strategy::Tune(_))) => {
            let history: Vec<&RunRecord> = of_cell.collect();
            if repetition == 1 { strategy::next(strategy, seed, 1, &history) } else { None }
        }
        Some(strategy) => {
            let history: Vec<&RunRecord> = of_cell.filter(|run| run.repetition == repetition).collect();
            strategy::next(strategy, seed, repetition, &history)
        }
    }
}

/// The runs that are made again with those that `wanted` names: of a search, whose next run follows from the earlier ones, all
/// later ones, too. In the order in which they have ended.
pub fn to_make_again(
    plan: &ExperimentPlan,
    ended: &[RunRecord],
    wanted: impl Fn(&RunRecord) -> bool,
) -> Vec<Again> {
    let follows = |run: &RunRecord, from: &RunRecord| {
        let cell = plan.cells.iter().find(|cell| cell.number == run.cell && run.cell == from.cell);
        match cell.and_then(|cell| cell.spec.strategy.as_ref()) {
            None => false,
            Some(Strategy::RepeatUntil(_) | Strategy::Tune(_)) => true,
            Some(Strategy::Ladder(_) | Strategy::HighestRate(_)) => run.repetition == from.repetition,
        }
    };
    // A search may ask for one point several times: what is noted of one of them is noted of all.
    let named: Vec<Again> = ended.iter().filter(|run| wanted(run)).map(RunRecord::again).collect();
    let is_named: Vec<bool> = ended.iter().map(|run| named.contains(&run.again())).collect();
    let is_again = |at: usize, run: &RunRecord| {
        is_named[at] || (0..at).any(|before| is_named[before] && follows(run, &ended[before]))
    };
    let again = ended.iter().enumerate().filter(|(at, run)| is_again(*at, run));
    again.map(|(_, run)| run.again()).collect()
}

/// The cells of which a run is still to be made.
pub fn pending(plan: &ExperimentPlan, ended: &[RunRecord]) -> Vec<usize> {
    let left = |cell: &MatrixCell| {
        let mut runs = plan.runs.iter().filter(|run| run.cell + 1 == cell.number);
        runs.any(|run| next_point(cell, run.repetition, ended).is_some())
    };
    plan.cells.iter().filter(|cell| left(cell)).map(|cell| cell.number).collect()
}

/// Journals below an experiment's directory that say what there is to put back.
struct Leftovers {
    /// Of objects in clusters.
    pods: Vec<PathBuf>,
    /// Of everything on this host.
    journals: Vec<PathBuf>,
}

fn leftovers(path: &Path) -> Leftovers {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_of_pods =
        |path: &PathBuf| trusted::is_of_pods(&path.file_name().unwrap_or_default().to_string_lossy());
    let pods = entries(path).map(|entry| entry.path()).filter(is_of_pods).collect();
    Leftovers { pods, journals: undo::journals_below(path) }
}

/// Counts the things that a killed dyno has left below an experiment's directory, and one that left servers on purpose:
/// [`clean_up`] puts them back.
pub fn left_behind(path: &Path) -> usize {
    let found = leftovers(path);
    found.pods.len() + found.journals.iter().map(|journal| undo::count_pending(journal)).sum::<usize>()
}

/// Puts back what a dyno that was killed has left behind below an experiment's directory: processes, control groups,
/// mounts, files, settings of the host; and servers that were left on purpose.
pub fn clean_up(path: &Path) -> CleanupReport {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut cleaned = CleanupReport::default();
    let found = leftovers(path);
    for journal in &found.pods {
        cleaned.take_pods(clean_pods(path, journal));
    }
    for journal in &found.journals {
        let done = undo::revert_journal(journal, &Machine::default());
        let words = |count| format!("{}: {count} things put back", journal.display());
        cleaned.take(done.map(|count| Some(count).filter(|count| *count > 0).map(words)));
    }
    // A server that could not be ended still stands.
    if cleaned.left().is_empty() {
        let forgotten =
            persistent_servers::forget(path).map_err(|error| LocalError::failed_step(path.display(), error));
        cleaned.take(forgotten.map(|were| were.then(|| "its servers no longer stand".into())));
    }
    cleaned
}

/// A journal of the list of this user's journals on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedJournal {
    /// Its path.
    pub journal: PathBuf,
    /// Things that are still to be put back; of objects in a cluster one.
    pub pending: usize,
    /// What its things are there for.
    pub state: ListedState,
}

/// Reason for which something stands in the list of journals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// Its dyno runs.
    Running,
    /// Servers that an experiment has left on purpose, by its directory.
    Standing(PathBuf),
    /// Its dyno was killed.
    Left,
}

/// Returns whether a process is at work in a directory, or has locked it.
fn is_locked(folder: &Path) -> bool {
    // An experiment's, or that of a folder with temporary files; two who only look do not disturb each other.
    let own = ["experiment.json", undo::NAME].iter().any(|name| folder.join(name).exists());
    let lock = files::open(&folder.join("lock")).ok().filter(|_| own);
    lock.is_some_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Everything that dynos of this user have made or changed on this host, or in clusters from here, and not put back yet.
pub fn listed() -> Vec<ListedJournal> {
    let machine = Machine::default();
    let of = |journal: PathBuf| {
        let is_of_pods = trusted::is_of_pods(&journal.file_name().unwrap_or_default().to_string_lossy());
        let pending = if is_of_pods { 1 } else { undo::count_pending(&journal) };
        let above = || journal.ancestors().skip(1).take(6);
        let standing = above().map(Path::to_owned).find(|folder| persistent_servers::stand_in(folder));
        // A dyno in another container holds the lock, though its process is not seen here.
        let running = above().any(is_locked) || (!is_of_pods && undo::is_followed(&journal, &machine));
        let state = match (running, standing) {
            (true, _) => ListedState::Running,
            (false, Some(folder)) => ListedState::Standing(folder),
            (false, None) => ListedState::Left,
        };
        ListedJournal { journal, pending, state }
    };
    registry::list_journals(&machine).into_iter().map(of).filter(|one| one.pending > 0).collect()
}

/// Puts back what dynos that were killed have left, wherever their directories are. Servers that stand on purpose stay.
pub fn clean_up_listed() -> CleanupReport {
    let mut cleaned = CleanupReport::default();
    for one in listed().into_iter().filter(|one| one.state == ListedState::Left) {
        let shown = one.journal.display().to_string();
        let folder = one.journal.parent().unwrap_or(Path::new("/"));
        if trusted::is_of_pods(&one.journal.file_name().unwrap_or_default().to_string_lossy()) {
            cleaned.take_pods(clean_pods(folder, &one.journal));
        } else {
            let done = undo::revert_journal(&one.journal, &Machine::default());
            cleaned.take(done.map(|count| Some(format!("{shown}: {count} things put back"))));
        }
    }
    cleaned
}

/// Outcome of [`clean_up`], in words.
#[derive(Debug, Default)]
pub struct CleanupReport {
    /// Things put back.
    pub done: Vec<String>,
    /// Things not tried: a file that is not the caller's own, an entry that dyno does not write, a dyno that still runs.
    pub refused: Vec<String>,
    /// Objects that a cluster has not removed.
    pub unreachable: Vec<String>,
    /// Things that failed on this host.
    pub failed: Vec<String>,
}

impl CleanupReport {
    /// Describes what is still there, and why.
    pub fn left(&self) -> String {
        [&self.refused[..], &self.unreachable, &self.failed].concat().join("\n")
    }

    fn take_pods(&mut self, ended: Result<String, LocalError>) {
        match ended {
            Err(error @ (LocalError::Failed(_) | LocalError::Step { .. } | LocalError::Program(_))) => {
                self.unreachable.push(error.to_string());
            }
            done => self.take(done.map(|selector| Some(format!("{selector}: removed from the cluster")))),
        }
    }

    fn take(&mut self, ended: Result<Option<String>, LocalError>) {
        match ended {
            Ok(done) => self.done.extend(done),
            Err(error @ (LocalError::Untrusted(_) | LocalError::Refused(_))) => {
                self.refused.push(error.to_string());
            }
            Err(error) => self.failed.push(error.to_string()),
        }
    }
}

/// Removes the objects of a journal with the program and the credentials of the experiment itself.
fn clean_pods(path: &Path, journal: &Path) -> Result<String, LocalError> {
    let place = || journal.display().to_string();
    let refused = |why: String| LocalError::refuse(place(), format!("{}: {why}", journal.display()));
    trusted::check_directory(path)?;
    if !registry::has_path(&Machine::default(), journal) {
        let why = "is not in the list of journals that your dyno has begun on this host, so that nothing in a cluster is removed";
        return Err(LocalError::Untrusted(format!("{}: {why}", journal.display())));
    }
    let record = read_record(path).map_err(|e| refused(e.to_string()))?;
    let text = files::read_to_string(&path.join("experiment.yaml")).map_err(|e| refused(e.to_string()))?;
    // A masked value is no secret of kubectl's; unquoted, YAML takes it for an alias.
    let (text, sets) =
        (text.replace(MASK, "masked"), record.sets.iter().map(|set| set.replace(MASK, "masked")));
    let plan = dyno_config::experiment::read_plan(&text, &record.path, &sets.collect::<Vec<_>>())
        .map_err(|e| refused(e.to_string()))?;
    let known: Vec<_> = plan.cells.into_iter().filter_map(|cell| cell.spec.kubernetes).collect();
    dyno_hosts::kubernetes::run_pods::clean_leftovers(journal, &known, &record.cwd)
}
