//! Servers that outlive the command that has started them, on purpose: `standing.json` in an experiment's directory says what
//! they are, and the journal below `standing/` what there is to undo. Nothing else outlives a command.

use super::bench::Bench;
use super::directory::{Directory, DirectoryError};
use super::journal::Entry;
use super::one::{Failed, OneRun};
use super::place::{Place, Shared, secured};
use super::strategy::Point;
use super::volumes::{self, Volume};
use super::{Means, RunRecord, RunStatus, Watcher};
use crate::local::{Machine, count_elsewhere, process, version_of};
use crate::volume::{Key, Loaded, differs, key};
use dyno_plan::experiment::{Experiment, Plan};
use dyno_plan::server::{Limits, ServerSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

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
pub struct Standing {
    /// The experiment that has started them.
    #[serde(skip)]
    directory: PathBuf,
    /// As the experiment describes them.
    described: ServerSpec,
    /// The same with a password, where they have one.
    secured: ServerSpec,
    /// What they hold, or will.
    key: Key,
    /// URIs, one for each instance.
    pub uris: Vec<String>,
    sockets: Vec<SocketAddr>,
    processes: Vec<Process>,
    cores: Vec<usize>,
    facts: BTreeMap<String, String>,
    /// When they were started, RFC 3339.
    pub since: String,
    /// What is loaded, if anything is.
    loaded: Option<Loaded>,
}

impl Standing {
    /// Those that an experiment has left, if it has.
    pub fn of(directory: &Path) -> Result<Option<Standing>, String> {
        let path = directory.join(FILE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|e| format!("{}: {e}", path.display()))?,
        };
        let read: Standing = serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Some(Standing { directory: directory.to_owned(), ..read }))
    }

    fn write(&self) -> Result<(), String> {
        let path = self.directory.join(FILE);
        let text = serde_json::to_vec_pretty(self).map_err(|e| e.to_string())?;
        // There may be a password in it.
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&text)).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// What runs, in words: kind and number of processes.
    pub fn words(&self) -> String {
        let there = self.processes.iter().filter(|one| runs(one)).count();
        format!("{there} of {} processes of {} run", self.processes.len(), self.described.kind)
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

    pub(super) fn cores(&self) -> Vec<usize> {
        self.cores.clone()
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
        Ok(count_elsewhere(&self.secured, &self.sockets).map_err(|e| format!("server: {e}"))?)
    }

    /// Says why a run cannot use them: they are other servers, hold other data, or not all of them.
    pub(super) fn check(&self, spec: &Experiment, machine: &Machine) -> Result<(), Failed> {
        let of = self.directory.display();
        if let Some(died) = self.died() {
            return Err(Failed::Unreachable(format!("{of}: {died}; `dyno bexhoma stop` clears up")));
        }
        let Some(server) = &spec.server else {
            return Err(Failed::Words(format!(
                "{of}: its servers are of no use to an experiment without one"
            )));
        };
        if let Some(name) = other(&self.described, server) {
            return Err(Failed::Words(format!("{of}: server.{name} was another one when it was started")));
        }
        let Some(loaded) = &self.loaded else { return Ok(()) };
        let wanted = key(spec, server, &version_of(server, machine).map_err(|e| e.to_string())?)?;
        if let Some(why) = differs(&loaded.key, &wanted) {
            return Err(Failed::Words(format!("{of}: other data are loaded: {why}")));
        }
        match self.counted()? {
            // Inserts of earlier runs are there, too.
            count if count >= loaded.count => Ok(()),
            count => {
                Err(Failed::Words(format!("{of}: count: {} were loaded, {count} are there", loaded.count)))
            }
        }
    }

    /// A run has loaded them.
    pub(super) fn filled(&mut self, spec: &Experiment, run: &Path, seconds: f64) -> Result<(), Failed> {
        let server = &self.described;
        let wanted = key(spec, server, self.key.get("version").map_or("unknown", String::as_str))?;
        self.loaded = Some(volumes::record(wanted, self.counted()?, run, seconds)?);
        Ok(self.write()?)
    }
}

fn runs(process: &Process) -> bool {
    process::started(&Machine::default(), process.pid) == Some(process.started)
}

