//! State that all sessions of fjall share: the keyspace and its locks, the engine's name, and how durable it is.

use dyno_types::Content;
use fjall::{Database, Keyspace, PersistMode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks over all keys: enough for 128 users to seldom meet, and 10 KiB.
pub(super) const STRIPES: usize = 256;

/// Longest name of a keyspace, in bytes: fjall panics beyond.
pub(super) const NAME_BYTES: usize = 255;

/// State that all sessions share.
pub(super) struct FjallShared {
    pub(super) database: Database,
    pub(super) keyspace: Keyspace,
    pub(super) content: Arc<dyn Content>,
    pub(super) mode: PersistMode,
    /// True if an insert replaces an existing record.
    pub(super) replaces: bool,
    /// Fields of a whole record.
    pub(super) whole: usize,
    pub(super) stripes: Stripes,
}

/// One lock for every 256th key, by a hash of the key.
pub(super) struct Stripes([Mutex<()>; STRIPES]);

impl Default for Stripes {
    fn default() -> Self {
        Stripes(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Stripes {
    /// The number of a key's stripe: FNV-1a, folded.
    pub(super) fn of(key: &[u8]) -> usize {
        let hash = key.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
        ((hash ^ hash >> 32) % STRIPES as u64) as usize
    }

    /// Locks stripe number `stripe`. A caller that locks several must do so in ascending order.
    pub(super) fn lock(&self, stripe: usize) -> MutexGuard<'_, ()> {
        self.0[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name and version.
pub(super) fn name() -> String {
    concat!("fjall ", env!("DYNO_FJALL_VERSION")).to_owned()
}

/// A table's name of so many bytes is too long.
#[derive(Debug, thiserror::Error)]
#[error("fjall: the table's name has {0} bytes; at most {NAME_BYTES}")]
pub(super) struct NameTooLong(pub(super) usize);

pub(super) fn durability_in_words(mode: PersistMode) -> String {
    match mode {
        PersistMode::SyncAll => "durability=fsync: the journal is fsynced after every write",
        PersistMode::SyncData => "durability=fdatasync: the journal is synced with fdatasync after every write",
        PersistMode::Buffer => {
            "durability=none, fjall's own default: nothing is synced, the journal is handed to the operating system \
             after every write; a power loss may lose the latest writes"
        }
    }
    .to_owned()
}
