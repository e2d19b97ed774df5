//! Documents as extended JSON, one after the other, as mongoexport writes them.

use super::namespace::{Namespace, damaged};
use super::writer::DumpWriter;
use crate::format::RecordingTotals;
use crate::sources::extended_json::{JsonOf, read_line};
use crate::sources::{NewRecording, SourceError};
use dyno_types::limits::BSON_BYTES;
use std::io::{BufRead, Read, Write};

/// Longest line, bytes: a document in JSON may be several times as long as in BSON.
const LINE_BYTES: u64 = 8 * BSON_BYTES;

/// Returns whether a file begins as JSON documents do.
pub fn is_json(head: &[u8]) -> bool {
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Records documents as those of a collection.
///
/// # Errors
/// Names the line that is no document; or the recording cannot be written.
pub fn record_json_lines<W: Write>(
    input: &mut dyn BufRead,
    of: &Namespace,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let mut dump: Option<DumpWriter<W>> = None;
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        if Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let at_line = |why: String| SourceError::Unreadable(format!("line {number}: {why}"));
        if number == 1 && line.trim_ascii_start().starts_with(b"[") {
            return Err(at_line("an array: mongoexport without --jsonArray writes a document a line".into()));
        }
        let bytes = read_line(&line, JsonOf::Data).map_err(|why| at_line(why.to_string()))?;
        if bytes.len() as u64 > BSON_BYTES {
            return Err(at_line("a document longer than MongoDB can hold".into()));
        }
        let dump = match &mut dump {
            Some(dump) => dump,
            None => dump.insert(DumpWriter::begin(new)?),
        };
        dump.push_document(of, &bytes)?;
    }
    match dump {
        Some(dump) => dump.finish(),
        None => Err(damaged("it has no documents")),
    }
}
