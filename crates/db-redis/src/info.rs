//! The text of `INFO` into series.

use dyno_monitor::Sample;
use dyno_monitor::SeriesKind::{self, Counter, Gauge};
use dyno_types::database_series::{
    AOF_DELAYED_SYNCS, AOF_REWRITING, CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_BLOCKED,
    CONNECTIONS_REJECTED, CPU_SYSTEM_S, CPU_USER_S, KEYSPACE_EVICTED, KEYSPACE_EXPIRED, KEYSPACE_HITS,
    KEYSPACE_MISSES, MEMORY_BYTES, MEMORY_LIMIT_BYTES, MEMORY_RESIDENT_BYTES, OPERATIONS, RDB_SAVING,
    RECEIVED_BYTES, REPLICATION_LAG_BYTES, REPLICATION_LAG_RECORDS, REPLICATION_PARTIAL_SYNCS,
    REPLICATION_REPLICAS, SENT_BYTES, UPTIME_S,
};

/// Names of INFO, their kind, our names where they lack a unit or are those of every database.
const KNOWN: [(&str, SeriesKind, &str); 48] = [
    ("total_commands_processed", Counter, OPERATIONS),
    ("connected_clients", Gauge, CONNECTIONS),
    ("used_memory", Gauge, MEMORY_BYTES),
    ("total_net_input_bytes", Counter, RECEIVED_BYTES),
    ("total_net_output_bytes", Counter, SENT_BYTES),
    ("total_connections_received", Counter, CONNECTIONS_ACCEPTED),
    ("rejected_connections", Counter, CONNECTIONS_REJECTED),
    ("blocked_clients", Gauge, CONNECTIONS_BLOCKED),
    ("evicted_clients", Counter, "connections_evicted"),
    ("client_recent_max_output_buffer", Gauge, "output_buffer_max_bytes"),
    ("keyspace_hits", Counter, KEYSPACE_HITS),
    ("keyspace_misses", Counter, KEYSPACE_MISSES),
    ("expired_keys", Counter, KEYSPACE_EXPIRED),
    ("evicted_keys", Counter, KEYSPACE_EVICTED),
    ("used_memory_rss", Gauge, MEMORY_RESIDENT_BYTES),
    ("used_memory_peak", Gauge, "memory.peak_bytes"),
    ("used_memory_dataset", Gauge, "memory.dataset_bytes"),
    ("maxmemory", Gauge, MEMORY_LIMIT_BYTES),
    ("mem_fragmentation_ratio", Gauge, "memory.fragmentation_ratio"),
    ("allocator_active", Gauge, "memory.allocator_active_bytes"),
    ("lazyfree_pending_objects", Gauge, "memory.lazyfree_pending"),
    ("active_defrag_running", Gauge, "memory.defrag_running"),
    ("used_cpu_sys", Counter, CPU_SYSTEM_S),
    ("used_cpu_user", Counter, CPU_USER_S),
    ("used_cpu_sys_children", Counter, "cpu.children_system_s"),
    ("used_cpu_user_children", Counter, "cpu.children_user_s"),
    ("used_cpu_sys_main_thread", Counter, "cpu.main_thread_system_s"),
    ("used_cpu_user_main_thread", Counter, "cpu.main_thread_user_s"),
    ("total_reads_processed", Counter, "socket.reads"),
    ("total_writes_processed", Counter, "socket.writes"),
    ("io_threaded_reads_processed", Counter, "socket.threaded_reads"),
    ("io_threaded_writes_processed", Counter, "socket.threaded_writes"),
    ("total_error_replies", Counter, "error_replies"),
    ("rdb_changes_since_last_save", Gauge, "rdb.changes"),
    ("rdb_bgsave_in_progress", Gauge, RDB_SAVING),
    ("rdb_last_bgsave_time_sec", Gauge, "rdb.last_save_s"),
    ("latest_fork_usec", Gauge, "fork.last_us"),
    ("total_forks", Counter, "fork.count"),
    ("aof_rewrite_in_progress", Gauge, AOF_REWRITING),
    ("aof_current_size", Gauge, "aof.size_bytes"),
    ("aof_delayed_fsync", Counter, AOF_DELAYED_SYNCS),
    ("aof_pending_bio_fsync", Gauge, "aof.pending_syncs"),
    ("master_repl_offset", Counter, "replication.offset_bytes"),
    ("connected_slaves", Gauge, REPLICATION_REPLICAS),
    ("sync_full", Counter, "replication.full_syncs"),
    ("sync_partial_ok", Counter, REPLICATION_PARTIAL_SYNCS),
    ("loading", Gauge, "loading"),
    ("uptime_in_seconds", Gauge, UPTIME_S),
];

