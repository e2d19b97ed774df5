//! Findings that speak against good measurements in an environment: why, who says so, and the command that would change it.

use super::facts::EnvironmentFacts;

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Results can be wrong or cannot be repeated.
    High,
    /// Latencies or throughput suffer.
    Medium,
    /// Worth knowing.
    Low,
}

impl Severity {
    /// Name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// One thing that speaks against the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Stable name of the check.
    pub check: &'static str,
    /// Finding.
    pub found: String,
    /// Reason for which it matters.
    pub reason: &'static str,
    /// Source of the rule.
    pub source: &'static str,
    /// Command that would change it; empty where no command does.
    pub command: String,
}

const MONGODB: &str = "MongoDB manual, Production Notes";
const REDIS: &str = "Redis documentation, Diagnosing latency issues";
const REDIS_ADMINISTRATION: &str = "Redis documentation, Redis administration";

/// All findings, those that matter most first.
pub fn list_findings(all: &EnvironmentFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    memory(all, &mut found);
    processors(all, &mut found);
    storage(all, &mut found);
    cloud(all, &mut found);
    limits(all, &mut found);
    neighbours(all, &mut found);
    found.sort_by_key(|finding| finding.severity);
    found
}

fn number(all: &EnvironmentFacts, group: &str, name: &str) -> Option<f64> {
    all.get(group, name)?.split_whitespace().next()?.parse().ok()
}

fn memory(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    if all.get("memory", "thp_enabled") == Some("always") {
        into.push(Finding {
            severity: Severity::Medium,
            check: "transparent huge pages",
            found: "enabled is always".into(),
            reason: "a fork copies huge pages, and compaction stops threads; MongoDB before 8.0 wants never, 8.0 always",
            source: "Redis documentation, Diagnosing latency issues; MongoDB manual, Production Notes",
            command: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
        });
    }
    let swap = number(all, "memory", "swap_total").is_some_and(|kib| kib > 0.0);
    if let Some(swappiness) = number(all, "vm", "swappiness").filter(|n| *n > 1.0 && swap) {
        into.push(Finding {
            severity: Severity::Medium,
            check: "swappiness",
            found: format!("{swappiness}, and there is swap space"),
            reason: "the kernel moves a database's memory out for the sake of the page cache",
            source: MONGODB,
            command: "sysctl -w vm.swappiness=1".into(),
        });
    }
    if number(all, "vm", "zone_reclaim_mode").is_some_and(|mode| mode != 0.0) {
        into.push(Finding {
            severity: Severity::Medium,
            check: "zone reclaim",
            found: "on".into(),
            reason: "a full memory node reclaims its pages although other nodes have free ones",
            source: MONGODB,
            command: "sysctl -w vm.zone_reclaim_mode=0".into(),
        });
    }
    if let Some(nodes) = number(all, "numa", "numa_nodes").filter(|n| *n > 1.0) {
        into.push(Finding {
            severity: Severity::Medium,
            check: "memory nodes",
            found: format!("{nodes} nodes"),
            reason: "where a server's memory lies is chance unless a policy says it",
            source: MONGODB,
            command: "numactl --interleave=all SERVER, or server.placement in the experiment file".into(),
        });
    }
    if number(all, "vm", "overcommit_memory") == Some(0.0) {
        into.push(Finding {
            severity: Severity::Low,
            check: "overcommit",
            found: "vm.overcommit_memory is 0".into(),
            reason: "Redis cannot fork to save when little memory is free",
            source: REDIS_ADMINISTRATION,
            command: "sysctl -w vm.overcommit_memory=1".into(),
        });
    }
}

fn processors(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    if let Some(governor) = all.get("frequency", "governor").filter(|governor| *governor != "performance") {
        into.push(Finding {
            severity: Severity::Medium,
            check: "frequency governor",
            found: governor.to_owned(),
            reason: "the clock rate follows the load: latencies at low rates are longer, and runs differ",
            source: "kernel documentation, CPU Performance Scaling",
            command: "cpupower frequency-set -g performance".into(),
        });
    }
    let good = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    if let Some(clock) = all.get("kernel", "clock_source").filter(|clock| !good.contains(clock)) {
        into.push(Finding {
            severity: Severity::Medium,
            check: "clock source",
            found: clock.to_owned(),
            reason: "every reading of the clock is a system call; dyno reads it twice an operation",
            source: "kernel documentation, Timekeeping",
            command: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".into(),
        });
    }
    if all.get("frequency", "turbo") == Some("on") {
        into.push(Finding {
            severity: Severity::Low,
            check: "turbo",
            found: "on".into(),
            reason: "the clock rate depends on temperature and on how many cores are busy",
            source: "kernel documentation, CPU Performance Scaling",
            command: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, where runs must be alike"
                .into(),
        });
    }
}

