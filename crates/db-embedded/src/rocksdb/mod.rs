//! RocksDB: a log-structured merge tree in one directory, with pessimistic transactions (its TransactionDB). Behind the
//! feature `rocksdb`; needs `librocksdb`.
//!
//! Here live the options; `engine` speaks to the library (`sys`). A table is a column family. What a transaction reads
//! in order to change it is locked; waiting for a lock ends with `busy_timeout`, a deadlock is begun again.

#[cfg(feature = "rocksdb")]
mod engine;
#[cfg(feature = "rocksdb")]
mod sys;

use crate::kind::StoreKind;
use crate::options::{self, DURATION, OptionSpec, SIZE};

/// Form and options of `rocksdb:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "rocksdb",
    form: "rocksdb:PATH",
    about: "RocksDB, a log-structured merge tree in one directory",
    options: &[
        OptionSpec {
            name: "cache",
            values: SIZE,
            default: "1GiB",
            about: "cache of blocks, of all tables together",
        },
        OptionSpec {
            name: "compression",
            values: "snappy|lz4|zstd|none",
            default: "snappy",
            about: "how blocks written from now on are compressed",
        },
        OptionSpec {
            name: "wal",
            values: "sync|nosync|off",
            default: "sync",
            about: "whether commits are written to the write-ahead log, and synced with it before they return",
        },
        OptionSpec {
            name: "memtable",
            values: SIZE,
            default: "64MiB",
            about: "size at which a table's changes in memory are written out, RocksDB's write_buffer_size",
        },
        OptionSpec {
            name: "memtables",
            values: SIZE,
            default: "unbounded",
            about: "size of all tables' changes in memory at which they are written out, RocksDB's db_write_buffer_size",
        },
        OptionSpec {
            name: "busy_timeout",
            values: DURATION,
            default: "5s",
            about: "how long a transaction waits for a lock before it fails as busy",
        },
        options::INSERT,
    ],
    built: cfg!(feature = "rocksdb"),
    library: Some("librocksdb-dev"),
};

#[cfg(feature = "rocksdb")]
pub(crate) use engine::{check, open};
