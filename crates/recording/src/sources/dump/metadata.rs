//! What mongodump writes of a collection beside its documents: options and indexes, as extended JSON.

use super::namespace::{Namespace, damaged};
use crate::sources::SourceError;
use crate::sources::extended_json::{JsonOf, NotDocument, to_document};
use bson::{Bson, Document};

/// The commands that make a collection, as their bodies.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MadeCollection {
    /// `create`, where it has options.
    pub create: Option<Vec<u8>>,
    /// `createIndexes`, where it has indexes beside that of `_id`.
    pub indexes: Option<Vec<u8>>,
}

/// Reads the metadata of a collection.
pub(super) fn read_metadata(of: &Namespace, text: &str) -> Result<MadeCollection, SourceError> {
    let bad = |why: NotDocument| damaged(&format!("the metadata of {of}: {why}"));
    let mut whole = serde_json::from_str(text)
        .map_err(NotDocument::from)
        .and_then(|whole| to_document(whole, JsonOf::Data))
        .map_err(bad)?;
    let mut made = MadeCollection::default();
    let written = |document: Document| {
        document.to_vec().map_err(|why| damaged(&format!("the metadata of {of}: {why}")))
    };
    if let Some(Bson::Document(options)) = whole.remove("options")
        && !options.is_empty()
    {
        let mut create = bson::doc! { "create": &of.collection };
        // An option of servers before 4.0, which later ones refuse, and which all of them have by default.
        create.extend(options.into_iter().filter(|(name, _)| name != "autoIndexId"));
        made.create = Some(written(create)?);
    }
    let Some(Bson::Array(indexes)) = whole.remove("indexes") else { return Ok(made) };
    let others: Vec<Bson> = indexes
        .into_iter()
        .filter_map(|index| match index {
            Bson::Document(mut index) if index.get_str("name").ok() != Some("_id_") => {
                // The namespace of then, which servers since 4.4 refuse.
                index.remove("ns");
                Some(Bson::Document(index))
            }
            _ => None,
        })
        .collect();
    if !others.is_empty() {
        made.indexes = Some(written(bson::doc! { "createIndexes": &of.collection, "indexes": others })?);
    }
    Ok(made)
}
