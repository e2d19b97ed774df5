//! Folders of mongodump: a folder for each database, and in it a BSON file and metadata for each collection.

use super::{DumpWriter, Namespace, damaged, read_length, read_rest};
use crate::format::RecordingTotals;
use crate::sources::{NewRecording, SourceError};
use flate2::bufread::MultiGzDecoder;
use std::fs::{File, read_dir};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Longest metadata of a collection, bytes.
const METADATA_BYTES: u64 = 16 << 20;

/// The documents of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CollectionFile {
    of: Namespace,
    path: PathBuf,
    metadata: Option<PathBuf>,
}

fn open_file(path: &Path) -> Result<Box<dyn BufRead>, SourceError> {
    let named = |why: std::io::Error| SourceError::Unreadable(format!("{}: {why}", path.display()));
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(named)?);
    Ok(match path.extension().is_some_and(|end| end == "gz") {
        true => Box::new(BufReader::with_capacity(1 << 20, MultiGzDecoder::new(file))),
        false => Box::new(file),
    })
}

/// A collection's name as it is in its file's: `%` and two digits stand for what a file's name cannot have.
fn unescape(name: &str) -> String {
    let mut out = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The collections of a database's folder, by name.
fn collections(folder: &Path) -> Result<Vec<CollectionFile>, SourceError> {
    let database = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut all = Vec::new();
    for found in read_dir(folder)? {
        let path = found?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(base) = name.strip_suffix(".bson").or_else(|| name.strip_suffix(".bson.gz")) else {
            continue;
        };
        let metadata = ["metadata.json", "metadata.json.gz"].map(|end| folder.join(format!("{base}.{end}")));
        all.push(CollectionFile {
            of: Namespace { database: database.clone(), collection: unescape(base) },
            metadata: metadata.into_iter().find(|path| path.exists()),
            path,
        });
    }
    all.sort_by(|one, other| one.of.cmp(&other.of));
    Ok(all)
}

/// Records the folder of a dump, or that of one of its databases.
///
/// # Errors
/// It holds no collections, a file of it is damaged, or the recording cannot be written.
pub fn record_folder<W: Write>(
    folder: &Path,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    // `.` has no name.
    let folder = folder.canonicalize()?;
    let mut all = collections(&folder)?;
    if all.is_empty() {
        for found in read_dir(&folder)? {
            let found = found?;
            if found.file_type()?.is_dir() {
                all.extend(collections(&found.path())?);
            }
        }
        all.sort_by(|one, other| one.of.cmp(&other.of));
    }
    if all.is_empty() {
        return Err(SourceError::Nothing("collections of mongodump (NAME.bson)"));
    }
    let mut dump = DumpWriter::begin(new)?;
    let mut document = Vec::new();
    for file in &all {
        if let Some(path) = &file.metadata {
            let mut text = String::new();
            open_file(path)?
                .take(METADATA_BYTES)
                .read_to_string(&mut text)
                .map_err(|why| damaged(&format!("{}: {why}", path.display())))?;
            dump.make_collection(&file.of, &text)?;
        }
        let mut input = open_file(&file.path)?;
        while let Some(length) = read_length(&mut *input)? {
            read_rest(&mut *input, length, &mut document)?;
            dump.push_document(&file.of, &document)?;
        }
    }
    dump.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_those_of_collections() {
        assert_eq!(unescape("a%2Fb%24c%"), "a/b$c%");
        assert_eq!(unescape("plain.name"), "plain.name");
    }
}
