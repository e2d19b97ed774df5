//! Archives of mongodump (`--archive`).
//!
//! ```text
//! 0x8199e26d u32 | header document | a document for each collection: db, collection, metadata | -1 i32
//! then, in any order: {db, collection, EOF, CRC} | documents | -1 i32; the last one of a collection has EOF and no documents
//! ```

use super::namespace::{Namespace, damaged};
use super::writer::{DumpWriter, read_length, read_rest};
use crate::format::RecordingTotals;
use crate::sources::{NewRecording, SourceError};
use dyno_types::bson::find_element;
use std::collections::BTreeSet;
use std::io::{BufRead, Write};

const MAGIC: [u8; 4] = [0x6d, 0xe2, 0x99, 0x81];
const TERMINATOR: [u8; 4] = [0xff; 4];

/// Returns whether a file begins as an archive does.
pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Text of a document's field.
fn text(document: &[u8], name: &str) -> Result<String, SourceError> {
    let found = find_element(document, name).and_then(|element| element.as_str().map(str::to_owned));
    found.ok_or_else(|| damaged(&format!("a block without {name}")))
}

fn namespace(document: &[u8]) -> Result<Namespace, SourceError> {
    Ok(Namespace { database: text(document, "db")?, collection: text(document, "collection")? })
}

/// Records an archive.
///
/// # Errors
/// It is no archive, or cut off, or the recording cannot be written.
pub fn record_archive<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let mut document = Vec::new();
    // Collections whose end has not come.
    let mut open = BTreeSet::new();
    if read_length(input)? != Some(MAGIC) {
        return Err(damaged("it does not begin as an archive does"));
    }
    let mut dump = DumpWriter::begin(new)?;
    let cut_off = || damaged("it is cut off");
    let length = read_length(input)?.ok_or_else(cut_off)?;
    read_rest(input, length, &mut document)?;
    loop {
        let length = read_length(input)?.ok_or_else(cut_off)?;
        if length == TERMINATOR {
            break;
        }
        read_rest(input, length, &mut document)?;
        let of = namespace(&document)?;
        match text(&document, "metadata") {
            Ok(metadata) if !metadata.is_empty() => dump.make_collection(&of, &metadata)?,
            _ => {}
        }
        // A view has no documents, and so no end of them. Tools before 100.0 name no type.
        if text(&document, "type").map_or(true, |kind| kind != "view") {
            open.insert(of);
        }
    }
    // Blocks: a collection's name, and documents of it.
    while let Some(length) = read_length(input)? {
        read_rest(input, length, &mut document)?;
        let of = namespace(&document)?;
        let is_end = find_element(&document, "EOF").is_some_and(|end| end.is_true());
        loop {
            let length = read_length(input)?.ok_or_else(cut_off)?;
            if length == TERMINATOR {
                break;
            }
            read_rest(input, length, &mut document)?;
            dump.push_document(&of, &document)?;
        }
        if is_end {
            dump.write_batch(&of)?;
            open.remove(&of);
        }
    }
    match open.first() {
        None => dump.finish(),
        Some(of) => Err(damaged(&format!("it is cut off: the end of {of} is missing"))),
    }
}
