//! A run of several phases on one open target, recorded as it goes.

use crate::hosts::{HostPlan, SeenOfHosts};
use crate::in_process_workers;
use crate::interval_history::{IntervalHistory, PerSecond, WholeSeconds, within_phase};
use crate::keyspace::distinct_keys;
use crate::load_generator::{Applied, LoadGenerator, threads};
use crate::phase_boundaries::{OnEpoch, PhaseBoundaries};
use crate::unresponsive_target::UnresponsiveTarget;
use crate::watch::MonitorWatch;
use crate::watch::monitor_snapshot::{ServerNow, SourceSnapshot};
use dyno_analysis::faults::InjectedFault;
use dyno_analysis::{
    Blocks, Condition, Evidence, PhaseFacts, RunObservations, add_intervals, find_pauses, find_silences,
    judge_run, load_failed, summarise_phase,
};
use dyno_db::target::TargetInfo;
use dyno_engine::{Control, Finished, Job, Pacing, RunError, Second};
use dyno_monitor::{CpuTimes, HostCpu, Queues};
use dyno_record::{RawSample, Totals};
use dyno_rundir::schema::{
    AgainstFigures, Claim, Client, CollectionFigures, Collections, CrossSlotFigures, Pair, Phase, PhaseHost,
    Planned, ReplayExample, ReplayFigures, Status, Summary, ThenLatency, Threshold, VERSION, Verdict,
};
use dyno_rundir::{IntervalFacts, RunWriter};
use dyno_types::limits::SAMPLES;
use dyno_types::{Outcome, RefusalCode, Refused};
use dyno_workload::ReplayedReplies;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// One phase to run.
#[derive(Clone)]
pub struct PhasePlan {
    /// `load` or `measure`; the warm-up inside a job is recorded as `warmup`.
    pub name: &'static str,
    /// Job to run.
    pub job: Job,
}

/// Progress of a phase, for viewers, about once a second.
#[derive(Debug)]
pub struct PhaseProgress<'a> {
    /// Phase being counted.
    pub phase: &'a str,
    /// Seconds since the phase began, to the end of its last second; no more than its duration.
    pub elapsed_s: f64,
    /// Number of its last second, from 0 on: those in which replies come after the end are counted, too.
    pub second: u64,
    /// Share done, 0 to 1, if it can be told.
    pub done: Option<f64>,
    /// Seconds left, if it can be told.
    pub left_s: Option<f64>,
    /// Everything of the phase so far.
    pub so_far: &'a Totals,
    /// The last second alone.
    pub last: &'a Totals,
    /// Seconds that it took: the first and the last of a phase are shorter where it begins or ends within a second. `None` where
    /// operations or a stop ended the phase, at a time that is not known yet.
    pub length_s: Option<f64>,
    /// The first text of each class of errors, as far as they are known.
    pub errors: Vec<(Outcome, String)>,
    /// Metrics that the database reports, where monitors ask it.
    pub server: Option<ServerNow>,
    /// The same in full, and what the kernel says of servers, by source.
    pub said: Vec<(String, SourceSnapshot)>,
}

impl PhaseProgress<'_> {
    /// Returns whether the last second was a whole one.
    pub fn is_whole_second(&self) -> bool {
        self.length_s.is_some_and(|length_s| length_s > 0.999)
    }
}

