//! fjall: one keyspace from key bytes to encoded records, in a directory of journals and sorted tables.
//!
//! Here live opening a directory, its options, and the locks that make reading and writing back one record atomic
//! (`Stripes`); `session` executes requests on records, `documents` is the engine of those on documents. fjall itself
//! locks no record: without the stripes two users updating different fields of one record would lose one of the
//! updates. A stripe is never held while the journal is synced.

mod documents;
mod session;

use crate::options::{self, Given, OptionSpec, SIZE};
use crate::ordered::{self, DocumentStore, Patience};
use crate::uri::StoreUri;
use crate::{StoreKind, whole_record};
use dyno_types::{Content, Refused, Store, StoreSession};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, SingleWriterTxDatabase};
use session::Session;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What `fjall:` URIs look like.
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
    built: true,
};

/// Locks over all keys: enough for 128 users to seldom meet, and 10 KiB.
const STRIPES: usize = 256;

/// Longest name of a keyspace, in bytes: fjall panics beyond.
const NAME_BYTES: usize = 255;

/// Records that are counted one by one; fjall knows the exact number only by reading all.
const COUNTED: usize = 2_000_000;

/// What options say: durability, bytes of cache, whether an insert replaces.
fn settings(given: &Given<'_>) -> Result<(PersistMode, Option<u64>, bool), Refused> {
    use PersistMode as P;
    let mode = given.choice(
        "durability",
        &[
            ("fsync", P::SyncAll),
            ("fdatasync", P::SyncData),
            ("none", P::Buffer),
            ("syncall", P::SyncAll),
            ("syncdata", P::SyncData),
            ("buffer", P::Buffer),
        ],
    )?;
    Ok((mode, given.bytes("cache", 1 << 40)?, given.replaces()?))
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &Given<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `fjall:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &Given<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let (mode, cache_bytes, replaces) = settings(given)?;
    if content.table().len() > NAME_BYTES {
        return Err(Refused(NameTooLong(content.table().len()).to_string()));
    }
    let path = uri.required_path()?;
    if !content.shapes().is_empty() {
        ordered::check("fjall", content.as_ref())?;
        let mut builder = SingleWriterTxDatabase::builder(&path);
        if let Some(bytes) = cache_bytes {
            builder = builder.cache_size(bytes);
        }
        let database = Arc::new(builder.open().map_err(|error| uri.cannot_open(&path, &error))?);
        let engine = documents::Documents { database, mode };
        return Ok(Arc::new(DocumentStore::new(engine, content, Patience::none())));
    }
    let mut builder = Database::builder(&path);
    if let Some(bytes) = cache_bytes {
        builder = builder.cache_size(bytes);
    }
    let database = builder.open().map_err(|error| uri.cannot_open(&path, &error))?;
    let keyspace = database
        .keyspace(content.table(), KeyspaceCreateOptions::default)
        .map_err(|error| uri.cannot_open(&path, &error))?;
    let whole = content.fields(&whole_record());
    let shared = Shared { database, keyspace, content, mode, replaces, whole, stripes: Stripes::default() };
    Ok(Arc::new(FjallStore { path, shared: Arc::new(shared) }))
}

/// What all sessions share.
struct Shared {
    database: Database,
    keyspace: Keyspace,
    content: Arc<dyn Content>,
    mode: PersistMode,
    /// True if an insert replaces an existing record.
    replaces: bool,
    /// Fields of a whole record.
    whole: usize,
    stripes: Stripes,
}

/// One lock for every 256th key, by a hash of the key.
struct Stripes([Mutex<()>; STRIPES]);

impl Default for Stripes {
    fn default() -> Self {
        Stripes(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Stripes {
    /// The number of a key's stripe: FNV-1a, folded.
    fn of(key: &[u8]) -> usize {
        let hash = key.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
        ((hash ^ hash >> 32) % STRIPES as u64) as usize
    }

    /// Locks stripe number `stripe`. Whoever locks several must do so in ascending order.
    fn lock(&self, stripe: usize) -> MutexGuard<'_, ()> {
        self.0[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name and version.
fn name() -> String {
    concat!("fjall ", env!("DYNO_FJALL_VERSION")).to_owned()
}

/// Why a keyspace cannot be called `name`.
/// A table's name of so many bytes is too long.
#[derive(Debug, thiserror::Error)]
#[error("fjall: the table's name has {0} bytes; at most {NAME_BYTES}")]
struct NameTooLong(usize);

fn durability_in_words(mode: PersistMode) -> String {
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

struct FjallStore {
    path: PathBuf,
    shared: Arc<Shared>,
}

impl Store for FjallStore {
    fn engine(&self) -> String {
        name()
    }

    fn durability(&self) -> String {
        durability_in_words(self.shared.mode)
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        self.session_of(self.shared.content.clone())
    }

    fn session_of(&self, content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(Session::new(self.shared.clone(), content)))
    }

    /// The exact number, told where fjall has at most two million entries (overwritten ones count until compacted).
    fn count(&self) -> Result<Option<u64>, Refused> {
        let keyspace = &self.shared.keyspace;
        if keyspace.approximate_len() > COUNTED {
            return Ok(None);
        }
        let count = keyspace.len();
        count
            .map(|count| Some(count as u64))
            .map_err(|error| Refused(format!("fjall: {}: {error}", self.path.display())))
    }
}
