//! The table's columns and the text of every statement, composed once when the store is opened. Nothing here is
//! executed except the creation of the table ([`Schema::create`]).
//!
//! ```text
//! CREATE TABLE "usertable"("key" BLOB NOT NULL PRIMARY KEY, "field0" BLOB, "field1" BLOB) WITHOUT ROWID
//! ```

use crate::reading::whole_record;
use dyno_types::{Content, RefusalCode, Refused};
use rusqlite::Connection;

/// Columns and statements. `?1` is always the key, save in [`Schema::insert`], where it is the key as well.
pub(super) struct Schema {
    /// Names of the fields, in the order of the columns.
    pub(super) fields: Vec<String>,
    table: String,
    key: String,
    create: String,
    /// Writes a whole record: `?1` the key, `?2 ..` the fields.
    pub(super) insert: String,
    /// Reads all fields of one record.
    pub(super) read: String,
    /// Reads one field of one record, by field.
    pub(super) read_one: Vec<String>,
    /// Writes the fields `?2 ..` of one record; NULL leaves a field as it is.
    pub(super) update: String,
    /// Writes one field of one record, by field: `?2` the value.
    pub(super) update_one: Vec<String>,
    /// Reads all fields of up to `?2` records from `?1` on, in key order.
    pub(super) scan: String,
    /// Reads one field of up to `?2` records from `?1` on, by field.
    pub(super) scan_one: Vec<String>,
    /// Removes one record.
    pub(super) delete: String,
    /// Counts the records.
    pub(super) count: String,
}

/// The table was not created, or the one there does not fit the workload.
#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    /// SQLite's own error.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The table there lacks columns.
    #[error(
        "table {table:?} is there already with columns {has:?}, but the workload also needs {missing:?}; \
         use another file or table, or remove it"
    )]
    MissingColumns {
        /// The table's name.
        table: String,
        /// Columns.
        has: Vec<String>,
        /// The columns it lacks.
        missing: Vec<String>,
    },
    /// The table there has columns that the workload does not write.
    #[error(
        "table {table:?} is there already with columns {has:?}, but records of this workload have {needed:?}; \
         use another file or table, or remove it"
    )]
    OtherColumns {
        /// The table's name.
        table: String,
        /// Columns.
        has: Vec<String>,
        /// The columns of the workload.
        needed: Vec<String>,
    },
}