/// Watches a run.
pub trait Observer {
    /// A phase begins.
    fn begin(&mut self, phase: &str, plan: &Job);
    /// A second has gone by.
    fn second(&mut self, progress: &PhaseProgress<'_>);
    /// The phase has ended.
    fn end(&mut self, phase: &Phase);
}

/// A phase that has ended.
#[derive(Debug)]
pub struct EndedPhase {
    /// Summary.
    pub phase: Phase,
    /// Totals.
    pub totals: Totals,
    /// The warm-up's, if there was one.
    pub warmup: Option<Phase>,
    /// The engine's own account.
    pub finished: Finished,
    /// Observations for the verdict.
    pub observations: RunObservations,
    /// Its blocks, for thresholds.
    pub blocks: Blocks,
}

/// Settings of a session that are not a phase's.
#[derive(Clone, Debug, Default)]
pub struct SessionPlan {
    /// Title of the run.
    pub title: String,
    /// Target without secrets.
    pub target: String,
    /// Begin, RFC 3339.
    pub started: String,
    /// Thresholds.
    pub conditions: Vec<Condition>,
    /// True if a threshold that is too close to call counts as missed.
    pub strict: bool,
    /// Claims that are judged where there are no thresholds; empty: throughput and tail.
    pub asked: Vec<Claim>,
}

/// A run under way.
pub struct RunSession<'a> {
    plan: SessionPlan,
    generator: &'a dyn LoadGenerator,
    control: Arc<Control>,
    writer: Option<RunWriter>,
    watch: Option<MonitorWatch>,
    on_epoch: Option<OnEpoch>,
    grafana: Option<String>,
    samples: usize,
    changed: Vec<String>,
    hosts: Vec<HostPlan>,
    data: Option<(u64, u64)>,
    phases: Vec<Phase>,
    pairs: Vec<Pair>,
    history: IntervalHistory,
}

impl<'a> RunSession<'a> {
    /// Nothing has run yet.
    pub fn new(
        plan: SessionPlan,
        generator: &'a dyn LoadGenerator,
        control: Arc<Control>,
        writer: Option<RunWriter>,
    ) -> Self {
        let mut writer = writer;
        tracing::info!(
            uri = plan.target,
            database = generator.target().database,
            what = plan.title,
            "a session begins on its target"
        );
        if let (Some(writer), Some(missing)) = (&mut writer, generator.missing()) {
            writer.write_event("target", &format!("members or routers that do not answer: {missing}"));
        }
        RunSession {
            plan,
            generator,
            control,
            writer,
            watch: None,
            on_epoch: None,
            grafana: None,
            samples: SAMPLES,
            changed: Vec::new(),
            hosts: Vec::new(),
            data: None,
            phases: Vec::new(),
            pairs: Vec::new(),
            history: IntervalHistory::default(),
        }
    }

    /// The run directory.
    pub fn run_writer(&mut self) -> Option<&mut RunWriter> {
        self.writer.as_mut()
    }

    /// Workers that were lost, and what has cut a phase short, in words.
    pub fn lost_workers(&self) -> Vec<String> {
        self.generator.lost()
    }

    /// Keeps at most so many single samples, where a job records them; what is counted stays exact.
    pub fn keep_samples(&mut self, most: usize) {
        self.samples = most;
    }

    /// Records host facts that changed since the run began; the verdict lists them.
    pub fn note_changes(&mut self, what: Vec<String>) {
        self.changed = what;
    }

    /// Notes how many bytes the data have, and the memory that may hold them.
    pub fn note_data_size(&mut self, bytes: u64, memory: u64) {
        self.data = Some((bytes, memory));
    }

    /// Hosts that take part from now on.
    pub fn on_hosts(&mut self, hosts: Vec<HostPlan>) {
        self.hosts = hosts;
    }

    /// Keeps the intervals of the next phase, so that faults can be judged by them.
    pub fn expect_faults(&mut self) {
        self.history = IntervalHistory::start_recording();
    }

    /// Says what happened in the phase, and which faults did not come, in words.
    pub fn judge_faults(&mut self, happened: &[InjectedFault], missed: Vec<String>) {
        self.history.judge_phase(happened, missed);
    }

    /// Has monitors look on from now on.
    pub fn start_watch(&mut self, watch: MonitorWatch) {
        self.watch = Some(watch);
    }

    /// Has `tell` called with the epoch of every phase from now on, and the length of its warm-up, a little before it.
    pub fn on_epoch(&mut self, tell: impl Fn(SystemTime, Duration) + Send + Sync + 'static) {
        self.on_epoch = Some(Arc::new(tell));
    }

    /// Has the summary link each phase's time on a dashboard of Grafana.
    pub fn link_to(&mut self, dashboard: &str) {
        self.grafana = Some(dashboard.to_owned());
    }

