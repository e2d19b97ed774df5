//! Folders of mongodump: a folder for each database, and in it a BSON file and metadata for each collection.

use super::namespace::{Namespace, damaged};
use super::writer::{DumpWriter, read_length, read_rest};
use crate::format::RecordingTotals;
use crate::sources::{NewRecording, SourceError};
use flate2::bufread::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::{File, read_dir};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Longest metadata of a collection, bytes.
const METADATA_BYTES: u64 = 16 << 20;

/// The documents of a collection; none of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CollectionFile {
    of: Namespace,
    path: Option<PathBuf>,
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
    let mut found: BTreeMap<String, (Option<PathBuf>, Option<PathBuf>)> = BTreeMap::new();
    for entry in read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        if let Some(base) = name.strip_suffix(".bson") {
            found.entry(base.to_owned()).or_default().0 = Some(path);
        } else if let Some(base) = name.strip_suffix(".metadata.json") {
            found.entry(base.to_owned()).or_default().1 = Some(path);
        }
    }
    let all = found.into_iter().map(|(base, (path, metadata))| CollectionFile {
        of: Namespace { database: database.clone(), collection: unescape(&base) },
        path,
        metadata,
    });
    Ok(all.collect())
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
    let mut databases = Vec::new();
    for entry in read_dir(&folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            databases.push(entry.path());
        }
    }
    databases.sort();
    let mut all = Vec::new();
    for database in &databases {
        all.extend(collections(database)?);
    }
    let mut of_top = collections(&folder)?;
    // Beside the databases lies the log of changes that `--oplog` takes.
    if !all.is_empty() {
        of_top.retain(|file| file.of.collection == "oplog");
        of_top.iter_mut().for_each(|file| file.of.database.clear());
    }
    all.append(&mut of_top);
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
        let Some(path) = &file.path else { continue };
        let mut input = open_file(path)?;
        while let Some(length) = read_length(&mut *input)? {
            read_rest(&mut *input, length, &mut document)?;
            dump.push_document(&file.of, &document)?;
        }
        dump.write_batch(&file.of)?;
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
