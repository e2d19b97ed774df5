//! The controller's end: workers are started, told what to do, begin together, and their seconds are added up.

use crate::protocol::frame::{Frame, write_frame};
use crate::protocol::silence::{LEASE, NOTED, Waiting};
use crate::protocol::worker::{FromWorker, PhaseDone, Stage, ToWorker, WorkerHost};
use crate::remote::worker::abort_reason::AbortReason;
use crate::remote::worker::event::WorkerEvent;
use crate::remote::worker::member::{OwnPart, PoolMember};
use crate::remote::worker::pool_error::{WorkerPoolError, lost_in_words};
use crate::remote::worker::serve::unix_ns;
use crate::remote::worker::spawn::{WorkerSpec, group_specs, spawn};
use dyno_databases::registry;
use dyno_db::target::TargetInfo;
use dyno_engine::{Control, Finished, Job, RunError, Second};
use dyno_record::Totals;
use dyno_rundir::schema::CollectionFigures;
use dyno_session::collection_stats::{WatchedCollections, WorkerPart};
use dyno_session::hosts::SeenByWorker;
use dyno_session::load_generator::{Applied, LoadGenerator, merge_replayed};
use dyno_session::work::Prepared;
use dyno_types::Outcome;
use dyno_types::sync::held;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Time that a worker may take to open its target.
pub(super) const READY: Duration = Duration::from_secs(60);
/// Time that it may take to connect its users.
const CONNECT: Duration = Duration::from_secs(120);
/// Time that it may take to make collections and indexes and to look for records.
const PREPARE: Duration = Duration::from_secs(600);
/// Time between two signs of life.
const ALIVE: Duration = Duration::from_secs(1);
/// From the last worker's connecting to the common beginning.
const AHEAD_NS: u64 = 20_000_000;

/// Workers that are ready.
pub struct WorkerPool {
    pub(super) members: Vec<PoolMember>,
    pub(super) told: Mutex<Receiver<(usize, WorkerEvent)>>,
    ending: Arc<AtomicBool>,
    target_info: TargetInfo,
    /// Facts about the target, as the first worker found them.
    pub facts: BTreeMap<String, String>,
    /// Targets without secrets, by instance.
    pub shown: Vec<String>,
    prepared: Mutex<Vec<Prepared>>,
    pub(super) parts: Mutex<Vec<OwnPart>>,
    /// Sums of the last phase's measured seconds by target, where there are several.
    pub(super) instances: Mutex<Vec<Totals>>,
    pub(super) lost: Mutex<Vec<String>>,
    pub(super) cut_short: AbortReason,
    /// Time that a worker may say nothing in a phase.
    pub(super) lease: Duration,
    /// Targets whose collections are asked for before and after every phase.
    pub collection_stats: WatchedCollections,
    /// Numbers of the workers of each target that take part in loading and in measuring.
    pub taking_part: [Range<usize>; 2],
}

impl WorkerPool {
    /// Starts the workers and waits until each has opened its target.
    pub fn start(specs: Vec<WorkerSpec>, control: &Control) -> Result<WorkerPool, WorkerPoolError> {
        let (tell, told) = channel();
        let mut members = BTreeMap::new();
        for group in group_specs(specs) {
            members.extend(spawn(group, &tell)?);
        }
        let members: Vec<PoolMember> = members.into_values().collect();
        let instances = members.iter().map(|member| member.instance + 1).max().unwrap_or(0);
        let mut pool = WorkerPool {
            members,
            told: Mutex::new(told),
            ending: Arc::new(AtomicBool::new(false)),
            target_info: TargetInfo::default(),
            facts: BTreeMap::new(),
            shown: vec![String::new(); instances],
            prepared: Mutex::new(vec![Prepared::default(); instances]),
            parts: Mutex::new(Vec::new()),
            instances: Mutex::new(Vec::new()),
            lost: Mutex::new(Vec::new()),
            cut_short: AbortReason::default(),
            lease: LEASE,
            collection_stats: WatchedCollections::default(),
            taking_part: [0..usize::MAX, 0..usize::MAX],
        };
        pool.keep_alive()?;
        let all: Vec<usize> = (0..pool.members.len()).collect();
        for (worker, word) in
            pool.answers(control, &all, READY, "open its target", |w| matches!(w, FromWorker::Ready { .. }))?
        {
            let FromWorker::Ready { target_info, facts, shown, cores, host } = word else { continue };
            tracing::info!(worker = worker + 1, uri = shown, ?cores, ?host, "a worker has opened its target");
            // A worker says it once.
            let _ = pool.members[worker].on.set((host, cores));
            pool.shown[pool.members[worker].instance] = shown;
            if worker == 0 {
                (pool.target_info, pool.facts) = (target_info, facts);
            }
        }
        Ok(pool)
    }