/// Adds what the text says. Names that are not known, and values that are no numbers, are left out.
pub fn read(text: &str, into: &mut Sample) {
    for line in text.lines() {
        let Some((name, value)) = line.trim_end().split_once(':') else { continue };
        if let Some((_, kind, ours)) = KNOWN.iter().find(|(theirs, ..)| *theirs == name) {
            if let Ok(value) = value.parse() {
                into.add_figure((*ours).to_owned(), *kind, value);
            }
        } else if let Some(command) = name.strip_prefix("cmdstat_") {
            // A subcommand has a bar between its words.
            let command = command.replace('|', "_");
            for (part, ours, factor) in
                [("calls", "calls", 1.0), ("usec", "s", 1e-6), ("failed_calls", "failed", 1.0)]
            {
                if let Some(value) = part_of(value, part) {
                    into.add_counter(format!("command.{command}.{ours}"), value * factor);
                }
            }
        } else if let Some(number) = name.strip_prefix("db").filter(|n| n.parse::<u32>().is_ok())
            && let Some(keys) = part_of(value, "keys")
        {
            into.add_gauge(format!("db{number}.keys"), keys);
        }
    }
    lag(text, into);
}

/// Reads how far the replica that is furthest behind is. One that tells its offset (Redis, Valkey) is behind by
/// bytes; its `lag` are seconds since it was heard. Of one without (Dragonfly) `lag` are records.
fn lag(text: &str, into: &mut Sample) {
    let is_replica = |line: &&str| {
        line.strip_prefix("slave")
            .and_then(|rest| rest.split(':').next())
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let replicas: Vec<&str> =
        text.lines().filter(is_replica).filter_map(|line| Some(line.split_once(':')?.1)).collect();
    let least = |part: &str| replicas.iter().filter_map(|one| part_of(one, part)).reduce(f64::min);
    let most = |part: &str| replicas.iter().filter_map(|one| part_of(one, part)).reduce(f64::max);
    match (least("offset"), into.get("replication.offset_bytes"), most("lag")) {
        (Some(offset), Some(own), _) => into.add_gauge(REPLICATION_LAG_BYTES, (own - offset).max(0.0)),
        (None, _, Some(records)) => into.add_gauge(REPLICATION_LAG_RECORDS, records),
        _ => {}
    }
}

/// `calls=12,usec=34` and the like.
fn part_of(text: &str, name: &str) -> Option<f64> {
    text.split(',').find_map(|part| part.split_once('=').filter(|(n, _)| *n == name))?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:60\r\n# Clients\r\nconnected_clients:17\r\n\
        # Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\nmem_fragmentation_ratio:1.25\r\n# Stats\r\n\
        total_commands_processed:120000\r\nkeyspace_hits:90\r\nkeyspace_misses:10\r\n# CPU\r\nused_cpu_user:1.500000\r\n\
        # Commandstats\r\ncmdstat_hgetall:calls=100,usec=2500,usec_per_call=25.00,rejected_calls=0,failed_calls=0\r\n\
        cmdstat_config|get:calls=1,usec=7,usec_per_call=7.00,rejected_calls=0,failed_calls=1\r\n\
        # Keyspace\r\ndb0:keys=2000,expires=0,avg_ttl=0\r\ndbx:keys=1\r\n";

    #[test]
    fn text_becomes_series() {
        let mut sample = Sample::default();
        read(TEXT, &mut sample);
        let expected = [
            ("operations", 120_000.0),
            ("connections", 17.0),
            ("memory_bytes", 1_048_576.0),
            ("memory.fragmentation_ratio", 1.25),
            ("cpu.user_s", 1.5),
            ("command.hgetall.calls", 100.0),
            ("command.hgetall.s", 0.0025),
            ("command.config_get.failed", 1.0),
            ("db0.keys", 2_000.0),
        ];
        for (name, value) in expected {
            assert_eq!(sample.get(name), Some(value), "{name}");
        }
        assert!(sample.all_readings().iter().all(|r| !r.name.contains("human") && r.name != "dbx.keys"));
        let kind = |name: &str| sample.all_readings().iter().find(|r| r.name == name).unwrap().kind;
        assert_eq!((kind("operations"), kind("connections")), (Counter, Gauge));
    }

    #[test]
    fn lag_is_of_the_replica_that_is_furthest_behind() {
        let of = |text: &str| {
            let mut sample = Sample::default();
            read(text, &mut sample);
            (sample.get("replication.lag_bytes"), sample.get("replication.lag_records"))
        };
        let redis = "slave0:ip=a,port=1,state=online,offset=900,lag=1\r\nslave1:ip=b,port=2,state=online,offset=700,lag=0\r\n\
                     slave_read_only:1\r\nmaster_repl_offset:1000\r\nsync_partial_ok:2\r\n";
        assert_eq!(of(redis), (Some(300.0), None));
        let dragonfly =
            "slave0:ip=a,port=1,state=stable_sync,lag=12\r\nslave1:ip=b,port=2,state=stable_sync,lag=40\r\n";
        assert_eq!(of(dragonfly), (None, Some(40.0)));
        assert_eq!(
            of("connected_slaves:0\r\nmaster_repl_offset:1000\r\n"),
            (None, None),
            "no replica, no lag"
        );
    }

    #[test]
    fn nonsense_is_no_series() {
        let mut sample = Sample::default();
        read("used_memory:much\nconnected_clients\n:\ncmdstat_get:calls\ndb0:keys=x\n", &mut sample);
        assert!(sample.is_empty(), "{sample:?}");
    }
}
