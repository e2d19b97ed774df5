//! Control groups: found in either version, made for one process, entered by the process itself before it becomes the
//! server, read back, removed.
//!
//! A group holds from the server's first page on, since nothing is ever moved into it: memory that a process has touched
//! before it is moved stays charged to where it came from.

pub mod lines;
pub(crate) mod removal;

use crate::cgroup::lines::{LimitLine, refused, split_lines, unified_lines};
use crate::error::LocalError;
use crate::machine::Machine;
use crate::undo::{Journal, Undo};
use dyno_config::server::placement::Limits;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Interface of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy.
    V2,
}

/// Controllers by the names of version 2.
const CONTROLLERS: [(&str, &str); 3] = [("memory", "memory"), ("cpu", "cpu"), ("io", "blkio")];

/// Control groups that this machine offers: for each controller its version and the folder below which groups may be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct AvailableControllers {
    controllers: BTreeMap<&'static str, (Version, PathBuf)>,
}

impl AvailableControllers {
    /// Finds the hierarchies in `mountinfo`, and where this process is in them.
    pub(crate) fn detect(machine: &Machine) -> Result<Self, LocalError> {
        let own = machine.proc.join("self/cgroup");
        let own = fs::read_to_string(&own).map_err(|e| LocalError::failed_step(own.display(), e))?;
        let mut offer = AvailableControllers::default();
        for mount in machine.mounts()? {
            match mount.kind.as_str() {
                "cgroup2" => {
                    let has = fs::read_to_string(mount.point.join("cgroup.controllers")).unwrap_or_default();
                    let parent = own_folder(&mount.point, &mount.root, machine, &own, |list| list.is_empty());
                    let parent = unified_parent(&mount.point, parent, machine);
                    for (name, _) in
                        CONTROLLERS.iter().filter(|(name, _)| has.split_whitespace().any(|c| c == *name))
                    {
                        offer.controllers.insert(name, (Version::V2, parent.clone()));
                    }
                }
                "cgroup" => {
                    for (name, old) in CONTROLLERS {
                        if mount.options.iter().any(|option| option == old)
                            && !offer.controllers.contains_key(name)
                        {
                            let inside = |list: &str| list.split(',').any(|c| c == old);
                            let parent = own_folder(&mount.point, &mount.root, machine, &own, inside);
                            offer.controllers.insert(name, (Version::V1, parent));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(offer)
    }
}

/// The folder of this process in a hierarchy whose `root` is shown at `point`.
fn own_folder(point: &Path, root: &str, machine: &Machine, own: &str, is: impl Fn(&str) -> bool) -> PathBuf {
    let line = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (list, path) = (parts.next()?, parts.next()?);
        is(list).then_some(path)
    });
    let own = line.unwrap_or("/");
    let own = machine.cgroup_parent.as_ref().and_then(|path| path.to_str()).unwrap_or(own);
    // Inside a container the hierarchy is shown from the container's own group on.
    let inside = if root == "/" { own } else { own.strip_prefix(root).unwrap_or("") };
    point.join(inside.trim_start_matches('/'))
}

/// A group of version 2 that has processes cannot have limited groups below it, save the root: beside it, then.
fn unified_parent(point: &Path, own: PathBuf, machine: &Machine) -> PathBuf {
    if own == point || machine.cgroup_parent.is_some() {
        return own;
    }
    own.parent().map_or(own.clone(), Path::to_owned)
}

/// A group for one process.
#[derive(Debug)]
pub struct ControlGroup {
    /// Folders by version: one of version 2, or one for each controller of version 1.
    folders: Vec<(Version, &'static str, PathBuf)>,
    /// Entries of the groups in the journal.
    undo: Vec<u64>,
    /// True if writes are limited.
    writes: bool,
}

impl ControlGroup {
    /// Makes a group and sets its limits; `devices` are `major:minor` of the disks below the data.
    pub fn make_group(
        machine: &Machine,
        name: &str,
        limits: &Limits,
        devices: &[String],
        journal: &mut Journal,
    ) -> Result<Self, LocalError> {
        let offer = AvailableControllers::detect(machine)?;
        let mut group = ControlGroup { folders: Vec::new(), undo: Vec::new(), writes: false };
        group.writes = limits.write_bytes_per_s.is_some() || limits.write_iops.is_some();
        let wanted = wanted(limits, devices)?;
        let made = wanted.iter().try_for_each(|controller| group.add(&offer, controller, name, journal));
        let made = made.and_then(|()| group.set(limits, devices, swaps(machine)));
        match made {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove_group(journal)?;
                Err(error)
            }
        }
    }

    fn add(
        &mut self,
        offer: &AvailableControllers,
        controller: &'static str,
        name: &str,
        journal: &mut Journal,
    ) -> Result<(), LocalError> {
        let Some((version, parent)) = offer.controllers.get(controller) else {
            return Err(refused(controller, "this system has no such cgroup controller"));
        };
        if !parent.is_dir() {
            return Err(refused(controller, format!("{}: there is no such group", parent.display())));
        }
        let above = parent.join("dyno");
        if !above.is_dir() {
            self.make_folder(&above, controller, journal)?;
        }
        if *version == Version::V2 {
            // Must be on from the parent's level down to ours.
            for folder in [parent, &above] {
                let switch = folder.join("cgroup.subtree_control");
                let on = fs::read_to_string(&switch).unwrap_or_default();
                if !on.split_whitespace().any(|c| c == controller) {
                    fs::write(&switch, format!("+{controller}"))
                        .map_err(|e| refused(controller, format!("{}: {e}", switch.display())))?;
                }
            }
        }
        let folder = above.join(name);
        if self.folders.iter().any(|(_, _, known)| *known == folder) {
            return Ok(());
        }
        self.make_folder(&folder, controller, journal)?;
        self.folders.push((*version, controller, folder));
        Ok(())
    }

    fn make_folder(
        &mut self,
        folder: &Path,
        controller: &str,
        journal: &mut Journal,
    ) -> Result<(), LocalError> {
        if folder.is_dir() && fs::remove_dir(folder).is_err() {
            return Err(refused(controller, format!("{}: is in use", folder.display())));
        }
        self.undo.push(journal.note_action(Undo::Cgroup { path: folder.to_owned() })?);
        match fs::create_dir(folder) {
            // Another run of dyno was quicker with the folder above the groups.
            Err(e) if folder.ends_with("dyno") && e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(refused(controller, format!("{}: {e}", folder.display()))),
            Ok(()) => Ok(()),
        }
    }

    fn set(&self, limits: &Limits, devices: &[String], swaps: bool) -> Result<(), LocalError> {
        self.lines(limits, devices, swaps).iter().try_for_each(LimitLine::write)
    }

    fn lines(&self, limits: &Limits, devices: &[String], swaps: bool) -> Vec<LimitLine> {
        let of = |(version, controller, folder): &(Version, &'static str, PathBuf)| {
            let lines = match version {
                Version::V2 => unified_lines(limits, devices),
                Version::V1 => split_lines(limits, devices, controller, swaps),
            };
            let line = |(file, text, needed): (String, String, bool)| LimitLine {
                path: folder.join(&file),
                file,
                text,
                needed,
            };
            lines.into_iter().map(line).collect::<Vec<_>>()
        };
        self.folders.iter().flat_map(of).collect()
    }

    /// Sets limits anew; those that are not named stay. All or none: where one is refused, those before it go back to `usual`.
    pub fn set_limits(
        &self,
        machine: &Machine,
        limits: &Limits,
        usual: &Limits,
        devices: &[String],
    ) -> Result<(), LocalError> {
        let swaps = swaps(machine);
        let lines = self.lines(limits, devices, swaps);
        let Err((refused, written)) = lines::write_all(&lines.iter().collect::<Vec<_>>()) else {
            return Ok(());
        };
        let usual = self.lines(usual, devices, swaps);
        let back = usual.iter().filter(|one| written.iter().any(|done| done.is_like(one)));
        match lines::write_all(&back.collect::<Vec<_>>()) {
            Ok(()) => Err(refused),
            Err((stays, _)) => Err(LocalError::failed_step(refused, stays)),
        }
    }

    /// The files into which a process writes its number to enter.
    pub fn entry_files(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|(_, _, folder)| folder.join("cgroup.procs")).collect()
    }

    /// Folders, by controller (`unified` for version 2).
    pub fn controller_folders(&self) -> Vec<(String, PathBuf)> {
        let name = |version: Version, controller: &str| match version {
            Version::V1 => controller.to_owned(),
            Version::V2 => "unified".to_owned(),
        };
        self.folders
            .iter()
            .map(|(version, controller, path)| (name(*version, controller), path.clone()))
            .collect()
    }

    /// Limits as the kernel has them, and its counters.
    pub fn limit_facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        for (version, controller, folder) in &self.folders {
            facts.insert(format!("cgroup.{controller}"), format!("{} ({version:?})", folder.display()));
            if self.writes && (*version, *controller) == (Version::V1, "io") {
                let message =
                    "hold for direct I/O only: cgroup v1 does not see who wrote a page of the cache";
                facts.insert("limits.writes".into(), message.into());
            }
            let files: &[&str] = match (version, *controller) {
                (Version::V2, _) => &[
                    "memory.max",
                    "memory.swap.max",
                    "memory.current",
                    "memory.peak",
                    "memory.events",
                    "memory.stat",
                    "cpu.max",
                    "cpu.stat",
                    "io.max",
                    "io.stat",
                ],
                (Version::V1, "memory") => &[
                    "memory.limit_in_bytes",
                    "memory.memsw.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "memory.max_usage_in_bytes",
                    "memory.failcnt",
                    "memory.memsw.failcnt",
                    "memory.oom_control",
                    "memory.stat",
                ],
                (Version::V1, "cpu") => &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat"],
                (Version::V1, _) => &[
                    "blkio.throttle.read_bps_device",
                    "blkio.throttle.write_bps_device",
                    "blkio.throttle.read_iops_device",
                    "blkio.throttle.write_iops_device",
                    "blkio.throttle.io_service_bytes",
                    "blkio.throttle.io_serviced",
                ],
            };
            for file in files {
                if let Ok(text) = fs::read_to_string(folder.join(file)) {
                    spread(file, &text, &mut facts);
                }
            }
        }
        facts
    }

    /// Times a process of the group was killed for want of memory.
    pub fn count_killed(&self) -> u64 {
        let facts = self.limit_facts();
        let count = ["memory.events.oom_kill", "memory.oom_control.oom_kill"];
        count.iter().find_map(|key| facts.get(*key)?.parse().ok()).unwrap_or(0)
    }

    /// Removes it.
    pub fn remove_group(&mut self, journal: &mut Journal) -> Result<(), LocalError> {
        self.folders.clear();
        while let Some(id) = self.undo.pop() {
            journal.undo_one(id)?;
        }
        Ok(())
    }
}

/// Controllers that the limits need.
fn wanted(limits: &Limits, devices: &[String]) -> Result<Vec<&'static str>, LocalError> {
    let mut wanted = Vec::new();
    if limits.memory.is_some() {
        wanted.push("memory");
    }
    if limits.cpus.is_some() {
        wanted.push("cpu");
    }
    if limits.has_io() {
        if devices.is_empty() {
            return Err(LocalError::refuse(
                "limits",
                "limits: the data lie on no block device whose I/O can be limited",
            ));
        }
        wanted.push("io");
    }
    Ok(wanted)
}

