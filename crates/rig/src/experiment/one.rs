//! One run of an experiment: target, workers, phases, summary.

use super::hooks;
use super::journal::{RunRecord, RunStatus};
use super::place::{self, Place};
use super::series::Series;
use super::strategy::Point;
use crate::parts;
use crate::session::{Ended, Observer, Session, SessionPlan};
use crate::work::Work;
use crate::worker::{Assignment, Crew, CrewError, LEASE_MS, ReadWork, Recruit};
use dyno_analysis::Condition;
use dyno_engine::{Control, End, Job, affinity, share};
use dyno_plan::experiment::{Cell, Experiment};
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
    pub fn make(&self, below: &Path, observer: &mut dyn Observer) -> (RunRecord, Option<Summary>) {
        let mut record = RunRecord {
            cell: self.cell.number,
            repetition: self.point.repetition,
            point: self.point.label(),
            value: self.point.value,
            dir: self.dir.strip_prefix(below).unwrap_or(&self.dir).display().to_string(),
            status: RunStatus::Complete,
            words: String::new(),
            trust: String::new(),
            throughput: None,
            offered: None,
            passed: true,
        };
        match self.attempt(observer) {
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

    fn attempt(&self, observer: &mut dyn Observer) -> Result<(Summary, Option<f64>), Failed> {
        let (spec, tree) = self.spec()?;
        let told = self.told();
        let hooks = &spec.hooks;
        // Commands print into the folder beside the run directory, which must be empty until it is made.
        let logs = self.dir.with_extension("server");
        std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        hooks::run("before_run", &hooks.before_run, &hooks.timeout, &logs, &told)?;
        let made = self.with_place(&spec, &tree, &logs, observer);
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
        spec: &Experiment,
        tree: &Node,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<f64>), Failed> {
        let mut place = place::provide(spec, logs)?;
        let crew = Crew::start(self.recruits(spec, &place, logs)?);
        let crew = crew.map_err(|error| with_cause(error.to_string(), &mut place))?;
        let prepared = crew.prepare().map_err(|error| with_cause(error.to_string(), &mut place))?;
        let mut work = (self.read_work)(spec)?;
        let mut first = prepared.first().cloned().unwrap_or_default();
        first.load = prepared.iter().any(|one| one.load);
        work.adopt(&first)?;
        let plan = self.session_plan(spec, work.as_ref(), &crew)?;
        let writer = self.writer(tree, work.as_ref(), &crew, &place, &plan)?;
        let mut session = Session::new(plan, &crew, self.control.clone(), Some(writer));
        let made = self.phases(spec, work.as_ref(), place.uris.len(), &mut session, logs, observer);
        if let Err(Failed::Words(words)) = &made {
            if let Some(writer) = session.writer() {
                writer.event("failed", words);
                writer.update(|run| run.status = Status::Failed);
            }
            return Err(Failed::Words(with_cause(words.clone(), &mut place)));
        }
        let (ended, series) = made?;
        let died = place.died();
        if let (Some(writer), Some(words)) = (session.writer(), &died) {
            writer.event("server", words);
        }
        let status = if self.control.stopping() { Status::Interrupted } else { Status::Complete };
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

    /// Workers of all pairs, each with its part of the cores that are left to the load.
    fn recruits(&self, spec: &Experiment, place: &Place, logs: &Path) -> Result<Vec<Recruit>, Failed> {
        let mut free = affinity::allowed_cores();
        if free.len() > 1 {
            free.retain(|core| !place.taken.contains(core));
        }
        if place.local && place.taken.is_empty() && free.len() > 1 {
            free.remove(0);
        }
        let pairs = place.uris.len();
        let mut recruits = Vec::new();
        for (instance, uri) in place.uris.iter().enumerate() {
            for number in 0..spec.client.workers as usize {
                let name = format!("worker-{instance}-{number}.log");
                let log = std::fs::File::create(logs.join(&name)).map_err(|e| format!("{name}: {e}"))?;
                let mut command = Command::new(self.program);
                command.args(["worker", "--stdio"]).stderr(Stdio::from(log));
                let assignment = Assignment {
                    target: uri.clone(),
                    spec: Box::new(spec.clone()),
                    number,
                    of: spec.client.workers as usize,
                    instance,
                    cores: share(&free, instance, pairs),
                    local: place.local,
                    spin: !place.taken.is_empty(),
                    lease_ms: LEASE_MS,
                };
                recruits.push(Recruit { command, assignment });
            }
        }
        Ok(recruits)
    }

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
        place: &Place,
        plan: &SessionPlan,
    ) -> Result<Writer, Failed> {
        use crate::apparatus::Apparatus;
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
        let mut facts = crew.facts.clone();
        facts.extend(place.facts());
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

    fn phases(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pairs: usize,
        session: &mut Session<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Ended, Series), Failed> {
        let (hooks, told) = (&spec.hooks, self.told());
        let hook =
            |when: &str, commands: &[Vec<String>]| hooks::run(when, commands, &hooks.timeout, logs, &told);
        let mut series = Series::new(work.measure()?.warmup_ns);
        if let Some(job) = work.load()? {
            hook("before_load", &hooks.before_load)?;
            let ended =
                session.run_workers("load", &[whole(job, pairs)?], observer).map_err(|e| e.to_string())?;
            let failed = ended.totals.failed();
            if failed > 0 && !self.control.stopping() {
                let first = ended.phase.errors.values().next().cloned().unwrap_or_default();
                return Err(Failed::Words(format!("{failed} inserts of the load failed: {first}")));
            }
            hook("after_load", &hooks.after_load)?;
        }
        if let Some(pause) = &spec.phases.pause {
            self.pause(Duration::from_nanos(pause.0));
        }
        if self.control.stopping() {
            return Err(Failed::Interrupted);
        }
        hook("before_measure", &hooks.before_measure)?;
        let job = whole(work.measure()?, pairs)?;
        let mut watched = series.watch(observer);
        let ended = session.run_workers("measure", &[job], &mut watched).map_err(|e| e.to_string())?;
        hook("after_measure", &hooks.after_measure)?;
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

/// The words, and that the server is no longer there, if it is not.
fn with_cause(words: String, place: &mut Place) -> String {
    match place.died() {
        Some(died) => format!("{died}; {words}"),
        None => words,
    }
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
