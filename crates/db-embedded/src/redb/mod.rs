//! redb: one table from key bytes to encoded records, in one file.
//!
//! Here live opening a file and its options; `session` executes requests on records, `documents` is the engine of those
//! on documents. A request that reads is a read transaction
//! of its own, one that writes a write transaction of its own; redb has one writer at a time, others wait for it.

#[cfg(feature = "redb")]
mod documents;
#[cfg(feature = "redb")]
mod engine;
#[cfg(feature = "redb")]
mod session;
#[cfg(feature = "redb")]
mod shared;

use crate::kind::StoreKind;
use crate::options::{self, OptionSpec, SIZE};

/// Form and options of `redb:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "redb",
    form: "redb:PATH",
    about: "redb, a copy-on-write B-tree in one file",
    options: &[
        OptionSpec {
            name: "durability",
            values: "immediate|none",
            default: "immediate",
            about: "whether a commit is synced to disk before it returns",
        },
        OptionSpec {
            name: "cache",
            values: SIZE,
            default: "1GiB",
            about: "redb's page cache, shared by all sessions",
        },
        options::INSERT,
    ],
    built: cfg!(feature = "redb"),
    library: None,
};

#[cfg(feature = "redb")]
pub(crate) use engine::{check, open};
