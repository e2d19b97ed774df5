//! A run's target and workers, from their start to their end, and the order of its steps.

use crate::dataset_cache;
use crate::experiment_error::ExperimentError;
use crate::experiment_run::ExperimentRun;
use crate::hosts::hosts_of;
use crate::journal::WindowEstimate;
use crate::participants::Participants;
use crate::pod_watchdog::WatchedObserver;
use crate::provisioned_target::{ProvisionedTarget, SharedServers};
use crate::series::SuccessSeries;
use crate::watching;
use dyno_config::experiment::{Client, Experiment, Phases, When};
use dyno_config::server::IfNotPermitted;
use dyno_config::server::placement::Limits;
use dyno_config::tree::Node;
use dyno_databases::registry;
use dyno_db::target::Target;
use dyno_engine::{Pacing, affinity, every_nth};
use dyno_hosts::protocol::silence::LEASE;
use dyno_hosts::protocol::worker::Assignment;
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_hosts::remote::worker::spawn::{Start, WorkerSpec};
use dyno_hosts::servers::launch::Confinement;
use dyno_localhost::error::LocalError;
use dyno_rundir::log as run_log;
use dyno_rundir::schema::Summary;
use dyno_session::collection_stats::WatchedCollections;
use dyno_session::conductor::Conductor;
use dyno_session::cores::cores_left;
use dyno_session::session::{EndedPhase, Observer, RunSession, SessionPlan};
use dyno_session::work::{Prepared, Work};
use dyno_types::child;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run under way: its target, its workers, and what they are confined in.
pub(super) struct RunContext<'a> {
    run: &'a ExperimentRun<'a>,
    target: ProvisionedTarget,
    pool: Option<WorkerPool>,
    confined: Vec<Confinement>,
    /// Cores that both servers and workers of this host run on.
    shared_cores: BTreeSet<usize>,
    /// The folder of an embedded store.
    data: PathBuf,
    /// Duration of a load that stands alone, seconds.
    loaded_s: Option<f64>,
}

impl<'a> RunContext<'a> {
    /// Nothing runs yet but the target.
    pub fn new(run: &'a ExperimentRun<'a>, target: ProvisionedTarget, data: PathBuf) -> Self {
        let (confined, shared_cores) = (Vec::new(), BTreeSet::new());
        RunContext { run, target, pool: None, confined, shared_cores, data, loaded_s: None }
    }

    /// Ends workers, groups and target, and keeps in `logs` what they have said.
    pub fn end(
        mut self,
        spec: &Experiment,
        shared: &mut SharedServers,
        logs: &Path,
    ) -> Result<(), ExperimentError> {
        let shut_down = self.shutdown();
        self.target.collect(logs);
        let ended = self.target.end(spec, shared);
        shut_down?;
        Ok(ended?)
    }

    /// Load, where there is something to load, and measurement.
    pub fn load_and_measure(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<WindowEstimate>), ExperimentError> {
        let keeps = dataset_cache::is_wanted(spec) && spec.phases.load.when != When::Never;
        let mut prepared = match keeps {
            // The load is not what the limits are about.
            true => {
                let client = Client { limits: Limits::default(), ..spec.client.clone() };
                self.spawn_workers(&Experiment { client, ..spec.clone() }, logs)?
            }
            false => self.spawn_workers(spec, logs)?,
        };
        if keeps && prepared.iter().any(|one| one.load) {
            self.load_and_keep(spec, tree, logs, &prepared, observer)?;
        }
        if keeps {
            let loaded = Experiment { phases: loaded(&spec.phases), ..spec.clone() };
            prepared = self.spawn_workers(&loaded, logs)?;
        }
        self.measure(spec, tree, logs, &prepared, observer)
    }

    /// Starts the workers; what each pair's first has found.
    fn spawn_workers(&mut self, spec: &Experiment, logs: &Path) -> Result<Vec<Prepared>, ExperimentError> {
        self.shutdown()?;
        let specs = self.specs(spec, logs)?;
        let of = specs.iter().map(|worker| worker.assignment.total).max().unwrap_or(0);
        let pool = WorkerPool::start(specs, &self.run.control).map_err(|error| self.with_cause(error.into()));
        let mut pool = pool?;
        pool.taking_part = [true, false].map(|loads| spec.taking_part(loads, of));
        pool.collection_stats = WatchedCollections::of_targets(self.with_collections(spec)?);
        let prepared =
            pool.prepare_targets(&self.run.control).map_err(|error| self.with_cause(error.into()))?;
        self.pool = Some(pool);
        Ok(prepared)
    }

