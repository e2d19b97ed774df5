//! Recordings that are a data set: each command brings back one key, or some documents.

use crate::entry::Entry;
use crate::format::{RecordedEvent, RecordingError, RecordingHeader, RecordingReader};
use crate::sources::dump::Namespace;
use dyno_types::bson::{find_element, read_elements};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Keys that are looked for at most.
const LOOKED_FOR: u64 = 1_000;

/// Sources whose recordings are data sets.
const SOURCES: [&str; 2] = [crate::sources::rdb::SOURCE, crate::sources::dump::SOURCE];

/// Contents of a data set, by which it is told whether it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSetContents {
    /// Documents of each collection.
    pub documents: BTreeMap<Namespace, u64>,
    /// Collections and views that are made before, whether they get documents or not.
    pub made: BTreeSet<Namespace>,
    /// Keys of all databases.
    pub keys: u64,
    /// Of these, keys that neither expire nor hold fields that do.
    pub lasting: u64,
    /// At most 1,000 keys of the database that was asked for which do not expire, evenly from first to last.
    pub sample: Vec<Vec<u8>>,
}

impl RecordingHeader {
    /// Returns whether the recording is a data set: commands without times that bring it back.
    pub fn is_data_set(&self) -> bool {
        SOURCES.contains(&self.source.as_str())
    }
}

/// The collection that a command is for.
fn namespace_of(entry: &Entry, command: &str) -> Option<Namespace> {
    let arguments = &entry.arguments;
    if !arguments.is_named(command) || arguments.count() != 3 {
        return None;
    }
    let database = std::str::from_utf8(arguments.word(1)).ok()?.to_owned();
    let collection = find_element(arguments.word(2), command)?.as_str()?.to_owned();
    Some(Namespace { database, collection })
}

/// The collection that a command inserts into, and the documents.
fn inserted(entry: &Entry) -> Option<(Namespace, u64)> {
    let of = namespace_of(entry, "insert")?;
    let documents = find_element(entry.arguments.word(2), "documents")?.as_document()?;
    Some((of, read_elements(documents).ok()?.count() as u64))
}

/// Looks at a data set: documents of each collection, or keys, of which those of one database are sampled.
///
/// # Errors
/// The file cannot be read.
pub fn find_contents(path: &Path, database: u32) -> Result<DataSetContents, RecordingError> {
    let mut reader = RecordingReader::open_file(path)?;
    let mut found = DataSetContents::default();
    let (mut entry, mut chosen) = (Entry::default(), Vec::new());
    // Every n-th candidate is kept; when there are twice as many as wanted, every second of them, and n doubles.
    let (mut candidates, mut step) = (0u64, 1u64);
    while let Some(event) = reader.next_event(&mut entry)? {
        if event != RecordedEvent::Entry {
            continue;
        }
        let (connection, arguments) = (entry.connection as usize, &entry.arguments);
        if chosen.len() <= connection {
            chosen.resize(connection + 1, 0u32);
        }
        if arguments.is_named("SELECT") && arguments.count() == 2 {
            let number = std::str::from_utf8(arguments.word(1)).ok().and_then(|text| text.parse().ok());
            chosen[connection] = number.unwrap_or(u32::MAX);
        }
        if let Some((of, count)) = inserted(&entry) {
            *found.documents.entry(of).or_default() += count;
            continue;
        }
        if let Some(of) = ["create", "createIndexes"].iter().find_map(|name| namespace_of(&entry, name)) {
            found.made.insert(of);
            continue;
        }
        if !arguments.is_named("RESTORE") || arguments.count() < 4 {
            continue;
        }
        found.keys += 1;
        // Types of hashes whose fields expire.
        let has_brief_fields = arguments.word(3).first().is_some_and(|kind| (24..=25).contains(kind));
        if arguments.word(2) != b"0" || has_brief_fields {
            continue;
        }
        found.lasting += 1;
        if chosen[connection] != database {
            continue;
        }
        if candidates.is_multiple_of(step) {
            found.sample.push(arguments.word(1).to_vec());
        }
        candidates += 1;
        if found.sample.len() as u64 == 2 * LOOKED_FOR {
            let mut number = 0;
            found.sample.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            step *= 2;
        }
    }
    let many = found.sample.len().div_ceil(LOOKED_FOR as usize).max(1);
    found.sample = found.sample.into_iter().step_by(many).collect();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Arguments;
    use crate::format::{Lack, RecordedProtocol, RecordingPoint, RecordingWriter};

    #[test]
    fn keys_that_stay_are_sampled_evenly() {
        let header = RecordingHeader {
            protocol: RecordedProtocol::Redis,
            source: "rdb".into(),
            point: RecordingPoint::Server,
            begins_ns: None,
            clock_step_ns: 0,
            lacks: vec![Lack::Times],
            value_limit: 1 << 20,
        };
        assert!(header.is_data_set());
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = RecordingWriter::new(file.reopen().unwrap(), &header).unwrap();
        let mut push = |connection: u32, words: &[&str]| {
            let arguments = Arguments::from_words(words);
            writer.push_entry(&Entry { connection, arguments, ..Entry::default() }).unwrap();
        };
        for number in 0..5_000 {
            push(0, &["RESTORE", &format!("k{number}"), "0", "payload", "REPLACE"]);
        }
        push(0, &["RESTORE", "brief", "500", "payload", "REPLACE"]);
        push(1, &["SELECT", "3"]);
        push(1, &["RESTORE", "other", "0", "payload", "REPLACE"]);
        writer.finish().unwrap();
        let found = find_contents(file.path(), 0).unwrap();
        assert_eq!((found.keys, found.lasting), (5_002, 5_001));
        // 5,000 candidates: every fourth of them is kept, and of these every second.
        let expected: Vec<Vec<u8>> = (0..5_000).step_by(8).map(|n| format!("k{n}").into_bytes()).collect();
        assert_eq!(found.sample, expected);
        assert_eq!(find_contents(file.path(), 3).unwrap().sample, [b"other".to_vec()]);
    }
}
