//! Documents of a dump, as commands that bring them back.

use super::metadata;
use super::namespace::{Namespace, damaged};
use crate::entry::{Arguments, Entry};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use crate::sources::{NewRecording, SourceError};
use dyno_types::bson::{
    build_document, check, close, kind, open, put_boolean, put_head, put_item_head, put_string,
};
use dyno_types::limits::BSON_BYTES;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

/// The source that recordings of dumps name.
pub const SOURCE: &str = "mongodump";

/// Connections over which the documents are spread.
const CONNECTIONS: u32 = 16;

/// Documents of one command at most, and their bytes.
const BATCH: (u32, usize) = (1_000, 1 << 20);

pub(super) const OF_SERVER: &str =
    "documents of the server's own databases and collections (admin, config, local, system.*, the oplog)";

/// Reads a document whose length is known to be this, its four bytes included.
pub(super) fn read_rest(
    input: &mut dyn BufRead,
    length: [u8; 4],
    into: &mut Vec<u8>,
) -> Result<(), SourceError> {
    let bytes = u64::from(u32::from_le_bytes(length));
    if !(5..=BSON_BYTES).contains(&bytes) {
        return Err(damaged("a document whose length is not possible"));
    }
    into.clear();
    into.extend_from_slice(&length);
    Read::take(&mut *input, bytes - 4).read_to_end(into)?;
    if into.len() as u64 != bytes {
        return Err(damaged("it is cut off"));
    }
    check(into).map_err(|_| damaged("a document that is none"))
}

/// Reads four bytes; `None` at the end.
pub(super) fn read_length(input: &mut dyn BufRead) -> Result<Option<[u8; 4]>, SourceError> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(|_| damaged("it is cut off"))?;
    Ok(Some(length))
}

/// Documents of a collection that wait for being a batch.
#[derive(Default)]
struct Batch {
    /// All its commands go to this connection: those behind `create` must come after it.
    connection: Option<u32>,
    documents: Vec<u8>,
    count: u32,
}

/// Writes the recording of a dump.
pub(super) struct DumpWriter<W: Write> {
    writer: RecordingWriter<W>,
    batches: BTreeMap<Namespace, Batch>,
    next_connection: u32,
    of_server: u64,
}

impl<W: Write> DumpWriter<W> {
    pub(super) fn begin(new: &mut NewRecording<'_, W>) -> Result<Self, SourceError> {
        let header = RecordingHeader {
            protocol: RecordedProtocol::Mongodb,
            source: SOURCE.into(),
            point: RecordingPoint::Server,
            begins_ns: None,
            clock_step_ns: 0,
            lacks: vec![Lack::Connections, Lack::Replies, Lack::Reads, Lack::Times],
            value_limit: u64::MAX,
        };
        let writer = new.begin(&header)?;
        Ok(DumpWriter { writer, batches: BTreeMap::new(), next_connection: 0, of_server: 0 })
    }

    fn take_connection(&mut self) -> u32 {
        let connection = self.next_connection;
        self.next_connection = (connection + 1) % CONNECTIONS;
        connection
    }

    fn push_command(&mut self, connection: u32, words: [&[u8]; 3]) -> Result<(), SourceError> {
        let entry = Entry { connection, arguments: Arguments::from_words(words), ..Entry::default() };
        self.writer.push_entry(&entry)?;
        Ok(())
    }

    /// Makes a collection with its options and indexes.
    pub(super) fn make_collection(&mut self, of: &Namespace, text: &str) -> Result<(), SourceError> {
        if of.is_of_server() {
            return Ok(());
        }
        let made = metadata::read_metadata(of, text)?;
        if made.create.is_none() && made.indexes.is_none() {
            return Ok(());
        }
        let connection = self.take_connection();
        if let Some(create) = &made.create {
            self.batches.entry(of.clone()).or_default().connection = Some(connection);
            self.push_command(connection, [b"create", of.database.as_bytes(), create])?;
        }
        if let Some(indexes) = &made.indexes {
            self.push_command(connection, [b"createIndexes", of.database.as_bytes(), indexes])?;
        }
        Ok(())
    }

    /// Takes a document, which was checked.
    pub(super) fn push_document(&mut self, of: &Namespace, document: &[u8]) -> Result<(), SourceError> {
        if of.is_of_server() {
            self.of_server += 1;
            return Ok(());
        }
        if !self.batches.contains_key(of) {
            self.batches.insert(of.clone(), Batch::default());
        }
        let is_full =
            |batch: &Batch| batch.count == BATCH.0 || batch.documents.len() + document.len() > BATCH.1;
        if self.batches.get(of).is_some_and(is_full) {
            self.write_batch(of)?;
        }
        let Some(batch) = self.batches.get_mut(of) else { return Ok(()) };
        put_item_head(&mut batch.documents, kind::DOCUMENT, batch.count);
        batch.documents.extend_from_slice(document);
        batch.count += 1;
        Ok(())
    }

    pub(super) fn write_batch(&mut self, of: &Namespace) -> Result<(), SourceError> {
        let Some(batch) = self.batches.get_mut(of).filter(|batch| batch.count > 0) else { return Ok(()) };
        let (documents, fixed) = (std::mem::take(&mut batch.documents), batch.connection);
        batch.count = 0;
        let body = build_document(|out| {
            put_string(out, "insert", &of.collection);
            put_boolean(out, "ordered", false);
            put_head(out, kind::ARRAY, "documents");
            let at = open(out);
            out.extend_from_slice(&documents);
            close(out, at);
        });
        let connection = match fixed {
            Some(connection) => connection,
            None => self.take_connection(),
        };
        self.push_command(connection, [b"insert", of.database.as_bytes(), &body])
    }

    pub(super) fn finish(mut self) -> Result<RecordingTotals, SourceError> {
        let all: Vec<Namespace> = self.batches.keys().cloned().collect();
        all.iter().try_for_each(|of| self.write_batch(of))?;
        self.writer.leave_out(OF_SERVER, self.of_server);
        Ok(self.writer.finish()?)
    }
}
