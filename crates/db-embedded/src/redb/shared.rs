//! State that all sessions of redb share: the file and its table, the engine's name, and how durable it is.

use dyno_types::Content;
use redb::{Database, Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use std::sync::Arc;

/// The table: key bytes to an encoded record.
pub(super) type RecordTable<'n> = TableDefinition<'n, &'static [u8], &'static [u8]>;

/// Makes sure that the table is there, so that readers always find it.
pub(super) fn create_table(database: &Database, name: &str) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(RecordTable::new(name))?;
    Ok(transaction.commit()?)
}

/// State that all sessions share.
pub(super) struct RedbShared {
    pub(super) database: Database,
    pub(super) content: Arc<dyn Content>,
    pub(super) durability: Durability,
    /// True if an insert replaces an existing record.
    pub(super) replaces: bool,
    /// Fields of a whole record.
    pub(super) whole: usize,
}

impl RedbShared {
    pub(super) fn table(&self) -> RecordTable<'_> {
        RecordTable::new(self.content.table())
    }

    pub(super) fn durability_in_words(&self) -> String {
        match self.durability {
            Durability::Immediate => "durability=immediate: every commit is synced with fdatasync",
            _ => "durability=none: nothing is synced before the store is closed; a crash of the process loses it",
        }
        .to_owned()
    }

    pub(super) fn count(&self) -> Result<u64, redb::Error> {
        Ok(self.database.begin_read()?.open_table(self.table())?.len()?)
    }
}

/// Name and version.
pub(super) fn name() -> String {
    concat!("redb ", env!("DYNO_REDB_VERSION")).to_owned()
}
