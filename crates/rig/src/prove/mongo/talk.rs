//! A conversation with a member of MongoDB: inserts with their write concern, and what is there.

use super::COMMAND;
use crate::mongo::{MongoLine, Unanswered};
use crate::prove::database::{Durability, Fate, Part, Talk};
use crate::prove::drive::IngestPlan;
use crate::prove::evidence::Sent;
use crate::prove::records::Records;
use dyno_types::bson::{self, kind};
use dyno_wire::mongodb::put_command;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::Instant;

/// Most bytes of documents in one insert: a command ends at 16 MiB.
const INSERT_BYTES: u64 = 12 << 20;

/// The name of an index, which is that of its field.
pub(super) fn name(index: usize) -> String {
    format!("i{index}")
}

/// A document of one index's field.
pub(super) fn by(out: &mut Vec<u8>, element: &str, index: usize) {
    bson::head(out, kind::DOCUMENT, element);
    let at = bson::open(out);
    bson::int32(out, &name(index), 1);
    bson::close(out, at);
}

/// Members that are no primary answer only those who say that they may.
fn from_anyone(out: &mut Vec<u8>) {
    bson::head(out, kind::DOCUMENT, "$readPreference");
    let at = bson::open(out);
    bson::string(out, "mode", "primaryPreferred");
    bson::close(out, at);
}

pub(super) struct MongoTalk {
    pub line: MongoLine,
    pub database: String,
    /// How many members a majority has.
    pub majority: usize,
    pub sent: Sent,
}

impl MongoTalk {
    /// The command that inserts records, and their sizes.
    fn insert(&self, records: &Records, part: Part, plan: &IngestPlan) -> (Vec<u8>, Sent) {
        let sent = Cell::new(Sent::default());
        let ms = i32::try_from(plan.patience.as_millis()).unwrap_or(i32::MAX);
        let mut words = Vec::new();
        put_command(&mut words, &self.database, &|out| {
            bson::string(out, "insert", &records.collection());
            bson::head(out, kind::ARRAY, "documents");
            let list = bson::open(out);
            for number in part.from..part.to {
                bson::item(out, kind::DOCUMENT, (number - part.from) as u32);
                let at = bson::open(out);
                bson::string(out, "_id", &records.key(part.worker, number));
                for index in 0..records.indexes {
                    let score = records.score(part.worker, number, index);
                    bson::int64(out, &name(index), score.cast_signed());
                }
                bson::string(out, "v", &records.value(part.worker, number));
                bson::close(out, at);
                let mut now = sent.get();
                now.record((out.len() - at) as u64);
                sent.set(now);
            }
            bson::close(out, list);
            bson::boolean(out, "ordered", false);
            bson::head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            match plan.copies {
                0 | 1 => bson::int32(out, "w", 1),
                copies if copies > self.majority => bson::int32(out, "w", copies as i32),
                _ => bson::string(out, "w", "majority"),
            }
            if plan.durability == Durability::Disk {
                bson::boolean(out, "j", true);
            }
            bson::int32(out, "wtimeout", ms);
            bson::close(out, concern);
        });
        let sent = Sent { wire_bytes: words.len() as u64, ..sent.get() };
        (words, sent)
    }
}

/// What a reply to an insert of `count` documents says, if it is not that all are where they are to be.
fn trouble(reply: &[u8], count: u64) -> Option<String> {
    let words = |path: &str| {
        let text = bson::path(reply, path).and_then(|e| e.as_str().map(str::to_owned));
        text.unwrap_or_else(|| path.to_owned())
    };
    if bson::find(reply, "writeErrors").is_some() {
        return Some(words("writeErrors.0.errmsg"));
    }
    if bson::find(reply, "writeConcernError").is_some() {
        return Some(words("writeConcernError.errmsg"));
    }
    match bson::find(reply, "n").and_then(|n| n.as_i64()) {
        Some(n) if n.cast_unsigned() == count => None,
        n => Some(format!("{} of {count} documents inserted", n.unwrap_or(0))),
    }
}

/// The code by which a server says that it is no primary.
const NOT_PRIMARY: i64 = 10_107;

