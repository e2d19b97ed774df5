//! A collection and its indexes, open: entries of indexes, and walking along what a query means.
//!
//! A collection is a table from the key of a document's `_id` to the document; an index is a table from the key of the
//! field's value and that of the `_id` to where the latter begins.

use super::query::{AccessPath, Query, QueryPlan};
use super::{OrderedFailure, Reader, RequestError, key};
use dyno_types::bson::{self, kind};
use dyno_types::document::SortOrder;

/// A collection, open.
pub(super) struct Collection {
    pub(super) documents: usize,
    pub(super) indexes: Vec<FieldIndex>,
}

/// An index on one field.
pub(super) struct FieldIndex {
    pub(super) field: String,
    pub(super) table: usize,
}

/// Makes `key` and `value` the entry of a document in an index.
pub(super) fn index_entry(
    index: &FieldIndex,
    document: &[u8],
    id: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let field = bson::element_at_path(document, &index.field);
    if field.is_some_and(|field| field.kind == kind::ARRAY) {
        return Err(RequestError::IndexesArray(index.field.clone()));
    }
    key.clear();
    key::encode_field(field.as_ref(), key)?;
    value.clear();
    value.extend_from_slice(&(key.len() as u32).to_le_bytes());
    key.extend_from_slice(id);
    Ok(())
}

/// The key of the document that an entry of an index leads to.
fn id_of<'k>(key: &'k [u8], value: &[u8]) -> Result<&'k [u8], OrderedFailure> {
    let at = value.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize);
    at.and_then(|at| key.get(at..)).ok_or(OrderedFailure::BrokenIndex)
}

/// Sees the key of a document and the document; false ends the walk.
pub(super) type DocumentVisitor<'f> = dyn FnMut(&[u8], &[u8]) -> Result<bool, OrderedFailure> + 'f;

/// Entries of an index that are read before their documents are, at first and at most.
const CHUNK: (usize, usize) = (16, 1024);

/// Shows the documents that `query` means, in the order of the plan.
pub(super) fn walk(
    reader: &mut impl Reader,
    collection: &Collection,
    query: &Query<'_>,
    plan: &QueryPlan,
    found: &mut DocumentVisitor<'_>,
) -> Result<(), OrderedFailure> {
    let mut value = Vec::new();
    let mut tested = |id: &[u8], document: &[u8]| match query.meets(document, plan, &mut value) {
        Ok(true) => found(id, document),
        Ok(false) => Ok(true),
        Err(why) => Err(why.into()),
    };
    let downwards = plan.order == SortOrder::Descending;
    let table = collection.documents;
    match &plan.access {
        AccessPath::Points(keys) => {
            let mut show = |id: &Vec<u8>| -> Result<bool, OrderedFailure> {
                reader.get(table, id, |document| tested(id, document))?.unwrap_or(Ok(true))
            };
            in_order(keys, downwards, &mut show)
        }
        AccessPath::Documents(ranges) => {
            let mut goes_on = true;
            in_order(ranges, downwards, &mut |(low, high)| {
                reader.range(table, low, high, plan.order, &mut |id, document| {
                    goes_on = tested(id, document)?;
                    Ok(goes_on)
                })?;
                Ok(goes_on)
            })
        }
        AccessPath::Index(index, ranges) => {
            let index = collection.indexes[*index].table;
            in_order(ranges, downwards, &mut |range| {
                along_index(reader, (index, table), range, plan.order, &mut tested)
            })
        }
    }
}

fn in_order<T>(
    all: &[T],
    downwards: bool,
    show: &mut dyn FnMut(&T) -> Result<bool, OrderedFailure>,
) -> Result<(), OrderedFailure> {
    for number in 0..all.len() {
        let at = if downwards { all.len() - 1 - number } else { number };
        if !show(&all[at])? {
            break;
        }
    }
    Ok(())
}

/// Walks along an index a chunk at a time: an engine cannot be asked for documents while it walks.
fn along_index(
    reader: &mut impl Reader,
    (index, documents): (usize, usize),
    (low, high): &(Vec<u8>, Vec<u8>),
    order: SortOrder,
    tested: &mut DocumentVisitor<'_>,
) -> Result<bool, OrderedFailure> {
    let (mut low, mut high, mut chunk) = (low.clone(), high.clone(), CHUNK.0);
    loop {
        let mut ids: Vec<Vec<u8>> = Vec::with_capacity(chunk);
        let mut last = Vec::new();
        reader.range(index, &low, &high, order, &mut |key, value| {
            ids.push(id_of(key, value)?.to_vec());
            if ids.len() == chunk {
                last.extend_from_slice(key);
            }
            Ok(ids.len() < chunk)
        })?;
        for id in &ids {
            let goes_on = reader.get(documents, id, |document| tested(id, document))?.unwrap_or(Ok(true))?;
            if !goes_on {
                return Ok(false);
            }
        }
        if ids.len() < chunk {
            return Ok(true);
        }
        match order {
            // The next key is this one with a zero byte more.
            SortOrder::Ascending => {
                last.push(0);
                low = last;
            }
            SortOrder::Descending => high = last,
        }
        chunk = (chunk * 2).min(CHUNK.1);
    }
}
