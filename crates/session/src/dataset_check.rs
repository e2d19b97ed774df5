//! Check of the records that are there against those that a run would load: a load is skipped only for records of
//! the same shape.

use crate::existing_records::{are_records_present, count_found, count_range};
use dyno_db::collections::Collections;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, RunError};
use dyno_types::bson::{self, kind};
use dyno_types::{Content, RefusalCode, Refused, Request, Verb};
use dyno_workload::Workload;
use dyno_workload::ycsb::CoreConfig;
use dyno_workload::ycsb::content::CoreContent;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that are looked at.
const SAMPLES: u64 = 20;

/// Fields of records with the lengths that were seen, bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RecordShape {
    fields: BTreeMap<Vec<u8>, (usize, usize)>,
}

impl RecordShape {
    fn see(&mut self, field: &[u8], length: usize) {
        let seen = self.fields.entry(field.to_vec()).or_insert((length, length));
        *seen = (seen.0.min(length), seen.1.max(length));
    }

    /// Describes the records that `content` would make.
    fn wanted(content: &dyn Content) -> Self {
        let mut shape = RecordShape::default();
        for seed in 0..1_000 {
            let request = Request { verb: Verb::Insert, seed, ..Request::default() };
            for field in 0..content.fields(&request) {
                let mut name = Vec::new();
                content.name(&request, field, &mut name);
                shape.see(&name, content.value_len(&request, field));
            }
        }
        shape
    }

    fn lengths(&self) -> (usize, usize) {
        let all = self.fields.values();
        all.fold((usize::MAX, 0), |(least, most), (low, high)| (least.min(*low), most.max(*high)))
    }

    /// Returns whether `stored` are records of this shape: the same fields, and lengths that this shape has.
    fn holds(&self, stored: &RecordShape) -> bool {
        let (least, most) = self.lengths();
        let (low, high) = stored.lengths();
        self.fields.keys().eq(stored.fields.keys()) && low >= least && high <= most
    }
}

impl fmt::Display for RecordShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.lengths();
        let count = self.fields.len();
        let name =
            |name: Option<&Vec<u8>>| name.map_or(String::new(), |n| String::from_utf8_lossy(n).into_owned());
        let fields = match count {
            0 => return f.write_str("no fields"),
            1 => format!("1 field ({})", name(self.fields.keys().next())),
            _ => format!("{count} fields ({} ...)", name(self.fields.keys().next())),
        };
        match least == most {
            true => write!(f, "{fields} of {most} bytes"),
            false => write!(f, "{fields} of {least} to {most} bytes"),
        }
    }
}

/// A content that takes note of what is read instead of checking it.
struct ExistingRecordsCheck {
    inner: Arc<dyn Content>,
    seen: Mutex<RecordShape>,
}

impl Content for ExistingRecordsCheck {
    fn table(&self) -> &str {
        self.inner.table()
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        self.inner.key(request, out);
    }

    fn fields(&self, request: &Request) -> usize {
        self.inner.fields(request)
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.inner.name(request, field, out);
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        self.inner.value_len(request, field)
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.inner.value(request, field, out);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, _request: &Request, field: &[u8], value: &[u8]) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).see(field, value.len());
        true
    }
}

/// Documents that are rendered to see what those of a run look like.
pub const DOCUMENTS: u64 = 200;

/// A field of documents: what its values are, and how long they are, least and most.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    is: &'static str,
    length: (usize, usize),
}

/// Values of several kinds.
const MIXED: &str = "of several kinds";

impl Field {
    /// Returns whether `stored` may be such a value; columns of an embedded store have whole numbers for dates and truth values.
    fn is_kept_as(&self, stored: &Field, embedded: bool) -> bool {
        self.is == stored.is || embedded && stored.is == NUMBER && [DATE, TRUTH].contains(&self.is)
    }
}

const NUMBER: &str = "a number";
const DATE: &str = "a date";
const TRUTH: &str = "true or false";

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length {
            (0, 0) => f.write_str(self.is),
            (least, most) if least == most => write!(f, "{} of {most} bytes", self.is),
            (least, most) => write!(f, "{} of {least} to {most} bytes", self.is),
        }
    }
}

/// The fields of a document by name. Numbers of any width are one kind; only texts and bytes have a length that counts.
fn fields_of(document: &[u8]) -> BTreeMap<String, Field> {
    let all = bson::read_elements(document).into_iter().flatten().flatten();
    let field = |element: &bson::Element<'_>| {
        let (is, length) = match element.kind {
            kind::STRING => ("text", element.value.len().saturating_sub(5)),
            kind::BINARY => ("binary", element.value.len().saturating_sub(5)),
            kind::INT32 | kind::INT64 | kind::DOUBLE => (NUMBER, 0),
            kind::DOCUMENT => ("a document", 0),
            kind::ARRAY => ("an array", 0),
            kind::OBJECT_ID => ("an ObjectId", 0),
            kind::DATE => (DATE, 0),
            kind::BOOLEAN => (TRUTH, 0),
            _ => ("another kind", 0),
        };
        Field { is, length: (length, length) }
    };
    all.map(|element| (String::from_utf8_lossy(element.name).into_owned(), field(&element))).collect()
}

