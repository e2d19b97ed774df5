//! One run of an experiment: target, workers, phases, summary.

use super::hooks;
use super::journal::{RunRecord, RunStatus};
use super::kept;
use super::place::{self, Place, Shared};
use super::series::Series;
use super::strategy::Point;
use crate::apparatus::Apparatus;
use crate::local::{Confinement, Machine};
use crate::parts;
use crate::session::{Ended, Observer, Session, SessionPlan};
use crate::work::{Prepared, Work};
use crate::worker::{Assignment, Crew, CrewError, LEASE_MS, ReadWork, Recruit};
use dyno_analysis::Condition;
use dyno_engine::{Control, End, Job, affinity, share};
use dyno_plan::experiment::{Cell, Experiment, Phases, When};
use dyno_plan::server::IfNotPermitted;
use dyno_plan::tree::{Node, Origin};
use dyno_record::Scale;
use dyno_rundir::Writer;
use dyno_rundir::mask::{is_secret, mask_arguments, mask_uris};
use dyno_rundir::schema::{Environment, Run, Setting, Status, Summary, Trust, VERSION};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Starts load and measure phases of one run.
pub(super) struct OneRun<'a> {
    pub cell: &'a Cell,
    pub point: &'a Point,
    pub dir: PathBuf,
    pub environment: &'a Environment,
    pub control: Arc<Control>,
    pub read_work: ReadWork<'a>,
    /// This program, to be started as worker.
    pub program: &'a Path,
    /// The experiment's directory.
    pub below: &'a Path,
    pub machine: &'a Machine,
}

/// Why a run was not made.
pub(super) enum Failed {
    /// Something is wrong, in words.
    Words(String),
    /// A signal came first.
    Interrupted,
}

impl From<String> for Failed {
    fn from(words: String) -> Self {
        Failed::Words(words)
    }
}

impl From<CrewError> for Failed {
    fn from(error: CrewError) -> Self {
        Failed::Words(error.to_string())
    }
}

impl From<dyno_types::Refused> for Failed {
    fn from(refused: dyno_types::Refused) -> Self {
        Failed::Words(refused.0)
    }
}