    /// A sign of life each second, so that workers whose controller is gone stop.
    fn keep_alive(&self) -> Result<(), WorkerPoolError> {
        let input = |(at, member): (usize, &PoolMember)| match &member.group {
            Some(group) => (member.party == at && !group.is_kept_alive()).then(|| group.input.clone()),
            None => (!held(&member.running).is_kept_alive()).then(|| member.input.clone()),
        };
        let inputs: Vec<_> = self.members.iter().enumerate().filter_map(input).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        let ending = self.ending.clone();
        let alive = move || {
            while !ending.load(Ordering::Relaxed) {
                for input in &inputs {
                    if let Some(pipe) = held(input).as_mut() {
                        // A worker that is gone shows at the other end.
                        let _ = write_frame(pipe, &Frame::Message(&ToWorker::Ping));
                    }
                }
                std::thread::sleep(ALIVE);
            }
        };
        let started = std::thread::Builder::new().name("alive".into()).spawn(alive);
        started.map(drop).map_err(|e| WorkerPoolError::Worker(e.to_string()))
    }

    /// Lets the first worker of every target make collections and look for records; returns what each has found.
    pub fn prepare_targets(&self, control: &Control) -> Result<Vec<Prepared>, WorkerPoolError> {
        let firsts: Vec<usize> =
            self.members.iter().enumerate().filter(|(_, m)| m.number == 0).map(|(at, _)| at).collect();
        firsts.iter().for_each(|at| self.say(*at, &ToWorker::Prepare));
        let mut found = held(&self.prepared).clone();
        for (worker, word) in self.answers(control, &firsts, PREPARE, "prepare its target", |w| {
            matches!(w, FromWorker::Prepared(_))
        })? {
            if let FromWorker::Prepared(prepared) = word {
                found[self.members[worker].instance] = prepared;
            }
        }
        *held(&self.prepared) = found.clone();
        Ok(found)
    }

    /// Process numbers of the workers of this host.
    pub fn worker_pids(&self) -> Vec<u32> {
        let own = self.members.iter().filter(|member| member.transport.is_none());
        own.map(|member| member.pid.load(Ordering::Relaxed)).collect()
    }

    /// Process number of every worker, and the other host that it runs on.
    pub fn worker_places(&self) -> Vec<(u32, Option<String>)> {
        let host =
            |member: &PoolMember| member.transport.as_ref().map(|transport| transport.name().to_owned());
        self.members.iter().map(|member| (member.pid.load(Ordering::Relaxed), host(member))).collect()
    }

    /// Where each worker that takes part in a phase runs: its number from 0, the other host's name (none: this host), the host as
    /// it has told of it, and the cores of its load threads.
    pub fn on_hosts(&self, stage: Stage) -> Vec<(usize, Option<String>, WorkerHost, Vec<usize>)> {
        let on = |at: usize| {
            let member = &self.members[at];
            let (host, cores) = member.on.get().cloned().unwrap_or_default();
            (at, member.transport.as_ref().map(|transport| transport.name().to_owned()), host, cores)
        };
        self.active(stage).into_iter().map(on).collect()
    }

