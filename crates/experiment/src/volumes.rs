//! The volume of a run: found and judged before the servers start, counted once they run, filled after the load.

use crate::dataset_key::{Begin, decide, key};
use crate::experiment_error::{ExperimentError, of_server};
use crate::random::random;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::experiment::{Experiment, When};
use dyno_config::server::ServerSpec;
use dyno_config::server::data::VolumeSpec;
use dyno_engine::Control;
use dyno_hosts::kubernetes::kubectl::Kubectl;
use dyno_hosts::kubernetes::volumes as claims;
use dyno_hosts::remote::remote_agent::{RemoteAgent, RemoteServer};
use dyno_hosts::servers::preflight::version_of;
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use dyno_hosts::servers::server::{Beginning, Server, volume as folders};
use dyno_hosts::servers::volume::{FoundVolume, Loaded, VolumeKey, is_still};
use dyno_localhost::error::{Cause, LocalError};
use dyno_localhost::machine::Machine;
use dyno_localhost::trusted;
use dyno_rundir::files;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Note of an experiment about a volume: `volumes/NAME.json` in its directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeNote {
    /// The volume.
    pub name: String,
    /// The folder on this host, or the storage class.
    pub place: String,
    /// True if this experiment has loaded it.
    pub own: bool,
    /// Tells one load from the next.
    pub id: String,
    /// When the load ended, RFC 3339.
    pub loaded: String,
    /// Duration of the load, seconds.
    pub seconds: f64,
    /// Keys or documents.
    pub count: u64,
    /// Kind of server that has the data.
    pub server: String,
}

/// Where a volume is.
enum VolumePlace {
    Folder(PathBuf),
    /// One on each host of servers, in their order.
    Remote(Vec<PathBuf>),
    Claims(Kubectl, String),
}

/// A volume, and what a run begins with.
pub(super) struct Volume {
    asked: VolumeSpec,
    server: ServerSpec,
    wanted: VolumeKey,
    begin: Begin,
    at: VolumePlace,
    /// The experiment's directory.
    experiment_dir: PathBuf,
    /// Record of what this run has loaded.
    loaded: Option<Loaded>,
}

/// The record of what has been loaded.
pub(super) fn record(
    key: VolumeKey,
    count: u64,
    run: &Path,
    seconds: f64,
) -> Result<Loaded, ExperimentError> {
    Ok(Loaded {
        id: random(8)?,
        key,
        count,
        loaded: jiff::Timestamp::now().to_string(),
        seconds,
        run: run.display().to_string(),
        used: 0,
    })
}

fn failed(name: &str, why: impl Into<Cause>) -> ExperimentError {
    LocalError::failed_step(format!("volume {name}"), why).into()
}

impl Volume {
    /// That of a server of this host, if it has one.
    pub fn here(
        spec: &Experiment,
        server: &ServerSpec,
        experiment_dir: &Path,
        machine: &Machine,
    ) -> Result<Option<Volume>, ExperimentError> {
        let Some(asked) = &server.data.volume else { return Ok(None) };
        let path = match &server.data.path {
            Some(path) => path.of_process(0).to_owned(),
            None => own_folder(experiment_dir),
        };
        if server.data.path.is_none() {
            std::fs::create_dir_all(&path)
                .map_err(|e| failed(&asked.name, LocalError::failed_step(path.display(), e)))?;
        }
        let base = path.canonicalize();
        let base = base.map_err(|e| {
            failed(&asked.name, LocalError::failed_step(format!("server.data.path: {}", path.display()), e))
        })?;
        let folder = folders::volume_folder(&base, &asked.name);
        let version = version_of(server, machine)?;
        Volume::decided(
            spec,
            server,
            &version,
            folders::look_into(&folder),
            VolumePlace::Folder(folder),
            experiment_dir,
        )
        .map(Some)
    }

    /// That of a server in pods, if it has one.
    pub fn in_pods(
        spec: &Experiment,
        server: &ServerSpec,
        kubernetes: &Kubernetes,
        experiment_dir: &Path,
    ) -> Result<Option<Volume>, ExperimentError> {
        let Some(asked) = &server.data.volume else { return Ok(None) };
        let kubectl = Kubectl::new(kubernetes);
        let found = claims::look_at_volume(&kubectl, &asked.name)
            .map_err(|why| ExperimentError::unreachable(LocalError::failed_step("kubernetes", why)))?;
        let class = kubernetes.storage.as_ref().and_then(|storage| storage.class.clone());
        let at = VolumePlace::Claims(kubectl, class.unwrap_or_else(|| "default".into()));
        // The version that a server says it has is not known before it runs: the image stands for it.
        let image = dyno_hosts::kubernetes::manifests::server::server_image(server, kubernetes);
        Volume::decided(spec, server, &image, found, at, experiment_dir).map(Some)
    }

