//! `dyno run FILE`, `dyno resume`, `dyno plan`, `dyno list`, `dyno status`, `dyno stop`: experiments.

pub mod init;
mod leave;
mod manage;
pub mod manifests;
mod preflight;
mod preview;
mod table;
mod watch;

pub use leave::leave;
pub use manage::{ask_to_stop, end, state, status, stop, stop_all, stop_left, table_of};
pub use preflight::{Findings, ready};
pub use preview::{plan, presets as list_presets};

use crate::derived_options::typed_options;
use crate::junit;
use crate::metrics::{MetricsOutlets, Outlets};
use crate::options::{ResumeArgs, RunArgs};
use crate::work::read_work;
use dyno_compat_bexhoma::catalogue::price;
use dyno_compat_wsf::folder::continues;
use dyno_config::experiment;
use dyno_config::experiment::factors::short_name;
use dyno_config::experiment::{ExperimentPlan, MatrixCell, Strategy};
use dyno_engine::Control;
use dyno_experiment::check::check;
use dyno_experiment::context::ExperimentContext;
use dyno_experiment::directory::Directory;
use dyno_experiment::journal::{Entry, RunRecord, RunStatus};
use dyno_experiment::persistent_servers::PersistentServers;
use dyno_experiment::{ExperimentEnding, pending, run_experiment, to_make_again};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::highest_rate::{highest_rate, sureness};
use dyno_frontend::run_directory::new_directory;
use dyno_frontend::{pages, signals, terminal};
use dyno_localhost::trusted;
use dyno_presets as presets;
use dyno_report::junit::of_experiment;
use dyno_rundir::{Again, ExperimentDir, describe_progress};
use dyno_session::environment::read_environment;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::secret::{MASK, conceal};
use dyno_types::units::{Rate, counted};
use std::path::Path;
use std::sync::Arc;
use watch::Watch;

/// Returns whether the positional of `dyno run` names an experiment or a preset.
pub fn is_experiment(text: &str) -> bool {
    presets::find(text).is_some()
        || text.ends_with(".yaml")
        || text.ends_with(".yml")
        || !text.contains(':') && Path::new(text).is_file()
}

/// Reads an experiment's text: a file, or a preset by its name.
fn text_of(name: &str, scale: Option<u32>) -> Result<String, Failure> {
    if let Some(preset) = presets::find(name).filter(|_| !Path::new(name).is_file()) {
        return preset.text(scale).map_err(Failure::usage);
    }
    if let Some(scale) = scale {
        return Err(Failure::Usage(format!("--scale {scale}: goes with a preset that has scales")));
    }
    bounded::text_file(name, TEXT_BYTES).map_err(|e| {
        let hint = dyno_types::suggest::hint(name, presets::PRESETS.iter().map(|preset| preset.name));
        Failure::Usage(format!("{name}: {e}{hint}"))
    })
}

/// A plan that has been checked as far as that goes without touching anything.
pub fn planned(text: &str, name: &str, sets: &[String]) -> Result<ExperimentPlan, Failure> {
    let plan = experiment::read_plan(text, name, sets)?;
    check(&plan, &read_work)?;
    Ok(plan)
}

/// How an experiment is carried out, beside what its file says.
#[derive(Default)]
pub struct CarryOut<'a> {
    /// Print no progress.
    pub quiet: bool,
    /// Print the table as JSON.
    pub json: bool,
    /// Where live metrics go.
    pub outlets: Outlets,
    /// The file of `--junit`.
    pub junit: Option<&'a Path>,
    /// Another experiment, on whose servers this one runs.
    pub persistent: Option<&'a Path>,
}