    /// Ends the monitors, if there are any, and notes what they have cost; the first of their writes that failed.
    pub fn end_watch(&mut self) -> Option<String> {
        let (cost, failure) = self.watch.take()?.finish();
        if let Some(writer) = &mut self.writer {
            let message = format!("monitors took {:.3} s of CPU in {:.1} s", cost.cpu_s, cost.wall_s);
            writer.write_event("monitor", &message);
        }
        failure
    }

    /// Runs one phase.
    pub fn run(&mut self, plan: &PhasePlan, observer: &mut dyn Observer) -> Result<EndedPhase, RunError> {
        self.run_workers(plan.name, std::slice::from_ref(&plan.job), observer)
    }

    /// Runs one phase that is divided among several workers of this process, each with its own job: see
    /// [`Job::divide_among`].
    pub fn run_workers(
        &mut self,
        name: &'static str,
        jobs: &[Job],
        observer: &mut dyn Observer,
    ) -> Result<EndedPhase, RunError> {
        let whole = in_process_workers::join_jobs(jobs)
            .ok_or_else(|| Refused::new(RefusalCode::Missing, "workers", "a phase without workers"))?;
        let job = &whole;
        observer.begin(name, job);
        tracing::info!(
            phase = name,
            users = job.users,
            operations = job.end.operations,
            duration_ns = job.end.duration_ns,
            warmup_ns = job.warmup_ns,
            "a phase is prepared"
        );
        if let Some(writer) = &mut self.writer {
            writer.write_event("phase", name);
        }
        let metrics = job.workload.metrics().to_vec();
        if let Some(writer) = &mut self.writer {
            let threads = self.generator.threads(job);
            writer.name_metrics(name, &metrics, planned(job, threads), job.warmup_ns > 0);
        }
        let mut sums = [Totals::new(metrics.len(), job.scale), Totals::new(metrics.len(), job.scale)];
        let watch = self.watch.as_ref();
        let neighbours = watch.map(MonitorWatch::neighbours);
        let mut silence = UnresponsiveTarget::of_job(job, &self.control);
        let control = silence.control.clone();
        let mut boundaries = PhaseBoundaries::for_phase(
            name,
            (job.warmup_ns, job.end.duration_ns),
            watch,
            self.on_epoch.clone(),
            &control,
        );
        let mut whole = WholeSeconds::default();
        let (mut seconds_of, clocks) = (PerSecond::new(&metrics), (SystemTime::now(), Instant::now()));
        let (mut host_cpu, mut local_cpu) = (HostCpu::start(), CpuTimes::default());
        // What goes through a socket of this host, or nowhere, takes no device.
        let is_here = ["unix:", ":///", "%2F"].iter().any(|word| self.plan.target.contains(word));
        let info = self.generator.target();
        let queues = (info.wire && !info.virtual_time && !is_here).then(Queues::read_now);
        let (writer, most, history) = (&mut self.writer, self.samples, &mut self.history);
        let mut on_second = |second: Second| {
            let lap = host_cpu.lap_times();
            if let (Some(lap), false) = (lap, second.warmup) {
                local_cpu.add_times(&lap);
            }
            let phase = if second.warmup { "warmup" } else { name };
            silence.add_interval(&second);
            history.add_interval(&second, job);
            boundaries.note_second(second.warmup, writer.as_mut());
            let start = Duration::from_nanos(second.number * job.interval_ns);
            if let Some(writer) = writer.as_mut() {
                let steal_pct = lap.map(|l| l.steal_share() * 100.0);
                let length_s = job.interval_ns as f64 / 1e9;
                let due = due_in_interval(job, second.number, second.warmup);
                writer.write_interval(
                    phase,
                    start,
                    length_s,
                    &second.totals,
                    IntervalFacts { steal_pct, due },
                );
            }
            let so_far = &mut sums[usize::from(second.warmup)];
            so_far.merge(&second.totals);
            keep(&mut so_far.samples, &second.totals, most);
            if !second.warmup {
                seconds_of.add_interval(start.as_secs(), &second.totals, job);
            }
            // Viewers are shown seconds, whole where the phase has them whole.
            let Some(second) = whole.add_interval(second, job) else { return };
            let (begin_s, end_s) = within_phase(job, start.as_secs(), second.warmup);
            let before_s = if second.warmup { 0.0 } else { job.warmup_ns as f64 / 1e9 };
            let counted = share_counted(job, so_far).filter(|_| !second.warmup);
            let timed = share_timed(job, end_s);
            // Operations are those behind the warm-up; a time is that of all.
            let left_of = |done: Option<f64>, since_s: f64| {
                done.filter(|done| *done > 0.0).map(|done| ((end_s - since_s) * (1.0 - done) / done).max(0.0))
            };
            let left = left_of(counted, before_s).into_iter().chain(left_of(timed, 0.0));
            let left_s = left.reduce(f64::min);
            let done = counted.into_iter().chain(timed).reduce(f64::max).map(|share| share.min(1.0));
            let cut = control.is_stopping() || counted.is_some_and(|done| done >= 1.0);
            let server = watch.and_then(MonitorWatch::latest_metrics);
            observer.second(&PhaseProgress {
                phase,
                elapsed_s: end_s - before_s,
                second: start.as_secs().saturating_sub(before_s as u64),
                done,
                left_s,
                so_far,
                last: &second.totals,
                errors: control.errors_so_far(),
                length_s: (!cut).then_some(end_s - begin_s),
                server,
                said: watch.map(MonitorWatch::latest_snapshots).unwrap_or_default(),
            });
        };
        let before = self.generator.collections();
        let applied = self.generator.run(name, jobs, &control, &mut on_second).inspect_err(|error| {
            tracing::error!(phase = name, %error, "a phase has failed");
        })?;
        if control.is_stopping() && !self.control.is_stopping() {
            let message = silence.describe_silence(&self.plan.target);
            tracing::error!(phase = name, reason = message, "a phase was given up");
            return Err(RunError::Unreachable { outcome: Outcome::TimedOut, message });
        }
        let collections = self.collections_after(before);
        let [totals, warm] = sums;
        if let (Some(writer), (sent, left)) = (&mut self.writer, applied.rest)
            && sent + left > 0
        {
            let message = format!("of what was queued at the end {sent} requests were sent, {left} were not");
            writer.write_event("rest", &message);
        }
        let finished = &applied.finished;
        let seconds = finished.measured_ns as f64 / 1e9;
        let elapsed_s = Some(finished.elapsed_ns.saturating_sub(job.warmup_ns) as f64 / 1e9);
        let mut client = client(job, &totals, &applied, &self.generator.target());
        client.steal_share = local_cpu.steal_share();
        let errors: BTreeMap<String, String> =
            finished.errors.iter().map(|(o, message)| (o.name().to_owned(), message.clone())).collect();
        let cut_off = !self.generator.lost().is_empty();
        let cut_short = self.control.is_stopping() || cut_off;
        let offered = offered(job, &totals, finished.measured_ns, cut_short);
        let facts = PhaseFacts { name: name.into(), seconds, elapsed_s, offered, client, errors, cut_off };
        let documents = documents_written(job, totals.count_ok());
        let bounds = (job.warmup_ns, job.warmup_ns + finished.measured_ns);
        let (silences, pauses) =
            (find_silences(&totals, bounds.0, bounds.1), find_pauses(&totals, bounds.0, bounds.1));
        let replay = applied.replayed.clone().map(replay_figures);
        let mut phase_summary = Phase {
            collections,
            documents,
            silences,
            pauses,
            replay,
            ..summarise_phase(facts, &metrics, &totals)
        };
        let mut warmup = (job.warmup_ns > 0).then(|| {
            let seconds = job.warmup_ns as f64 / 1e9;
            summarise_phase(
                PhaseFacts { name: "warmup".into(), seconds, ..PhaseFacts::default() },
                &metrics,
                &warm,
            )
        });
        let (seconds, blocks) = seconds_of.whole_seconds(&job.end, job.warmup_ns, finished.measured_ns);
        add_intervals(&mut phase_summary, &blocks);
        let watched = boundaries.end(finished, &mut phase_summary, warmup.as_mut(), self.writer.as_mut());
        if let Some(seen) = &mut phase_summary.monitor {
            seen.others = watch.zip(neighbours.as_ref()).map(|(watch, since)| watch.others(since));
        }
        if !self.generator.target().virtual_time {
            let unwatched = BTreeMap::new();
            let seen = SeenOfHosts {
                local: local_cpu,
                shaped: queues.and_then(|before| {
                    let (device, kind) =
                        Queues::read_now().held_back_since(&before, REQUEST_BYTES * totals.ended_total())?;
                    Some(format!("{device}: {kind}"))
                }),
                workers: &self.generator.seen_by_workers(),
                others: phase_summary.monitor.as_ref().and_then(|seen| seen.others.as_ref()),
                elsewhere: watched.as_ref().map_or(&unwatched, |watched| &watched.elsewhere),
                recorded: watched.as_ref().map(|phase| (&phase.recording, phase.from_ms, phase.to_ms)),
            };
            let spins = |host: PhaseHost| PhaseHost { spins: host.spins || host.local && job.spin, ..host };
            let hosts = self.hosts.iter().map(|plan| spins(seen.seen_host(plan))).collect();
            phase_summary.hosts = hosts;
        }
        if let Some(grafana) = &self.grafana {
            let epoch = applied.finished.epoch;
            let begun = epoch + Duration::from_nanos(job.warmup_ns);
            let ended = begun + Duration::from_nanos(applied.finished.measured_ns);
            phase_summary.link = Some(link(grafana, begun, ended));
            warmup.iter_mut().for_each(|phase| phase.link = Some(link(grafana, epoch, begun)));
        }
        self.take_pairs(name, &metrics, cut_off);
        self.take_workers(name, &metrics, cut_off);
        self.phases.extend(warmup.clone());
        self.phases.push(phase_summary.clone());
        for (outcome, message) in &phase_summary.errors {
            tracing::warn!(phase = name, outcome, message, "the phase had errors: the first of a kind");
        }
        tracing::info!(
            phase = name,
            seconds = phase_summary.seconds,
            arrivals = phase_summary.arrivals,
            ok = totals.count_ok(),
            failed = totals.count_failed(),
            interrupted = self.control.is_stopping(),
            "a phase has ended"
        );
        observer.end(&phase_summary);
        let observations = RunObservations {
            varied: match &job.pacing {
                Pacing::Closed { .. } => false,
                Pacing::Open { profile, .. } => !profile.is_constant(),
                Pacing::Recorded => true,
            },
            due_by_half: due_by_half(job, &seconds),
            keys: distinct_keys(job.workload.as_ref()),
            mix: metrics.iter().cloned().zip(job.workload.asked()).collect(),
            accepted_misses: (0..metrics.len())
                .filter(|metric| job.workload.accepts_misses(*metric as u16))
                .collect(),
            clock_skew_s: if self.generator.target().virtual_time { 0.0 } else { skew_s(clocks) },
            on_disk: self.generator.target().on_disk,
            counted: job.end.operations.is_some(),
            watched: self.watch.is_some(),
            silent: self.watch.as_ref().map(MonitorWatch::silent).unwrap_or_default(),
            changed: Vec::new(),
            missing: self.generator.missing(),
            busy_rate: finished.busy_rate,
            ..seconds
        };
        let finished = applied.finished;
        Ok(EndedPhase { phase: phase_summary, totals, warmup, finished, observations, blocks })
    }

