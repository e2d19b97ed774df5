//! Faults that the file asks for: done at their times of the measured phase, undone at their ends, and at the end in any case.
//!
//! ```text
//! schedule -> begins and ends on one time axis -> a thread beside the load: wait, do, note -> over, or Ctrl-C: undo all
//! ```

use crate::clock::PhaseTimes;
use crate::experiment_run::ExperimentRun;
use crate::fault_targets::{FaultError, FaultTargets, FaultTrace, FaultTraces, Injection};
use crate::proxy::{Proxy, Treatment};
use dyno_analysis::faults::InjectedFault;
use dyno_config::experiment::Experiment;
use dyno_config::experiment::fault::{Fault, FaultKind, LEAST_SHAPED_BYTES_PER_S, On};
use dyno_config::experiment::faults::{Planned as PlannedFault, schedule_faults};
use dyno_config::server::Topology;
use dyno_engine::Control;
use dyno_hosts::remote::remote_agent::RemoteAgent;
use dyno_hosts::servers::server::faults::{FaultOutcome, ServerFault, WorkerFault, inject_into_worker};
use dyno_localhost::machine::Machine;
use dyno_localhost::shaping::{can_narrow, can_slow};
use dyno_localhost::undo;
use dyno_session::session::RunSession;
use dyno_types::{RefusalCode, Refused};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Interval at which the wish to end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Kinds of faults that a proxy between workers and server does: a partition, and what this kernel does not do. On other
/// hosts, and where clients learn the addresses of members by themselves, the kernel does all of them.
pub(super) fn by_proxies(spec: &Experiment, machine: &Machine) -> Vec<FaultKind> {
    let Some(server) = spec.server.as_ref().filter(|server| server.topology == Topology::Single) else {
        return Vec::new();
    };
    if !spec.ssh.is_nothing() {
        return Vec::new();
    }
    // One that listens beyond the loopback may have several devices.
    let abroad = server.address.is_some_and(|address| !address.is_loopback());
    let of = |kind: FaultKind| spec.faults.iter().filter(move |fault| fault.kind == kind);
    let slow = of(FaultKind::Bandwidth)
        .any(|fault| fault.bytes_per_s.as_ref().is_some_and(|bytes| bytes.0 < LEAST_SHAPED_BYTES_PER_S));
    let by_proxy = |kind: &FaultKind| {
        of(*kind).next().is_some()
            && match kind {
                FaultKind::Bandwidth => slow || abroad || !can_narrow(machine),
                FaultKind::Delay => abroad || !can_slow(machine),
                _ => true,
            }
    };
    [FaultKind::Partition, FaultKind::Bandwidth, FaultKind::Delay].into_iter().filter(by_proxy).collect()
}

/// Returns whether workers have faults.
pub(super) fn on_workers(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| matches!(fault.on, On::Worker(_)))
}

/// Targets that faults can be injected into.
pub(super) struct FaultReach<'a> {
    pub servers: FaultTargets<'a>,
    /// One for each instance, where there are faults that they do.
    pub proxies: &'a [Proxy],
    /// The kinds that they do.
    pub by_proxies: &'a [FaultKind],
    /// Process numbers, and the other hosts that they are on.
    pub workers: Vec<(u32, Option<String>)>,
    /// Agents on hosts that have workers and no servers.
    pub beside: &'a mut [RemoteAgent],
    /// A folder of the run.
    pub logs: PathBuf,
}

impl FaultReach<'_> {
    /// Returns whether there is whom they are on; on other hosts that is known no sooner.
    fn check(&self, faults: &[Fault]) -> Result<(), Refused> {
        for (at, fault) in faults.iter().enumerate() {
            let (number, there) = match fault.on {
                On::Server => continue,
                On::One(number) => (number, self.servers.count()),
                On::Worker(number) => (number, self.workers.len()),
            };
            if number as usize > there {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    format!("faults.{at}.on"),
                    format!("faults.{at}.on: {}: there are {there}", fault.on),
                ));
            }
        }
        Ok(())
    }
}

