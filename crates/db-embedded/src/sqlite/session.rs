//! One user's connection: requests become executions of prepared statements. The statements' text is `schema`'s.
//!
//! Every request outside a batch is a transaction of its own (SQLite's autocommit). Statements are prepared at first
//! use and kept by the connection.

use super::schema::Schema;
use crate::reading::RecordCheck;
use dyno_types::{Content, Executed, Outcome, Request, StoreSession, Verb};
use rusqlite::types::{Null, ValueRef};
use rusqlite::{CachedStatement, Connection, Error, ErrorCode, Row, ffi};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

/// See the module.
pub(super) struct SqliteSession {
    connection: Connection,
    schema: Arc<Schema>,
    content: Arc<dyn Content>,
    /// Statement that ends a failed batch: without a journal SQLite cannot roll back.
    undo: &'static str,
    key: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
    /// Which fields a request names, by their numbers.
    named: Vec<usize>,
    error: String,
}

/// A failed request.
enum SqliteFailure {
    Sqlite(Error),
    /// The request names a field that is no column.
    NoColumn,
}

impl From<Error> for SqliteFailure {
    fn from(error: Error) -> Self {
        SqliteFailure::Sqlite(error)
    }
}

impl SqliteSession {
    pub(super) fn new(
        connection: Connection,
        schema: Arc<Schema>,
        content: Arc<dyn Content>,
        undo: &'static str,
    ) -> Self {
        let (key, name, value, named, error) = Default::default();
        SqliteSession { connection, schema, content, undo, key, name, value, named, error }
    }

    fn try_execute(&mut self, request: &Request) -> Result<Executed, SqliteFailure> {
        self.key.clear();
        self.content.key(request, &mut self.key);
        self.resolve(request)?;
        match request.verb {
            Verb::Read => self.read(request),
            Verb::Scan => self.scan(request),
            Verb::Insert => self.insert(request),
            Verb::Update => self.update(request),
            Verb::Delete => self.delete(),
            Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology => {
                Ok(Executed::new(Outcome::NotImplemented, 0))
            }
        }
    }

    /// Finds the numbers of the fields that `request` names.
    fn resolve(&mut self, request: &Request) -> Result<(), SqliteFailure> {
        self.named.clear();
        if request.verb == Verb::Delete {
            return Ok(());
        }
        for field in 0..self.content.fields(request) {
            self.name.clear();
            self.content.name(request, field, &mut self.name);
            self.named.push(self.schema.field(&self.name, field).ok_or(SqliteFailure::NoColumn)?);
        }
        Ok(())
    }

    fn read(&self, request: &Request) -> Result<Executed, SqliteFailure> {
        let (sql, alone) = match self.named[..] {
            [field] => (&self.schema.read_one[field], true),
            _ => (&self.schema.read, false),
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.raw_bind_parameter(1, &self.key[..])?;
        let mut rows = statement.raw_query();
        let Some(row) = rows.next()? else {
            return Ok(Executed::new(Outcome::NotFound, 0));
        };
        let mut check = RecordCheck::new(self.content.as_ref(), request);
        let mut look = |field: usize, column: usize| -> Result<(), Error> {
            match bytes(row, column)? {
                Some(value) => check.value(self.schema.fields[field].as_bytes(), value),
                None => check.missing(),
            }
            Ok(())
        };
        match &self.named[..] {
            [] => (0..self.schema.fields.len()).try_for_each(|field| look(field, field))?,
            named => named.iter().try_for_each(|&field| look(field, if alone { 0 } else { field }))?,
        }
        Ok(Executed { outcome: Outcome::Ok, records: 1, verified: check.verified() })
    }

    fn scan(&self, request: &Request) -> Result<Executed, SqliteFailure> {
        let (sql, columns, alone) = match self.named[..] {
            [field] => (&self.schema.scan_one[field], 1, true),
            _ => (&self.schema.scan, self.schema.fields.len(), false),
        };
        let watched = self.content.watches_scans();
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.raw_bind_parameter(1, &self.key[..])?;
        statement.raw_bind_parameter(2, request.limit)?;
        let mut rows = statement.raw_query();
        let mut records = 0;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let value = black_box(bytes(row, column)?);
                if let (true, Some(value)) = (watched, value) {
                    let field = if alone { self.named[0] } else { column };
                    self.content.scanned(records, self.schema.fields[field].as_bytes(), value);
                }
            }
            records += 1;
        }
        Ok(Executed::new(Outcome::Ok, records))
    }

    fn insert(&mut self, request: &Request) -> Result<Executed, SqliteFailure> {
        let mut statement = self.connection.prepare_cached(&self.schema.insert)?;
        statement.raw_bind_parameter(1, &self.key[..])?;
        if self.named.len() < self.schema.fields.len() {
            for field in 0..self.schema.fields.len() {
                statement.raw_bind_parameter(field + 2, Null)?;
            }
        }
        bind(&mut statement, self.content.as_ref(), request, &self.named, &mut self.value)?;
        statement.raw_execute()?;
        Ok(Executed::new(Outcome::Ok, 0))
    }

    fn update(&mut self, request: &Request) -> Result<Executed, SqliteFailure> {
        let mut statement = match self.named[..] {
            [field] => {
                let mut statement = self.connection.prepare_cached(&self.schema.update_one[field])?;
                self.value.clear();
                self.content.value(request, 0, &mut self.value);
                statement.raw_bind_parameter(2, &self.value[..])?;
                statement
            }
            // Parameters not bound are NULL and leave their field as it is.
            _ => {
                let mut statement = self.connection.prepare_cached(&self.schema.update)?;
                bind(&mut statement, self.content.as_ref(), request, &self.named, &mut self.value)?;
                statement
            }
        };
        statement.raw_bind_parameter(1, &self.key[..])?;
        Ok(found(statement.raw_execute()?))
    }

    fn delete(&self) -> Result<Executed, SqliteFailure> {
        let mut statement = self.connection.prepare_cached(&self.schema.delete)?;
        statement.raw_bind_parameter(1, &self.key[..])?;
        Ok(found(statement.raw_execute()?))
    }

    fn run(&self, sql: &str) -> Result<(), SqliteFailure> {
        self.connection.prepare_cached(sql)?.raw_execute()?;
        Ok(())
    }

    fn try_batch(&mut self, requests: &[Request]) -> Result<Executed, SqliteFailure> {
        self.run("BEGIN IMMEDIATE")?;
        let mut all = Executed::new(Outcome::Ok, 0);
        for request in requests {
            let done = self.try_execute(request)?;
            if !done.outcome.is_ok() {
                return Ok(done);
            }
            all.records += done.records;
        }
        self.run("COMMIT")?;
        Ok(all)
    }

    fn failed(&mut self, failure: SqliteFailure) -> Executed {
        self.error.clear();
        let outcome = match &failure {
            SqliteFailure::Sqlite(error) => {
                let _ = write!(self.error, "{error}");
                outcome(error)
            }
            SqliteFailure::NoColumn => {
                let name = String::from_utf8_lossy(&self.name);
                let _ = write!(self.error, "the request names field {name:?}, which the table does not have");
                Outcome::BadRequest
            }
        };
        Executed::new(outcome, 0)
    }
}