    /// A target without secrets.
    fn name_target(&self, instance: usize) -> String {
        self.shown[instance].clone()
    }

    /// Workers that were lost, in words: each reason once.
    pub fn lost_workers(&self) -> Vec<String> {
        lost_in_words(&held(&self.lost))
    }

    /// Ends the phase under way, from another thread.
    pub fn cut_short(&self) -> AbortReason {
        self.cut_short.clone()
    }

    pub(super) fn say(&self, worker: usize, message: &ToWorker) {
        if let Some(pipe) = held(&self.members[worker].input).as_mut() {
            // A worker that is gone shows at the other end.
            let _ = write_frame(pipe, &Frame::Message(message));
        }
    }

    pub(super) fn say_all(&self, message: &ToWorker) {
        (0..self.members.len()).for_each(|worker| self.say(worker, message));
    }

    /// One answer of each of `workers` that `is` it.
    pub(super) fn answers(
        &self,
        control: &Control,
        workers: &[usize],
        patience: Duration,
        what: &str,
        is: impl Fn(&FromWorker) -> bool,
    ) -> Result<Vec<(usize, FromWorker)>, WorkerPoolError> {
        let mut waiting = Waiting::starting(patience);
        let told = held(&self.told);
        let mut answers: Vec<(usize, FromWorker)> = Vec::new();
        while answers.len() < workers.len() {
            if control.is_stopping() {
                return Err(WorkerPoolError::Worker("interrupted".into()));
            }
            let left = waiting.left();
            match told.recv_timeout(left.min(Duration::from_millis(50))) {
                Ok((worker, WorkerEvent::Message(word))) if is(&word) => answers.push((worker, word)),
                Ok((worker, WorkerEvent::Message(FromWorker::Hello { pid, dyno, .. }))) => {
                    tracing::debug!(worker = worker + 1, pid, dyno, "a worker says hello");
                    self.members[worker].pid.store(pid, Ordering::Relaxed);
                }
                Ok((worker, WorkerEvent::Message(FromWorker::Failed { unreachable, cause }))) => {
                    return Err(self.failed(worker, unreachable, cause));
                }
                Ok((worker, WorkerEvent::Lost(message))) => {
                    return Err(WorkerPoolError::Worker(self.ending_of(worker, &message)));
                }
                Ok(_) => {}
                Err(_) if !left.is_zero() => {}
                Err(_) => {
                    let text = format!("a worker did not {what} within {} s", patience.as_secs());
                    return Err(WorkerPoolError::Worker(text));
                }
            }
        }
        Ok(answers)
    }

    pub(super) fn failed(&self, worker: usize, unreachable: bool, message: String) -> WorkerPoolError {
        let message = match self.members.len() {
            1 => message,
            _ => format!("{}: {message}", self.name(worker)),
        };
        tracing::error!(worker = worker + 1, unreachable, reason = message, "a worker has failed");
        if unreachable { WorkerPoolError::Unreachable(message) } else { WorkerPoolError::Refused(message) }
    }

    /// Returns how a worker that is gone has ended.
    pub(super) fn ending_of(&self, worker: usize, message: &str) -> String {
        // The worker's pipe closes a moment before it can be waited for.
        let end = Instant::now() + Duration::from_millis(500);
        let member = &self.members[worker];
        let mut running = held(&member.running);
        loop {
            let ended = running.end_status();
            if ended.is_none() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            let name = self.name(worker);
            let lost = match (&member.transport, ended) {
                (Some(transport), ended) => {
                    let ended = ended.as_deref().unwrap_or(message);
                    format!("{name} was lost: {}", transport.lost(&member.log, Some(ended)))
                }
                (None, Some(status)) => format!("{name} was lost: {message} ({status})"),
                (None, None) => format!("{name} was lost: {message}"),
            };
            tracing::error!(worker = worker + 1, reason = lost, "a worker was lost");
            return lost;
        }
    }

