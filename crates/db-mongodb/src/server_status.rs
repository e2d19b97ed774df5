//! The document of `serverStatus` into series. Names that rules read, and those that changed between versions, are in
//! [`dyno_types::mongod::counters`].

use dyno_monitor::Sample;
use dyno_monitor::SeriesKind::{self, Counter, Gauge};
use dyno_types::bson::{self, Element};
use dyno_types::database_series::{
    CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_REJECTED, MEMORY_BYTES, OPERATIONS, RECEIVED_BYTES,
    SENT_BYTES, UPTIME_S,
};
use dyno_types::mongod::counters::{
    CACHE_BYTES, CACHE_DIRTY_BYTES, CACHE_EVICTED_BY_USERS, CACHE_LIMIT_BYTES, FIGURES,
    FLOW_CONTROL_WAITED_US, JOURNAL_SYNC_US, SCANNED_DOCUMENTS, StatusFigure, TICKETS,
};

/// Kinds of the figures of which versions or rules have their own names.
const NAMED: [(&str, SeriesKind); 8] = [
    (CACHE_LIMIT_BYTES, Gauge),
    (CACHE_BYTES, Gauge),
    (CACHE_DIRTY_BYTES, Gauge),
    (CACHE_EVICTED_BY_USERS, Counter),
    (TICKETS, Gauge),
    (SCANNED_DOCUMENTS, Counter),
    (FLOW_CONTROL_WAITED_US, Counter),
    (JOURNAL_SYNC_US, Counter),
];

/// Paths whose numeric leaves are taken: theirs, ours, kind, factor. A path that names a document takes all below it.
const KNOWN: [(&str, &str, SeriesKind, f64); 31] = [
    ("opcounters", "opcounters", Counter, 1.0),
    ("opcountersRepl", "opcounters_replicated", Counter, 1.0),
    ("connections.current", CONNECTIONS, Gauge, 1.0),
    ("connections.available", "connections_available", Gauge, 1.0),
    ("connections.active", "connections_active", Gauge, 1.0),
    ("connections.totalCreated", CONNECTIONS_ACCEPTED, Counter, 1.0),
    ("connections.rejected", CONNECTIONS_REJECTED, Counter, 1.0),
    ("mem.resident", MEMORY_BYTES, Gauge, 1_048_576.0),
    ("mem.virtual", "memory.virtual_bytes", Gauge, 1_048_576.0),
    ("extra_info.page_faults", "memory.faults", Counter, 1.0),
    ("network.bytesIn", RECEIVED_BYTES, Counter, 1.0),
    ("network.bytesOut", SENT_BYTES, Counter, 1.0),
    ("network.numRequests", "network.requests", Counter, 1.0),
    ("network.numSlowDNSOperations", "network.slow_dns", Counter, 1.0),
    ("globalLock.currentQueue", "queue", Gauge, 1.0),
    ("globalLock.activeClients", "active", Gauge, 1.0),
    ("opLatencies.reads", "latency.reads", Counter, 1.0),
    ("opLatencies.writes", "latency.writes", Counter, 1.0),
    ("opLatencies.commands", "latency.commands", Counter, 1.0),
    ("metrics.document", "documents", Counter, 1.0),
    ("metrics.operation", "operation", Counter, 1.0),
    ("metrics.queryExecutor.scanned", "scanned_keys", Counter, 1.0),
    ("metrics.cursor.open.total", "cursors_open", Gauge, 1.0),
    ("asserts", "asserts", Counter, 1.0),
    ("transactions.totalCommitted", "transactions.committed", Counter, 1.0),
    ("transactions.totalAborted", "transactions.aborted", Counter, 1.0),
    ("transactions.currentActive", "transactions.active", Gauge, 1.0),
    ("flowControl.isLagged", "flow_control.lagged", Gauge, 1.0),
    ("wiredTiger.log.log bytes written", "journal.written_bytes", Counter, 1.0),
    ("wiredTiger.log.log sync operations", "journal.syncs", Counter, 1.0),
    ("uptime", UPTIME_S, Gauge, 1.0),
];

/// Entries of `wiredTiger.cache` and our names.
const CACHE: [(&str, &str, SeriesKind); 8] = [
    ("bytes allocated for updates", "cache.update_bytes", Gauge),
    ("bytes read into cache", "cache.read_bytes", Counter),
    ("bytes written from cache", "cache.written_bytes", Counter),
    ("pages read into cache", "cache.read_pages", Counter),
    ("pages requested from the cache", "cache.requested_pages", Counter),
    ("unmodified pages evicted", "cache.clean_evicted_pages", Counter),
    ("modified pages evicted", "cache.dirty_evicted_pages", Counter),
    ("application threads page read from disk to cache time (usecs)", "cache.read_wait_us", Counter),
];

