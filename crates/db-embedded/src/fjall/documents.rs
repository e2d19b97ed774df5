//! fjall as an engine for documents: a keyspace for each collection and index, and transactions of one writer at a
//! time, so that there are no conflicts. The journal is synced after the next writer may have begun.

use crate::ordered::{Engine, Handle, OrderedFailure, Reader, RequestError, Visit, Writer};
use dyno_types::Refused;
use dyno_types::document::SortOrder;
use fjall::{
    Iter, KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
    SingleWriterWriteTx, Snapshot,
};
use std::ops::Bound;
use std::sync::Arc;

/// The engine.
pub(super) struct Documents {
    pub(super) database: Arc<SingleWriterTxDatabase>,
    pub(super) mode: PersistMode,
}

/// One user's way to it.
pub(super) struct FjallUser {
    database: Arc<SingleWriterTxDatabase>,
    mode: PersistMode,
    tables: Vec<(String, SingleWriterTxKeyspace)>,
}

/// A snapshot.
pub(super) struct FjallSnapshot<'h> {
    snapshot: Snapshot,
    user: &'h FjallUser,
}

/// A transaction.
pub(super) struct FjallWrite<'h> {
    transaction: SingleWriterWriteTx<'h>,
    user: &'h FjallUser,
}

fn failed(error: fjall::Error) -> OrderedFailure {
    match error {
        fjall::Error::Locked => OrderedFailure::Conflict(error.into()),
        error => OrderedFailure::Engine(error.into()),
    }
}

/// fjall panics on keys beyond its limits.
fn checked(key: &[u8]) -> Result<(), OrderedFailure> {
    match key.len() {
        1..=super::session::KEY_BYTES => Ok(()),
        other => Err(RequestError::Limit(super::session::KeyLength(other).into()).into()),
    }
}

impl Engine for Documents {
    type Handle = FjallUser;

    fn handle(&self) -> Result<FjallUser, Refused> {
        Ok(FjallUser { database: self.database.clone(), mode: self.mode, tables: Vec::new() })
    }

    fn name(&self) -> String {
        super::shared::name()
    }

    fn durability(&self) -> String {
        super::shared::durability_in_words(self.mode)
    }

    fn facts(&self) -> Vec<(String, String)> {
        let database = &self.database;
        let mut facts = vec![
            ("fjall.journals".to_owned(), database.journal_count().to_string()),
            ("fjall.write_buffer_bytes".to_owned(), database.write_buffer_size().to_string()),
        ];
        if let Ok(bytes) = database.disk_space() {
            facts.push(("fjall.disk_bytes".to_owned(), bytes.to_string()));
        }
        facts
    }
}

impl Handle for FjallUser {
    type Read<'h> = FjallSnapshot<'h>;
    type Write<'h> = FjallWrite<'h>;

    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure> {
        if let Some(known) = self.tables.iter().position(|(known, _)| known == name) {
            return Ok(known);
        }
        if name.len() > super::shared::NAME_BYTES {
            return Err(RequestError::Limit(super::shared::NameTooLong(name.len()).into()).into());
        }
        let keyspace = self.database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed)?;
        self.tables.push((name.to_owned(), keyspace));
        Ok(self.tables.len() - 1)
    }

    fn read(&mut self) -> Result<FjallSnapshot<'_>, OrderedFailure> {
        Ok(FjallSnapshot { snapshot: self.database.read_tx(), user: self })
    }

    fn write(&mut self) -> Result<FjallWrite<'_>, OrderedFailure> {
        let transaction = self.database.write_tx().durability(Some(PersistMode::Buffer));
        Ok(FjallWrite { transaction, user: self })
    }
}

fn show<T>(
    reader: &impl Readable,
    table: &SingleWriterTxKeyspace,
    key: &[u8],
    show: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, OrderedFailure> {
    checked(key)?;
    Ok(reader.get(table, key).map_err(failed)?.map(|stored| show(&stored)))
}

fn bounds<'k>(low: &'k [u8], high: &'k [u8]) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    let end = if high.is_empty() { Bound::Unbounded } else { Bound::Excluded(high) };
    (Bound::Included(low), end)
}

fn walk(mut range: Iter, order: SortOrder, visit: &mut Visit<'_>) -> Result<(), OrderedFailure> {
    loop {
        let next = if order == SortOrder::Ascending { range.next() } else { range.next_back() };
        let Some(entry) = next else { return Ok(()) };
        let (key, value) = entry.into_inner().map_err(failed)?;
        if !visit(&key, &value)? {
            return Ok(());
        }
    }
}

impl Reader for FjallSnapshot<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        show(&self.snapshot, &self.user.tables[table].1, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        walk(self.snapshot.range::<&[u8], _>(&self.user.tables[table].1, bounds(low, high)), order, visit)
    }
}

impl Reader for FjallWrite<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        show(&self.transaction, &self.user.tables[table].1, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        walk(self.transaction.range::<&[u8], _>(&self.user.tables[table].1, bounds(low, high)), order, visit)
    }
}

impl Writer for FjallWrite<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure> {
        checked(key)?;
        self.transaction.insert(&self.user.tables[table].1, key, value);
        Ok(())
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure> {
        self.transaction.remove(&self.user.tables[table].1, key);
        Ok(())
    }

    fn commit(self) -> Result<(), OrderedFailure> {
        self.transaction.commit().map_err(failed)?;
        if self.user.mode != PersistMode::Buffer {
            self.user.database.persist(self.user.mode).map_err(failed)?;
        }
        Ok(())
    }
}
