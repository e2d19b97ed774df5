//! RocksDB as an engine.
#![expect(unsafe_code, reason = "RocksDB is reached through its C interface")]

use super::sys::*;
use crate::options::GivenOptions;
use crate::ordered::{self, Engine, Handle, OrderedFailure, Patience, Reader, RequestError, Visit, Writer};
use crate::uri::StoreUri;
use dyno_types::document::SortOrder;
use dyno_types::{Content, Refused, Store};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wal {
    Sync,
    NoSync,
    Off,
}

/// Numbers of the whole database that are told, by RocksDB's names.
const TOLD: [&CStr; 5] = [
    c"rocksdb.block-cache-capacity",
    c"rocksdb.block-cache-usage",
    c"rocksdb.num-running-compactions",
    c"rocksdb.num-running-flushes",
    c"rocksdb.num-snapshots",
];

/// A database, open.
struct Database {
    db: *mut Db,
    options: *mut Options,
    write: *mut WriteOptions,
    transaction: *mut TxnOptions,
    families: Mutex<HashMap<String, ColumnFamily>>,
    wal: Wal,
}

/// A column family; it lives as long as the database.
#[derive(Clone, Copy)]
struct ColumnFamily(*mut Family);

// SAFETY: RocksDB's objects may be used by all threads at the same time, and the options are only read.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}
// SAFETY: as above.
unsafe impl Send for ColumnFamily {}

impl Drop for Database {
    fn drop(&mut self) {
        let families = std::mem::take(self.families.get_mut().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: no thread uses the database: all users hold it. Families go before it, options after it.
        unsafe {
            families.values().for_each(|table| rocksdb_column_family_handle_destroy(table.0));
            if !self.db.is_null() {
                rocksdb_transactiondb_close(self.db);
            }
            rocksdb_transaction_options_destroy(self.transaction);
            rocksdb_writeoptions_destroy(self.write);
            rocksdb_options_destroy(self.options);
        }
    }
}

/// The settings of a database.
struct RocksSettings {
    cache: usize,
    compression: c_int,
    memtable: usize,
    /// Of all tables together; 0: not bounded.
    memtables: usize,
    wal: Wal,
    wait_ms: u32,
}

/// Reads the options, and whether an insert replaces.
fn settings(given: &GivenOptions<'_>) -> Result<(RocksSettings, bool), Refused> {
    let size = |name, default: u64| -> Result<usize, Refused> {
        let bytes = given.bytes(name, 1 << 40)?.unwrap_or(default);
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    };
    let settings = RocksSettings {
        cache: size("cache", 1 << 30)?,
        compression: given.choice("compression", &[("snappy", 1), ("lz4", 4), ("zstd", 7), ("none", 0)])?,
        memtable: size("memtable", 64 << 20)?,
        memtables: size("memtables", 0)?,
        wal: given.choice("wal", &[("sync", Wal::Sync), ("nosync", Wal::NoSync), ("off", Wal::Off)])?,
        wait_ms: given.milliseconds("busy_timeout", 5_000)?,
    };
    Ok((settings, given.replaces()?))
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Opens `rocksdb:PATH`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
) -> Result<Arc<dyn Store>, Refused> {
    let (settings, replaces) = settings(given)?;
    let path = uri.required_path()?;
    // Locks are waited for by the library; only deadlocks are begun again.
    let patience = Patience::new(Duration::from_millis(u64::from(settings.wait_ms)));
    ordered::store("rocksdb", content, replaces, patience, || {
        let database = Database::open(&path, &settings);
        database.map(|database| RocksDb(Arc::new(database))).map_err(|why| uri.cannot_open(&path, &why))
    })
}

impl Database {
    fn open(path: &Path, settings: &RocksSettings) -> Result<Database, OrderedFailure> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(RequestError::from)?;
        let mut database = Database::unopened(settings);
        let options = database.options;
        let mut count = 0;
        // SAFETY: options and path live; the list is freed below. A database that is not there has none.
        let list =
            call(|e| unsafe { rocksdb_list_column_families(options, path.as_ptr(), &raw mut count, e) });
        let mut names = vec![c"default".to_owned()];
        if let Ok(list) = list {
            // SAFETY: the list has `count` texts.
            unsafe {
                names = (0..count).map(|at| CStr::from_ptr(*list.add(at)).to_owned()).collect();
                rocksdb_list_column_families_destroy(list, count);
            }
        }
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let each = vec![options.cast_const(); names.len()];
        let mut families = vec![null_mut(); names.len()];
        // SAFETY: three lists of the stated length; the library writes the families.
        database.db = unsafe {
            let db_options = rocksdb_transactiondb_options_create();
            let opened = call(|e| {
                rocksdb_transactiondb_open_column_families(
                    options,
                    db_options,
                    path.as_ptr(),
                    names.len() as c_int,
                    pointers.as_ptr(),
                    each.as_ptr(),
                    families.as_mut_ptr(),
                    e,
                )
            });
            rocksdb_transactiondb_options_destroy(db_options);
            opened?
        };
        let known = names.iter().map(|name| name.to_string_lossy().into_owned());
        database.families = Mutex::new(known.zip(families.into_iter().map(ColumnFamily)).collect());
        Ok(database)
    }

