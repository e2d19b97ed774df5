//! Servers that outlive the command that has started them, on purpose: `persistent.json` in an experiment's directory says what
//! they are, and the journal below `persistent/` what there is to undo. Nothing else outlives a command.

use crate::dataset_key::{differs, key};
use crate::directory::{Directory, DirectoryError};
use crate::journal::Entry;
use crate::journal::{RunRecord, RunStatus};
use crate::one::{Failed, OneRun};
use crate::pods::{in_pods, on_standing};
use crate::point::Point;
use crate::provision::of_server;
use crate::provision::{DescribedServer, OwnedResources, ProvisionedTarget, SharedServers, secured};
use crate::run_context::RunContext;
use crate::volumes;
use crate::volumes::Volume;
use crate::{ExperimentContext, Watcher};
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::experiment::{Experiment, Plan};
use dyno_config::server::ServerSpec;
use dyno_databases::container::count_elsewhere;
use dyno_engine::Control;
use dyno_kubernetes::manifests::server::server_image;
use dyno_kubernetes::persistent_pods::PersistentPods;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use dyno_rundir::files;
use dyno_servers::needs::version_of;
use dyno_servers::server::Server;
use dyno_servers::server::faults::FaultPreparation;
use dyno_servers::volume::{Key, Loaded};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: &str = "standing.json";

/// A process, and when it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    name: String,
    pid: u32,
    started: u64,
}

/// Servers that stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistentServers {
    /// The experiment that has started them.
    #[serde(skip)]
    directory: PathBuf,
    /// As the experiment describes them.
    described: ServerSpec,
    /// The same with a password, where they have one.
    secured: ServerSpec,
    /// Key of the data that they hold, or will hold.
    key: Key,
    /// URIs, one for each instance.
    pub uris: Vec<String>,
    sockets: Vec<SocketAddr>,
    processes: Vec<Process>,
    cores: Vec<usize>,
    facts: BTreeMap<String, String>,
    /// When they were started, RFC 3339.
    pub since: String,
    /// Record of the loaded data, if anything is loaded.
    loaded: Option<Loaded>,
    /// Where they are in a cluster, if they are in one.
    #[serde(default)]
    pods: Option<(Kubernetes, PersistentPods)>,
}

