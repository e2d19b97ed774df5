//! Opens fjall: its options, and the store that gives sessions.

use super::documents;
use super::session::FjallSession;
use super::shared::{FjallShared, NAME_BYTES, NameTooLong, Stripes, durability_in_words, name};
use crate::options::GivenOptions;
use crate::ordered::{self, DocumentStore, Patience};
use crate::reading::whole_record;
use crate::uri::StoreUri;
use dyno_types::{Content, RefusalCode, Refused, Store, StoreSession};
use fjall::{Database, KeyspaceCreateOptions, PersistMode, SingleWriterTxDatabase};
use std::path::PathBuf;
use std::sync::Arc;

/// Records that are counted one by one; fjall knows the exact number only by reading all.
const COUNTED: usize = 2_000_000;

/// Reads the options: durability, bytes of cache, whether an insert replaces.
fn settings(given: &GivenOptions<'_>) -> Result<(PersistMode, Option<u64>, bool), Refused> {
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
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `fjall:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let (mode, cache_bytes, replaces) = settings(given)?;
    if content.table().len() > NAME_BYTES {
        return Err(Refused::new(
            RefusalCode::Limit,
            "table",
            NameTooLong(content.table().len()).to_string(),
        ));
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
    let shared =
        FjallShared { database, keyspace, content, mode, replaces, whole, stripes: Stripes::default() };
    Ok(Arc::new(FjallStore { path, shared: Arc::new(shared) }))
}

struct FjallStore {
    path: PathBuf,
    shared: Arc<FjallShared>,
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
        Ok(Box::new(FjallSession::new(self.shared.clone(), content)))
    }

    /// The exact number, told where fjall has at most two million entries (overwritten ones count until compacted).
    fn count(&self) -> Result<Option<u64>, Refused> {
        let keyspace = &self.shared.keyspace;
        if keyspace.approximate_len() > COUNTED {
            return Ok(None);
        }
        let count = keyspace.len();
        count.map(|count| Some(count as u64)).map_err(|error| {
            Refused::new(
                RefusalCode::BadFile,
                self.path.display().to_string(),
                format!("fjall: {}: {error}", self.path.display()),
            )
        })
    }
}