    /// That of servers of other hosts, if they have one: a folder on each, with the data of the same load in all of them.
    pub fn elsewhere(
        spec: &Experiment,
        server: &ServerSpec,
        hosts: &[&RemoteAgent],
        experiment_dir: &Path,
    ) -> Result<Option<Volume>, ExperimentError> {
        if server.data.volume.is_none() {
            return Ok(None);
        }
        let (mut folders, mut all, mut versions) = (Vec::new(), Vec::new(), BTreeSet::new());
        for host in hosts {
            let (folder, found, version) = host.look_at_volume(server)?;
            folders.push(folder);
            all.push(found);
            versions.insert(version);
        }
        let there = all.iter().all(|found| found.there);
        let mut records = all.into_iter().map(|found| found.record);
        let first = records.next().flatten();
        let mut count = first.as_ref().map_or(0, |record| record.count);
        let mut same = |one: Option<Loaded>| {
            count += one.as_ref().map_or(0, |one| one.count);
            one.map(|one| one.id) == first.as_ref().map(|first| first.id.clone())
        };
        let record = records.all(&mut same).then_some(()).and(first.clone());
        let found = FoundVolume { record: record.map(|record| Loaded { count, ..record }), there };
        let versions: Vec<String> = versions.into_iter().collect();
        Volume::decided(
            spec,
            server,
            &versions.join(", "),
            found,
            VolumePlace::Remote(folders),
            experiment_dir,
        )
        .map(Some)
    }

    fn decided(
        spec: &Experiment,
        server: &ServerSpec,
        version: &str,
        found: FoundVolume,
        at: VolumePlace,
        experiment_dir: &Path,
    ) -> Result<Volume, ExperimentError> {
        let Some(asked) = server.data.volume.clone() else { return Err(ExperimentError::other("no volume")) };
        let wanted = key(spec, server, version).map_err(|refused| failed(&asked.name, refused))?;
        let note = note(experiment_dir, &asked.name);
        let own = |record: &Loaded| note.as_ref().is_some_and(|note| note.own && note.id == record.id);
        let begin = decide(found, &wanted, asked.reuse, own);
        if let (Begin::Empty(why), When::Never) = (&begin, spec.phases.load.when) {
            return Err(failed(&asked.name, format!("{why}; phases.load.when: never")));
        }
        let server = server.clone();
        Ok(Volume {
            asked,
            server,
            wanted,
            begin,
            at,
            experiment_dir: experiment_dir.to_owned(),
            loaded: None,
        })
    }

    /// Returns whether the run begins with loaded data.
    pub fn is_full(&self) -> bool {
        matches!(self.begin, Begin::With(_))
    }

    /// The folder whose data the servers begin with, and which load they are of.
    fn source(&self) -> Option<(&Path, &str)> {
        match (&self.begin, &self.at) {
            (Begin::With(record), VolumePlace::Folder(folder)) => Some((folder, &record.id)),
            _ => None,
        }
    }

    /// The same on the host of this number.
    pub fn source_on(&self, host: usize) -> Option<(PathBuf, String)> {
        match (&self.begin, &self.at) {
            (Begin::With(record), VolumePlace::Remote(folders)) => {
                Some((folders.get(host)?.clone(), record.id.clone()))
            }
            _ => None,
        }
    }

    /// Begins without its data, for this reason.
    pub fn refuse(&mut self, why: String) {
        self.begin = Begin::Empty(why);
    }

    /// Returns what is wrong with the data, once the servers have been counted.
    pub fn miscounted(&self, count: u64) -> Option<String> {
        match &self.begin {
            Begin::With(record) if record.count != count => {
                Some(format!("count: {} were loaded, {count} are there", record.count))
            }
            _ => None,
        }
    }

    /// Makes room for a load: claims that are to be filled anew go, and a folder of the experiment's own. Others are
    /// replaced when their successor is whole.
    pub fn clear(&self, control: &Control) -> Result<(), ExperimentError> {
        match (&self.begin, &self.at) {
            (Begin::Empty(_), VolumePlace::Folder(folder)) if self.server.data.path.is_none() => {
                folders::remove_volume(folder).map_err(|e| failed(&self.asked.name, e))
            }
            (Begin::Empty(_), VolumePlace::Claims(kubectl, _)) => {
                claims::remove_volume(kubectl, &self.asked.name, control)
                    .map_err(|why| failed(&self.asked.name, why))
            }
            _ => Ok(()),
        }
    }

