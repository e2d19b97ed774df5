//! Decoders and parsers under any input: none may panic, hang, believe a length, or read what it would not write.
//!
//! Each target is a function of bytes. `tests/corpus.rs` replays `corpus/TARGET/*` and what is made of it by changing bytes, on
//! any Rust, as part of `make test`; `fuzz/` at the top runs the same functions under cargo-fuzz (`make fuzz MINUTES=1`).

mod files;
mod fuzz_entry;
mod traffic;
mod wire;

pub use files::{
    cluster_config, experiment, hlog, import_csv, import_pocdriver, import_sysbench, import_ycsb, inventory,
    properties, recording, sysbench_config, template,
};
pub use fuzz_entry::{
    command_lines, dns_answer, http_answer, manifests, promql, rates, relay_frames, store_answer, threshold,
    uri,
};
pub use traffic::{capture, memcached_exchange, mongodb_exchange, mongodb_replay, redis_exchange};
pub use wire::{
    bson, host_frame, memcached, mongodb, prometheus, redis_facts, redis_replies, resp, scram, totals,
    worker_frame,
};

/// A target's name and function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 38] = [
    ("resp", resp),
    ("redis_facts", redis_facts),
    ("memcached", memcached),
    ("bson", bson),
    ("mongodb", mongodb),
    ("scram", scram),
    ("prometheus", prometheus),
    ("worker_frame", worker_frame),
    ("host_frame", host_frame),
    ("totals", totals),
    ("properties", properties),
    ("experiment", experiment),
    ("template", template),
    ("inventory", inventory),
    ("cluster_config", cluster_config),
    ("sysbench_config", sysbench_config),
    ("hlog", hlog),
    ("import_ycsb", import_ycsb),
    ("import_sysbench", import_sysbench),
    ("import_pocdriver", import_pocdriver),
    ("import_csv", import_csv),
    ("recording", recording),
    ("redis_replies", redis_replies),
    ("relay_frames", relay_frames),
    ("dns_answer", dns_answer),
    ("http_answer", http_answer),
    ("manifests", manifests),
    ("store_answer", store_answer),
    ("uri", uri),
    ("threshold", threshold),
    ("promql", promql),
    ("rates", rates),
    ("command_lines", command_lines),
    ("redis_exchange", redis_exchange),
    ("memcached_exchange", memcached_exchange),
    ("mongodb_exchange", mongodb_exchange),
    ("capture", capture),
    ("mongodb_replay", mongodb_replay),
];
