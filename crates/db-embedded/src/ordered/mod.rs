//! Common parts of databases of ordered keys, and operations on documents above them.
//!
//! An engine is met as a [`Handle`] for each user, which opens tables by name and begins transactions. Above stand two
//! layers: `records` (YCSB's records, for engines without a session of their own for them) and `documents` (collections
//! as tables from the key of `_id` to BSON, indexes as tables, `catalog` says which). `key` makes values into keys,
//! `query` plans and tests filters, `change` applies updates.

mod catalog;
mod change;
mod collection;
mod documents;
mod job;
mod key;
mod query;
mod reads;
#[cfg(any(feature = "lmdb", feature = "rocksdb", feature = "wiredtiger"))]
mod records;
mod request_error;
mod writes;

pub(crate) use documents::{DocumentStore, check};
#[cfg(any(feature = "lmdb", feature = "rocksdb", feature = "wiredtiger"))]
pub(crate) use records::store;
pub(crate) use request_error::RequestError;

use crate::record::RecordError;
use dyno_types::document::SortOrder;
use dyno_types::{Executed, Outcome, Refused};
use std::fmt::Write;
use std::time::Duration;

/// The engine's own error.
pub(crate) type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// A failed request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderedFailure {
    /// An encoded record is none, or cannot be one.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The key, or the `_id`, is there.
    #[error("duplicate key: it is there already")]
    Duplicate,
    /// The request asks for what is not offered.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Another transaction was in the way: this one has changed nothing.
    #[cfg_attr(not(feature = "fjall"), allow(dead_code, reason = "redb has no conflicts"))]
    #[error(transparent)]
    Conflict(EngineError),
    /// A lock was waited for in vain: this transaction has changed nothing.
    #[cfg(feature = "rocksdb")]
    #[error(transparent)]
    Locked(EngineError),
    /// An entry of an index names no document.
    #[error("an entry of an index is broken")]
    BrokenIndex,
    /// The engine has failed.
    #[error(transparent)]
    Engine(EngineError),
}

impl OrderedFailure {
    /// The class of the failure.
    fn outcome(&self) -> Outcome {
        match self {
            OrderedFailure::Record(RecordError::TooLong) | OrderedFailure::Request(_) => Outcome::BadRequest,
            OrderedFailure::Duplicate => Outcome::Duplicate,
            OrderedFailure::Conflict(_) => Outcome::Busy,
            #[cfg(feature = "rocksdb")]
            OrderedFailure::Locked(_) => Outcome::Busy,
            OrderedFailure::Record(RecordError::Malformed)
            | OrderedFailure::BrokenIndex
            | OrderedFailure::Engine(_) => Outcome::ServerError,
        }
    }

    /// Returns whether the transaction can go on and be committed.
    fn is_one_statements(&self) -> bool {
        matches!(self, OrderedFailure::Duplicate | OrderedFailure::Request(_))
    }

    /// The end of a request that failed thus, and its words.
    fn executed(&self, message: &mut String) -> Executed {
        message.clear();
        let _ = write!(message, "{self}");
        Executed::new(self.outcome(), 0)
    }
}

/// Sees a key and its value; false ends the walk.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<bool, OrderedFailure> + 'v;

/// Reads tables, each known by the number that [`Handle::table`] gave it, as of one moment.
pub(crate) trait Reader {
    /// Shows the value of `key`, if there is one. Inside a writing transaction the key is locked where the engine
    /// locks.
    fn get<T>(
        &mut self,
        table: usize,
        key: &[u8],
        show: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, OrderedFailure>;

    /// Walks over the keys from `low` on and below `high`; an empty `high` is beyond all keys.
    fn range(
        &mut self,
        table: usize,
        low: &[u8],
        high: &[u8],
        order: SortOrder,
        visit: &mut Visit<'_>,
    ) -> Result<(), OrderedFailure>;
}

/// A transaction that sees its own changes; it is rolled back where it is dropped.
pub(crate) trait Writer: Reader {
    /// Gives `key` a value.
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<(), OrderedFailure>;

    /// Removes `key`, which is there.
    fn delete(&mut self, table: usize, key: &[u8]) -> Result<(), OrderedFailure>;

    /// Makes the changes durable, as the engine is set.
    fn commit(self) -> Result<(), OrderedFailure>;
}

/// One user's way to an engine.
pub(crate) trait Handle: Send + 'static {
    /// A transaction that reads.
    type Read<'h>: Reader
    where
        Self: 'h;
    /// A transaction that writes.
    type Write<'h>: Writer
    where
        Self: 'h;

    /// The number of the table called `name`, which is created if there is none. Not called inside a transaction.
    fn table(&mut self, name: &str) -> Result<usize, OrderedFailure>;

    /// Begins to read.
    fn read(&mut self) -> Result<Self::Read<'_>, OrderedFailure>;

    /// Begins to write.
    fn write(&mut self) -> Result<Self::Write<'_>, OrderedFailure>;
}

/// An engine, open.
pub(crate) trait Engine: Send + Sync + 'static {
    /// One user's way to it.
    type Handle: Handle;

    /// For one more user.
    fn handle(&self) -> Result<Self::Handle, Refused>;

    /// Name and version.
    fn name(&self) -> String;

    /// See [`dyno_types::Store::durability`].
    fn durability(&self) -> String;

    /// See [`dyno_types::Store::facts`].
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Time for which transactions that met a conflict are tried again, in all; the pauses between are added up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    left: Duration,
    pause: Duration,
}

impl Patience {
    /// For `left` in all.
    pub(crate) fn new(left: Duration) -> Self {
        Patience { left, pause: Duration::from_micros(20) }
    }

    /// Of engines that have no conflicts.
    pub(crate) fn none() -> Self {
        Patience::new(Duration::ZERO)
    }

    /// Calls `attempt` until it ends otherwise than by a conflict.
    fn run<T>(mut self, mut attempt: impl FnMut() -> Result<T, OrderedFailure>) -> Result<T, OrderedFailure> {
        loop {
            match attempt() {
                Err(OrderedFailure::Conflict(_)) if !self.left.is_zero() => {}
                other => return other,
            }
            let pause = self.pause.min(self.left);
            std::thread::sleep(pause);
            self.left -= pause;
            self.pause = (self.pause * 2).min(Duration::from_millis(2));
        }
    }
}