    /// Returns the record of the loaded data, of this run or of an earlier one.
    pub fn loaded_record(&self) -> Option<&Loaded> {
        match (&self.loaded, &self.begin) {
            (Some(record), _) => Some(record),
            (None, Begin::With(record)) => Some(record),
            _ => None,
        }
    }

    /// A load has ended on a server of this host, which keeps its data.
    pub fn fill_here(
        &mut self,
        server: &mut Server,
        run: &Path,
        seconds: f64,
    ) -> Result<(), ExperimentError> {
        let name = self.asked.name.clone();
        let broken = |e: LocalError| failed(&name, e);
        let VolumePlace::Folder(folder) = &self.at else { return Ok(()) };
        let record = record(self.wanted.clone(), server.count_records().map_err(broken)?, run, seconds)?;
        server.keep_copy(folder, &record).map_err(broken)?;
        let count = server.count_records().map_err(broken)?;
        if count != record.count {
            folders::remove_volume(folder).map_err(|e| failed(&name, e))?;
            let why = format!("{} were loaded, {count} are there now", record.count);
            return Err(failed(&name, why));
        }
        self.filled(record)
    }

    /// A load has ended on servers of other hosts, which keep their data there.
    pub fn fill_remote(
        &mut self,
        servers: &[RemoteServer],
        (run, seconds): (&Path, f64),
        control: &Control,
    ) -> Result<(), ExperimentError> {
        let VolumePlace::Remote(folders) = &self.at else { return Ok(()) };
        let mut all = record(self.wanted.clone(), 0, run, seconds)?;
        for (server, folder) in servers.iter().zip(folders) {
            let own = Loaded { count: server.count_records(control)?, ..all.clone() };
            server.keep_volume(folder, &own, control)?;
            all.count += own.count;
        }
        self.filled(all)
    }

    /// A load has ended on servers in pods, which have written their data to their claims.
    pub fn fill_claims(&mut self, count: u64, run: &Path, seconds: f64) -> Result<(), ExperimentError> {
        let VolumePlace::Claims(kubectl, _) = &self.at else { return Ok(()) };
        let record = record(self.wanted.clone(), count, run, seconds)?;
        claims::mark_loaded(kubectl, &self.asked.name, &record)
            .map_err(|why| failed(&self.asked.name, why))?;
        self.filled(record)
    }

    fn filled(&mut self, record: Loaded) -> Result<(), ExperimentError> {
        if self.is_full() {
            self.refuse("records that were looked for were missing".into());
        }
        self.loaded = Some(record);
        self.note()
    }

    /// The measured phase begins. Claims are what it works on: where a server writes there by itself, they say so.
    pub fn used(&mut self) -> Result<(), ExperimentError> {
        let writes = !is_still(&self.server) || self.server.kind.server_rules().writes_at_end();
        let VolumePlace::Claims(kubectl, _) = &self.at else { return Ok(()) };
        let record = match (&mut self.loaded, &mut self.begin) {
            (Some(record), _) => record,
            (None, Begin::With(record)) => &mut **record,
            _ => return Ok(()),
        };
        if !writes {
            return Ok(());
        }
        record.used += 1;
        claims::mark_loaded(kubectl, &self.asked.name, record).map_err(|why| failed(&self.asked.name, why))
    }

    /// Writes the experiment's note about it.
    pub fn note(&self) -> Result<(), ExperimentError> {
        let Some(record) = self.loaded_record() else { return Ok(()) };
        let before =
            note(&self.experiment_dir, &self.asked.name).is_some_and(|note| note.own && note.id == record.id);
        let note = VolumeNote {
            name: self.asked.name.clone(),
            place: match &self.at {
                VolumePlace::Folder(folder) => folder.display().to_string(),
                VolumePlace::Remote(folders) => folders
                    .first()
                    .map_or(String::new(), |folder| format!("{} on the servers' hosts", folder.display())),
                VolumePlace::Claims(_, class) => class.clone(),
            },
            own: self.loaded.is_some() || before,
            id: record.id.clone(),
            loaded: record.loaded.clone(),
            seconds: record.seconds,
            count: record.count,
            server: self.server.kind.to_string(),
        };
        let path = noted(&self.experiment_dir, &self.asked.name);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let text = serde_json::to_vec_pretty(&note).map_err(ExperimentError::other)?;
        folder.and_then(|()| trusted::write(&path, &text)).map_err(|e| failed(&note.name, e))
    }