impl StoreSession for SqliteSession {
    fn execute(&mut self, request: &Request) -> Executed {
        self.try_execute(request).unwrap_or_else(|failure| self.failed(failure))
    }

    fn execute_batch(&mut self, requests: &[Request]) -> Executed {
        let done = self.try_batch(requests).unwrap_or_else(|failure| self.failed(failure));
        if !self.connection.is_autocommit()
            && let Err(failure) = self.run(self.undo)
        {
            return self.failed(failure);
        }
        done
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

/// Binds the values of the fields that `request` writes; the parameter of field `f` is `?f+2`.
fn bind(
    statement: &mut CachedStatement<'_>,
    content: &dyn Content,
    request: &Request,
    named: &[usize],
    value: &mut Vec<u8>,
) -> Result<(), Error> {
    for (field, &column) in named.iter().enumerate() {
        value.clear();
        content.value(request, field, value);
        statement.raw_bind_parameter(column + 2, &value[..])?;
    }
    Ok(())
}

/// The bytes of a column; `None` for NULL. Numbers, which dyno never writes, have no bytes.
fn bytes<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r [u8]>, Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes),
        ValueRef::Integer(_) | ValueRef::Real(_) => Some(&[]),
    })
}

fn found(changed: usize) -> Executed {
    Executed::new(if changed == 0 { Outcome::NotFound } else { Outcome::Ok }, 0)
}

/// The class of an error of SQLite.
pub(super) fn outcome(error: &Error) -> Outcome {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => match error.sqlite_extended_error_code() {
            // A refusal by a trigger or a check is no duplicate.
            Some(
                ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | ffi::SQLITE_CONSTRAINT_UNIQUE
                | ffi::SQLITE_CONSTRAINT_ROWID,
            ) => Outcome::Duplicate,
            _ => Outcome::ServerError,
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Outcome::Busy,
        Some(ErrorCode::OutOfMemory) => Outcome::OutOfMemory,
        Some(ErrorCode::ReadOnly) => Outcome::ReadOnly,
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => Outcome::Forbidden,
        Some(ErrorCode::TooBig) => Outcome::BadRequest,
        _ => Outcome::ServerError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_class() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, Outcome::Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, Outcome::Busy),
            (ffi::SQLITE_LOCKED, Outcome::Busy),
            (ffi::SQLITE_NOMEM, Outcome::OutOfMemory),
            (ffi::SQLITE_FULL, Outcome::ServerError),
            (ffi::SQLITE_IOERR, Outcome::ServerError),
            (ffi::SQLITE_READONLY, Outcome::ReadOnly),
            (ffi::SQLITE_TOOBIG, Outcome::BadRequest),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, Outcome::Duplicate),
            (ffi::SQLITE_CONSTRAINT_TRIGGER, Outcome::ServerError),
        ] {
            assert_eq!(outcome(&Error::SqliteFailure(ffi::Error::new(code), None)), expected, "{code}");
        }
    }
}
