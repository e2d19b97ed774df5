//! A server of an experiment file: all its processes, from start to stop.

pub mod fault_preparation;
pub mod faults;
pub mod launching;
pub mod links;
pub mod volume;

use crate::collected::CollectedFile;
use crate::servers::launch::prefix_or_less;
use crate::servers::placement;
use crate::servers::placement::Plan;
use crate::servers::preflight::{absolute, find_program, find_router, ports, version};
use crate::servers::server::fault_preparation::FaultPreparation;
use crate::servers::server_process::{ServerProcess, copy_of};
use dyno_config::server::{IfNotPermitted, Part, ServerSpec};
use dyno_databases::registry::server;
use dyno_db::servers::ServerNode;
use dyno_engine::Control;
use dyno_localhost::cgroup::ControlGroup;
use dyno_localhost::error::LocalError;
use dyno_localhost::image::mount_image;
use dyno_localhost::machine::Machine;
use dyno_localhost::undo::{Journal, Undo};
use dyno_localhost::{clock, process, storage};
use dyno_monitor::Pid;
use dyno_monitor::topology::Topology;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that runs until it is stopped or dropped. It also ends with dyno, by the kernel's hand.
#[derive(Debug)]
pub struct Server {
    spec: ServerSpec,
    program: PathBuf,
    /// The program of its routers, where it has some.
    router: Option<PathBuf>,
    version: String,
    machine: Machine,
    members: Vec<ServerProcess>,
    /// Below it lie the data.
    base: PathBuf,
    filesystem: Option<String>,
    journal: Journal,
    notes: Vec<String>,
    /// True if the data hold what the topology made.
    formed: bool,
    /// Ends waiting early.
    control: Option<Arc<Control>>,
    /// Faults that it is prepared for.
    preparation: FaultPreparation,
    /// Library that gives its processes a clock of their own, where that is needed.
    preload: Option<clock::Preload>,
    /// True if it may outlive dyno.
    lasting: bool,
    /// It is loaded, and limits of memory do not hold yet.
    loads: bool,
}

/// Bytes of all collected files of a host: well below the longest frame.
const ANSWER_BYTES: usize = 16 << 20;

/// A process' own place in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPlacement {
    /// Where it listens.
    pub address: IpAddr,
    /// The words before its command that put it there.
    pub prefix: Vec<String>,
}

/// Conditions under which a server begins.
#[derive(Default)]
pub struct Beginning<'a> {
    /// Faults that it is prepared for.
    pub preparation: FaultPreparation,
    /// The volume's folder whose data it begins with, and which load they are of.
    pub volume: Option<(&'a Path, &'a str)>,
    /// True if it is to be left running: the kernel does not end it with dyno.
    pub lasting: bool,
    /// True if data are loaded into it, of which a copy is made then: limits of memory hold from its start on that copy on.
    pub loads: bool,
    /// Where each process is, if not all are on one address of this host.
    pub ways: &'a [NetworkPlacement],
}

impl Server {
    /// Starts everything that `spec` asks for, with configuration, logs and journal in `work_dir`, which is this server's alone,
    /// and waits until it is ready. After an error nothing is left but what `work_dir` holds.
    pub fn start(spec: &ServerSpec, work_dir: &Path, machine: &Machine) -> Result<Self, LocalError> {
        Server::start_under(spec, work_dir, machine, None)
    }

    /// The same; it is not waited for any longer when `control` stops.
    pub fn start_under(
        spec: &ServerSpec,
        work_dir: &Path,
        machine: &Machine,
        control: Option<Arc<Control>>,
    ) -> Result<Self, LocalError> {
        Server::start_with(spec, &Beginning::default(), work_dir, machine, control)
    }

    /// The same, as a beginning says.
    pub fn start_with(
        spec: &ServerSpec,
        begin: &Beginning<'_>,
        work_dir: &Path,
        machine: &Machine,
        control: Option<Arc<Control>>,
    ) -> Result<Self, LocalError> {
        spec.check().map_err(|why| LocalError::refuse("server", format!("server.{why}")))?;
        let program = find_program(spec, machine)?;
        let router = find_router(spec, machine)?;
        let version = version(&program);
        let topology = machine.machine_topology()?;
        let ports = ports(spec)?;
        let plans = placement::plan_placement(&spec.placement, &topology, &ports)?;
        let beyond = placement::beyond_memory(spec, &plans, &topology);
        if let Some(beyond) = beyond.as_ref().filter(|beyond| beyond.limits) {
            return Err(LocalError::refuse(
                "server.limits.memory",
                format!("server.limits.memory: {}", beyond.text),
            ));
        }
        let work_dir = dyno_localhost::trusted::make_folder(work_dir).and_then(|()| work_dir.canonicalize());
        let work_dir = work_dir.map_err(|e| LocalError::failed_step("the server's home", e))?;
        let mut server = Server {
            spec: spec.clone(),
            program,
            router,
            version,
            machine: machine.clone(),
            members: Vec::new(),
            base: work_dir.clone(),
            filesystem: None,
            journal: Journal::open(&work_dir, machine)?,
            notes: beyond.map(|beyond| beyond.text).into_iter().collect(),
            formed: false,
            control,
            preparation: begin.preparation.clone(),
            preload: None,
            lasting: begin.lasting,
            loads: begin.loads,
        };
        server.make_ready()?;
        server.prepare(&work_dir, &topology, (ports, plans, begin.ways))?;
        begin.volume.map_or(Ok(()), |(volume, record)| server.take_in(volume, record))?;
        // From here on an error drops the server, which stops and undoes all there is.
        server.launch_all()?;
        Ok(server)
    }

