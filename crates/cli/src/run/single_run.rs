//! One run of `dyno run`, in order: target, records, measurement, summary.

use super::requested_target::RequestedTarget;
use super::resolve::Resolved;
use super::settings::settings_of;
use super::spec::RunSpec;
use crate::options::ResultArgs;
use crate::serve;
use dyno_db::target::OpenTarget;
use dyno_engine::Control;
use dyno_frontend::conductor::{self, AppliedPhases, ExecutedRun, RunPlan};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::junit;
use dyno_frontend::live::Live;
use dyno_frontend::metrics::{LiveArgs, MetricsOutlets, ObserverPair, Outlets};
use dyno_frontend::run_directory::{check_new, new_directory, now};
use dyno_frontend::summary::{exit_of, show};
use dyno_frontend::{signals, terminal};
use dyno_record::Scale;
use dyno_report::junit::{Document, of_run};
use dyno_report::summary::SummaryExtras;
use dyno_rundir::schema::Summary;
use dyno_session::conductor::Conductor;
use dyno_session::session::{EndedPhase, PhasePlan, RunSession};
use dyno_session::watch::WatchPlan;
use dyno_session::work::with_jobs_beside;
use dyno_types::shell::quoted;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Carries it out; `place`: the file of `--junit`.
///
/// # Errors
/// An option cannot be used, the target does not answer, or the run cannot be kept.
pub(super) fn carry_out(
    run: RunSpec,
    target: RequestedTarget,
    result: &ResultArgs,
    live_args: &LiveArgs,
    place: Option<&Path>,
) -> Result<Exit, Failure> {
    let watch = run.watch_plan()?;
    let mut resolved = Resolved::new(run)?;
    resolved.one_loader = matches!(target, RequestedTarget::Sqlite);
    let outlets = live_args.outlets()?;
    check_new(result.out.as_ref().filter(|_| !result.no_out))?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    // What a temporary server holds ends with it, and what commands have loaded cannot be told again.
    let persists = matches!(&target, RequestedTarget::Target(_, uri) if uri.contains("://"))
        && resolved.run.experiment.workload.commands.is_none();
    let provided = target.provide(&control)?;
    let content = resolved.work.content();
    let opened = conductor::open(
        provided.target.as_ref(),
        &content,
        &resolved.work.verbs(),
        resolved.run.experiment.phases.measure.pipeline,
    )?;
    let local = provided.target.is_local();
    resolved.place_threads(opened.as_ref(), local, provided.server.as_ref().and_then(|s| s.core))?;
    let server = provided.server.as_ref().map(|server| ("server".to_owned(), server.pid().into()));
    let plan = RunPlan {
        title: resolved.title(),
        target: provided.target.redacted(),
        conditions: resolved.conditions.clone(),
        strict: resolved.run.experiment.strict,
        claims: Vec::new(),
        out: directory(result, &resolved),
        settings: settings_of(&resolved)?,
        scale: Scale::Ns64,
        watch: watch.map(|plan| WatchPlan { processes: server.into_iter().collect(), ..plan }),
        busy: resolved.busy_cores(),
    };
    let name = plan.target.clone();
    let (mut live, mut loaded) = (None, 0);
    let apply = |conductor: &mut Conductor<'_>| {
        let mut metrics = metrics(outlets, &name, conductor)?;
        if let Some(writer) = conductor.session.run_writer().filter(|_| result.web || result.open) {
            live = Some(serve::show_live_page(writer.run_path(), result.open)?);
        }
        let session = &mut conductor.session;
        let ended = phases(result, &mut resolved, opened.as_ref(), &control, session, metrics.as_mut());
        loaded = ended.as_ref().map_or(0, |(_, loaded)| *loaded);
        let ended = ended.map(|(ended, _)| ended);
        if let Some(metrics) = &mut metrics {
            metrics.finish();
        }
        // The exporter answers until the summary is written.
        Ok(AppliedPhases { ended: ended?, pacing: resolved.job.pacing.clone(), rest: metrics })
    };
    let executed = conductor::execute(plan, &opened, control.clone(), apply, |summary, _| exit_of(summary))?;
    let directory = executed.directory.clone();
    let ended = conclude(result, executed, place);
    if let Some(directory) = directory.filter(|_| persists && loaded > 0 && !result.quiet && !result.json) {
        terminal::note(&tell_how_to_clean(&name, &directory));
    }
    if let Some(live) = live {
        live.hand_over_report();
    }
    ended
}

