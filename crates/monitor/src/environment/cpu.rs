//! Processors: model, clock, idle states, memory nodes, mitigations and prefetchers.

use super::facts::{EnvironmentFacts, Places};
use super::values::{names, tally, text};
use crate::roots::Roots;
use crate::topology::{MEMORY, Topology, list};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Intel's register of prefetchers, and what its lowest bits switch off.
const PREFETCH: (u64, [&str; 4]) = (0x1a4, ["L2", "L2 adjacent line", "DCU", "DCU IP"]);

pub(super) fn read(places: &Places, all: &mut EnvironmentFacts) {
    let roots = &places.roots;
    let cpus = roots.sys.join("devices/system/cpu");
    model(roots, all);
    all.fact("cpu", "smt", text(cpus.join("smt/control")));
    topology(roots, all);
    frequency(&cpus, all);
    idle(&cpus, all);
    let folder = cpus.join("vulnerabilities");
    for name in names(&folder) {
        all.fact("mitigations", &name, text(folder.join(&name)));
    }
    if all.get("cpu", "vendor") == Some("GenuineIntel") {
        all.fact("cpu", "prefetchers", prefetchers(&places.dev.join("cpu/0/msr")));
    }
}

fn model(roots: &Roots, all: &mut EnvironmentFacts) {
    let Some(cpuinfo) = roots.proc("cpuinfo") else { return };
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|l| l.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    for (name, line) in [
        ("model", "model name"),
        ("vendor", "vendor_id"),
        ("family", "cpu family"),
        ("model_number", "model"),
        ("stepping", "stepping"),
        ("microcode", "microcode"),
        ("implementer", "CPU implementer"),
        ("part", "CPU part"),
    ] {
        all.fact("cpu", name, value(line));
    }
    if let Some(flags) = value("flags").or(value("Features")) {
        let mut flags: Vec<&str> = flags.split_whitespace().collect();
        flags.sort_unstable();
        let hypervisor = flags.contains(&"hypervisor");
        all.fact("virtualisation", "hypervisor", Some(if hypervisor { "yes" } else { "no" }.into()));
        all.fact("cpu", "flags", Some(flags.join(" ")));
    }
    let clocks = cpuinfo.lines().filter(|l| l.starts_with("cpu MHz"));
    let mut mhz: Vec<f64> =
        clocks.filter_map(|l| l.split_once(':').and_then(|(_, v)| v.trim().parse().ok())).collect();
    mhz.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (mhz.first(), mhz.last()) {
        all.volatile("cpu", "mhz", Some(format!("{low:.0}-{high:.0}")));
    }
}

fn topology(roots: &Roots, all: &mut EnvironmentFacts) {
    let Ok(topology) = Topology::read(&roots.sys) else { return };
    let facts = topology.facts();
    for (name, value) in facts {
        let group = if name == "numa_nodes" || name.starts_with("node") { "numa" } else { "cpu" };
        if name.ends_with(MEMORY) {
            all.volatile(group, &name, Some(value));
        } else {
            all.fact(group, &name, Some(value));
        }
    }
    let caches = topology.caches.iter().map(|cache| {
        let size = cache.size_bytes.map_or(String::new(), |bytes| format!(", {} KiB", bytes >> 10));
        format!("L{}{size}, cpus {}", cache.level, list(&cache.cpus))
    });
    all.fact("cpu", "cache_map", Some(caches.collect::<Vec<_>>().join("; ")));
}

fn frequency(cpus: &Path, all: &mut EnvironmentFacts) {
    let each: Vec<_> = names(cpus)
        .into_iter()
        .filter(|name| name.strip_prefix("cpu").is_some_and(|n| n.parse::<usize>().is_ok()))
        .map(|name| cpus.join(name))
        .collect();
    for (name, file) in [
        ("driver", "cpufreq/scaling_driver"),
        ("governor", "cpufreq/scaling_governor"),
        ("min_khz", "cpufreq/scaling_min_freq"),
        ("max_khz", "cpufreq/scaling_max_freq"),
        ("energy_performance_preference", "cpufreq/energy_performance_preference"),
        ("energy_perf_bias", "power/energy_perf_bias"),
    ] {
        all.fact("frequency", name, tally(each.iter().filter_map(|cpu| text(cpu.join(file)))));
    }
    let turbo = match text(cpus.join("intel_pstate/no_turbo")).as_deref() {
        Some("1") => Some("off"),
        Some("0") => Some("on"),
        _ => match text(cpus.join("cpufreq/boost")).as_deref() {
            Some("1") => Some("on"),
            Some("0") => Some("off"),
            _ => None,
        },
    };
    all.fact("frequency", "turbo", turbo.map(str::to_owned));
    for driver in ["intel_pstate", "amd_pstate"] {
        all.fact("frequency", driver, text(cpus.join(driver).join("status")));
    }
}

fn idle(cpus: &Path, all: &mut EnvironmentFacts) {
    all.fact("idle", "driver", text(cpus.join("cpuidle/current_driver")));
    let governor = text(cpus.join("cpuidle/current_governor"));
    all.fact("idle", "governor", governor.or(text(cpus.join("cpuidle/current_governor_ro"))));
    let states = cpus.join("cpu0/cpuidle");
    let said = names(&states).into_iter().filter_map(|state| {
        let folder = states.join(state);
        let off = text(folder.join("disable")).is_some_and(|flag| flag != "0");
        let latency = text(folder.join("latency")).map_or(String::new(), |us| format!(" {us}us"));
        Some(format!("{}{latency}{}", text(folder.join("name"))?, if off { " off" } else { "" }))
    });
    all.fact("idle", "states", Some(said.collect::<Vec<_>>().join(", ")));
}

/// `L2 on, L2 adjacent line off, ...`, where the register may be read.
fn prefetchers(register: &Path) -> Option<String> {
    let mut bytes = [0; 8];
    File::open(register).ok()?.read_exact_at(&mut bytes, PREFETCH.0).ok()?;
    let bits = u64::from_le_bytes(bytes);
    let said = PREFETCH
        .1
        .iter()
        .enumerate()
        .map(|(bit, name)| format!("{name} {}", if bits >> bit & 1 == 0 { "on" } else { "off" }));
    Some(said.collect::<Vec<_>>().join(", "))
}