/// Merges the fields of several documents: each field as the first shows it, with all lengths.
fn fields_of_all(documents: &[Vec<u8>]) -> BTreeMap<String, Field> {
    let mut all: BTreeMap<String, Field> = BTreeMap::new();
    for (name, field) in documents.iter().flat_map(|document| fields_of(document)) {
        let known = all.entry(name).or_insert_with(|| field.clone());
        if known.is != field.is {
            known.is = MIXED;
        }
        known.length = (known.length.0.min(field.length.0), known.length.1.max(field.length.1));
    }
    all
}

/// Refuses a collection none of whose first documents looks like those `wanted`: fields that are missing, of another kind or of
/// another length, `changed` ones aside. `ways` say how to go on.
pub fn same_documents(
    collections: &dyn Collections,
    collection: &str,
    wanted: &[Vec<u8>],
    changed: &[String],
    ways: &str,
) -> Result<(), RunError> {
    look_alike(collections, collection, wanted, changed, (Many::Some, ways))
}

/// How many of the documents that are looked at must be as those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    /// One at least: others may have come since.
    Some,
    /// All of them.
    All,
}

/// As [`same_documents`].
pub(crate) fn look_alike(
    collections: &dyn Collections,
    collection: &str,
    wanted: &[Vec<u8>],
    changed: &[String],
    (many, ways): (Many, &str),
) -> Result<(), RunError> {
    let stored = collections.sample(collection, SAMPLES as u32)?;
    let names = |fields: &BTreeMap<String, Field>| fields.keys().cloned().collect::<Vec<_>>().join(", ");
    let (wanted, all) = (fields_of_all(wanted), fields_of_all(&stored));
    let refuse = |what: String| {
        Err(RunError::from(Refused::new(
            RefusalCode::OtherData,
            "phases.load.when",
            format!("{collection} holds documents {what}: {ways}"),
        )))
    };
    if stored.is_empty() {
        return Ok(());
    }
    let is_changed = |name: &str| changed.iter().any(|one| one.is_empty() || one == name);
    for (name, field) in wanted.iter().filter(|(name, field)| !is_changed(name) && field.is != MIXED) {
        let fits = |document: &Vec<u8>| {
            fields_of(document).get(name).is_some_and(|own| {
                field.is_kept_as(own, collections.is_embedded())
                    && own.length.0 >= field.length.0
                    && own.length.1 <= field.length.1
            })
        };
        let fit = if many == Many::All { stored.iter().all(fits) } else { stored.iter().any(fits) };
        if fit {
            continue;
        }
        return match all.get(name) {
            None => {
                refuse(format!("with the fields {}, those of this run have {}", names(&all), names(&wanted)))
            }
            Some(own) => refuse(format!("whose field {name} is {own}, in those of this run it is {field}")),
        };
    }
    Ok(())
}

/// Counts those of `keys` records that are there, `stride` apart from `first` on, and refuses if any of them has another shape;
/// `ways` say how to go on.
pub(crate) fn count_alike(
    opened: &dyn OpenTarget,
    content: &Arc<dyn Content>,
    range: (u64, u64),
    keys: u64,
    ways: &str,
    control: &Arc<Control>,
) -> Result<u64, RunError> {
    let looking = Arc::new(ExistingRecordsCheck { inner: content.clone(), seen: Mutex::default() });
    let looked: Arc<dyn Content> = looking.clone();
    let there = count_range(opened, &looked, range, keys, control)?;
    let stored = looking.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let wanted = RecordShape::wanted(content.as_ref());
    if stored.fields.is_empty() || wanted.holds(&stored) {
        return Ok(there);
    }
    let message =
        format!("some of the records that are there have {stored}, those of the run {wanted}: {ways}");
    Err(Refused::new(RefusalCode::OtherData, "target", message).into())
}

/// Returns whether the records that `workload` expects are there; refuses where records of another shape, or under
/// keys of another form, are. `ways` say how to go on.
pub fn present_as(
    opened: &dyn OpenTarget,
    workload: &Arc<dyn Workload>,
    config: &CoreConfig,
    ways: &str,
    control: &Arc<Control>,
) -> Result<bool, RunError> {
    let Some((count, first)) = workload.expects().filter(|(count, _)| *count > 0) else { return Ok(true) };
    let samples = count.min(SAMPLES);
    let refuse = |what: String| {
        Err(RunError::from(Refused::new(
            RefusalCode::OtherData,
            "phases.load.when",
            format!("{what}: {ways}"),
        )))
    };
    if !are_records_present(opened, workload, control)? {
        let mut other = config.clone();
        other.names.hashed = !config.names.hashed;
        let content = CoreContent::new(&other)
            .map_err(|bad| Refused::new(RefusalCode::BadValue, &bad.key, bad.to_string()))?;
        let content: Arc<dyn Content> = Arc::new(content);
        if count_found(opened, &content, (first, count), samples, control)?.there < samples {
            return Ok(false);
        }
        let form = |hashed: bool| if hashed { "hashed" } else { "ordered" };
        return refuse(format!(
            "the records that are there have {} keys (insertorder), this run asks for {} ones",
            form(other.names.hashed),
            form(config.names.hashed)
        ));
    }
    let looking = Arc::new(ExistingRecordsCheck { inner: workload.content(), seen: Mutex::default() });
    let content: Arc<dyn Content> = looking.clone();
    count_found(opened, &content, (first, count), samples, control)?;
    let stored = looking.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let wanted = RecordShape::wanted(workload.content().as_ref());
    if stored.fields.is_empty() || wanted.holds(&stored) {
        return Ok(true);
    }
    refuse(format!("the records that are there have {stored}, those of this run {wanted}"))
}