impl PersistentServers {
    /// Reads the servers that an experiment has left running, if it has.
    pub fn of(directory: &Path) -> Result<Option<PersistentServers>, LocalError> {
        let path = directory.join(FILE);
        let text = match files::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|e| LocalError::failed(path.display(), e))?,
        };
        let read: PersistentServers =
            serde_json::from_slice(&text).map_err(|e| LocalError::failed(path.display(), e))?;
        Ok(Some(PersistentServers { directory: directory.to_owned(), ..read }))
    }

    fn write(&self) -> Result<(), LocalError> {
        let path = self.directory.join(FILE);
        let text = serde_json::to_vec_pretty(self).map_err(|e| LocalError::failed(path.display(), e))?;
        // There may be a password in it.
        dyno_localhost::trusted::write(&path, &text).map_err(|e| LocalError::failed(path.display(), e))
    }

    /// The StatefulSets of servers in pods.
    pub fn sets(&self) -> Vec<String> {
        self.pods.as_ref().map_or(Vec::new(), |(_, persistent)| persistent.sets.clone())
    }

    /// Processes that run, and all of them.
    pub fn processes_running(&self) -> (usize, usize) {
        (self.processes.iter().filter(|one| runs(one)).count(), self.processes.len())
    }

    /// When and how long they were loaded, seconds; `None` if they were not.
    pub fn loaded(&self) -> Option<(&str, f64)> {
        self.loaded.as_ref().map(|record| (record.loaded.as_str(), record.seconds))
    }

    /// A process that is no more, in words.
    pub(super) fn died(&self) -> Option<String> {
        let gone = self.processes.iter().find(|one| !runs(one))?;
        Some(format!("{} (process {}) no longer runs", gone.name, gone.pid))
    }

    pub(super) fn processes(&self) -> Vec<(String, u32)> {
        self.processes.iter().map(|one| (one.name.clone(), one.pid)).collect()
    }

    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = self.facts.clone();
        facts.insert("server.standing".into(), format!("since {}", self.since));
        if let Some(record) = &self.loaded {
            facts.insert("server.loaded".into(), record.loaded.clone());
            facts.insert("server.load_seconds".into(), format!("{:.3}", record.seconds));
            facts.insert("server.loaded_by".into(), record.run.clone());
        }
        facts
    }

    fn counted(&self) -> Result<u64, Failed> {
        Ok(count_elsewhere(&self.secured, &self.sockets).map_err(of_server)?)
    }

    /// A run's place on them; otherwise why a run cannot use them: they are other servers, hold other data, or not all of them.
    pub(super) fn target(
        self,
        spec: &Experiment,
        (work_dir, experiment_dir): (&Path, &Path),
        (machine, control): (&Machine, &Arc<Control>),
    ) -> Result<ProvisionedTarget, Failed> {
        self.check(spec, machine)?;
        match (&self.pods, &spec.kubernetes) {
            (None, None) => {
                self.is_whole(self.counted()?)?;
                let target = ProvisionedTarget::new(
                    self.uris.clone(),
                    self.cores.clone(),
                    true,
                    OwnedResources::Nothing,
                );
                Ok(ProvisionedTarget { persistent: Some(Box::new(self)), ..target })
            }
            (Some((there, persistent)), Some(asked)) if same(there, asked) => {
                let target = on_standing(
                    spec,
                    asked,
                    (&self.secured, persistent),
                    (work_dir, experiment_dir),
                    control,
                )?;
                let count = target.counted_in_pods(false, control);
                let whole = count.and_then(|count| self.is_whole(count.unwrap_or(0)));
                match whole {
                    Ok(()) => Ok(ProvisionedTarget { persistent: Some(Box::new(self)), ..target }),
                    Err(failed) => {
                        target.end(spec, &mut SharedServers::default())?;
                        Err(failed)
                    }
                }
            }
            _ => Err(Failed::other(format!("{}: its servers are somewhere else", self.directory.display()))),
        }
    }

    fn check(&self, spec: &Experiment, machine: &Machine) -> Result<(), Failed> {
        let of = self.directory.display();
        if let Some(died) = self.died() {
            return Err(Failed::unreachable(format!("{of}: {died}; `dyno bexhoma stop` clears up")));
        }
        let Some(server) = &spec.server else {
            return Err(Failed::other(format!(
                "{of}: its servers are of no use to an experiment without one"
            )));
        };
        if let Some(name) = other(&self.described, server) {
            return Err(Failed::other(format!("{of}: server.{name} was another one when it was started")));
        }
        let Some(loaded) = &self.loaded else { return Ok(()) };
        match differs(&loaded.key, &key(spec, server, &version(spec, server, machine)?)?) {
            Some(why) => Err(Failed::other(format!("{of}: other data are loaded: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns whether as much is there as was loaded; inserts of earlier runs are there, too.
    fn is_whole(&self, count: u64) -> Result<(), Failed> {
        match &self.loaded {
            Some(loaded) if count < loaded.count => {
                let of = self.directory.display();
                Err(Failed::other(format!("{of}: count: {} were loaded, {count} are there", loaded.count)))
            }
            _ => Ok(()),
        }
    }

    /// A run has loaded them.
    pub(super) fn filled(
        &mut self,
        spec: &Experiment,
        counted: Option<u64>,
        run: &Path,
        seconds: f64,
    ) -> Result<(), Failed> {
        let wanted = key(spec, &self.described, self.key.get("version").map_or("unknown", String::as_str))?;
        let count = counted.map_or_else(|| self.counted(), Ok)?;
        self.loaded = Some(volumes::record(wanted, count, run, seconds)?);
        Ok(self.write()?)
    }
}

fn runs(process: &Process) -> bool {
    process::started(&Machine::default(), process.pid) == Some(process.started)
}

/// Returns whether two ways lead to one namespace.
fn same(a: &Kubernetes, b: &Kubernetes) -> bool {
    (&a.kubeconfig, &a.context, &a.namespace) == (&b.kubeconfig, &b.context, &b.namespace)
}

/// Returns a server's version for a key: as its program says it, in pods its image.
fn version(spec: &Experiment, server: &ServerSpec, machine: &Machine) -> Result<String, Failed> {
    match &spec.kubernetes {
        Some(asked) => Ok(server_image(server, asked)),
        None => Ok(version_of(server, machine)?),
    }
}

/// The first key in which two descriptions differ.
fn other(a: &ServerSpec, b: &ServerSpec) -> Option<String> {
    let read = |spec: &ServerSpec| serde_json::to_value(spec).unwrap_or_default();
    let (a, b) = (read(a), read(b));
    let (a, b) = (a.as_object()?, b.as_object()?);
    a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key)).cloned()
}

/// Outcome of starting servers that outlive the command.
#[derive(Debug)]
pub struct LeftServers {
    /// They stand, and this is what they are.
    pub persistent: Option<PersistentServers>,
    /// Record of the load, if there was one.
    pub record: Option<RunRecord>,
}

/// Starts the servers of a plan's only cell, loads them where that is asked for, and leaves them.
pub fn leave(
    plan: &Plan,
    directory: &mut Directory,
    context: &ExperimentContext<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<LeftServers, DirectoryError> {
    let [cell] = plan.cells.as_slice() else {
        return Err(DirectoryError::Refused("servers of several cells cannot be left".into()));
    };
    if cell.spec.server.is_none() || !cell.spec.ssh.is_nothing() {
        let words = "only servers of this host and of Kubernetes can be left";
        return Err(DirectoryError::Refused(words.into()));
    }
    let point = Point::plain(1);
    let dir = directory.run_directory(cell.number, 1, "load");
    let shown = dir.strip_prefix(directory.path()).unwrap_or(&dir).display().to_string();
    let (experiment_dir, machine) = (directory.path().to_owned(), Machine::default());
    if load {
        directory.note(Entry::Run { cell: cell.number, repetition: 1, point: String::new(), dir: shown })?;
        watcher.run_begins(cell, &point, 0, 1);
    }
    let one = OneRun {
        cell,
        point: &point,
        dir,
        environment: context.environment,
        control: context.control.clone(),
        read_work: context.read_work,
        program: context.program,
        experiment_dir: &experiment_dir,
        machine: &machine,
    };
    let (record, summary) = one.concluded(stand(&one, load, watcher).map(|summary| (summary, None)));
    let failed = record.status != RunStatus::Complete;
    // A load alone has nothing that a verdict could be about.
    let words = if failed { record.words.clone() } else { String::new() };
    let record = RunRecord { words, trust: String::new(), ..record };
    // Data of a volume need no load, and so there is no run.
    if load && (failed || summary.is_some()) {
        directory.note(Entry::Ended(record.clone()))?;
        watcher.run_ended(cell, &record, summary.as_ref());
    }
    if failed && !load {
        return Err(DirectoryError::Refused(record.words));
    }
    let status = if failed { "interrupted" } else { "standing" };
    directory.note(Entry::End { status: status.into() })?;
    let persistent = PersistentServers::of(&experiment_dir)?;
    Ok(LeftServers { persistent, record: Some(record).filter(|_| failed || summary.is_some()) })
}

fn stand(
    one: &OneRun<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<Option<dyno_rundir::schema::Summary>, Failed> {
    let (spec, shown) = (&one.cell.spec, one.cell.shown().map_err(Failed::other)?);
    let logs = one.dir.with_extension("server");
    std::fs::create_dir_all(&logs).map_err(|e| LocalError::failed(logs.display(), e))?;
    let target = provision(spec, one, &logs)?;
    let mut context = RunContext::new(one, target, logs.join("data"));
    let made = match load {
        true => context.load_only(spec, &shown, &logs, watcher),
        false => Ok(None),
    };
    one.put_away(&logs);
    match made {
        Ok(summary) if !one.control.stopping() => context.leave(spec).map(|()| summary),
        made => {
            context.end(spec, &mut SharedServers::default())?;
            made.and(Err(Failed::Interrupted))
        }
    }
}

/// Servers that may outlive dyno.
fn provision(spec: &Experiment, one: &OneRun<'_>, logs: &Path) -> Result<ProvisionedTarget, Failed> {
    if let Some(asked) = &spec.kubernetes {
        return in_pods(spec, asked, logs, (one.experiment_dir, true), &one.control);
    }
    let Some(server) = &spec.server else { return Err(Failed::other("server: nothing is described")) };
    let work_dir = one.experiment_dir.join("standing");
    std::fs::create_dir_all(&work_dir).map_err(|e| LocalError::failed(work_dir.display(), e))?;
    let mut volume = Volume::here(spec, server, one.experiment_dir, one.machine)?;
    let own = secured(server)?;
    let preparation = FaultPreparation::default();
    let started = volumes::start(
        &own,
        (&preparation, true, false),
        &work_dir,
        (one.machine, &one.control),
        &mut volume,
    )
    .map_err(Failed::unreachable)?;
    Ok(ProvisionedTarget::of_server(server, own, started, volume))
}

impl ProvisionedTarget {
    /// A server that was started for being left.
    fn of_server(spec: &ServerSpec, own: ServerSpec, server: Server, volume: Option<Volume>) -> Self {
        let (uris, taken) = (server.uris(), server.cores());
        let preparation = FaultPreparation::default();
        let owned = DescribedServer { spec: spec.clone(), own, preparation, server, copied: false };
        ProvisionedTarget {
            volume,
            ..ProvisionedTarget::new(uris, taken, true, OwnedResources::Server(Box::new(owned)))
        }
    }

    /// Leaves its servers running, and says what they are and what `run` has loaded in so many seconds.
    pub(super) fn leave(
        self,
        spec: &Experiment,
        (experiment_dir, control): (&Path, &Control),
        (run, seconds): (&Path, Option<f64>),
    ) -> Result<(), Failed> {
        let of_volume = self.volume.as_ref().and_then(Volume::loaded_record).cloned();
        let counted = self.counted_in_pods(false, control)?;
        // Agents end before what they are in, and the way to pods before the pods.
        drop((self.beside, self.clients));
        match self.owned {
            OwnedResources::Server(owned) => {
                note(
                    (&owned.spec, &owned.own),
                    &owned.server,
                    spec,
                    (of_volume, run, seconds),
                    experiment_dir,
                )?;
                owned.server.leave();
                Ok(())
            }
            OwnedResources::Pods(Some(own), pods) => {
                let facts = pods.facts();
                let persistent = pods.leave().map_err(|e| LocalError::failed("kubernetes", e))?;
                note_pods(spec, (&own, persistent, facts), (of_volume, run, seconds, counted), experiment_dir)
            }
            _ => Err(Failed::other("there is nothing to leave")),
        }
    }
}

/// Writes down which servers are left running.
fn note(
    (described, secured): (&ServerSpec, &ServerSpec),
    server: &Server,
    spec: &Experiment,
    (of_volume, run, seconds): (Option<Loaded>, &Path, Option<f64>),
    experiment_dir: &Path,
) -> Result<(), Failed> {
    let machine = Machine::default();
    let version = server.facts().get("version").cloned().unwrap_or_default();
    let key = key(spec, described, &version)?;
    let loaded = match (of_volume, seconds) {
        (None, Some(seconds)) => {
            let count = server.counted().map_err(of_server)?;
            Some(volumes::record(key.clone(), count, run, seconds)?)
        }
        (loaded, _) => loaded,
    };
    let process = |(name, pid): (String, u32)| Process {
        started: process::started(&machine, pid).unwrap_or(0),
        name,
        pid,
    };
    let facts = server.facts().into_iter().map(|(key, value)| (format!("server.{key}"), value));
    let persistent = PersistentServers {
        directory: experiment_dir.to_owned(),
        described: described.clone(),
        secured: secured.clone(),
        key,
        uris: server.uris(),
        sockets: server.sockets(),
        processes: server.processes().into_iter().map(process).collect(),
        cores: server.cores(),
        facts: facts.collect(),
        since: jiff::Timestamp::now().to_string(),
        loaded,
        pods: None,
    };
    Ok(persistent.write()?)
}

/// The same of servers in pods.
fn note_pods(
    spec: &Experiment,
    (secured, persistent, facts): (&ServerSpec, PersistentPods, BTreeMap<String, String>),
    (of_volume, run, seconds, counted): (Option<Loaded>, &Path, Option<f64>, Option<u64>),
    experiment_dir: &Path,
) -> Result<(), Failed> {
    let (Some(described), Some(asked)) = (&spec.server, &spec.kubernetes) else {
        return Err(Failed::other("there is nothing to leave"));
    };
    let key = key(spec, described, &server_image(described, asked))?;
    let loaded = match (of_volume, seconds, counted) {
        (None, Some(seconds), Some(count)) => Some(volumes::record(key.clone(), count, run, seconds)?),
        (loaded, ..) => loaded,
    };
    let persistent = PersistentServers {
        directory: experiment_dir.to_owned(),
        described: described.clone(),
        secured: secured.clone(),
        key,
        uris: Vec::new(),
        sockets: Vec::new(),
        processes: Vec::new(),
        cores: Vec::new(),
        facts,
        since: jiff::Timestamp::now().to_string(),
        loaded,
        pods: Some((asked.clone(), persistent)),
    };
    Ok(persistent.write()?)
}

/// That servers no longer stand: whoever has ended them says so.
pub(super) fn forget(directory: &Path) -> std::io::Result<bool> {
    match std::fs::remove_file(directory.join(FILE)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
