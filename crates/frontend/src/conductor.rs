//! Runs of this process: the target is opened, watched and left; `dyno_session::conductor` carries them out, as it does those of
//! experiments.

use crate::exit::{Exit, Failure};
use crate::run_directory::{now, unwritable};
use crate::{pages, signals, terminal};
use dyno_analysis::Condition;
use dyno_analysis::diagnose::DiagnosisFinding;
use dyno_config::settings::PropertySettings;
use dyno_db::target::{OpenTarget, Target, in_words};
use dyno_engine::{Control, Job, Pacing, affinity};
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Setting, Summary};
use dyno_session::conductor::{Conductor, RunDirectory};
use dyno_session::environment::read_environment;
use dyno_session::load_generator::LocalGenerator;
use dyno_session::session::{EndedPhase, SessionPlan};
use dyno_session::watch::sources::{server_process, watch_nodes};
use dyno_session::watch::{MonitorWatch, WatchPlan};
use dyno_types::secret::mask_value;
use dyno_types::{Content, Verb};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Plan of a run: its name, what is kept of it, and what is watched.
pub struct RunPlan {
    /// Title of the run.
    pub title: String,
    /// The target without secrets.
    pub target: String,
    /// Thresholds.
    pub conditions: Vec<Condition>,
    /// True if a threshold that is too close to call counts as missed.
    pub strict: bool,
    /// Claims that are judged where there are no thresholds; empty: throughput and tail.
    pub claims: Vec<Claim>,
    /// The run directory; `None`: none is kept.
    pub out: Option<PathBuf>,
    /// Every setting with its source, secrets masked.
    pub settings: Vec<Setting>,
    /// Unit of the histograms that are kept.
    pub scale: Scale,
    /// Plan of what is watched beside the load; `None`: nothing.
    pub watch: Option<WatchPlan>,
    /// Cores of the load threads, which monitors keep off.
    pub busy: Vec<usize>,
}

/// Watches host, this process, the server's process and the database once a second: what drop-ins ask for.
pub fn every_second() -> WatchPlan {
    WatchPlan {
        interval: Duration::from_secs(1),
        processes: Vec::new(),
        exporters: Vec::new(),
        cores: Vec::new(),
    }
}

/// Cores that the load threads of these jobs are pinned to.
pub fn busy(jobs: &[Job]) -> Vec<usize> {
    jobs.iter().flat_map(|job| job.cores.iter().copied().flatten()).collect()
}

/// Every setting with its source, secrets masked.
pub fn settings_list(settings: &PropertySettings) -> Vec<Setting> {
    let defaults = dyno_workload::ycsb::known_properties().iter().map(|p| (p.name, p.default));
    let list = settings.list_provenance(defaults, mask_value).into_iter();
    list.map(|p| Setting { key: p.key, value: p.value, source: p.source }).collect()
}

/// Cores for load threads: the last ones that are allowed, but not the server's.
///
/// # Errors
/// More threads than cores.
pub fn choose_cores(
    wanted: Option<usize>,
    users: usize,
    local: bool,
    taken: Option<usize>,
) -> Result<Vec<usize>, Failure> {
    Ok(dyno_session::cores::choose_cores(wanted, users, local, taken)?)
}

/// Connects once, says which nodes do not answer, and refuses what the target cannot hold.
///
/// # Errors
/// The target does not answer, or has no form for an operation.
pub fn open(
    target: &dyn Target,
    content: &Arc<dyn Content>,
    verbs: &[Verb],
    pipeline: usize,
) -> Result<LocalGenerator, Failure> {
    tracing::info!(uri = target.redacted(), "the target is opened");
    let opened = target.open(content.clone(), &signals::interrupted)?;
    accept(opened, content, verbs, pipeline)
}

/// The same of a target that is open.
///
/// # Errors
/// As [`open`].
pub fn accept(
    opened: Box<dyn OpenTarget>,
    content: &Arc<dyn Content>,
    verbs: &[Verb],
    pipeline: usize,
) -> Result<LocalGenerator, Failure> {
    tracing::info!(facts = in_words(&opened.facts()), "the target is open");
    warn_of_missing(opened.as_ref());
    if !content.commands().is_empty() && !opened.takes_commands() {
        return Err(Failure::usage("the target has no commands of one's own: Redis and its kin have"));
    }
    opened.check(content, verbs)?;
    opened.check_pipeline(pipeline)?;
    Ok(LocalGenerator(opened))
}

/// Says which nodes of a target do not answer: they are left out until they do.
pub fn warn_of_missing(opened: &dyn OpenTarget) {
    if let Some(message) = opened.missing() {
        terminal::warn(&format!(
            "members or routers that do not answer are left out until they do: {message}"
        ));
    }
}

/// Phases that were applied: the last one, its pacing, and what else came out of them.
pub struct AppliedPhases<T> {
    /// The phase that is judged.
    pub ended: EndedPhase,
    /// How its arrivals were paced.
    pub pacing: Pacing,
    /// The front end's own.
    pub rest: T,
}

