//! Documents of a file of BSON, one after the other.

use super::SourceError;
use dyno_types::bson;
use std::io::{BufRead, Read};

/// What stands next in such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextDocument {
    /// A document; whether it is well formed is not looked at.
    Document,
    /// The file ends.
    End,
    /// The file ends within a document.
    CutOff,
}

/// Reads the next document of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, or a document has a length that none can have.
pub(super) fn read_document(
    input: &mut dyn BufRead,
    limit: u64,
    document: &mut Vec<u8>,
) -> Result<NextDocument, SourceError> {
    document.clear();
    Read::take(&mut *input, 4).read_to_end(document)?;
    if document.is_empty() {
        return Ok(NextDocument::End);
    }
    let length = match bson::document_length(document) {
        None => return Ok(NextDocument::CutOff),
        Some(Ok(length)) if length as u64 <= limit => length as u64,
        Some(_) => {
            let message = "it is a damaged file of BSON: a document has no length that is possible";
            return Err(SourceError::Unreadable(message.into()));
        }
    };
    Read::take(&mut *input, length - 4).read_to_end(document)?;
    Ok(if document.len() as u64 == length { NextDocument::Document } else { NextDocument::CutOff })
}
