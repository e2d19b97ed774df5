//! Where data lie: folders, filesystems in files, snapshots, the page cache.

use crate::error::{Cause, LocalError, ProgramError};
use crate::machine::Machine;
use crate::process;
use crate::undo::{Journal, Undo};
use dyno_config::server::data::{Filesystem, ImageSpec};
use dyno_engine::Control;
use dyno_types::child;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Runs a program of the system; what it prints on standard output, or its complaint.
pub(crate) fn run(machine: &Machine, program: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    run_under(machine, program, arguments, None)
}

/// The same; it is ended as soon as `control` stops. Ctrl-C in a terminal goes to every process of the foreground group: what
/// puts things back must not end by that, so it has a group of its own.
pub fn run_under(
    machine: &Machine,
    program: &str,
    arguments: &[&str],
    control: Option<&Control>,
) -> Result<String, ProgramError> {
    let missing = || ProgramError::Missing { program: program.to_owned(), hint: "" };
    let path = machine.find(program).ok_or_else(missing)?;
    let mut command = child::command(path);
    command.args(arguments).env("LC_ALL", "C").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| ProgramError::Io { program: program.to_owned(), source };
    let child = command.spawn().map_err(failed)?;
    let group = child.id();
    let output = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| child.wait_with_output());
        while !waiting.is_finished() {
            if control.is_some_and(Control::stopping) {
                process::end_group(group);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        waiting.join().unwrap_or_else(|_| Err(std::io::Error::other("nobody waits for it")))
    });
    let output = output.map_err(failed)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let words = text(&output.stderr).lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    Err(ProgramError::Ended { program: program.to_owned(), words, status: output.status })
}

fn not_permitted(what: &str, why: impl Into<Cause>) -> LocalError {
    LocalError::NotPermitted {
        what: what.to_owned(),
        why: why.into(),
        lost: "data lie on whatever filesystem the folder has".into(),
    }
}

