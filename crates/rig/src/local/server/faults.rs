//! What is done to a server on purpose while it is under load, process by process (from 0), and undone again.

use super::super::error::LocalError;
use super::super::undo::Undo;
use super::super::{process, storage};
use super::Server;
use dyno_plan::server::Limits;
use dyno_plan::values::Bytes;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs;
use std::io;
use std::net::SocketAddr;

/// The least part of a filesystem that is still tried, bytes.
const CRUMB: u64 = 4 << 10;

/// Limits that limit nothing: with them a process gets a control group whose limits can be lowered later.
pub fn room(cpus: bool, memory: bool, io: bool) -> Limits {
    let bytes = || Some(Bytes(1 << 42));
    Limits {
        cpus: cpus.then_some(1024.0),
        memory: bytes().filter(|_| memory),
        read_bytes_per_s: bytes().filter(|_| io),
        write_bytes_per_s: bytes().filter(|_| io),
        ..Limits::default()
    }
}

impl Server {
    /// Its limits with room where they say nothing.
    pub(super) fn limits(&self) -> Limits {
        let (own, room) = (self.spec.limits.clone(), self.room.clone());
        Limits {
            memory: own.memory.clone().or(room.memory),
            cpus: own.cpus.or(room.cpus),
            read_bytes_per_s: own.read_bytes_per_s.clone().or(room.read_bytes_per_s),
            write_bytes_per_s: own.write_bytes_per_s.clone().or(room.write_bytes_per_s),
            ..own
        }
    }

    /// How many processes it has.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Where each process listens.
    pub fn sockets(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.node.socket()).collect()
    }

    /// Kills a process and what it has forked, and clears it away; its data stay. It does not count as died.
    pub fn kill(&mut self, i: usize) -> Result<(), LocalError> {
        let member = &mut self.members[i];
        let (Some(pid), None) = (member.pid(), member.ended()) else {
            return Err(LocalError::Failed(format!("{} does not run", member.node.name)));
        };
        member.last = member.now(&self.machine);
        process::end_group(pid);
        let ended = member.noted.take().map_or(Ok(()), |id| self.journal.undo(id));
        if let Some(mut child) = member.child.take() {
            // It has been killed: this only clears it away.
            let _ = child.wait();
        }
        member.answering = None;
        let removed = member.group.take().map_or(Ok(()), |mut group| group.remove(&mut self.journal));
        ended.and(removed)
    }

    /// Starts a process that was killed again on its data, and waits until it answers.
    pub fn revive(&mut self, i: usize) -> Result<(), LocalError> {
        self.launch(i)?;
        self.await_ready(i)
    }

    /// Stops a process and what it has forked; what [`Server::undo`] takes to have it go on.
    pub fn pause(&mut self, i: usize) -> Result<u64, LocalError> {
        let member = &mut self.members[i];
        let name = member.node.name.clone();
        let started = member.pid().and_then(|pid| Some((pid, process::started(&self.machine, pid)?)));
        let Some((pid, started)) = started else {
            return Err(LocalError::Failed(format!("{name} does not run")));
        };
        let noted = self.journal.add(Undo::Continue { pid, started })?;
        match process::halt(pid) {
            true => Ok(noted),
            false => {
                self.journal.undo(noted)?;
                Err(LocalError::Failed(format!("{name} cannot be stopped")))
            }
        }
    }

    /// Undoes what was noted by that number.
    pub fn undo(&mut self, noted: u64) -> Result<(), LocalError> {
        self.journal.undo(noted)
    }

    /// Lowers the limits of a process' control group; the group's removal undoes it in any case.
    pub fn squeeze(&mut self, i: usize, limits: &Limits) -> Result<(), LocalError> {
        let member = &self.members[i];
        let Some(group) = &member.group else {
            let why = format!("{} is in no control group: {}", member.node.name, self.notes.join("; "));
            return Err(LocalError::Failed(why));
        };
        let devices = match limits.has_io() {
            true => storage::disks(&self.machine, &member.node.data),
            false => Vec::new(),
        };
        group.limit(&self.machine, limits, &devices)
    }

    /// Puts the limits of a process' control group back to what they were.
    pub fn release(&mut self, i: usize) -> Result<(), LocalError> {
        let limits = self.limits();
        self.squeeze(i, &limits)
    }

    /// Fills the filesystem that was made for the data; what [`Server::undo`] takes to remove the filling.
    pub fn fill(&mut self) -> Result<u64, LocalError> {
        if self.filesystem.is_none() {
            let why = format!("no filesystem was made for the data: {}", self.notes.join("; "));
            return Err(LocalError::Failed(why));
        }
        let path = self.base.join("dyno-filling");
        let failed = |e: io::Error| LocalError::failed(path.display(), e);
        let noted = self.journal.add(Undo::File { path: path.clone() })?;
        let file = fs::File::create(&path).map_err(failed)?;
        let room = statvfs(&self.base).map_err(|e| failed(e.into()))?;
        let (mut at, mut part) = (0, (room.f_bavail * room.f_frsize).max(CRUMB));
        while part >= CRUMB {
            match fallocate(&file, FallocateFlags::empty(), at, part) {
                Ok(()) => at += part,
                Err(rustix::io::Errno::NOSPC) => part /= 2,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    self.journal.undo(noted)?;
                    return Err(failed(error.into()));
                }
            }
        }
        Ok(noted)
    }
}