    /// The options, before there is a database.
    fn unopened(settings: &RocksSettings) -> Database {
        // SAFETY: objects are made and set; the cache and the table's options are shared with what uses them.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_compression(options, settings.compression);
            rocksdb_options_set_write_buffer_size(options, settings.memtable);
            if settings.memtables > 0 {
                rocksdb_options_set_db_write_buffer_size(options, settings.memtables);
                // Each table takes at least a block, however many tables there are.
                let block = (settings.memtables / 64).clamp(16 << 10, 1 << 20);
                rocksdb_options_set_arena_block_size(options, block);
                // Transactions keep what has been written out in memory, twice `memtable` a table, beyond that bound. What they
                // look for is found in files, too.
                rocksdb_options_set_max_write_buffer_size_to_maintain(options, 1);
            }
            let (table, cache) =
                (rocksdb_block_based_options_create(), rocksdb_cache_create_lru(settings.cache));
            rocksdb_block_based_options_set_block_cache(table, cache);
            // Indexes and filters count as what is cached, so that `cache` bounds them, too.
            rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
            rocksdb_options_set_block_based_table_factory(options, table);
            rocksdb_block_based_options_destroy(table);
            rocksdb_cache_destroy(cache);
            let write = rocksdb_writeoptions_create();
            rocksdb_writeoptions_set_sync(write, u8::from(settings.wal == Wal::Sync));
            if settings.wal == Wal::Off {
                rocksdb_writeoptions_disable_WAL(write, 1);
                // Without a log only this keeps documents and their indexes together.
                rocksdb_options_set_atomic_flush(options, 1);
            }
            let transaction = rocksdb_transaction_options_create();
            rocksdb_transaction_options_set_lock_timeout(transaction, i64::from(settings.wait_ms));
            rocksdb_transaction_options_set_deadlock_detect(transaction, 1);
            let families = Mutex::default();
            Database { db: null_mut(), options, write, transaction, families, wal: settings.wal }
        }
    }
}

/// The engine.
struct RocksDb(Arc<Database>);

/// One user's way to it.
struct RocksUser {
    database: Arc<Database>,
    tables: Vec<(String, ColumnFamily)>,
}

impl Engine for RocksDb {
    type Handle = RocksUser;

    fn handle(&self) -> Result<RocksUser, Refused> {
        Ok(RocksUser { database: self.0.clone(), tables: Vec::new() })
    }

    fn name(&self) -> String {
        concat!("RocksDB ", env!("DYNO_ROCKSDB_VERSION")).to_owned()
    }

