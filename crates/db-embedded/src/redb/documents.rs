//! redb as an engine for documents: a table of redb for each collection and index. A write transaction waits for the
//! one before it, so that there are no conflicts.

use super::shared::{self, RecordTable, RedbShared};
use crate::ordered::{Engine, Handle, OrderedFailure, Reader, RequestError, Visit, Writer};
use dyno_types::Refused;
use dyno_types::document::SortOrder;
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableError, WriteTransaction};
use std::ops::Bound;
use std::sync::Arc;

/// The engine.
pub(super) struct RedbDocuments(pub(super) Arc<RedbShared>);

/// One user's way to it.
pub(super) struct RedbUser {
    shared: Arc<RedbShared>,
    names: Vec<String>,
}

/// A read transaction, with the tables it has opened.
pub(super) struct RedbRead<'h> {
    transaction: ReadTransaction,
    names: &'h [String],
    tables: Vec<Option<ReadOnlyTable<&'static [u8], &'static [u8]>>>,
}

/// A write transaction.
pub(super) struct RedbWrite<'h> {
    transaction: WriteTransaction,
    names: &'h [String],
}

fn failed(error: impl Into<redb::Error>) -> OrderedFailure {
    match error.into() {
        error @ redb::Error::ValueTooLarge(_) => RequestError::Limit(error.into()).into(),
        error => OrderedFailure::Engine(error.into()),
    }
}

impl Engine for RedbDocuments {
    type Handle = RedbUser;

    fn handle(&self) -> Result<RedbUser, Refused> {
        Ok(RedbUser { shared: self.0.clone(), names: Vec::new() })
    }

    fn name(&self) -> String {
        shared::name()
    }

    fn durability(&self) -> String {
        self.0.durability_in_words()
    }
}

impl Handle for RedbUser {
    type Read<'h> = RedbRead<'h>;
    type Write<'h> = RedbWrite<'h>;

    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure> {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return Ok(known);
        }
        let there = self.shared.database.begin_read().map_err(failed)?.open_table(RecordTable::new(name));
        match there {
            Ok(_) => {}
            Err(TableError::TableDoesNotExist(_)) => {
                shared::create_table(&self.shared.database, name).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        self.names.push(name.to_owned());
        Ok(self.names.len() - 1)
    }

    fn read(&mut self) -> Result<RedbRead<'_>, OrderedFailure> {
        let transaction = self.shared.database.begin_read().map_err(failed)?;
        let tables = self.names.iter().map(|_| None).collect();
        Ok(RedbRead { transaction, names: &self.names, tables })
    }

    fn write(&mut self) -> Result<RedbWrite<'_>, OrderedFailure> {
        let mut transaction = self.shared.database.begin_write().map_err(failed)?;
        transaction.set_durability(self.shared.durability).map_err(failed)?;
        Ok(RedbWrite { transaction, names: &self.names })
    }
}

fn show<T>(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
    show: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, OrderedFailure> {
    Ok(table.get(key).map_err(failed)?.map(|stored| show(stored.value())))
}

fn walk(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    low: &[u8],
    high: &[u8],
    order: SortOrder,
    visit: &mut Visit<'_>,
) -> Result<(), OrderedFailure> {
    let end = if high.is_empty() { Bound::Unbounded } else { Bound::Excluded(high) };
    let mut range = table.range::<&[u8]>((Bound::Included(low), end)).map_err(failed)?;
    loop {
        let next = if order == SortOrder::Ascending { range.next() } else { range.next_back() };
        let Some(entry) = next else { return Ok(()) };
        let (key, value) = entry.map_err(failed)?;
        if !visit(key.value(), value.value())? {
            return Ok(());
        }
    }
}

impl RedbRead<'_> {
    fn table(
        &mut self,
        number: usize,
    ) -> Result<&ReadOnlyTable<&'static [u8], &'static [u8]>, OrderedFailure> {
        let place = &mut self.tables[number];
        match place {
            Some(table) => Ok(table),
            None => {
                let table =
                    self.transaction.open_table(RecordTable::new(&self.names[number])).map_err(failed)?;
                Ok(place.insert(table))
            }
        }
    }
}

impl Reader for RedbRead<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        show(self.table(table)?, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        walk(self.table(table)?, low, high, order, visit)
    }
}

impl RedbWrite<'_> {
    fn table(&self, number: usize) -> Result<redb::Table<'_, &'static [u8], &'static [u8]>, OrderedFailure> {
        self.transaction.open_table(RecordTable::new(&self.names[number])).map_err(failed)
    }
}

impl Reader for RedbWrite<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        show(&self.table(table)?, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        walk(&self.table(table)?, low, high, order, visit)
    }
}

impl Writer for RedbWrite<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure> {
        self.table(table)?.insert(key, value).map_err(failed)?;
        Ok(())
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure> {
        self.table(table)?.remove(key).map_err(failed)?;
        Ok(())
    }

    fn commit(self) -> Result<(), OrderedFailure> {
        self.transaction.commit().map_err(failed)
    }
}
