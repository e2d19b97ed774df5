//! A run in this process: its target, its run directory, its monitors, and what is left of it. `dyno run` and the drop-ins make
//! their runs here; experiments make theirs with workers, in `dyno-experiment`.
//!
//! ```text
//! open -> begin (run directory, session, monitors) -> the front end's phases -> finish (summary) -> close (pages, exit code)
//! ```

use crate::exit::{Exit, Failure};
use crate::run_directory::{changes, create, now};
use crate::{pages, signals, terminal};
use dyno_analysis::Condition;
use dyno_config::settings::Settings;
use dyno_databases::target::{OpenTarget, Target, in_words};
use dyno_engine::{Control, Job, Pacing, affinity};
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Environment, Setting, Status, Summary};
use dyno_session::environment::environment;
use dyno_session::load_generator::InProcess;
use dyno_session::session::{EndedPhase, Session, SessionPlan};
use dyno_session::watch::sources::{server_process, watch};
use dyno_session::watch::{Watch, WatchPlan};
use dyno_types::secret::mask_value;
use dyno_types::{Content, Verb};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a run is called, what is kept of it, and what is watched.
pub struct RunPlan {
    /// Title of the run.
    pub title: String,
    /// The target without secrets.
    pub target: String,
    /// Thresholds.
    pub conditions: Vec<Condition>,
    /// Claims that are judged where there are no thresholds; empty: throughput and tail.
    pub claims: Vec<Claim>,
    /// The run directory; `None`: none is kept.
    pub out: Option<PathBuf>,
    /// Every setting with its source, secrets masked.
    pub settings: Vec<Setting>,
    /// Unit of the histograms that are kept.
    pub scale: Scale,
    /// What is watched beside the load; `None`: nothing.
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
pub fn settings_list(settings: &Settings) -> Vec<Setting> {
    let defaults = dyno_workload::ycsb::known_properties().iter().map(|p| (p.name, p.default));
    let list = settings.provenance(defaults, mask_value).into_iter();
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
) -> Result<InProcess, Failure> {
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
) -> Result<InProcess, Failure> {
    tracing::info!(facts = in_words(&opened.facts()), "the target is open");
    warn_of_missing(opened.as_ref());
    opened.check(content, verbs)?;
    opened.check_pipeline(pipeline)?;
    Ok(InProcess(opened))
}

/// Says which nodes of a target do not answer: they are left out until they do.
pub fn warn_of_missing(opened: &dyn OpenTarget) {
    if let Some(words) = opened.missing() {
        terminal::warn(&format!("routers that do not answer are left out until they do: {words}"));
    }
}

/// A run under way.
pub struct Conductor<'a> {
    /// Carries out the phases.
    pub session: Session<'a>,
    /// Begin, RFC 3339.
    pub started: String,
    environment: Environment,
}

impl<'a> Conductor<'a> {
    /// Makes the run directory, and has monitors look on, unless time is virtual.
    ///
    /// # Errors
    /// The run directory cannot be made, or the monitors cannot start.
    pub fn begin(plan: RunPlan, opened: &'a InProcess, control: Arc<Control>) -> Result<Self, Failure> {
        let (environment, started) = (environment(), now());
        let session_plan = SessionPlan {
            title: plan.title,
            target: plan.target,
            started: started.clone(),
            conditions: plan.conditions,
            asked: plan.claims,
            clock_ns: environment.clock_ns,
        };
        let make = |path: &PathBuf| {
            create(path, plan.settings, &session_plan, opened.as_ref(), &environment, plan.scale)
        };
        let writer = plan.out.as_ref().map(make).transpose()?;
        let mut session = Session::new(session_plan, opened, control, writer);
        if let Some(mut watched) = plan.watch.filter(|_| !opened.as_ref().is_virtual()) {
            if watched.processes.is_empty() {
                let server = server_process(opened.as_ref());
                watched.processes.extend(server.map(|pid| ("server".to_owned(), pid.into())));
            }
            let free = affinity::allowed_cores().into_iter().filter(|core| !plan.busy.contains(core));
            watched.cores = free.collect();
            let directory = session.writer().map(|writer| writer.path().to_owned());
            let monitors = Watch::start(watch(opened.as_ref()), &watched, directory.as_deref());
            session.watch(monitors.map_err(|e| Failure::Usage(format!("cannot start the monitors: {e}")))?);
        }
        Ok(Conductor { session, started, environment })
    }

    /// Notes in the run directory why the run has failed, and leaves reports of what there is.
    pub fn failed(&mut self, failure: Failure) -> Failure {
        if let Some(writer) = self.session.writer() {
            writer.event("failed", &failure.to_string());
            let interrupted = matches!(failure, Failure::Interrupted);
            writer.update(|run| run.status = if interrupted { Status::Interrupted } else { Status::Failed });
            pages::leave(writer.path());
        }
        failure
    }

    /// Judges the run by its last phase.
    pub fn finish(&mut self, ended: &EndedPhase, pacing: &Pacing) -> Summary {
        self.session.changed(changes(&self.environment));
        let status = if signals::interrupted() { Status::Interrupted } else { Status::Complete };
        self.session.finish(ended, pacing, status)
    }

    /// Ends the monitors and leaves reports in the run directory. A directory that is incomplete is an internal error, unless
    /// the run was interrupted.
    pub fn close(mut self, exit: Exit) -> Exit {
        let monitors = self.session.unwatch();
        let mut lost: Vec<String> = monitors
            .map(|why| format!("the monitors' part of the run directory is incomplete: {why}"))
            .into_iter()
            .collect();
        if let Some(writer) = self.session.writer() {
            pages::leave(writer.path());
            lost.extend(writer.failure().map(|why| format!("the run directory is incomplete: {why}")));
        }
        lost.iter().for_each(|text| terminal::error(text));
        if lost.is_empty() || exit == Exit::Interrupted { exit } else { Exit::Internal }
    }
}