/// Operations of clients; commands include the run's own greeting and this monitor's questions.
const COUNTED_OPERATIONS: [&str; 6] = ["insert", "query", "update", "delete", "getmore", "command"];

/// Depth of documents below a path that are taken.
const DEPTH: usize = 4;

/// Adds what the document says; what it lacks is absent.
pub fn read(status: &[u8], into: &mut Sample) {
    let counts: Vec<f64> = COUNTED_OPERATIONS
        .iter()
        .filter_map(|name| {
            bson::find_element(bson::find_element(status, "opcounters")?.as_document()?, name)?.as_f64()
        })
        .collect();
    let commands = commands(status, into);
    // Servers that only speak the protocol may count commands alone.
    let operations = if counts.is_empty() { commands } else { Some(counts.iter().sum()) };
    if let Some(operations) = operations {
        into.add_counter(OPERATIONS, operations);
    }
    for figure in &FIGURES {
        take_named(status, figure, into);
    }
    for (path, ours, kind, factor) in KNOWN {
        if let Some(element) = bson::element_at_path(status, path) {
            leaves(ours, element, kind, factor, DEPTH, into);
        }
    }
    let cache = bson::element_at_path(status, "wiredTiger.cache").and_then(|e| e.as_document());
    for element in cache.and_then(|c| bson::read_elements(c).ok()).into_iter().flatten().flatten() {
        let name = CACHE.iter().find(|(theirs, ..)| theirs.as_bytes() == element.name);
        if let (Some((_, ours, kind)), Some(value)) = (name, element.as_f64()) {
            into.add_figure((*ours).to_owned(), *kind, value);
        }
    }
}

/// Takes a figure from the first of its paths that the server has: a version that reports two of them counts once.
fn take_named(status: &[u8], figure: &StatusFigure, into: &mut Sample) {
    let Some((_, kind)) = NAMED.iter().find(|(series, _)| *series == figure.series) else { return };
    if let Some(element) = figure.paths.iter().find_map(|path| bson::element_at_path(status, path)) {
        leaves(figure.series, element, *kind, 1.0, DEPTH, into);
    }
}

/// Commands by name, those that were ever given; all of them together, if they are counted.
fn commands(status: &[u8], into: &mut Sample) -> Option<f64> {
    let commands =
        bson::read_elements(bson::element_at_path(status, "metrics.commands")?.as_document()?).ok()?;
    let mut all = None;
    for command in commands.flatten() {
        let (Ok(name), Some(counts)) = (std::str::from_utf8(command.name), command.as_document()) else {
            continue;
        };
        let count = |what: &str| bson::find_element(counts, what).and_then(|e| e.as_f64());
        let Some(total) = count("total") else { continue };
        *all.get_or_insert(0.0) += total;
        for (what, ours) in [("total", "calls"), ("failed", "failed")] {
            if let Some(n) = count(what).filter(|_| total > 0.0) {
                into.add_counter(format!("command.{name}.{ours}"), n);
            }
        }
    }
    all
}