/// `dyno run FILE`; `junit`: the file of `--junit`.
pub fn run(args: &RunArgs, name: &str, junit: Option<&Path>) -> Result<Exit, Failure> {
    refuse_options(args)?;
    let outlets = args.live.outlets()?;
    let text = text_of(name, args.scale)?;
    let mut sets = args.sets.clone();
    sets.extend(args.require_rate.as_ref().map(|rate| format!("require=['throughput > {rate}']")));
    let plan = planned(&text, name, &sets)?;
    ready(&plan)?;
    let path = args.out.clone().unwrap_or_else(|| new_directory(&plan.name));
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let mut directory = Directory::create(&path, &text, name, &sets, &plan)?;
    if args.web || args.open {
        crate::serve::show_live_page(directory.path(), args.open)?;
    }
    let how = CarryOut { quiet: args.quiet, json: args.json, outlets, junit, persistent: None };
    carry_out(&plan, &mut directory, control, how)
}

/// Options that speak of a single run: an experiment says it in its file.
fn refuse_options(args: &RunArgs) -> Result<(), Failure> {
    let refused = |option: &str, key: &str| {
        Err(Failure::Usage(format!("{option} does not go with an experiment: use --set {key}=...")))
    };
    if let Some((key, _, option)) = args.spec.tree.list_leaves().iter().find(|(key, ..)| !key.is_empty()) {
        return refused(&option.to_string(), short_name(key));
    }
    if let Some(one) = typed_options(args).next() {
        return refused(one.option, one.key);
    }
    match args.no_out {
        true => Err(Failure::Usage("--no-out does not go with an experiment, which is its directory".into())),
        false => Ok(()),
    }
}

/// `dyno resume DIR`.
pub fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let name = args.dir.display().to_string();
    junit::keep(args.junit.as_deref(), &name, |place| resume_to(args, place))
}

fn resume_to(args: &ResumeArgs, junit: Option<&Path>) -> Result<Exit, Failure> {
    let outlets = args.live.outlets()?;
    // Relative paths are meant where they were typed; the directory's own must still be found there.
    let dir = args.dir.canonicalize().map_err(|e| Failure::Usage(format!("{}: {e}", args.dir.display())))?;
    trusted::check_directory(&dir).map_err(|e| Failure::Usage(e.to_string()))?;
    if PersistentServers::of(&dir).map_err(Failure::usage)?.is_some() {
        let words =
            "its servers stand: `dyno bexhoma ycsb FLAGS -e CODE run` uses them, `dyno stop` ends them";
        return Err(Failure::Usage(format!("{}: {words}", args.dir.display())));
    }
    let (mut directory, text) = Directory::resume(&dir)?;
    let cleaned = manage::put_back(&dir);
    if cleaned.is_err() {
        directory.note(Entry::End { status: "interrupted".into() })?;
    }
    cleaned?;
    let wanted = |run: &RunRecord| {
        (args.failed && run.status == RunStatus::Failed) || (args.invalid && run.trust == "invalid")
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
        let words = "the cells of experiment.yaml are not those that were planned: was it changed?";
        return Err(Failure::Usage(format!("{}: {words}", args.dir.display())));
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
            let words =
                "secrets are not kept with an experiment, and this file is gone or no longer the same";
            Err(Failure::Usage(format!("{path}: {words}")))
        }
    }
}

/// `--set` as it was given; those that held secrets must be given again.
fn sets_again(kept: &[String], again: &[String]) -> Result<Vec<String>, Failure> {
    let key = |set: &str| set.split_once('=').map_or(String::new(), |(key, _)| key.to_owned());
    if let Some(other) = again.iter().find(|set| !kept.iter().any(|old| key(old) == key(set))) {
        return Err(Failure::Usage(format!("--set {}: was not given when the experiment began", key(other))));
    }
    let whole = |old: &String| match again.iter().find(|set| key(set) == key(old)) {
        Some(set) if experiment::masked_set(set) == *old => Ok(set.clone()),
        Some(set) => {
            Err(Failure::Usage(format!("--set {}: differs from what was given at the beginning", key(set))))
        }
        None if old.contains(MASK) => {
            let words = "held a secret, which is not kept: give it again";
            Err(Failure::Usage(format!("--set {} {words}", key(old))))
        }
        None => Ok(old.clone()),
    };
    kept.iter().map(whole).collect()
}