    /// Reads the collections' statistics after a phase, beside those before it. A user who interrupts a run waits for no
    /// server's answers.
    fn collections_after(&self, before: CollectionFigures) -> Option<Collections> {
        let asked = (!self.control.is_stopping()).then(|| self.generator.collections());
        let both = Collections { before, after: asked.unwrap_or_default() };
        (both != Collections::default()).then_some(both)
    }

    /// Takes the share of each target in the phase that has ended.
    fn take_pairs(&mut self, name: &str, metrics: &[String], cut_off: bool) {
        for (at, (target, totals, measured_ns)) in self.generator.parts().into_iter().enumerate() {
            let seconds = measured_ns as f64 / 1e9;
            let facts = PhaseFacts { name: name.into(), seconds, cut_off, ..PhaseFacts::default() };
            let one = summarise_phase(facts, metrics, &totals);
            match self.pairs.get_mut(at) {
                Some(pair) => pair.phases.push(one),
                None => self.pairs.push(Pair { number: at + 1, target, phases: vec![one] }),
            }
        }
    }

    /// Writes the part of each worker to a file of its own: there may be many, and the summary adds them up.
    fn take_workers(&mut self, name: &str, metrics: &[String], cut_off: bool) {
        let Some(writer) = &mut self.writer else { return };
        let mut workers = Vec::new();
        self.generator.each_worker(&mut |worker, target, part| {
            let seconds = part.measured_ns as f64 / 1e9;
            let client = Client { users: part.users, ..Client::default() };
            let facts = PhaseFacts { name: name.into(), seconds, client, cut_off, ..PhaseFacts::default() };
            let phases = vec![summarise_phase(facts, metrics, &part.totals)];
            workers.push(Pair { number: worker + 1, target, phases });
        });
        writer.write_workers(&workers);
    }

