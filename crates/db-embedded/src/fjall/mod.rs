//! fjall: one keyspace from key bytes to encoded records, in a directory of journals and sorted tables.
//!
//! Here live opening a directory, its options, and the locks that make reading and writing back one record atomic
//! (`shared`); `session` executes requests on records, `documents` is the engine of those on documents. fjall itself
//! locks no record: without the stripes two users updating different fields of one record would lose one of the
//! updates. A stripe is never held while the journal is synced.

#[cfg(feature = "fjall")]
mod documents;
#[cfg(feature = "fjall")]
mod engine;
#[cfg(feature = "fjall")]
mod session;
#[cfg(feature = "fjall")]
mod shared;

use crate::kind::StoreKind;
use crate::options::{self, OptionSpec, SIZE};

/// Form and options of `fjall:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "fjall",
    form: "fjall:PATH",
    about: "fjall, a log-structured merge tree in one directory",
    options: &[
        OptionSpec {
            name: "durability",
            values: "fsync|fdatasync|none (also syncall|syncdata|buffer)",
            default: "fsync",
            about: "how the journal is synced after each write; fjall's own default is none",
        },
        OptionSpec {
            name: "cache",
            values: SIZE,
            default: "32MiB",
            about: "fjall's block cache, shared by all sessions",
        },
        options::INSERT,
    ],
    built: cfg!(feature = "fjall"),
    library: None,
};

#[cfg(feature = "fjall")]
pub(crate) use engine::{check, open};
