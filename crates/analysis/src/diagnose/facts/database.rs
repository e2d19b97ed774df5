//! Figures from what databases report about themselves. Of several nodes the worst one counts; figures for each operation are of
//! all nodes together, as the operations are.

use super::figures::Facts;
use dyno_rundir::monitor::Recording;
use dyno_types::database_series::{
    AOF_DELAYED_SYNCS, AOF_REWRITING, CONNECTIONS_REJECTED, KEYSPACE_EVICTED, KEYSPACE_HITS, KEYSPACE_MISSES,
    MEMORY_BYTES, MEMORY_LIMIT_BYTES, RDB_SAVING,
};
use dyno_types::mongod::counters::{
    CACHE_BYTES, CACHE_DIRTY_BYTES, CACHE_EVICTED_BY_USERS, CACHE_LIMIT_BYTES, DOCUMENTS_RETURNED,
    FLOW_CONTROL_WAITED_US, JOURNAL_SYNC_US, QUEUE_TOTAL, SCANNED_DOCUMENTS, TICKETS, WRITE_CONFLICTS,
};

/// Names of the recording's sources that are databases begin with this.
pub(in crate::diagnose) const SOURCE: &str = "database";

/// Figures of the measured phase between `from` and `to` (Unix, milliseconds), at `throughput` operations a second.
pub(super) fn add_database_facts(
    facts: &mut Facts,
    recording: &Recording,
    throughput: f64,
    (from, to): (f64, f64),
) {
    let nodes: Vec<&str> = recording.source_names().filter(|source| source.starts_with(SOURCE)).collect();
    let worst = |of: &dyn Fn(&str) -> Option<f64>| nodes.iter().filter_map(|node| of(node)).reduce(f64::max);
    let rate = |node: &str, name: &str| recording.counter_rate(node, name, from, to);
    let all = |name: &str| nodes.iter().filter_map(|node| rate(node, name)).reduce(|a, b| a + b);
    let mean = |node: &str, name: &str| recording.gauge_mean(node, name, from, to);
    let share = |node: &str, part: &str, whole: &str| {
        Some(mean(node, part)? / mean(node, whole).filter(|whole| *whole > 0.0)?)
    };
    let per_op = |value: Option<f64>| value.map(|value| value / throughput.max(1e-9));
    let of_rates = |node: &str, part: &str, whole: &str| {
        Some(rate(node, part)? / rate(node, whole).filter(|whole| *whole > 0.0)?)
    };

    facts.set("cache.dirty_share", worst(&|node| share(node, CACHE_DIRTY_BYTES, CACHE_LIMIT_BYTES)));
    facts.set("cache.used_share", worst(&|node| share(node, CACHE_BYTES, CACHE_LIMIT_BYTES)));
    facts.set("cache.evicted_by_users_per_op", per_op(all(CACHE_EVICTED_BY_USERS)));
    let tickets = |node: &str, kind: &str| {
        let (out, left) = (
            mean(node, &format!("{TICKETS}.{kind}.out"))?,
            mean(node, &format!("{TICKETS}.{kind}.available"))?,
        );
        (out + left > 0.0).then(|| out / (out + left))
    };
    facts.set(
        "tickets.used_share",
        worst(&|node| ["read", "write"].iter().filter_map(|kind| tickets(node, kind)).reduce(f64::max)),
    );
    facts.set("database.queue", worst(&|node| mean(node, QUEUE_TOTAL)));
    facts.set("database.conflicts_per_op", per_op(all(WRITE_CONFLICTS)));
    facts.set("database.scanned_per_op", per_op(all(SCANNED_DOCUMENTS)));
    facts.set(
        "database.scanned_per_returned",
        worst(&|node| of_rates(node, SCANNED_DOCUMENTS, DOCUMENTS_RETURNED)),
    );
    let held = worst(&|node| rate(node, FLOW_CONTROL_WAITED_US));
    facts.set("database.flow_control_share", held.map(|us| us / 1e6));
    facts.set("journal.sync_share", worst(&|node| rate(node, JOURNAL_SYNC_US)).map(|us| us / 1e6));

    facts.set("database.evicted_per_op", per_op(all(KEYSPACE_EVICTED)));
    facts.set("database.memory_of_limit", worst(&|node| share(node, MEMORY_BYTES, MEMORY_LIMIT_BYTES)));
    facts.set(
        "database.misses",
        worst(&|node| {
            let (hits, misses) = (rate(node, KEYSPACE_HITS)?, rate(node, KEYSPACE_MISSES)?);
            (hits + misses > 0.0).then(|| misses / (hits + misses))
        }),
    );
    let saving = [RDB_SAVING, AOF_REWRITING];
    facts.set(
        "database.saving_share",
        worst(&|node| saving.iter().filter_map(|name| mean(node, name)).reduce(f64::max)),
    );
    facts.set("database.delayed_syncs_per_s", worst(&|node| rate(node, AOF_DELAYED_SYNCS)));
    facts.set("database.refused_per_s", worst(&|node| rate(node, CONNECTIONS_REJECTED)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::monitor::Kind::{Counter, Gauge};

    #[test]
    fn the_worst_node_counts_and_what_is_not_said_is_no_figure() {
        let mut recording = Recording::new();
        for second in 0..=10 {
            let (at, s) = (f64::from(second) * 1e3, f64::from(second));
            let row = |dirty: f64| {
                [
                    ("cache.dirty_bytes", Gauge, dirty),
                    ("cache.limit_bytes", Gauge, 1_000.0),
                    ("cache.pages_evicted_by_users", Counter, s * 20.0),
                    ("tickets.read.out", Gauge, 3.0),
                    ("tickets.read.available", Gauge, 125.0),
                    ("tickets.write.out", Gauge, 128.0),
                    ("tickets.write.available", Gauge, 0.0),
                    ("keyspace.hits", Counter, 0.0),
                    ("keyspace.misses", Counter, 0.0),
                ]
            };
            recording.push("database-1", at, row(60.0));
            recording.push("database-2", at, row(210.0));
        }
        let mut facts = Facts::default();
        add_database_facts(&mut facts, &recording, 1_000.0, (0.0, 10_000.0));
        let figures: Vec<(&str, f64)> = facts.iter().collect();
        assert_eq!(
            figures,
            [
                ("cache.dirty_share", 0.21),
                ("cache.evicted_by_users_per_op", 0.04),
                ("tickets.used_share", 1.0),
            ]
        );
    }

    #[test]
    fn every_figure_is_of_the_worst_node_or_of_all_together() {
        let counters = [
            ("cache.pages_evicted_by_users", 20.0),
            ("operation.writeConflicts", 30.0),
            ("scanned_documents", 400.0),
            ("documents.returned", 40.0),
            ("flow_control.waited_us", 250_000.0),
            ("journal.sync_us", 500_000.0),
            ("keyspace.evicted", 5.0),
            ("keyspace.hits", 60.0),
            ("keyspace.misses", 40.0),
            ("aof.delayed_syncs", 0.5),
            ("connections_rejected", 2.0),
        ];
        let gauges = [
            ("cache.dirty_bytes", 100.0),
            ("cache.bytes", 800.0),
            ("cache.limit_bytes", 1_000.0),
            ("tickets.read.out", 3.0),
            ("tickets.read.available", 1.0),
            ("tickets.write.out", 1.0),
            ("tickets.write.available", 9.0),
            ("queue.total", 6.0),
            ("memory_bytes", 90.0),
            ("memory.limit_bytes", 200.0),
            ("rdb.saving", 0.25),
            ("aof.rewriting", 0.75),
        ];
        let mut recording = Recording::new();
        for second in 0..=10 {
            let at = f64::from(second);
            // The second node does a tenth of everything, and has a tenth of nothing but what it uses.
            for (node, part) in [("database-1", 1.0), ("database-2", 0.1)] {
                let counted = counters.iter().map(|(name, per_s)| (*name, Counter, per_s * part * at));
                let limits = |name: &str| name.contains("limit") || name.contains("available");
                let of = |name: &str, value: f64| if limits(name) { value } else { value * part };
                let gauged = gauges.iter().map(|(name, value)| (*name, Gauge, of(name, *value)));
                recording.push(node, at * 1e3, counted.chain(gauged));
            }
            recording.push("host", at * 1e3, [("queue.total", Gauge, 99.0)]);
        }
        let mut facts = Facts::default();
        add_database_facts(&mut facts, &recording, 100.0, (0.0, 10_000.0));
        let figures: Vec<(&str, f64)> =
            facts.iter().map(|(name, value)| (name, (value * 1e6).round() / 1e6)).collect();
        assert_eq!(
            figures,
            [
                ("cache.dirty_share", 0.1),
                ("cache.evicted_by_users_per_op", 0.22),
                ("cache.used_share", 0.8),
                ("database.conflicts_per_op", 0.33),
                ("database.delayed_syncs_per_s", 0.5),
                ("database.evicted_per_op", 0.055),
                ("database.flow_control_share", 0.25),
                ("database.memory_of_limit", 0.45),
                ("database.misses", 0.4),
                ("database.queue", 6.0),
                ("database.refused_per_s", 2.0),
                ("database.saving_share", 0.75),
                ("database.scanned_per_op", 4.4),
                ("database.scanned_per_returned", 10.0),
                ("journal.sync_share", 0.5),
                ("tickets.used_share", 0.75),
            ]
        );
        // A quotient by nothing is no figure.
        let mut idle = Recording::new();
        for second in 0..=10 {
            let row = [
                ("cache.bytes", Gauge, 1.0),
                ("cache.limit_bytes", Gauge, 0.0),
                ("tickets.read.out", Gauge, 0.0),
                ("tickets.read.available", Gauge, 0.0),
                ("scanned_documents", Counter, 1.0),
                ("documents.returned", Counter, 0.0),
            ];
            idle.push("database-1", f64::from(second) * 1e3, row);
        }
        let mut facts = Facts::default();
        add_database_facts(&mut facts, &idle, 100.0, (0.0, 10_000.0));
        assert_eq!(facts.iter().collect::<Vec<_>>(), [("database.scanned_per_op", 0.0)]);
        // Nor does it hide that of another node.
        for second in 0..=10 {
            let at = f64::from(second);
            let row = [
                ("cache.bytes", Gauge, 500.0),
                ("cache.limit_bytes", Gauge, 1_000.0),
                ("tickets.read.out", Gauge, 1.0),
                ("tickets.read.available", Gauge, 3.0),
                ("keyspace.hits", Counter, 0.0),
                ("keyspace.misses", Counter, at),
                ("scanned_documents", Counter, 8.0 * at),
                ("documents.returned", Counter, 2.0 * at),
            ];
            idle.push("database-2", at * 1e3, row);
            idle.push(
                "database-3",
                at * 1e3,
                [("scanned_documents", Counter, at), ("documents.returned", Counter, 0.0)],
            );
        }
        let mut facts = Facts::default();
        add_database_facts(&mut facts, &idle, 100.0, (0.0, 10_000.0));
        assert_eq!(
            facts.iter().collect::<Vec<_>>(),
            [
                ("cache.used_share", 0.5),
                ("database.misses", 1.0),
                ("database.scanned_per_op", 0.09),
                ("database.scanned_per_returned", 4.0),
                ("tickets.used_share", 0.25),
            ]
        );
    }
}
