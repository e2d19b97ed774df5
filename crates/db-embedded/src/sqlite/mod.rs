//! SQLite: one table per workload, one column per field, one connection per session.
//!
//! Here live opening a database file and its options; `schema` holds the statements, `session` executes requests,
//! `documents` those of workloads of documents.
//! Keys and values are BLOBs, so that they compare as bytes. Waiting for SQLite's single writer is SQLite's own busy
//! handler, which sleeps 1 ms to 100 ms between attempts until `busy_timeout` is over.

mod documents;
mod schema;
mod session;

use crate::kind::StoreKind;
use crate::options::{self, DURATION, GivenOptions, OptionSpec, SIZE};
use crate::uri::StoreUri;
use dyno_types::{Content, RefusalCode, Refused, Store, StoreSession};
use rusqlite::{Connection, OpenFlags};
use schema::Schema;
use session::SqliteSession;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Form and options of `sqlite:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "sqlite",
    form: "sqlite:PATH",
    about: "SQLite, bundled; one file, one connection per user",
    options: &[
        OptionSpec {
            name: "journal",
            values: "wal|delete|memory|off",
            default: "wal",
            about: "the journal mode (PRAGMA journal_mode)",
        },
        OptionSpec {
            name: "synchronous",
            values: "full|extra|normal|off",
            default: "full",
            about: "when commits are synced to disk (PRAGMA synchronous)",
        },
        OptionSpec {
            name: "cache",
            values: SIZE,
            default: "SQLite's own, 2 MB",
            about: "page cache of each session, in whole KiB (PRAGMA cache_size)",
        },
        OptionSpec {
            name: "mmap",
            values: SIZE,
            default: "0",
            about: "how much of the file is read through a memory map (PRAGMA mmap_size)",
        },
        OptionSpec {
            name: "busy_timeout",
            values: DURATION,
            default: "5s",
            about: "how long a session waits for a lock before the request ends as busy",
        },
        options::INSERT,
    ],
    built: true,
    library: None,
};

/// Milliseconds a session waits for a lock by default.
const BUSY_TIMEOUT_MS: u32 = 5_000;

/// Prepared statements kept per session beyond two for each field.
const STATEMENTS: usize = 16;

/// The same of workloads of documents: so many shapes times collections.
const DOCUMENT_STATEMENTS: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalMode {
    Wal,
    Delete,
    Memory,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Synchronous {
    Off = 0,
    Normal = 1,
    Full = 2,
    Extra = 3,
}

/// Settings made by the URI.
#[derive(Clone, Debug)]
struct SqliteSettings {
    path: PathBuf,
    journal: JournalMode,
    synchronous: Synchronous,
    cache_kib: Option<u64>,
    mmap_bytes: Option<u64>,
    busy_timeout_ms: u32,
    replaces: bool,
}

impl SqliteSettings {
    fn read(uri: &StoreUri, given: &GivenOptions<'_>) -> Result<Self, Refused> {
        use {JournalMode as J, Synchronous as S};
        if uri.path.as_os_str() == ":memory:" {
            let why = "every session would have a database of its own; use a file on a tmpfs, such as /dev/shm/x.db";
            return Err(Refused::new(
                RefusalCode::Unsupported,
                ":memory:",
                format!("sqlite: :memory: cannot be used: {why}"),
            ));
        }
        let synchronous = [("full", S::Full), ("extra", S::Extra), ("normal", S::Normal), ("off", S::Off)];
        Ok(SqliteSettings {
            journal: given.choice(
                "journal",
                &[("wal", J::Wal), ("delete", J::Delete), ("memory", J::Memory), ("off", J::Off)],
            )?,
            synchronous: given.choice("synchronous", &synchronous)?,
            cache_kib: given.bytes("cache", 1 << 40)?.map(|bytes| bytes.div_ceil(1024)),
            mmap_bytes: given.bytes("mmap", 1 << 50)?,
            busy_timeout_ms: given.milliseconds("busy_timeout", BUSY_TIMEOUT_MS)?,
            replaces: given.replaces()?,
            path: PathBuf::new(),
        })
    }

    /// A connection with everything set.
    fn connect(&self, statements: usize) -> Result<Connection, Refused> {
        let refuse = |error: rusqlite::Error| self.refuse_file(&error);
        // Without SQLite's own mutex: a connection belongs to one session, and a session to one thread.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(refuse)?;
        connection.busy_timeout(Duration::from_millis(self.busy_timeout_ms.into())).map_err(refuse)?;
        connection.set_prepared_statement_cache_capacity(statements);
        let journal = format!("{:?}", self.journal).to_lowercase();
        let actual: String = connection
            .query_row(&format!("PRAGMA journal_mode={journal}"), [], |row| row.get(0))
            .map_err(refuse)?;
        if actual != journal {
            return Err(self.not_granted("journal", &journal, &actual));
        }
        connection.pragma_update(None, "synchronous", self.synchronous as i64).map_err(refuse)?;
        if let Some(kib) = self.cache_kib {
            connection.pragma_update(None, "cache_size", -kib.cast_signed()).map_err(refuse)?;
        }
        if let Some(bytes) = self.mmap_bytes {
            let actual: i64 = connection
                .query_row(&format!("PRAGMA mmap_size={bytes}"), [], |row| row.get(0))
                .map_err(refuse)?;
            if actual.cast_unsigned() != bytes {
                return Err(self.not_granted("mmap", &bytes.to_string(), &actual.to_string()));
            }
        }
        Ok(connection)
    }

    fn refuse_file(&self, why: &dyn std::fmt::Display) -> Refused {
        let path = self.path.display();
        Refused::new(RefusalCode::BadFile, path.to_string(), format!("sqlite: {path}: {why}"))
    }

    fn not_granted(&self, name: &str, asked: &str, actual: &str) -> Refused {
        let path = self.path.display();
        Refused::new(
            RefusalCode::Unsupported,
            name,
            format!("sqlite: {path}: {name}={asked} was asked for, but SQLite made it {name}={actual}"),
        )
    }

    fn durability(&self) -> String {
        use {JournalMode as J, Synchronous as S};
        let journal = match self.journal {
            J::Wal => "WAL",
            J::Delete => "rollback journal (DELETE)",
            J::Memory => "rollback journal in MEMORY",
            J::Off => "no journal (OFF)",
        };
        let synchronous = format!("{:?}", self.synchronous).to_uppercase();
        let synced = match (self.journal, self.synchronous) {
            (_, S::Off) => {
                "nothing is ever fsynced: a power loss may lose commits and corrupt the database".to_owned()
            }
            (J::Wal, S::Normal) => {
                "fsynced at checkpoints only: a power loss may lose the latest commits".to_owned()
            }
            (J::Delete, S::Extra) => "every commit is fsynced, and the removal of its journal too".to_owned(),
            (J::Delete, S::Normal) => {
                "every commit is fsynced, the journal once: a power loss may, rarely, corrupt the database"
                    .to_owned()
            }
            _ => "every commit is fsynced".to_owned(),
        };
        let crash = match self.journal {
            J::Memory | J::Off => "; a crash inside a transaction may corrupt the database",
            J::Wal | J::Delete => "",
        };
        format!("{journal}, synchronous={synchronous}: {synced}{crash}")
    }
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(uri: &StoreUri, given: &GivenOptions<'_>) -> Result<(), Refused> {
    SqliteSettings::read(uri, given).map(drop)
}

/// Opens `sqlite:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let settings = SqliteSettings::read(uri, given)?;
    let settings = SqliteSettings { path: uri.required_path()?, ..settings };
    documents::check(content.as_ref())?;
    // Workloads of documents bring their own tables along.
    let records = content.shapes().is_empty();
    let schema = if records { Some(Schema::new(content.as_ref(), settings.replaces)?) } else { None };
    uri.create_file(&settings.path)?;
    let statements = schema.as_ref().map_or(DOCUMENT_STATEMENTS, |s| 2 * s.fields.len() + STATEMENTS);
    let connection = settings.connect(statements)?;
    if let Some(schema) = &schema {
        let made = schema.create(&connection);
        made.map_err(|why| settings.refuse_file(&why))?;
    }
    Ok(Arc::new(SqliteStore {
        settings,
        statements,
        schema: schema.map(Arc::new),
        content,
        // Kept open so that the end of the last session does not checkpoint and remove the WAL.
        connection: Mutex::new(connection),
    }))
}

