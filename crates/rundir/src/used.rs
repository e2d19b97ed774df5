//! Use of host, processes and database meanwhile, as `summary.json` has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of the busiest disk of the host, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Name.
    pub name: String,
    /// Reads.
    pub reads_per_s: f64,
    /// Writes.
    pub writes_per_s: f64,
    /// Bytes read.
    pub read_bytes_per_s: f64,
    /// Bytes written.
    pub written_bytes_per_s: f64,
    /// Share of the time with an operation under way, 0 to 1.
    pub busy_share: f64,
    /// Operations under way, on average.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue: Option<f64>,
    /// Mean time of a read, microseconds; absent without reads, or where they were too short to be seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read_us: Option<f64>,
    /// Mean time of a write, microseconds; absent without writes, or where they were too short to be seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub write_us: Option<f64>,
}

/// Use of the host of the servers, or of the load generator where there are none of dyno's. Shares are of all cores' time,
/// 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUse {
    /// Name, where it is another than the one that conducted the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elsewhere: Option<String>,
    /// Number of its cores.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cores: Option<f64>,
    /// Neither idle nor waiting for input or output.
    pub cpu_busy_share: f64,
    /// Idle with input or output under way.
    pub cpu_iowait_share: f64,
    /// Taken away by the hypervisor.
    pub cpu_steal_share: f64,
    /// Least memory that was available, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_available_bytes: Option<f64>,
    /// Bytes received by all interfaces but the loopback, per second.
    pub network_received_bytes_per_s: f64,
    /// Bytes sent by them, per second.
    pub network_sent_bytes_per_s: f64,
    /// The disk with the highest share of busy time, if any did anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<DiskUse>,
}

/// Use of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// CPU time a second: the number of cores it kept busy.
    pub cpu_cores: f64,
    /// Resident memory, the greatest that was seen, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resident_bytes: Option<f64>,
    /// Page faults that needed a disk, per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub major_faults_per_s: Option<f64>,
    /// Seconds in a second that its cgroup was throttled for, added up over its threads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throttled_share: Option<f64>,
    /// Bytes that it had read from disks, per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read_bytes_per_s: Option<f64>,
    /// Bytes that it had written to disks, or will have, per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub written_bytes_per_s: Option<f64>,
    /// True if a kubelet told of them: the node that they ran on is not the host that `host` tells of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_pods: bool,
}

/// Metrics that the database reports, all watched nodes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatabaseUse {
    /// Nodes that answered.
    pub nodes: usize,
    /// Commands it counted, per second. One operation of the workload may be several commands, and the questions of the
    /// monitor count too.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operations_per_s: Option<f64>,
    /// Client connections, the greatest number that was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections: Option<f64>,
    /// Memory it uses, the greatest that was seen, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<f64>,
}

/// Programs of this host that are neither the load generator nor the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OthersUse {
    /// Cores that they used together.
    pub cpu_cores: f64,
    /// The cores that each used, by its name: those that used most.
    pub programs: std::collections::BTreeMap<String, f64>,
}

impl OthersUse {
    /// `stress-ng 0.96 cores, rustc 0.20`, the most first.
    pub fn describe_programs(&self) -> String {
        let mut all: Vec<(&String, &f64)> = self.programs.iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(a.1));
        let one = |(at, (name, cores)): (usize, &(&String, &f64))| {
            format!("{name} {cores:.2}{}", if at == 0 { " cores" } else { "" })
        };
        all.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Resources that monitors saw used during a phase. What they could not see is absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Monitored {
    /// This host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<HostUse>,
    /// The server's process, where it runs on this host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<ProcessUse>,
    /// The worker processes of an experiment together; embedded stores live in them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workers: Option<ProcessUse>,
    /// The database.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub database: Option<DatabaseUse>,
    /// Other programs of this host, also those that ran while the phase was warming up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others: Option<OthersUse>,
    /// CPU time of the monitors themselves, as a share of one core.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_share: Option<f64>,
}