    /// The summary with verdict and thresholds on the phase `measured`; written to the run directory.
    pub fn finish(&mut self, measured: &EndedPhase, pacing: &Pacing, status: Status) -> Summary {
        let think_ns = match pacing {
            Pacing::Closed { think_ns } => Some(*think_ns),
            Pacing::Open { .. } | Pacing::Recorded => None,
        };
        let evidence = Evidence {
            phase: &measured.phase,
            totals: &measured.totals,
            think_ns,
            wire: self.generator.target().wire,
            interrupted: status == Status::Interrupted,
            partial: false,
            lost: self.generator.lost(),
            asked: match self.plan.conditions.as_slice() {
                [] => self.plan.asked.iter().map(|claim| (claim.name().to_owned(), vec![*claim])).collect(),
                thresholds => thresholds.iter().map(Condition::expression_and_claims).collect(),
            },
            responses: self.plan.conditions.iter().filter_map(Condition::response_time).collect(),
            observations: RunObservations {
                changed: self.changed.clone(),
                data: self.data,
                faults: self.history.assessed.figures.clone(),
                failed_in_faults: self.history.assessed.failed,
                not_carried_out: self.history.missed.clone(),
                load_failed: load_failed(&self.phases, &measured.phase),
                ..measured.observations.clone()
            },
        };
        let mut verdict = judge_run(&evidence);
        if !measured.observations.watched {
            // Without a monitor the claim has no grade.
            verdict.grades.retain(|grade| grade.asked || grade.claim != Claim::Resources.name());
        }
        let reason = verdict.worst_reason().map_or("", |worst| worst.text.as_str());
        tracing::info!(?status, trust = verdict.trust.name(), reason, "the run has its verdict");
        let seconds = &measured.observations.series;
        let decide = |one: &Condition| one.judge_phase(&measured.phase, &measured.blocks, seconds);
        let thresholds = self.plan.conditions.iter().map(decide).collect();
        self.write_summary(verdict, thresholds, status)
    }