    fn durability(&self) -> String {
        match self.0.wal {
            Wal::Sync => "wal=sync: the write-ahead log is synced at every commit",
            Wal::NoSync => {
                "wal=nosync, RocksDB's own default: the write-ahead log is not synced, a crash of the system may lose the \
                 latest commits"
            }
            Wal::Off => {
                "wal=off: no write-ahead log, nothing is synced before a memtable is written out; a crash of the process \
                 loses what is in memory"
            }
        }
        .to_owned()
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        for name in TOLD {
            let mut value = 0;
            // SAFETY: the database is open; the number is written by the library.
            if unsafe { rocksdb_transactiondb_property_int(self.0.db, name.as_ptr(), &raw mut value) } == 0 {
                facts.push((name.to_string_lossy().into_owned(), value.to_string()));
            }
        }
        // SAFETY: the database is open; a property is null or a text to be freed.
        unsafe {
            let stats = rocksdb_transactiondb_property_value(self.0.db, c"rocksdb.dbstats".as_ptr());
            if !stats.is_null() {
                facts.push(("rocksdb.dbstats".to_owned(), taken(stats)));
            }
        }
        facts
    }
}

/// A snapshot.
struct RocksSnapshot<'h> {
    user: &'h RocksUser,
    options: *mut ReadOptions,
    snapshot: *const Snapshot,
}

impl Drop for RocksSnapshot<'_> {
    fn drop(&mut self) {
        // SAFETY: both are this transaction's own, and nothing reads with them any more.
        unsafe {
            rocksdb_readoptions_destroy(self.options);
            rocksdb_transactiondb_release_snapshot(self.user.database.db, self.snapshot);
        }
    }
}

/// A transaction.
struct RocksWrite<'h> {
    user: &'h RocksUser,
    txn: *mut Txn,
    options: *mut ReadOptions,
    open: bool,
}

impl Drop for RocksWrite<'_> {
    fn drop(&mut self) {
        // SAFETY: both are this transaction's own.
        unsafe {
            if self.open {
                // A transaction that cannot be rolled back goes with the object.
                let _ = call(|e| rocksdb_transaction_rollback(self.txn, e));
            }
            rocksdb_transaction_destroy(self.txn);
            rocksdb_readoptions_destroy(self.options);
        }
    }
}

impl Handle for RocksUser {
    type Read<'h> = RocksSnapshot<'h>;
    type Write<'h> = RocksWrite<'h>;

    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure> {
        if let Some(known) = self.tables.iter().position(|(known, _)| known == name) {
            return Ok(known);
        }
        let database = &self.database;
        let mut families = database.families.lock().unwrap_or_else(PoisonError::into_inner);
        let table = match families.get(name) {
            Some(table) => *table,
            None => {
                let text = CString::new(name).map_err(RequestError::from)?;
                // SAFETY: the database is open, the options live, the name ends with a zero byte.
                let family = call(|e| unsafe {
                    rocksdb_transactiondb_create_column_family(
                        database.db,
                        database.options,
                        text.as_ptr(),
                        e,
                    )
                })?;
                families.insert(name.to_owned(), ColumnFamily(family));
                ColumnFamily(family)
            }
        };
        drop(families);
        self.tables.push((name.to_owned(), table));
        Ok(self.tables.len() - 1)
    }

    fn read(&mut self) -> Result<RocksSnapshot<'_>, OrderedFailure> {
        // SAFETY: the database is open; both are given back when the transaction is dropped.
        unsafe {
            let (options, snapshot) =
                (rocksdb_readoptions_create(), rocksdb_transactiondb_create_snapshot(self.database.db));
            rocksdb_readoptions_set_snapshot(options, snapshot);
            Ok(RocksSnapshot { user: self, options, snapshot })
        }
    }

    fn write(&mut self) -> Result<RocksWrite<'_>, OrderedFailure> {
        let database = &self.database;
        // SAFETY: the database is open and the options live.
        unsafe {
            let txn =
                rocksdb_transaction_begin(database.db, database.write, database.transaction, null_mut());
            Ok(RocksWrite { user: self, txn, options: rocksdb_readoptions_create(), open: true })
        }
    }
}

fn show<T>(pinned: *mut Pinned, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
    if pinned.is_null() {
        return None;
    }
    let mut bytes = 0;
    // SAFETY: the value lives until it is given back.
    unsafe {
        let value = rocksdb_pinnableslice_value(pinned, &raw mut bytes);
        let shown = look(slice(value, bytes));
        rocksdb_pinnableslice_destroy(pinned);
        Some(shown)
    }
}

