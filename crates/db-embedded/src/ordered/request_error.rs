//! Why a request on documents cannot be executed by the engines of ordered keys, see [`RequestError`].

use dyno_types::bson::NotBson;
use std::error::Error;
use std::str::Utf8Error;

/// A request asks for what is not offered, or for what its documents do not allow. The engine is well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// A document is damaged.
    #[error(transparent)]
    Bson(#[from] NotBson),
    /// A name is no text.
    #[error(transparent)]
    Utf8(#[from] Utf8Error),
    /// A name or a path that an engine of C cannot be given.
    #[cfg(any(feature = "lmdb", feature = "rocksdb", feature = "wiredtiger"))]
    #[error(transparent)]
    Nul(#[from] std::ffi::NulError),
    /// An operand was not rendered as a value.
    #[error("an operand is no BSON")]
    Operand,
    /// A key or a value is beyond what the engine holds.
    #[error(transparent)]
    Limit(Box<dyn Error + Send + Sync>),

    /// A command of MongoDB's own.
    #[error("commands of MongoDB")]
    Command,
    /// A decimal number as a key or in a comparison.
    #[error("decimal numbers cannot be compared here")]
    ComparesDecimal,
    /// A value of a type without an order here.
    #[error("values of BSON type {0:#04x} cannot be compared here")]
    ComparesType(u8),

    /// A change of `_id`.
    #[error("the field _id cannot be changed")]
    ChangesId,
    /// A path leads through a value that holds no fields.
    #[error("{name:?} is neither document nor array: it has no {rest:?}")]
    HoldsNoFields {
        /// The field that is neither document nor array.
        name: String,
        /// Rest of the path behind the field.
        rest: String,
    },
    /// A path names an item of an array otherwise than by a number.
    #[error("an array has no field {0:?}")]
    NamedItem(String),
    /// An item far beyond the end of its array.
    #[error("item {0} is too far beyond the end of the array")]
    BeyondArray(u32),
    /// An increment by what is not a number.
    #[error("what is added must be a number")]
    AddsNoNumber,
    /// An increment of a field, or by a value, that is not a number.
    #[error("{0:?} and what is added to it must be numbers")]
    AddsToNoNumber(String),
    /// An increment beyond 64 bits.
    #[error("{0:?} would exceed 64 bits")]
    Overflow(String),
    /// A push to a field that is not an array.
    #[error("{0:?} is no array")]
    NoArray(String),

    /// A document to be inserted has no `_id`.
    #[error("a document without _id")]
    NoId,
    /// A document to be inserted has an `_id` of a type that cannot be one.
    #[error("an _id cannot be an array or a regular expression")]
    IdType,
    /// A document has an array where an index needs one value.
    #[error("the index on {0} cannot hold an array")]
    IndexesArray(String),

    /// A collection cannot have this name.
    #[error("{0:?} cannot be the name of a collection")]
    CollectionName(String),
    /// The collection has an index of this name on another field.
    #[error("{collection}: index {index} is there already, on {there} instead of {field}")]
    OtherIndex {
        /// Name of the collection.
        collection: String,
        /// Name of the index.
        index: String,
        /// The field it is on.
        there: String,
        /// The field it should be on.
        field: String,
    },

    /// A transaction of several requests.
    #[error("transactions of several requests")]
    Transaction,
    /// An aggregation with a stage that only MongoDB has.
    #[error("aggregations other than a match, a sort and a limit")]
    RawStage,
    /// An aggregation's stages in another number or order.
    #[error("the stages of an aggregation other than one match, one sort, one limit")]
    Stages,
    /// A write inside a transaction that reads.
    #[error("a write cannot be done by reading")]
    WriteByReading,
    /// A read inside a transaction that writes.
    #[error("a read cannot be done by writing")]
    ReadByWriting,
}
