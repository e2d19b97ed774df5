//! The figures that rules may ask for, by name.

use std::collections::BTreeMap;

/// All names that rules may use.
pub const KNOWN: &[&str] = &[
    "burst.after_per_s",
    "burst.before_per_s",
    "burst.looked_at",
    "burst.ratio",
    "burst.signs",
    "burst.work_changed",
    "cache.dirty_share",
    "cache.evicted_by_users_per_op",
    "cache.used_share",
    "change.cpu_work",
    "change.disk_bytes_work",
    "change.disk_requests",
    "change.disk_work",
    "change.frequency",
    "change.others",
    "change.retransmitted",
    "change.server_cpu",
    "change.steal",
    "change.throttled",
    "change.throughput",
    "change.waits_for_cpu",
    "change.waits_for_disk",
    "change.waits_for_memory",
    "client.busy",
    "client.lag_share",
    "closed.queue",
    "closed.users",
    "database.conflicts_per_op",
    "database.delayed_syncs_per_s",
    "database.evicted_per_op",
    "database.flow_control_share",
    "database.memory_of_limit",
    "database.misses",
    "database.queue",
    "database.refused_per_s",
    "database.saving_share",
    "database.scanned_per_op",
    "database.scanned_per_returned",
    "disk.bytes_per_request",
    "disk.bytes_per_s",
    "disk.bytes_variation",
    "disk.queue",
    "disk.reads_per_op",
    "disk.reads_per_s",
    "disk.reads_variation",
    "disk.writes_per_op",
    "disk.writes_per_s",
    "host.cpu.busy",
    "host.cpu.others",
    "host.cpu.steal",
    "host.frequency",
    "host.numa_remote",
    "host.softirq_core",
    "host.swapped_per_s",
    "host.thermal_per_s",
    "journal.sync_share",
    "network.bytes_per_s",
    "network.drops_per_s",
    "network.retransmitted",
    "network.retransmitted_per_s",
    "network.variation",
    "pressure.cpu",
    "pressure.io",
    "pressure.memory",
    "server.cores",
    "server.cpu_of_limit",
    "server.cpu_share",
    "server.gone_share",
    "server.limit_hits_per_s",
    "server.major_faults_per_op",
    "server.major_faults_per_s",
    "server.pressure.cpu",
    "server.thread_share",
    "server.throttled",
    "server.throttled_periods",
    "tickets.adjusted_by",
    "tickets.used_share",
];

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(BTreeMap<&'static str, f64>);

impl Facts {
    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(super) fn set(&mut self, name: &'static str, value: Option<f64>) {
        debug_assert!(KNOWN.contains(&name), "{name}");
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.insert(name, value);
        }
    }

    /// These, which were measured.
    #[cfg(test)]
    pub fn from_pairs(all: &[(&'static str, f64)]) -> Self {
        let mut facts = Facts::default();
        all.iter().for_each(|(name, value)| facts.set(name, Some(*value)));
        facts
    }

    /// Forgets facts.
    pub(super) fn remove_facts(&mut self, names: [&str; 2]) {
        self.0.retain(|name, _| !names.contains(name));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}
