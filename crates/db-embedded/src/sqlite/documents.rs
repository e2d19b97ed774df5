//! Operations on documents as SQL: a collection is a table, a field is a column, `_id` the primary key.
//!
//! Every shape is a prepared statement for each collection, executed in autocommit; an insert of several documents and an
//! update of several statements are one transaction. Tables have no nested fields: shapes that need them are refused
//! when the store is opened. A table is made when its first document is inserted, with the columns of that document
//! and the indexes that the content asks for.

use super::session::outcome;
use dyno_types::bson::{self, Element, kind};
use dyno_types::document::{
    Action, Change, Compare, DocumentFilter, FieldTest, Modify, Operand, Projection, SortOrder,
};
use dyno_types::{Content, Executed, Outcome, RefusalCode, Refused, Request, StoreSession, Verb};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Error, ErrorCode};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// A user's connection for documents.
pub(super) struct SqliteDocuments {
    connection: Connection,
    content: Arc<dyn Content>,
    /// Statements by shape and collection.
    sql: HashMap<(u16, u32), String>,
    collection: Vec<u8>,
    bytes: Vec<u8>,
    error: String,
}

/// Refuses shapes that are used and that tables cannot express.
pub(super) fn check(content: &dyn Content) -> Result<(), Refused> {
    for shape in content.shapes_used() {
        // The number of a collection makes no difference to what can be expressed.
        if let Err(why) = statement(&shape.action, "t") {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "workload",
                format!("sqlite: {:?} cannot be done: {why}", shape.name),
            ));
        }
    }
    Ok(())
}

/// A table cannot express a shape or hold a value.
#[derive(Debug, thiserror::Error)]
enum ShapeError {
    #[error("a table has no field called {0:?}")]
    FieldName(String),
    #[error("the limit of a request is no parameter here")]
    RequestLimit,
    #[error("only changes of single fields, without upsert")]
    Change,
    #[error("a change of one of several documents")]
    OneOfSeveral,
    #[error("arrays and missing fields")]
    PushOrUnset,
    #[error("aggregations other than a sum")]
    Aggregation,
    #[error("find-and-modify")]
    FindAndModify,
    #[error("commands of MongoDB")]
    Command,
    #[error("a column holds no documents, arrays and the like")]
    Value,
    /// The content has rendered nothing for an operand.
    #[error("no operand")]
    NoOperand,
}

fn quoted(name: &str) -> Result<String, ShapeError> {
    match name.contains(['.', '"']) {
        true => Err(ShapeError::FieldName(name.to_owned())),
        false => Ok(format!("\"{name}\"")),
    }
}

/// The statement of a shape; parameters stand in the order of [`operands`]. Inserts depend on their documents.
fn statement(action: &Action, table: &str) -> Result<Option<String>, ShapeError> {
    let sorted = |by: &[(String, SortOrder)]| -> Result<String, ShapeError> {
        let mut out = String::new();
        for (number, (field, order)) in by.iter().enumerate() {
            let word = if number == 0 { " ORDER BY " } else { ", " };
            let direction = if *order == SortOrder::Ascending { "" } else { " DESC" };
            let _ = write!(out, "{word}{}{direction}", quoted(field)?);
        }
        Ok(out)
    };
    Ok(Some(match action {
        Action::Insert { .. } | Action::Commit | Action::Abort => return Ok(None),
        Action::Find { filter, fields, sort, limit, .. } => {
            let limit = match limit {
                Some(0) => String::new(),
                Some(n) => format!(" LIMIT {n}"),
                None => return Err(ShapeError::RequestLimit),
            };
            format!("SELECT {} FROM {table}{}{}{limit}", columns(fields)?, condition(filter)?, sorted(sort)?)
        }
        Action::Sum { filter, field, .. } => {
            format!("SELECT sum({}) FROM {table}{}", quoted(field)?, condition(filter)?)
        }
        Action::Distinct { filter, field } => {
            format!("SELECT DISTINCT {} FROM {table}{}", quoted(field)?, condition(filter)?)
        }
        Action::Update { filter, change: Change::Fields(changes), many, upsert: false, .. } => {
            whole(filter, *many)?;
            format!("UPDATE {table} SET {}{}", changed(changes)?, condition(filter)?)
        }
        Action::Delete { filter, many, .. } => {
            whole(filter, *many)?;
            format!("DELETE FROM {table}{}", condition(filter)?)
        }
        Action::Update { .. } => return Err(ShapeError::Change),
        Action::Aggregate { .. } => return Err(ShapeError::Aggregation),
        Action::FindAndModify { .. } => return Err(ShapeError::FindAndModify),
        Action::Command { .. } => return Err(ShapeError::Command),
    }))
}

