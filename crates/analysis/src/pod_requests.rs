//! What pods have used in runs that are over, as requests of the next ones.

use dyno_rundir::monitor::{RecordedSeries, Recording};
use std::collections::BTreeMap;

/// Time over which a pod's CPU is averaged, milliseconds: kubelets look every 10 to 15 s.
const WINDOW_MS: f64 = 10_000.0;

/// Room that a request has beyond what was used: a run differs from the next one.
const ROOM: f64 = 1.25;

/// CPU is requested in steps of so many thousandths of a core.
const STEP_MILLICORES: f64 = 10.0;

const MIB: f64 = 1_048_576.0;

/// What a pod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodRole {
    /// It applies the load.
    Worker,
    /// It only loads.
    Loader,
    /// It is a server.
    Server,
}

impl PodRole {
    /// The key of an experiment's section `kubernetes` that is about such pods.
    pub fn section(self) -> &'static str {
        match self {
            PodRole::Worker => "workers",
            PodRole::Loader => "loaders",
            PodRole::Server => "servers",
        }
    }

    /// The role of a pod, by what a run's record says of it.
    fn of_pod(pod: &str, component: &str) -> PodRole {
        match component {
            "server" => PodRole::Server,
            // A Job's pods are called after it, an index, and five random characters.
            _ if pod.rsplit('-').nth(2) == Some("l") => PodRole::Loader,
            _ => PodRole::Worker,
        }
    }
}

/// The greatest use of pods of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PodUse {
    /// Cores, averaged over ten seconds.
    pub cores: Option<f64>,
    /// Memory, bytes: a worker's peak, a server's working set.
    pub memory_bytes: Option<f64>,
}

impl PodUse {
    /// Takes the greater of each.
    pub fn take_greater(&mut self, other: PodUse) {
        let greater = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        self.cores = greater(self.cores, other.cores);
        self.memory_bytes = greater(self.memory_bytes, other.memory_bytes);
    }

    /// Requests with a quarter more, as Kubernetes writes them: `cpu` in thousandths of a core, `memory` in MiB. What is not
    /// known is not there.
    pub fn requests(self) -> Vec<(&'static str, String)> {
        let cpu =
            self.cores.map(|cores| (cores * ROOM * 1e3 / STEP_MILLICORES).ceil().max(1.0) * STEP_MILLICORES);
        let memory = self.memory_bytes.map(|bytes| (bytes * ROOM / MIB).ceil().max(1.0));
        let cpu = cpu.map(|millicores| ("cpu", format!("{millicores}m")));
        cpu.into_iter().chain(memory.map(|mebibytes| ("memory", format!("{mebibytes}Mi")))).collect()
    }
}

/// The greatest use of the pods of a run, by role; `facts` are those of its record. Pods that no monitor watched are left out.
pub fn pod_use(facts: &BTreeMap<String, String>, recording: &Recording) -> BTreeMap<PodRole, PodUse> {
    let mut found: BTreeMap<PodRole, PodUse> = BTreeMap::new();
    for (key, component) in facts {
        let Some(pod) = key.strip_prefix("pod.").and_then(|key| key.strip_suffix(".component")) else {
            continue;
        };
        // The only worker of a pod is called after it, several have numbers.
        let (server, worker) = (format!("server-{pod}"), format!("worker-{pod}"));
        let several = format!("{worker}-");
        let own = recording
            .source_names()
            .filter(|name| *name == server || *name == worker || name.starts_with(&several));
        for source in own {
            let series = |name: &str| recording.find_series(source, name);
            let memory =
                series("cgroup.memory_peak_bytes").or_else(|| series("cgroup.memory_working_set_bytes"));
            let most = PodUse {
                cores: series("cgroup.cpu_s").and_then(|cpu| most_cores(&cpu)),
                memory_bytes: memory.and_then(|memory| memory.max(f64::NEG_INFINITY, f64::INFINITY)),
            };
            found.entry(PodRole::of_pod(pod, component)).or_default().take_greater(most);
        }
    }
    found
}

