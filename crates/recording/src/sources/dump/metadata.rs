//! What mongodump writes of a collection beside its documents: options and indexes, as extended JSON.

use super::{Namespace, damaged};
use crate::sources::SourceError;
use bson::{Bson, Document};
use serde_json::Value;

/// The commands that make a collection, as their bodies.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MadeCollection {
    /// `create`, where it has options.
    pub create: Option<Vec<u8>>,
    /// `createIndexes`, where it has indexes beside that of `_id`.
    pub indexes: Option<Vec<u8>>,
}

/// A document of extended JSON, in any of its versions.
pub(super) fn read_extended_json(value: Value) -> Result<Document, SourceError> {
    match Bson::try_from(modern(value)) {
        Ok(Bson::Document(document)) => Ok(document),
        Ok(_) => Err(damaged("expected a document of extended JSON")),
        Err(why) => Err(damaged(&format!("extended JSON that has no meaning: {why}"))),
    }
}

/// Binary data as extended JSON of version 2 has it: tools up to 4.0 wrote `$type` beside `$binary`.
fn modern(value: Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(modern).collect()),
        Value::Object(fields) => {
            if let (2, Some(Value::String(base64)), Some(Value::String(subtype))) =
                (fields.len(), fields.get("$binary"), fields.get("$type"))
            {
                return serde_json::json!({"$binary": {"base64": base64, "subType": subtype}});
            }
            Value::Object(fields.into_iter().map(|(name, inner)| (name, modern(inner))).collect())
        }
        other => other,
    }
}

/// Reads the metadata of a collection.
pub(super) fn read_metadata(of: &Namespace, text: &str) -> Result<MadeCollection, SourceError> {
    let whole: Value =
        serde_json::from_str(text).map_err(|why| damaged(&format!("the metadata of {of}: {why}")))?;
    let mut whole = read_extended_json(whole)?;
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
