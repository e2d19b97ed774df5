//! Monitors' series into a phase's figures, cut at its edges.

use dyno_rundir::monitor::{Kind, Recording};
use dyno_rundir::schema::{DatabaseUse, DiskUse, HostUse, Monitored, ProcessUse};
use dyno_types::database_series::{CONNECTIONS, CPU_SYSTEM_S, CPU_USER_S, MEMORY_BYTES, OPERATIONS};

/// Prefix of the names of nodes.
const DATABASE: &str = "database";

/// Prefix of the names of servers' processes.
const SERVER: &str = "server";

/// Prefix of the names of worker processes.
const WORKER: &str = "worker";

/// Metrics of a process.
const OF_PROCESS: [&str; 9] = [
    CPU_USER_S,
    CPU_SYSTEM_S,
    "resident_bytes",
    "major_faults",
    "cgroup.throttled_s",
    "cgroup.cpu_s",
    "cgroup.memory_working_set_bytes",
    "io.read_bytes",
    "io.written_bytes",
];

/// States of the host's CPU that are neither idle nor given to another virtual machine.
const BUSY: [&str; 5] = ["user", "nice", "system", "irq", "softirq"];

/// Returns whether a summary looks at a series; others need not be kept in memory.
pub fn is_summarised(source: &str, name: &str) -> bool {
    match source {
        source if source == "host" || source.starts_with("host-") => {
            ["cpu.", "disk.", "network."].iter().any(|start| name.starts_with(start))
                || name == "memory.available_bytes"
        }
        "monitor" => name == "cpu_s",
        source if source.starts_with(SERVER) || source.starts_with(WORKER) => OF_PROCESS.contains(&name),
        source if source.starts_with(DATABASE) => [OPERATIONS, CONNECTIONS, MEMORY_BYTES].contains(&name),
        _ => false,
    }
}

/// One phase's window on the recording.
struct PhaseWindow<'a> {
    recording: &'a Recording,
    from_ms: f64,
    to_ms: f64,
}

