//! The collections of a target beside the load: what they hold, and how they are dropped.

use crate::mongo::{CommandError, MongoAdmin};
use crate::target::Opened;
use dyno_engine::RunError;
use dyno_types::Store;
use dyno_types::bson::{self, kind};

/// Where a target keeps documents.
pub enum Collections<'o> {
    /// A MongoDB server, which is asked by commands.
    Server(MongoAdmin),
    /// An embedded store.
    Embedded(&'o dyn Store),
}

impl<'o> Collections<'o> {
    /// Those of `opened`, if it keeps documents.
    pub fn of(opened: &'o Opened) -> Option<Self> {
        match (opened.mongo_admin(), opened) {
            (Some(admin), _) => Some(Collections::Server(admin)),
            (None, Opened::Store(store)) => Some(Collections::Embedded(store.as_ref())),
            _ => None,
        }
    }

    /// Drops a collection; one that is not there is no error.
    pub fn drop(&self, name: &str) -> Result<(), RunError> {
        match self {
            Collections::Server(admin) => Ok(admin.drop_collection(name)?),
            Collections::Embedded(store) => Ok(store.drop_collection(name)?),
        }
    }

    /// Makes an index on several fields. Embedded stores make theirs with the first document.
    pub fn index(&self, name: &str, index: &str, fields: &[(String, i32)]) -> Result<(), RunError> {
        match self {
            Collections::Server(admin) => Ok(admin.create_compound_index(name, index, fields)?),
            Collections::Embedded(_) => Ok(()),
        }
    }

    /// How many documents a collection holds.
    pub fn count(&self, name: &str) -> Result<u64, RunError> {
        match self {
            Collections::Server(admin) => Ok(admin.count(name)?),
            Collections::Embedded(store) => Ok(store.documents(name)?),
        }
    }

    /// At most `count` documents of a collection.
    pub fn sample(&self, name: &str, count: u32) -> Result<Vec<Vec<u8>>, RunError> {
        match self {
            Collections::Server(admin) => Ok(admin.sample(name, count)?),
            Collections::Embedded(store) => Ok(store.sample(name, count)?),
        }
    }

    /// The document of a collection with the highest `_id`; with `between`, a document of `$gte` and `$lt`, of those `_id`s.
    pub fn highest(&self, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, RunError> {
        match self {
            Collections::Server(admin) => Ok(highest(admin, name, between)?),
            Collections::Embedded(store) => Ok(store.highest(name, between)?),
        }
    }
}

fn highest(admin: &MongoAdmin, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, CommandError> {
    admin.find_one(name, &|out| {
        if let Some(range) = between {
            bson::head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::head(out, kind::DOCUMENT, "_id");
            out.extend_from_slice(range);
            bson::close(out, filter);
        }
        bson::head(out, kind::DOCUMENT, "sort");
        let sort = bson::open(out);
        bson::int32(out, "_id", -1);
        bson::close(out, sort);
    })
}