/// Makes the runs that are still to be made and prints the table.
pub fn carry_out(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    control: Arc<Control>,
    how: CarryOut<'_>,
) -> Result<Exit, Failure> {
    let CarryOut { quiet, json, outlets, junit, persistent } = how;
    let environment = read_environment();
    let program = std::env::current_exe()?;
    let context = ExperimentContext {
        control,
        environment: &environment,
        read_work: &read_work,
        program: &program,
        persistent,
    };
    let name = directory.path().file_name().map(|name| name.to_string_lossy().into_owned());
    let metrics = MetricsOutlets::open(outlets, name.unwrap_or_default(), plan.name.clone())?;
    let mut watch = Watch::new(directory.path(), quiet || json && !terminal::live(), quiet, metrics);
    let ending = run_experiment(plan, directory, &context, &mut watch)?;
    watch.end_of_experiment();
    pages::leave_experiment(directory.path(), price(directory.path()));
    if let Some(place) = junit {
        junit::write(place, &of_experiment(&ExperimentDir::open(directory.path())?))?;
    }
    let rows = table::rows(directory.path(), &directory.record, &directory.ended, None);
    table::show(&rows, json)?;
    if !json {
        terminal::out(&dyno_report::tuning::render_tunings(&dyno_rundir::tuning::read(directory.path())?));
        terminal::out(&highest_rates(plan, &directory.ended));
        let path = directory.path();
        let page = pages::address(path);
        terminal::out(&format!("\nexperiment directory: {}\nreport: {page}\n", path.display()));
    }
    if ending == ExperimentEnding::Interrupted {
        let path = directory.path();
        let command = continues(path).unwrap_or_else(|| format!("dyno resume {}", path.display()));
        terminal::note(&format!("`{command}` goes on"));
        return Ok(Exit::Interrupted);
    }
    Ok(exit(directory))
}

/// The answer of each search for the highest rate, a line for each cell and repetition.
fn highest_rates(plan: &ExperimentPlan, ended: &[RunRecord]) -> String {
    let mut out = String::new();
    let searches = |cell: &&MatrixCell| matches!(cell.spec.strategy, Some(Strategy::HighestRate(_)));
    for cell in plan.cells.iter().filter(searches) {
        for repetition in 1..=plan.base.repetitions {
            let found = highest_rate(ended, cell.number, repetition);
            let rate = found.kept.map_or("none was kept".into(), |rate| format!("{}/s", Rate(rate)));
            let sureness = sureness(&found);
            out += &format!(
                "\n{}: highest rate that meets the objectives: {rate}{sureness}",
                cell.levels_label()
            );
        }
    }
    if out.is_empty() { out } else { out + "\n" }
}

/// The worst of all runs: a run that failed or is invalid comes before a threshold that was missed.
fn exit(directory: &Directory) -> Exit {
    let runs = &directory.ended;
    let strategic = runs.iter().any(|run| !run.point.is_empty());
    let failed = runs.iter().filter(|run| run.status == RunStatus::Failed).count();
    let invalid = runs.iter().filter(|run| run.trust == "invalid").count();
    if let Some(first) = runs.iter().find(|run| run.status == RunStatus::Failed) {
        terminal::warn(&format!(
            "{failed} of {} runs failed, the first ({}): {}",
            runs.len(),
            first.dir,
            first.words
        ));
    }
    let close = runs.iter().filter(|run| run.too_close && run.passed).count();
    if close > 0 && !strategic {
        terminal::note(&format!("{close} of {} runs are too close to a threshold to call", runs.len()));
    }
    let unreachable = runs.iter().filter(|run| run.unreachable).count();
    if unreachable > 0 && unreachable == runs.len() {
        return Exit::Unreachable;
    }
    // Something that was asked for cannot be had: an option of the server, a port, a program.
    if !runs.is_empty() && runs.iter().all(|run| run.not_started) {
        return Exit::Usage;
    }
    if failed > 0 || invalid > 0 && !strategic {
        return Exit::Invalid;
    }
    // A search misses its objectives on purpose.
    if runs.iter().any(|run| !run.passed) && !strategic {
        return Exit::Threshold;
    }
    Exit::Ok
}
