//! Volumes as they are now: folders of this host, claims of a cluster; servers that run. For people who ask what there is.

use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_hosts::kubernetes::kubectl::Kubectl;
use dyno_hosts::kubernetes::kubectl::KubectlError;
use dyno_hosts::kubernetes::volumes as claims;
use dyno_hosts::servers::server::volume as folders;
use dyno_hosts::servers::volume::{Loaded, VolumePart};
use dyno_localhost::machine::Machine;
use dyno_localhost::undo;
use rustix::fs::statvfs;
use std::path::Path;

/// A volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeInfo {
    /// Name.
    pub name: String,
    /// Storage class, or `folder`.
    pub class: String,
    /// Kind of server whose data it has, if anything is loaded.
    pub server: Option<String>,
    /// True if it has the data of a cluster, or of a primary with copies.
    pub cluster: bool,
    /// Duration of the load, seconds; `None` if none has come to its end.
    pub seconds: Option<f64>,
    /// The run that has loaded it: its directory.
    pub run: Option<String>,
    /// Parts.
    pub parts: Vec<VolumePart>,
}

fn volume_info(name: &str, class: String, record: Option<Loaded>, parts: Vec<VolumePart>) -> VolumeInfo {
    let key = |name: &str| record.as_ref().and_then(|record| record.key.get(name).cloned());
    VolumeInfo {
        name: name.to_owned(),
        class,
        server: key("server"),
        cluster: key("topology").is_some_and(|topology| topology == "cluster" || topology == "replication"),
        seconds: record.as_ref().map(|record| record.seconds),
        run: record.map(|record| record.run),
        parts,
    }
}

/// Counts the running servers that were started in this folder.
pub fn servers_running_in(work_dir: &Path) -> usize {
    undo::count_running(&work_dir.join(undo::NAME), &Machine::default())
}

/// Volumes in a folder of this host, by name.
pub fn volumes_in(folder: &Path) -> Vec<VolumeInfo> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<VolumeInfo> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().strip_suffix(".volume")?.to_owned();
            let volume = entry.path();
            let mut parts: Vec<VolumePart> = std::fs::read_dir(&volume)
                .ok()?
                .flatten()
                .filter_map(|part| {
                    let own = part.file_name().to_string_lossy().into_owned();
                    let number = own.strip_prefix("data-")?;
                    let size = statvfs(part.path()).ok().map(|about| about.f_blocks * about.f_frsize);
                    let used = crate::dataset_cache::bytes_below(&part.path());
                    let name = format!("{name}-{number}");
                    Some(VolumePart { name, asked: String::new(), status: "Present".into(), size, used })
                })
                .collect();
            parts.sort_by(|a, b| a.name.cmp(&b.name));
            Some(volume_info(&name, "folder".into(), folders::look_into(&volume).record, parts))
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Volumes of a namespace, by name.
///
/// # Errors
/// The cluster does not say.
pub fn volumes_of_cluster(asked: &Kubernetes) -> Result<Vec<VolumeInfo>, KubectlError> {
    let mut all: Vec<VolumeInfo> = Vec::new();
    for (name, class, record, part) in claims::list_volumes(&Kubectl::new(asked))? {
        match all.iter_mut().find(|one| one.name == name) {
            Some(one) => one.parts.push(part),
            None => all.push(volume_info(&name, class, record, vec![part])),
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}
