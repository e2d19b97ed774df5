//! `dyno resume DIR`: goes on with an experiment that was cut off.

use super::manage::put_back;
use super::{CarryOut, carry_out, planned, preflight};
use crate::exit::{Exit, Failure};
use crate::metrics::LiveArgs;
use crate::{junit, signals, terminal};
use clap::Args;
use dyno_config::experiment::{self, ExperimentPlan, MatrixCell};
use dyno_engine::Control;
use dyno_experiment::directory::{Directory, DirectoryCopy};
use dyno_experiment::journal::{Entry, RunRecord, RunStatus};
use dyno_experiment::persistent_servers::PersistentServers;
use dyno_experiment::{pending, to_make_again};
use dyno_localhost::trusted;
use dyno_rundir::{Again, describe_progress};
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::secret::{MASK, conceal};
use dyno_types::units::counted;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `dyno resume`.
#[derive(Clone, Debug, Args)]
pub struct ResumeArgs {
    /// The experiment's directory
    pub dir: PathBuf,
    /// Make the runs that failed again, too
    #[arg(long)]
    pub failed: bool,
    /// Make the runs that are invalid again, too
    #[arg(long)]
    pub invalid: bool,
    /// Where live metrics go
    #[command(flatten)]
    pub live: LiveArgs,
    /// Write the results of all runs as JUnit XML, as CI systems read tests
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// A value that held a secret when the experiment began, given again: secrets are not kept
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Of a controller's Job: what is made again is noted once under this name, however many pods the Job has
    #[arg(long, value_name = "JOB", hide = true)]
    pub again_once: Option<String>,
    /// Keeps the directory elsewhere, too.
    #[arg(skip)]
    pub copy: Option<Arc<dyn DirectoryCopy>>,
}

/// `dyno resume DIR`.
pub fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let name = args.dir.display().to_string();
    junit::keep(args.junit.as_deref(), &name, |place| resume_to(args, place))
}

fn resume_to(args: &ResumeArgs, junit: Option<&Path>) -> Result<Exit, Failure> {
    let outlets = args.live.outlets()?;
    // Relative paths are meant where they were typed; the directory's own must still be found there.
    let dir = args.dir.canonicalize().map_err(|e| Failure::usage(format!("{}: {e}", args.dir.display())))?;
    trusted::check_directory(&dir).map_err(Failure::usage)?;
    if PersistentServers::of(&dir).map_err(Failure::usage)?.is_some() {
        let message =
            "its servers stand: `dyno bexhoma ycsb FLAGS -e CODE run` uses them, `dyno stop` ends them";
        return Err(Failure::usage(format!("{}: {message}", args.dir.display())));
    }
    let (mut directory, text) = Directory::resume(&dir)?;
    if let Some(copy) = &args.copy {
        directory.keep_copy(copy.clone())?;
    }
    let cleaned = put_back(&dir);
    if cleaned.is_err() {
        directory.note(Entry::End { status: "interrupted".into() })?;
    }
    cleaned?;
    let noted = args.again_once.as_ref().is_some_and(|job| directory.has_noted_again(job));
    let wanted = |run: &RunRecord| {
        !noted && (args.failed && run.status == RunStatus::Failed || args.invalid && run.trust == "invalid")
    };
    let (plan, made_again) = match again(args, &directory, text, wanted) {
        Ok(found) => found,
        Err(failure) => {
            // It was looked at, and is as it was.
            directory.note(Entry::End { status: "interrupted".into() })?;
            return Err(failure);
        }
    };
    directory.make_again(&made_again)?;
    if let Some(job) = args.again_once.as_ref().filter(|_| !noted) {
        // A pod that is killed before this line is followed by one that notes the rest.
        directory.note(Entry::AgainNoted { job: job.clone() })?;
    }
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let so_far = describe_progress(directory.ended.len(), plan.runs.len(), directory.record.searches);
    terminal::note(&format!("{so_far} have ended already"));
    if args.failed || args.invalid {
        terminal::note(&format!("{} made again", counted(made_again.len(), "run")));
    }
    let left = |what: fn(&RunRecord) -> bool| directory.ended.iter().filter(|run| what(run)).count();
    let (failed, invalid) = (left(|run| run.status == RunStatus::Failed), left(|run| run.trust == "invalid"));
    for (count, how) in [(failed, "failed"), (invalid, "invalid")].into_iter().filter(|(count, _)| *count > 0)
    {
        let shown = args.dir.display();
        terminal::note(&format!(
            "{} {how}: `dyno resume --{how} {shown}` makes them again",
            counted(count, "run")
        ));
    }
    let how = CarryOut { quiet: args.quiet, json: args.json, outlets, junit, persistent: None };
    carry_out(&plan, &mut directory, control, how)
}