impl PhaseWindow<'_> {
    fn rate(&self, source: &str, name: &str) -> Option<f64> {
        self.recording.counter_rate(source, name, self.from_ms, self.to_ms)
    }

    fn max(&self, source: &str, name: &str) -> Option<f64> {
        self.recording.max(source, name, self.from_ms, self.to_ms)
    }

    fn least(&self, source: &str, name: &str) -> Option<f64> {
        let series = self.recording.find_series(source, name)?;
        let inside = series.points.iter().filter(|(at, _)| (self.from_ms..=self.to_ms).contains(at));
        inside.filter_map(|(_, value)| *value).reduce(f64::min)
    }

    /// Returns the names between `prefix` and `suffix` in the host's series, such as the names of disks.
    fn devices(&self, prefix: &str, suffix: &str) -> Vec<String> {
        let names = self.recording.series_names(self.recording.host_source());
        names.filter_map(|n| n.strip_prefix(prefix)?.strip_suffix(suffix).map(str::to_owned)).collect()
    }

    fn cpu(&self, source: &str) -> Option<HostCpuUse> {
        let state = |state: &str| self.rate(source, &format!("cpu.{state}_s"));
        let known = |states: &[&str]| states.iter().filter_map(|s| state(s)).sum::<f64>();
        let (idle, iowait, steal) = (state("idle")?, known(&["iowait"]), known(&["steal"]));
        let busy = known(&BUSY);
        let all = busy + idle + iowait + steal;
        (all > 0.0).then(|| HostCpuUse {
            cores: all.round(),
            busy_share: busy / all,
            iowait_share: iowait / all,
            steal_share: steal / all,
        })
    }

    fn host(&self) -> Option<HostUse> {
        let cpu = self.cpu(self.recording.host_source())?;
        let network = |what: &str| -> f64 {
            let devices =
                self.devices("network.", &format!(".{what}")).into_iter().filter(|name| name != "lo");
            devices
                .filter_map(|name| self.rate(self.recording.host_source(), &format!("network.{name}.{what}")))
                .sum()
        };
        let disks = self.devices("disk.", ".busy_s").into_iter().filter_map(|name| self.disk(&name));
        let busiest = disks.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
        Some(HostUse {
            elsewhere: self.recording.host_source().strip_prefix("host-").map(str::to_owned),
            cores: Some(cpu.cores),
            cpu_busy_share: cpu.busy_share,
            cpu_iowait_share: cpu.iowait_share,
            cpu_steal_share: cpu.steal_share,
            memory_available_bytes: self.least(self.recording.host_source(), "memory.available_bytes"),
            network_received_bytes_per_s: network("received_bytes"),
            network_sent_bytes_per_s: network("sent_bytes"),
            disk: busiest.filter(|d| d.reads_per_s + d.writes_per_s > 0.0),
        })
    }

    fn disk(&self, name: &str) -> Option<DiskUse> {
        let rate = |what: &str| self.rate(self.recording.host_source(), &format!("disk.{name}.{what}"));
        let (reads, writes) = (rate("reads")?, rate("writes")?);
        // The kernel counts whole milliseconds: a time of nothing is one that was too short to be seen.
        let each = |seconds: Option<f64>, number: f64| {
            seconds.filter(|s| number > 0.0 && *s > 0.0).map(|s| s / number * 1e6)
        };
        Some(DiskUse {
            name: name.to_owned(),
            reads_per_s: reads,
            writes_per_s: writes,
            read_bytes_per_s: rate("read_bytes")?,
            written_bytes_per_s: rate("written_bytes")?,
            busy_share: rate("busy_s")?.min(1.0),
            queue: rate("weighted_s"),
            read_us: each(rate("read_s"), reads),
            write_us: each(rate("write_s"), writes),
        })
    }

    fn sources(&self, prefix: &str) -> Vec<&str> {
        self.recording.source_names().filter(|s| s.starts_with(prefix)).collect()
    }

    fn process_cpu(&self, source: &str) -> Option<f64> {
        Some(self.rate(source, CPU_USER_S)? + self.rate(source, CPU_SYSTEM_S)?)
    }

    /// All processes whose names begin so, together.
    fn processes(&self, prefix: &str) -> Option<ProcessUse> {
        let all_of = self.sources(prefix);
        // Of pods that a kubelet tells of, the control group is known alone.
        let cpu = |name: &str| self.process_cpu(name).or_else(|| self.rate(name, "cgroup.cpu_s"));
        let resident = |name: &str| {
            let own = self.max(name, "resident_bytes");
            own.or_else(|| self.max(name, "cgroup.memory_working_set_bytes"))
        };
        let rate = |what: &'static str| all(&all_of, |name| self.rate(name, what));
        Some(ProcessUse {
            cpu_cores: all(&all_of, cpu)?,
            resident_bytes: all(&all_of, resident),
            major_faults_per_s: rate("major_faults"),
            throttled_share: rate("cgroup.throttled_s"),
            read_bytes_per_s: rate("io.read_bytes"),
            written_bytes_per_s: rate("io.written_bytes"),
            in_pods: all_of.iter().any(|name| self.recording.find_series(name, CPU_USER_S).is_none()),
        })
    }

    fn database(&self) -> Option<DatabaseUse> {
        let nodes = self.sources(DATABASE);
        let answered = |source: &&&str| {
            [OPERATIONS, CONNECTIONS].iter().any(|name| {
                let series = self.recording.find_series(source, name);
                series.is_some_and(|s| match s.kind {
                    Kind::Counter => s.rate_between(self.from_ms, self.to_ms).is_some(),
                    Kind::Gauge => s.max(self.from_ms, self.to_ms).is_some(),
                })
            })
        };
        let answering: Vec<&str> = nodes.iter().filter(answered).copied().collect();
        (!answering.is_empty()).then(|| DatabaseUse {
            nodes: answering.len(),
            operations_per_s: all(&nodes, |node| self.rate(node, OPERATIONS)),
            connections: all(&nodes, |node| self.max(node, CONNECTIONS)),
            memory_bytes: all(&nodes, |node| self.max(node, MEMORY_BYTES)),
        })
    }
}

/// The sum over all sources. A sum over some of them would be too small: then it is not known.
fn all(sources: &[&str], of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = sources.iter().map(|source| of(source)).collect();
    values.filter(|v| !v.is_empty()).map(|v| v.iter().sum())
}

/// CPU time of a host, as shares of all its cores' time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCpuUse {
    /// Number of its cores.
    pub cores: f64,
    /// Neither idle nor waiting for input or output.
    pub busy_share: f64,
    /// Idle with input or output under way.
    pub iowait_share: f64,
    /// Taken away by the hypervisor.
    pub steal_share: f64,
}