struct SqliteStore {
    settings: SqliteSettings,
    statements: usize,
    schema: Option<Arc<Schema>>,
    content: Arc<dyn Content>,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Returns what `ask` finds by the store's own connection.
    fn with<T>(&self, ask: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>) -> Result<T, Refused> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&connection).map_err(|error| self.settings.refuse_file(&error))
    }
}

impl Store for SqliteStore {
    fn engine(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn durability(&self) -> String {
        self.settings.durability()
    }

    fn sample(&self, collection: &str, count: u32) -> Result<Vec<Vec<u8>>, Refused> {
        self.with(|connection| documents::rows_of(connection, collection, &format!("LIMIT {count}")))
    }

    fn documents(&self, collection: &str) -> Result<u64, Refused> {
        self.with(|connection| documents::count(connection, collection))
    }

    fn highest(&self, collection: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refused> {
        // A range of `_id`s is one of documents, which no column holds.
        if between.is_some() {
            return Ok(None);
        }
        let last = "ORDER BY _id DESC LIMIT 1";
        Ok(self.with(|connection| documents::rows_of(connection, collection, last))?.pop())
    }

    fn drop_collection(&self, collection: &str) -> Result<(), Refused> {
        let drop = format!("DROP TABLE IF EXISTS {}", documents::table_of(collection));
        self.with(|connection| connection.execute_batch(&drop))
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        self.session_of(self.content.clone())
    }

    fn session_of(&self, content: Arc<dyn Content>) -> Result<Box<dyn StoreSession>, Refused> {
        let connection = self.settings.connect(self.statements)?;
        let Some(schema) = &self.schema else {
            return Ok(Box::new(documents::SqliteDocuments::new(connection, content)));
        };
        let undo = if self.settings.journal == JournalMode::Off { "COMMIT" } else { "ROLLBACK" };
        Ok(Box::new(SqliteSession::new(connection, schema.clone(), content, undo)))
    }

    fn count(&self) -> Result<Option<u64>, Refused> {
        let Some(schema) = &self.schema else { return Ok(None) };
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let count: i64 = connection
            .query_row(&schema.count, [], |row| row.get(0))
            .map_err(|error| self.settings.refuse_file(&error))?;
        Ok(Some(count.cast_unsigned()))
    }
}
