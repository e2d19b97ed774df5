//! The part of RocksDB's C interface that is used. Source of the declarations: `rocksdb/c.h` of 7.8.3. Objects are
//! opaque, a type each so that they are not taken for one another.
#![expect(unsafe_code, reason = "RocksDB is reached through its C interface")]

use crate::ordered::OrderedFailure;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};

macro_rules! opaque {
    ($($name:ident),*) => { $( #[repr(C)] pub(super) struct $name { _opaque: [u8; 0] } )* };
}

opaque!(Options, DbOptions, TxnOptions, WriteOptions, ReadOptions, TableOptions, Cache);
opaque!(Db, Family, Txn, Snapshot, Iter, Pinned);

/// Where a call leaves its error: a text to be freed.
pub(super) type Err = *mut *mut c_char;
type Bytes = *const c_char;

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub(super) fn rocksdb_free(of: *mut c_void);
    pub(super) fn rocksdb_options_create() -> *mut Options;
    pub(super) fn rocksdb_options_destroy(o: *mut Options);
    pub(super) fn rocksdb_options_set_create_if_missing(o: *mut Options, yes: c_uchar);
    pub(super) fn rocksdb_options_set_compression(o: *mut Options, kind: c_int);
    pub(super) fn rocksdb_options_set_write_buffer_size(o: *mut Options, bytes: usize);
    pub(super) fn rocksdb_options_set_db_write_buffer_size(o: *mut Options, bytes: usize);
    pub(super) fn rocksdb_options_set_arena_block_size(o: *mut Options, bytes: usize);
    pub(super) fn rocksdb_options_set_max_write_buffer_size_to_maintain(o: *mut Options, bytes: i64);
    pub(super) fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(o: *mut TableOptions, on: u8);
    pub(super) fn rocksdb_options_set_atomic_flush(o: *mut Options, yes: c_uchar);
    pub(super) fn rocksdb_options_set_block_based_table_factory(o: *mut Options, table: *mut TableOptions);
    pub(super) fn rocksdb_block_based_options_create() -> *mut TableOptions;
    pub(super) fn rocksdb_block_based_options_destroy(o: *mut TableOptions);
    pub(super) fn rocksdb_block_based_options_set_block_cache(o: *mut TableOptions, cache: *mut Cache);
    pub(super) fn rocksdb_cache_create_lru(bytes: usize) -> *mut Cache;
    pub(super) fn rocksdb_cache_destroy(cache: *mut Cache);
    pub(super) fn rocksdb_transactiondb_options_create() -> *mut DbOptions;
    pub(super) fn rocksdb_transactiondb_options_destroy(o: *mut DbOptions);
    pub(super) fn rocksdb_transaction_options_create() -> *mut TxnOptions;
    pub(super) fn rocksdb_transaction_options_destroy(o: *mut TxnOptions);
    pub(super) fn rocksdb_transaction_options_set_lock_timeout(o: *mut TxnOptions, ms: i64);
    pub(super) fn rocksdb_transaction_options_set_deadlock_detect(o: *mut TxnOptions, yes: c_uchar);
    pub(super) fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub(super) fn rocksdb_writeoptions_destroy(o: *mut WriteOptions);
    pub(super) fn rocksdb_writeoptions_set_sync(o: *mut WriteOptions, yes: c_uchar);
    pub(super) fn rocksdb_writeoptions_disable_WAL(o: *mut WriteOptions, yes: c_int);
    pub(super) fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub(super) fn rocksdb_readoptions_destroy(o: *mut ReadOptions);
    pub(super) fn rocksdb_readoptions_set_snapshot(o: *mut ReadOptions, snapshot: *const Snapshot);
    pub(super) fn rocksdb_list_column_families(
        o: *const Options,
        path: Bytes,
        count: *mut usize,
        error: Err,
    ) -> *mut *mut c_char;
    pub(super) fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, count: usize);
    pub(super) fn rocksdb_transactiondb_open_column_families(
        o: *const Options,
        db_options: *const DbOptions,
        path: Bytes,
        count: c_int,
        names: *const Bytes,
        options: *const *const Options,
        families: *mut *mut Family,
        error: Err,
    ) -> *mut Db;
    pub(super) fn rocksdb_transactiondb_create_column_family(
        db: *mut Db,
        o: *const Options,
        name: Bytes,
        error: Err,
    ) -> *mut Family;
    pub(super) fn rocksdb_column_family_handle_destroy(family: *mut Family);
    pub(super) fn rocksdb_transactiondb_close(db: *mut Db);
    pub(super) fn rocksdb_transactiondb_property_value(db: *mut Db, name: Bytes) -> *mut c_char;
    pub(super) fn rocksdb_transactiondb_property_int(db: *mut Db, name: Bytes, out: *mut u64) -> c_int;
    pub(super) fn rocksdb_transactiondb_create_snapshot(db: *mut Db) -> *const Snapshot;
    pub(super) fn rocksdb_transactiondb_release_snapshot(db: *mut Db, snapshot: *const Snapshot);
    pub(super) fn rocksdb_transactiondb_get_pinned_cf(
        db: *mut Db,
        o: *const ReadOptions,
        family: *mut Family,
        key: Bytes,
        bytes: usize,
        error: Err,
    ) -> *mut Pinned;
    pub(super) fn rocksdb_transactiondb_create_iterator_cf(
        db: *mut Db,
        o: *const ReadOptions,
        family: *mut Family,
    ) -> *mut Iter;
    pub(super) fn rocksdb_transaction_begin(
        db: *mut Db,
        w: *const WriteOptions,
        o: *const TxnOptions,
        old: *mut Txn,
    ) -> *mut Txn;
    pub(super) fn rocksdb_transaction_commit(txn: *mut Txn, error: Err);
    pub(super) fn rocksdb_transaction_rollback(txn: *mut Txn, error: Err);
    pub(super) fn rocksdb_transaction_destroy(txn: *mut Txn);
    pub(super) fn rocksdb_transaction_get_pinned_for_update_cf(
        txn: *mut Txn,
        o: *const ReadOptions,
        family: *mut Family,
        key: Bytes,
        bytes: usize,
        exclusive: c_uchar,
        error: Err,
    ) -> *mut Pinned;
    pub(super) fn rocksdb_transaction_put_cf(
        txn: *mut Txn,
        family: *mut Family,
        key: Bytes,
        key_bytes: usize,
        value: Bytes,
        value_bytes: usize,
        error: Err,
    );
    pub(super) fn rocksdb_transaction_delete_cf(
        txn: *mut Txn,
        family: *mut Family,
        key: Bytes,
        bytes: usize,
        error: Err,
    );
    pub(super) fn rocksdb_transaction_create_iterator_cf(
        txn: *mut Txn,
        o: *const ReadOptions,
        family: *mut Family,
    ) -> *mut Iter;
    pub(super) fn rocksdb_pinnableslice_value(of: *const Pinned, bytes: *mut usize) -> Bytes;
    pub(super) fn rocksdb_pinnableslice_destroy(of: *mut Pinned);
    pub(super) fn rocksdb_iter_destroy(iter: *mut Iter);
    pub(super) fn rocksdb_iter_valid(iter: *const Iter) -> c_uchar;
    pub(super) fn rocksdb_iter_seek_to_first(iter: *mut Iter);
    pub(super) fn rocksdb_iter_seek_to_last(iter: *mut Iter);
    pub(super) fn rocksdb_iter_seek(iter: *mut Iter, key: Bytes, bytes: usize);
    pub(super) fn rocksdb_iter_seek_for_prev(iter: *mut Iter, key: Bytes, bytes: usize);
    pub(super) fn rocksdb_iter_next(iter: *mut Iter);
    pub(super) fn rocksdb_iter_prev(iter: *mut Iter);
    pub(super) fn rocksdb_iter_key(iter: *const Iter, bytes: *mut usize) -> Bytes;
    pub(super) fn rocksdb_iter_value(iter: *const Iter, bytes: *mut usize) -> Bytes;
    pub(super) fn rocksdb_iter_get_error(iter: *const Iter, error: Err);
}

/// The text at `text`, which is freed.
///
/// # Safety
/// RocksDB has handed it out to be freed.
pub(super) unsafe fn taken(text: *mut c_char) -> String {
    // SAFETY: as the caller promises.
    unsafe {
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        rocksdb_free(text.cast());
        message
    }
}

/// Makes a call that may leave an error.
pub(super) fn call<T>(make: impl FnOnce(Err) -> T) -> Result<T, OrderedFailure> {
    let mut error = std::ptr::null_mut();
    let made = make(&raw mut error);
    if error.is_null() {
        return Ok(made);
    }
    // SAFETY: an error is a text to be freed.
    let message = unsafe { taken(error) };
    // RocksDB's functions of C hand out a status as its text alone, which begins with its code.
    Err(if message.starts_with("Operation timed out") {
        OrderedFailure::Locked(message.into())
    } else if message.starts_with("Resource busy") || message.contains("Try again") {
        OrderedFailure::Conflict(message.into())
    } else {
        OrderedFailure::Engine(message.into())
    })
}