/// CPU time of the host that `source` tells of (`host`, `host-NAME`) between two times (Unix, milliseconds); `None` where that
/// was not recorded.
pub fn host_cpu(recording: &Recording, source: &str, from_ms: f64, to_ms: f64) -> Option<HostCpuUse> {
    PhaseWindow { recording, from_ms, to_ms }.cpu(source)
}

/// Cores that processes of one control group use between two times (Unix, milliseconds): those of the group, where the first of
/// `sources` has it recorded, else the processes' own. `None` where one of them was not recorded.
pub fn cores_used(recording: &Recording, sources: &[String], from_ms: f64, to_ms: f64) -> Option<f64> {
    let window = PhaseWindow { recording, from_ms, to_ms };
    let group = sources.first().and_then(|first| window.rate(first, "cgroup.cpu_s"));
    let names: Vec<&str> = sources.iter().map(String::as_str).collect();
    group.or_else(|| all(&names, |name| window.process_cpu(name)))
}

/// Summarises what monitors saw between two times (Unix, milliseconds).
pub fn summarise_monitors(recording: &Recording, from_ms: f64, to_ms: f64) -> Monitored {
    let window = PhaseWindow { recording, from_ms, to_ms };
    Monitored {
        host: window.host(),
        server: window.processes(SERVER),
        workers: window.processes(WORKER),
        database: window.database(),
        // Processes that no monitor watched are counted where the phase is run.
        others: None,
        cost_share: window.rate("monitor", "cpu_s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Counter, Gauge};

    fn recording() -> Recording {
        let mut recording = Recording::new();
        for second in 0..=10 {
            let (at, s) = (f64::from(second) * 1_000.0, f64::from(second));
            let host = [
                ("cpu.user_s", Counter, s * 0.5),
                ("cpu.system_s", Counter, s * 0.25),
                ("cpu.idle_s", Counter, s),
                ("cpu.iowait_s", Counter, s * 0.2),
                ("cpu.steal_s", Counter, s * 0.05),
                ("memory.available_bytes", Gauge, 1_000.0 - s),
                ("disk.a.reads", Counter, 0.0),
                ("disk.a.writes", Counter, s * 100.0),
                ("disk.a.read_bytes", Counter, 0.0),
                ("disk.a.written_bytes", Counter, s * 4_096.0),
                ("disk.a.write_s", Counter, s * 0.02),
                ("disk.a.read_s", Counter, 0.0),
                ("disk.a.busy_s", Counter, s * 0.75),
                ("disk.a.weighted_s", Counter, s * 1.5),
                ("disk.b.busy_s", Counter, 0.0),
                ("network.lo.sent_bytes", Counter, s * 1e9),
                ("network.e0.sent_bytes", Counter, s * 10.0),
                ("network.e1.sent_bytes", Counter, s * 20.0),
            ];
            recording.push("host", at, host);
            recording.push(
                "server",
                at,
                [("cpu.user_s", Counter, s * 0.5), ("cpu.system_s", Counter, s * 0.25)],
            );
            recording.push(
                "database-1",
                at,
                [("operations", Counter, s * 1_000.0), ("connections", Gauge, 5.0 + s)],
            );
            recording.push("monitor", at, [("cpu_s", Counter, s * 0.001)]);
        }
        recording
    }

    #[test]
    fn a_phase_between_samples() {
        let seen = summarise_monitors(&recording(), 1_500.0, 7_250.0);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and {b}");
        let host = seen.host.unwrap();
        near(host.cpu_busy_share, 0.375);
        near(host.cpu_iowait_share, 0.1);
        near(host.cpu_steal_share, 0.025);
        assert_eq!(host.memory_available_bytes, Some(993.0));
        near(host.network_sent_bytes_per_s, 30.0);
        let disk = host.disk.unwrap();
        assert_eq!((disk.name.as_str(), disk.read_us), ("a", None));
        near(disk.writes_per_s, 100.0);
        near(disk.write_us.unwrap(), 200.0);
        near(disk.queue.unwrap(), 1.5);
        near(seen.server.as_ref().unwrap().cpu_cores, 0.75);
        assert_eq!(seen.server.unwrap().resident_bytes, None);
        let database = seen.database.unwrap();
        near(database.operations_per_s.unwrap(), 1_000.0);
        assert_eq!((database.connections, database.memory_bytes, database.nodes), (Some(12.0), None, 1));
        near(seen.cost_share.unwrap(), 0.001);
    }

    #[test]
    fn a_pod_that_its_kubelet_tells_of() {
        let mut recording = recording();
        recording.push("server-redis-0", 0.0, []);
        assert_eq!(
            summarise_monitors(&recording, 0.0, 10_000.0).server,
            None,
            "half of the servers is no sum"
        );
        let mut recording = Recording::new();
        for second in [0, 10, 20] {
            let level = f64::from(second) * 1e6;
            let said = [
                ("cgroup.cpu_s", Counter, f64::from(second) * 0.5),
                ("cgroup.memory_working_set_bytes", Gauge, level),
            ];
            recording.push("server-redis-0", f64::from(second) * 1e3, said);
        }
        let server = summarise_monitors(&recording, 2_000.0, 18_000.0).server.unwrap();
        assert!((server.cpu_cores - 0.5).abs() < 1e-9 && server.in_pods, "{server:?}");
        assert_eq!(server.resident_bytes, Some(1e7));
    }

    #[test]
    fn what_was_not_watched_is_absent() {
        assert_eq!(summarise_monitors(&Recording::new(), 0.0, 1.0), Monitored::default());
        let later = summarise_monitors(&recording(), 20_000.0, 30_000.0);
        assert_eq!(later, Monitored::default());
        let mut two = recording();
        two.push("database-2", 3_000.0, []);
        let database = summarise_monitors(&two, 1_000.0, 5_000.0).database.unwrap();
        assert_eq!((database.nodes, database.operations_per_s), (1, None), "half a cluster is no sum");
    }

    #[test]
    fn what_is_kept_for_a_summary() {
        for (source, name) in [
            ("host", "cpu.user_s"),
            ("host-db1", "disk.a.reads"),
            ("host", "network.e0.sent_bytes"),
            ("host", "memory.available_bytes"),
            ("monitor", "cpu_s"),
            ("server", "cpu.user_s"),
            ("server-redis-0", "cgroup.cpu_s"),
            ("worker-1", "io.read_bytes"),
            ("database", "operations"),
            ("database-2", "connections"),
            ("database-2", "memory_bytes"),
        ] {
            assert!(is_summarised(source, name), "{source} {name}");
        }
        for (source, name) in [
            ("host", "memory.total_bytes"),
            ("host", "operations"),
            ("hostess", "cpu.user_s"),
            ("monitor", "resident_bytes"),
            ("server", "threads"),
            ("worker-1", "operations"),
            ("database-2", "cpu.user_s"),
            ("link", "operations"),
            ("link", "cpu.user_s"),
            ("link", "cpu_s"),
        ] {
            assert!(!is_summarised(source, name), "{source} {name}");
        }
    }

    #[test]
    fn a_disk_without_requests_or_without_time_has_no_time_of_each() {
        let host = |reads: f64, read_s: f64, write_s: f64| {
            let mut recording = Recording::new();
            for (at, s) in [(0.0, 0.0), (1_000.0, 1.0)] {
                let rows = [
                    ("cpu.idle_s", s),
                    ("disk.a.reads", s * reads),
                    ("disk.a.writes", 0.0),
                    ("disk.a.read_bytes", 0.0),
                    ("disk.a.written_bytes", 0.0),
                    ("disk.a.busy_s", s * 0.5),
                    ("disk.a.read_s", s * read_s),
                    ("disk.a.write_s", s * write_s),
                ];
                recording.push("host", at, rows.map(|(name, value)| (name, Counter, value)));
            }
            summarise_monitors(&recording, 0.0, 1_000.0).host.unwrap()
        };
        let times = |host: HostUse| host.disk.map(|disk| (disk.read_us, disk.write_us));
        // 20 ms over 100 reads are 200 us each; a write that has not ended has a time, and no number.
        assert_eq!(times(host(100.0, 0.02, 0.01)), Some((Some(200.0), None)));
        assert_eq!(times(host(100.0, 0.0, 0.0)), Some((None, None)), "too short to be seen");
        assert_eq!(times(host(0.0, 0.0, 0.0)), None, "a disk that nothing was asked of");
    }
}