/// A run that has been carried out.
pub struct ExecutedRun<T> {
    /// The phase that was judged.
    pub ended: EndedPhase,
    /// The run, judged.
    pub summary: Summary,
    /// Exit code and reports.
    pub closed: Closed,
    /// The run directory, if one is kept.
    pub directory: Option<PathBuf>,
    /// The front end's own.
    pub rest: T,
}

/// Carries out a run: makes its directory, watches, has `phases` applied, judges, leaves reports. Every front end of this process
/// does it here. What fails is noted in the directory.
///
/// # Errors
/// The directory or the monitors cannot be made, or the phases fail.
pub fn execute<T>(
    plan: RunPlan,
    opened: &LocalGenerator,
    control: Arc<Control>,
    phases: impl FnOnce(&mut Conductor<'_>) -> Result<AppliedPhases<T>, Failure>,
    exit_of: impl FnOnce(&Summary, &AppliedPhases<T>) -> Exit,
) -> Result<ExecutedRun<T>, Failure> {
    let mut conductor = begin(plan, opened, control)?;
    let applied = match phases(&mut conductor) {
        Ok(applied) => applied,
        Err(failure) => return Err(failed(&mut conductor, failure)),
    };
    let summary = conductor.finish(&applied.ended, &applied.pacing);
    let directory = conductor.session.run_writer().map(|writer| writer.run_path().to_owned());
    let closed = close(conductor, exit_of(&summary, &applied));
    Ok(ExecutedRun { ended: applied.ended, summary, closed, directory, rest: applied.rest })
}

/// Makes the run directory, and has monitors look on, unless time is virtual.
fn begin<'a>(
    plan: RunPlan,
    opened: &'a LocalGenerator,
    control: Arc<Control>,
) -> Result<Conductor<'a>, Failure> {
    let environment = read_environment();
    let session_plan = SessionPlan {
        title: plan.title,
        target: plan.target,
        started: now(),
        conditions: plan.conditions,
        strict: plan.strict,
        asked: plan.claims,
    };
    let target: &dyn OpenTarget = opened.as_ref();
    let directory = plan.out.as_deref().map(|path| RunDirectory {
        path,
        settings: plan.settings,
        facts: target.facts(),
        scale: plan.scale,
    });
    let conductor = Conductor::begin(session_plan, directory, opened, environment, control);
    let mut conductor = conductor.map_err(unwritable)?;
    if let Some(mut watched) = plan.watch.filter(|_| !target.is_virtual()) {
        if watched.processes.is_empty() {
            let server = server_process(target);
            watched.processes.extend(server.map(|pid| ("server".to_owned(), pid.into())));
        }
        let free = affinity::allowed_cores().into_iter().filter(|core| !plan.busy.contains(core));
        watched.cores = free.collect();
        let directory = conductor.session.run_writer().map(|writer| writer.run_path().to_owned());
        let monitors = MonitorWatch::start(watch_nodes(target), &watched, directory.as_deref());
        match monitors {
            Ok(monitors) => conductor.session.start_watch(monitors),
            Err(error) => {
                let failure = Failure::usage(format!("cannot start the monitors: {error}"));
                return Err(failed(&mut conductor, failure));
            }
        }
    }
    Ok(conductor)
}

/// Notes in the run directory why the run has failed, and leaves reports of what there is.
fn failed(conductor: &mut Conductor<'_>, failure: Failure) -> Failure {
    let reason = (!matches!(failure, Failure::Interrupted)).then(|| failure.to_string());
    conductor.note_failure(reason.as_deref());
    leave_pages(conductor);
    failure
}

/// Result of a run that has ended.
pub struct Closed {
    /// The code to exit with.
    pub exit: Exit,
    /// Findings about what limits the run, if it has a directory with reports.
    pub findings: Option<Vec<DiagnosisFinding>>,
    /// Address of the report, in the same case.
    pub page: Option<String>,
}

/// Ends the monitors and leaves reports in the run directory. A directory that is incomplete is an internal error; what `exit`
/// says of the run comes first.
fn close(mut conductor: Conductor<'_>, exit: Exit) -> Closed {
    let lost = conductor.end();
    let directory = conductor.session.run_writer().map(|writer| writer.run_path().to_owned());
    let findings = leave_pages(&mut conductor);
    lost.iter().for_each(|text| terminal::error(text));
    let exit = if lost.is_empty() || exit != Exit::Ok { exit } else { Exit::Internal };
    let page = directory.filter(|_| findings.is_some()).map(|path| pages::address(&path));
    Closed { exit, findings, page }
}

fn leave_pages(conductor: &mut Conductor<'_>) -> Option<Vec<DiagnosisFinding>> {
    conductor.session.run_writer().and_then(|writer| pages::leave(writer.run_path()))
}
