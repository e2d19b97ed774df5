//! Servers that outlive the command that has started them, on purpose: `standing.json` in an experiment's directory says what
//! they are, and the journal below `standing/` what there is to undo. Nothing else outlives a command.

use crate::dataset_key::{differs, key};
use crate::experiment_error::{ExperimentError, of_server};
use crate::volumes;
use dyno_config::experiment::Experiment;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::server::ServerSpec;
use dyno_databases::container::count_elsewhere;
use dyno_hosts::kubernetes::manifests::server::server_image;
use dyno_hosts::kubernetes::persistent_pods::PersistentPods;
use dyno_hosts::servers::preflight::version_of;
use dyno_hosts::servers::volume::{Loaded, VolumeKey};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use dyno_rundir::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FILE: &str = "standing.json";

/// Returns whether an experiment has left servers running, by its directory.
pub(crate) fn stand_in(directory: &Path) -> bool {
    directory.join(FILE).symlink_metadata().is_ok()
}

/// A process, and when it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedProcess {
    pub name: String,
    pub pid: u32,
    pub started: u64,
}

/// Servers that stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistentServers {
    /// The experiment that has started them.
    #[serde(skip)]
    pub(super) directory: PathBuf,
    /// As the experiment describes them.
    pub(super) described: ServerSpec,
    /// The same with a password, where they have one.
    pub(super) secured: ServerSpec,
    /// Key of the data that they hold, or will hold.
    pub(super) key: VolumeKey,
    /// URIs, one for each instance.
    pub uris: Vec<String>,
    pub(super) sockets: Vec<SocketAddr>,
    pub(super) processes: Vec<StartedProcess>,
    pub(super) cores: Vec<usize>,
    pub(super) facts: BTreeMap<String, String>,
    /// When they were started, RFC 3339.
    pub since: String,
    /// Record of the loaded data, if anything is loaded.
    pub(super) loaded: Option<Loaded>,
    /// Where they are in a cluster, if they are in one.
    #[serde(default)]
    pub(super) pods: Option<(Kubernetes, PersistentPods)>,
}

impl PersistentServers {
    /// Reads the servers that an experiment has left running, if it has.
    pub fn of(directory: &Path) -> Result<Option<PersistentServers>, LocalError> {
        let path = directory.join(FILE);
        let text = match files::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|e| LocalError::failed_step(path.display(), e))?,
        };
        let read: PersistentServers =
            serde_json::from_slice(&text).map_err(|e| LocalError::failed_step(path.display(), e))?;
        Ok(Some(PersistentServers { directory: directory.to_owned(), ..read }))
    }

    pub(super) fn write(&self) -> Result<(), LocalError> {
        let path = self.directory.join(FILE);
        let text = serde_json::to_vec_pretty(self).map_err(|e| LocalError::failed_step(path.display(), e))?;
        // There may be a password in it.
        dyno_localhost::trusted::write(&path, &text).map_err(|e| LocalError::failed_step(path.display(), e))
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

    pub(super) fn counted(&self) -> Result<u64, ExperimentError> {
        Ok(count_elsewhere(&self.secured, &self.sockets).map_err(of_server)?)
    }

    pub(super) fn check(&self, spec: &Experiment, machine: &Machine) -> Result<(), ExperimentError> {
        let of = self.directory.display();
        if let Some(died) = self.died() {
            return Err(ExperimentError::unreachable(format!("{of}: {died}; `dyno bexhoma stop` clears up")));
        }
        let Some(server) = &spec.server else {
            return Err(ExperimentError::other(format!(
                "{of}: its servers are of no use to an experiment without one"
            )));
        };
        if let Some(name) = other(&self.described, server) {
            return Err(ExperimentError::other(format!(
                "{of}: server.{name} was another one when it was started"
            )));
        }
        let Some(loaded) = &self.loaded else { return Ok(()) };
        match differs(&loaded.key, &key(spec, server, &version(spec, server, machine)?)?) {
            Some(why) => Err(ExperimentError::other(format!("{of}: other data are loaded: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns whether as much is there as was loaded; inserts of earlier runs are there, too.
    pub(super) fn is_whole(&self, count: u64) -> Result<(), ExperimentError> {
        match &self.loaded {
            Some(loaded) if count < loaded.count => {
                let of = self.directory.display();
                Err(ExperimentError::other(format!(
                    "{of}: count: {} were loaded, {count} are there",
                    loaded.count
                )))
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
    ) -> Result<(), ExperimentError> {
        let wanted = key(spec, &self.described, self.key.get("version").map_or("unknown", String::as_str))?;
        let count = counted.map_or_else(|| self.counted(), Ok)?;
        self.loaded = Some(volumes::record(wanted, count, run, seconds)?);
        Ok(self.write()?)
    }
}

fn runs(process: &StartedProcess) -> bool {
    process::start_ticks(&Machine::default(), process.pid) == Some(process.started)
}

/// Returns whether two ways lead to one namespace.
pub(super) fn same(a: &Kubernetes, b: &Kubernetes) -> bool {
    (&a.kubeconfig, &a.context, &a.namespace) == (&b.kubeconfig, &b.context, &b.namespace)
}

/// Returns a server's version for a key: as its program says it, in pods its image.
fn version(spec: &Experiment, server: &ServerSpec, machine: &Machine) -> Result<String, ExperimentError> {
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

/// Removes the record of persistent servers; the caller has ended them.
pub(super) fn forget(directory: &Path) -> std::io::Result<bool> {
    match std::fs::remove_file(directory.join(FILE)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