/// The greatest rate of a counter of seconds over a window, or over all where that is shorter.
fn most_cores(cpu: &RecordedSeries) -> Option<f64> {
    let known: Vec<(f64, f64)> = cpu.points.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect();
    // Of a counter that begins anew the part before is not known.
    let rate = |(from, low): (f64, f64), (to, high): (f64, f64)| {
        (to > from && high >= low).then(|| (high - low) / (to - from) * 1e3)
    };
    let (mut end, mut most) = (0, None);
    for from in &known {
        while end < known.len() && known[end].0 < from.0 + WINDOW_MS {
            end += 1;
        }
        let Some(to) = known.get(end) else { break };
        most = most.into_iter().chain(rate(*from, *to)).reduce(f64::max);
    }
    most.or_else(|| rate(*known.first()?, *known.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::monitor::Kind::{Counter, Gauge};

    fn facts() -> BTreeMap<String, String> {
        [
            ("d1-s0-0", "server"),
            ("d1-w-0-abcde", "worker"),
            ("d1-w-1-fghij", "worker"),
            ("d1-l-0-klmno", "worker"),
        ]
        .into_iter()
        .map(|(pod, component)| (format!("pod.{pod}.component"), component.to_owned()))
        .collect()
    }

    #[test]
    fn the_greatest_ten_seconds_and_the_greatest_memory_count() {
        let mut recording = Recording::new();
        // Half a core, and two cores for ten seconds from second 20; the second pod of workers does less.
        let busy = |second: f64| 0.5 * second + 1.5 * (second - 20.0).clamp(0.0, 10.0);
        for second in 0..40 {
            let (at, second) = (f64::from(second) * 1e3, f64::from(second));
            let row =
                [("cgroup.cpu_s", Counter, busy(second)), ("cgroup.memory_peak_bytes", Gauge, 4.0 * MIB)];
            recording.push("worker-d1-w-0-abcde-1", at, row);
            recording.push("worker-d1-w-1-fghij", at, [("cgroup.cpu_s", Counter, 0.1 * second)]);
            recording.push("worker-d1-l-0-klmno", at, [("cgroup.memory_peak_bytes", Gauge, 9.0 * MIB)]);
        }
        for (at, cpu, bytes) in [(0.0, 0.0, 1.0), (12.0, 3.0, 80.0), (24.0, 12.0, 40.0)] {
            let row =
                [("cgroup.cpu_s", Counter, cpu), ("cgroup.memory_working_set_bytes", Gauge, bytes * MIB)];
            recording.push("server-d1-s0-0", at * 1e3, row);
        }
        recording.push("server-other", 0.0, [("cgroup.cpu_s", Counter, 1e9)]);
        let found = pod_use(&facts(), &recording);
        let requests = |role: PodRole| found[&role].requests();
        assert_eq!(found[&PodRole::Worker].cores, Some(2.0));
        assert_eq!(requests(PodRole::Worker), [("cpu", "2500m".into()), ("memory", "5Mi".into())]);
        // 9 s of CPU in 12 s; 80 MiB.
        assert_eq!(requests(PodRole::Server), [("cpu", "940m".into()), ("memory", "100Mi".into())]);
        assert_eq!(requests(PodRole::Loader), [("memory", "12Mi".into())]);
    }

    #[test]
    fn a_short_run_counts_whole_and_one_sample_says_nothing() {
        let mut recording = Recording::new();
        for second in 0..4 {
            let at = f64::from(second) * 1e3;
            recording.push(
                "worker-d1-w-0-abcde-1",
                at,
                [("cgroup.cpu_s", Counter, 0.001 * f64::from(second))],
            );
        }
        recording.push("server-d1-s0-0", 0.0, [("cgroup.cpu_s", Counter, 7.0)]);
        let found = pod_use(&facts(), &recording);
        assert_eq!(found[&PodRole::Worker].requests(), [("cpu", "10m".to_owned())]);
        assert_eq!(found[&PodRole::Server].requests(), []);
        assert!(!found.contains_key(&PodRole::Loader));
    }
}
