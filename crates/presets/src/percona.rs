//! Percona's comparison of storage engines: 640 collections of a million documents, cache and memory of 8/16, 16/32 and
//! 32/48 GiB, 64 writers; faithful or with everything divided by a scale.

use dyno_config::server::kind::mongod;
use std::fmt::Write as _;

/// Divisors; 512 is for trying it out.
pub(super) const SCALES: [u32; 5] = [16, 1, 8, 32, 512];

/// Bytes of a GiB.
const GIB: u64 = 1 << 30;

/// Collections, documents of each, and how long a cell and its window last.
struct Scaled {
    collections: u32,
    documents: u32,
    loaders: u32,
    writers: u32,
    duration: &'static str,
    /// Begin and end of the part that is shown; none: all of it.
    window: Option<(&'static str, &'static str)>,
}

fn scaled(scale: u32) -> Scaled {
    match scale {
        // 1.25 million documents; fewer collections would not be spread over. 24 loaders and 64 writers would need more memory
        // than the smallest limit has.
        512 => Scaled {
            collections: 5,
            documents: 250_000,
            loaders: 5,
            writers: 8,
            duration: "2m",
            window: None,
        },
        _ => {
            let collections = 640 / scale;
            Scaled {
                collections,
                documents: 1_000_000,
                loaders: 24,
                writers: 64,
                duration: "3h",
                window: Some(("1h", "2h")),
            }
        }
    }
}

fn size(gib: u64, scale: u32, more_mib: u64) -> String {
    let bytes = gib * GIB / u64::from(scale) + (more_mib << 20);
    if bytes.is_multiple_of(GIB) { format!("{}GiB", bytes / GIB) } else { format!("{}MiB", bytes >> 20) }
}

/// The three levels of memory: which keys take cache and total (and `own_mib` for the process itself), and what follows
/// from the cache in bytes.
fn memory(scale: u32, cache: &str, total: &str, own_mib: u64, more: impl Fn(u64) -> String) -> String {
    let mut out = String::from("  memory:\n");
    for (own, all) in [(8, 16), (16, 32), (32, 48)] {
        let (own_size, all_size) = (size(own, scale, 0), size(all, scale, own_mib));
        let more = more(own * GIB / u64::from(scale));
        let _ = writeln!(out, "    - {{label: {own}/{all}, {cache}: {own_size}, {total}: {all_size}{more}}}");
    }
    out
}

fn head(scale: u32, own_mib: u64, what: &str) -> String {
    let Scaled { collections, documents, loaders, writers, duration, window } = scaled(scale);
    let divided = match scale {
        1 => "as published".into(),
        512 => format!("data, cache and memory divided by 512 ({own_mib} MiB more for the process itself)"),
        _ => format!("data, cache and memory divided by {scale}"),
    };
    let (shown, edges) = match window {
        Some((from, to)) => (
            format!(
                "the window {from} to {to}.\n  The form of one hour: --set duration=1h --set 'window={{interval: 10s}}'"
            ),
            format!("from: {from}, to: {to}, "),
        ),
        None => ("the whole run".to_owned(), String::new()),
    };
    format!(
        "\
description: >
  {what}, {divided}.
  Labels of memory are the published ones: cache/total in GiB.
  The table shows the mean of the 10-second rates of {shown}.
workload:
  sysbench:
    NUM_COLLECTIONS: {collections}
    NUM_DOCUMENTS_PER_COLLECTION: {documents}
    NUM_LOADER_THREADS: {loaders}
    NUM_WRITER_THREADS: {writers}
phases:
  load: {{keep: true}}
  measure: {{duration: {duration}, timeout: 0s}}
window: {{{edges}interval: 10s}}
repetitions: 1
"
    )
}

/// MiB that a process gets beyond its share: what it needs for itself does not shrink with its data, and would be all of the
/// smallest limits.
fn own_mib(scale: u32, needed: u64) -> u64 {
    if scale == 512 { needed } else { 0 }
}

/// Engines of mongod. Plans say which of them the binary at hand does not have.
pub(super) fn storage_engines(scale: u32) -> String {
    let own_mib = own_mib(scale, mongod::OWN >> 20);
    let rocksdb = match (8 * GIB / u64::from(scale)).is_multiple_of(GIB) {
        true => "    - {label: rocksdb, server.engine: rocksdb}",
        false => "    # rocksdb takes caches of whole GiB alone: --scale 1 and 8 have it",
    };
    format!(
        "\
{}order: file
server:
  kind: mongod
  drop_caches: true
  # Each engine is loaded once in a repetition, and its cells begin with a copy of that: room for two copies. Another order
  # needs a volume for each engine: server.data.volume.name beside server.engine.
  data: {{volume: {{name: loaded}}}}
factors:
  engine:
    - {{label: mmapv1, server.engine: mmapv1}}
    - {{label: wiredTiger, server.engine: wiredTiger, server.journal_compressor: none}}
{rocksdb}
{}overrides:
  # mmapv1 has no cache of its own: all memory within the limit is the kernel's to use for it.
  - {{when: {{engine: mmapv1}}, set: {{server.cache: null}}}}
",
        head(scale, own_mib, "sysbench-mongodb on mongod's storage engines under limits of memory"),
        memory(scale, "server.cache", "server.limits.memory", own_mib, |_| String::new())
    )
}

/// Engines that need a cache option, and their URIs.
const EMBEDDED: [(&str, &str); 6] = [
    // Each session has a cache of its own.
    ("sqlite", "sqlite:{dir}/bench.sqlite?cache={cache_each}"),
    ("redb", "redb:{dir}/bench.redb?cache={cache}"),
    ("fjall", "fjall:{dir}/bench?cache={cache}"),
    // Reading ahead pushes out of little memory what is needed.
    ("lmdb", "lmdb:{dir}/bench?readahead=false"),
    ("rocksdb", "rocksdb:{dir}/bench?cache={cache}&memtable={memtable}&memtables={memtable}"),
    ("wiredtiger", "wiredtiger:{dir}/bench?cache={cache}"),
];

/// Embedded engines that this build has.
pub(super) fn engines_embedded(scale: u32) -> String {
    let built = |name: &str| dyno_db_embedded::KINDS.iter().any(|kind| kind.scheme == name && kind.built);
    let lacking: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).filter(|name| !built(name)).collect();
    let mut engines = String::from("factors:\n  engine:\n");
    if !lacking.is_empty() {
        let _ =
            writeln!(engines, "    # not in this build, which lacks their features: {}", lacking.join(", "));
    }
    for (name, uri) in EMBEDDED.iter().filter(|(name, _)| built(name)) {
        let _ = writeln!(engines, "    - {{label: {name}, target: \"{uri}\"}}");
    }
    let own_mib = own_mib(scale, 64);
    format!(
        "\
{}client: {{if_not_permitted: fail}}
{engines}{}",
        head(
            scale,
            own_mib,
            "sysbench-mongodb's transaction on embedded storage engines under limits of memory"
        ),
        memory(scale, "variables.cache", "client.limits.memory", own_mib, |cache| {
            let (each, memtable) = (cache / u64::from(scaled(scale).writers), cache / 4);
            format!(", variables.cache_each: {}KiB, variables.memtable: {}KiB", each >> 10, memtable >> 10)
        })
    )
}
