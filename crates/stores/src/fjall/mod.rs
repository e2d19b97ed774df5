//! fjall: one keyspace from key bytes to encoded records, in a directory of journals and sorted tables.
//!
//! Here live opening a directory, its options, and the locks that make reading and writing back one record atomic
//! (`shared`); `session` executes requests on records, `documents` is the engine of those on documents. fjall itself
//! locks no record: without the stripes two users updating different fields of one record would lose one of the
//! updates. A stripe is never held while the journal is synced.

mod documents;
mod session;
mod shared;

use crate::kind::StoreKind;
use crate::options::{self, Given, OptionSpec, SIZE};
use crate::ordered::{self, DocumentStore, Patience};
use crate::reading::whole_record;
use crate::uri::StoreUri;
use dyno_types::{Content, Refused, Store, StoreSession};
use fjall::{Database, KeyspaceCreateOptions, PersistMode, SingleWriterTxDatabase};
use session::Session;
use shared::{NAME_BYTES, NameTooLong, Shared, Stripes, durability_in_words, name};
use std::path::PathBuf;
use std::sync::Arc;

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
    built: true,
};

/// Records that are counted one by one; fjall knows the exact number only by reading all.
const COUNTED: usize = 2_000_000;

/// Reads the options: durability, bytes of cache, whether an insert replaces.
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
