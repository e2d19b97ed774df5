//! LMDB's C interface as an engine. Source of the declarations: `lmdb.h` of 0.9.24.
#![expect(unsafe_code, reason = "LMDB is a C library")]

use crate::options::GivenOptions;
use crate::ordered::{self, Engine, Handle, OrderedFailure, Patience, Reader, RequestError, Visit, Writer};
use crate::uri::StoreUri;
use dyno_types::document::SortOrder;
use dyno_types::{Content, Refused, Store};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

#[repr(C)]
struct Val {
    size: usize,
    data: *const c_void,
}

#[repr(C)]
#[derive(Default)]
struct LmdbStat {
    page_bytes: c_uint,
    depth: c_uint,
    branch_pages: usize,
    leaf_pages: usize,
    overflow_pages: usize,
    entries: usize,
}

#[repr(C)]
struct Info {
    address: *mut c_void,
    map_bytes: usize,
    last_page: usize,
    last_transaction: usize,
    most_readers: c_uint,
    readers: c_uint,
}

#[link(name = "lmdb")]
unsafe extern "C" {
    fn mdb_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
    fn mdb_strerror(error: c_int) -> *const c_char;
    fn mdb_env_create(env: *mut *mut c_void) -> c_int;
    fn mdb_env_open(env: *mut c_void, path: *const c_char, flags: c_uint, mode: c_uint) -> c_int;
    fn mdb_env_close(env: *mut c_void);
    fn mdb_env_stat(env: *mut c_void, stat: *mut LmdbStat) -> c_int;
    fn mdb_env_info(env: *mut c_void, info: *mut Info) -> c_int;
    fn mdb_env_set_mapsize(env: *mut c_void, bytes: usize) -> c_int;
    fn mdb_env_set_maxreaders(env: *mut c_void, readers: c_uint) -> c_int;
    fn mdb_env_set_maxdbs(env: *mut c_void, tables: c_uint) -> c_int;
    fn mdb_txn_begin(env: *mut c_void, parent: *mut c_void, flags: c_uint, txn: *mut *mut c_void) -> c_int;
    fn mdb_txn_commit(txn: *mut c_void) -> c_int;
    fn mdb_txn_abort(txn: *mut c_void);
    fn mdb_txn_reset(txn: *mut c_void);
    fn mdb_txn_renew(txn: *mut c_void) -> c_int;
    fn mdb_dbi_open(txn: *mut c_void, name: *const c_char, flags: c_uint, table: *mut c_uint) -> c_int;
    fn mdb_get(txn: *mut c_void, table: c_uint, key: *mut Val, value: *mut Val) -> c_int;
    fn mdb_put(txn: *mut c_void, table: c_uint, key: *mut Val, value: *mut Val, flags: c_uint) -> c_int;
    fn mdb_del(txn: *mut c_void, table: c_uint, key: *mut Val, value: *mut Val) -> c_int;
    fn mdb_cursor_open(txn: *mut c_void, table: c_uint, cursor: *mut *mut c_void) -> c_int;
    fn mdb_cursor_close(cursor: *mut c_void);
    fn mdb_cursor_get(cursor: *mut c_void, key: *mut Val, value: *mut Val, op: c_int) -> c_int;
}

pub(super) const NOSUBDIR: c_uint = 0x4000;
pub(super) const NOSYNC: c_uint = 0x1_0000;
const RDONLY: c_uint = 0x2_0000;
pub(super) const NOMETASYNC: c_uint = 0x4_0000;
pub(super) const WRITEMAP: c_uint = 0x8_0000;
pub(super) const NOTLS: c_uint = 0x20_0000;
pub(super) const NORDAHEAD: c_uint = 0x80_0000;
const CREATE: c_uint = 0x4_0000;

const FIRST: c_int = 0;
const LAST: c_int = 6;
const NEXT: c_int = 8;
const PREV: c_int = 12;
const SET_RANGE: c_int = 17;

const NOTFOUND: c_int = -30_798;
const BAD_VALSIZE: c_int = -30_781;

/// Users that may read at the same time, and tables.
const READERS: c_uint = 4096;
const TABLES: c_uint = 1024;

/// Files open in this process: LMDB must not open one twice.
static OPEN: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

impl Val {
    fn of(bytes: &[u8]) -> Val {
        Val { size: bytes.len(), data: bytes.as_ptr().cast() }
    }

    fn none() -> Val {
        Val { size: 0, data: null() }
    }