/// Outcome of all faults of a phase.
#[derive(Default)]
pub(super) struct FaultLog {
    events: Vec<(SystemTime, &'static str, String)>,
    happened: Vec<InjectedFault>,
    missed: Vec<String>,
    failure: Option<String>,
}

impl FaultLog {
    /// Writes events, has the session judge; an error if one could not be done or undone.
    pub fn note(self, session: &mut RunSession<'_>) -> Result<(), FaultError> {
        if let Some(writer) = session.run_writer() {
            self.events.iter().for_each(|(at, kind, message)| writer.event_at(*at, kind, message));
        }
        session.judge_faults(&self.happened, self.missed);
        self.failure.map_or(Ok(()), |message| Err(FaultError::Noted(message)))
    }
}

/// Tells that the phase is over, also where it ended by a panic.
struct PhaseEndGuard<'a>(&'a PhaseTimes);

impl Drop for PhaseEndGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the phase with its faults beside it.
pub(super) fn run_with_faults<T>(
    run: &ExperimentRun<'_>,
    spec: &Experiment,
    reach: FaultReach<'_>,
    clock: &PhaseTimes,
    phase: impl FnOnce() -> T,
) -> Result<(T, FaultLog), FaultError> {
    if spec.faults.is_empty() {
        return Ok((phase(), FaultLog::default()));
    }
    reach.check(&spec.faults)?;
    let mut hand = FaultInjector {
        faults: &spec.faults,
        planned: schedule_faults(spec, run.point.repetition),
        journal: undo::Journal::open(&reach.logs.join("faults"), run.machine)?,
        reach,
        machine: run.machine,
        control: &run.control,
        active: Vec::new(),
        done: FaultLog::default(),
    };
    std::thread::scope(|scope| {
        let hand = scope.spawn(move || {
            hand.follow(clock);
            std::mem::take(&mut hand.done)
        });
        let over = PhaseEndGuard(clock);
        let made = phase();
        drop(over);
        let done = hand.join().map_err(|_| FaultError::Panicked)?;
        Ok((made, done))
    })
}

/// A fault under way.
struct Active {
    planned: PlannedFault,
    /// Place among those that happened.
    at: usize,
    /// Traces in journals.
    noted: FaultTraces,
}

/// Injects the faults of a run, each at its time.
struct FaultInjector<'a> {
    faults: &'a [Fault],
    planned: Vec<PlannedFault>,
    reach: FaultReach<'a>,
    /// Of processes that are not the server's.
    journal: undo::Journal,
    machine: &'a Machine,
    control: &'a Control,
    active: Vec<Active>,
    done: FaultLog,
}

