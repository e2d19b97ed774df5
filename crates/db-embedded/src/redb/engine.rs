//! Opens redb: its options, and the store that gives sessions.

use super::documents;
use super::session::RedbSession;
use super::shared::{RedbShared, create_table, name};
use crate::options::GivenOptions;
use crate::ordered::{self, DocumentStore, Patience};
use crate::reading::whole_record;
use crate::uri::StoreUri;
use dyno_types::{Content, RefusalCode, Refused, Store, StoreSession};
use redb::{Builder, Durability};
use std::path::PathBuf;
use std::sync::Arc;

/// Reads the options: durability, bytes of cache, whether an insert replaces.
fn settings(given: &GivenOptions<'_>) -> Result<(Durability, Option<u64>, bool), Refused> {
    let choices = [("immediate", Durability::Immediate), ("none", Durability::None)];
    Ok((given.choice("durability", &choices)?, given.bytes("cache", 1 << 40)?, given.replaces()?))
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `redb:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let (durability, cache_bytes, replaces) = settings(given)?;
    let path = uri.required_path()?;
    ordered::check("redb", content.as_ref())?;
    uri.create_file(&path)?;
    let mut builder = Builder::new();
    if let Some(bytes) = cache_bytes {
        builder.set_cache_size(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    let database = builder.create(&path).map_err(|error| uri.cannot_open(&path, &error))?;
    let records = content.shapes().is_empty();
    if records {
        create_table(&database, content.table()).map_err(|error| {
            Refused::new(
                RefusalCode::BadFile,
                path.display().to_string(),
                format!("redb: {}: {error}", path.display()),
            )
        })?;
    }
    let whole = if records { content.fields(&whole_record()) } else { 0 };
    let shared = RedbShared { database, content: content.clone(), durability, replaces, whole };
    if !records {
        let engine = documents::RedbDocuments(Arc::new(shared));
        return Ok(Arc::new(DocumentStore::new(engine, content, Patience::none())));
    }
    Ok(Arc::new(RedbStore { path, shared: Arc::new(shared) }))
}

struct RedbStore {
    path: PathBuf,
    shared: Arc<RedbShared>,
}

impl Store for RedbStore {
    fn engine(&self) -> String {
        name()
    }

    fn durability(&self) -> String {
        self.shared.durability_in_words()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        self.session_of(self.shared.content.clone())
    }

    fn session_of(&self, content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(RedbSession::new(self.shared.clone(), content)))
    }

    fn count(&self) -> Result<Option<u64>, Refused> {
        let count = self.shared.count();
        count.map(Some).map_err(|error| {
            Refused::new(
                RefusalCode::BadFile,
                self.path.display().to_string(),
                format!("redb: {}: {error}", self.path.display()),
            )
        })
    }
}