    /// For the record of the run.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([("volume.name".to_owned(), self.asked.name.clone())]);
        let mut put = |key: &str, value: String| drop(facts.insert(format!("volume.{key}"), value));
        let record = match &self.begin {
            Begin::With(record) => {
                put("data", "reused".into());
                Some(&**record)
            }
            Begin::Empty(why) => {
                put("data", "loaded".into());
                put("why", why.clone());
                self.loaded.as_ref()
            }
        };
        if let Some(record) = record {
            put("loaded", record.loaded.clone());
            put("load_seconds", format!("{:.3}", record.seconds));
            put("count", record.count.to_string());
            put("loaded_by", record.run.clone());
            if record.used > 0 {
                put("used", format!("by {} measured phases since", record.used));
            }
        }
        facts
    }

    /// The same in a line.
    pub fn describe(&self) -> String {
        let name = &self.asked.name;
        match &self.begin {
            Begin::With(record) => {
                format!("{name}: {} keys or documents reused, loaded {}", record.count, record.loaded)
            }
            Begin::Empty(why) => format!("{name}: loaded anew: {why}"),
        }
    }
}

/// Starts a server of this host, with a volume's data if they are what the run would load: they are counted before they are
/// believed.
pub(super) fn start(
    server: &ServerSpec,
    (preparation, lasting, loads): (&FaultPreparation, bool, bool),
    work_dir: &Path,
    (machine, control): (&Machine, &Arc<Control>),
    volume: &mut Option<Volume>,
) -> Result<Server, LocalError> {
    let start = |volume: Option<(&Path, &str)>, loads: bool| {
        let begin = Beginning { preparation: preparation.clone(), volume, lasting, loads, ways: &[] };
        Server::start_with(server, &begin, work_dir, machine, Some(control.clone()))
    };
    let Some(volume) = volume.as_mut().filter(|volume| volume.is_full()) else {
        return start(None, loads).map_err(of_server);
    };
    let why = match start(volume.source(), loads) {
        Ok(started) => match started.count_records().map(|count| volume.miscounted(count)) {
            Ok(None) => return Ok(started),
            Ok(Some(why)) => started.stop().map(|_| why).map_err(of_server)?,
            Err(error) => return Err(of_server(error)),
        },
        Err(error) if control.is_stopping() => return Err(of_server(error)),
        Err(error) => format!("no server starts with its data: {error}"),
    };
    volume.refuse(why);
    // It is loaded after all, which a limit of memory is not about.
    start(None, loads || !is_still(server)).map_err(of_server)
}

/// Where the notes about volumes are, and volumes without a path of their own.
fn own_folder(experiment_dir: &Path) -> PathBuf {
    experiment_dir.join("volumes")
}

/// Removes the volumes that lie in the experiment's directory: it needs them no more.
pub(super) fn remove_own(experiment_dir: &Path) {
    for entry in std::fs::read_dir(own_folder(experiment_dir)).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "volume") {
            // An entry that cannot be removed does no harm.
            let _ = folders::remove_volume(&entry.path());
        }
    }
}

fn noted(experiment_dir: &Path, name: &str) -> PathBuf {
    own_folder(experiment_dir).join(format!("{name}.json"))
}

fn note(experiment_dir: &Path, name: &str) -> Option<VolumeNote> {
    serde_json::from_slice(&files::read(&noted(experiment_dir, name)).ok()?).ok()
}

/// The volumes that an experiment has worked with.
pub fn volumes(directory: &Path) -> Vec<VolumeNote> {
    let entries = std::fs::read_dir(own_folder(directory)).into_iter().flatten().flatten();
    let mut all: Vec<VolumeNote> =
        entries.filter_map(|entry| serde_json::from_slice(&files::read(&entry.path()).ok()?).ok()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_links_among_notes_are_neither_waited_for_nor_followed() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("volumes");
        std::fs::create_dir(&notes).unwrap();
        let text = r#"{"name":"a","place":"","own":true,"id":"i","loaded":"l","seconds":1.0,"count":1,"server":"redis"}"#;
        let _ = serde_json::from_str::<VolumeNote>(text).unwrap();
        std::fs::write(notes.join("a.json"), text).unwrap();
        std::os::unix::fs::symlink(notes.join("a.json"), notes.join("b.json")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, notes.join("c.json"), rustix::fs::Mode::RUSR).unwrap();
        let found: Vec<String> = volumes(folder.path()).into_iter().map(|note| note.name).collect();
        assert_eq!(found, ["a"]);
        assert!(note(folder.path(), "a").is_some());
        assert!(note(folder.path(), "b").is_none() && note(folder.path(), "c").is_none());
    }
}
