//! A conversation with a member of MongoDB: inserts with their write concern, and what is there.

use crate::command_error::CommandError;
use crate::connection::MongoConnection;
use crate::protocol::put_command;
use dyno_db::copies::database::{DatabaseError, IngestClient, RecordSpan, WriteOutcome};
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::records::{Records, ValueKind};
use dyno_db::copies::sent::Sent;
use dyno_types::bson::{self, kind};
use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time that one command may take, beyond what a write waits for its copies.
pub(super) const COMMAND: Duration = Duration::from_secs(10);

/// Most bytes of documents in one insert: a command ends at 16 MiB.
const INSERT_BYTES: u64 = 12 << 20;

/// The name of an index, and its field: one of the proof's own, or a field of the documents by MongoDB's own name.
pub(super) fn index_of(records: &Records, index: usize) -> (String, String) {
    let field = records.documents.as_ref().and_then(|documents| documents.indexed_field(index));
    match field {
        Some((field, _)) => (format!("{field}_1"), field.to_owned()),
        None => (format!("i{index}"), format!("i{index}")),
    }
}

/// Appends the `_id` of a record as the element `name`.
fn id(records: &Records, worker: u32, number: u64, name: &str, out: &mut Vec<u8>) {
    match &records.documents {
        Some(documents) => documents.put_id(worker, number, name, out),
        None => bson::put_string(out, name, &records.record_key(worker, number)),
    }
}

/// Appends the document of a record.
fn document(records: &Records, worker: u32, number: u64, out: &mut Vec<u8>) {
    if let Some(documents) = &records.documents {
        return documents.render_document(records.seed, worker, number, out);
    }
    let at = bson::open(out);
    id(records, worker, number, "_id", out);
    for index in 0..records.indexes {
        let score = records.index_score(worker, number, index);
        bson::put_int64(out, &index_of(records, index).1, score.cast_signed());
    }
    bson::put_string(out, "v", &records.record_value(worker, number));
    bson::close(out, at);
}

/// Members that are no primary answer only those who say that they may.
fn from_anyone(out: &mut Vec<u8>) {
    bson::put_head(out, kind::DOCUMENT, "$readPreference");
    let at = bson::open(out);
    bson::put_string(out, "mode", "primaryPreferred");
    bson::close(out, at);
}

pub(super) struct MongoIngestClient {
    pub line: MongoConnection,
    pub database: String,
    /// Number of members in a majority, where it is known.
    pub majority: Option<usize>,
    pub sent: Sent,
}

impl MongoIngestClient {
    /// Number of documents that have a field of this class, by an index or by looking at each.
    fn count(
        &mut self,
        records: &Records,
        field: &str,
        class: ValueKind,
        index: Option<&str>,
    ) -> Result<u64, DatabaseError> {
        let reply = self.line.send_command(&self.database, 30 * COMMAND, &|out| {
            bson::put_string(out, "count", &records.run_collection());
            bson::put_head(out, kind::DOCUMENT, "query");
            let query = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, field);
            let from = bson::open(out);
            match class {
                ValueKind::Number => bson::put_int64(out, "$gte", 0),
                ValueKind::Date => bson::put_date(out, "$gte", i64::MIN),
                ValueKind::Text => bson::put_string(out, "$gte", ""),
            }
            bson::close(out, from);
            bson::close(out, query);
            if let Some(index) = index {
                bson::put_string(out, "hint", index);
            }
            from_anyone(out);
        });
        counted(reply)
    }

    /// The command that inserts records, and their sizes.
    fn insert(&self, records: &Records, part: RecordSpan, plan: &IngestPlan) -> (Vec<u8>, Sent) {
        let sent = Cell::new(Sent::default());
        let ms = i32::try_from(plan.patience.as_millis()).unwrap_or(i32::MAX);
        let mut words = Vec::new();
        put_command(&mut words, self.line.opened_options(), &self.database, &|out| {
            bson::put_string(out, "insert", &records.run_collection());
            bson::put_head(out, kind::ARRAY, "documents");
            let list = bson::open(out);
            for number in part.from..part.to {
                bson::put_item_head(out, kind::DOCUMENT, (number - part.from) as u32);
                let at = out.len();
                document(records, part.worker, number, out);
                let mut now = sent.get();
                now.record_sent((out.len() - at) as u64);
                sent.set(now);
            }
            bson::close(out, list);
            bson::put_boolean(out, "ordered", false);
            bson::put_head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            match plan.copies {
                0 | 1 => bson::put_int32(out, "w", 1),
                // A number asks for as many at least, whatever a majority is.
                copies if self.majority.is_none_or(|majority| copies > majority) => {
                    bson::put_int32(out, "w", copies as i32);
                }
                _ => bson::put_string(out, "w", "majority"),
            }
            if plan.durability == Durability::Disk {
                bson::put_boolean(out, "j", true);
            }
            bson::put_int32(out, "wtimeout", ms);
            bson::close(out, concern);
        });
        let sent = Sent { wire_bytes: words.len() as u64, ..sent.get() };
        (words, sent)
    }
}

/// Reason in a reply to an insert of `count` documents why not all are where they are to be, if there is one.
fn trouble(reply: &[u8], count: u64) -> Option<String> {
    let words = |path: &str| {
        let text = bson::element_at_path(reply, path).and_then(|e| e.as_str().map(str::to_owned));
        text.unwrap_or_else(|| path.to_owned())
    };
    if bson::find_element(reply, "writeErrors").is_some() {
        return Some(words("writeErrors.0.errmsg"));
    }
    if bson::find_element(reply, "writeConcernError").is_some() {
        return Some(words("writeConcernError.errmsg"));
    }
    match bson::find_element(reply, "n").and_then(|n| n.as_i64()) {
        Some(n) if n.cast_unsigned() == count => None,
        n => Some(format!("{} of {count} documents inserted", n.unwrap_or(0))),
    }
}

