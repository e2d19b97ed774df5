//! Requests that read documents. What is found is shown to contents that watch scans: each document as a whole, under
//! an empty name.

use super::collection::walk;
use super::job::Job;
use super::query::{project, sort_key};
use super::{OrderedFailure, Reader, RequestError, key};
use dyno_types::bson::{self, Element, kind};
use dyno_types::document::{Action, AggregationStage, DocumentFilter, Projection, SortOrder};
use dyno_types::{Executed, Outcome};
use std::collections::HashSet;
use std::hint::black_box;

/// A filter that every document meets.
static ALL: DocumentFilter = DocumentFilter(Vec::new());
static WHOLE: Projection = Projection(Vec::new());

/// Two runs of bytes that belong together.
pub(super) type BytePair = (Vec<u8>, Vec<u8>);

/// An aggregation's matches, its sort and its limit, if it consists of nothing else, in this order.
type Stages<'s> = (Option<&'s DocumentFilter>, &'s [(String, SortOrder)], u32);

pub(super) fn stages(pipeline: &[AggregationStage]) -> Result<Stages<'_>, RequestError> {
    let (mut filter, mut sort, mut limit) = (None, &[][..], 0);
    for (number, stage) in pipeline.iter().enumerate() {
        match stage {
            AggregationStage::Match(first) if number == 0 => filter = Some(first),
            AggregationStage::Sort(by) if sort.is_empty() && limit == 0 => sort = by,
            AggregationStage::Limit(most) if limit == 0 => limit = *most,
            AggregationStage::Raw(_) => return Err(RequestError::RawStage),
            _ => return Err(RequestError::Stages),
        }
    }
    Ok((filter, sort, limit))
}

pub(super) fn execute(job: &Job<'_>, reader: &mut impl Reader) -> Result<Executed, OrderedFailure> {
    let records = match job.action {
        Action::Find { filter, fields, sort, limit, .. } => {
            let records =
                find(job, reader, (Some(filter), sort, limit.unwrap_or(job.request.limit)), fields)?;
            if job.action.means_one() && records == 0 {
                return Ok(Executed::new(Outcome::NotFound, 0));
            }
            records
        }
        Action::Aggregate { pipeline } => find(job, reader, stages(pipeline)?, &WHOLE)?,
        Action::Sum { filter, field, result } => sum(job, reader, filter, field, result)?,
        Action::Distinct { filter, field } => distinct(job, reader, filter, field)?,
        _ => return Err(RequestError::WriteByReading.into()),
    };
    Ok(Executed::new(Outcome::Ok, records))
}

/// Shows a result to the content.
pub(super) fn show(job: &Job<'_>, number: u32, document: &[u8]) {
    if job.content.watches_scans() {
        job.content.scanned(number, b"", document);
    }
    black_box(document);
}

fn find(
    job: &Job<'_>,
    reader: &mut impl Reader,
    (filter, sort, limit): Stages<'_>,
    fields: &Projection,
) -> Result<u32, OrderedFailure> {
    let query = job.query(filter.unwrap_or(&ALL), 0)?;
    let plan = job.plan(&query, sort);
    let (mut records, mut out) = (0, Vec::new());
    let mut result = |document: &[u8]| {
        out.clear();
        project(document, fields, &mut out);
        show(job, records, &out);
        records += 1;
        limit == 0 || records < limit
    };
    if plan.sorted {
        walk(reader, job.collection, &query, &plan, &mut |_, document| Ok(result(document)))?;
        return Ok(records);
    }
    let (mut all, mut value) = (Vec::new(), Vec::new());
    walk(reader, job.collection, &query, &plan, &mut |_, document| {
        let mut by = Vec::new();
        sort_key(document, sort, &mut value, &mut by)?;
        all.push((by, document.to_vec()));
        Ok(true)
    })?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, document) in &all {
        if !result(document) {
            break;
        }
    }
    Ok(records)
}

/// The key of the first document in the order of `sort`.
pub(super) fn first(
    job: &Job<'_>,
    reader: &mut impl Reader,
    filter: &DocumentFilter,
    sort: &[(String, SortOrder)],
) -> Result<Option<Vec<u8>>, OrderedFailure> {
    let query = job.query(filter, 0)?;
    let plan = job.plan(&query, sort);
    let (mut best, mut value): (Option<BytePair>, Vec<u8>) = (None, Vec::new());
    walk(reader, job.collection, &query, &plan, &mut |id, document| {
        let mut by = Vec::new();
        if !plan.sorted {
            sort_key(document, sort, &mut value, &mut by)?;
        }
        if best.as_ref().is_none_or(|(least, _)| by < *least) {
            best = Some((by, id.to_vec()));
        }
        Ok(!plan.sorted)
    })?;
    Ok(best.map(|(_, id)| id))
}

/// Adds up what is a number; whole numbers stay whole as long as 64 bits hold them.
fn sum(
    job: &Job<'_>,
    reader: &mut impl Reader,
    filter: &DocumentFilter,
    field: &str,
    result: &str,
) -> Result<u32, OrderedFailure> {
    let query = job.query(filter, 0)?;
    let plan = job.plan(&query, &[]);
    let (mut whole, mut real) = (Some(0i64), 0.0);
    walk(reader, job.collection, &query, &plan, &mut |_, document| {
        match bson::element_at_path(document, field) {
            Some(number) if number.kind == kind::DOUBLE => {
                real += number.as_f64().unwrap_or_default();
                whole = None;
            }
            Some(number) if super::change::is_number(&number) => {
                let n = number.as_i64().unwrap_or_default();
                real += n as f64;
                whole = whole.and_then(|sum| sum.checked_add(n));
            }
            _ => {}
        }
        Ok(true)
    })?;
    let mut out = Vec::new();
    let at = bson::open(&mut out);
    match whole {
        Some(sum) => bson::put_int64(&mut out, result, sum),
        None => bson::put_double(&mut out, result, real),
    }
    bson::close(&mut out, at);
    show(job, 0, &out);
    Ok(1)
}

/// Different values, by what they are worth; of an array its items.
fn distinct(
    job: &Job<'_>,
    reader: &mut impl Reader,
    filter: &DocumentFilter,
    field: &str,
) -> Result<u32, OrderedFailure> {
    let query = job.query(filter, 0)?;
    let plan = job.plan(&query, &[]);
    let (mut seen, mut records, mut out) = (HashSet::new(), 0, Vec::new());
    let mut add = |element: &Element<'_>| -> Result<(), RequestError> {
        let mut value = Vec::new();
        key::encode(element, &mut value)?;
        if seen.insert(value) {
            out.clear();
            let at = bson::open(&mut out);
            super::change::element(&mut out, b"v", element);
            bson::close(&mut out, at);
            show(job, records, &out);
            records += 1;
        }
        Ok(())
    };
    walk(reader, job.collection, &query, &plan, &mut |_, document| {
        let added = match bson::element_at_path(document, field) {
            Some(array) if array.kind == kind::ARRAY => bson::read_elements(array.value)
                .into_iter()
                .flatten()
                .flatten()
                .try_for_each(|item| add(&item)),
            Some(element) => add(&element),
            None => Ok(()),
        };
        added?;
        Ok(true)
    })?;
    Ok(records)
}
