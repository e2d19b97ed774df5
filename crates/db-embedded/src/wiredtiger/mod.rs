//! WiredTiger: the engine of MongoDB, B-trees with a cache, a journal and checkpoints in a directory. Behind the feature
//! `wiredtiger`; needs `libwiredtiger`.
//!
//! Here live the options; `engine` speaks to the library (`sys`). Transactions have snapshot isolation; one that meets
//! a change made since its snapshot is begun again, as MongoDB does, until `busy_timeout` is over.

#[cfg(feature = "wiredtiger")]
mod engine;
#[cfg(feature = "wiredtiger")]
mod sys;

use crate::kind::StoreKind;
use crate::options::{self, DURATION, OptionSpec, SIZE};

/// Form and options of `wiredtiger:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "wiredtiger",
    form: "wiredtiger:PATH",
    about: "WiredTiger, MongoDB's engine: B-trees, journal and checkpoints in one directory",
    options: &[
        OptionSpec { name: "cache", values: SIZE, default: "1GiB", about: "WiredTiger's cache of pages" },
        OptionSpec {
            name: "compression",
            values: "snappy|zlib|none",
            default: "snappy",
            about: "how blocks of tables made from now on are compressed",
        },
        OptionSpec {
            name: "journal",
            values: "sync|nosync|off",
            default: "sync",
            about: "whether commits are written to a journal, and synced with it before they return",
        },
        OptionSpec {
            name: "checkpoint",
            values: DURATION,
            default: "60s",
            about: "pause between checkpoints, whole seconds",
        },
        OptionSpec {
            name: "busy_timeout",
            values: DURATION,
            default: "5s",
            about: "how long a transaction that meets conflicts is tried again before it fails as busy",
        },
        options::INSERT,
    ],
    built: cfg!(feature = "wiredtiger"),
    library: Some("libwiredtiger-dev"),
};

#[cfg(feature = "wiredtiger")]
pub(crate) use engine::{check, open};

/// The version of the library whose structures `sys` declares: in another one methods may lie elsewhere.
#[cfg(any(test, feature = "wiredtiger"))]
const DECLARED: [i32; 3] = [3, 2, 1];

/// Refuses a library of another version, before a method of it is called.
#[cfg(any(test, feature = "wiredtiger"))]
fn check_version(found: [i32; 3]) -> Result<(), dyno_types::Refused> {
    let dotted = |version: [i32; 3]| version.map(|part| part.to_string()).join(".");
    if found == DECLARED {
        return Ok(());
    }
    Err(dyno_types::Refused::new(
        dyno_types::RefusalCode::Unsupported,
        "libwiredtiger",
        format!(
            "wiredtiger: libwiredtiger {} is installed, and dyno calls methods where {} has them: install that version",
            dotted(found),
            dotted(DECLARED)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_version_is_refused() {
        assert_eq!(check_version([3, 2, 1]), Ok(()));
        for other in [[3, 2, 0], [3, 2, 2], [3, 1, 1], [11, 2, 1], [0, 0, 0]] {
            let why = check_version(other).unwrap_err().to_string();
            assert!(why.contains("install that version") && why.contains("3.2.1"), "{why}");
        }
    }
}
