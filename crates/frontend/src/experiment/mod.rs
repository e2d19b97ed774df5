//! Experiments as front ends carry them out: planned, made, gone on with, looked at, stopped; the table at the end.

mod leave;
mod manage;
pub mod manifests;
mod preflight;
mod resume;
mod table;
mod watch;

pub use leave::leave;
pub use manage::{ask_to_stop, end, state, status, stop, stop_all, stop_left, table_of};
pub use preflight::{Findings, ready};
pub use resume::{ResumeArgs, resume};
pub use watch::time;

use crate::exit::{Exit, Failure};
use crate::highest_rate::{highest_rate, sureness};
use crate::metrics::{MetricsOutlets, Outlets};
use crate::program::{program, read_work};
use crate::{junit, pages, terminal};
use dyno_config::experiment::{self, ExperimentPlan, MatrixCell, Strategy};
use dyno_engine::Control;
use dyno_experiment::check::check;
use dyno_experiment::context::ExperimentContext;
use dyno_experiment::directory::Directory;
use dyno_experiment::journal::{RunRecord, RunStatus};
use dyno_experiment::{ExperimentEnding, run_experiment};
use dyno_report::junit::of_experiment;
use dyno_rundir::ExperimentDir;
use dyno_session::environment::read_environment;
use dyno_types::units::Rate;
use std::path::Path;
use std::sync::Arc;
use watch::Watch;

/// A plan that has been checked as far as that goes without touching anything.
pub fn planned(text: &str, name: &str, sets: &[String]) -> Result<ExperimentPlan, Failure> {
    let plan = experiment::read_plan(text, name, sets)?;
    check(&plan, &read_work)?;
    for factor in &plan.left_out {
        let message = "is left out: it varies the server that dyno would start, and the target runs already";
        terminal::note(&format!("note: factor {factor} {message}"));
    }
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

/// Makes the runs that are still to be made and prints the table.
pub fn carry_out(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    control: Arc<Control>,
    how: CarryOut<'_>,
) -> Result<Exit, Failure> {
    let CarryOut { quiet, json, outlets, junit, persistent } = how;
    let environment = read_environment();
    let command = std::env::current_exe()?;
    let context = ExperimentContext {
        control,
        environment: &environment,
        read_work: &read_work,
        program: &command,
        persistent,
    };
    let name = directory.path().file_name().map(|name| name.to_string_lossy().into_owned());
    let metrics = MetricsOutlets::open(outlets, name.unwrap_or_default(), plan.name.clone())?;
    let mut watch = Watch::new(directory.path(), quiet || json && !terminal::live(), quiet, metrics);
    let ending = run_experiment(plan, directory, &context, &mut watch)?;
    watch.end_of_experiment();
    pages::leave_experiment(directory.path(), (program().price)(directory.path()));
    if let Some(place) = junit {
        junit::write(place, &of_experiment(&ExperimentDir::open(directory.path())?))?;
    }
    let rows = table::rows(directory.path(), &directory.record, &directory.ended, None);
    if !json {
        // The answer stands above the runs that it comes from.
        terminal::out(&highest_rates(plan, &directory.ended));
    }
    table::show(&rows, json)?;
    if !json {
        terminal::out(&dyno_report::tuning::render_tunings(&dyno_rundir::tuning::read(directory.path())?));
        let path = directory.path();
        let page = pages::address(path);
        terminal::out(&format!("\nexperiment directory: {}\nreport: {page}\n", path.display()));
    }
    if ending == ExperimentEnding::Interrupted {
        let path = directory.path();
        let command =
            (program().continues)(path).unwrap_or_else(|| format!("dyno resume {}", path.display()));
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
                "{}: highest rate that meets the objectives: {rate}{sureness}\n",
                cell.levels_label()
            );
        }
    }
    out
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
            first.cause
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