    /// Returns whether limits of memory wait for the copy of its data.
    pub fn is_loading(&self) -> bool {
        self.loads
    }

    fn goes_on(&self) -> bool {
        self.spec.if_not_permitted == IfNotPermitted::Continue
    }

    fn prepare(
        &mut self,
        work_dir: &Path,
        topology: &Topology,
        (ports, plans, ways): (Vec<u16>, Vec<Plan>, &[NetworkPlacement]),
    ) -> Result<(), LocalError> {
        self.prepare_storage(work_dir)?;
        let each = self.spec.processes_each() as usize;
        let go_on = self.goes_on();
        for (i, (port, plan)) in ports.into_iter().zip(plans).enumerate() {
            let number = i % each;
            let name = match self.spec.part(number as u32) {
                Part::Router => format!("mongos-{port}"),
                _ => format!("{}-{port}", self.spec.kind),
            };
            let base = match (&self.spec.data.path, &self.filesystem) {
                (Some(paths), None) => absolute(paths.of_process(i))?,
                _ => self.base.clone(),
            };
            let node = ServerNode {
                home: work_dir.join(&name),
                data: base.join(format!("{name}.data")),
                address: ways.get(i).map_or(self.spec.listens(), |way| way.address),
                port,
                instance: i / each,
                number,
                cores: plan.cpus.as_ref().map(Vec::len),
                config: None,
                name,
            };
            self.make_folder(&node.data)?;
            fs::create_dir_all(&node.home).map_err(|e| LocalError::failed_step(node.home.display(), e))?;
            let placed = prefix_or_less(&plan, topology, &self.machine, go_on, &mut self.notes)?;
            let prefix = ways.get(i).map_or_else(Vec::new, |way| way.prefix.clone());
            self.members.push(ServerProcess {
                node,
                plan,
                prefix: [prefix, placed].concat(),
                child: None,
                answering: None,
                running: Pid::default(),
                group: None,
                noted: None,
                command: String::new(),
                last: BTreeMap::new(),
                ended: None,
            });
        }
        Ok(())
    }

