//! Disks, arrays and the filesystems on them.

use super::facts::EnvironmentFacts;
use super::values::{chosen, names, text};
use crate::roots::Roots;
use dyno_types::host_facts::ROOT_USED;
use std::path::Path;

pub(super) fn read(roots: &Roots, all: &mut EnvironmentFacts) {
    let folder = roots.sys.join("block");
    for name in names(&folder) {
        // Loop devices and memory disks come and go, and none is measured on.
        let size = text(folder.join(&name).join("size"));
        if ["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind)) || size.as_deref() == Some("0") {
            continue;
        }
        disk(&folder.join(&name), &name, all);
    }
    for line in roots.proc("self/mountinfo").unwrap_or_default().lines() {
        mount(line, all);
    }
    // In a container these are the figures of the filesystem on which its host keeps containers.
    if let Ok(stat) = rustix::fs::statvfs("/") {
        let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize);
        all.volatile(ROOT_USED.0, ROOT_USED.1, Some(format!("{used} bytes")));
    }
}

fn disk(folder: &Path, name: &str, all: &mut EnvironmentFacts) {
    let mut put = |what: &str, value| all.fact("disks", &format!("{name}.{what}"), value);
    let bytes = text(folder.join("size")).and_then(|sectors| sectors.parse::<u64>().ok());
    put("size", bytes.map(|sectors| format!("{} bytes", sectors * 512)));
    put("model", text(folder.join("device/model")));
    put("firmware", text(folder.join("device/firmware_rev")).or(text(folder.join("device/rev"))));
    for what in
        ["rotational", "read_ahead_kb", "nr_requests", "write_cache", "logical_block_size", "max_sectors_kb"]
    {
        put(what, text(folder.join("queue").join(what)));
    }
    put("scheduler", text(folder.join("queue/scheduler")).map(chosen));
    put("md.level", text(folder.join("md/level")));
    put("md.chunk", text(folder.join("md/chunk_size")));
    let members = names(&folder.join("slaves"));
    put("members", (!members.is_empty()).then(|| members.join(" ")));
}

/// `36 35 98:0 / /data rw,noatime shared:1 - xfs /dev/sdb1 rw,attr2`
fn mount(line: &str, all: &mut EnvironmentFacts) -> Option<()> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point, options) = (before.next()?, before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, device, own) = (after.next()?, after.next()?, after.next().unwrap_or_default());
    // Bind mounts show the same filesystem again.
    if root != "/" || !device.starts_with("/dev/") || device.starts_with("/dev/loop") {
        return None;
    }
    let mut words: Vec<&str> = options.split(',').chain(own.split(',')).collect();
    words.sort_unstable();
    words.dedup();
    let point = point.replace("\\040", " ");
    all.fact("filesystems", &point, Some(format!("{kind} on {device}, {}", words.join(","))));
    if let Ok(stat) = rustix::fs::statvfs(point.as_str()) {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        all.volatile("filesystems", &point, Some(format!("{free} bytes available")));
    }
    Some(())
}
