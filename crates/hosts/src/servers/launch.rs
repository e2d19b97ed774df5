//! Starting a process inside its group, on its cores, with its end noted before it begins.
//!
//! A shell stands in front: it waits for a line, which it gets once its number is in the journal, writes that number into
//! the group's files, and becomes the program. So nothing of the program ever runs outside the group or unknown to the
//! journal. Paths and arguments are the shell's own arguments; nothing is put into its text.

use crate::servers::placement;
use crate::servers::placement::Plan;
use dyno_config::server::placement::{Limits, Placement};
use dyno_localhost::cgroup::ControlGroup;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use dyno_localhost::undo::{Journal, Undo};
use dyno_monitor::topology::Topology;
use dyno_types::child;
use dyno_types::shell::quoted;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Enters the groups whose number comes first, and becomes the rest.
const ENTER: &str = r#"n=$1; shift
while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 126; shift; n=$((n - 1)); done
"#;

/// Returns the words before a program: the shell's arguments, then the prefix that sets cores and memory.
fn in_front(wait: bool, group: Option<&ControlGroup>, prefix: &[String]) -> Vec<OsString> {
    let entrances = group.map(ControlGroup::entry_files).unwrap_or_default();
    let text = match wait {
        true => format!("read -r go || exit 125\n{ENTER}exec \"$@\" </dev/null"),
        false => format!("{ENTER}exec \"$@\""),
    };
    let mut words: Vec<OsString> = ["-c", text.as_str(), "sh"].map(OsString::from).into();
    words.push(entrances.len().to_string().into());
    words.extend(entrances.into_iter().map(PathBuf::into_os_string));
    words.extend(prefix.iter().map(OsString::from));
    words
}

/// Starts a process from a thread that lasts as long as dyno does: with `--pdeathsig` the kernel ends a process with the
/// thread that has started it, and a server may be started by one that is soon over.
fn spawn_lasting(command: Command) -> io::Result<Child> {
    type Order = (Command, SyncSender<io::Result<Child>>);
    static STARTER: Mutex<Option<Sender<Order>>> = Mutex::new(None);
    let gone = || io::Error::other("the thread that starts servers has ended");
    let (tell, told) = sync_channel(1);
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    if starter.is_none() {
        let (order, orders) = channel::<Order>();
        std::thread::Builder::new().name("starter".into()).spawn(move || {
            for (mut command, tell) in orders {
                // The caller waits for the answer.
                let _ = tell.send(command.spawn());
            }
        })?;
        *starter = Some(order);
    }
    let sent = starter.as_ref().is_some_and(|order| order.send((command, tell)).is_ok());
    drop(starter);
    if !sent {
        return Err(gone());
    }
    told.recv().map_err(|_| gone())?
}

/// A program to be started.
pub(super) struct Launch<'a> {
    pub program: &'a Path,
    pub arguments: &'a [String],
    pub prefix: &'a [String],
    pub group: Option<&'a ControlGroup>,
    pub folder: &'a Path,
    pub log: &'a Path,
    /// True if it may outlive dyno.
    pub lasting: bool,
}

