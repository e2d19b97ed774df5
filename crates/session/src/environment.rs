//! Facts about the host for a run directory.

use dyno_engine::affinity;
use dyno_monitor::environment::{EnvironmentFacts, Places};
use dyno_rundir::schema::Environment;
use dyno_rundir::system::System;

/// Reads how this host is set up.
pub fn read_system() -> System {
    let read = EnvironmentFacts::read(&Places::default());
    System::new(read.facts, read.volatile)
}

/// This host.
pub fn read_environment() -> Environment {
    let host = dyno_monitor::read_host_facts();
    Environment {
        host: host.name,
        kernel: host.kernel,
        cpu: host.cpu,
        cores: affinity::allowed_cores(),
        memory_bytes: host.memory_bytes,
        tuning: host.tuning,
        clock_ns: affinity::clock_cost_ns(),
        load_average: Some(host.load_average),
        system: Some(read_system()),
    }
}

/// Returns what is not as it was at the beginning of the run.
pub fn changes_since(then: &Environment) -> Vec<String> {
    let Some(before) = &then.system else { return Vec::new() };
    let read = EnvironmentFacts::settings(&Places::default());
    let found = before.list_differences(&System::new(read.facts, read.volatile));
    let side = |value: Option<String>| value.unwrap_or("unknown".into());
    found
        .into_iter()
        .map(|d| format!("{} {}: {} -> {}", d.group, d.name, side(d.first), side(d.second)))
        .collect()
}
