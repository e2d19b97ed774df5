//! Faults done to a server on purpose while it is under load, process by process (from 0), and undone again.

use crate::servers::server::Server;
use dyno_config::experiment::fault::{Fault, FaultKind};
use dyno_config::server::placement::Limits;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::undo::{Journal, Undo};
use dyno_localhost::{clock, process, storage};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;

/// The file in a process' folder that says by how much its clock is ahead.
const CLOCK: &str = "clock";

/// The least part of a filesystem that is still tried, bytes.
const CRUMB: u64 = 4 << 10;

/// A fault of servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerFault {
    /// Killed, and away.
    Kill,
    /// Killed, and started again when it is healed.
    Restart,
    /// Stopped.
    Pause,
    /// Limited by its control group.
    Squeeze(Box<Limits>),
    /// The filesystem of the data is full.
    Fill,
    /// So many percent of the packets to and from its ports are lost: all of them, where it is cut off.
    Lose(f64),
    /// So many bytes per second pass to and from its ports.
    Narrow(u64),
    /// Packets to its ports are delayed by so many nanoseconds.
    Slow(u64),
    /// The clock is ahead by so many nanoseconds, or behind.
    Step(i64),
}

impl ServerFault {
    /// Of a fault; none where the file lacks what it takes.
    pub fn from_fault(fault: &Fault) -> Option<ServerFault> {
        let io = || fault.bytes_per_s.clone().filter(|_| fault.kind == FaultKind::IoLimit);
        Some(match fault.kind {
            FaultKind::Kill => ServerFault::Kill,
            FaultKind::Restart => ServerFault::Restart,
            FaultKind::Pause => ServerFault::Pause,
            FaultKind::DiskFull => ServerFault::Fill,
            FaultKind::Loss => ServerFault::Lose(fault.percent?),
            FaultKind::ClockStep => ServerFault::Step(fault.step.as_ref()?.0),
            FaultKind::CpuPressure | FaultKind::MemoryPressure | FaultKind::IoLimit => {
                ServerFault::Squeeze(Box::new(Limits {
                    cpus: fault.cpus,
                    memory: fault.memory.clone(),
                    read_bytes_per_s: io(),
                    write_bytes_per_s: io(),
                    ..Limits::default()
                }))
            }
            FaultKind::Partition => ServerFault::Lose(100.0),
            FaultKind::Bandwidth => ServerFault::Narrow(fault.bytes_per_s.as_ref()?.0),
            FaultKind::Delay => ServerFault::Slow(fault.delay.as_ref()?.0),
        })
    }
}

/// Outcome of a fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// By what means it was done.
    pub means: String,
    /// The processes that it was done to one by one, from 0: they are to be healed, and no others.
    pub processes: Vec<usize>,
    /// Journal entries that [`Server::heal_fault`] takes to undo it.
    pub noted: Vec<u64>,
    /// Why it could not be done, or not to all processes.
    pub failed: Option<String>,
    /// It failed because this host does not allow it, and the file says to go on without.
    pub lacking: bool,
}

/// A fault of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerFault {
    /// Killed, and away.
    Kill,
    /// Stopped.
    Pause,
}

impl WorkerFault {
    /// By what means it is done.
    pub fn fault_means(self) -> &'static str {
        match self {
            WorkerFault::Kill => "SIGKILL",
            WorkerFault::Pause => "SIGSTOP",
        }
    }
}

/// Does it to a worker of this host; what undoes it is in the journal, if there is something to undo.
pub fn inject_into_worker(
    machine: &Machine,
    journal: &mut Journal,
    pid: u32,
    fault: WorkerFault,
) -> Result<Option<u64>, LocalError> {
    let gone = || LocalError::Failed("it does not run".into());
    let started = process::start_ticks(machine, pid).ok_or_else(gone)?;
    if fault == WorkerFault::Kill {
        // Whatever it leads goes with it; a worker of ssh leads nothing.
        process::end_group(pid);
        process::send_signal(pid, Signal::KILL);
        return Ok(None);
    }
    let noted = journal.note_action(Undo::Continue { pid, started })?;
    match process::halt_group(pid) {
        true => Ok(Some(noted)),
        false => {
            journal.undo_one(noted)?;
            Err(gone())
        }
    }
}

