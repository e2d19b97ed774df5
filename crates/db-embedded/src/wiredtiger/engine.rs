//! WiredTiger as an engine: a session for each user, a cursor for each of its tables.
#![expect(unsafe_code, reason = "WiredTiger is a C library")]

use super::sys::{self, Item};
use crate::options::GivenOptions;
use crate::ordered::{self, Engine, Handle, OrderedFailure, Patience, Reader, RequestError, Visit, Writer};
use crate::uri::StoreUri;
use dyno_types::document::SortOrder;
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::{Content, RefusalCode, Refused, Store};
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum LogMode {
    Sync,
    NoSync,
    Off,
}

/// Statistics among the facts, by WiredTiger's own names.
const STATISTICS: [&str; 14] = [
    "block-manager: bytes read",
    "block-manager: bytes written",
    "cache: bytes currently in the cache",
    "cache: maximum bytes configured",
    "cache: modified pages evicted",
    "cache: pages read into cache",
    "cache: pages written from cache",
    "cache: tracked dirty bytes in the cache",
    "log: log bytes written",
    "log: log sync operations",
    "transaction: transaction checkpoints",
    "transaction: transactions committed",
    "transaction: transactions rolled back",
    "transaction: update conflicts",
];

/// WiredTiger's own error: the code of a failed call.
#[derive(Debug, thiserror::Error)]
#[error("{}", describe_code(*.0))]
struct WiredTigerError(c_int);

fn describe_code(code: c_int) -> String {
    // SAFETY: the library hands out a text, which is read at once.
    unsafe { CStr::from_ptr(sys::wiredtiger_strerror(code)) }.to_string_lossy().into_owned()
}

fn ok(code: c_int) -> Result<(), OrderedFailure> {
    match code {
        0 => Ok(()),
        sys::ROLLBACK | sys::PREPARE_CONFLICT => Err(OrderedFailure::Conflict(WiredTigerError(code).into())),
        _ => Err(OrderedFailure::Engine(WiredTigerError(code).into())),
    }
}

fn text(of: &str) -> Result<CString, RequestError> {
    Ok(CString::new(of)?)
}

/// A connection, which is what WiredTiger calls a database that is open.
struct Connection {
    connection: *mut sys::RawConnection,
    compression: &'static str,
    journal: LogMode,
    checkpoint_s: u32,
}

// SAFETY: a connection may be used by all threads at the same time, and closing it is left to the last owner.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: all sessions are closed: they hold the connection. It writes a last checkpoint.
        unsafe { ((*self.connection).close)(self.connection, null()) };
    }
}

/// Settings that options make.
struct WiredTigerSettings {
    cache: u64,
    compression: &'static str,
    journal: LogMode,
    checkpoint_ms: u32,
    patience: Duration,
    replaces: bool,
}

