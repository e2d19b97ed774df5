//! One user's requests on redb: transactions around reads and writes of encoded records.

use super::shared::RedbShared;
use crate::reading::Buffers;
use crate::record::RecordError;
use dyno_types::{Content, Executed, Outcome, Request, StoreSession, Verb};
use redb::{ReadableDatabase, ReadableTable, StorageError, Table};
use std::fmt::Write;
use std::sync::Arc;

/// See the module.
pub(super) struct RedbSession {
    shared: Arc<RedbShared>,
    content: Arc<dyn Content>,
    buffers: Buffers,
    error: String,
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
enum RedbFailure {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{0}")]
    Redb(Box<redb::Error>),
    #[error("the key exists already (insert=fail)")]
    Exists,
}

impl<E: Into<redb::Error>> From<E> for RedbFailure {
    fn from(error: E) -> Self {
        RedbFailure::Redb(Box::new(error.into()))
    }
}

impl RedbSession {
    pub(super) fn new(shared: Arc<RedbShared>, content: Arc<dyn Content>) -> Self {
        RedbSession { shared, content, buffers: Buffers::default(), error: String::new() }
    }

    fn try_execute(&mut self, request: &Request) -> Result<Executed, RedbFailure> {
        if request.verb.changes_data() {
            return self.write(std::slice::from_ref(request));
        }
        if matches!(request.verb, Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology) {
            return Ok(Executed::new(Outcome::NotImplemented, 0));
        }
        let (shared, content) = (&self.shared, self.content.as_ref());
        let table = shared.database.begin_read()?.open_table(shared.table())?;
        look((shared, content), &mut self.buffers, &table, request)
    }

    /// Executes the requests in one write transaction; it is committed if all end well.
    fn write(&mut self, requests: &[Request]) -> Result<Executed, RedbFailure> {
        let (shared, content) = (&self.shared, self.content.as_ref());
        let mut transaction = shared.database.begin_write()?;
        transaction.set_durability(shared.durability)?;
        let mut all = Executed::new(Outcome::Ok, 0);
        {
            let mut table = transaction.open_table(shared.table())?;
            for request in requests {
                let done = if request.verb.changes_data() {
                    change((shared, content), &mut self.buffers, &mut table, request)?
                } else {
                    look((shared, content), &mut self.buffers, &table, request)?
                };
                if !done.outcome.is_ok() {
                    // Dropping the transaction aborts it.
                    return Ok(done);
                }
                all.records += done.records;
            }
        }
        transaction.commit()?;
        Ok(all)
    }

    fn failed(&mut self, failure: &RedbFailure) -> Executed {
        self.error.clear();
        let _ = write!(self.error, "{failure}");
        let outcome = match failure {
            RedbFailure::Record(RecordError::TooLong) => Outcome::BadRequest,
            RedbFailure::Exists => Outcome::Duplicate,
            RedbFailure::Redb(error) if matches!(**error, redb::Error::ValueTooLarge(_)) => {
                Outcome::BadRequest
            }
            _ => Outcome::ServerError,
        };
        Executed::new(outcome, 0)
    }
}

impl StoreSession for RedbSession {
    fn execute(&mut self, request: &Request) -> Executed {
        self.try_execute(request).unwrap_or_else(|failure| self.failed(&failure))
    }

    fn execute_batch(&mut self, requests: &[Request]) -> Executed {
        self.write(requests).unwrap_or_else(|failure| self.failed(&failure))
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

/// A read or a scan.
fn look(
    (shared, content): (&RedbShared, &dyn Content),
    buffers: &mut Buffers,
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    request: &Request,
) -> Result<Executed, RedbFailure> {
    buffers.render_key(content, request);
    if request.verb == Verb::Read {
        return match table.get(&buffers.key[..])? {
            Some(stored) => Ok(buffers.read(content, request, shared.whole, stored.value())?),
            None => Ok(Executed::new(Outcome::NotFound, 0)),
        };
    }
    if request.verb != Verb::Scan {
        return Ok(Executed::new(Outcome::NotImplemented, 0));
    }
    let mut records = 0;
    let found = table.range(&buffers.key[..]..)?;
    for entry in found.take(request.limit as usize) {
        buffers.pass(content, request, records, entry?.1.value())?;
        records += 1;
    }
    Ok(Executed::new(Outcome::Ok, records))
}

/// An insert, an update or a delete.
fn change(
    (shared, content): (&RedbShared, &dyn Content),
    buffers: &mut Buffers,
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    request: &Request,
) -> Result<Executed, RedbFailure> {
    buffers.render_key(content, request);
    match request.verb {
        Verb::Insert => {
            if !shared.replaces && table.get(&buffers.key[..])?.is_some() {
                return Err(RedbFailure::Exists);
            }
            buffers.render_record(content, request)?;
        }
        Verb::Update => {
            let Some(stored) = table.get(&buffers.key[..])? else {
                return Ok(Executed::new(Outcome::NotFound, 0));
            };
            buffers.render_update(content, request, stored.value())?;
        }
        _ => {
            let there = table.remove(&buffers.key[..])?.is_some();
            return Ok(Executed::new(if there { Outcome::Ok } else { Outcome::NotFound }, 0));
        }
    }
    insert(table, buffers)?;
    Ok(Executed::new(Outcome::Ok, 0))
}

fn insert(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    buffers: &Buffers,
) -> Result<(), StorageError> {
    table.insert(&buffers.key[..], &buffers.record[..]).map(drop)
}
