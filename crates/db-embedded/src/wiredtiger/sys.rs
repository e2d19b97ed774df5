//! The part of WiredTiger's C interface that is used: structures of methods, in the order of `wiredtiger.h` 3.2.1.
//! Methods that are not called are plain pointers.
#![expect(unsafe_code, reason = "WiredTiger is a C library")]

use std::ffi::{c_char, c_int, c_void};

type Unused = *const c_void;
type Text = *const c_char;

/// Bytes of a key or a value.
#[repr(C)]
pub(super) struct Item {
    pub(super) data: *const c_void,
    pub(super) size: usize,
    memory: *mut c_void,
    memory_bytes: usize,
    flags: u32,
}

impl Item {
    pub(super) fn of(bytes: &[u8]) -> Item {
        let (data, size) = (bytes.as_ptr().cast(), bytes.len());
        Item { data, size, memory: std::ptr::null_mut(), memory_bytes: 0, flags: 0 }
    }
}

#[repr(C)]
pub(super) struct Cursor {
    session: *mut RawSession,
    uri: Text,
    key_format: Text,
    value_format: Text,
    pub(super) get_key: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub(super) get_value: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub(super) set_key: unsafe extern "C" fn(*mut Cursor, ...),
    pub(super) set_value: unsafe extern "C" fn(*mut Cursor, ...),
    compare_equals: [Unused; 2],
    pub(super) next: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(super) prev: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(super) reset: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(super) search: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(super) search_near: unsafe extern "C" fn(*mut Cursor, *mut c_int) -> c_int,
    pub(super) insert: unsafe extern "C" fn(*mut Cursor) -> c_int,
    modify_update: [Unused; 2],
    pub(super) remove: unsafe extern "C" fn(*mut Cursor) -> c_int,
    reserve: Unused,
    pub(super) close: unsafe extern "C" fn(*mut Cursor) -> c_int,
}

#[repr(C)]
pub(super) struct RawSession {
    connection: *mut RawConnection,
    app_private: *mut c_void,
    pub(super) close: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    reconfigure_strerror: [Unused; 2],
    pub(super) open_cursor:
        unsafe extern "C" fn(*mut RawSession, Text, *mut Cursor, Text, *mut *mut Cursor) -> c_int,
    alter: Unused,
    pub(super) create: unsafe extern "C" fn(*mut RawSession, Text, Text) -> c_int,
    /// import, compact, drop, join, log_flush, log_printf, rebalance, rename, reset, salvage, truncate, upgrade, verify
    others: [Unused; 13],
    pub(super) begin_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    pub(super) commit_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
    prepare_transaction: Unused,
    pub(super) rollback_transaction: unsafe extern "C" fn(*mut RawSession, Text) -> c_int,
}

#[repr(C)]
pub(super) struct RawConnection {
    asynchronous: [Unused; 2],
    pub(super) close: unsafe extern "C" fn(*mut RawConnection, Text) -> c_int,
    /// debug_info, reconfigure, get_home, configure_method, is_new
    others: [Unused; 5],
    pub(super) open_session:
        unsafe extern "C" fn(*mut RawConnection, Unused, Text, *mut *mut RawSession) -> c_int,
}

#[link(name = "wiredtiger")]
unsafe extern "C" {
    pub(super) fn wiredtiger_open(
        home: Text,
        events: Unused,
        config: Text,
        out: *mut *mut RawConnection,
    ) -> c_int;
    pub(super) fn wiredtiger_strerror(error: c_int) -> Text;
    pub(super) fn wiredtiger_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> Text;
}

pub(super) const ROLLBACK: c_int = -31_800;
pub(super) const NOTFOUND: c_int = -31_803;
pub(super) const PREPARE_CONFLICT: c_int = -31_808;