impl OneRun<'_> {
    /// Makes the run; what came of it, for the journal.
    pub fn make(&self, shared: &mut Shared, observer: &mut dyn Observer) -> (RunRecord, Option<Summary>) {
        let mut record = RunRecord {
            cell: self.cell.number,
            repetition: self.point.repetition,
            point: self.point.label(),
            value: self.point.value,
            dir: self.dir.strip_prefix(self.below).unwrap_or(&self.dir).display().to_string(),
            status: RunStatus::Complete,
            words: String::new(),
            trust: String::new(),
            throughput: None,
            offered: None,
            passed: true,
        };
        match self.attempt(shared, observer) {
            Ok((summary, throughput)) => {
                let measured = summary.measured();
                record.throughput = throughput.or(measured.map(|phase| phase.throughput));
                record.offered = measured.and_then(|phase| phase.offered);
                record.passed = summary.thresholds.iter().all(|t| t.passed);
                record.trust = match summary.verdict.trust {
                    Trust::Valid => "valid".into(),
                    Trust::Suspect => "suspect".into(),
                    Trust::Invalid => "invalid".into(),
                };
                record.words = summary.verdict.reasons.first().map_or(String::new(), |r| r.text.clone());
                if summary.status == Status::Interrupted {
                    record.status = RunStatus::Interrupted;
                }
                (record, Some(summary))
            }
            Err(Failed::Words(words)) => {
                record.status =
                    if self.control.stopping() { RunStatus::Interrupted } else { RunStatus::Failed };
                record.passed = false;
                record.words = words;
                (record, None)
            }
            Err(Failed::Interrupted) => {
                record.status = RunStatus::Interrupted;
                (record, None)
            }
        }
    }

    fn attempt(
        &self,
        shared: &mut Shared,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<f64>), Failed> {
        let (spec, tree) = self.spec()?;
        let told = self.told();
        let hooks = spec.hooks.clone();
        // Commands print into the folder beside the run directory, which must be empty until it is made.
        let logs = self.dir.with_extension("server");
        std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        hooks::run("before_run", &hooks.before_run, &hooks.timeout, &logs, &told)?;
        let made = self.with_place(spec, &tree, &logs, shared, observer);
        let after = hooks::run("after_run", &hooks.after_run, &hooks.timeout, &logs, &told);
        self.put_away(&logs);
        let made = made?;
        after?;
        Ok(made)
    }

    /// Moves what server, workers and commands have printed into the run directory; empty files say nothing.
    fn put_away(&self, logs: &Path) {
        let Ok(entries) = std::fs::read_dir(logs) else { return };
        for entry in entries.flatten() {
            if entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        // Goes only if it is empty; else it becomes a folder of the run, or stays where there is none.
        let _ = std::fs::remove_dir(logs);
        if self.dir.is_dir() && logs.is_dir() {
            let _ = std::fs::rename(logs, self.dir.join("server"));
        }
    }

    /// The cell's experiment with the point put in.
    fn spec(&self) -> Result<(Experiment, Node), Failed> {
        let Some((key, value)) = &self.point.set else {
            return Ok((self.cell.spec.clone(), self.cell.tree.clone()));
        };
        let mut tree = self.cell.tree.clone();
        tree.set(key, Node::text(value, Origin::Option("strategy".into())));
        if let Ok(users) = value.parse::<i64>() {
            tree.set(
                key,
                Node { value: dyno_plan::tree::Value::Int(users), origin: Origin::Option("strategy".into()) },
            );
        }
        let spec = tree.read().map_err(|e| e.to_string())?;
        Ok((spec, tree))
    }

    /// What commands are told in their environment.
    fn told(&self) -> Vec<(String, String)> {
        vec![
            ("DYNO_RUN_DIR".into(), self.dir.display().to_string()),
            ("DYNO_CELL".into(), self.cell.number.to_string()),
            ("DYNO_CELL_LABEL".into(), self.cell.label()),
            ("DYNO_REPETITION".into(), self.point.repetition.to_string()),
        ]
    }

    fn with_place(
        &self,
        mut spec: Experiment,
        tree: &Node,
        logs: &Path,
        shared: &mut Shared,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<f64>), Failed> {
        let place = place::provide(&spec, logs, self.below, shared, self.machine)?;
        let data = logs.join("data");
        if let Some(copy) = kept::wanted(&spec).then(|| kept::find(&spec, self.below)).flatten() {
            // The folder is there, and empty.
            std::fs::remove_dir(&data).map_err(|e| format!("{}: {e}", data.display()))?;
            kept::copy(&copy, &data)?;
            spec.phases.load.when = When::Never;
        }
        let mut bench = Bench { run: self, place, crew: None, confined: Vec::new(), data };
        let made = bench.conduct(&spec, tree, logs, observer);
        let Bench { place, crew, confined, data, .. } = bench;
        drop(crew);
        for one in confined {
            one.end().map_err(|e| e.to_string())?;
        }
        let ended = place.end(&spec, shared);
        // What an embedded store has written is as large as the data set.
        let _ = std::fs::remove_dir_all(data);
        let made = made?;
        ended?;
        Ok(made)
    }
}

/// A run under way: its target, its workers, and what they are confined in.
struct Bench<'a> {
    run: &'a OneRun<'a>,
    place: Place,
    crew: Option<Crew>,
    confined: Vec<Confinement>,
    /// The folder of an embedded store.
    data: PathBuf,
}