fn settings(given: &GivenOptions<'_>) -> Result<WiredTigerSettings, Refused> {
    let cache = given.bytes("cache", 10 << 40)?.unwrap_or(1 << 30);
    let compression =
        given.choice("compression", &[("snappy", "snappy"), ("zlib", "zlib"), ("none", "none")])?;
    let modes = [("sync", LogMode::Sync), ("nosync", LogMode::NoSync), ("off", LogMode::Off)];
    let journal = given.choice("journal", &modes)?;
    let checkpoint_ms = given.milliseconds("checkpoint", 60_000)?;
    let patience = Duration::from_millis(u64::from(given.milliseconds("busy_timeout", 5_000)?));
    let replaces = given.replaces()?;
    if cache < 1 << 20 || checkpoint_ms % 1000 != 0 || !(1000..=100_000_000).contains(&checkpoint_ms) {
        let why =
            "wiredtiger: the cache has at least 1MiB, and checkpoint= is whole seconds from 1s to 100000s";
        let name = if cache < 1 << 20 { "cache" } else { "checkpoint" };
        return Err(Refused::new(RefusalCode::BadValue, name, why));
    }
    Ok(WiredTigerSettings { cache, compression, journal, checkpoint_ms, patience, replaces })
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `wiredtiger:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let WiredTigerSettings { cache, compression, journal, checkpoint_ms, patience, replaces } =
        settings(given)?;
    super::check_version(version())?;
    let path = uri.required_path()?;
    ordered::store("wiredtiger", content, replaces, Patience::new(patience), || {
        if !path.is_dir() {
            std::fs::create_dir(&path).map_err(|error| uri.cannot_open(&path, &error))?;
        }
        let checkpoint_s = checkpoint_ms / 1000;
        let mut config = format!(
            "create,session_max=4096,cache_size={cache},checkpoint=(wait={checkpoint_s}),statistics=(fast)"
        );
        config.push_str(match journal {
            LogMode::Sync => ",log=(enabled),transaction_sync=(enabled=true,method=fsync)",
            LogMode::NoSync => ",log=(enabled),transaction_sync=(enabled=false)",
            LogMode::Off => ",log=(enabled=false)",
        });
        if compression != "none" {
            let _ = write!(config, ",extensions=[libwiredtiger_{compression}.so]");
        }
        let connection = connect(&path, &config).map_err(|failure| uri.cannot_open(&path, &failure))?;
        Ok(WiredTiger(Arc::new(Connection { connection, compression, journal, checkpoint_s })))
    })
}

/// The version of the library that is linked.
fn version() -> [c_int; 3] {
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: three numbers to be written; its text is not read.
    unsafe { sys::wiredtiger_version(&raw mut major, &raw mut minor, &raw mut patch) };
    [major, minor, patch]
}

fn connect(path: &Path, config: &str) -> Result<*mut sys::RawConnection, OrderedFailure> {
    let home = CString::new(path.as_os_str().as_bytes()).map_err(RequestError::from)?;
    let config = text(config)?;
    let mut connection = null_mut();
    // SAFETY: both texts end with a zero byte and outlive the call; `connection` is written by the library.
    ok(unsafe { sys::wiredtiger_open(home.as_ptr(), null(), config.as_ptr(), &raw mut connection) })?;
    Ok(connection)
}

/// The engine.
struct WiredTiger(Arc<Connection>);

/// A session and its cursors.
struct User {
    session: *mut sys::RawSession,
    tables: Vec<(String, *mut sys::Cursor)>,
    connection: Arc<Connection>,
}

// SAFETY: a session may be used by any thread, by one at a time.
unsafe impl Send for User {}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: the session is open and no transaction is; closing it closes its cursors.
        unsafe { ((*self.session).close)(self.session, null()) };
    }
}

impl User {
    fn open(connection: &Arc<Connection>) -> Result<User, OrderedFailure> {
        let (raw, mut session) = (connection.connection, null_mut());
        // SAFETY: the connection is open; `session` is written by the library.
        ok(unsafe { ((*raw).open_session)(raw, null(), null(), &raw mut session) })?;
        Ok(User { session, tables: Vec::new(), connection: connection.clone() })
    }

    fn cursor(&self, uri: &str) -> Result<*mut sys::Cursor, OrderedFailure> {
        let (uri, mut cursor) = (text(uri)?, null_mut());
        // SAFETY: the session is open, `uri` ends with a zero byte, `cursor` is written by the library.
        ok(unsafe {
            ((*self.session).open_cursor)(self.session, uri.as_ptr(), null_mut(), null(), &raw mut cursor)
        })?;
        Ok(cursor)
    }

    fn begin(&self) -> Result<Transaction<'_>, OrderedFailure> {
        // SAFETY: the session is open and no transaction is.
        ok(unsafe { ((*self.session).begin_transaction)(self.session, c"isolation=snapshot".as_ptr()) })?;
        Ok(Transaction { user: self, open: true })
    }

    fn statistics(&self) -> Result<Vec<(String, String)>, OrderedFailure> {
        let cursor = self.cursor("statistics:")?;
        let mut facts = Vec::new();
        let (mut name, mut shown, mut value): (*const c_char, *const c_char, i64) = (null(), null(), 0);
        // SAFETY: the cursor is open; a value of it is two texts, which live until it moves, and a number.
        unsafe {
            while ((*cursor).next)(cursor) == 0 {
                ok(((*cursor).get_value)(cursor, &raw mut name, &raw mut shown, &raw mut value))?;
                let name = CStr::from_ptr(name).to_string_lossy();
                if STATISTICS.contains(&&*name) {
                    facts.push((format!("wiredtiger.{name}"), value.to_string()));
                }
            }
            ok(((*cursor).close)(cursor))?;
        }
        Ok(facts)
    }
}

impl Engine for WiredTiger {
    type Handle = User;

    fn handle(&self) -> Result<User, Refused> {
        User::open(&self.0)
            .map_err(|failure| Refused::new(RefusalCode::BadFile, "target", format!("wiredtiger: {failure}")))
    }

    fn name(&self) -> String {
        let [major, minor, patch] = version();
        format!("WiredTiger {major}.{minor}.{patch}")
    }

    fn durability(&self) -> String {
        let s = self.0.checkpoint_s;
        match self.0.journal {
            LogMode::Sync => {
                format!("journal=sync: the journal is fsynced at every commit; a checkpoint every {s} s")
            }
            LogMode::NoSync => format!(
                "journal=nosync: the journal is written but not synced at commits: a crash may lose the latest; a \
                 checkpoint every {s} s"
            ),
            LogMode::Off => format!(
                "journal=off: durable at checkpoints only, which are synced, every {s} s; a crash loses what came after"
            ),
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = User::open(&self.0).and_then(|user| user.statistics()).unwrap_or_default();
        facts.push(("wiredtiger.compression".to_owned(), self.0.compression.to_owned()));
        facts
    }
}

/// A name that a table's file can have.
fn table_uri(name: &str) -> String {
    const SET: &AsciiSet = &RESERVED.add(b'~');
    format!("table:{}", percent::percent_encode(name, SET))
}

impl Handle for User {
    type Read<'h> = Transaction<'h>;
    type Write<'h> = Transaction<'h>;

    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure> {
        if let Some(known) = self.tables.iter().position(|(known, _)| known == name) {
            return Ok(known);
        }
        let uri = table_uri(name);
        let config =
            text(&format!("key_format=u,value_format=u,block_compressor={}", self.connection.compression))?;
        let named = text(&uri)?;
        // SAFETY: the session is open and both texts end with a zero byte.
        ok(unsafe { ((*self.session).create)(self.session, named.as_ptr(), config.as_ptr()) })?;
        let cursor = self.cursor(&uri)?;
        self.tables.push((name.to_owned(), cursor));
        Ok(self.tables.len() - 1)
    }

    fn read(&mut self) -> Result<Transaction<'_>, OrderedFailure> {
        self.begin()
    }

    fn write(&mut self) -> Result<Transaction<'_>, OrderedFailure> {
        self.begin()
    }
}

/// A transaction that reads or writes.
struct Transaction<'h> {
    user: &'h User,
    open: bool,
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open {
            // SAFETY: the session is open and so is its transaction.
            unsafe { ((*self.user.session).rollback_transaction)(self.user.session, null()) };
        }
    }
}

/// A cursor of an open session, on a table of bytes.
#[derive(Clone, Copy)]
struct At(*mut sys::Cursor);

impl At {
    /// # Safety
    /// `key` lives until the cursor has been used.
    unsafe fn set_key(self, key: &Item) {
        // SAFETY: the cursor is open, and its keys are items.
        unsafe { ((*self.0).set_key)(self.0, key) };
    }

    fn moved(self, code: c_int) -> Result<bool, OrderedFailure> {
        if code == sys::NOTFOUND { Ok(false) } else { ok(code).map(|()| true) }
    }

    fn next(self, up: bool) -> Result<bool, OrderedFailure> {
        // SAFETY: the cursor is open.
        self.moved(unsafe { if up { ((*self.0).next)(self.0) } else { ((*self.0).prev)(self.0) } })
    }

    fn reset(self) -> Result<(), OrderedFailure> {
        // SAFETY: the cursor is open.
        ok(unsafe { ((*self.0).reset)(self.0) })
    }

    /// # Safety
    /// The cursor stands on a record, and does not move while the bytes are used.
    unsafe fn bytes<'c>(self, key: bool) -> Result<&'c [u8], OrderedFailure> {
        let mut item = Item::of(&[]);
        // SAFETY: keys and values of the cursor are items, which the library fills in; they live until it moves.
        unsafe {
            let get = if key { (*self.0).get_key } else { (*self.0).get_value };
            ok(get(self.0, &raw mut item))?;
            if item.size == 0 {
                return Ok(&[]);
            }
            Ok(std::slice::from_raw_parts(item.data.cast(), item.size))
        }
    }

    /// Goes to the first key from `low` on, or to the last below `high`; false if there is none.
    fn start(self, low: &[u8], high: &[u8], up: bool) -> Result<bool, OrderedFailure> {
        self.reset()?;
        let edge = if up { low } else { high };
        if edge.is_empty() {
            return self.next(up);
        }
        let (item, mut exact) = (Item::of(edge), 0);
        // SAFETY: the item lives until the search is over.
        let code = unsafe {
            self.set_key(&item);
            ((*self.0).search_near)(self.0, &raw mut exact)
        };
        match self.moved(code)? {
            false => Ok(false),
            true if up && exact < 0 || !up && exact >= 0 => self.next(up),
            true => Ok(true),
        }
    }
}

impl Reader for Transaction<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        let (cursor, item) = (At(self.user.tables[table].1), Item::of(key));
        // SAFETY: the item lives until the search is over; `look` cannot reach the cursor.
        unsafe {
            cursor.set_key(&item);
            if !cursor.moved(((*cursor.0).search)(cursor.0))? {
                return Ok(None);
            }
            let found = look(cursor.bytes(false)?);
            cursor.reset()?;
            Ok(Some(found))
        }
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        let (cursor, up) = (At(self.user.tables[table].1), order == SortOrder::Ascending);
        let mut there = cursor.start(low, high, up)?;
        while there {
            // SAFETY: the cursor stands on a record; `visit` cannot reach it.
            let (key, value) = unsafe { (cursor.bytes(true)?, cursor.bytes(false)?) };
            let inside = if up { high.is_empty() || key < high } else { key >= low };
            if !inside || !visit(key, value)? {
                break;
            }
            there = cursor.next(up)?;
        }
        cursor.reset()
    }
}

impl Writer for Transaction<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure> {
        let (cursor, key, value) = (At(self.user.tables[table].1), Item::of(key), Item::of(value));
        // SAFETY: key and value live until the insert is over; the cursor's values are items.
        ok(unsafe {
            cursor.set_key(&key);
            ((*cursor.0).set_value)(cursor.0, &raw const value);
            ((*cursor.0).insert)(cursor.0)
        })
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure> {
        let (cursor, key) = (At(self.user.tables[table].1), Item::of(key));
        // SAFETY: the key lives until the removal is over.
        ok(unsafe {
            cursor.set_key(&key);
            ((*cursor.0).remove)(cursor.0)
        })
    }

    fn commit(mut self) -> Result<(), OrderedFailure> {
        // Whatever the result, the transaction is over.
        self.open = false;
        // SAFETY: the session is open and so is its transaction.
        ok(unsafe { ((*self.user.session).commit_transaction)(self.user.session, null()) })
    }
}