/// The first key in which two descriptions differ.
fn other(a: &ServerSpec, b: &ServerSpec) -> Option<String> {
    let read = |spec: &ServerSpec| serde_json::to_value(spec).unwrap_or_default();
    let (a, b) = (read(a), read(b));
    let (a, b) = (a.as_object()?, b.as_object()?);
    a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key)).cloned()
}

/// What has become of servers that are to stand.
#[derive(Debug)]
pub struct Left {
    /// They stand, and this is what they are.
    pub standing: Option<Standing>,
    /// What came of the load, where there was one.
    pub record: Option<RunRecord>,
}

/// Starts the servers of a plan's only cell, loads them where that is asked for, and leaves them.
pub fn leave(
    plan: &Plan,
    directory: &mut Directory,
    means: &Means<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<Left, DirectoryError> {
    let [cell] = plan.cells.as_slice() else {
        return Err(DirectoryError::Refused("servers of several cells cannot be left".into()));
    };
    if cell.spec.server.is_none() || cell.spec.kubernetes.is_some() || !cell.spec.ssh.is_nothing() {
        return Err(DirectoryError::Refused("only servers of this host can be left".into()));
    }
    let point = Point::plain(1);
    let dir = directory.run_directory(cell.number, 1, "load");
    let shown = dir.strip_prefix(directory.path()).unwrap_or(&dir).display().to_string();
    let (below, machine) = (directory.path().to_owned(), Machine::default());
    if load {
        directory.note(Entry::Run { cell: cell.number, repetition: 1, point: String::new(), dir: shown })?;
        watcher.run_begins(cell, &point, 0, 1);
    }
    let one = OneRun {
        cell,
        point: &point,
        dir,
        environment: means.environment,
        changes: means.changes,
        control: means.control.clone(),
        read_work: means.read_work,
        program: means.program,
        below: &below,
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
    let standing = Standing::of(&below).map_err(DirectoryError::Refused)?;
    Ok(Left { standing, record: Some(record).filter(|_| failed || summary.is_some()) })
}

fn stand(
    one: &OneRun<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<Option<dyno_rundir::schema::Summary>, Failed> {
    let spec = &one.cell.spec;
    let logs = one.dir.with_extension("server");
    std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let place = provide(spec, one)?;
    let mut bench = Bench::new(one, place, logs.join("data"));
    let made = match load {
        true => bench.load_only(spec, &one.cell.tree, &logs, watcher),
        false => Ok(None),
    };
    one.put_away(&logs);
    match made {
        Ok(summary) if !one.control.stopping() => bench.leave(spec).map(|()| summary),
        made => {
            bench.end(spec, &mut Shared::default())?;
            made.and(Err(Failed::Interrupted))
        }
    }
}

/// Servers that may outlive dyno.
fn provide(spec: &Experiment, one: &OneRun<'_>) -> Result<Place, Failed> {
    let Some(server) = &spec.server else { return Err(Failed::Words("server: nothing is described".into())) };
    let home = one.below.join("standing");
    std::fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let mut volume = Volume::here(spec, server, one.below, one.machine)?;
    let own = secured(server)?;
    let room = Limits::default();
    let started = volumes::start(&own, (&room, true), &home, (one.machine, &one.control), &mut volume)
        .map_err(Failed::Unreachable)?;
    Ok(Place::of_server(server, own, started, volume))
}

/// What servers that are left are, for those who come later.
pub(super) fn note(
    (described, secured): (&ServerSpec, &ServerSpec),
    server: &crate::local::Server,
    spec: &Experiment,
    (of_volume, run, seconds): (Option<Loaded>, &Path, Option<f64>),
    below: &Path,
) -> Result<(), Failed> {
    let machine = Machine::default();
    let version = server.facts().get("version").cloned().unwrap_or_default();
    let key = key(spec, described, &version)?;
    let loaded = match (of_volume, seconds) {
        (None, Some(seconds)) => {
            let count = server.counted().map_err(|e| format!("server: {e}"))?;
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
    let standing = Standing {
        directory: below.to_owned(),
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
    };
    Ok(standing.write()?)
}

/// That servers no longer stand: whoever has ended them says so.
pub(super) fn forget(directory: &Path) -> std::io::Result<bool> {
    match std::fs::remove_file(directory.join(FILE)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
