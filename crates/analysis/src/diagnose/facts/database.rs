//! What databases say of themselves, as figures. Of several nodes the one that stands worst counts; what is told for each
//! operation is of all nodes together, as the operations are.

use super::Facts;
use dyno_rundir::monitor::Recording;

/// Figures of the measured phase between `from` and `to` (Unix, milliseconds), at `throughput` operations a second.
pub(super) fn database(facts: &mut Facts, recording: &Recording, throughput: f64, (from, to): (f64, f64)) {
    let nodes: Vec<&str> = recording.sources().filter(|source| source.starts_with("database")).collect();
    let worst = |of: &dyn Fn(&str) -> Option<f64>| nodes.iter().filter_map(|node| of(node)).reduce(f64::max);
    let rate = |node: &str, name: &str| recording.rate(node, name, from, to);
    let all = |name: &str| nodes.iter().filter_map(|node| rate(node, name)).reduce(|a, b| a + b);
    let mean = |node: &str, name: &str| recording.mean(node, name, from, to);
    let share = |node: &str, part: &str, whole: &str| {
        Some(mean(node, part)? / mean(node, whole).filter(|whole| *whole > 0.0)?)
    };
    let per_op = |value: Option<f64>| value.map(|value| value / throughput.max(1e-9));
    let of_rates = |node: &str, part: &str, whole: &str| {
        Some(rate(node, part)? / rate(node, whole).filter(|whole| *whole > 0.0)?)
    };

    facts.set("cache.dirty_share", worst(&|node| share(node, "cache.dirty_bytes", "cache.limit_bytes")));
    facts.set("cache.used_share", worst(&|node| share(node, "cache.bytes", "cache.limit_bytes")));
    facts.set("cache.evicted_by_users_per_op", per_op(all("cache.pages_evicted_by_users")));
    let tickets = |node: &str, kind: &str| {
        let (out, left) =
            (mean(node, &format!("tickets.{kind}.out"))?, mean(node, &format!("tickets.{kind}.available"))?);
        (out + left > 0.0).then(|| out / (out + left))
    };
    facts.set(
        "tickets.used_share",
        worst(&|node| ["read", "write"].iter().filter_map(|kind| tickets(node, kind)).reduce(f64::max)),
    );
    facts.set("database.queue", worst(&|node| mean(node, "queue.total")));
    facts.set("database.conflicts_per_op", per_op(all("operation.writeConflicts")));
    facts.set("database.scanned_per_op", per_op(all("scanned_documents")));
    facts.set(
        "database.scanned_per_returned",
        worst(&|node| of_rates(node, "scanned_documents", "documents.returned")),
    );
    let held = worst(&|node| rate(node, "flow_control.waited_us"));
    facts.set("database.flow_control_share", held.map(|us| us / 1e6));
    facts.set("journal.sync_share", worst(&|node| rate(node, "journal.sync_us")).map(|us| us / 1e6));

    facts.set("database.evicted_per_op", per_op(all("keyspace.evicted")));
    facts.set("database.memory_of_limit", worst(&|node| share(node, "memory_bytes", "memory.limit_bytes")));
    facts.set(
        "database.misses",
        worst(&|node| {
            let (hits, misses) = (rate(node, "keyspace.hits")?, rate(node, "keyspace.misses")?);
            (hits + misses > 0.0).then(|| misses / (hits + misses))
        }),
    );
    let saving = ["rdb.saving", "aof.rewriting"];
    facts.set(
        "database.saving_share",
        worst(&|node| saving.iter().filter_map(|name| mean(node, name)).reduce(f64::max)),
    );
    facts.set("database.delayed_syncs_per_s", worst(&|node| rate(node, "aof.delayed_syncs")));
    facts.set("database.refused_per_s", worst(&|node| rate(node, "connections_rejected")));
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
        database(&mut facts, &recording, 1_000.0, (0.0, 10_000.0));
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
}
