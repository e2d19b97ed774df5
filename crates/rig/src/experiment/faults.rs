//! Faults that the file asks for: done at their times of the measured phase, undone at their ends, and at the end in any case.
//!
//! ```text
//! schedule -> begins and ends on one time axis -> a thread beside the load: wait, do, note -> over, or Ctrl-C: undo all
//! ```

use super::clock::Clock;
use super::one::OneRun;
use crate::local::{Machine, Server, process, room, undo};
use crate::proxy::{Proxy, Treatment};
use crate::session::Session;
use dyno_analysis::faults::Happened;
use dyno_engine::Control;
use dyno_plan::experiment::{Experiment, Fault, FaultKind, On, PlannedFault, schedule_faults};
use dyno_plan::server::Limits;
use dyno_plan::values::Bytes;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How often it is looked whether somebody wants the end.
const LOOK: Duration = Duration::from_millis(20);

/// Limits that a server's control group is made for, so that faults can lower them.
pub(super) fn room_for(faults: &[Fault]) -> Limits {
    let has = |kind: FaultKind| faults.iter().any(|fault| fault.kind == kind);
    let (cpus, memory) = (has(FaultKind::CpuPressure), has(FaultKind::MemoryPressure));
    room(cpus, memory, has(FaultKind::IoLimit))
}

/// Whether a proxy is needed.
pub(super) fn of_links(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| fault.kind.is_of_link())
}

/// What faults can be done to.
pub(super) struct Reach<'a> {
    pub server: Option<&'a mut Server>,
    /// One for each instance, where there are faults of links.
    pub proxies: &'a [Proxy],
    /// Process numbers.
    pub workers: Vec<u32>,
    /// A folder of the run.
    pub logs: PathBuf,
}

/// What came of them.
#[derive(Default)]
pub(super) struct Done {
    events: Vec<(SystemTime, &'static str, String)>,
    happened: Vec<Happened>,
    missed: Vec<String>,
    failure: Option<String>,
}

impl Done {
    /// Writes events, has the session judge; an error if one could not be done or undone.
    pub fn note(self, session: &mut Session<'_>) -> Result<(), String> {
        if let Some(writer) = session.writer() {
            self.events.iter().for_each(|(at, kind, words)| writer.event_at(*at, kind, words));
        }
        session.judge(&self.happened, self.missed);
        self.failure.map_or(Ok(()), Err)
    }
}

/// Tells that the phase is over, also where it ended by a panic.
struct Over<'a>(&'a Clock);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the phase with its faults beside it.
pub(super) fn beside<T>(
    run: &OneRun<'_>,
    spec: &Experiment,
    reach: Reach<'_>,
    clock: &Clock,
    phase: impl FnOnce() -> T,
) -> Result<(T, Done), String> {
    if spec.faults.is_empty() {
        return Ok((phase(), Done::default()));
    }
    let mut hand = Hand {
        faults: &spec.faults,
        planned: schedule_faults(spec, run.point.repetition),
        journal: undo::Journal::open(&reach.logs.join("faults"), run.machine).map_err(|e| e.to_string())?,
        reach,
        machine: run.machine,
        control: &run.control,
        active: Vec::new(),
        done: Done::default(),
    };
    std::thread::scope(|scope| {
        let hand = scope.spawn(move || {
            hand.follow(clock);
            std::mem::take(&mut hand.done)
        });
        let over = Over(clock);
        let made = phase();
        drop(over);
        let done = hand.join().map_err(|_| "faults: their thread has failed".to_owned())?;
        Ok((made, done))
    })
}

/// A fault under way.
struct Active {
    planned: PlannedFault,
    /// Its place among those that happened.
    at: usize,
    /// What journals have it by.
    noted: Vec<u64>,
}

/// What carries faults out.
struct Hand<'a> {
    faults: &'a [Fault],
    planned: Vec<PlannedFault>,
    reach: Reach<'a>,
    /// Of processes that are not the server's.
    journal: undo::Journal,
    machine: &'a Machine,
    control: &'a Control,
    active: Vec<Active>,
    done: Done,
}

