//! Reading the fields a request asks for, and checking them: the same for every store. Fetching the bytes is each
//! store's own affair.
//!
//! A read is right if every value asked for is there and is what `Content::verify` expects. Records found by a scan are
//! read but not verified: a request renders the expected values of its own record only.

use crate::record::{self, RecordError};
use dyno_types::{Content, Executed, Fields, Outcome, RecordVerification, Request, Verb};
use std::time::Instant;

/// The request that stands for writing a whole record; its fields are the fields of a record.
pub(crate) fn whole_record() -> Request {
    Request { verb: Verb::Insert, fields: Fields::All, ..Request::default() }
}

/// The check of one record read. It costs nothing where the content cannot verify.
pub(crate) struct RecordCheck<'c> {
    content: &'c dyn Content,
    request: &'c Request,
    /// When it began, if the content can verify.
    since: Option<Instant>,
    right: bool,
}

impl<'c> RecordCheck<'c> {
    /// Starts the check of the record that `request` addresses.
    pub(crate) fn new(content: &'c dyn Content, request: &'c Request) -> Self {
        RecordCheck { content, request, since: content.verifies().then(Instant::now), right: true }
    }

    /// Takes note of a value read.
    pub(crate) fn value(&mut self, name: &[u8], value: &[u8]) {
        if self.since.is_some() && self.right {
            self.right = self.content.verify(self.request, name, value);
        }
    }

    /// Takes note of a field that was asked for and is not there.
    pub(crate) fn missing(&mut self) {
        self.right = false;
    }

    /// The result, for `Executed::verified`.
    pub(crate) fn verified(&self) -> Option<RecordVerification> {
        let outcome = if self.right { Outcome::Ok } else { Outcome::Mismatch };
        self.since.map(|since| RecordVerification { outcome, took_ns: since.elapsed().as_nanos() as u64 })
    }
}

/// Reads from an encoded record the fields `request` asks for; a whole record has `whole` fields. `name` is a buffer.
/// `note` sees every value, or `None` for a field that is missing.
pub(crate) fn read_fields(
    content: &dyn Content,
    request: &Request,
    whole: usize,
    bytes: &[u8],
    name: &mut Vec<u8>,
    mut note: impl FnMut(Option<(&[u8], &[u8])>),
) -> Result<(), RecordError> {
    let named = content.fields(request);
    if named == 0 {
        let mut found = 0;
        for field in record::fields(bytes) {
            note(Some(field?));
            found += 1;
        }
        (found..whole).for_each(|_| note(None));
        return Ok(());
    }
    // Fields are usually named in the order in which they are stored: go on from the last one, then look at all.
    let mut walk = record::fields(bytes);
    for field in 0..named {
        name.clear();
        content.name(request, field, name);
        let mut found = find(&mut walk, name)?;
        if found.is_none() {
            walk = record::fields(bytes);
            found = find(&mut walk, name)?;
        }
        note(found);
    }
    Ok(())
}

type FoundField<'r> = Option<(&'r [u8], &'r [u8])>;

fn find<'r>(walk: &mut record::FieldIter<'r>, name: &[u8]) -> Result<FoundField<'r>, RecordError> {
    for field in walk {
        let field = field?;
        if field.0 == name {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

/// Encodes the record that a writing `request` describes.
pub(crate) fn encode(content: &dyn Content, request: &Request, out: &mut Vec<u8>) -> Result<(), RecordError> {
    out.clear();
    for field in 0..content.fields(request) {
        record::push_with(
            out,
            |out| content.name(request, field, out),
            |out| content.value(request, field, out),
        )?;
    }
    Ok(())
}

/// Gives the fields that `request` writes their new values in the encoded `record`. `name` and `value` are buffers.
pub(crate) fn update(
    content: &dyn Content,
    request: &Request,
    record: &mut Vec<u8>,
    name: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<(), RecordError> {
    for field in 0..content.fields(request) {
        name.clear();
        content.name(request, field, name);
        value.clear();
        content.value(request, field, value);
        record::replace(record, name, value)?;
    }
    Ok(())
}

/// The buffers of one session on a key-value store, reused for request after request.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The key.
    pub(crate) key: Vec<u8>,
    /// A field's name.
    pub(crate) name: Vec<u8>,
    /// A field's value.
    pub(crate) value: Vec<u8>,
    /// An encoded record.
    pub(crate) record: Vec<u8>,
}

impl Buffers {
    /// Renders the key of `request`.
    pub(crate) fn render_key(&mut self, content: &dyn Content, request: &Request) {
        self.key.clear();
        content.key(request, &mut self.key);
    }

    /// Makes `record` the record that a writing `request` describes.
    pub(crate) fn render_record(
        &mut self,
        content: &dyn Content,
        request: &Request,
    ) -> Result<(), RecordError> {
        encode(content, request, &mut self.record)
    }

    /// Makes `record` the record `stored`, with the fields that `request` writes at their new values.
    pub(crate) fn render_update(
        &mut self,
        content: &dyn Content,
        request: &Request,
        stored: &[u8],
    ) -> Result<(), RecordError> {
        self.record.clear();
        self.record.extend_from_slice(stored);
        update(content, request, &mut self.record, &mut self.name, &mut self.value)
    }

    /// Reads the fields `request` asks for from one `stored` record and checks them.
    pub(crate) fn read(
        &mut self,
        content: &dyn Content,
        request: &Request,
        whole: usize,
        stored: &[u8],
    ) -> Result<Executed, RecordError> {
        let mut check = RecordCheck::new(content, request);
        read_fields(content, request, whole, stored, &mut self.name, |field| match field {
            Some((name, value)) => check.value(name, value),
            None => check.missing(),
        })?;
        Ok(Executed { outcome: Outcome::Ok, records: 1, verified: check.verified() })
    }

    /// Reads the fields `request` asks for from the record that a scan has found as number `record`, from 0.
    pub(crate) fn pass(
        &mut self,
        content: &dyn Content,
        request: &Request,
        record: u32,
        stored: &[u8],
    ) -> Result<(), RecordError> {
        let watched = content.watches_scans();
        read_fields(content, request, 0, stored, &mut self.name, |field| {
            if let (true, Some((name, value))) = (watched, field) {
                content.scanned(record, name, value);
            }
            std::hint::black_box(field);
        })
    }
}
