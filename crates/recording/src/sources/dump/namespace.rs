//! Collections by their names.

use crate::sources::SourceError;

/// A collection of a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection, which may have dots in its name.
    pub collection: String,
}

impl Namespace {
    /// Reads `DATABASE.COLLECTION`.
    pub fn parse_name(text: &str) -> Option<Self> {
        let (database, collection) = text.split_once('.')?;
        let is_whole = !database.is_empty() && !collection.is_empty();
        is_whole.then(|| Namespace { database: database.into(), collection: collection.into() })
    }

    pub(super) fn is_of_server(&self) -> bool {
        // The log of changes that `--oplog` takes has no database, and users of one database have a collection with a `$`.
        ["", "admin", "config", "local"].contains(&self.database.as_str())
            || self.collection.starts_with("system.")
            || self.collection.starts_with('$')
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

pub(super) fn damaged(what: &str) -> SourceError {
    SourceError::Unreadable(format!("it is no dump of MongoDB: {what}"))
}
