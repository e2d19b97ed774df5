//! Storage of data: folders and their disks, mounts, loop devices and arrays, copies, the page cache.

use crate::error::LocalError;
use crate::machine::Machine;
use crate::programs::{run, run_under};
use dyno_engine::Control;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Unmounts what is mounted at `path`, if anything is.
pub(crate) fn unmount(machine: &Machine, path: &Path) -> Result<(), LocalError> {
    // The kernel may hold a filesystem for a moment after its last process has ended.
    let mut last = None;
    for _ in 0..50 {
        if !machine.mounts()?.iter().any(|mount| mount.point == canonical(path)) {
            return Ok(());
        }
        match run(machine, "umount", &[&path.display().to_string()]) {
            Ok(_) => continue,
            Err(why) => last = Some(why),
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mounted = || LocalError::Failed(format!("{}: something is mounted there", path.display()));
    Err(last.map_or_else(mounted, LocalError::Program))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the mounts at `path` and below it.
pub(crate) fn mounts_below(machine: &Machine, path: &Path) -> Result<Vec<PathBuf>, LocalError> {
    let path = canonical(path);
    let mounts = machine.mounts()?.into_iter().map(|mount| mount.point);
    Ok(mounts.filter(|point| point.starts_with(&path)).collect())
}

/// Detaches every loop device of a file, and waits a moment until the kernel has done it.
pub(crate) fn detach(machine: &Machine, file: &Path) -> Result<(), LocalError> {
    let file = file.display().to_string();
    // Without losetup nothing can have been attached.
    let attached = || {
        let words = ["--noheadings", "--output", "NAME", "--associated", &file];
        run(machine, "losetup", &words).unwrap_or_default()
    };
    for device in attached().lines().map(str::trim).filter(|line| !line.is_empty()) {
        run(machine, "losetup", &["--detach", device])?;
    }
    // A device that another program has open, such as one that scans for filesystems, stays until that closes it.
    for _ in 0..100 {
        if attached().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(())
}

/// Stops an array, if there is one.
pub(crate) fn stop_array(machine: &Machine, device: &Path) -> Result<(), LocalError> {
    if device.exists() {
        run(machine, "mdadm", &["--stop", &device.display().to_string()])?;
    }
    Ok(())
}

/// The whole disks (`major:minor`) below a folder; none for a filesystem without a device.
pub fn whole_disks(machine: &Machine, folder: &Path) -> Vec<String> {
    let folder = canonical(folder);
    let mut best: Option<crate::machine::Mount> = None;
    for mount in machine.mounts().unwrap_or_default() {
        // The longest prefix holds the folder; of equals the one mounted last.
        let longer = best.as_ref().is_none_or(|b| mount.point.as_os_str().len() >= b.point.as_os_str().len());
        if folder.starts_with(&mount.point) && longer {
            best = Some(mount);
        }
    }
    let Some(mount) = best else { return Vec::new() };
    let mut sources = vec![PathBuf::from(&mount.source)];
    if mount.kind == "btrfs" {
        // A btrfs over several devices is known by one of them.
        sources = btrfs_members(machine, Path::new(&mount.source)).unwrap_or(sources);
    }
    let mut disks: Vec<String> = sources.iter().filter_map(|source| disk(machine, source, &folder)).collect();
    disks.dedup();
    disks
}

fn btrfs_members(machine: &Machine, source: &Path) -> Option<Vec<PathBuf>> {
    let name = canonical(source).file_name()?.to_owned();
    for filesystem in fs::read_dir(machine.sys.join("fs/btrfs")).ok()?.flatten() {
        let devices = fs::read_dir(filesystem.path().join("devices"));
        let Ok(devices) = devices else { continue };
        let names: Vec<_> = devices.flatten().map(|entry| entry.file_name()).collect();
        if names.contains(&name) {
            let mut members: Vec<PathBuf> = names.iter().map(|name| Path::new("/dev").join(name)).collect();
            members.sort();
            return Some(members);
        }
    }
    None
}

/// A device's number, or that of the disk it is a partition of.
fn disk(machine: &Machine, source: &Path, folder: &Path) -> Option<String> {
    let device = match fs::metadata(source) {
        Ok(found) if found.rdev() != 0 => found.rdev(),
        // `/dev/root` and the like: what the folder itself says.
        _ => fs::metadata(folder).ok()?.dev(),
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let own = machine.sys.join(format!("dev/block/{major}:{minor}"));
    // Devices of no block device (major 0) are memory, network or several disks.
    if major == 0 || !own.exists() {
        return None;
    }
    if own.join("partition").exists() {
        let whole = own.canonicalize().ok()?.parent()?.join("dev");
        return Some(fs::read_to_string(whole).ok()?.trim().to_owned());
    }
    Some(format!("{major}:{minor}"))
}

/// Writes everything to disk and drops the page cache.
pub fn drop_caches(machine: &Machine) -> Result<(), LocalError> {
    rustix::fs::sync();
    let path = machine.proc.join("sys/vm/drop_caches");
    fs::write(&path, "3").map_err(|e| LocalError::NotPermitted {
        what: "dropping caches".into(),
        why: format!("{}: {e}", path.display()).into(),
        lost: "the run begins with whatever the page cache holds".into(),
    })
}

/// Copies a folder's contents, sharing blocks where the filesystem can; `to` must not be there yet. Ends when `control` stops.
pub fn copy_folder(
    machine: &Machine,
    from: &Path,
    to: &Path,
    control: Option<&Control>,
) -> Result<(), LocalError> {
    let (source, target) = (format!("{}/.", from.display()), to.display().to_string());
    fs::create_dir(to).map_err(|e| LocalError::failed_step(to.display(), e))?;
    let words = ["--reflink=auto", "--archive", &source, &target];
    run_under(machine, "cp", &words, control)?;
    let (there, here) = (contents(from)?, contents(to)?);
    if there != here {
        return Err(LocalError::Failed(format!(
            "{}: copied {} files of {} bytes, {} has {} of {}",
            to.display(),
            here.0,
            here.1,
            from.display(),
            there.0,
            there.1
        )));
    }
    Ok(())
}

/// Files and bytes below a folder.
pub(crate) fn contents(folder: &Path) -> Result<(u64, u64), LocalError> {
    let failed = |e: std::io::Error| LocalError::failed_step(folder.display(), e);
    let (mut files, mut bytes) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                bytes += entry.metadata().map_err(failed)?.len();
            }
        }
    }
    Ok((files, bytes))
}

/// Empties a folder.
pub fn empty_folder(folder: &Path) -> Result<(), LocalError> {
    let failed = |e: std::io::Error| LocalError::failed_step(folder.display(), e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let removed = match entry.file_type().map_err(failed)?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        removed.map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