impl Schema {
    /// The schema of what `content` writes; `replaces` decides what an insert does when its key exists.
    pub(super) fn new(content: &dyn Content, replaces: bool) -> Result<Self, Refused> {
        let sample = whole_record();
        let fields: Vec<String> = (0..content.fields(&sample))
            .map(|field| {
                let mut name = Vec::new();
                content.name(&sample, field, &mut name);
                identifier("field", name)
            })
            .collect::<Result<_, _>>()?;
        if fields.is_empty() {
            return Err(Refused::new(
                RefusalCode::Missing,
                "fieldcount",
                "sqlite: the workload's records have no fields; it needs at least one",
            ));
        }
        for (i, field) in fields.iter().enumerate() {
            if let Some(earlier) = fields[..i].iter().find(|earlier| earlier.eq_ignore_ascii_case(field)) {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "workload",
                    format!(
                        "sqlite: fields {earlier:?} and {field:?} would be the same column (SQLite ignores case)"
                    ),
                ));
            }
        }
        let mut key = "key".to_owned();
        while fields.iter().any(|field| field.eq_ignore_ascii_case(&key)) {
            key.push('_');
        }
        let table = identifier("table", content.table().as_bytes().to_vec())?;
        Ok(Self::compose(table, key, fields, replaces))
    }

    fn compose(table: String, key: String, fields: Vec<String>, replaces: bool) -> Self {
        let (t, k) = (quote(&table), quote(&key));
        let columns: Vec<String> = fields.iter().map(|field| quote(field)).collect();
        let list = |render: &dyn Fn(usize, &String) -> String| {
            let parts: Vec<String> = columns.iter().enumerate().map(|(i, c)| render(i, c)).collect();
            parts.join(",")
        };
        let each = |render: &dyn Fn(&String) -> String| columns.iter().map(render).collect::<Vec<_>>();
        let all = list(&|_, c| c.clone());
        let or = if replaces { " OR REPLACE" } else { "" };
        Schema {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {t}({k} BLOB NOT NULL PRIMARY KEY,{}) WITHOUT ROWID",
                list(&|_, c| format!("{c} BLOB"))
            ),
            insert: format!(
                "INSERT{or} INTO {t}({k},{all}) VALUES(?1,{})",
                list(&|i, _| format!("?{}", i + 2))
            ),
            read: format!("SELECT {all} FROM {t} WHERE {k}=?1"),
            read_one: each(&|c| format!("SELECT {c} FROM {t} WHERE {k}=?1")),
            update: format!(
                "UPDATE {t} SET {} WHERE {k}=?1",
                list(&|i, c| format!("{c}=coalesce(?{},{c})", i + 2))
            ),
            update_one: each(&|c| format!("UPDATE {t} SET {c}=?2 WHERE {k}=?1")),
            scan: format!("SELECT {all} FROM {t} WHERE {k}>=?1 ORDER BY {k} LIMIT ?2"),
            scan_one: each(&|c| format!("SELECT {c} FROM {t} WHERE {k}>=?1 ORDER BY {k} LIMIT ?2")),
            delete: format!("DELETE FROM {t} WHERE {k}=?1"),
            count: format!("SELECT count(*) FROM {t}"),
            fields,
            table,
            key,
        }
    }

    /// Creates the table, or checks that the one there has the columns needed and no others. (Unchecked, SQLite would take
    /// the quoted name of a column that is not there for a string.)
    pub(super) fn create(&self, connection: &Connection) -> Result<(), SchemaError> {
        connection.execute_batch(&self.create)?;
        let probe = format!("SELECT * FROM {} LIMIT 0", quote(&self.table));
        let statement = connection.prepare(&probe)?;
        let there: Vec<&str> = statement.column_names().collect();
        let needed = std::iter::once(&self.key).chain(&self.fields);
        let needed: Vec<&str> = needed.map(String::as_str).collect();
        let missing: Vec<&str> = needed.iter().copied().filter(|column| !there.contains(column)).collect();
        let owned = |columns: &[&str]| columns.iter().map(|&column| column.to_owned()).collect();
        let (table, has) = (self.table.clone(), owned(&there));
        if !missing.is_empty() {
            return Err(SchemaError::MissingColumns { table, has, missing: owned(&missing) });
        }
        if needed.len() < there.len() {
            return Err(SchemaError::OtherColumns { table, has, needed: owned(&needed) });
        }
        Ok(())
    }

    /// The number of the field called `name`; `hint` is where it is looked for first.
    pub(super) fn field(&self, name: &[u8], hint: usize) -> Option<usize> {
        if self.fields.get(hint).is_some_and(|field| field.as_bytes() == name) {
            return Some(hint);
        }
        self.fields.iter().position(|field| field.as_bytes() == name)
    }
}

/// A name that SQL text can hold.
fn identifier(what: &str, name: Vec<u8>) -> Result<String, Refused> {
    match String::from_utf8(name) {
        Ok(name) if !name.contains('\0') => Ok(name),
        Ok(name) => Err(Refused::new(
            RefusalCode::BadValue,
            what,
            format!("sqlite: {what} {name:?} has a NUL byte; SQL cannot name it"),
        )),
        Err(error) => {
            let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Err(Refused::new(
                RefusalCode::BadValue,
                what,
                format!("sqlite: {what} {name:?} is not UTF-8; SQL cannot name it"),
            ))
        }
    }
}

/// An identifier quoted for SQL text.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