fn leaves(name: &str, element: Element<'_>, kind: SeriesKind, factor: f64, depth: usize, into: &mut Sample) {
    if let Some(document) = element.as_document() {
        let inner = bson::read_elements(document).into_iter().flatten().flatten();
        for element in inner.filter(|_| depth > 0) {
            let Ok(part) = std::str::from_utf8(element.name) else { continue };
            leaves(&format!("{name}.{part}"), element, kind, factor, depth - 1, into);
        }
    } else if element.kind != bson::kind::DATE
        && let Some(value) = element.as_f64()
    {
        into.add_figure(name.to_owned(), kind, value * factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(out: &mut Vec<u8>, name: &str, fields: impl FnOnce(&mut Vec<u8>)) {
        bson::put_head(out, bson::kind::DOCUMENT, name);
        let at = bson::open(out);
        fields(out);
        bson::close(out, at);
    }

    fn status() -> Vec<u8> {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        bson::put_string(&mut out, "host", "h");
        bson::put_double(&mut out, "uptime", 12.5);
        nested(&mut out, "opcounters", |out| {
            bson::put_int32(out, "insert", 5);
            bson::put_int64(out, "query", 7);
            nested(out, "deprecated", |out| bson::put_int32(out, "total", 100));
        });
        nested(&mut out, "connections", |out| {
            bson::put_int32(out, "current", 3);
            bson::put_int32(out, "totalCreated", 9);
        });
        nested(&mut out, "mem", |out| bson::put_int32(out, "resident", 2));
        nested(&mut out, "wiredTiger", |out| {
            nested(out, "cache", |out| {
                bson::put_double(out, "bytes currently in the cache", 4096.0);
                bson::put_int32(out, "something else", 1);
            });
            nested(out, "concurrentTransactions", |out| {
                nested(out, "read", |out| bson::put_int32(out, "available", 128));
            });
        });
        bson::put_int32(&mut out, "ok", 1);
        bson::close(&mut out, at);
        out
    }

    #[test]
    fn a_status_becomes_series() {
        let mut sample = Sample::default();
        read(&status(), &mut sample);
        let expected = [
            ("operations", 12.0),
            ("opcounters.insert", 5.0),
            ("connections", 3.0),
            ("connections_accepted", 9.0),
            ("memory_bytes", 2_097_152.0),
            ("cache.bytes", 4_096.0),
            ("tickets.read.available", 128.0),
            ("uptime_s", 12.5),
        ];
        for (name, value) in expected {
            assert_eq!(sample.get(name), Some(value), "{name}");
        }
        assert_eq!(sample.get("journal.syncs"), None, "what is not there is not zero");
    }

    /// The parts of a status whose names differ between versions.
    fn of_version(evicted: &[(&str, i32)], tickets: &str) -> Vec<u8> {
        bson::build_document(|out| {
            nested(out, "wiredTiger", |out| {
                nested(out, "cache", |out| {
                    evicted.iter().for_each(|(name, n)| bson::put_int32(out, name, *n))
                });
                if tickets == "concurrentTransactions" {
                    nested(out, tickets, |out| nested(out, "read", |out| bson::put_int32(out, "out", 3)));
                }
            });
            if tickets == "execution" {
                nested(out, "queues", |out| {
                    nested(out, tickets, |out| nested(out, "read", |out| bson::put_int32(out, "out", 3)));
                });
            }
        })
    }

    #[test]
    fn old_and_new_names_become_one_series() {
        let old = ("pages evicted by application threads", 7);
        let new = ("page evict attempts by application threads", 7);
        for (evicted, tickets) in [
            (&[old][..], "concurrentTransactions"),
            (&[old][..], "execution"),
            (&[new][..], "execution"),
            // A version that reports both counts once, as its older name says.
            (&[(new.0, 9), old][..], "execution"),
        ] {
            let mut sample = Sample::default();
            read(&of_version(evicted, tickets), &mut sample);
            assert_eq!(sample.get(CACHE_EVICTED_BY_USERS), Some(7.0), "{evicted:?}");
            assert_eq!(sample.get("tickets.read.out"), Some(3.0), "{tickets}");
        }
        let mut sample = Sample::default();
        read(&of_version(&[], "neither"), &mut sample);
        assert!(sample.is_empty());
    }

    #[test]
    fn every_figure_that_rules_need_is_taken() {
        for figure in &FIGURES {
            let path = figure.paths[0];
            let series = |ours: &str| figure.series == ours || figure.series.starts_with(&format!("{ours}."));
            let known = KNOWN.iter().any(|(theirs, ours, ..)| path.starts_with(theirs) && series(ours));
            assert_ne!(known, NAMED.iter().any(|(ours, _)| *ours == figure.series), "{}", figure.series);
        }
    }

    #[test]
    fn commands_count_where_operations_are_not_counted() {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        nested(&mut out, "metrics", |out| {
            nested(out, "commands", |out| {
                bson::put_int32(out, "<UNKNOWN>", 0);
                for (name, total) in [("find", 7), ("insert", 5), ("drop", 0)] {
                    nested(out, name, |out| {
                        bson::put_int64(out, "failed", 1);
                        bson::put_int64(out, "total", total);
                    });
                }
            });
        });
        bson::close(&mut out, at);
        let mut sample = Sample::default();
        read(&out, &mut sample);
        assert_eq!((sample.get("operations"), sample.get("command.find.calls")), (Some(12.0), Some(7.0)));
        assert_eq!((sample.get("command.find.failed"), sample.get("command.drop.calls")), (Some(1.0), None));
    }

    #[test]
    fn cut_documents_do_no_harm() {
        let whole = status();
        for cut in 0..whole.len() {
            let mut sample = Sample::default();
            read(&whole[..cut], &mut sample);
            assert!(sample.is_empty());
        }
    }
}
