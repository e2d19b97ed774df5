//! `mongodump-3.6.archive` and `mongoexport-3.6.json` were written by these tools, of a capped collection `log`, a collection
//! `names` with a unique index, and `items` with a value of each type.

use super::writer::OF_SERVER;
use super::*;
use crate::entry::Entry;
use crate::format::{Lack, RecordedProtocol, RecordingWriter};
use crate::sources::NewRecording;
use crate::sources::dump::archive::record_archive;
use crate::sources::dump::bson_files::record_folder;
use crate::sources::dump::json_lines::record_json_lines;
use crate::sources::tests::recorded;
use dyno_types::bson::build_document;
use dyno_types::bson::{element_at_path, find_element, read_elements};
use std::io::Write;

const ARCHIVE: &[u8] = include_bytes!("../../../tests/data/mongodump-3.6.archive");
const EXPORT: &[u8] = include_bytes!("../../../tests/data/mongoexport-3.6.json");

/// Name, database and body of each command.
fn commands(all: &[Entry]) -> Vec<(String, String, Vec<u8>)> {
    let text = |entry: &Entry, number| String::from_utf8(entry.arguments.word(number).to_vec()).unwrap();
    all.iter().map(|entry| (text(entry, 0), text(entry, 1), entry.arguments.word(2).to_vec())).collect()
}

/// The documents of an insert into a collection.
fn inserted(all: &[(String, String, Vec<u8>)], collection: &str) -> Vec<Vec<u8>> {
    let is_into = |(name, _, body): &&(String, String, Vec<u8>)| {
        name == "insert" && find_element(body, "insert").unwrap().as_str() == Some(collection)
    };
    let documents = |(_, _, body): &(String, String, Vec<u8>)| {
        let array = find_element(body, "documents").unwrap().as_document().unwrap().to_vec();
        read_elements(&array).unwrap().map(|e| e.unwrap().as_document().unwrap().to_vec()).collect::<Vec<_>>()
    };
    all.iter().filter(is_into).flat_map(documents).collect()
}

#[test]
fn an_archive_brings_back_documents_indexes_and_options() {
    let (all, totals, header) = recorded(|new| record_archive(&mut &*ARCHIVE, new));
    let commands = commands(&all);
    let count =
        |name: &str| commands.iter().filter(|(n, database, _)| n == name && database == "small").count();
    assert_eq!((count("create"), count("createIndexes"), count("insert"), all.len()), (1, 1, 3, 5));
    assert_eq!(totals.commands, 5);
    assert!(header.is_without(Lack::Times) && header.protocol == RecordedProtocol::Mongodb);
    let body = |name: &str| &commands.iter().find(|(n, ..)| n == name).unwrap().2;
    assert_eq!(find_element(body("create"), "create").unwrap().as_str(), Some("log"));
    assert!(find_element(body("create"), "capped").unwrap().is_true());
    assert_eq!(find_element(body("create"), "size").unwrap().as_i64(), Some(4_096));
    let index = |path: &str| element_at_path(body("createIndexes"), path);
    assert_eq!(index("indexes.0.name").unwrap().as_str(), Some("name_1"));
    assert_eq!(index("indexes.0.key.name").unwrap().as_i64(), Some(1));
    assert!(index("indexes.0.unique").unwrap().is_true());
    assert!(index("indexes.0.ns").is_none() && index("indexes.1").is_none());
    assert_eq!(inserted(&commands, "names").len(), 3);
    assert_eq!(inserted(&commands, "items").len(), 2);
    // What follows `create` stays behind it.
    let of_log = |entry: &&Entry| entry.arguments.word(2).windows(4).any(|part| part == b"log\0");
    let connections: Vec<u32> = all.iter().filter(of_log).map(|entry| entry.connection).collect();
    assert_eq!(connections.len(), 2);
    assert_eq!(connections[0], connections[1]);
}

#[test]
fn exported_documents_are_those_of_the_archive() {
    let of = Namespace::parse_name("small.items").unwrap();
    let (all, ..) = recorded(|new| record_json_lines(&mut &*EXPORT, &of, new));
    let mut exported = inserted(&commands(&all), "items");
    let (all, ..) = recorded(|new| record_archive(&mut &*ARCHIVE, new));
    let mut archived = inserted(&commands(&all), "items");
    // The two tools read a collection in the orders that they like.
    exported.sort();
    archived.sort();
    assert_eq!(exported, archived, "byte for byte, with the types that JSON has no words for");
}

#[test]
fn a_folder_is_read_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).unwrap();
    let document = |n: i32| build_document(|out| dyno_types::bson::put_int32(out, "_id", n));
    let documents: Vec<u8> = (0..2_500).flat_map(document).collect();
    std::fs::write(shop.join("a.bson"), &documents).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&documents[..document(0).len() * 10]).unwrap();
    std::fs::write(shop.join("b%2Fc.bson.gz"), packed.finish().unwrap()).unwrap();
    std::fs::write(shop.join("system.js.bson"), document(1)).unwrap();
    std::fs::create_dir(folder.path().join("admin")).unwrap();
    std::fs::write(folder.path().join("admin/x.bson"), document(1)).unwrap();
    for path in [folder.path(), &shop] {
        let (all, totals, _) = recorded(|new| record_folder(path, new));
        let commands = commands(&all);
        let count = |name: &str| inserted(&commands, name).len();
        assert_eq!((count("a"), count("b/c"), all.len()), (2_500, 10, 4), "{}", path.display());
        assert_eq!(inserted(&commands, "a")[1_700], document(1_700));
        let of_server = if path == shop { 1 } else { 2 };
        assert_eq!(totals.left_out.get(OF_SERVER), Some(&of_server));
    }
}

#[test]
fn damaged_dumps_are_refused() {
    let refused = |bytes: &[u8]| {
        let mut new = NewRecording::new(1, |header| RecordingWriter::new(Vec::new(), header));
        record_archive(&mut &*bytes, &mut new).unwrap_err().to_string()
    };
    // Also a cut between two blocks.
    let head = [&[2][..], b"db\0"].concat();
    let last = ARCHIVE.windows(4).rposition(|four| four == head).unwrap() - 4;
    assert!(refused(&ARCHIVE[..last]).contains("the end of small."), "{}", refused(&ARCHIVE[..last]));
    assert!(refused(&ARCHIVE[..ARCHIVE.len() - 1]).contains("cut off"));
    assert!(refused(&ARCHIVE[..200]).contains("cut off"));
    let mut other = ARCHIVE.to_vec();
    other[7] = 0x7f;
    assert!(refused(&other).contains("length"), "{}", refused(&other));
    let of = Namespace::parse_name("a.b").unwrap();
    for (text, message) in [
        ("{\"a\": 1}\n{\"a\": ", "line 2"),
        ("[{\"a\": 1}]", "--jsonArray"),
        ("5\n", "line 1"),
        ("\n", "no documents"),
    ] {
        let mut new = NewRecording::new(1, |header| RecordingWriter::new(Vec::new(), header));
        let error = record_json_lines(&mut text.as_bytes(), &of, &mut new).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(Namespace::parse_name("a.b.c").unwrap().collection, "b.c");
    assert!(Namespace::parse_name("ab").is_none() && Namespace::parse_name(".b").is_none());
}