impl Bench<'_> {
    fn conduct(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<f64>), Failed> {
        let mut prepared = self.enlist(spec, logs)?;
        if kept::wanted(spec) && prepared.iter().any(|one| one.load) {
            self.load_and_keep(spec, logs, &prepared, observer)?;
            let loaded = Experiment { phases: loaded(&spec.phases), ..spec.clone() };
            prepared = self.enlist(&loaded, logs)?;
        }
        self.measure(spec, tree, logs, &prepared, observer)
    }

    /// Starts the workers; what each pair's first has found.
    fn enlist(&mut self, spec: &Experiment, logs: &Path) -> Result<Vec<Prepared>, Failed> {
        self.dismiss()?;
        let recruits = self.recruits(spec, logs)?;
        let crew = Crew::start(recruits).map_err(|error| self.with_cause(error.to_string()))?;
        let prepared = crew.prepare().map_err(|error| self.with_cause(error.to_string()))?;
        self.crew = Some(crew);
        Ok(prepared)
    }

    fn dismiss(&mut self) -> Result<(), Failed> {
        self.crew = None;
        for one in self.confined.drain(..) {
            one.end().map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Loads an embedded store, closes it and keeps a copy of its files.
    fn load_and_keep(
        &mut self,
        spec: &Experiment,
        logs: &Path,
        prepared: &[Prepared],
        observer: &mut dyn Observer,
    ) -> Result<(), Failed> {
        let mut work = (self.run.read_work)(spec)?;
        work.adopt(&together(prepared))?;
        let Some(crew) = &self.crew else { return Ok(()) };
        let plan = SessionPlan { title: "load".into(), ..SessionPlan::default() };
        let mut session = Session::new(plan, crew, self.run.control.clone(), None);
        self.run.load(spec, work.as_ref(), self.place.uris.len(), &mut session, logs, observer)?;
        if self.run.control.stopping() {
            return Err(Failed::Interrupted);
        }
        self.dismiss()?;
        Ok(kept::keep(spec, self.run.below, &self.data)?)
    }

    fn measure(
        &mut self,
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        prepared: &[Prepared],
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<f64>), Failed> {
        let run = self.run;
        let Some(crew) = self.crew.take() else { return Err(Failed::Words("a run without workers".into())) };
        let mut work = (run.read_work)(spec)?;
        work.adopt(&together(prepared))?;
        let plan = run.session_plan(spec, work.as_ref(), &crew)?;
        let facts = self.facts(&crew)?;
        let writer = run.writer(tree, work.as_ref(), &crew, facts, &plan)?;
        let mut session = Session::new(plan, &crew, run.control.clone(), Some(writer));
        let made = self.phases(spec, work.as_ref(), &mut session, logs, observer);
        if let Err(Failed::Words(words)) = &made {
            if let Some(writer) = session.writer() {
                writer.event("failed", words);
                writer.update(|run| run.status = Status::Failed);
            }
            return Err(self.with_cause(words.clone()));
        }
        let (ended, series) = made?;
        let died = self.place.died();
        // A worker that was lost says nothing any more.
        let facts = self.facts(&crew).unwrap_or_else(|_| self.place.facts());
        if let Some(writer) = session.writer() {
            died.iter().for_each(|words| writer.event("server", words));
            // Counters of limits say most at the end.
            writer.update(|run| run.facts.extend(facts));
        }
        let status = if run.control.stopping() { Status::Interrupted } else { Status::Complete };
        let pacing = work.measure()?.pacing;
        let summary = session.finish(&ended, &pacing, status);
        if let Some(failure) = session.writer().and_then(|writer| writer.failure().map(str::to_owned)) {
            return Err(Failed::Words(format!("the run directory is incomplete: {failure}")));
        }
        match died {
            Some(words) => Err(Failed::Words(words)),
            None => Ok((summary, series.estimate(&spec.window))),
        }
    }

    fn phases(
        &mut self,
        spec: &Experiment,
        work: &dyn Work,
        session: &mut Session<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Ended, Series), Failed> {
        let pairs = self.place.uris.len();
        if self.run.load(spec, work, pairs, session, logs, observer)? {
            self.place.loaded()?;
        }
        self.run.measured(spec, work, pairs, session, logs, observer)
    }

    /// What is known of target, server and workers at the start.
    fn facts(&self, crew: &Crew) -> Result<BTreeMap<String, String>, Failed> {
        let mut facts = crew.facts.clone();
        facts.extend(self.place.facts());
        for (number, (confined, pid)) in self.confined.iter().zip(crew.pids()).enumerate() {
            let own = confined.facts(pid).map_err(|e| e.to_string())?;
            facts.extend(own.into_iter().map(|(key, value)| (format!("worker-{number}.{key}"), value)));
            for lost in &confined.lost {
                facts.insert(format!("worker-{number}.lost"), lost.clone());
            }
        }
        Ok(facts)
    }

    /// The words, and that the server is no longer there, if it is not.
    fn with_cause(&mut self, words: String) -> Failed {
        match self.place.died() {
            Some(died) => Failed::Words(format!("{died}; {words}")),
            None => Failed::Words(words),
        }
    }

    /// Workers of all pairs, each with its part of the cores that are left to the load.
    fn recruits(&mut self, spec: &Experiment, logs: &Path) -> Result<Vec<Recruit>, Failed> {
        let place = &self.place;
        let mut free = affinity::allowed_cores();
        if free.len() > 1 {
            free.retain(|core| !place.taken.contains(core));
        }
        if place.local && place.taken.is_empty() && free.len() > 1 {
            free.remove(0);
        }
        let (uris, pairs) = (place.uris.clone(), place.uris.len());
        let (local, spin) = (place.local, !place.taken.is_empty());
        let mut recruits = Vec::new();
        for (instance, uri) in uris.iter().enumerate() {
            for number in 0..spec.client.workers as usize {
                let name = format!("worker-{instance}-{number}.log");
                let log = std::fs::File::create(logs.join(&name)).map_err(|e| format!("{name}: {e}"))?;
                let (mut command, own) = self.command(spec, recruits.len(), pairs, logs)?;
                command.stderr(Stdio::from(log));
                let assignment = Assignment {
                    target: uri.clone(),
                    spec: Box::new(spec.clone()),
                    number,
                    of: spec.client.workers as usize,
                    instance,
                    cores: if own.is_empty() { share(&free, instance, pairs) } else { own },
                    local,
                    spin,
                    lease_ms: LEASE_MS,
                };
                recruits.push(Recruit { command, assignment });
            }
        }
        Ok(recruits)
    }

    /// A worker's command, inside its placement and limits, and the cores that gives it (none: any).
    fn command(
        &mut self,
        spec: &Experiment,
        index: usize,
        pairs: usize,
        logs: &Path,
    ) -> Result<(Command, Vec<usize>), Failed> {
        let client = &spec.client;
        let words = ["worker", "--stdio"];
        if client.placement.is_nothing() && client.limits.is_nothing() {
            let mut command = Command::new(self.run.program);
            command.args(words);
            return Ok((command, Vec::new()));
        }
        let count = pairs * client.workers as usize;
        let home = logs.join(format!("worker-{index}"));
        std::fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
        let go_on = client.if_not_permitted == IfNotPermitted::Continue;
        let asked = (&client.placement, &client.limits);
        let folder = if self.data.is_dir() { &self.data } else { logs };
        let confined = Confinement::new(asked, (index, count), (&home, folder), self.run.machine, go_on);
        let confined = confined.map_err(|e| format!("client: {e}"))?;
        let command = confined.command(self.run.program, &words);
        let cores = confined.cores();
        self.confined.push(confined);
        Ok((command, cores))
    }
}

impl OneRun<'_> {
    fn session_plan(&self, spec: &Experiment, work: &dyn Work, crew: &Crew) -> Result<SessionPlan, Failed> {
        let measured = work.measure()?;
        let conditions = conditions(spec, measured.workload.metrics())?;
        Ok(SessionPlan {
            title: format!("{}, {}", work.name(), self.cell.label()),
            target: crew.shown.join(" "),
            started: jiff::Timestamp::now().to_string(),
            conditions,
            clock_ns: self.environment.clock_ns,
        })
    }

    fn writer(
        &self,
        tree: &Node,
        work: &dyn Work,
        crew: &Crew,
        facts: BTreeMap<String, String>,
        plan: &SessionPlan,
    ) -> Result<Writer, Failed> {
        let mask = |key: &str, value: &str| if is_secret(key) { "***".to_owned() } else { mask_uris(value) };
        let setting = |key: &str, value: &str, source: String| Setting {
            value: mask(key, value),
            key: key.to_owned(),
            source,
        };
        let mut settings = vec![setting("title", &plan.title, "derived".into())];
        settings.push(setting("cell", &self.cell.label(), "derived".into()));
        settings.push(setting("repetition", &self.point.repetition.to_string(), "derived".into()));
        let leaves = tree.leaves();
        settings.extend(leaves.iter().map(|(key, value, origin)| setting(key, value, origin.to_string())));
        let own = work.settings();
        settings.extend(own.iter().map(|(key, s)| setting(key, &s.value, s.source.to_string())));
        let run = Run {
            version: VERSION,
            dyno: env!("CARGO_PKG_VERSION").into(),
            command: mask_arguments(&std::env::args().collect::<Vec<_>>()),
            started: plan.started.clone(),
            status: Status::Running,
            target: plan.target.clone(),
            database: crew.nature().database,
            facts,
            settings,
            metrics: BTreeMap::new(),
            unit_ns: Scale::Ns64.unit_ns(),
        };
        let writer = Writer::create(&self.dir, run, self.environment, Scale::Ns64);
        Ok(writer.map_err(|e| format!("cannot write the run directory: {e}"))?)
    }

    /// The load phase, if there is something to load.
    fn load(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pairs: usize,
        session: &mut Session<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<bool, Failed> {
        let Some(job) = work.load()? else { return Ok(false) };
        let hooks = &spec.hooks;
        hooks::run("before_load", &hooks.before_load, &hooks.timeout, logs, &self.told())?;
        let ended =
            session.run_workers("load", &[whole(job, pairs)?], observer).map_err(|e| e.to_string())?;
        let failed = ended.totals.failed();
        if failed > 0 && !self.control.stopping() {
            let first = ended.phase.errors.values().next().cloned().unwrap_or_default();
            return Err(Failed::Words(format!("{failed} inserts of the load failed: {first}")));
        }
        hooks::run("after_load", &hooks.after_load, &hooks.timeout, logs, &self.told())?;
        Ok(true)
    }

    /// Pause, warm-up and measurement.
    fn measured(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pairs: usize,
        session: &mut Session<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Ended, Series), Failed> {
        if let Some(pause) = &spec.phases.pause {
            self.pause(Duration::from_nanos(pause.0));
        }
        if self.control.stopping() {
            return Err(Failed::Interrupted);
        }
        let hooks = &spec.hooks;
        hooks::run("before_measure", &hooks.before_measure, &hooks.timeout, logs, &self.told())?;
        let job = whole(work.measure()?, pairs)?;
        let mut series = Series::new(job.warmup_ns);
        let mut watched = series.watch(observer);
        let ended = session.run_workers("measure", &[job], &mut watched).map_err(|e| e.to_string())?;
        hooks::run("after_measure", &hooks.after_measure, &hooks.timeout, logs, &self.told())?;
        Ok((ended, series))
    }

    /// Waits, but not longer than the user wants.
    fn pause(&self, length: Duration) {
        let end = std::time::Instant::now() + length;
        while !self.control.stopping() {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// What all pairs have found, as the controller's own work needs it.
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

/// The job of all pairs together, as reports see it.
fn whole(job: Job, pairs: usize) -> Result<Job, Failed> {
    let operations = job.end.operations.map(|n| n * pairs as u64);
    let end = End { operations, ..job.end };
    let all = vec![Job { end, ..job }; pairs];
    parts::together(&all).ok_or_else(|| Failed::Words("a run without targets".into()))
}

/// Thresholds of the experiment and objectives of its search, checked against the workload's operations.
pub(super) fn conditions(spec: &Experiment, metrics: &[String]) -> Result<Vec<Condition>, String> {
    let objectives = match &spec.strategy {
        Some(dyno_plan::experiment::Strategy::HighestRate(search)) => search.objectives.as_slice(),
        _ => &[],
    };
    let read = |text: &String| {
        let condition = Condition::parse(text).map_err(|e| format!("require: {e}"))?;
        condition.check(metrics).map_err(|e| format!("require: {e}"))?;
        Ok(condition)
    };
    spec.require.iter().chain(objectives).map(read).collect()
}
