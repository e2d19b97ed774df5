//! Other processes: those that have used most CPU time, and databases.

use super::facts::EnvironmentFacts;
use crate::neighbours::{DATABASES, processes};
use crate::roots::Roots;

pub(super) fn read(roots: &Roots, all: &mut EnvironmentFacts) {
    let mut busiest: Vec<(u64, String)> = Vec::new();
    let mut databases = Vec::new();
    for (pid, process) in processes(roots) {
        let shown = format!("{} ({pid})", process.name);
        if DATABASES.contains(&process.name.as_str()) {
            databases.push(shown.clone());
        }
        if pid != std::process::id() && process.ticks > 0 {
            busiest.push((process.ticks, shown));
        }
    }
    busiest.sort_by(|a, b| b.cmp(a));
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    let said = busiest.iter().take(3).map(|(ticks, name)| format!("{name} {} s", ticks / hertz));
    all.volatile("neighbours", "most_cpu_since_their_start", Some(said.collect::<Vec<_>>().join(", ")));
    all.volatile("neighbours", "databases", Some(databases.join(", ")));
}