/// Returns whether the host has swap; taken for granted where it cannot be told.
fn swaps(machine: &Machine) -> bool {
    let text = fs::read_to_string(machine.proc.join("swaps"));
    text.map_or(true, |text| text.lines().count() > 1)
}

/// Values of `*.stat` that say something about a run; the files hold many more.
const KEPT: [&str; 14] = [
    "anon",
    "file",
    "workingset_refault_file",
    "cache",
    "rss",
    "usage_usec",
    "nr_periods",
    "nr_throttled",
    "throttled_usec",
    "throttled_time",
    "oom",
    "oom_kill",
    "max",
    "mapped_file",
];

/// A file of one value is one fact; one of `name value` lines is as many; one of devices is kept as it is.
fn spread(file: &str, text: &str, facts: &mut BTreeMap<String, String>) {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let pairs: Option<Vec<(&str, &str)>> =
        lines.iter().map(|line| line.split_once(' ').filter(|(name, _)| !name.contains(':'))).collect();
    let named = file.ends_with(".stat") || file.ends_with(".events") || file.ends_with(".oom_control");
    match pairs {
        Some(pairs) if named && !file.starts_with("io.") => {
            for (name, value) in pairs.into_iter().filter(|(name, _)| KEPT.contains(name)) {
                facts.insert(format!("{file}.{name}"), value.to_owned());
            }
        }
        _ if lines.is_empty() => {}
        _ => {
            facts.insert(file.to_owned(), lines.join("; "));
        }
    }
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