impl Server {
    /// Does it to processes `which`, from 0.
    pub fn inject_fault(&mut self, which: Range<usize>, fault: &ServerFault) -> FaultOutcome {
        let mut outcome = FaultOutcome::default();
        match self.try_inject(which, fault, &mut outcome) {
            Ok(means) => outcome.means = means,
            Err(LocalError::NotPermitted { what, why, .. }) => {
                outcome.failed = Some(format!("{what}: {why}"));
                outcome.lacking = self.goes_on();
            }
            Err(error) => outcome.failed = Some(error.to_string()),
        }
        outcome
    }

    fn try_inject(
        &mut self,
        which: Range<usize>,
        fault: &ServerFault,
        outcome: &mut FaultOutcome,
    ) -> Result<String, LocalError> {
        match fault {
            ServerFault::Fill => {
                outcome.noted.push(self.fill()?);
                return Ok("a file that fills the image of the data".into());
            }
            ServerFault::Lose(_) | ServerFault::Narrow(_) | ServerFault::Slow(_) => {
                return self.inject_link_fault(which, fault, &mut outcome.noted);
            }
            _ => {}
        }
        for i in which {
            match fault {
                ServerFault::Kill | ServerFault::Restart => {
                    // Killed it is, whatever else is not cleared away.
                    let ran = self.members[i].pid().is_some() && self.members[i].end_status().is_none();
                    let killed = self.kill(i);
                    if killed.is_err() && ran {
                        outcome.processes.push(i);
                    }
                    killed?;
                }
                ServerFault::Pause => outcome.noted.push(self.pause(i)?),
                ServerFault::Squeeze(limits) => self.squeeze(i, limits)?,
                ServerFault::Step(ns) => self.step_clock(i, *ns)?,
                ServerFault::Fill | ServerFault::Lose(_) | ServerFault::Narrow(_) | ServerFault::Slow(_) => {}
            }
            outcome.processes.push(i);
        }
        Ok(match fault {
            ServerFault::Kill | ServerFault::Restart => "SIGKILL",
            ServerFault::Pause => "SIGSTOP",
            ServerFault::Step(_) => {
                return Ok(self.preload.as_ref().map_or(String::new(), clock::Preload::describe_preload));
            }
            _ => "its control group",
        }
        .into())
    }

    /// Undoes it where it was done; what there is to say of it then.
    pub fn heal_fault(
        &mut self,
        which: &[usize],
        fault: &ServerFault,
        noted: &[u64],
    ) -> Result<Option<String>, LocalError> {
        let mut words = None;
        match fault {
            ServerFault::Restart => which.iter().try_for_each(|i| self.revive(*i))?,
            ServerFault::Squeeze(_) => which.iter().try_for_each(|i| self.release(*i))?,
            ServerFault::Step(_) => which.iter().try_for_each(|i| self.step_clock(*i, 0))?,
            ServerFault::Lose(_) | ServerFault::Narrow(_) => {
                let said = self.dropped(noted).unwrap_or_else(|e| e.to_string());
                words = Some(said).filter(|said| !said.is_empty());
            }
            _ => {}
        }
        noted.iter().try_for_each(|id| self.journal.undo_one(*id))?;
        Ok(words)
    }

    /// Before anything is started: whether what the faults need is to be had.
    pub(super) fn make_ready(&mut self) -> Result<(), LocalError> {
        self.make_links_ready()?;
        if self.preparation.clock {
            match clock::Preload::of_program(&self.program) {
                Ok(preload) => self.preload = Some(preload),
                Err(error) => self.lack(error)?,
            }
        }
        Ok(())
    }

    /// Notes what is not permitted, where the run goes on without.
    pub(super) fn lack(&mut self, error: LocalError) -> Result<(), LocalError> {
        if !self.goes_on() {
            return Err(error);
        }
        self.notes.push(error.to_string());
        Ok(())
    }

    pub(super) fn lacking(&self, what: impl Into<String>) -> LocalError {
        let lost = "the fault does not come".into();
        LocalError::NotPermitted { what: what.into(), why: self.notes.join("; ").into(), lost }
    }

    /// Returns the words before a process whose clock will be stepped.
    pub(super) fn clocked(&self, i: usize) -> Result<Vec<String>, LocalError> {
        let Some(preload) = &self.preload else { return Ok(Vec::new()) };
        let file = self.members[i].node.home.join(CLOCK);
        clock::set_offset(&file, 0)?;
        preload.command_prefix(&self.machine, &file)
    }

    /// Notes what a process whose clock will be stepped leaves where it is killed.
    pub(super) fn note_leavings(&mut self, pid: u32) -> Result<(), LocalError> {
        for path in clock::leftover_files(pid).into_iter().filter(|_| self.preload.is_some()) {
            self.journal.note_action(Undo::File { path })?;
        }
        Ok(())
    }