    fn write_summary(&mut self, verdict: Verdict, thresholds: Vec<Threshold>, status: Status) -> Summary {
        let last = self.phases.iter().rev().find_map(|phase| phase.collections.as_ref());
        let collections = last.map(|stats| stats.after.clone()).unwrap_or_default();
        let summary = Summary {
            version: VERSION,
            dyno: env!("CARGO_PKG_VERSION").into(),
            status,
            target: self.plan.target.clone(),
            database: self.generator.target().database,
            started: self.plan.started.clone(),
            title: self.plan.title.clone(),
            verdict,
            thresholds,
            strict: self.plan.strict,
            phases: self.phases.clone(),
            faults: self.history.assessed.figures.clone(),
            pairs: self.pairs.clone(),
            collections,
        };
        if let Some(writer) = &mut self.writer {
            writer.finish(&summary, status);
        }
        summary
    }
}

/// The dashboard from one time to another: Grafana takes milliseconds since 1970.
fn link(dashboard: &str, from: SystemTime, to: SystemTime) -> String {
    let ms = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let sign = if dashboard.contains('?') { '&' } else { '?' };
    format!("{}{sign}from={}&to={}", dashboard.trim_end_matches('/'), ms(from), ms(to))
}

/// No request takes less on its way, bytes: the heads of its packet are as long.
const REQUEST_BYTES: u64 = 40;

