//! Requests that change documents, each one transaction. Documents to be changed are found first, then each is read
//! again (which locks it, where the engine locks) and tested again before it is changed.

use super::change::{self, Edit};
use super::collection::{index_entry, walk};
use super::job::Job;
use super::query::{AccessPath, Query, operand, project};
use super::reads::BytePair;
use super::{OrderedFailure, RequestError, Writer, key, reads};
use dyno_types::bson::{self, kind};
use dyno_types::document::{Action, Change, DocumentFilter, FieldTest};
use dyno_types::{Executed, Outcome};

pub(super) fn execute(job: &Job<'_>, mut writer: impl Writer) -> Result<Executed, OrderedFailure> {
    let done = match job.action {
        Action::Insert { ordered } => each(job, *ordered, |number| {
            let mut document = Vec::new();
            job.content.document(job.request, number, &mut document);
            insert(job, &mut writer, &document)?;
            Ok(1)
        })?,
        Action::Update { filter, change, many, upsert, ordered } => each(job, *ordered, |number| {
            let query = job.query(filter, number)?;
            let mut changed = 0;
            for id in candidates(job, &mut writer, &query, *many)? {
                changed += u32::from(modify(job, &mut writer, &query, change, number, &id)?.is_some());
            }
            if changed == 0 && *upsert {
                upsert_one(job, &mut writer, filter, change, number)?;
                changed = 1;
            }
            Ok(changed)
        })?,
        Action::Delete { filter, many, ordered } => each(job, *ordered, |number| {
            let query = job.query(filter, number)?;
            let mut removed = 0;
            for id in candidates(job, &mut writer, &query, *many)? {
                removed += u32::from(remove(job, &mut writer, &query, &id)?);
            }
            Ok(removed)
        })?,
        Action::FindAndModify { .. } => (find_and_modify(job, &mut writer)?, None),
        _ => return Err(RequestError::ReadByWriting.into()),
    };
    let (records, failure) = done;
    if records > 0 {
        writer.commit()?;
    }
    match failure {
        Some(failure) => Err(failure),
        None if records == 0 && job.action.means_one() => Ok(Executed::new(Outcome::NotFound, 0)),
        None => Ok(Executed::new(Outcome::Ok, records)),
    }
}