    /// An error if the clock of a process that answers cannot be stepped.
    pub(super) fn confirm_clock(&self, i: usize) -> Result<(), LocalError> {
        let member = &self.members[i];
        match (&self.preload, member.server()) {
            (Some(_), Some(pid)) => clock::confirm_loaded(&self.machine, pid, &member.node.name),
            _ => Ok(()),
        }
    }

    /// The file goes with the server's folder, and only the server reads it: there is nothing for the journal.
    fn step_clock(&self, i: usize, ns: i64) -> Result<(), LocalError> {
        match self.preload {
            Some(_) => clock::set_offset(&self.members[i].node.home.join(CLOCK), ns),
            None => Err(self.lacking("a clock of the server's own")),
        }
    }

    /// Limits with room where they say nothing. The load is not what a limit of memory is about.
    pub(super) fn limits(&self) -> Limits {
        let (own, preparation) = (self.spec.limits.clone(), self.preparation.limits.clone());
        Limits {
            memory: own.memory.clone().filter(|_| !self.loads).or(preparation.memory),
            cpus: own.cpus.or(preparation.cpus),
            read_bytes_per_s: own.read_bytes_per_s.clone().or(preparation.read_bytes_per_s),
            write_bytes_per_s: own.write_bytes_per_s.clone().or(preparation.write_bytes_per_s),
            ..own
        }
    }

    /// Counts its processes.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Where each process listens.
    pub fn process_sockets(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.node.socket_address()).collect()
    }

    /// Kills a process and what it has forked, and clears it away; its data stay. It does not count as died.
    fn kill(&mut self, i: usize) -> Result<(), LocalError> {
        let member = &mut self.members[i];
        let (Some(_), None) = (member.pid(), member.end_status()) else {
            return Err(LocalError::Failed(format!("{} does not run", member.node.name)));
        };
        member.last = member.facts_now(&self.machine);
        let [ended, removed] = member.clear(&mut self.journal);
        ended.and(removed)
    }

    /// Stops a process and what it has forked; what the journal has it by.
    fn pause(&mut self, i: usize) -> Result<u64, LocalError> {
        let member = &mut self.members[i];
        let name = member.node.name.clone();
        let started = member.pid().and_then(|pid| Some((pid, process::start_ticks(&self.machine, pid)?)));
        let Some((pid, started)) = started else {
            return Err(LocalError::Failed(format!("{name} does not run")));
        };
        let noted = self.journal.note_action(Undo::Continue { pid, started })?;
        match process::halt_group(pid) {
            true => Ok(noted),
            false => {
                self.journal.undo_one(noted)?;
                Err(LocalError::Failed(format!("{name} cannot be stopped")))
            }
        }
    }

    /// Lowers the limits of a process' control group; the group's removal undoes it in any case.
    fn squeeze(&mut self, i: usize, limits: &Limits) -> Result<(), LocalError> {
        let member = &self.members[i];
        let Some(group) = &member.group else {
            return Err(self.lacking(format!("{} is in no control group", member.node.name)));
        };
        let devices = match limits.has_io() {
            true => storage::whole_disks(&self.machine, &member.node.data),
            false => Vec::new(),
        };
        group.set_limits(&self.machine, limits, &self.limits(), &devices)
    }

    /// Puts the limits of a process' control group back to what they were.
    fn release(&mut self, i: usize) -> Result<(), LocalError> {
        let limits = self.limits();
        self.squeeze(i, &limits)
    }

    /// Fills the filesystem that was made for the data; what the journal has it by.
    fn fill(&mut self) -> Result<u64, LocalError> {
        if self.filesystem.is_none() {
            return Err(self.lacking("no filesystem was made for the data"));
        }
        let path = self.base.join("dyno-filling");
        let failed = |e: io::Error| LocalError::failed_step(path.display(), e);
        let noted = self.journal.note_action(Undo::File { path: path.clone() })?;
        let file = fs::File::create(&path).map_err(failed)?;
        let room = statvfs(&self.base).map_err(|e| failed(e.into()))?;
        let (mut at, mut part) = (0, (room.f_bavail * room.f_frsize).max(CRUMB));
        while part >= CRUMB {
            match fallocate(&file, FallocateFlags::empty(), at, part) {
                Ok(()) => at += part,
                Err(rustix::io::Errno::NOSPC) => part /= 2,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    self.journal.undo_one(noted)?;
                    return Err(failed(error.into()));
                }
            }
        }
        Ok(noted)
    }
}