/// Returns the plan of a phase for the run directory.
fn planned(job: &Job, threads: Option<usize>) -> Planned {
    Planned {
        seconds: job.end.duration_ns.map(|ns| ns as f64 / 1e9),
        warmup_s: job.warmup_ns as f64 / 1e9,
        operations: job.end.operations,
        interval_s: job.interval_ns as f64 / 1e9,
        threads,
    }
}

/// Documents that `ok` successful operations of a load have written, where an operation writes several: in proportion, where
/// some have failed.
pub fn documents_written(job: &Job, ok: u64) -> Option<u64> {
    let (all, operations) = (job.workload.documents()?, job.end.operations?);
    Some((u128::from(all) * u128::from(ok) / u128::from(operations.max(1))) as u64)
}

/// The share of a job's time that is over `elapsed_s` seconds after its epoch, where it has a duration.
fn share_timed(job: &Job, elapsed_s: f64) -> Option<f64> {
    job.end.duration_ns.map(|ns| elapsed_s / ((job.warmup_ns + ns) as f64 / 1e9))
}

/// The share of a job's operations that have arrived, where it has so many.
fn share_counted(job: &Job, so_far: &Totals) -> Option<f64> {
    job.end.operations.map(|n| so_far.arrivals as f64 / n.max(1) as f64)
}

/// Arrivals that a rate which changes asks for in interval `number`, as far as that lies in the warm-up or in the measured phase.
fn due_in_interval(job: &Job, number: u64, warmup: bool) -> Option<f64> {
    let Pacing::Open { profile, .. } = &job.pacing else { return None };
    let end_ns = job.end.duration_ns.map_or(u64::MAX, |ns| job.warmup_ns.saturating_add(ns));
    let (begin_ns, end_ns) = if warmup { (0, job.warmup_ns) } else { (job.warmup_ns, end_ns) };
    let (from_ns, until_ns) = (number * job.interval_ns, (number + 1) * job.interval_ns);
    let (from_ns, until_ns) = (from_ns.max(begin_ns), until_ns.min(end_ns));
    let due = || profile.count_at(until_ns) - profile.count_at(from_ns);
    (!profile.is_constant()).then(|| if from_ns < until_ns { due() } else { 0.0 })
}

/// Arrivals that a rate which changes asks for in the first half of the phase's whole seconds, as `seen`.
fn due_by_half(job: &Job, seen: &RunObservations) -> Option<f64> {
    let Pacing::Open { profile, .. } = &job.pacing else { return None };
    let seconds = seen.partial_seconds[0].1 + (seen.series.len() / 2) as f64;
    let due = || profile.count_at(job.warmup_ns + (seconds * 1e9) as u64) - profile.count_at(job.warmup_ns);
    (!profile.is_constant()).then(due)
}

/// Arrivals that the schedule held for the measured phase of `measured_ns`, per second. Of a phase that was cut short: what the
/// schedule asked for until then, because not all of it was taken; if that was in the warm-up, the rate that the phase was to
/// begin with.
fn offered(job: &Job, totals: &Totals, measured_ns: u64, cut_short: bool) -> Option<f64> {
    let profile = match &job.pacing {
        Pacing::Open { profile, .. } => profile,
        Pacing::Recorded if measured_ns == 0 || !job.workload.has_recorded_times() => return None,
        Pacing::Recorded => return Some(totals.arrivals as f64 * 1e9 / measured_ns as f64),
        Pacing::Closed { .. } => return None,
    };
    if measured_ns == 0 {
        return Some(profile.rate_at(job.warmup_ns));
    }
    let due = match cut_short {
        true => profile.count_at(job.warmup_ns + measured_ns) - profile.count_at(job.warmup_ns),
        false => totals.arrivals as f64,
    };
    Some(due * 1e9 / measured_ns as f64)
}