impl FaultInjector<'_> {
    fn follow(&mut self, clock: &PhaseTimes) {
        let planned = std::mem::take(&mut self.planned);
        let mut left = planned.into_iter().peekable();
        let Some((epoch, warmup)) = clock.epoch() else { return self.miss(left) };
        let begun = epoch + warmup;
        let at = |ns: u64| begun + Duration::from_nanos(ns);
        loop {
            let end = self.active.iter().filter_map(|one| one.planned.end_ns).min();
            let begin = left.peek().map(|next| next.begin_ns);
            // A fault that ends goes first.
            let next = match (end, begin) {
                (None, None) => break,
                (end, begin) => end.unwrap_or(u64::MAX).min(begin.unwrap_or(u64::MAX)),
            };
            if self.waited(clock, at(next)) {
                break;
            }
            if end == Some(next) {
                let which = self.active.iter().position(|one| one.planned.end_ns == end);
                let Some(one) = which.map(|which| self.active.remove(which)) else { break };
                self.end(one, begun);
            } else if let Some(planned) = left.next() {
                self.begin(planned, begun);
            }
        }
        // Ctrl-C ends what is under way at once; what is killed stays away until the phase is over.
        while let Some(one) = self.active.pop() {
            if one.planned.end_ns.is_some() {
                self.end(one, begun);
            }
        }
        self.miss(left);
    }

    /// Waits until then; whether the phase is over before.
    fn waited(&self, clock: &PhaseTimes, until: SystemTime) -> bool {
        loop {
            if clock.wait(Some(until), LOOK) || self.control.is_stopping() {
                return true;
            }
            if SystemTime::now() >= until {
                return false;
            }
        }
    }

    fn miss(&mut self, left: impl Iterator<Item = PlannedFault>) {
        for planned in left {
            let message = format!("{}: the phase ended before its time", self.named(&planned));
            tracing::warn!(fault = message, "a fault did not come");
            self.done.events.push((SystemTime::now(), "fault_failed", message.clone()));
            self.done.missed.push(message);
        }
    }

    /// As events name it.
    fn named(&self, planned: &PlannedFault) -> String {
        let fault = &self.faults[planned.fault];
        let which =
            if fault.times > 1 { format!(" ({} of {})", planned.time, fault.times) } else { String::new() };
        format!("{}{which} {}", planned.fault + 1, fault.describe_fault())
    }

    fn begin(&mut self, planned: PlannedFault, begun: SystemTime) {
        let (message, fault) = (self.named(&planned), &self.faults[planned.fault]);
        let at = SystemTime::now();
        let outcome = self.apply(fault);
        match &outcome.failed {
            None => tracing::info!(fault = message, means = outcome.means, "a fault begins"),
            Some(reason) => tracing::warn!(fault = message, reason, "a fault could not be done"),
        }
        match outcome.failed {
            None => {
                let means = outcome.means;
                self.done.events.push((at, "fault_begin", format!("{message}: {means}")));
                self.done.happened.push(InjectedFault {
                    number: planned.fault + 1,
                    fault: fault.describe_fault(),
                    means,
                    begin_s: since(begun, at),
                    end_s: None,
                });
                self.active.push(Active { planned, at: self.done.happened.len() - 1, noted: outcome.noted });
            }
            Some(why) => {
                if outcome.lacking {
                    let message = format!("{message}: {why}");
                    self.done.events.push((at, "fault_failed", message.clone()));
                    self.done.missed.push(message);
                } else {
                    self.fail(format!("{message}: {why}"));
                }
                // Some of several may have been done: they are undone, and nothing else is touched.
                if let Err(why) = self.revert(fault, &outcome.noted) {
                    self.fail(format!("{message}: {why}"));
                }
            }
        }
    }

    fn end(&mut self, one: Active, begun: SystemTime) {
        let (message, fault) = (self.named(&one.planned), &self.faults[one.planned.fault]);
        // A run that is to end needs no server.
        let needless = fault.kind == FaultKind::Restart && self.control.is_stopping();
        let reverted = if needless { Ok(None) } else { self.revert(fault, &one.noted) };
        let at = SystemTime::now();
        match &reverted {
            Ok(_) => tracing::info!(fault = message, "a fault ends"),
            Err(error) => tracing::error!(fault = message, %error, "a fault could not be undone"),
        }
        match reverted {
            Ok(said) => {
                let said = said.map_or(String::new(), |said| format!(": {said}"));
                self.done.happened[one.at].means += &said;
                self.done.events.push((at, "fault_end", message + &said));
                self.done.happened[one.at].end_s = Some(since(begun, at));
            }
            Err(_) if self.control.is_stopping() && fault.kind == FaultKind::Restart => {}
            Err(why) => self.fail(format!("{message}: {why}")),
        }
    }

    fn fail(&mut self, message: String) {
        self.done.events.push((SystemTime::now(), "fault_failed", message.clone()));
        self.done.failure.get_or_insert(message);
    }

    /// Processes or proxies that a fault is on, from 0.
    fn of(&self, on: On) -> Range<usize> {
        match on {
            On::Server => 0..self.reach.servers.count(),
            On::One(number) | On::Worker(number) => number as usize - 1..number as usize,
        }
    }

    /// Does it.
    fn apply(&mut self, fault: &Fault) -> Injection {
        let which = self.of(fault.on);
        if let On::Worker(number) = fault.on {
            let mut injected = FaultOutcome::default();
            match self.apply_to_worker(fault.kind, number, &mut injected) {
                Ok(means) => injected.means = means,
                Err(error) => injected.failed = Some(error.to_string()),
            }
            let noted = vec![FaultTrace { noted: injected.noted, ..FaultTrace::default() }];
            return Injection { means: injected.means, noted, failed: injected.failed, lacking: false };
        }
        if !self.reach.by_proxies.contains(&fault.kind) {
            return match ServerFault::from_fault(fault) {
                Some(server_fault) => self.reach.servers.inject(&which, &server_fault),
                None => Injection { failed: Some("it does not say how much".into()), ..Injection::default() },
            };
        }
        self.treat(fault, true);
        let named: Vec<String> = which.filter_map(|i| Some(self.reach.proxies.get(i)?.describe())).collect();
        Injection { means: named.join("; "), ..Injection::default() }
    }

    fn apply_to_worker(
        &mut self,
        kind: FaultKind,
        number: u32,
        injected: &mut FaultOutcome,
    ) -> Result<String, FaultError> {
        let worker = self.reach.workers.get(number as usize - 1).cloned();
        let (pid, host) = worker.ok_or(FaultError::NoWorker)?;
        let worker_fault = if kind == FaultKind::Kill { WorkerFault::Kill } else { WorkerFault::Pause };
        match host {
            None => {
                injected.noted.extend(inject_into_worker(
                    self.machine,
                    &mut self.journal,
                    pid,
                    worker_fault,
                )?);
                Ok(worker_fault.fault_means().into())
            }
            Some(host) => {
                let agent = self.agent(&host)?;
                injected.noted.extend(agent.inject_into_worker(pid, worker_fault)?);
                Ok(format!("{} on {host}", worker_fault.fault_means()))
            }
        }
    }

    fn agent(&self, host: &str) -> Result<&RemoteAgent, FaultError> {
        let beside = self.reach.beside.iter().find(|agent| agent.name() == host);
        let agent = beside.or_else(|| self.reach.servers.agent(host));
        agent.ok_or_else(|| FaultError::NoAgent(host.to_owned()))
    }

    fn treat(&self, fault: &Fault, begins: bool) {
        let delay = fault.delay.as_ref().map_or(Duration::ZERO, |delay| Duration::from_nanos(delay.0));
        let bytes_per_s = fault.bytes_per_s.as_ref().map(|bytes| bytes.0);
        let treatment = match begins {
            true => Treatment { delay, bytes_per_s, shut: fault.kind == FaultKind::Partition },
            false => Treatment::default(),
        };
        for proxy in self.of(fault.on).filter_map(|i| self.reach.proxies.get(i)) {
            proxy.treat(|now| *now = treatment);
        }
    }

    /// Undoes it; what there is to say of it then.
    fn revert(&mut self, fault: &Fault, noted: &FaultTraces) -> Result<Option<String>, FaultError> {
        if let On::Worker(number) = fault.on {
            let host = self.reach.workers.get(number as usize - 1).and_then(|(_, host)| host.clone());
            for id in noted.iter().flat_map(|trace| &trace.noted) {
                match &host {
                    None => self.journal.undo_one(*id)?,
                    Some(host) => self.agent(host)?.heal_worker(*id)?,
                }
            }
            return Ok(None);
        }
        match ServerFault::from_fault(fault) {
            Some(server_fault) if !self.reach.by_proxies.contains(&fault.kind) => {
                self.reach.servers.heal(&server_fault, noted)
            }
            _ => {
                self.treat(fault, false);
                Ok(None)
            }
        }
    }
}

fn since(begun: SystemTime, at: SystemTime) -> f64 {
    at.duration_since(begun).unwrap_or_default().as_secs_f64()
}
