//! The collections of a target beside the load: what they hold, and how they are dropped.

use dyno_engine::RunError;
use std::collections::BTreeMap;

/// Figures of collections: name of the collection, name of the figure, value.
pub type FiguresByCollection = BTreeMap<String, BTreeMap<String, f64>>;

/// Reads what a server says of its collections, such as their sizes. It outlives the open target and keeps no connection, so
/// that it can be asked before and after a phase that others apply.
pub trait CollectionStats: Send + Sync {
    /// Figures of all collections. Those that the server does not report are absent.
    fn read_stats(&self) -> FiguresByCollection;
}

/// Where a target keeps documents. Each call fails where the target does not answer, or refuses it.
pub trait Collections {
    /// Drops a collection; one that is not there is no error.
    fn remove(&self, name: &str) -> Result<(), RunError>;

    /// The same of another database, where there are several.
    fn remove_of(&self, _database: &str, _name: &str) -> Result<(), RunError> {
        Ok(())
    }

    /// Makes an index on several fields.
    fn index(&self, name: &str, index: &str, fields: &[(String, i32)]) -> Result<(), RunError>;

    /// Number of documents that a collection holds.
    fn count(&self, name: &str) -> Result<u64, RunError>;

    /// The same of another database; `None` where it has no databases to tell apart.
    fn count_of(&self, _database: &str, _name: &str) -> Result<Option<u64>, RunError> {
        Ok(None)
    }

    /// At most `count` documents of a collection.
    fn sample(&self, name: &str, count: u32) -> Result<Vec<Vec<u8>>, RunError>;

    /// The document of a collection with the highest `_id`; with `between`, a document of `$gte` and `$lt`, of those `_id`s.
    fn highest(&self, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, RunError>;

    /// Names of the collections of a database, but for those of the server's own; `None` where it has no databases to tell apart.
    fn list_collections(&self, _database: &str) -> Result<Option<Vec<String>>, RunError> {
        Ok(None)
    }

    /// Returns whether an embedded store keeps them, in the forms of its own records.
    fn is_embedded(&self) -> bool {
        false
    }
}
