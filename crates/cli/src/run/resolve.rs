//! Request of `dyno run`: an experiment, its work and its thresholds; the target is not touched before
//! [`Resolved::prepare`].

use super::spec::{RunSpec, option_of, usage};
use dyno_analysis::{BadThreshold, Condition};
use dyno_config::experiment::When;
use dyno_config::settings::PropertySettings;
use dyno_db::target::OpenTarget;
use dyno_engine::arrivals::Profile;
use dyno_engine::{Control, Job, Pacing};
use dyno_frontend::conductor::choose_cores;
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_session::existing_records::remove_records;
use dyno_session::work::ycsb::{IdleProperty, idle_properties};
use dyno_session::work::{Work, read_as};
use dyno_types::units::{Rate, counted};
use std::sync::Arc;

/// Everything a run needs to know, checked.
pub(super) struct Resolved {
    /// Experiment that was asked for, and by which options.
    pub run: RunSpec,
    /// Load of the experiment.
    pub work: Box<dyn Work>,
    /// The job of the measured phase, with what is known so far: what is loaded already, and which cores apply the load.
    pub job: Job,
    /// Thresholds.
    pub conditions: Vec<Condition>,
    /// True where one user loads the records: several writers of SQLite would only wait for each other, and give up.
    pub one_loader: bool,
}

/// Name of a run's work, as its directory has it.
///
/// # Errors
/// Names the option whose value cannot be used.
pub(super) fn work_name(run: &RunSpec) -> Result<String, Failure> {
    Ok(run.worded(read_as)?.name())
}

impl Resolved {
    /// Checks everything that can be checked without the target.
    ///
    /// # Errors
    /// Names the option whose value cannot be used.
    pub fn new(run: RunSpec) -> Result<Self, Failure> {
        let work = run.worded(read_as)?;
        let ycsb = run.experiment.workload.ycsb.iter();
        for idle in ycsb.flat_map(|ycsb| idle_properties(&ycsb.workload)) {
            let IdleProperty { source, name, instead } = idle;
            let instead =
                instead.map_or("`dyno ycsb` has it".into(), |key| format!("use {}", option_of(key)));
            terminal::note(&format!("{source}: {name} has no effect on `dyno run`: {instead}"));
        }
        let job = work.measure()?;
        let metrics = job.workload.metrics();
        let require = run.experiment.require.iter();
        let conditions: Result<_, BadThreshold> =
            require.map(|text| Condition::parse_for_metrics(text, metrics)).collect();
        let conditions = conditions.map_err(|e| usage("--require", e))?;
        Ok(Resolved { run, work, job, conditions, one_loader: false })
    }

    /// Makes collections and looks for records, and says what is there already.
    ///
    /// # Errors
    /// The target does not answer, or holds data of another shape.
    pub fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<(), Failure> {
        let prepared = self.work.prepare(opened, control)?;
        prepared.notes.iter().for_each(|note| terminal::note(note));
        self.work.adopt(&prepared)?;
        let Job { cores, spin, .. } = &self.job;
        self.job = Job { cores: cores.clone(), spin: *spin, ..self.work.measure()? };
        if prepared.load
            && self.run.experiment.phases.load.when == When::Always
            && self.run.experiment.workload.ycsb.is_some()
        {
            remove_records(opened, &self.job.workload, control)?;
        }
        Ok(())
    }

    /// Returns what the load counts, in words.
    pub fn unit(&self) -> &'static str {
        let workload = &self.run.experiment.workload;
        match (&workload.documents, &workload.commands) {
            (Some(_), _) => "inserts",
            (_, Some(_)) => "commands",
            _ => "records",
        }
    }

    /// Chooses the cores of load threads, now that the target is known.
    ///
    /// # Errors
    /// More threads than cores, or a job that cannot be.
    pub fn place_threads(
        &mut self,
        opened: &dyn OpenTarget,
        local: bool,
        taken: Option<usize>,
    ) -> Result<(), Failure> {
        let (client, users) = (&self.run.experiment.client, self.job.users);
        let chosen = match (&client.cores, opened.is_virtual()) {
            (_, true) => vec![0],
            (Some(cores), _) => cores.0.clone(),
            (None, _) => choose_cores(client.threads, users, local, taken)?,
        };
        let pinned = client.pin && !opened.is_virtual();
        // Only a server that was started here is known to stay on its core.
        self.job.spin = client.wait.does_spin(pinned && taken.is_some_and(|core| !chosen.contains(&core)));
        self.job.cores = chosen.iter().take(users.max(1)).map(|core| pinned.then_some(*core)).collect();
        Ok(self.job.check()?)
    }

    /// The job of the load phase, where there is something to load: closed loop, until every record is in.
    pub fn load_job(&self, opened: &dyn OpenTarget) -> Result<Option<Job>, Failure> {
        let on_cores = |job: Job| {
            let users = if self.one_loader { 1 } else { job.users };
            let cores = self.job.cores.iter().copied().take(users).collect();
            Job { pipeline: opened.usable_pipeline(job.pipeline), users, cores, spin: self.job.spin, ..job }
        };
        Ok(self.work.load()?.map(on_cores))
    }

    /// Title of the run: what is done, in words.
    pub fn title(&self) -> String {
        let loop_words = match &self.job.pacing {
            Pacing::Closed { .. } => counted(self.job.users * self.job.pipeline, "user"),
            Pacing::Open { profile: Profile::Constant { rate }, .. } => format!("{}/s", Rate(*rate)),
            Pacing::Open { .. } => "varying rate".into(),
            Pacing::Recorded => "as recorded".into(),
        };
        format!("{}, {loop_words}", self.work.name())
    }

    /// Cores that load threads are pinned to.
    pub fn busy_cores(&self) -> Vec<usize> {
        self.job.cores.iter().copied().flatten().collect()
    }

    /// Settings of the workload, and who set them.
    pub fn settings(&self) -> PropertySettings {
        self.work.settings()
    }
}