impl Talk for MongoTalk {
    fn put(&mut self, records: &Records, part: Part, plan: &IngestPlan) -> Fate {
        let step = (INSERT_BYTES / (plan.record_bytes as u64 + 200)).max(1);
        let pieces = (part.from..part.to).step_by(step as usize);
        let pieces: Vec<_> = pieces
            .map(|from| {
                let piece = Part { from, to: (from + step).min(part.to), ..part };
                (piece.to - piece.from, self.insert(records, piece, plan))
            })
            .collect();
        let (sent, mut begun) = (Instant::now(), false);
        for (count, (words, out)) in pieces {
            self.sent.merge(out);
            match self.line.send(words, plan.patience + COMMAND) {
                Ok(reply) => {
                    if let Some(why) = trouble(&reply, count) {
                        return Fate::Indeterminate(why);
                    }
                }
                // Nothing of what a server that is no primary refuses is done; what came before it is.
                Err(Unanswered::Refused(NOT_PRIMARY, why)) if !begun => {
                    return Fate::Refused(why);
                }
                Err(why) => return Fate::Indeterminate(why.words()),
            }
            begun = true;
        }
        Fate::Acknowledged(sent)
    }

    fn take_sent(&mut self) -> Sent {
        std::mem::take(&mut self.sent)
    }

    fn get(&mut self, records: &Records, part: Part) -> Result<Vec<Option<String>>, String> {
        let count = i32::try_from(part.to - part.from).unwrap_or(i32::MAX);
        let reply = self.line.call(&self.database, COMMAND, &|out| {
            bson::string(out, "find", &records.collection());
            bson::head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::head(out, kind::DOCUMENT, "_id");
            let id = bson::open(out);
            bson::head(out, kind::ARRAY, "$in");
            let list = bson::open(out);
            for number in part.from..part.to {
                bson::item(out, kind::STRING, (number - part.from) as u32);
                bson::text(out, records.key(part.worker, number).as_bytes());
            }
            bson::close(out, list);
            bson::close(out, id);
            bson::close(out, filter);
            bson::int32(out, "batchSize", count);
            bson::int32(out, "limit", count);
            bson::boolean(out, "singleBatch", true);
            from_anyone(out);
        });
        let reply = reply.map_err(Unanswered::words)?;
        let batch = bson::path(&reply, "cursor.firstBatch").and_then(|e| e.as_document());
        let batch = batch.ok_or("find gives no cursor")?;
        let mut found = HashMap::new();
        for document in bson::elements(batch).map_err(|e| e.to_string())?.flatten() {
            let document = document.as_document().unwrap_or_default();
            let text = |name: &str| bson::find(document, name).and_then(|e| e.as_str().map(str::to_owned));
            if let Some(id) = text("_id") {
                found.insert(id, text("v").unwrap_or_default());
            }
        }
        Ok((part.from..part.to).map(|number| found.remove(&records.key(part.worker, number))).collect())
    }

    fn indexed(&mut self, records: &Records, index: usize) -> Result<u64, String> {
        let reply = self.line.call(&self.database, 30 * COMMAND, &|out| {
            bson::string(out, "count", &records.collection());
            bson::head(out, kind::DOCUMENT, "query");
            let query = bson::open(out);
            bson::head(out, kind::DOCUMENT, &name(index));
            let from = bson::open(out);
            bson::int64(out, "$gte", 0);
            bson::close(out, from);
            bson::close(out, query);
            bson::string(out, "hint", &name(index));
            from_anyone(out);
        });
        counted(reply)
    }

    /// Looks at every document: `_id` is unique by its index, which is not asked here.
    fn held(&mut self, records: &Records) -> Result<Option<u64>, String> {
        let reply = self.line.call(&self.database, 30 * COMMAND, &|out| {
            bson::string(out, "count", &records.collection());
            bson::head(out, kind::DOCUMENT, "query");
            let query = bson::open(out);
            bson::head(out, kind::DOCUMENT, "v");
            let from = bson::open(out);
            bson::string(out, "$gte", "");
            bson::close(out, from);
            bson::close(out, query);
            from_anyone(out);
        });
        counted(reply).map(Some)
    }
}

/// What a count has come to.
pub(super) fn counted(reply: Result<Vec<u8>, Unanswered>) -> Result<u64, String> {
    let reply = reply.map_err(Unanswered::words)?;
    let n = bson::find(&reply, "n").and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok());
    n.ok_or_else(|| "count gives no number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::document;

    #[test]
    fn an_insert_is_acknowledged_only_without_any_error() {
        assert_eq!(trouble(&document(&|out| bson::int32(out, "n", 5)), 5), None);
        assert!(trouble(&document(&|out| bson::int32(out, "n", 4)), 5).is_some());
        let late = document(&|out| {
            bson::int32(out, "n", 5);
            let error = document(&|out| bson::string(out, "errmsg", "waiting for replication timed out"));
            bson::document(out, "writeConcernError", &error);
        });
        let words = "waiting for replication timed out";
        assert_eq!(trouble(&late, 5), Some(words.into()));
    }
}
