//! LMDB: a copy-on-write B+ tree in one file that is mapped into memory. Behind the feature `lmdb`; needs `liblmdb`.
//!
//! Here live the options; `engine` speaks to the library. Readers never wait; a writer waits for the one before it, so
//! that there are no conflicts. There is no cache of its own (the operating system's page cache is it), no journal and
//! no compression.

#[cfg(feature = "lmdb")]
mod engine;

use crate::kind::StoreKind;
use crate::options::{self, OptionSpec, SIZE, SWITCH};

/// Form and options of `lmdb:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "lmdb",
    form: "lmdb:PATH",
    about: "LMDB, a memory-mapped copy-on-write B+ tree in one file",
    options: &[
        OptionSpec {
            name: "sync",
            values: "full|nometa|none",
            default: "full",
            about: "what a commit syncs: data and meta page, data only, or nothing",
        },
        OptionSpec {
            name: "map",
            values: SIZE,
            default: "16GiB",
            about: "the memory map: the most that the file can grow to",
        },
        OptionSpec {
            name: "writemap",
            values: SWITCH,
            default: "false",
            about: "whether changes are written through the map instead of by write calls",
        },
        OptionSpec {
            name: "readahead",
            values: SWITCH,
            default: "true",
            about: "whether the operating system reads ahead",
        },
        options::INSERT,
    ],
    built: cfg!(feature = "lmdb"),
    library: Some("liblmdb-dev"),
};

#[cfg(feature = "lmdb")]
pub(crate) use engine::{check, open};