    /// # Safety
    /// LMDB has filled it in, and the transaction that did so is neither over nor changed meanwhile.
    unsafe fn bytes<'t>(&self) -> &'t [u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: as the caller promises, the pointer leads to `size` bytes of the map.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

/// LMDB's own error.
#[derive(Debug, thiserror::Error)]
enum LmdbError {
    /// A key, or a value that is a key somewhere, is empty or too long.
    #[error("{} (keys have 1 to 511 bytes)", describe_code(BAD_VALSIZE))]
    KeyLength,
    /// Any other failed call.
    #[error("{}", describe_code(*.0))]
    Code(c_int),
}

/// An environment was not opened.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    /// LMDB allows no second environment on one file in a process.
    #[error("it is open in this process already")]
    OpenHere,
    /// The path has a zero byte.
    #[error(transparent)]
    Path(#[from] NulError),
    /// LMDB refuses.
    #[error(transparent)]
    Engine(#[from] OrderedFailure),
}

fn describe_code(code: c_int) -> String {
    // SAFETY: the library hands out a text that lives for ever, or one of strerror, which is read at once.
    unsafe { CStr::from_ptr(mdb_strerror(code)) }.to_string_lossy().into_owned()
}

fn ok(code: c_int) -> Result<(), OrderedFailure> {
    match code {
        0 => Ok(()),
        BAD_VALSIZE => Err(RequestError::Limit(LmdbError::KeyLength.into()).into()),
        _ => Err(OrderedFailure::Engine(LmdbError::Code(code).into())),
    }
}

/// An environment, open.
struct Env {
    env: *mut c_void,
    path: PathBuf,
    sync: c_uint,
    tables: Mutex<HashMap<String, c_uint>>,
}

// SAFETY: an environment may be used by all threads at the same time (lmdb.h), and closing it is left to the last owner.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: no transaction is open: they all hold the environment.
        unsafe { mdb_env_close(self.env) };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.get_or_insert_default().remove(&self.path);
    }
}

/// Reads the options: syncing, size of the map, flags, whether an insert replaces.
fn settings(given: &GivenOptions<'_>) -> Result<(c_uint, u64, c_uint, bool), Refused> {
    let sync = given.choice("sync", &[("full", 0), ("nometa", NOMETASYNC), ("none", NOSYNC)])?;
    let map = given.bytes("map", 1 << 46)?.unwrap_or(16 << 30);
    let write_map = if given.switch("writemap", false)? { WRITEMAP } else { 0 };
    let ahead = if given.switch("readahead", true)? { 0 } else { NORDAHEAD };
    Ok((sync, map, NOSUBDIR | NOTLS | sync | write_map | ahead, given.replaces()?))
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `lmdb:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let (sync, map, flags, replaces) = settings(given)?;
    let path = uri.required_path()?;
    ordered::store("lmdb", content, replaces, Patience::none(), || {
        uri.create_file(&path)?;
        let env = Env::open(path.clone(), map, sync, flags);
        env.map(|env| Lmdb(Arc::new(env))).map_err(|why| uri.cannot_open(&path, &why))
    })
}

impl Env {
    fn open(path: PathBuf, map: u64, sync: c_uint, flags: c_uint) -> Result<Env, OpenError> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.get_or_insert_default().insert(path.clone()) {
            return Err(OpenError::OpenHere);
        }
        drop(open);
        let mut env = null_mut();
        // SAFETY: `env` is written by the library before it is read.
        let made = unsafe { mdb_env_create(&raw mut env) };
        // From here on dropping it closes it.
        let env = Env { env, path, sync, tables: Mutex::default() };
        let steps = || {
            ok(made)?;
            // SAFETY: the environment is made and not open yet; `name` ends with a zero byte.
            unsafe {
                ok(mdb_env_set_mapsize(env.env, usize::try_from(map).unwrap_or(usize::MAX)))?;
                ok(mdb_env_set_maxreaders(env.env, READERS))?;
                ok(mdb_env_set_maxdbs(env.env, TABLES))?;
                ok(mdb_env_open(env.env, name.as_ptr(), flags, 0o644))
            }
        };
        steps()?;
        Ok(env)
    }

    fn begin(&self, flags: c_uint) -> Result<*mut c_void, OrderedFailure> {
        let mut txn = null_mut();
        // SAFETY: the environment is open, and `txn` is written by the library before it is read.
        ok(unsafe { mdb_txn_begin(self.env, null_mut(), flags, &raw mut txn) })?;
        Ok(txn)
    }

    fn table(&self, name: &str) -> Result<c_uint, OrderedFailure> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tables.get(name) {
            return Ok(*known);
        }
        let text = CString::new(name).map_err(RequestError::from)?;
        let mut txn = Txn { txn: self.begin(0)? };
        let mut table = 0;
        // SAFETY: the transaction is open, `text` ends with a zero byte, `table` is written by the library.
        ok(unsafe { mdb_dbi_open(txn.txn, text.as_ptr(), CREATE, &raw mut table) })?;
        txn.commit()?;
        tables.insert(name.to_owned(), table);
        Ok(table)
    }
}

/// A write transaction.
struct Txn {
    txn: *mut c_void,
}

impl Txn {
    fn commit(&mut self) -> Result<(), OrderedFailure> {
        let txn = std::mem::replace(&mut self.txn, null_mut());
        // SAFETY: the transaction is open; it is gone afterwards, whatever the result, and forgotten here.
        ok(unsafe { mdb_txn_commit(txn) })
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: the transaction is open.
            unsafe { mdb_txn_abort(self.txn) };
        }
    }
}

/// The engine.
struct Lmdb(Arc<Env>);

/// One user's way to it.
struct LmdbUser {
    env: Arc<Env>,
    tables: Vec<(String, c_uint)>,
    /// The transaction that this user reads with, at rest; null before the first.
    resting: *mut c_void,
}

// SAFETY: with NOTLS a transaction at rest belongs to no thread.
unsafe impl Send for LmdbUser {}

impl Drop for LmdbUser {
    fn drop(&mut self) {
        if !self.resting.is_null() {
            // SAFETY: it is at rest, and only this reader knows it.
            unsafe { mdb_txn_abort(self.resting) };
        }
    }
}

impl Engine for Lmdb {
    type Handle = LmdbUser;

    fn handle(&self) -> Result<LmdbUser, Refused> {
        Ok(LmdbUser { env: self.0.clone(), tables: Vec::new(), resting: null_mut() })
    }

    fn name(&self) -> String {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three numbers to be written.
        unsafe { mdb_version(&raw mut major, &raw mut minor, &raw mut patch) };
        format!("LMDB {major}.{minor}.{patch}")
    }

    fn durability(&self) -> String {
        match self.0.sync {
            0 => "sync=full: every commit is synced, data and meta page",
            NOMETASYNC => "sync=nometa: data is synced at every commit, the meta page is not: a crash of the system may undo \
                           the last transaction",
            _ => "sync=none: nothing is synced: a crash of the system may corrupt the file",
        }
        .to_owned()
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut stat = LmdbStat::default();
        let mut info = Info {
            address: null_mut(),
            map_bytes: 0,
            last_page: 0,
            last_transaction: 0,
            most_readers: 0,
            readers: 0,
        };
        // SAFETY: the environment is open; both are written by the library.
        let codes =
            unsafe { (mdb_env_stat(self.0.env, &raw mut stat), mdb_env_info(self.0.env, &raw mut info)) };
        if codes != (0, 0) {
            return Vec::new();
        }
        let page = stat.page_bytes as usize;
        let facts = [
            ("page_bytes", page),
            ("map_bytes", info.map_bytes),
            ("used_bytes", (info.last_page + 1) * page),
            ("transactions", info.last_transaction),
            ("readers", info.readers as usize),
            ("readers_at_most", info.most_readers as usize),
            ("tables", stat.entries),
        ];
        facts.iter().map(|(name, value)| (format!("lmdb.{name}"), value.to_string())).collect()
    }
}

/// A transaction at work.
struct LmdbRead<'h>(&'h LmdbUser);

/// A transaction that writes.
struct LmdbWrite<'h> {
    txn: Txn,
    user: &'h LmdbUser,
}

impl Handle for LmdbUser {
    type Read<'h> = LmdbRead<'h>;
    type Write<'h> = LmdbWrite<'h>;

    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure> {
        if let Some(known) = self.tables.iter().position(|(known, _)| known == name) {
            return Ok(known);
        }
        let table = self.env.table(name)?;
        self.tables.push((name.to_owned(), table));
        Ok(self.tables.len() - 1)
    }

    fn read(&mut self) -> Result<LmdbRead<'_>, OrderedFailure> {
        if self.resting.is_null() {
            self.resting = self.env.begin(RDONLY)?;
        } else {
            // SAFETY: the transaction has been reset and belongs to this reader alone.
            ok(unsafe { mdb_txn_renew(self.resting) })?;
        }
        Ok(LmdbRead(self))
    }

    fn write(&mut self) -> Result<LmdbWrite<'_>, OrderedFailure> {
        Ok(LmdbWrite { txn: Txn { txn: self.env.begin(0)? }, user: self })
    }
}

impl Drop for LmdbRead<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction is open; from now on it is at rest.
        unsafe { mdb_txn_reset(self.0.resting) };
    }
}

fn get<T>(
    txn: *mut c_void,
    table: c_uint,
    key: &[u8],
    look: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, OrderedFailure> {
    let (mut key, mut value) = (Val::of(key), Val::none());
    // SAFETY: transaction and table are open; the key lives until the call returns.
    match unsafe { mdb_get(txn, table, &raw mut key, &raw mut value) } {
        NOTFOUND => Ok(None),
        code => {
            ok(code)?;
            // SAFETY: just filled in; `look` cannot reach the transaction.
            Ok(Some(look(unsafe { value.bytes() })))
        }
    }
}

struct LmdbCursor(*mut c_void);

impl Drop for LmdbCursor {
    fn drop(&mut self) {
        // SAFETY: it is open, and its transaction is not over.
        unsafe { mdb_cursor_close(self.0) };
    }
}

impl LmdbCursor {
    /// Moves; false beyond the last key.
    fn go(&self, op: c_int, key: &mut Val, value: &mut Val) -> Result<bool, OrderedFailure> {
        // SAFETY: cursor and transaction are open; where the key is read, it lives until the call returns.
        match unsafe { mdb_cursor_get(self.0, key, value, op) } {
            NOTFOUND => Ok(false),
            code => ok(code).map(|()| true),
        }
    }
}

fn range(
    txn: *mut c_void,
    table: c_uint,
    (low, high): (&[u8], &[u8]),
    order: SortOrder,
    visit: &mut Visit<'_>,
) -> Result<(), OrderedFailure> {
    let mut cursor = null_mut();
    // SAFETY: transaction and table are open; `cursor` is written by the library.
    ok(unsafe { mdb_cursor_open(txn, table, &raw mut cursor) })?;
    let cursor = LmdbCursor(cursor);
    let up = order == SortOrder::Ascending;
    let (start, next) = if up { (low, NEXT) } else { (high, PREV) };
    let (mut key, mut value) = (Val::of(start), Val::none());
    let edge = if up { FIRST } else { LAST };
    let mut there = match start.is_empty() {
        true => cursor.go(edge, &mut key, &mut value)?,
        false => {
            let above = cursor.go(SET_RANGE, &mut key, &mut value)?;
            match (up, above) {
                (true, _) => above,
                (false, true) => cursor.go(PREV, &mut key, &mut value)?,
                (false, false) => cursor.go(LAST, &mut key, &mut value)?,
            }
        }
    };
    while there {
        // SAFETY: just filled in; `visit` cannot reach the transaction.
        let (name, stored) = unsafe { (key.bytes(), value.bytes()) };
        let inside = if up { high.is_empty() || name < high } else { name >= low };
        if !inside || !visit(name, stored)? {
            break;
        }
        there = cursor.go(next, &mut key, &mut value)?;
    }
    Ok(())
}

impl Reader for LmdbRead<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        get(self.0.resting, self.0.tables[table].1, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        range(self.0.resting, self.0.tables[table].1, (low, high), order, visit)
    }
}

impl Reader for LmdbWrite<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        get(self.txn.txn, self.user.tables[table].1, key, look)
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        range(self.txn.txn, self.user.tables[table].1, (low, high), order, visit)
    }
}

impl Writer for LmdbWrite<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure> {
        let (mut key, mut value) = (Val::of(key), Val::of(value));
        let table = self.user.tables[table].1;
        // SAFETY: transaction and table are open; key and value live until the call returns and are only read.
        ok(unsafe { mdb_put(self.txn.txn, table, &raw mut key, &raw mut value, 0) })
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure> {
        let mut key = Val::of(key);
        // SAFETY: transaction and table are open; the key lives until the call returns and is only read.
        ok(unsafe { mdb_del(self.txn.txn, self.user.tables[table].1, &raw mut key, null_mut()) })
    }

    fn commit(mut self) -> Result<(), OrderedFailure> {
        self.txn.commit()
    }
}