impl Hand<'_> {
    fn follow(&mut self, clock: &Clock) {
        let planned = std::mem::take(&mut self.planned);
        let mut left = planned.into_iter().peekable();
        let Some((epoch, warmup)) = clock.epoch() else { return self.miss(left) };
        let begun = epoch + warmup;
        let at = |ns: u64| begun + Duration::from_nanos(ns);
        loop {
            let end = self.active.iter().filter_map(|one| one.planned.end_ns).min();
            let begin = left.peek().map(|next| next.begin_ns);
            // What ends goes first.
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
    fn waited(&self, clock: &Clock, until: SystemTime) -> bool {
        loop {
            if clock.wait(Some(until), LOOK) || self.control.stopping() {
                return true;
            }
            if SystemTime::now() >= until {
                return false;
            }
        }
    }

    fn miss(&mut self, left: impl Iterator<Item = PlannedFault>) {
        for planned in left {
            let words = format!("{}: the phase ended before its time", self.named(&planned));
            self.done.events.push((SystemTime::now(), "fault_failed", words.clone()));
            self.done.missed.push(words);
        }
    }

    /// As events name it.
    fn named(&self, planned: &PlannedFault) -> String {
        let fault = &self.faults[planned.fault];
        let which =
            if fault.times > 1 { format!(" ({} of {})", planned.time, fault.times) } else { String::new() };
        format!("{}{which} {}", planned.fault + 1, fault.words())
    }

    fn begin(&mut self, planned: PlannedFault, begun: SystemTime) {
        let (words, fault) = (self.named(&planned), &self.faults[planned.fault]);
        let mut noted = Vec::new();
        let at = SystemTime::now();
        match self.apply(fault, &mut noted) {
            Ok(means) => {
                self.done.events.push((at, "fault_begin", format!("{words}: {means}")));
                self.done.happened.push(Happened {
                    number: planned.fault + 1,
                    fault: fault.words(),
                    means,
                    begin_s: since(begun, at),
                    end_s: None,
                });
                self.active.push(Active { planned, at: self.done.happened.len() - 1, noted });
            }
            Err(why) => {
                self.fail(format!("{words}: {why}"));
                // Some of several may have been done.
                if let Err(why) = self.revert(fault, &noted) {
                    self.fail(format!("{words}: {why}"));
                }
            }
        }
    }

    fn end(&mut self, one: Active, begun: SystemTime) {
        let (words, fault) = (self.named(&one.planned), &self.faults[one.planned.fault]);
        // A run that is to end needs no server.
        let needless = fault.kind == FaultKind::Restart && self.control.stopping();
        let reverted = if needless { Ok(()) } else { self.revert(fault, &one.noted) };
        let at = SystemTime::now();
        match reverted {
            Ok(()) => {
                self.done.events.push((at, "fault_end", words));
                self.done.happened[one.at].end_s = Some(since(begun, at));
            }
            Err(_) if self.control.stopping() && fault.kind == FaultKind::Restart => {}
            Err(why) => self.fail(format!("{words}: {why}")),
        }
    }

    fn fail(&mut self, words: String) {
        self.done.events.push((SystemTime::now(), "fault_failed", words.clone()));
        self.done.failure.get_or_insert(format!("faults: {words}"));
    }

    /// Processes or proxies that a fault is on, from 0.
    fn of(&self, on: On) -> std::ops::Range<usize> {
        let all = self.reach.server.as_ref().map_or(0, |server| server.count());
        match on {
            On::Server => 0..all,
            On::One(number) | On::Worker(number) => number as usize - 1..number as usize,
        }
    }

    /// Does it; by what means.
    fn apply(&mut self, fault: &Fault, noted: &mut Vec<u64>) -> Result<String, String> {
        if let On::Worker(number) = fault.on {
            return self.apply_to_worker(fault.kind, number, noted);
        }
        let processes = self.of(fault.on);
        if fault.kind.is_of_link() {
            self.treat(fault, true);
            let named: Vec<String> =
                processes.filter_map(|i| Some(self.reach.proxies.get(i)?.words())).collect();
            return Ok(named.join("; "));
        }
        let Some(server) = self.reach.server.as_deref_mut() else { return Err("there is no server".into()) };
        if fault.kind == FaultKind::DiskFull {
            noted.push(server.fill().map_err(|e| e.to_string())?);
            return Ok("a file that fills the image of the data".into());
        }
        let limits = limits(fault);
        for i in processes {
            match fault.kind {
                FaultKind::Kill | FaultKind::Restart => server.kill(i),
                FaultKind::Pause => server.pause(i).map(|id| noted.push(id)),
                _ => server.squeeze(i, &limits),
            }
            .map_err(|e| e.to_string())?;
        }
        Ok(match fault.kind {
            FaultKind::Kill | FaultKind::Restart => "SIGKILL",
            FaultKind::Pause => "SIGSTOP",
            _ => "its control group",
        }
        .into())
    }

    fn apply_to_worker(
        &mut self,
        kind: FaultKind,
        number: u32,
        noted: &mut Vec<u64>,
    ) -> Result<String, String> {
        let pid = *self.reach.workers.get(number as usize - 1).ok_or("there is no such worker")?;
        let started = process::started(self.machine, pid).ok_or("it does not run")?;
        if kind == FaultKind::Kill {
            process::end_group(pid);
            return Ok("SIGKILL".into());
        }
        let entry = undo::Undo::Continue { pid, started };
        noted.push(self.journal.add(entry).map_err(|e| e.to_string())?);
        match process::halt(pid) {
            true => Ok("SIGSTOP".into()),
            false => Err("it does not run".into()),
        }
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

    /// Undoes it.
    fn revert(&mut self, fault: &Fault, noted: &[u64]) -> Result<(), String> {
        if fault.kind.is_of_link() {
            self.treat(fault, false);
            return Ok(());
        }
        let words = |e: crate::local::LocalError| e.to_string();
        if matches!(fault.on, On::Worker(_)) {
            return noted.iter().try_for_each(|id| self.journal.undo(*id)).map_err(words);
        }
        let processes = self.of(fault.on);
        let Some(server) = self.reach.server.as_deref_mut() else { return Ok(()) };
        match fault.kind {
            FaultKind::Restart => processes.into_iter().try_for_each(|i| server.revive(i)),
            FaultKind::CpuPressure | FaultKind::MemoryPressure | FaultKind::IoLimit => {
                processes.into_iter().try_for_each(|i| server.release(i))
            }
            _ => noted.iter().try_for_each(|id| server.undo(*id)),
        }
        .map_err(words)
    }
}

/// What a fault limits.
fn limits(fault: &Fault) -> Limits {
    let io: Option<Bytes> = fault.bytes_per_s.clone().filter(|_| fault.kind == FaultKind::IoLimit);
    Limits {
        cpus: fault.cpus,
        memory: fault.memory.clone(),
        read_bytes_per_s: io.clone(),
        write_bytes_per_s: io,
        ..Limits::default()
    }
}

fn since(begun: SystemTime, at: SystemTime) -> f64 {
    at.duration_since(begun).unwrap_or_default().as_secs_f64()
}