fn client(job: &Job, totals: &Totals, applied: &Applied, target_info: &TargetInfo) -> Client {
    let batches = target_info.batches && job.workload.only_inserts();
    let threads = applied.threads.unwrap_or_else(|| threads(job, target_info));
    let measured_ns = applied.finished.elapsed_ns.saturating_sub(job.warmup_ns) as f64;
    let busy = totals.busy_ns as f64 / (measured_ns * threads as f64).max(1.0);
    let (ended, spent_us) = (totals.ended_total(), (applied.user_s + applied.system_s) * 1e6);
    Client {
        driver: target_info.driver.clone(),
        threads,
        users: job.users,
        // Of users that begin later it is not known how many were there on average.
        connected: connected(job.users, totals.users_ns).filter(|_| job.late.is_none()),
        pipeline: job.pipeline,
        think_us: match &job.pacing {
            Pacing::Closed { think_ns } => Some(*think_ns as f64 / 1e3),
            Pacing::Open { .. } | Pacing::Recorded => None,
        },
        batch: if batches { job.batch } else { 1 },
        user_cpu_s: applied.user_s,
        system_cpu_s: applied.system_s,
        cpu_us_per_op: if ended == 0 { 0.0 } else { spent_us / ended as f64 },
        busy_share: target_info.wire.then_some(busy.min(1.0)),
        peak_resident_bytes: applied.peak_resident_bytes,
        pinned: applied.finished.pinned,
        steal_share: 0.0,
    }
}

/// Figures of a replay for the summary.
fn replay_figures(found: ReplayedReplies) -> ReplayFigures {
    let example = |[command, then, now]: [String; 3]| ReplayExample { command, then, now };
    let latency = |(name, times): (String, BTreeMap<u64, u64>)| {
        let count: u64 = times.values().sum();
        let at = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).max(1);
            let mut sum = 0;
            let found = times.iter().find(|(_, own)| {
                sum += **own;
                sum >= rank
            });
            found.map_or(0.0, |(ns, _)| *ns as f64 / 1e3)
        };
        (name, ThenLatency { count, p50_us: at(0.5), p99_us: at(0.99) })
    };
    ReplayFigures {
        compared: found.compared,
        missing: found.missing,
        error: found.error,
        kind: found.kind,
        size: found.size,
        connections: found.connections,
        not_compared: found.not_compared,
        errors_as_then: found.errors_as_then,
        examples: found.examples.into_iter().map(example).collect(),
        cut_waits: found.cut_waits,
        pace: found.pace,
        point: found.point,
        then: found.then.into_iter().map(latency).collect(),
        against: found.against.map(|found| AgainstFigures {
            compared: found.compared,
            missing: found.missing,
            error: found.error,
            kind: found.kind,
            size: found.size,
            not_compared: found.not_compared,
            examples: found.examples.into_iter().map(example).collect(),
        }),
        cross_slot: (!found.crossing.is_empty()).then(|| {
            let count = found.crossing.values().sum();
            let share = count as f64 / found.recorded.max(1) as f64;
            CrossSlotFigures { count, share, commands: found.crossing }
        }),
        left_out: found.left_out,
        unread: found.failure,
    }
}

/// Mean number of users with a connection, by the time of all and of these, nanoseconds; `None` where it was not counted.
fn connected(users: usize, [users_ns, connected_ns]: [u64; 2]) -> Option<f64> {
    (users_ns > 0).then(|| users as f64 * connected_ns as f64 / users_ns as f64)
}

/// By how much the wall clock has gone further than the steady one since both were read.
fn skew_s((wall, steady): (SystemTime, Instant)) -> f64 {
    let gone = match SystemTime::now().duration_since(wall) {
        Ok(gone) => gone.as_secs_f64(),
        Err(back) => -back.duration().as_secs_f64(),
    };
    gone - steady.elapsed().as_secs_f64()
}

/// Keeps an interval's samples as long as there are not too many.
fn keep(samples: &mut Vec<RawSample>, totals: &Totals, most: usize) {
    let room = most.saturating_sub(samples.len()).min(totals.samples.len());
    samples.extend_from_slice(&totals.samples[..room]);
    debug_assert!(room == 0 || samples.len() <= most, "memory is bounded by the samples that are kept");
}