/// A statement for one document must name it.
fn whole(filter: &DocumentFilter, many: bool) -> Result<(), ShapeError> {
    let named = filter.0.iter().any(|c| c.field == "_id" && matches!(c.test, FieldTest::Equal(_)));
    if many || named { Ok(()) } else { Err(ShapeError::OneOfSeveral) }
}

fn columns(fields: &Projection) -> Result<String, ShapeError> {
    let shown: Result<Vec<String>, ShapeError> =
        fields.0.iter().filter(|(_, shown)| *shown).map(|(field, _)| quoted(field)).collect();
    let shown = shown?;
    Ok(if shown.is_empty() { "*".into() } else { shown.join(", ") })
}

fn condition(filter: &DocumentFilter) -> Result<String, ShapeError> {
    let mut out = String::new();
    for condition in &filter.0 {
        let field = quoted(&condition.field)?;
        let tests: Vec<String> = match &condition.test {
            FieldTest::Equal(_) => vec![format!("{field} = ?")],
            FieldTest::Range(all) => all
                .iter()
                .map(|(compare, _)| {
                    let sign = match compare {
                        Compare::Above => ">",
                        Compare::AtLeast => ">=",
                        Compare::Below => "<",
                        Compare::AtMost => "<=",
                    };
                    format!("{field} {sign} ?")
                })
                .collect(),
            FieldTest::In(all) => vec![format!("{field} IN ({})", vec!["?"; all.len()].join(", "))],
        };
        for test in tests {
            let word = if out.is_empty() { " WHERE " } else { " AND " };
            let _ = write!(out, "{word}{test}");
        }
    }
    Ok(out)
}

fn changed(changes: &[(Modify, String, Operand)]) -> Result<String, ShapeError> {
    let one = |(modify, field, _): &(Modify, String, Operand)| {
        let field = quoted(field)?;
        match modify {
            Modify::Set => Ok(format!("{field} = ?")),
            Modify::Increment => Ok(format!("{field} = {field} + ?")),
            Modify::Push | Modify::Unset => Err(ShapeError::PushOrUnset),
        }
    };
    changes.iter().map(one).collect::<Result<Vec<_>, _>>().map(|all| all.join(", "))
}

/// The operands in the order of a statement's parameters.
fn operands(action: &Action) -> Vec<Operand> {
    // In SQL the changes stand before the condition.
    match action {
        Action::Update { change: Change::Fields(changes), .. } => {
            let mut all = action.rendered_operands();
            all.rotate_right(changes.len());
            all
        }
        _ => action.rendered_operands(),
    }
}