    /// Targets that say of their collections how large they are.
    fn with_collections(&self, spec: &Experiment) -> Result<Vec<Box<dyn Target>>, ExperimentError> {
        let work = (self.run.read_work)(spec)?;
        let mut targets = Vec::new();
        for uri in &self.target.uris {
            let mut target = registry::parse_for(uri, spec.client.driver.into())?;
            if let Some(database) = work.database() {
                target.set_database(&database);
            }
            targets.push(target);
        }
        targets.retain(|target| target.has_collections());
        Ok(targets)
    }

    fn shutdown(&mut self) -> Result<(), ExperimentError> {
        self.pool = None;
        for one in self.confined.drain(..) {
            one.end()?;
        }
        Ok(())
    }

    /// Loads what is described and nothing more, if it is not there; the load has a run directory of its own.
    pub fn load_only(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Option<Summary>, ExperimentError> {
        let mut own = spec.clone();
        if self.target.is_filled()? && own.phases.load.when == When::Always {
            own.phases.load.when = When::Missing;
        }
        let prepared = self.spawn_workers(&own, logs)?;
        let summary = match prepared.iter().any(|one| one.load) {
            true => {
                let dir = self.run.dir.clone();
                let (summary, seconds) = self.load(&own, tree, logs, (&prepared, &dir), observer)?;
                self.target.loaded(spec, (&dir, seconds), &self.run.control)?;
                self.loaded_s = Some(seconds);
                Some(summary)
            }
            false => None,
        };
        self.shutdown()?;
        Ok(summary)
    }

    /// Leaves the servers running.
    pub fn leave(mut self, spec: &Experiment) -> Result<(), ExperimentError> {
        self.shutdown()?;
        self.target.leave(spec, (self.run.experiment_dir, &self.run.control), (&self.run.dir, self.loaded_s))
    }

    /// Loads an embedded store, closes it and keeps a copy of its files.
    fn load_and_keep(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        prepared: &[Prepared],
        observer: &mut dyn Observer,
    ) -> Result<(), ExperimentError> {
        let dir = self.run.dir.with_extension("load");
        self.load(spec, tree, logs, (prepared, &dir), observer)?;
        self.shutdown()?;
        dataset_cache::store(spec, self.run.experiment_dir, &self.data, &self.run.control)?;
        // As cold as the runs that begin with a copy.
        Ok(dataset_cache::drop_page_cache(&self.data)?)
    }

    /// The load alone, with a run directory of its own; its summary and how long it took, seconds.
    fn load(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        (prepared, dir): (&[Prepared], &Path),
        observer: &mut dyn Observer,
    ) -> Result<(Summary, f64), ExperimentError> {
        let (mut work, run, pairs) = ((self.run.read_work)(spec)?, self.run, self.target.uris.len());
        work.adopt(&together(prepared))?;
        let Some(pool) = self.pool.take() else {
            return Err(ExperimentError::other("a load without workers"));
        };
        let plan = run.session_plan(spec, work.as_ref(), &pool)?;
        // Thresholds are about what is measured.
        let plan = SessionPlan { title: format!("load, {}", plan.title), conditions: Vec::new(), ..plan };
        let mut conductor = run.begin(dir, tree, work.as_ref(), &pool, self.facts(&pool)?, plan)?;
        let load = |_: &mut Self, session: &mut RunSession<'_>, observer: &mut dyn Observer| {
            run.load(spec, work.as_ref(), pairs, session, logs, observer)
        };
        let Some(ended) = self.conduct(spec, &pool, &mut conductor, observer, load)? else {
            return Err(ExperimentError::other("there was nothing to load"));
        };
        let pacing = work.load()?.map_or(Pacing::Closed { think_ns: 0 }, |job| job.pacing);
        let summary = self.finish(conductor, &ended, &pacing)?;
        if run.control.is_stopping() {
            return Err(ExperimentError::Interrupted);
        }
        // Messages that follow are of the run that measures.
        run_log::keep_waiting();
        Ok((summary, ended.phase.seconds))
    }