/// A mounted image.
#[derive(Debug)]
pub struct Image {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The loop devices, and the array over them if there is one.
    pub devices: Vec<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Makes image files in `folder`, a filesystem in them, and mounts it below `home`.
pub fn mount_image(
    machine: &Machine,
    spec: &ImageSpec,
    folder: &Path,
    home: &Path,
    journal: &mut Journal,
) -> Result<Image, LocalError> {
    let striped_by_md = spec.members > 1 && spec.filesystem != Filesystem::Btrfs;
    if striped_by_md {
        can_stripe(machine)?;
    }
    room(folder, spec)?;
    let mut image = Image { point: home.join("mount"), devices: Vec::new(), notes: Vec::new() };
    for number in 0..spec.members {
        let file = folder.join(format!("image-{number}"));
        let failed = |e: std::io::Error| LocalError::failed(file.display(), e);
        if file.exists() {
            return Err(LocalError::Refused(format!("{}: is there already", file.display())));
        }
        journal.add(Undo::File { path: file.clone() })?;
        fs::File::create_new(&file).and_then(|new| new.set_len(spec.size.0)).map_err(failed)?;
        journal.add(Undo::Loop { file: file.clone() })?;
        image.devices.push(attach(machine, &file, &mut image.notes)?);
    }
    let mut disk = image.devices.clone();
    if striped_by_md {
        disk = vec![stripe(machine, &image.devices, journal)?];
    }
    make_filesystem(machine, spec, &disk)?;
    let failed = |e: std::io::Error| LocalError::failed(image.point.display(), e);
    journal.add(Undo::Folder { path: image.point.clone() })?;
    fs::create_dir_all(&image.point).map_err(failed)?;
    journal.add(Undo::Mount { path: image.point.clone() })?;
    let (kind, options) = (spec.filesystem.name(), spec.mount_options.join(","));
    let (disk, point) = (disk[0].display().to_string(), image.point.display().to_string());
    let mut arguments = vec!["-t", kind, disk.as_str(), point.as_str()];
    if !options.is_empty() {
        arguments.extend(["-o", options.as_str()]);
    }
    run(machine, "mount", &arguments).map_err(|why| not_permitted("mount", why))?;
    Ok(image)
}

/// Refuses images that will not fit, before the filesystem below them says so in the middle of a run.
fn room(folder: &Path, spec: &ImageSpec) -> Result<(), LocalError> {
    let free = rustix::fs::statvfs(folder).map_err(|e| LocalError::failed(folder.display(), e))?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    let wanted = spec.size.0.saturating_mul(u64::from(spec.members));
    if wanted > free {
        return Err(LocalError::Refused(format!(
            "data.image: {} MiB do not fit into {}, which has {} MiB free",
            wanted >> 20,
            folder.display(),
            free >> 20
        )));
    }
    Ok(())
}

fn attach(machine: &Machine, file: &Path, notes: &mut Vec<String>) -> Result<PathBuf, LocalError> {
    let name = file.display().to_string();
    let direct = ["--find", "--show", "--direct-io=on", name.as_str()];
    let device = match run(machine, "losetup", &direct) {
        Ok(device) => device,
        Err(_) => {
            let device = run(machine, "losetup", &["--find", "--show", name.as_str()])
                .map_err(|why| not_permitted("loop device", why))?;
            notes.push(format!("{device}: no direct I/O, pages are cached twice"));
            device
        }
    };
    Ok(device.into())
}

fn can_stripe(machine: &Machine) -> Result<(), LocalError> {
    let lost = |why: &str| LocalError::NotPermitted {
        what: "RAID-0 by md".into(),
        why: why.into(),
        lost: "data are not striped (btrfs stripes by itself)".into(),
    };
    if !machine.proc.join("mdstat").exists() {
        return Err(lost("this kernel has no md driver (or its module is not loaded)"));
    }
    if machine.find("mdadm").is_none() {
        return Err(lost("mdadm is not installed"));
    }
    Ok(())
}

fn stripe(machine: &Machine, members: &[PathBuf], journal: &mut Journal) -> Result<PathBuf, LocalError> {
    let device = PathBuf::from(format!("/dev/md/dyno-{}", std::process::id()));
    journal.add(Undo::Array { device: device.clone() })?;
    let (name, count) = (device.display().to_string(), format!("--raid-devices={}", members.len()));
    let members: Vec<String> = members.iter().map(|member| member.display().to_string()).collect();
    let mut arguments =
        vec!["--create", name.as_str(), "--run", "--level=0", "--metadata=1.2", count.as_str()];
    arguments.extend(members.iter().map(String::as_str));
    run(machine, "mdadm", &arguments).map_err(|why| not_permitted("RAID-0 by md", why))?;
    Ok(device)
}

fn make_filesystem(machine: &Machine, spec: &ImageSpec, disks: &[PathBuf]) -> Result<(), LocalError> {
    let (program, mut arguments) = match spec.filesystem {
        Filesystem::Xfs => ("mkfs.xfs", vec!["-q", "-f"]),
        Filesystem::Ext4 => ("mkfs.ext4", vec!["-q", "-F"]),
        Filesystem::Btrfs if disks.len() > 1 => {
            ("mkfs.btrfs", vec!["-q", "-f", "-d", "raid0", "-m", "raid0"])
        }
        Filesystem::Btrfs => ("mkfs.btrfs", vec!["-q", "-f"]),
    };
    let disks: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
    arguments.extend(disks.iter().map(String::as_str));
    run(machine, program, &arguments).map(drop).map_err(|why| not_permitted(program, why))
}

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

/// Detaches every loop device of a file.
pub(crate) fn detach(machine: &Machine, file: &Path) -> Result<(), LocalError> {
    let found = run(
        machine,
        "losetup",
        &["--noheadings", "--output", "NAME", "--associated", &file.display().to_string()],
    );
    // Without losetup nothing can have been attached.
    for device in found.unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty()) {
        run(machine, "losetup", &["--detach", device])?;
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
pub fn disks(machine: &Machine, folder: &Path) -> Vec<String> {
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
pub fn copy(machine: &Machine, from: &Path, to: &Path, control: Option<&Control>) -> Result<(), LocalError> {
    let (source, target) = (format!("{}/.", from.display()), to.display().to_string());
    fs::create_dir(to).map_err(|e| LocalError::failed(to.display(), e))?;
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
    let failed = |e: std::io::Error| LocalError::failed(folder.display(), e);
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
pub fn empty(folder: &Path) -> Result<(), LocalError> {
    let failed = |e: std::io::Error| LocalError::failed(folder.display(), e);
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