fn storage(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    for (name, value) in all.facts.get("disks").into_iter().flatten() {
        let Some(disk) = name.strip_suffix(".read_ahead_kb") else { continue };
        if value.parse::<u64>().is_ok_and(|kib| kib > 16) {
            into.push(Finding {
                severity: Severity::Low,
                check: "read-ahead",
                found: format!("{disk}: {value} KiB"),
                reason: "small random reads of a database fetch pages that no query asked for",
                source: MONGODB,
                command: format!("blockdev --setra 32 /dev/{disk}"),
            });
        }
    }
    for (point, value) in all.facts.get("filesystems").into_iter().flatten() {
        let (kind, options) = value.split_once(", ").unwrap_or((value, ""));
        let told = options.split(',').any(|word| word == "noatime" || word == "ro");
        if !told && (kind.starts_with("ext") || kind.starts_with("xfs")) {
            into.push(Finding {
                severity: Severity::Low,
                check: "access times",
                found: format!("{point} is mounted without noatime"),
                reason: "reading files writes inodes",
                source: MONGODB,
                command: format!("mount -o remount,noatime {point}"),
            });
        }
    }
}

fn cloud(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    let instance = all.get("virtualisation", "instance_type").unwrap_or_default();
    if ["t2.", "t3.", "t3a.", "t4g."].iter().any(|family| instance.starts_with(family)) {
        into.push(Finding {
            severity: Severity::High,
            check: "burstable instance",
            found: instance.to_owned(),
            reason: "CPU credits run out in the middle of a run, and the figures with them",
            source: "Amazon EC2 User Guide, Burstable performance instances",
            command: "use an instance of a family with fixed performance, such as m6i".into(),
        });
    }
    for (name, value) in all.facts.get("disks").into_iter().flatten() {
        if let (Some(disk), true) = (name.strip_suffix(".model"), value.contains("Elastic Block Store")) {
            into.push(Finding {
                severity: Severity::High,
                check: "burstable volume",
                found: format!("{disk} is an EBS volume; its type cannot be seen from here"),
                reason: "gp2, st1 and sc1 volumes live on credits, and small instances have credits for EBS themselves",
                source: "Amazon EBS User Guide, EBS volume types",
                command: "aws ec2 describe-volumes; use gp3 or io2 with provisioned IOPS and throughput".into(),
            });
        }
    }
}

fn limits(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    if let Some(files) = number(all, "limits", "open_files").filter(|files| *files < 64_000.0) {
        into.push(Finding {
            severity: Severity::Low,
            check: "open files",
            found: format!("limit {files}"),
            reason: "every connection and every file of a database is one",
            source: "MongoDB manual, UNIX ulimit Settings",
            command: "ulimit -n 64000".into(),
        });
    }
    if let Some(backlog) = number(all, "network", "core.somaxconn").filter(|n| *n < 511.0) {
        into.push(Finding {
            severity: Severity::Low,
            check: "listen backlog",
            found: format!("net.core.somaxconn is {backlog}"),
            reason: "connections that come all at once are refused or delayed",
            source: REDIS_ADMINISTRATION,
            command: "sysctl -w net.core.somaxconn=1024".into(),
        });
    }
    let v2 = all.get("limits", "cgroup.cpu.max").filter(|text| !text.starts_with("max"));
    let v1 = all.get("limits", "cgroup.cpu.cfs_quota_us").filter(|text| !text.starts_with('-'));
    if let Some(quota) = v2.or(v1) {
        into.push(Finding {
            severity: Severity::High,
            check: "CPU quota",
            found: format!("the control group of dyno has {quota} us of CPU in a period"),
            reason: "a throttled load generator stands still for milliseconds; the pauses look like the database's",
            source: "kernel documentation, CFS Bandwidth Control",
            command: "run dyno outside of it, or give it whole cores by cpuset".into(),
        });
    }
}

fn neighbours(all: &EnvironmentFacts, into: &mut Vec<Finding>) {
    let volatile = |group: &str, name: &str| all.volatile.get(group).and_then(|facts| facts.get(name));
    if let Some(databases) = volatile("neighbours", "databases") {
        into.push(Finding {
            severity: Severity::Medium,
            check: "client beside the server",
            found: databases.clone(),
            reason: "load generator and server share cores, caches and memory bandwidth, and no network is measured",
            source: REDIS,
            command: "run dyno on another machine, or give both their own cores (--cores, server.placement)".into(),
        });
    }
    let load = volatile("host", "load").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    if let (Some(load), Some(cpus)) = (load, number(all, "cpu", "cpus"))
        && load > cpus / 2.0
    {
        let busy = volatile("neighbours", "most_cpu_since_their_start");
        into.push(Finding {
            severity: Severity::High,
            check: "busy host",
            found: format!(
                "load {load} on {cpus} CPUs; most CPU: {}",
                busy.map_or("unknown", String::as_str)
            ),
            reason: "whatever else runs takes part in the measurement",
            source: REDIS,
            command: "end it, or wait for it".into(),
        });
    }
}
