//! The cgroup of a process: v2 (one tree) and v1 (a tree for each controller).

use crate::host::pressure;
use crate::roots::{Roots, number, pairs, read};
use crate::sample::Sample;
use std::path::{Path, PathBuf};

/// Folders of a cgroup's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// One folder.
    V2(PathBuf),
    /// Folders of the controllers that matter; one that is not mounted is not known.
    V1 {
        /// `cpu`: throttling.
        cpu: Option<PathBuf>,
        /// `cpuacct`: time.
        cpuacct: Option<PathBuf>,
        /// `memory`.
        memory: Option<PathBuf>,
        /// `blkio`.
        blkio: Option<PathBuf>,
    },
}

/// The folder of a path below a mount. Inside a container the path may be that of the host, while the mount shows only
/// the container's own part.
fn below(mount: &Path, path: &str) -> Option<PathBuf> {
    let whole = mount.join(path.trim_start_matches('/'));
    if whole.is_dir() { Some(whole) } else { mount.is_dir().then(|| mount.to_owned()) }
}

impl Cgroup {
    /// Returns the cgroup of a process; `None` where it cannot be told.
    pub fn of_process(roots: &Roots, pid: u32) -> Option<Self> {
        let lines = roots.proc(&format!("{pid}/cgroup"))?;
        let entries: Vec<(&str, &str)> = lines
            .lines()
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                Some((parts.next()?, parts.next()?))
            })
            .collect();
        if roots.cgroup.join("cgroup.controllers").exists() {
            let (_, path) = entries.iter().find(|(controllers, _)| controllers.is_empty())?;
            return below(&roots.cgroup, path).map(Cgroup::V2);
        }
        let folder = |controller: &str| {
            let (together, path) = entries.iter().find(|(c, _)| c.split(',').any(|c| c == controller))?;
            // Mounted under its own name, under all names of the hierarchy, or under both by a link.
            [controller, *together].iter().find_map(|mount| below(&roots.cgroup.join(mount), path))
        };
        let (cpu, cpuacct) = (folder("cpu"), folder("cpuacct"));
        let (memory, blkio) = (folder("memory"), folder("blkio"));
        let any = [&cpu, &cpuacct, &memory, &blkio].iter().any(|f| f.is_some());
        any.then_some(Cgroup::V1 { cpu, cpuacct, memory, blkio })
    }

    /// Folder where memory is counted.
    fn folder(&self) -> Option<&Path> {
        match self {
            Cgroup::V2(folder) => Some(folder),
            Cgroup::V1 { memory, .. } => memory.as_deref(),
        }
    }

    /// A number that processes of one group have in common, and no others, on other hosts either.
    pub fn group_number(&self, roots: &Roots) -> Option<f64> {
        use std::os::unix::fs::MetadataExt;
        let inode = std::fs::metadata(self.folder()?).ok()?.ino();
        let boot = roots.proc("sys/kernel/random/boot_id")?;
        // FNV-1a over both, as many bits as a number of 64 holds exactly.
        let bytes = boot.bytes().chain(inode.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Some((hash >> 12) as f64)
    }

    /// Adds its figures; those that its kernel does not offer are absent.
    pub fn add_figures(&self, into: &mut Sample) {
        match self {
            Cgroup::V2(folder) => v2(folder, into),
            Cgroup::V1 { cpu, cpuacct, memory, blkio } => {
                if let Some(folder) = cpu {
                    throttling(folder, "throttled_time", 1e-9, into);
                }
                if let Some(ns) = cpuacct.as_ref().and_then(|f| number(&f.join("cpuacct.usage"))) {
                    into.add_counter("cgroup.cpu_s", ns / 1e9);
                }
                if let Some(folder) = memory {
                    v1_memory(folder, into);
                }
                if let Some(folder) = blkio {
                    v1_blkio(folder, into);
                }
            }
        }
    }
}

fn text(folder: &Path, name: &str) -> String {
    read(&folder.join(name)).unwrap_or_default()
}

/// Periods and time of throttling from `cpu.stat`.
fn throttling(folder: &Path, time: &str, to_seconds: f64, into: &mut Sample) {
    for (name, value) in pairs(&text(folder, "cpu.stat")) {
        match name {
            "nr_periods" => into.add_counter("cgroup.periods", value),
            "nr_throttled" => into.add_counter("cgroup.throttled_periods", value),
            _ if name == time => into.add_counter("cgroup.throttled_s", value * to_seconds),
            "usage_usec" => into.add_counter("cgroup.cpu_s", value / 1e6),
            _ => {}
        }
    }
}

