//! Which indexes a collection has. An index is entered in the transaction that fills it, so that it is there whole or
//! not at all, and it is kept up by every later user of the collection, whether its workload asks for it or not.

use super::collection::{Collection, FieldIndex, index_entry};
use super::{Handle, OrderedFailure, Reader, RequestError, Writer, key};
use dyno_types::document::SortOrder;

/// The table of all indexes: collection, 0, name of the index -> field.
const CATALOG: &str = "dyno.catalog";

/// Opens the collection called `name` with the indexes it has, and makes those of `wanted` (name, field) that it lacks.
pub(super) fn collection<H: Handle>(
    handle: &mut H,
    name: &str,
    wanted: &[(String, String)],
) -> Result<Collection, OrderedFailure> {
    if name.is_empty() || name.contains('\0') || name == CATALOG {
        return Err(RequestError::CollectionName(name.into()).into());
    }
    let catalog = handle.table(CATALOG)?;
    let documents = handle.table(name)?;
    let mut prefix = name.as_bytes().to_vec();
    prefix.push(0);
    let mut known: Vec<(String, String)> = Vec::new();
    handle.read()?.range(
        catalog,
        &prefix,
        &key::after(&prefix),
        SortOrder::Ascending,
        &mut |entry, field| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            known.push((text(&entry[prefix.len()..]), text(field)));
            Ok(true)
        },
    )?;
    let mut indexes = Vec::new();
    for (index, field) in &known {
        indexes.push(FieldIndex { field: field.clone(), table: handle.table(&table_of(name, index))? });
    }
    for (index, field) in wanted {
        match known.iter().find(|(there, _)| there == index) {
            Some((_, there)) if there == field => {}
            Some((_, there)) => {
                let [collection, index, there, field] = [name, index, there, field].map(str::to_owned);
                return Err(RequestError::OtherIndex { collection, index, there, field }.into());
            }
            None => {
                let made = FieldIndex { field: field.clone(), table: handle.table(&table_of(name, index))? };
                let mut entry = prefix.clone();
                entry.extend_from_slice(index.as_bytes());
                fill(handle.write()?, documents, &made, (catalog, &entry))?;
                indexes.push(made);
            }
        }
    }
    Ok(Collection { documents, indexes })
}

/// Removes the documents of the collection called `name` and its indexes, in transactions of [`AT_ONCE`] entries.
pub(super) fn drop_collection<H: Handle>(handle: &mut H, name: &str) -> Result<(), OrderedFailure> {
    let dropped = collection(handle, name, &[])?;
    for table in dropped.indexes.iter().map(|index| index.table).chain([dropped.documents]) {
        clear(handle, table, (&[], &[]))?;
    }
    let mut prefix = name.as_bytes().to_vec();
    prefix.push(0);
    let catalog = handle.table(CATALOG)?;
    clear(handle, catalog, (&prefix, &key::after(&prefix)))
}

/// Entries that are removed by one transaction.
const AT_ONCE: usize = 1_000;

/// Removes the keys of a table from `low` on and below `high`.
fn clear<H: Handle>(handle: &mut H, table: usize, (low, high): (&[u8], &[u8])) -> Result<(), OrderedFailure> {
    loop {
        let mut keys = Vec::new();
        handle.read()?.range(table, low, high, SortOrder::Ascending, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(keys.len() < AT_ONCE)
        })?;
        if keys.is_empty() {
            return Ok(());
        }
        let mut writer = handle.write()?;
        for key in &keys {
            writer.delete(table, key)?;
        }
        writer.commit()?;
    }
}

fn table_of(collection: &str, index: &str) -> String {
    format!("{collection}.{index}")
}

/// Enters an index in the catalog and the documents that are there in the index.
fn fill(
    mut writer: impl Writer,
    documents: usize,
    index: &FieldIndex,
    (catalog, entry): (usize, &[u8]),
) -> Result<(), OrderedFailure> {
    let mut entries = Vec::new();
    writer.range(documents, &[], &[], SortOrder::Ascending, &mut |id, document| {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        index_entry(index, document, id, &mut key, &mut value)?;
        entries.push((key, value));
        Ok(true)
    })?;
    for (key, value) in &entries {
        writer.put(index.table, key, value)?;
    }
    writer.put(catalog, entry, index.field.as_bytes())?;
    writer.commit()
}
