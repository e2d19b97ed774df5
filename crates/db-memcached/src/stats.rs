//! The text of memcached's `stats` into series.

use dyno_monitor::Sample;
use dyno_monitor::SeriesKind::{self, Counter, Gauge};
use dyno_types::database_series::{
    CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_REJECTED, CPU_SYSTEM_S, CPU_USER_S, KEYSPACE_EVICTED,
    KEYSPACE_HITS, KEYSPACE_MISSES, MEMORY_BYTES, MEMORY_LIMIT_BYTES, OPERATIONS, RECEIVED_BYTES, SENT_BYTES,
    UPTIME_S,
};

/// Names of `stats`, their kind, our names where they lack a unit or are those of every database.
const KNOWN: [(&str, SeriesKind, &str); 43] = [
    ("curr_connections", Gauge, CONNECTIONS),
    ("bytes", Gauge, MEMORY_BYTES),
    ("bytes_read", Counter, RECEIVED_BYTES),
    ("bytes_written", Counter, SENT_BYTES),
    ("total_connections", Counter, CONNECTIONS_ACCEPTED),
    ("rejected_connections", Counter, CONNECTIONS_REJECTED),
    ("listen_disabled_num", Counter, "connections_paused"),
    ("conn_yields", Counter, "connections_yielded"),
    ("max_connections", Gauge, "connections_limit"),
    ("auth_cmds", Counter, "logins"),
    ("auth_errors", Counter, "logins_refused"),
    ("get_hits", Counter, KEYSPACE_HITS),
    ("get_misses", Counter, KEYSPACE_MISSES),
    ("get_expired", Counter, "keyspace.misses_expired"),
    ("evictions", Counter, KEYSPACE_EVICTED),
    ("evicted_unfetched", Counter, "keyspace.evicted_unread"),
    ("expired_unfetched", Counter, "keyspace.expired_unread"),
    ("reclaimed", Counter, "keyspace.reclaimed"),
    ("curr_items", Gauge, "keyspace.items"),
    ("total_items", Counter, "keyspace.stored"),
    ("cas_hits", Counter, "cas.hits"),
    ("cas_misses", Counter, "cas.misses"),
    ("cas_badval", Counter, "cas.conflicts"),
    ("store_too_large", Counter, "store.too_large"),
    ("store_no_memory", Counter, "store.no_memory"),
    ("limit_maxbytes", Gauge, MEMORY_LIMIT_BYTES),
    ("hash_bytes", Gauge, "memory.hash_table_bytes"),
    ("read_buf_bytes", Gauge, "memory.read_buffers_bytes"),
    ("response_obj_bytes", Gauge, "memory.responses_bytes"),
    ("read_buf_oom", Counter, "memory.read_buffers_refused"),
    ("response_obj_oom", Counter, "memory.responses_refused"),
    ("malloc_fails", Counter, "memory.allocations_failed"),
    ("hash_is_expanding", Gauge, "hash_table.expanding"),
    ("slabs_moved", Counter, "slabs.moved"),
    ("slab_reassign_running", Gauge, "slabs.moving"),
    ("moves_to_cold", Counter, "lru.moved_to_cold"),
    ("moves_to_warm", Counter, "lru.moved_to_warm"),
    ("moves_within_lru", Counter, "lru.moved_within"),
    ("direct_reclaims", Counter, "lru.direct_reclaims"),
    ("rusage_user", Counter, CPU_USER_S),
    ("rusage_system", Counter, CPU_SYSTEM_S),
    ("threads", Gauge, "threads"),
    ("uptime", Gauge, UPTIME_S),
];

/// Commands by kind: our name, and the counters whose sum they are. A `cas` is counted as a `set` as well.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("get", &["cmd_get"]),
    ("set", &["cmd_set"]),
    ("touch", &["cmd_touch"]),
    ("flush", &["cmd_flush"]),
    ("delete", &["delete_hits", "delete_misses"]),
    ("incr", &["incr_hits", "incr_misses"]),
    ("decr", &["decr_hits", "decr_misses"]),
];

/// Adds what the text says. Names that are not known, and values that are no numbers, are left out. `operations` is the sum of
/// the commands by kind: the server has no counter of all.
pub fn read(text: &str, into: &mut Sample) {
    let mut calls: [Option<f64>; COMMANDS.len()] = [None; COMMANDS.len()];
    for line in text.lines() {
        let Some((name, value)) = line.trim_end().strip_prefix("STAT ").and_then(|pair| pair.split_once(' '))
        else {
            continue;
        };
        let Ok(value) = value.parse::<f64>() else { continue };
        if let Some((_, kind, ours)) = KNOWN.iter().find(|(theirs, ..)| *theirs == name) {
            into.add_figure((*ours).to_owned(), *kind, value);
        } else if let Some(at) = COMMANDS.iter().position(|(_, theirs)| theirs.contains(&name)) {
            calls[at] = Some(calls[at].unwrap_or(0.0) + value);
        }
    }
    for ((command, _), calls) in COMMANDS.iter().zip(calls) {
        if let Some(calls) = calls {
            into.add_counter(format!("command.{command}.calls"), calls);
        }
    }
    if let Some(all) = calls.into_iter().flatten().reduce(|a, b| a + b) {
        into.add_counter(OPERATIONS, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "STAT pid 17751\r\nSTAT uptime 14\r\nSTAT version 1.6.18\r\nSTAT libevent 2.1.12-stable\r\n\
        STAT rusage_user 0.250000\r\nSTAT max_connections 1024\r\nSTAT curr_connections 17\r\nSTAT cmd_get 100\r\n\
        STAT cmd_set 50\r\nSTAT cmd_flush 0\r\nSTAT get_hits 90\r\nSTAT get_misses 10\r\nSTAT delete_misses 2\r\n\
        STAT delete_hits 3\r\nSTAT cas_badval 1\r\nSTAT bytes_read 4001066\r\nSTAT limit_maxbytes 67108864\r\n\
        STAT threads 4\r\nSTAT bytes 265\r\nSTAT curr_items 4\r\nSTAT evictions 7\r\nEND\r\n";

    #[test]
    fn text_becomes_series() {
        let mut sample = Sample::default();
        read(TEXT, &mut sample);
        let expected = [
            ("operations", 155.0),
            ("connections", 17.0),
            ("memory_bytes", 265.0),
            ("memory.limit_bytes", 67_108_864.0),
            ("network.received_bytes", 4_001_066.0),
            ("keyspace.hits", 90.0),
            ("keyspace.misses", 10.0),
            ("keyspace.evicted", 7.0),
            ("keyspace.items", 4.0),
            ("command.get.calls", 100.0),
            ("command.delete.calls", 5.0),
            ("cas.conflicts", 1.0),
            ("cpu.user_s", 0.25),
            ("threads", 4.0),
            ("uptime_s", 14.0),
        ];
        for (name, value) in expected {
            assert_eq!(sample.get(name), Some(value), "{name}");
        }
        assert_eq!(sample.get("command.incr.calls"), None, "what is not told is no zero");
        let kind = |name: &str| sample.all_readings().iter().find(|r| r.name == name).unwrap().kind;
        assert_eq!(
            (kind("operations"), kind("connections"), kind("keyspace.items")),
            (Counter, Gauge, Gauge)
        );
    }

    #[test]
    fn nonsense_is_no_series() {
        let mut sample = Sample::default();
        read("STAT\r\nSTAT bytes\nSTAT bytes much\nbytes 7\nERROR\nSTAT cmd_get x\n", &mut sample);
        assert!(sample.is_empty(), "{sample:?}");
    }
}