/// # Safety
/// Pointer and length come from one RocksDB call; the slice does not outlive the handle.
unsafe fn slice<'b>(at: *const c_char, bytes: usize) -> &'b [u8] {
    let at = if bytes == 0 { std::ptr::dangling() } else { at.cast() };
    // SAFETY: as the caller promises; an empty slice needs no bytes.
    unsafe { std::slice::from_raw_parts(at, bytes) }
}

/// An iterator, given back when it is dropped.
struct Walk(*mut Iter);

impl Drop for Walk {
    fn drop(&mut self) {
        // SAFETY: it belongs to this walk alone.
        unsafe { rocksdb_iter_destroy(self.0) };
    }
}

impl Walk {
    fn over(
        &self,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        let (iter, up) = (self.0, order == SortOrder::Ascending);
        // SAFETY: the iterator is open; keys handed in live until the call returns; what it stands on lives until it
        // moves, and `visit` cannot reach it.
        unsafe {
            match (up, if up { low } else { high }) {
                (true, []) => rocksdb_iter_seek_to_first(iter),
                (true, low) => rocksdb_iter_seek(iter, low.as_ptr().cast(), low.len()),
                (false, []) => rocksdb_iter_seek_to_last(iter),
                (false, high) => rocksdb_iter_seek_for_prev(iter, high.as_ptr().cast(), high.len()),
            }
            while rocksdb_iter_valid(iter) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = slice(rocksdb_iter_key(iter, &raw mut key_bytes), key_bytes);
                let value = slice(rocksdb_iter_value(iter, &raw mut value_bytes), value_bytes);
                // Going down, the search may end on `high` itself.
                let beyond = if up { !high.is_empty() && key >= high } else { key < low };
                let before = !up && !high.is_empty() && key >= high;
                if beyond || (!before && !visit(key, value)?) {
                    return Ok(());
                }
                if up { rocksdb_iter_next(iter) } else { rocksdb_iter_prev(iter) }
            }
            call(|e| rocksdb_iter_get_error(iter, e))
        }
    }
}

impl Reader for RocksSnapshot<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        let (db, family) = (self.user.database.db, self.user.tables[table].1.0);
        let (at, bytes) = (key.as_ptr().cast(), key.len());
        // SAFETY: database and family are open; the key lives until the call returns.
        let found =
            call(|e| unsafe { rocksdb_transactiondb_get_pinned_cf(db, self.options, family, at, bytes, e) })?;
        Ok(show(found, look))
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        let (db, family) = (self.user.database.db, self.user.tables[table].1.0);
        // SAFETY: database and family are open; the iterator goes before the options.
        let walk = Walk(unsafe { rocksdb_transactiondb_create_iterator_cf(db, self.options, family) });
        walk.over(low, high, order, visit)
    }
}

impl Reader for RocksWrite<'_> {
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure> {
        let family = self.user.tables[table].1.0;
        let (at, bytes) = (key.as_ptr().cast(), key.len());
        // SAFETY: transaction and family are open; the key lives until the call returns.
        let found = call(|e| unsafe {
            rocksdb_transaction_get_pinned_for_update_cf(self.txn, self.options, family, at, bytes, 1, e)
        })?;
        Ok(show(found, look))
    }

    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure> {
        let family = self.user.tables[table].1.0;
        // SAFETY: transaction and family are open; the iterator goes before the options.
        let walk = Walk(unsafe { rocksdb_transaction_create_iterator_cf(self.txn, self.options, family) });
        walk.over(low, high, order, visit)
    }
}

impl Writer for RocksWrite<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure> {
        let family = self.user.tables[table].1.0;
        let (at, to) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: transaction and family are open; key and value live until the call returns.
        call(|e| unsafe { rocksdb_transaction_put_cf(self.txn, family, at, key.len(), to, value.len(), e) })
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure> {
        let family = self.user.tables[table].1.0;
        // SAFETY: transaction and family are open; the key lives until the call returns.
        call(|e| unsafe {
            rocksdb_transaction_delete_cf(self.txn, family, key.as_ptr().cast(), key.len(), e)
        })
    }

    fn commit(mut self) -> Result<(), OrderedFailure> {
        // SAFETY: the transaction is open.
        call(|e| unsafe { rocksdb_transaction_commit(self.txn, e) })?;
        self.open = false;
        Ok(())
    }
}