    fn measure(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        prepared: &[Prepared],
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<WindowEstimate>), ExperimentError> {
        let (mut work, run) = ((self.run.read_work)(spec)?, self.run);
        work.adopt(&together(prepared))?;
        let Some(pool) = self.pool.take() else {
            return Err(ExperimentError::other("a run without workers"));
        };
        let plan = run.session_plan(spec, work.as_ref(), &pool)?;
        let mut conductor = run.begin(&run.dir, tree, work.as_ref(), &pool, self.facts(&pool)?, plan)?;
        let phases = |own: &mut Self, session: &mut RunSession<'_>, observer: &mut dyn Observer| {
            own.phases(spec, work.as_ref(), pool.worker_places(), session, logs, observer)
        };
        let made = self.conduct(spec, &pool, &mut conductor, observer, phases);
        let (ended, series) = made.map_err(|failed| match failed {
            ExperimentError::Other(_) => self.with_cause(failed),
            failed => failed,
        })?;
        let died = self.target.died();
        // A worker that was lost says nothing any more.
        let facts = self.facts(&pool).unwrap_or_else(|_| self.target.facts());
        let session = &mut conductor.session;
        if let Some(writer) = session.run_writer() {
            died.iter().for_each(|message| writer.write_event("server", message));
            // Counters of limits say most at the end.
            writer.update_run(|run| run.facts.extend(facts));
            if let Some(skew_ns) = pool.start_skew() {
                let skew = format!("{:.3} ms", skew_ns as f64 / 1e6);
                writer.update_run(|run| drop(run.facts.insert("workers.start_skew".into(), skew)));
            }
            for (worker, clock) in pool.worker_clocks() {
                let (offset, bound) = (clock.ns as f64 / 1e6, clock.bound_ns as f64 / 1e6);
                writer.update_run(|run| {
                    run.facts
                        .insert(format!("{worker}.clock"), format!("{offset:+.3} ms, within {bound:.3} ms"));
                });
            }
        }
        if let Some((bytes, memory)) = self.data_and_memory(spec) {
            session.note_data_size(bytes, memory);
        }
        let summary = self.finish(conductor, &ended, &work.measure()?.pacing)?;
        match died {
            Some(message) => Err(ExperimentError::other(message)),
            None => Ok((summary, series.estimate(&spec.window))),
        }
    }

    /// Has monitors look on, carries out `phases`, and notes in the run directory why they failed.
    fn conduct<T>(
        &mut self,
        spec: &Experiment,
        pool: &WorkerPool,
        conductor: &mut Conductor<'_>,
        observer: &mut dyn Observer,
        phases: impl FnOnce(&mut Self, &mut RunSession<'_>, &mut dyn Observer) -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        let session = &mut conductor.session;
        let watched = WatchedObserver::new(&self.target, pool, observer).map_err(ExperimentError::from);
        let made = watched.and_then(|mut watched| {
            let hosts = Participants { spec, target: &self.target, pool, environment: self.run.environment };
            session.on_hosts(hosts.list(&self.shared_cores));
            watching::begin(spec, &self.target, pool, session, &self.run.control)?;
            phases(self, session, &mut watched)
        });
        if let Err(failed) = &made {
            let reason = (!matches!(failed, ExperimentError::Interrupted)).then(|| failed.to_string());
            conductor.note_failure(reason.as_deref());
        }
        made
    }

    /// Judges the run and ends its monitors.
    fn finish(
        &self,
        mut conductor: Conductor<'_>,
        ended: &EndedPhase,
        pacing: &Pacing,
    ) -> Result<Summary, ExperimentError> {
        let summary = conductor.finish(ended, pacing);
        watching::end(&self.target);
        let lost = conductor.end();
        if lost.is_empty() { Ok(summary) } else { Err(ExperimentError::other(lost.join("; "))) }
    }

    fn phases(
        &mut self,
        spec: &Experiment,
        work: &dyn Work,
        workers: Vec<(u32, Option<String>)>,
        session: &mut RunSession<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(EndedPhase, SuccessSeries), ExperimentError> {
        let pairs = self.target.uris.len();
        match self.run.load(spec, work, pairs, session, logs, observer)? {
            Some(ended) if !self.run.control.is_stopping() => {
                self.target.loaded(spec, (&self.run.dir, ended.phase.seconds), &self.run.control)?;
            }
            Some(_) => {}
            None => self.target.not_loaded(&self.run.control)?,
        }
        if let Some(volume) = self.target.volume() {
            volume.used()?;
            let message = volume.describe();
            tracing::info!(volume = message, "it is known what the servers begin with");
            session.run_writer().into_iter().for_each(|writer| writer.write_event("volume", &message));
        }
        let reach = self.target.reach(workers, logs, &self.run.control);
        self.run.measured(spec, work, pairs, session, reach, observer)
    }

    /// Bytes of the data on this host's disk, and of the memory that may hold them: the limit, or else all there is.
    fn data_and_memory(&self, spec: &Experiment) -> Option<(u64, u64)> {
        let bytes = dataset_cache::bytes_below(&self.data).filter(|bytes| *bytes > 0)?;
        let server = spec.server.as_ref().map(|server| &server.limits);
        let limit = server.unwrap_or(&spec.client.limits).memory.as_ref().map(|limit| limit.0);
        Some((bytes, limit.unwrap_or(self.run.environment.memory_bytes)))
    }

    /// Returns facts about target, server and workers at the start.
    fn facts(&self, pool: &WorkerPool) -> Result<BTreeMap<String, String>, ExperimentError> {
        let mut facts = pool.facts.clone();
        facts.extend(self.target.facts());
        for (number, (confined, pid)) in self.confined.iter().zip(pool.worker_pids()).enumerate() {
            let own = confined.kernel_facts(pid)?;
            facts.extend(own.into_iter().map(|(key, value)| (format!("worker-{number}.{key}"), value)));
            for lost in &confined.lost {
                facts.insert(format!("worker-{number}.lost"), lost.clone());
            }
        }
        Ok(facts)
    }

    /// The words, and that the server is no longer there, or that memory was short, if that is so.
    fn with_cause(&mut self, failed: ExperimentError) -> ExperimentError {
        if matches!(failed, ExperimentError::Interrupted) {
            return failed;
        }
        // True if the kernel has killed something in a worker's group.
        let killed = |group: &(String, PathBuf)| {
            let read = |name: &str| std::fs::read_to_string(group.1.join(name)).unwrap_or_default();
            let counters = read("memory.events") + &read("memory.oom_control");
            let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok();
            counters.lines().filter_map(count).any(|n| n > 0)
        };
        if self.confined.iter().any(|one| one.cgroups().iter().any(killed)) {
            return ExperimentError::other(format!(
                "{failed}; killed by the kernel for want of memory (client.limits.memory)"
            ));
        }
        match self.target.cause() {
            Some(died) => ExperimentError::other(format!("{died}; {failed}")),
            None => failed,
        }
    }

    /// Workers of all pairs, each with its part of the cores that are left to the load.
    fn specs(&mut self, spec: &Experiment, logs: &Path) -> Result<Vec<WorkerSpec>, ExperimentError> {
        if !self.target.clients.is_empty() {
            return self.workers_elsewhere(spec, logs);
        }
        let target = &self.target;
        let (local, taken) = (target.local, target.taken.clone());
        let free = cores_left(affinity::allowed_cores(), &taken, local);
        let (uris, pairs) = (target.ways(), target.uris.len());
        let mut specs = Vec::new();
        self.shared_cores.clear();
        for (instance, uri) in uris.iter().enumerate() {
            for number in 0..spec.client.workers as usize {
                let (log, errors) = log(logs, instance, number)?;
                let (mut command, own) = self.command(spec, specs.len(), pairs, logs)?;
                command.stderr(errors);
                let cores = match &spec.client.cores {
                    Some(cores) => cores.0.clone(),
                    None if own.is_empty() => every_nth(&free, instance, pairs),
                    None => own,
                };
                let shared: Vec<usize> = cores.iter().copied().filter(|core| taken.contains(core)).collect();
                // A thread that spins on a server's core takes it away.
                let spin = !taken.is_empty() && shared.is_empty();
                self.shared_cores.extend(shared);
                let assignment = Assignment {
                    target: uri.clone(),
                    spec: Box::new(spec.clone()),
                    index: number,
                    total: spec.client.workers as usize,
                    instance,
                    cores,
                    local,
                    spin,
                    lease_ms: LEASE.as_millis() as u64,
                };
                specs.push(WorkerSpec { start: Start::Here(command), assignment, log });
            }
        }
        Ok(specs)
    }

    /// Workers on other hosts: as many on each host as the file says, for each target that is dealt to it.
    fn workers_elsewhere(&self, spec: &Experiment, logs: &Path) -> Result<Vec<WorkerSpec>, ExperimentError> {
        let (hosts, targets) = (&self.target.clients, &self.target.uris);
        let each = spec.client.workers as usize;
        let whole = dyno_session::work::texts::with_texts(spec)?;
        let mut specs = Vec::new();
        for (instance, uri) in targets.iter().enumerate() {
            let own = hosts_of(hosts.len(), targets.len(), instance);
            for number in 0..own.len() * each {
                let host = &hosts[own[number / each]];
                let log = log_path(logs, instance, number);
                let assignment = Assignment {
                    target: uri.clone(),
                    spec: Box::new(whole.clone()),
                    index: number,
                    total: own.len() * each,
                    instance,
                    // Each worker chooses among the cores of its host.
                    cores: Vec::new(),
                    local: false,
                    spin: false,
                    lease_ms: LEASE.as_millis() as u64,
                };
                let start = Start::There { transport: host.transport.clone(), program: host.program.clone() };
                specs.push(WorkerSpec { start, assignment, log });
            }
        }
        Ok(specs)
    }

    /// A worker's command, inside its placement and limits, and the cores that gives it (none: any).
    fn command(
        &mut self,
        spec: &Experiment,
        index: usize,
        pairs: usize,
        logs: &Path,
    ) -> Result<(Command, Vec<usize>), ExperimentError> {
        let client = &spec.client;
        let words = ["worker", "--stdio"];
        if client.placement.is_nothing() && client.limits.is_nothing() {
            let mut command = child::clean_command(self.run.program);
            command.args(words);
            return Ok((command, Vec::new()));
        }
        let count = pairs * client.workers as usize;
        let work_dir = logs.join(format!("worker-{index}"));
        std::fs::create_dir_all(&work_dir).map_err(|e| LocalError::failed_step(work_dir.display(), e))?;
        let go_on = client.if_not_permitted == IfNotPermitted::Continue;
        let asked = (&client.placement, &client.limits);
        let folder = if self.data.is_dir() { &self.data } else { logs };
        let confined = Confinement::new(asked, (index, count), (&work_dir, folder), self.run.machine, go_on);
        let confined = confined.map_err(|e| LocalError::failed_step("client", e))?;
        let cores = confined.confined_cores();
        tracing::info!(worker = index + 1, ?cores, lost = ?confined.lost, "a worker has its placement");
        let command = confined.confined_command(self.run.program, &words);
        let cores = confined.confined_cores();
        self.confined.push(confined);
        Ok((command, cores))
    }
}

/// Where a worker's words for people go.
fn log_path(logs: &Path, instance: usize, number: usize) -> PathBuf {
    logs.join(format!("worker-{instance}-{number}.log"))
}

fn log(logs: &Path, instance: usize, number: usize) -> Result<(PathBuf, Stdio), ExperimentError> {
    let path = log_path(logs, instance, number);
    let file = std::fs::File::create(&path).map_err(|e| LocalError::failed_step(path.display(), e))?;
    Ok((path, Stdio::from(file)))
}

/// Merges what all pairs have found, as the controller's own work needs it.
fn together(prepared: &[Prepared]) -> Prepared {
    let mut first = prepared.first().cloned().unwrap_or_default();
    first.load = prepared.iter().any(|one| one.load);
    first
}

/// The phases of a run whose data are there.
fn loaded(phases: &Phases) -> Phases {
    let mut phases = phases.clone();
    phases.load.when = When::Never;
    phases
}