/// Executes the statements of a request. The first failure of an ordered one is the request's; of an unordered one it
/// is handed back beside what the others have done.
fn each(
    job: &Job<'_>,
    ordered: bool,
    mut one: impl FnMut(u32) -> Result<u32, OrderedFailure>,
) -> Result<(u32, Option<OrderedFailure>), OrderedFailure> {
    let (mut records, mut first) = (0, None);
    for number in 0..job.content.documents(job.request) {
        match one(number) {
            Ok(more) => records += more,
            Err(failure) if !ordered && failure.is_one_statements() => {
                first.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((records, first))
}

/// Inserts a document and its entries in the indexes.
fn insert(job: &Job<'_>, writer: &mut impl Writer, document: &[u8]) -> Result<(), OrderedFailure> {
    let id = bson::find_element(document, "_id").ok_or(RequestError::NoId)?;
    if matches!(id.kind, kind::ARRAY | kind::REGEX) {
        return Err(RequestError::IdType.into());
    }
    let mut at = Vec::new();
    key::encode(&id, &mut at)?;
    if writer.get(job.collection.documents, &at, |_| ())?.is_some() {
        return Err(OrderedFailure::Duplicate);
    }
    index(job, writer, &at, None, Some(document))?;
    writer.put(job.collection.documents, &at, document)
}

/// Makes the indexes follow the change of a document. Nothing is changed where an index cannot hold the new one.
fn index(
    job: &Job<'_>,
    writer: &mut impl Writer,
    id: &[u8],
    old: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<(), OrderedFailure> {
    let entry = |index, document: Option<&[u8]>| -> Result<Option<BytePair>, OrderedFailure> {
        let Some(document) = document else { return Ok(None) };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        index_entry(index, document, id, &mut key, &mut value)?;
        Ok(Some((key, value)))
    };
    let mut changes = Vec::new();
    for index in &job.collection.indexes {
        let (old, new) = (entry(index, old)?, entry(index, new)?);
        if old != new {
            changes.push((index.table, old, new));
        }
    }
    for (table, old, new) in changes {
        if let Some((key, _)) = old {
            writer.delete(table, &key)?;
        }
        if let Some((key, value)) = new {
            writer.put(table, &key, &value)?;
        }
    }
    Ok(())
}

/// The keys of the documents that a statement may be about.
fn candidates(
    job: &Job<'_>,
    writer: &mut impl Writer,
    query: &Query<'_>,
    many: bool,
) -> Result<Vec<Vec<u8>>, OrderedFailure> {
    let plan = job.plan(query, &[]);
    if let (AccessPath::Points(keys), true) =
        (&plan.access, many || matches!(&plan.access, AccessPath::Points(k) if k.len() == 1))
    {
        return Ok(keys.clone());
    }
    let mut ids = Vec::new();
    walk(writer, job.collection, query, &plan, &mut |id, _| {
        ids.push(id.to_vec());
        Ok(many)
    })?;
    Ok(ids)
}

/// The document with this key, if it is one that the statement means.
fn meant(
    job: &Job<'_>,
    writer: &mut impl Writer,
    query: &Query<'_>,
    id: &[u8],
) -> Result<Option<Vec<u8>>, OrderedFailure> {
    let Some(document) = writer.get(job.collection.documents, id, <[u8]>::to_vec)? else { return Ok(None) };
    let meets = query.meets_all(&document, &mut Vec::new())?;
    Ok(meets.then_some(document))
}

/// Changes the document with this key, if it is meant; tells what it was and is.
fn modify(
    job: &Job<'_>,
    writer: &mut impl Writer,
    query: &Query<'_>,
    change: &Change,
    number: u32,
    id: &[u8],
) -> Result<Option<BytePair>, OrderedFailure> {
    let Some(old) = meant(job, writer, query, id)? else { return Ok(None) };
    let new = changed(job, &old, change, number)?;
    if new != old {
        index(job, writer, id, Some(&old), Some(&new))?;
        writer.put(job.collection.documents, id, &new)?;
    }
    Ok(Some((old, new)))
}

fn remove(
    job: &Job<'_>,
    writer: &mut impl Writer,
    query: &Query<'_>,
    id: &[u8],
) -> Result<bool, OrderedFailure> {
    let Some(old) = meant(job, writer, query, id)? else { return Ok(false) };
    index(job, writer, id, Some(&old), None)?;
    writer.delete(job.collection.documents, id)?;
    Ok(true)
}

/// The document after a change.
fn changed(job: &Job<'_>, old: &[u8], change: &Change, number: u32) -> Result<Vec<u8>, RequestError> {
    let mut out = Vec::with_capacity(old.len() + 64);
    match change {
        Change::Fields(fields) => {
            let (mut before, mut bytes) = (old.to_vec(), Vec::new());
            for (modify, path, wanted) in fields {
                let value = operand(&mut job.render(number), *wanted, &mut bytes)?;
                out.clear();
                change::apply(&before, &Edit { modify: *modify, path, value }, &mut out)?;
                std::mem::swap(&mut before, &mut out);
            }
            return Ok(before);
        }
        Change::SetDocument | Change::Replace => {
            let mut document = Vec::new();
            job.content.document(job.request, number, &mut document);
            match change {
                Change::Replace => change::replace(old, &document, &mut out)?,
                _ => change::set_all(old, &document, &mut out)?,
            }
        }
    }
    Ok(out)
}

/// Inserts what the filter's equalities and the change make of an empty document.
fn upsert_one(
    job: &Job<'_>,
    writer: &mut impl Writer,
    filter: &DocumentFilter,
    change: &Change,
    number: u32,
) -> Result<Vec<u8>, OrderedFailure> {
    let document = fresh(job, filter, change, number)?;
    insert(job, writer, &document)?;
    Ok(document)
}

fn fresh(
    job: &Job<'_>,
    filter: &DocumentFilter,
    change: &Change,
    number: u32,
) -> Result<Vec<u8>, RequestError> {
    let mut base = Vec::new();
    let at = bson::open(&mut base);
    let equal = |path_is_id: bool| {
        filter.0.iter().filter_map(move |condition| match condition.test {
            FieldTest::Equal(wanted) if (condition.field == "_id") == path_is_id => {
                Some((&condition.field, wanted))
            }
            _ => None,
        })
    };
    let mut bytes = Vec::new();
    if let Some((_, wanted)) = equal(true).next() {
        let id = operand(&mut job.render(number), wanted, &mut bytes)?;
        change::element(&mut base, b"_id", &id);
    } else if matches!(change, Change::SetDocument | Change::Replace) {
        let mut document = Vec::new();
        job.content.document(job.request, number, &mut document);
        if let Some(id) = bson::find_element(&document, "_id") {
            change::element(&mut base, b"_id", &id);
        }
    }
    bson::close(&mut base, at);
    if *change != Change::Replace {
        for (path, wanted) in equal(false) {
            let value = operand(&mut job.render(number), wanted, &mut bytes)?;
            let mut next = Vec::new();
            let edit = Edit { modify: dyno_types::document::Modify::Set, path, value };
            change::apply(&base, &edit, &mut next)?;
            base = next;
        }
    }
    changed(job, &base, change, number)
}

/// Changes the first document; it is shown as it was or is. Counts it, or the one inserted.
fn find_and_modify(job: &Job<'_>, writer: &mut impl Writer) -> Result<u32, OrderedFailure> {
    let Action::FindAndModify { filter, change, fields, sort, upsert, returns_new } = job.action else {
        return Ok(0);
    };
    let query = job.query(filter, 0)?;
    let done = match reads::first(job, writer, filter, sort)? {
        Some(id) => modify(job, writer, &query, change, 0, &id)?,
        None => None,
    };
    let shown = match done {
        Some((old, new)) => Some(if *returns_new { new } else { old }),
        None if *upsert => Some(upsert_one(job, writer, filter, change, 0)?).filter(|_| *returns_new),
        None => return Ok(0),
    };
    if let Some(document) = shown {
        let mut out = Vec::new();
        project(&document, fields, &mut out);
        reads::show(job, 0, &out);
    }
    Ok(1)
}
