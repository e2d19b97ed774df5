//! Locks that a panic elsewhere does not take away.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also where a thread has panicked that held it: what it guards is whole after each statement.
pub fn held<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