/// A BSON value as SQLite has it.
fn value<'a>(element: &Element<'a>) -> Result<ToSqlOutput<'a>, ShapeError> {
    Ok(match element.kind {
        kind::STRING => {
            ToSqlOutput::Borrowed(ValueRef::Text(element.as_str().unwrap_or_default().as_bytes()))
        }
        kind::BINARY => ToSqlOutput::Borrowed(ValueRef::Blob(element.as_bytes().unwrap_or_default())),
        kind::DOUBLE => ToSqlOutput::Owned(Value::Real(element.as_f64().unwrap_or_default())),
        kind::NULL => ToSqlOutput::Owned(Value::Null),
        _ => match element.as_i64() {
            Some(number) => ToSqlOutput::Owned(Value::Integer(number)),
            None => return Err(ShapeError::Value),
        },
    })
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
enum DocumentFailure {
    #[error(transparent)]
    Sqlite(#[from] Error),
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl DocumentFailure {
    fn outcome(&self) -> Outcome {
        match self {
            DocumentFailure::Sqlite(error) => outcome(error),
            DocumentFailure::Shape(_) => Outcome::BadRequest,
        }
    }
}

/// Returns whether SQLite cannot make sense of a statement: a syntax error, or names that are not there.
fn is_of_statement(error: &Error) -> bool {
    matches!(error, Error::SqlInputError { .. }) || error.sqlite_error_code() == Some(ErrorCode::Unknown)
}

impl SqliteDocuments {
    pub(super) fn new(connection: Connection, content: Arc<dyn Content>) -> Self {
        let (sql, collection, bytes, error) = Default::default();
        SqliteDocuments { connection, content, sql, collection, bytes, error }
    }

    fn table(&mut self, request: &Request) -> String {
        self.collection.clear();
        self.content.collection(request, &mut self.collection);
        table_of(&String::from_utf8_lossy(&self.collection))
    }

    fn try_execute(&mut self, request: &Request) -> Result<Executed, DocumentFailure> {
        let content = self.content.clone();
        let action = &content.shapes()[usize::from(request.shape)].action;
        let open = !self.connection.is_autocommit();
        if action.ends_transaction() {
            let end = if *action == Action::Commit { "COMMIT" } else { "ROLLBACK" };
            // There is nothing to undo where the transaction could not begin.
            if open {
                self.connection.execute_batch(end)?;
            }
            return Ok(Executed::new(Outcome::Ok, 0));
        }
        if content.in_transaction(request) && request.step == 0 {
            if open {
                self.connection.execute_batch("ROLLBACK")?;
            }
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        if let Action::Insert { .. } = action {
            return self.insert(request);
        }
        let at = (request.shape, request.collection);
        if !self.sql.contains_key(&at) {
            let table = self.table(request);
            let sql = statement(action, &table)?.unwrap_or_default();
            self.sql.insert(at, sql);
        }
        let (writes, count) = (action.changes_data(), content.documents(request));
        let together = writes && count > 1 && self.connection.is_autocommit();
        if together {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        let done = self.statements(action, request, if writes { count } else { 1 });
        if together {
            let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
            self.connection.execute_batch(end)?;
        }
        done
    }

    fn statements(
        &mut self,
        action: &Action,
        request: &Request,
        count: u32,
    ) -> Result<Executed, DocumentFailure> {
        let mut prepared = self.connection.prepare_cached(&self.sql[&(request.shape, request.collection)])?;
        let operands = operands(action);
        let mut records = 0;
        for number in 0..count {
            for (place, &operand) in operands.iter().enumerate() {
                self.bytes.clear();
                let at = bson::open(&mut self.bytes);
                self.content.operand(request, number, operand, "v", &mut self.bytes);
                bson::close(&mut self.bytes, at);
                let element = bson::find_element(&self.bytes, "v").ok_or(ShapeError::NoOperand)?;
                prepared.raw_bind_parameter(place + 1, value(&element)?)?;
            }
            records +=
                if action.changes_data() { prepared.raw_execute()? as u32 } else { rows(&mut prepared)? };
        }
        let outcome = if action.means_one() && records == 0 { Outcome::NotFound } else { Outcome::Ok };
        Ok(Executed::new(outcome, records))
    }

    fn insert(&mut self, request: &Request) -> Result<Executed, DocumentFailure> {
        let count = self.content.documents(request);
        let together = count > 1 && self.connection.is_autocommit();
        if together {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        let mut done = self.insert_all(request, count);
        // SQLite's error for a table that is not there has no code of its own; where it means something else, making the
        // table changes nothing and the insert fails again.
        if matches!(&done, Err(DocumentFailure::Sqlite(error)) if is_of_statement(error)) {
            self.create(request)?;
            done = self.insert_all(request, count);
        }
        if together {
            self.connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        }
        done.map(|()| Executed::new(Outcome::Ok, count))
    }

    fn insert_all(&mut self, request: &Request, count: u32) -> Result<(), DocumentFailure> {
        for number in 0..count {
            self.bytes.clear();
            self.content.document(request, number, &mut self.bytes);
            let at = (request.shape, request.collection);
            if !self.sql.contains_key(&at) {
                let sql = self.insertion(request)?;
                self.sql.insert(at, sql);
            }
            let mut prepared = self.connection.prepare_cached(&self.sql[&at])?;
            for (place, element) in elements(&self.bytes).enumerate() {
                prepared.raw_bind_parameter(place + 1, value(&element)?)?;
            }
            prepared.raw_execute()?;
        }
        Ok(())
    }

    /// The insert of the document just rendered.
    fn insertion(&mut self, request: &Request) -> Result<String, ShapeError> {
        let table = self.table(request);
        let names: Result<Vec<String>, ShapeError> =
            elements(&self.bytes).map(|e| quoted(name(&e))).collect();
        let names = names?;
        let places = vec!["?"; names.len()].join(", ");
        Ok(format!("INSERT INTO {table}({}) VALUES({places})", names.join(", ")))
    }

    /// Makes the table of the document just rendered, and its indexes.
    fn create(&mut self, request: &Request) -> Result<(), DocumentFailure> {
        let table = self.table(request);
        let mut sql = format!("CREATE TABLE IF NOT EXISTS {table}(");
        for (number, element) in elements(&self.bytes).enumerate() {
            let word = match element.kind {
                kind::STRING => "TEXT",
                kind::BINARY => "BLOB",
                kind::DOUBLE => "REAL",
                _ => "INTEGER",
            };
            let key = if element.name == b"_id" { " PRIMARY KEY" } else { "" };
            let comma = if number == 0 { "" } else { ", " };
            let column = quoted(name(&element))?;
            let _ = write!(sql, "{comma}{column} {word}{key}");
        }
        sql.push_str(");");
        for (index, field) in self.content.indexes() {
            // Indexes of other collections are on fields that these documents do not have.
            if bson::find_element(&self.bytes, &field).is_none() {
                continue;
            }
            let column = quoted(&field)?;
            let index = format!("\"{}_{index}\"", table.trim_matches('"'));
            let _ = write!(sql, "CREATE INDEX IF NOT EXISTS {index} ON {table}({column});");
        }
        Ok(self.connection.execute_batch(&sql)?)
    }
}

/// The table of a collection, quoted.
pub(super) fn table_of(collection: &str) -> String {
    format!("\"{}\"", collection.replace('"', ""))
}

/// Number of rows in a collection's table.
pub(super) fn count(connection: &Connection, collection: &str) -> Result<u64, Error> {
    if !connection.table_exists(None, collection)? {
        return Ok(0);
    }
    let count = format!("SELECT count(*) FROM {}", table_of(collection));
    connection.query_row(&count, [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
}

/// Rows of a collection's table, if there is one, as documents; `which` follows the name of the table.
pub(super) fn rows_of(connection: &Connection, collection: &str, which: &str) -> Result<Vec<Vec<u8>>, Error> {
    if !connection.table_exists(None, collection)? {
        return Ok(Vec::new());
    }
    let mut prepared = connection.prepare(&format!("SELECT * FROM {} {which}", table_of(collection)))?;
    let names: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let (mut rows, mut found) = (prepared.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        let mut document = Vec::new();
        let at = bson::open(&mut document);
        for (column, name) in names.iter().enumerate() {
            match row.get_ref(column)? {
                ValueRef::Null => {}
                ValueRef::Integer(number) => bson::put_int64(&mut document, name, number),
                ValueRef::Real(number) => bson::put_double(&mut document, name, number),
                ValueRef::Text(text) => bson::put_string(&mut document, name, &String::from_utf8_lossy(text)),
                ValueRef::Blob(bytes) => bson::put_binary(&mut document, name, bytes),
            }
        }
        bson::close(&mut document, at);
        found.push(document);
    }
    Ok(found)
}

fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    bson::read_elements(document).into_iter().flatten().flatten()
}

fn name<'a>(element: &Element<'a>) -> &'a str {
    std::str::from_utf8(element.name).unwrap_or_default()
}

/// Reads all rows of a prepared query, every column of them.
fn rows(prepared: &mut CachedStatement<'_>) -> Result<u32, Error> {
    let columns = prepared.column_count();
    let (mut rows, mut found) = (prepared.raw_query(), 0);
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        found += 1;
    }
    Ok(found)
}

impl StoreSession for SqliteDocuments {
    fn execute(&mut self, request: &Request) -> Executed {
        if request.verb != Verb::Document {
            return Executed::new(Outcome::NotImplemented, 0);
        }
        self.try_execute(request).unwrap_or_else(|failure| {
            self.error = failure.to_string();
            Executed::new(failure.outcome(), 0)
        })
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
