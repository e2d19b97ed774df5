//! Facts about this host, recorded with every run.

use crate::roots::read;
use std::collections::BTreeMap;
use std::path::Path;

/// Facts about the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostDescription {
    /// Name.
    pub name: String,
    /// Operating system, kernel and architecture.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Settings that change latencies, as found.
    pub tuning: BTreeMap<String, String>,
    /// Load average over one minute.
    pub load_average: f64,
}

const TUNING: [(&str, &str); 7] = [
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    (CLOCK_SOURCE, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("overcommit_memory", "/proc/sys/vm/overcommit_memory"),
];

/// The kernel's clock source.
pub const CLOCK_SOURCE: &str = "clock_source";

/// Identity of the running kernel, which containers and network namespaces of one host share; `None` where it is not told.
pub fn boot_id() -> Option<String> {
    let text = read(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    Some(text.trim().to_owned())
}

/// Reads the facts.
pub fn read_host_facts() -> HostDescription {
    let uname = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    let cpuinfo = read(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let value = |name: &str| {
        cpuinfo.lines().find(|l| l.starts_with(name)).and_then(|l| l.split_once(':')).map(|(_, v)| v.trim())
    };
    let meminfo = read(Path::new("/proc/meminfo")).unwrap_or_default();
    let memory =
        meminfo.lines().next().and_then(|l| l.split_whitespace().nth(1)).and_then(|k| k.parse().ok());
    let tuning = TUNING
        .iter()
        .filter_map(|(name, path)| {
            let found = read(Path::new(path)).ok()?;
            Some(((*name).to_owned(), chosen(found.trim()).to_owned()))
        })
        .collect();
    HostDescription {
        name: text(uname.nodename()),
        kernel: format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.machine())),
        cpu: value("model name").or(value("CPU part")).unwrap_or("unknown").to_owned(),
        memory_bytes: memory.unwrap_or(0u64) * 1024,
        tuning,
        load_average: read(Path::new("/proc/loadavg"))
            .ok()
            .and_then(|l| l.split(' ').next().and_then(|v| v.parse().ok()))
            .unwrap_or(0.0),
    }
}

/// `always [madvise] never` means `madvise`.
fn chosen(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_kernel_and_memory() {
        let host = read_host_facts();
        assert!(host.kernel.starts_with("Linux "));
        assert!(host.memory_bytes > 1 << 20);
        assert_eq!(chosen("always [madvise] never"), "madvise");
    }
}
