//! Settings of the host: the files that hold them.

use crate::machine::Machine;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings in procfs by key, with their files.
pub(super) const FILES: [(&str, &str); 3] = [
    ("swappiness", "sys/vm/swappiness"),
    ("zone_reclaim_mode", "sys/vm/zone_reclaim_mode"),
    ("numa_balancing", "sys/kernel/numa_balancing"),
];

fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(super) fn governor_files(machine: &Machine) -> Vec<PathBuf> {
    let folder = machine.sys.join("devices/system/cpu");
    let cpus = entries(&folder).into_iter();
    let cpus = cpus.filter(|name| name.strip_prefix("cpu").is_some_and(|n| n.parse::<usize>().is_ok()));
    cpus.map(|cpu| folder.join(cpu).join("cpufreq/scaling_governor")).filter(|file| file.exists()).collect()
}

pub(super) fn rps_files(machine: &Machine, device: &str) -> Vec<PathBuf> {
    let queues = machine.sys.join("class/net").join(device).join("queues");
    let names = entries(&queues).into_iter().filter(|name| name.starts_with("rx-"));
    names.map(|name| queues.join(name).join("rps_cpus")).collect()
}

/// Network devices of the hardware that have receive queues: those of containers come and go.
pub(super) fn hardware_devices(machine: &Machine) -> Vec<String> {
    let net = machine.sys.join("class/net");
    let all = entries(&net).into_iter();
    all.filter(|device| net.join(device).join("device").exists() && !rps_files(machine, device).is_empty())
        .collect()
}

/// Returns whether this is a file that [`apply_settings`](crate::tuning::apply_settings) writes, on a host that may have been
/// without it since.
pub(super) fn is_setting(machine: &Machine, path: &Path) -> bool {
    let parts = |root: &Path| -> Option<Vec<&str>> {
        path.strip_prefix(root).ok()?.iter().map(|p| p.to_str()).collect()
    };
    let numbered =
        |name: &str, front: &str| name.strip_prefix(front).is_some_and(|n| n.parse::<usize>().is_ok());
    let plain = |name: &str| name != ".." && name != ".";
    let of_sys = parts(&machine.sys).is_some_and(|parts| match *parts {
        ["kernel", "mm", "transparent_hugepage", "enabled" | "defrag"] => true,
        ["block", device, "queue", "read_ahead_kb"] => plain(device),
        ["devices", "system", "cpu", cpu, "cpufreq", "scaling_governor"] => numbered(cpu, "cpu"),
        ["class", "net", device, "queues", queue, "rps_cpus"] => plain(device) && numbered(queue, "rx-"),
        _ => false,
    });
    of_sys || FILES.iter().any(|(_, file)| path == machine.proc.join(file))
}

/// `always [madvise] never` means `madvise`.
pub(super) fn chosen(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}