/// The plan of a directory that is gone on with, and those of its runs that are made again. Fails where this machine no longer
/// has what the runs to be made ask for.
fn again(
    args: &ResumeArgs,
    directory: &Directory,
    text: String,
    wanted: impl Fn(&RunRecord) -> bool,
) -> Result<(ExperimentPlan, Vec<Again>), Failure> {
    let record = &directory.record;
    if record.cwd.is_dir() {
        std::env::set_current_dir(&record.cwd)?;
    }
    let text = with_secrets(&record.path, text)?;
    let sets = sets_again(&record.sets, &args.sets)?;
    let plan = planned(&text, &record.path, &sets)?;
    let label = |cell: &MatrixCell| conceal(&cell.levels_label()).into_owned();
    if plan.cells.iter().map(label).collect::<Vec<_>>()
        != record.cells.iter().map(|cell| cell.label.clone()).collect::<Vec<_>>()
    {
        let message = "the cells of experiment.yaml are not those that were planned: was it changed?";
        return Err(Failure::usage(format!("{}: {message}", args.dir.display())));
    }
    let made_again = to_make_again(&plan, &directory.ended, wanted);
    let mut ended = directory.ended.clone();
    ended.retain(|run| !made_again.contains(&run.again()));
    let left = pending(&plan, &ended);
    let cells: Vec<_> = plan.cells.iter().filter(|cell| left.contains(&cell.number)).cloned().collect();
    preflight::ready_for(&cells)?;
    Ok((plan, made_again))
}

/// The text with the secrets that the directory's copy does not hold: from the file that was given, if it is the same still.
fn with_secrets(path: &str, kept: String) -> Result<String, Failure> {
    if !kept.contains(MASK) {
        return Ok(kept);
    }
    let given = bounded::text_file(path, TEXT_BYTES).unwrap_or_default();
    match experiment::mask_text(&given) == kept {
        true => Ok(given),
        false => {
            let message =
                "secrets are not kept with an experiment, and this file is gone or no longer the same";
            Err(Failure::usage(format!("{path}: {message}")))
        }
    }
}

/// `--set` as it was given; those that held secrets must be given again.
fn sets_again(kept: &[String], again: &[String]) -> Result<Vec<String>, Failure> {
    let key = |set: &str| set.split_once('=').map_or(String::new(), |(key, _)| key.to_owned());
    if let Some(other) = again.iter().find(|set| !kept.iter().any(|old| key(old) == key(set))) {
        return Err(Failure::usage(format!("--set {}: was not given when the experiment began", key(other))));
    }
    let whole = |old: &String| match again.iter().find(|set| key(set) == key(old)) {
        Some(set) if experiment::masked_set(set) == *old => Ok(set.clone()),
        Some(set) => {
            Err(Failure::usage(format!("--set {}: differs from what was given at the beginning", key(set))))
        }
        None if old.contains(MASK) => {
            let message = "held a secret, which is not kept: give it again";
            Err(Failure::usage(format!("--set {} {message}", key(old))))
        }
        None => Ok(old.clone()),
    };
    kept.iter().map(whole).collect()
}
