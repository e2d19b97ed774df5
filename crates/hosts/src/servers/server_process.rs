//! One process of a server.

use crate::servers::placement::Plan;
use dyno_db::servers::ServerNode;
use dyno_localhost::cgroup::ControlGroup;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use dyno_localhost::undo::Journal;
use dyno_monitor::Pid;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;

/// Lines of a log that a message shows.
pub(super) const LAST_LINES: usize = 5;

/// One process of the server.
#[derive(Debug)]
pub(super) struct ServerProcess {
    pub node: ServerNode,
    pub plan: Plan,
    pub prefix: Vec<String>,
    pub child: Option<Child>,
    /// The process that answers, where a wrapper has started it.
    pub answering: Option<u32>,
    pub group: Option<ControlGroup>,
    /// The process that is the server, for its watchers.
    pub running: Pid,
    /// Entry in the journal.
    pub noted: Option<u64>,
    pub command: String,
    /// Counters of its group when it last ended.
    pub last: BTreeMap<String, String>,
    /// End of the process, if dyno did not ask for it.
    pub ended: Option<String>,
}

impl ServerProcess {
    /// Process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The process that is the server.
    pub fn server(&self) -> Option<u32> {
        self.pid().map(|pid| self.answering.unwrap_or(pid))
    }

    /// Tells the watchers which process it is now.
    pub fn tell_watchers(&self) {
        self.running.set_process(self.server());
    }

    /// Kills what is left of it and clears it away: whether its entry could be taken back, and its group removed.
    pub fn clear(&mut self, journal: &mut Journal) -> [Result<(), LocalError>; 2] {
        self.pid().into_iter().for_each(process::end_group);
        let ended = self.noted.take().map_or(Ok(()), |id| journal.undo_one(id));
        if let Some(mut child) = self.child.take() {
            // It has ended or has just been killed.
            let _ = child.wait();
        }
        self.answering = None;
        self.tell_watchers();
        [ended, self.group.take().map_or(Ok(()), |mut group| group.remove_group(journal))]
    }

    /// Returns the kernel's facts about it and its group.
    pub fn facts_now(&self, machine: &Machine) -> BTreeMap<String, String> {
        let mut facts =
            self.server().map(|pid| process::effective_placement(machine, pid)).unwrap_or_default();
        facts.extend(self.group.iter().flat_map(ControlGroup::limit_facts));
        facts
    }

    /// If it has ended by itself: how, and its last words.
    pub fn end_status(&mut self) -> Option<String> {
        if self.ended.is_none() {
            let status = self.child.as_mut()?.try_wait().ok().flatten()?;
            self.pid().into_iter().for_each(process::end_group);
            let killed = self.group.as_ref().map_or(0, ControlGroup::count_killed);
            let memory = match killed {
                0 => String::new(),
                _ => ", killed by the kernel for want of memory (limits.memory)".to_owned(),
            };
            let log = process::last_lines(&self.node.log_path(), LAST_LINES);
            self.ended = Some(format!("{} has ended ({status}{memory}); {log}", self.node.name));
        }
        self.ended.clone()
    }
}

/// The copy of its data.
pub(super) fn copy_of(node: &ServerNode) -> PathBuf {
    node.data.with_extension("snapshot")
}