impl Launch<'_> {
    /// Starts it; returns it with its entry in the journal.
    pub(super) fn start(&self, machine: &Machine, journal: &mut Journal) -> Result<(Child, u64), LocalError> {
        let failed = |e: std::io::Error| LocalError::failed_step(self.program.display(), e);
        let log = File::options().create(true).append(true).open(self.log);
        let log = log.map_err(|e| LocalError::failed_step(self.log.display(), e))?;
        let mut command = child::clean_command("/bin/sh");
        command.args(in_front(true, self.group, &self.guarded(machine)));
        command.arg(self.program).args(self.arguments).current_dir(self.folder);
        // Ctrl-C in a terminal goes to every process of the foreground group; the server must outlive the replies that
        // are still awaited.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        let mut child = spawn_lasting(command).map_err(failed)?;
        let pid = child.id();
        let noted = match process::start_ticks(machine, pid) {
            Some(started) => journal.note_action(Undo::Process {
                pid,
                started,
                session: process::session_of(machine, pid),
            }),
            None => Err(LocalError::failed_step(self.program.display(), "its shell ended at once")),
        };
        let go = child.stdin.take();
        match noted {
            Ok(id) => {
                // A shell that has ended shows when the server is awaited.
                let _ = go.map(|mut go| go.write_all(b"go\n"));
                Ok((child, id))
            }
            Err(error) => {
                drop(go);
                // The shell ends by itself, as nothing came.
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The prefix, behind what has the kernel end the server should dyno be killed.
    fn guarded(&self, machine: &Machine) -> Vec<String> {
        let setpriv =
            machine.find_program("setpriv").filter(|_| !self.lasting).map(|path| path.display().to_string());
        let guard = setpriv.map(|path| vec![path, "--pdeathsig".into(), "KILL".into(), "--".into()]);
        [guard.unwrap_or_default(), self.prefix.to_vec()].concat()
    }

    /// The command line as a person would type it.
    pub(super) fn command_line(&self) -> String {
        let program = self.program.display().to_string();
        let words = self.prefix.iter().chain([&program]).chain(self.arguments);
        quoted(&words.collect::<Vec<_>>())
    }
}

/// Placement and limits of one process that dyno starts itself, such as a worker; its group goes when this is dropped.
#[derive(Debug)]
pub struct Confinement {
    plan: Plan,
    prefix: Vec<String>,
    group: Option<ControlGroup>,
    journal: Journal,
    machine: Machine,
    /// Limits that could not be set, where that is allowed.
    pub lost: Vec<String>,
}

impl Confinement {
    /// For process `index` of `count` that share a placement (the index stands for the port of `bind_by_port`). `work_dir` is
    /// a folder of this process alone, for its journal; `data` is a folder on the disks whose I/O is limited. With `go_on`
    /// what the system does not allow is listed instead of refused.
    pub fn new(
        (placement, limits): (&Placement, &Limits),
        (index, count): (usize, usize),
        (work_dir, data): (&Path, &Path),
        machine: &Machine,
        go_on: bool,
    ) -> Result<Self, LocalError> {
        limits.check().map_err(|why| LocalError::refuse("limits", format!("limits.{why}")))?;
        let topology = machine.machine_topology()?;
        let ports: Vec<u16> = (0..count.max(index + 1)).map(|i| i as u16).collect();
        let plan = placement::plan_placement(placement, &topology, &ports)?.swap_remove(index);
        let mut lost = Vec::new();
        let prefix = prefix_or_less(&plan, &topology, machine, go_on, &mut lost)?;
        let mut journal = Journal::open(work_dir, machine)?;
        // Unique among all groups of this process.
        static GROUPS: AtomicU64 = AtomicU64::new(0);
        let name = format!("worker-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
        let group = group_or_none(machine, &name, limits, data, &mut journal, go_on, &mut lost)?;
        Ok(Confinement { plan, prefix, group, journal, machine: machine.clone(), lost })
    }

    /// The command that runs a program inside; standard input and output are the caller's to set.
    pub fn confined_command(&self, program: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = child::clean_command("/bin/sh");
        command.args(in_front(false, self.group.as_ref(), &self.prefix)).arg(program).args(arguments);
        command
    }

    /// Cores; none if any will do.
    pub fn confined_cores(&self) -> Vec<usize> {
        self.plan.cpus.clone().unwrap_or_default()
    }

    /// The folders of its control group, by controller.
    pub fn cgroups(&self) -> Vec<(String, PathBuf)> {
        self.group.as_ref().map(ControlGroup::controller_folders).unwrap_or_default()
    }

    /// Returns the kernel's facts about the process and its group. An error if it does not run where it should.
    pub fn kernel_facts(&self, pid: u32) -> Result<BTreeMap<String, String>, LocalError> {
        let mut facts = process::effective_placement(&self.machine, pid);
        self.plan.confirm(&facts).map_err(|why| LocalError::failed_step(format!("process {pid}"), why))?;
        facts.insert("placement".into(), self.plan.describe_plan());
        facts.extend(self.group.iter().flat_map(ControlGroup::limit_facts));
        Ok(facts)
    }

    /// Removes the group, and ends what still runs in it.
    pub fn end(mut self) -> Result<(), LocalError> {
        self.group = None;
        self.journal.undo_all()
    }
}

/// The prefix of a plan; with `go_on` as much of it as can be had.
pub(super) fn prefix_or_less(
    plan: &Plan,
    topology: &Topology,
    machine: &Machine,
    go_on: bool,
    lost: &mut Vec<String>,
) -> Result<Vec<String>, LocalError> {
    let mut note = |error: LocalError| match error {
        error @ LocalError::NotPermitted { .. } if go_on => {
            lost.push(error.to_string());
            Ok(())
        }
        error => Err(error),
    };
    match plan.prefix(topology, machine) {
        Ok(prefix) => Ok(prefix),
        Err(error) => {
            note(error)?;
            plan.cores_only(machine).or_else(|error| note(error).map(|()| Vec::new()))
        }
    }
}

/// A group where there are limits; with `go_on` none where the system does not allow it.
pub(super) fn group_or_none(
    machine: &Machine,
    name: &str,
    limits: &Limits,
    data: &Path,
    journal: &mut Journal,
    go_on: bool,
    lost: &mut Vec<String>,
) -> Result<Option<ControlGroup>, LocalError> {
    if limits.is_nothing() {
        return Ok(None);
    }
    let disks =
        if limits.has_io() { dyno_localhost::storage::whole_disks(machine, data) } else { Vec::new() };
    match ControlGroup::make_group(machine, name, limits, &disks, journal) {
        Ok(group) => Ok(Some(group)),
        Err(error @ LocalError::NotPermitted { .. }) if go_on => {
            lost.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