    pub(super) fn name(&self, worker: usize) -> String {
        let member = &self.members[worker];
        let on =
            member.transport.as_ref().map_or(String::new(), |transport| format!(" on {}", transport.name()));
        format!("worker {} (process {}{on})", worker + 1, member.pid.load(Ordering::Relaxed))
    }

    /// Workers that take part in a stage.
    fn active(&self, stage: Stage) -> Vec<usize> {
        let numbers = &self.taking_part[usize::from(stage == Stage::Measure)];
        (0..self.members.len()).filter(|at| numbers.contains(&self.members[*at].number)).collect()
    }

    /// Connects all who take part and lets them begin at the same instant. True if they have begun.
    fn begin(&self, stage: Stage, active: &[usize], control: &Control) -> Result<bool, WorkerPoolError> {
        // A worker that takes no part in this phase has begun another one.
        self.members.iter().for_each(|member| {
            member.began_ns.store(0, Ordering::Relaxed);
            *held(&member.host_cpu) = None;
            member.unheard_ns.store(0, Ordering::Relaxed);
        });
        let widest_ns = self.ask_clocks(control)?;
        tracing::info!(phase = stage.name(), workers = active.len(), "workers connect their users");
        let asked = Instant::now();
        let prepared = held(&self.prepared).clone();
        for worker in active {
            let prepared = prepared[self.members[*worker].instance].clone();
            self.say(*worker, &ToWorker::Start { stage, prepared });
        }
        let mut waiting = Waiting::starting(CONNECT);
        let mut connected = 0;
        while connected < active.len() {
            let told = held(&self.told).recv_timeout(Duration::from_millis(50));
            match told {
                Ok((worker, WorkerEvent::Message(FromWorker::Connected))) => {
                    tracing::debug!(
                        worker = worker + 1,
                        after_ms = asked.elapsed().as_millis() as u64,
                        "a worker has connected"
                    );
                    connected += 1;
                }
                Ok((worker, WorkerEvent::Message(FromWorker::Failed { unreachable, cause }))) => {
                    self.say_all(&ToWorker::Abort);
                    return Err(self.failed(worker, unreachable, cause));
                }
                Ok((worker, WorkerEvent::Lost(message))) => {
                    self.say_all(&ToWorker::Abort);
                    return Err(WorkerPoolError::Worker(self.ending_of(worker, &message)));
                }
                _ if control.is_stopping() => {
                    self.say_all(&ToWorker::Abort);
                    return Ok(false);
                }
                _ if waiting.left().is_zero() => {
                    self.say_all(&ToWorker::Abort);
                    let text = format!("a worker did not connect its users within {} s", CONNECT.as_secs());
                    return Err(WorkerPoolError::Unreachable(text));
                }
                _ => {}
            }
        }
        // The word must be everywhere before the time comes: ten ways to the farthest worker are enough.
        let at_ns = unix_ns() + AHEAD_NS + 20 * widest_ns;
        for worker in active {
            let at_ns = at_ns.saturating_add_signed(held(&self.members[*worker].clock).ns);
            self.say(*worker, &ToWorker::Begin { at_ns });
        }
        tracing::info!(phase = stage.name(), at_ns, clocks_within_ns = widest_ns, "workers begin together");
        control.announce_begin(UNIX_EPOCH + Duration::from_nanos(at_ns));
        Ok(true)
    }
}

impl LoadGenerator for WorkerPool {
    fn target(&self) -> TargetInfo {
        self.target_info.clone()
    }

    fn threads(&self, _: &Job) -> Option<usize> {
        None
    }