/// Says that records stay where they were loaded, and which command removes them.
fn tell_how_to_clean(target: &str, directory: &Path) -> String {
    let folder = directory.parent().filter(|folder| **folder != *Path::new("dyno-runs"));
    let place = match folder {
        None => Vec::new(),
        Some(folder) if folder.as_os_str().is_empty() => vec![".".to_owned()],
        Some(folder) => vec![folder.display().to_string()],
    };
    let words = ["dyno", "clean", target].map(str::to_owned).into_iter().chain(place).collect::<Vec<_>>();
    format!("what was loaded stays there: `{}` shows it, and removes it with --yes", quoted(&words))
}

/// The run directory, if one is wanted.
fn directory(result: &ResultArgs, resolved: &Resolved) -> Option<PathBuf> {
    let new = || new_directory(&resolved.work.name());
    (!result.no_out).then(|| result.out.clone().unwrap_or_else(new))
}

/// Live metrics, if they are wanted; the run is called as its directory is.
fn metrics(
    outlets: Outlets,
    target: &str,
    conductor: &mut Conductor<'_>,
) -> Result<Option<MetricsOutlets>, Failure> {
    let writer = conductor.session.run_writer();
    let name = writer.and_then(|w| w.run_path().file_name()).map(|name| name.to_string_lossy().into_owned());
    MetricsOutlets::open(outlets, name.unwrap_or_else(now), target.to_owned())
}

fn phases(
    result: &ResultArgs,
    resolved: &mut Resolved,
    opened: &dyn OpenTarget,
    control: &Arc<Control>,
    session: &mut RunSession<'_>,
    metrics: Option<&mut MetricsOutlets>,
) -> Result<(EndedPhase, u64), Failure> {
    let live = Live::new(result.quiet || result.json && !terminal::live());
    let mut live = live.with_thresholds(&resolved.conditions);
    let mut live = ObserverPair(&mut live, metrics);
    resolved.prepare(opened, control)?;
    let load = resolved.load_job(opened)?;
    let records = resolved.work.load_operations();
    let mut stay = 0;
    tracing::info!(load = load.is_some(), records, "record check done (field load says the rest)");
    if let Some(job) = load.filter(|_| !signals::interrupted()) {
        if let (2.., Some(why)) = (job.batch, opened.why_no_batches()) {
            terminal::note(&format!("records are loaded one by one: {why}"));
        }
        let loaded = session.run(&PhasePlan { name: "load", job }, &mut live)?;
        stay = loaded.totals.count_ok();
        if signals::interrupted() {
            return Ok((loaded, stay));
        }
        let missing = records.saturating_sub(loaded.totals.count_ok());
        if missing > 0 {
            let first =
                loaded.finished.errors.first().map_or(String::new(), |(o, w)| format!(": {} {w}", o.name()));
            let what = resolved.unit();
            terminal::warn(&format!("{missing} of {records} {what} could not be loaded{first}"));
        }
    }
    if signals::interrupted() {
        return Err(Failure::Interrupted);
    }
    let jobs = with_jobs_beside(resolved.job.clone(), resolved.work.beside()?, None);
    Ok((session.run_workers("measure", &jobs, &mut live)?, stay))
}

/// Writes and prints what came out of it.
fn conclude<T>(result: &ResultArgs, executed: ExecutedRun<T>, place: Option<&Path>) -> Result<Exit, Failure> {
    let ExecutedRun { summary, closed, directory, rest: _outlets, .. } = executed;
    let known = SummaryExtras { findings: closed.findings.as_deref(), page: closed.page.as_deref() };
    show(&summary, known, result.json)?;
    if known.page.is_none()
        && let Some(path) = directory.filter(|_| !result.json)
    {
        terminal::out(&format!("run directory: {}\n", path.display()));
    }
    if let Some(place) = place {
        let suites = vec![of_run(summary.title.clone(), &summary, None)];
        junit::write(place, &Document { name: "dyno run".into(), suites })?;
    }
    if result.json || !stdout().is_terminal() || !stderr().is_terminal() {
        warn_if_suspect(&summary);
    }
    Ok(closed.exit)
}

/// Prints the verdict to stderr too, for a user who keeps the summary elsewhere.
fn warn_if_suspect(summary: &Summary) {
    if let Some(reason) = summary.verdict.worst_reason() {
        terminal::warn(&format!("the run is {}: {}", reason.trust.trust_word(), reason.text));
    }
}