/// The code by which a server says that it is no primary.
const NOT_PRIMARY: i64 = 10_107;

impl IngestClient for MongoIngestClient {
    fn put(&mut self, records: &Records, part: RecordSpan, plan: &IngestPlan) -> WriteOutcome {
        let step = (INSERT_BYTES / (plan.record_bytes as u64 + 200)).max(1);
        let pieces = (part.from..part.to).step_by(step as usize);
        let pieces: Vec<_> = pieces
            .map(|from| {
                let piece = RecordSpan { from, to: (from + step).min(part.to), ..part };
                (piece.to - piece.from, self.insert(records, piece, plan))
            })
            .collect();
        let (sent, mut begun) = (Instant::now(), false);
        for (count, (words, out)) in pieces {
            self.sent.merge(out);
            match self.line.send(words, plan.patience + COMMAND) {
                Ok(reply) => {
                    if let Some(why) = trouble(&reply, count) {
                        return WriteOutcome::Indeterminate(why);
                    }
                }
                // Nothing of what a server that is no primary refuses is done; what came before it is.
                Err(error) if error.server_code() == Some(NOT_PRIMARY) && !begun => {
                    return WriteOutcome::Refused(error.to_string());
                }
                Err(why) => return WriteOutcome::Indeterminate(why.to_string()),
            }
            begun = true;
        }
        WriteOutcome::Acknowledged(sent)
    }

    fn take_sent(&mut self) -> Sent {
        std::mem::take(&mut self.sent)
    }

    fn content(&self, records: &Records, worker: u32, number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        document(records, worker, number, &mut out);
        out
    }

    fn get(&mut self, records: &Records, part: RecordSpan) -> Result<Vec<Option<Vec<u8>>>, DatabaseError> {
        let count = i32::try_from(part.to - part.from).unwrap_or(i32::MAX);
        let reply = self.line.send_command(&self.database, COMMAND, &|out| {
            bson::put_string(out, "find", &records.run_collection());
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "_id");
            let list_of_ids = bson::open(out);
            bson::put_head(out, kind::ARRAY, "$in");
            let list = bson::open(out);
            for number in part.from..part.to {
                id(records, part.worker, number, &(number - part.from).to_string(), out);
            }
            bson::close(out, list);
            bson::close(out, list_of_ids);
            bson::close(out, filter);
            bson::put_int32(out, "batchSize", count);
            bson::put_int32(out, "limit", count);
            bson::put_boolean(out, "singleBatch", true);
            from_anyone(out);
        })?;
        let batch = bson::element_at_path(&reply, "cursor.firstBatch").and_then(|e| e.as_document());
        let batch = batch.ok_or_else(|| DatabaseError::incomplete_reply("find gives no cursor"))?;
        let mut found = HashMap::new();
        for document in
            bson::read_elements(batch).map_err(|e| DatabaseError::incomplete_reply(e.to_string()))?.flatten()
        {
            let document = document.as_document().unwrap_or_default();
            if let Some(id) = bson::find_element(document, "_id") {
                found.insert(id.value.to_vec(), document.to_vec());
            }
        }
        let of = |number| {
            let mut wanted = Vec::new();
            let at = bson::open(&mut wanted);
            id(records, part.worker, number, "_id", &mut wanted);
            bson::close(&mut wanted, at);
            found.remove(bson::find_element(&wanted, "_id")?.value)
        };
        Ok((part.from..part.to).map(of).collect())
    }

    fn indexed(&mut self, records: &Records, index: usize) -> Result<u64, DatabaseError> {
        let (name, field) = index_of(records, index);
        let own = records.documents.as_ref().and_then(|documents| documents.indexed_field(index));
        let class = own.map_or(ValueKind::Number, |(_, class)| class);
        self.count(records, &field, class, Some(&name))
    }

    /// Looks at every document: `_id` is unique by its index, which is not asked here.
    fn held(&mut self, records: &Records) -> Result<Option<u64>, DatabaseError> {
        let own = records.documents.as_ref().map(|documents| documents.counted_field());
        let (field, class) = own.unwrap_or(("v", ValueKind::Text));
        self.count(records, field, class, None).map(Some)
    }
}

/// Number in the reply to a count.
pub(super) fn counted(reply: Result<Vec<u8>, CommandError>) -> Result<u64, DatabaseError> {
    let reply = reply?;
    let n = bson::find_element(&reply, "n").and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok());
    n.ok_or_else(|| DatabaseError::incomplete_reply("count gives no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::build_document as document;

    #[test]
    fn an_insert_is_acknowledged_only_without_any_error() {
        assert_eq!(trouble(&document(|out| bson::put_int32(out, "n", 5)), 5), None);
        assert!(trouble(&document(|out| bson::put_int32(out, "n", 4)), 5).is_some());
        let late = document(|out| {
            bson::put_int32(out, "n", 5);
            let error = document(|out| bson::put_string(out, "errmsg", "waiting for replication timed out"));
            bson::put_document(out, "writeConcernError", &error);
        });
        let message = "waiting for replication timed out";
        assert_eq!(trouble(&late, 5), Some(message.into()));
    }
}