    fn run(
        &self,
        phase: &str,
        _jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError> {
        let stage = if phase == Stage::Load.name() { Stage::Load } else { Stage::Measure };
        let active = self.active(stage);
        if !self.begin(stage, &active, control)? {
            let message = "interrupted while connecting".into();
            return Err(RunError::Unreachable { outcome: Outcome::Aborted, message });
        }
        let done = self.gather(&active, control, on_second)?;
        let there: Vec<&PhaseDone> = done.iter().flatten().collect();
        let Some(first) = there.first() else {
            return Err(WorkerPoolError::Worker(self.lost_workers().join("; ")).into());
        };
        let mut errors: Vec<(Outcome, String)> = Vec::new();
        for (name, message) in there.iter().flat_map(|done| &done.errors) {
            if let Some(outcome) = Outcome::from_name(name)
                && errors.iter().all(|(known, _)| *known != outcome)
            {
                errors.push((outcome, message.clone()));
            }
        }
        let finished = Finished {
            errors,
            epoch: UNIX_EPOCH
                + Duration::from_nanos(there.iter().map(|d| d.epoch_ns).min().unwrap_or(first.epoch_ns)),
            elapsed_ns: there.iter().map(|d| d.elapsed_ns).max().unwrap_or(0),
            measured_ns: there.iter().map(|d| d.measured_ns).max().unwrap_or(0),
            busy_rate: there.iter().map(|d| d.busy_rate).sum(),
            connecting_ns: there.iter().map(|d| d.connecting_ns).max().unwrap_or(0),
            pinned: there.iter().all(|d| d.pinned),
        };
        Ok(Applied {
            finished,
            user_s: there.iter().map(|d| d.user_s).sum(),
            system_s: there.iter().map(|d| d.system_s).sum(),
            peak_resident_bytes: there.iter().map(|d| d.peak_resident_bytes).sum(),
            threads: Some(there.iter().map(|d| d.threads).sum()),
            replayed: merge_replayed(there.iter().filter_map(|d| d.replayed.as_deref().cloned())),
            rest: there.iter().fold((0, 0), |(sent, left), d| (sent + d.rest.0, left + d.rest.1)),
        })
    }

    fn parts(&self) -> Vec<(String, Totals, u64)> {
        if self.shown.len() < 2 {
            return Vec::new();
        }
        let parts = held(&self.parts);
        let named = |(instance, totals): (usize, &Totals)| {
            let own = parts.iter().filter(|own| self.members[own.worker].instance == instance);
            let measured_ns = own.map(|own| own.measured_ns).max().unwrap_or(0);
            (self.name_target(instance), totals.clone(), measured_ns)
        };
        held(&self.instances).iter().enumerate().map(named).collect()
    }

    fn each_worker(&self, take: &mut dyn FnMut(usize, String, WorkerPart)) {
        for own in held(&self.parts).iter() {
            take(own.worker, self.name_target(self.members[own.worker].instance), own.open());
        }
    }

    fn collections(&self) -> CollectionFigures {
        self.collection_stats.read_collections()
    }

    fn seen_by_workers(&self) -> Vec<SeenByWorker> {
        let begun = self.begun();
        let first = begun.iter().flatten().min().copied();
        let seen = |(member, begun): (&PoolMember, &Option<u64>)| SeenByWorker {
            late_s: begun
                .zip(first)
                .filter(|_| self.members.len() > 1)
                .map(|(own, first)| (own - first) as f64 / 1e9),
            busy_and_steal: held(&member.host_cpu).map(|cpu| (cpu.busy, cpu.steal)),
            unheard_s: Some(Duration::from_nanos(member.unheard_ns.load(Ordering::Relaxed)))
                .filter(|unheard| *unheard > NOTED)
                .map(|unheard| unheard.as_secs_f64()),
        };
        self.members.iter().zip(&begun).map(seen).collect()
    }

    fn missing(&self) -> Option<String> {
        registry::describe_missing(&self.facts)
    }

    fn lost(&self) -> Vec<String> {
        WorkerPool::lost_workers(self)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for member in &self.members {
            if let Some(mut pipe) = held(&member.input).take() {
                // Closing the pipe says the same.
                let _ = write_frame(&mut pipe, &Frame::Message(&ToWorker::Bye));
            }
        }
        let end = Instant::now() + Duration::from_secs(5);
        for member in &self.members {
            held(&member.running).end(end);
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
