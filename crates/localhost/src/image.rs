//! Filesystems in files: image files on loop devices, striped where that is asked for, and mounted.

use crate::error::{Cause, LocalError};
use crate::machine::Machine;
use crate::programs::run;
use crate::undo::{Journal, Undo};
use dyno_config::server::data::{Filesystem, ImageSpec};
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Mount point.
    pub point: PathBuf,
    /// The loop devices, and the array over them if there is one.
    pub devices: Vec<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Makes image files in `folder`, a filesystem in them, and mounts it below `work_dir`.
pub fn mount_image(
    machine: &Machine,
    spec: &ImageSpec,
    folder: &Path,
    work_dir: &Path,
    journal: &mut Journal,
) -> Result<Image, LocalError> {
    let striped_by_md = spec.members > 1 && spec.filesystem != Filesystem::Btrfs;
    if striped_by_md {
        can_stripe(machine)?;
    }
    room(folder, spec)?;
    let mut image = Image { point: work_dir.join("mount"), devices: Vec::new(), notes: Vec::new() };
    for number in 0..spec.members {
        let file = folder.join(format!("image-{number}"));
        let failed = |e: std::io::Error| LocalError::failed_step(file.display(), e);
        if file.exists() {
            return Err(LocalError::refuse(
                file.display().to_string(),
                format!("{}: is there already", file.display()),
            ));
        }
        journal.note_action(Undo::File { path: file.clone() })?;
        fs::File::create_new(&file).and_then(|new| new.set_len(spec.size.0)).map_err(failed)?;
        journal.note_action(Undo::Loop { file: file.clone() })?;
        image.devices.push(attach(machine, &file, &mut image.notes)?);
    }
    let mut disk = image.devices.clone();
    if striped_by_md {
        disk = vec![stripe(machine, &image.devices, journal)?];
    }
    make_filesystem(machine, spec, &disk)?;
    let failed = |e: std::io::Error| LocalError::failed_step(image.point.display(), e);
    journal.note_action(Undo::Folder { path: image.point.clone() })?;
    fs::create_dir_all(&image.point).map_err(failed)?;
    journal.note_action(Undo::Mount { path: image.point.clone() })?;
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
    let free = rustix::fs::statvfs(folder).map_err(|e| LocalError::failed_step(folder.display(), e))?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    let wanted = spec.size.0.saturating_mul(u64::from(spec.members));
    if wanted > free {
        return Err(LocalError::refuse(
            "data.image",
            format!(
                "data.image: {} MiB do not fit into {}, which has {} MiB free",
                wanted >> 20,
                folder.display(),
                free >> 20
            ),
        ));
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
    if machine.find_program("mdadm").is_none() {
        return Err(lost("mdadm is not installed"));
    }
    Ok(())
}

fn stripe(machine: &Machine, members: &[PathBuf], journal: &mut Journal) -> Result<PathBuf, LocalError> {
    let device = PathBuf::from(format!("/dev/md/dyno-{}", std::process::id()));
    journal.note_action(Undo::Array { device: device.clone() })?;
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

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