    fn prepare_storage(&mut self, work_dir: &Path) -> Result<(), LocalError> {
        let Some(image) = self.spec.data.image.clone() else { return Ok(()) };
        let folder = match &self.spec.data.path {
            Some(paths) => absolute(paths.of_process(0))?,
            None => work_dir.to_owned(),
        };
        let mark = self.journal.current_end();
        match mount_image(&self.machine, &image, &folder, work_dir, &mut self.journal) {
            Ok(mounted) => {
                let over: Vec<String> = mounted.devices.iter().map(|d| d.display().to_string()).collect();
                let kind = image.filesystem.name();
                let options = image.mount_options.join(",");
                self.filesystem =
                    Some(format!("{kind} ({options}) on {}, made for this run", over.join(", ")));
                self.notes.extend(mounted.notes);
                self.base = mounted.point;
                Ok(())
            }
            Err(error @ LocalError::NotPermitted { .. }) if self.goes_on() => {
                self.journal.undo_since(mark)?;
                self.notes.push(error.to_string());
                self.base = folder;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a folder that must not be there yet: whatever is in it would be removed at the end.
    fn make_folder(&mut self, folder: &Path) -> Result<(), LocalError> {
        if folder.exists() {
            let place = folder.display().to_string();
            let text = format!("{place}: is there already; dyno removes its data at the end");
            return Err(LocalError::refuse(place, text));
        }
        self.journal.note_action(Undo::Folder { path: folder.to_owned() })?;
        fs::create_dir(folder).map_err(|e| LocalError::failed_step(folder.display(), e))
    }

    /// Returns the URIs that clients connect to, one for each instance.
    pub fn client_uris(&self) -> Vec<String> {
        let each = self.spec.processes_each() as usize;
        let nodes: Vec<&ServerNode> = self.members.iter().map(|member| &member.node).collect();
        nodes.chunks(each).map(|nodes| server(self.spec.kind).uri(&self.spec, nodes)).collect()
    }

    /// Names and numbers of the processes that run.
    pub fn running_processes(&self) -> Vec<(String, u32)> {
        let running =
            self.members.iter().filter_map(|member| Some((member.node.name.clone(), member.server()?)));
        running.collect()
    }

    /// Names of the processes, and their numbers as they change.
    pub fn watched_processes(&self) -> Vec<(String, Pid)> {
        self.members.iter().map(|member| (member.node.name.clone(), member.running.clone())).collect()
    }

    /// The folders of the control groups, each with its process and controller (`redis-17001.memory`).
    pub fn cgroups(&self) -> Vec<(String, PathBuf)> {
        let mut all = Vec::new();
        for member in &self.members {
            let folders = member.group.iter().flat_map(ControlGroup::controller_folders);
            all.extend(
                folders.map(|(controller, path)| (format!("{}.{controller}", member.node.name), path)),
            );
        }
        all
    }

    /// The cores that the processes were given, which load threads should keep off; none if they may run anywhere.
    pub fn given_cores(&self) -> Vec<usize> {
        let mut cores: Vec<usize> =
            self.members.iter().filter_map(|m| m.plan.cpus.clone()).flatten().collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// The folders that hold the data.
    pub fn data_folders(&self) -> Vec<PathBuf> {
        self.members.iter().map(|member| member.node.data.clone()).collect()
    }

    /// Returns notes for the user, such as limits that could not be set.
    pub fn user_notes(&self) -> &[String] {
        &self.notes
    }

    /// Program, version, command lines, effective placement, limits and counters; of a process that has ended, its last.
    pub fn server_facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        facts.insert("program".to_owned(), self.program.display().to_string());
        facts.insert("version".to_owned(), self.version.clone());
        facts.insert("data".to_owned(), self.filesystem.clone().unwrap_or_else(|| "a folder".into()));
        if let Some(on) = self.spec.kind.server_rules().journals(&self.spec, &self.version) {
            facts.insert("journal".to_owned(), if on { "on" } else { "off" }.to_owned());
        }
        for (number, note) in self.notes.iter().enumerate() {
            facts.insert(format!("note.{}", number + 1), note.clone());
        }
        for member in &self.members {
            let mut own = member.last.clone();
            own.insert("command".into(), member.command.clone());
            own.insert("placement".into(), member.plan.describe_plan());
            own.extend(member.facts_now(&self.machine));
            facts.extend(own.into_iter().map(|(key, value)| (format!("{}.{key}", member.node.name), value)));
        }
        facts
    }

    /// Logs and configurations of all processes, each with the name of its process in front, as far as they fit into an answer.
    pub fn collect_files(&self) -> Vec<CollectedFile> {
        let (mut files, mut size) = (Vec::new(), 0);
        for member in &self.members {
            let entries = std::fs::read_dir(&member.node.home).into_iter().flatten().flatten();
            // Data lie in folders of their own.
            let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
            for path in plain.map(|entry| entry.path()) {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let found = CollectedFile::of_file(&format!("{}.{file}", member.node.name), &path);
                let Some(found) = found.ok().filter(|found| size + found.size() <= ANSWER_BYTES) else {
                    tracing::warn!(path = %path.display(), "a file of a server is not collected");
                    continue;
                };
                size += found.size();
                files.push(found);
            }
        }
        files
    }

    /// A process that has ended by itself, in words, with the last lines of its log.
    pub fn describe_death(&mut self) -> Option<String> {
        let died = self.members.iter_mut().find_map(ServerProcess::end_status);
        died.inspect(|reason| tracing::error!(reason, "a server has ended by itself"))
    }

    /// Writes everything to disk and drops the kernel's page cache.
    pub fn drop_caches(&mut self) -> Result<(), LocalError> {
        match storage::drop_caches(&self.machine) {
            Err(error @ LocalError::NotPermitted { .. }) if self.goes_on() => {
                let note = error.to_string();
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Stops the server, keeps a copy of its data, and starts it again; a copy that is there already is replaced.
    pub fn take_snapshot(&mut self) -> Result<(), LocalError> {
        self.may_copy()?;
        tracing::info!("the servers' data are copied: they stop and start again");
        self.end_all(true)?;
        for i in 0..self.members.len() {
            let (data, copy) = (self.members[i].node.data.clone(), copy_of(&self.members[i].node));
            if copy.exists() {
                fs::remove_dir_all(&copy).map_err(|e| LocalError::failed_step(copy.display(), e))?;
            } else {
                self.journal.note_action(Undo::Folder { path: copy.clone() })?;
            }
            storage::copy_folder(&self.machine, &data, &copy, self.control.as_deref())?;
        }
        self.loads = false;
        self.launch_all()
    }

    /// Starts the server again where limits of memory have waited for the end of a load.
    pub fn limit_memory(&mut self) -> Result<(), LocalError> {
        if !std::mem::take(&mut self.loads) {
            return Ok(());
        }
        self.end_all(true)?;
        self.launch_all()
    }

    /// Stops the server, puts the copy of its data back, and starts it again.
    pub fn restore_snapshot(&mut self) -> Result<(), LocalError> {
        self.may_copy()?;
        if let Some(member) = self.members.iter().find(|member| !copy_of(&member.node).exists()) {
            let text = format!("{}: there is no snapshot to be restored", member.node.name);
            return Err(LocalError::refuse("data.snapshot", text));
        }
        tracing::info!("the copy of the servers' data is put back: they stop and start again");
        self.end_all(false)?;
        for member in &self.members {
            let (data, copy) = (&member.node.data, copy_of(&member.node));
            storage::empty_folder(data)?;
            fs::remove_dir(data).map_err(|e| LocalError::failed_step(data.display(), e))?;
            storage::copy_folder(&self.machine, &copy, data, self.control.as_deref())?;
        }
        self.launch_all()
    }

    fn may_copy(&self) -> Result<(), LocalError> {
        match self.spec.data.snapshot {
            true => Ok(()),
            false => Err(LocalError::refuse("data.snapshot", "data.snapshot is not asked for")),
        }
    }

    /// Ends all processes and removes their groups; data stay. With `save` they write their data first.
    fn end_all(&mut self, save: bool) -> Result<(), LocalError> {
        for member in &mut self.members {
            member.last = member.facts_now(&self.machine);
            if let Some(pid) = member.pid() {
                tracing::info!(server = member.node.name, pid, save, "a server is stopped");
            }
        }
        // Shards say goodbye to their config server, and wait for it where it is gone.
        let ended = [false, true].map(|config| self.end_part(config, save));
        ended.into_iter().collect()
    }

    /// Ends the config servers, or all others.
    fn end_part(&mut self, config: bool, save: bool) -> Result<(), LocalError> {
        let patience = Duration::from_nanos(self.spec.stop_within.0);
        let (spec, own) = (&self.spec, |member: &ServerProcess| member.node.number as u32);
        let meant = |member: &ServerProcess| (spec.part(own(member)) == Part::Config) == config;
        // Replicas come last and go first: a primary waits for those that are connected.
        for member in self.members.iter().rev().filter(|member| meant(member)) {
            let Some(pid) = member.pid() else { continue };
            if !(save && server(self.spec.kind).save_and_end(&self.spec, &member.node)) {
                // A wrapper ends after its server.
                process::send_signal(member.server().unwrap_or(pid), Signal::TERM);
            }
        }
        let begun = Instant::now();
        let mut failures = Vec::new();
        for member in self.members.iter_mut().rev().filter(|member| meant(member)) {
            if let Some(child) = &member.child {
                // Not waited for yet: its number stays its own, and so does its group's, until what it has forked is gone too.
                let runs = || process::start_ticks(&self.machine, child.id()).is_some();
                while runs() && begun.elapsed() < patience {
                    std::thread::sleep(Duration::from_millis(5));
                }
                if runs() {
                    tracing::warn!(
                        server = member.node.name,
                        ?patience,
                        "a server did not end in time and is killed"
                    );
                    self.notes
                        .push(format!("{} did not end within {patience:?} and was killed", member.node.name));
                    if save {
                        failures
                            .push(format!("{} did not write its data within {patience:?}", member.node.name));
                    }
                }
            }
            failures.extend(
                member.clear(&mut self.journal).into_iter().filter_map(Result::err).map(|e| e.to_string()),
            );
        }
        if failures.is_empty() { Ok(()) } else { Err(LocalError::Failed(failures.join("; "))) }
    }

    /// Leaves it running. Its journal tells the process that stops it what there is to undo.
    pub fn leave_running(self) {
        std::mem::forget(self);
    }

    /// Ends everything and puts everything back; the facts as they were before.
    pub fn stop(mut self) -> Result<BTreeMap<String, String>, LocalError> {
        let ended = self.end_all(false);
        let undone = self.journal.undo_all();
        ended.and(undone)?;
        Ok(self.server_facts())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A step that fails here stays in the journal.
        let _ = self.end_all(false);
        let _ = self.journal.undo_all();
    }
}
