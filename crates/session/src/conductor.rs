//! One run, from its run directory to its end. Every command that applies a load makes its runs here: in this process, or with
//! workers.
//!
//! ```text
//! begin (run directory, session) -> monitors -> phases -> finish (verdict, summary) -> end (monitors, what was not written)
//! ```

use crate::environment::changes_since;
use crate::hosts::HostPlan;
use crate::load_generator::LoadGenerator;
use crate::session::{EndedPhase, RunSession, SessionPlan};
use dyno_databases::registry;
use dyno_engine::{Control, Pacing};
use dyno_record::Scale;
use dyno_rundir::RunWriter;
use dyno_rundir::monitor::ELSEWHERE;
use dyno_rundir::schema::{Environment, HostRole, Run, Setting, Status, Summary, VERSION};
use dyno_types::secret::own_command_line;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A run directory that is to be made.
pub struct RunDirectory<'a> {
    /// Path of the directory; nothing is there yet.
    pub path: &'a Path,
    /// Every setting with its source, secrets masked; the title is put before them.
    pub settings: Vec<Setting>,
    /// Facts about the target and what applies the load.
    pub facts: BTreeMap<String, String>,
    /// Unit of its histograms.
    pub scale: Scale,
}

/// A run under way.
pub struct Conductor<'a> {
    /// Carries out the phases.
    pub session: RunSession<'a>,
    environment: Environment,
    control: Arc<Control>,
}

impl<'a> Conductor<'a> {
    /// Makes the run directory, if one is wanted. Nothing has run yet, and no monitor looks on. `environment` is the host when
    /// the run, or its experiment, began.
    ///
    /// # Errors
    /// The run directory cannot be made.
    pub fn begin(
        plan: SessionPlan,
        directory: Option<RunDirectory<'_>>,
        generator: &'a dyn LoadGenerator,
        environment: Environment,
        control: Arc<Control>,
    ) -> io::Result<Self> {
        let make = |directory| create(directory, &plan, generator, &environment);
        let writer = directory.map(make).transpose()?;
        // An embedded store is in the load generator's process.
        let elsewhere = registry::parse(&plan.target).is_ok_and(|target| target.is_elsewhere());
        let role = if elsewhere { HostRole::Client } else { HostRole::Both };
        let mut session = RunSession::new(plan, generator, control.clone(), writer);
        session.on_hosts(vec![HostPlan::local_host(&environment, role)]);
        Ok(Conductor { session, environment, control })
    }

    /// Notes in the run directory that the run has failed, and why; `None`: a signal came first.
    pub fn note_failure(&mut self, reason: Option<&str>) {
        let Some(writer) = self.session.run_writer() else { return };
        if let Some(reason) = reason {
            writer.write_event("failed", reason);
        }
        let status = if reason.is_some() { Status::Failed } else { Status::Interrupted };
        writer.update_run(|run| run.status = status);
    }

    /// Judges the run by its last phase, which was applied at this pace.
    pub fn finish(&mut self, ended: &EndedPhase, pacing: &Pacing) -> Summary {
        self.session.note_changes(changes_since(&self.environment));
        let status = if self.control.is_stopping() { Status::Interrupted } else { Status::Complete };
        self.session.finish(ended, pacing, status)
    }

    /// Ends the monitors. Returns what of the run directory could not be written, in words.
    pub fn end(&mut self) -> Vec<String> {
        let monitors = self.session.end_watch();
        let monitors =
            monitors.map(|why| format!("the monitors' part of the run directory is incomplete: {why}"));
        let own = self.session.run_writer().and_then(|writer| writer.first_failure().map(str::to_owned));
        let own = own.map(|why| format!("the run directory is incomplete: {why}"));
        monitors.into_iter().chain(own).collect()
    }
}

/// Creates a run directory.
fn create(
    directory: RunDirectory<'_>,
    plan: &SessionPlan,
    generator: &dyn LoadGenerator,
    environment: &Environment,
) -> io::Result<RunWriter> {
    let RunDirectory { path, settings: given, mut facts, scale } = directory;
    let title = Setting { key: "title".into(), value: plan.title.clone(), source: "derived".into() };
    let settings = std::iter::once(title).chain(given).collect();
    if registry::parse(&plan.target).is_ok_and(|target| target.is_elsewhere()) {
        facts.insert(ELSEWHERE.into(), "true".into());
    }
    let run = Run {
        version: VERSION,
        dyno: env!("CARGO_PKG_VERSION").into(),
        command: own_command_line(),
        started: plan.started.clone(),
        status: Status::Running,
        target: plan.target.clone(),
        database: generator.target().database,
        facts,
        settings,
        metrics: BTreeMap::new(),
        unit_ns: scale.unit_ns(),
        plans: Default::default(),
    };
    RunWriter::create_run(path, run, environment, scale)
}