/// Lines of `memory.stat` and our names, in both versions.
const MEMORY_STAT: [(&str, &str, bool); 6] = [
    ("anon", "cgroup.memory_anonymous_bytes", false),
    ("rss", "cgroup.memory_anonymous_bytes", false),
    ("file", "cgroup.memory_file_bytes", false),
    ("cache", "cgroup.memory_file_bytes", false),
    ("pgfault", "cgroup.faults", true),
    ("pgmajfault", "cgroup.major_faults", true),
];

fn memory_stat(folder: &Path, into: &mut Sample) {
    for (name, value) in pairs(&text(folder, "memory.stat")) {
        if let Some((_, ours, grows)) = MEMORY_STAT.iter().find(|(theirs, ..)| *theirs == name) {
            if *grows { into.add_counter(*ours, value) } else { into.add_gauge(*ours, value) }
        }
    }
}

fn v2(folder: &Path, into: &mut Sample) {
    throttling(folder, "throttled_usec", 1e-6, into);
    let levels = [
        ("memory.current", "cgroup.memory_bytes"),
        ("memory.peak", "cgroup.memory_peak_bytes"),
        // Without a limit the file says "max", which is no number.
        ("memory.max", "cgroup.memory_limit_bytes"),
        ("memory.swap.current", "cgroup.swap_bytes"),
    ];
    for (file, name) in levels {
        if let Some(value) = number(&folder.join(file)) {
            into.add_gauge(name, value);
        }
    }
    memory_stat(folder, into);
    for (name, value) in pairs(&text(folder, "memory.events")) {
        match name {
            "max" => into.add_counter("cgroup.memory_limit_hits", value),
            "oom_kill" => into.add_counter("cgroup.oom_kills", value),
            _ => {}
        }
    }
    let io = text(folder, "io.stat");
    let sum = |key: &str| -> Option<f64> {
        let values = io.split_ascii_whitespace().filter_map(|w| w.strip_prefix(key)?.parse::<f64>().ok());
        values.reduce(|a, b| a + b)
    };
    let counts = [
        ("rbytes=", "cgroup.read_bytes"),
        ("wbytes=", "cgroup.written_bytes"),
        ("rios=", "cgroup.reads"),
        ("wios=", "cgroup.writes"),
    ];
    for (key, name) in counts {
        if let Some(value) = sum(key) {
            into.add_counter(name, value);
        }
    }
    for what in ["cpu", "memory", "io"] {
        pressure(&format!("cgroup.pressure.{what}"), &text(folder, &format!("{what}.pressure")), into);
    }
}

fn v1_memory(folder: &Path, into: &mut Sample) {
    let levels = [
        ("memory.usage_in_bytes", "cgroup.memory_bytes"),
        ("memory.max_usage_in_bytes", "cgroup.memory_peak_bytes"),
    ];
    for (file, name) in levels {
        if let Some(value) = number(&folder.join(file)) {
            into.add_gauge(name, value);
        }
    }
    // No limit is a number near 2^63.
    let limit = number(&folder.join("memory.limit_in_bytes")).filter(|bytes| *bytes < 9e18);
    if let Some(limit) = limit {
        into.add_gauge("cgroup.memory_limit_bytes", limit);
    }
    if let Some(hits) = number(&folder.join("memory.failcnt")) {
        into.add_counter("cgroup.memory_limit_hits", hits);
    }
    memory_stat(folder, into);
    for (name, value) in pairs(&text(folder, "memory.oom_control")) {
        if name == "oom_kill" {
            into.add_counter("cgroup.oom_kills", value);
        }
    }
}

fn v1_blkio(folder: &Path, into: &mut Sample) {
    let files = [
        ("blkio.throttle.io_service_bytes", "Read", "cgroup.read_bytes"),
        ("blkio.throttle.io_service_bytes", "Write", "cgroup.written_bytes"),
        ("blkio.throttle.io_serviced", "Read", "cgroup.reads"),
        ("blkio.throttle.io_serviced", "Write", "cgroup.writes"),
    ];
    for (file, direction, name) in files {
        let Ok(text) = read(&folder.join(file)) else { continue };
        // `8:0 Read 12`; the file is there, so that no device means none was used.
        let of = |line: &str| -> Option<f64> {
            let mut words = line.split_ascii_whitespace().skip(1);
            (words.next()? == direction).then(|| words.next()?.parse().ok())?
        };
        into.add_counter(name, text.lines().filter_map(of).sum());
    }
}
