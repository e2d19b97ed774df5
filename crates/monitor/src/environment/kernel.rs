//! Kernel, distribution, and limits of this process.

use super::facts::{EnvironmentFacts, Places};
use super::values::text;
use crate::roots::Roots;

pub(super) fn read(places: &Places, all: &mut EnvironmentFacts) {
    let roots = &places.roots;
    let proc = &roots.proc;
    for (name, file) in [
        ("host", "sys/kernel/hostname"),
        ("release", "sys/kernel/osrelease"),
        ("version", "sys/kernel/version"),
        ("command_line", "cmdline"),
        ("watchdog", "sys/kernel/watchdog"),
        ("sched_autogroup", "sys/kernel/sched_autogroup_enabled"),
        ("perf_event_paranoid", "sys/kernel/perf_event_paranoid"),
        ("file_max", "sys/fs/file-max"),
        ("aio_max_nr", "sys/fs/aio-max-nr"),
    ] {
        all.fact("kernel", name, text(proc.join(file)));
    }
    let clock = roots.sys.join("devices/system/clocksource/clocksource0");
    all.fact("kernel", "clock_source", text(clock.join("current_clocksource")));
    all.fact("kernel", "clock_sources", text(clock.join("available_clocksource")));
    let release = std::fs::read_to_string(places.etc.join("os-release")).unwrap_or_default();
    let distribution = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    all.fact("kernel", "distribution", distribution.map(|name| name.trim_matches('"').to_owned()));
    all.volatile("host", "load", text(proc.join("loadavg")));
    all.volatile(
        "host",
        "uptime_s",
        text(proc.join("uptime")).and_then(|t| Some(t.split('.').next()?.to_owned())),
    );
    all.volatile("host", "boot_id", text(proc.join("sys/kernel/random/boot_id")));
    limits(roots, all);
    cgroup(roots, all);
}

fn limits(roots: &Roots, all: &mut EnvironmentFacts) {
    for line in roots.proc("self/limits").unwrap_or_default().lines() {
        for (name, starts) in [
            ("open_files", "Max open files"),
            ("processes", "Max processes"),
            ("locked_memory", "Max locked memory"),
            ("address_space", "Max address space"),
        ] {
            if let Some(rest) = line.strip_prefix(starts) {
                let words: Vec<&str> = rest.split_whitespace().take(2).collect();
                all.fact("limits", name, Some(words.join(" of ")));
            }
        }
    }
    for line in roots.proc("self/status").unwrap_or_default().lines() {
        for (name, starts) in [("cpus", "Cpus_allowed_list:"), ("memory_nodes", "Mems_allowed_list:")] {
            all.fact("limits", name, line.strip_prefix(starts).map(|rest| rest.trim().to_owned()));
        }
    }
}

/// Limits of the control group this process is in.
fn cgroup(roots: &Roots, all: &mut EnvironmentFacts) {
    for line in roots.proc("self/cgroup").unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        let files: &[&str] = match controllers {
            "" => &["cpu.max", "cpu.weight", "memory.max", "memory.high", "cpuset.cpus.effective", "io.max"],
            "memory" => &["memory.limit_in_bytes"],
            c if c.split(',').any(|c| c == "cpu") => &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"],
            _ => continue,
        };
        // With cgroup v1 each controller has a folder of its own.
        let home = roots.cgroup.join(controllers).join(path);
        for file in files {
            all.fact("limits", &format!("cgroup.{file}"), text(home.join(file)));
        }
    }
}
