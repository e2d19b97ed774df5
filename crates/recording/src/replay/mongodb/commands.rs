//! Recorded commands as they are read: numbered, with their sessions and cursors.

use super::body::sent_body;
use super::cursors::{CursorKey, CursorState, LiveCursors};
use super::mongodb_rules::{is_comparable, may_open_cursor, parts_of, uses_cursor};
use crate::entry::{Arguments, Entry};
use dyno_types::bson;
use std::collections::{HashMap, HashSet};

/// Most sessions whose transactions are followed.
const SESSIONS: usize = 1 << 17;

/// The cursor that a command goes on with, or ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct UsedCursor {
    /// The command that opened it.
    pub key: CursorKey,
    /// Where its number stands in the body.
    pub at: usize,
    /// Its number now; 0 while it is not known.
    pub number: i64,
    /// The command ends it.
    pub ends: bool,
}

/// What a command of MongoDB has beside its bytes.
#[derive(Clone, Debug, Default)]
pub(in crate::replay) struct Document {
    /// The cursor that it may open has this key.
    pub opens: Option<CursorKey>,
    pub cursor: Option<UsedCursor>,
}

/// A command that is sent.
pub(in crate::replay) struct ReadCommand {
    pub bytes: Vec<u8>,
    pub document: Document,
    /// It may not be sent before the reply to the one before it has come.
    pub waits: bool,
    pub is_comparable: bool,
}

/// Why a command is not sent, which no look at the command alone can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum LeftOut {
    /// Its cursor is not open.
    NoCursor,
    /// Its transaction was not begun.
    NoTransaction,
}

/// Reads the commands of a recording in their order.
#[derive(Debug)]
pub(in crate::replay) struct CommandReader {
    replay_number: u64,
    /// Of connections: the number of their next command.
    numbers: HashMap<u32, i64>,
    /// Connections whose last command has no reply.
    unacknowledged: HashSet<u32>,
    /// Of sessions: their last transaction whose begin is sent.
    begun: HashMap<Vec<u8>, i64>,
}

impl CommandReader {
    pub fn new(replay_number: u64) -> Self {
        CommandReader {
            replay_number,
            numbers: HashMap::new(),
            unacknowledged: HashSet::new(),
            begun: HashMap::new(),
        }
    }

    /// The number of a command among those of its connection. It is asked for once, for each command of the file.
    pub fn take_number(&mut self, connection: u32) -> i64 {
        let next = self.numbers.entry(connection).or_default();
        *next += 1;
        *next - 1
    }

    /// Returns whether the transaction of a command that is sent has begun, where it has one.
    pub fn note_transaction(&mut self, arguments: &Arguments) -> bool {
        let Some((_, _, body)) = parts_of(arguments) else { return true };
        let is = |name: &str| bson::find_element(body, name).map(|found| found.is_true());
        if is("autocommit") != Some(false) {
            return true;
        }
        let session = bson::find_element(body, "lsid").map_or(&[][..], |session| session.value);
        let number = bson::find_element(body, "txnNumber").and_then(|found| found.as_i64()).unwrap_or(0);
        if is("startTransaction") != Some(true) {
            return self.begun.get(session) == Some(&number);
        }
        if self.begun.len() < SESSIONS || self.begun.contains_key(session) {
            self.begun.insert(session.to_vec(), number);
        }
        self.begun.get(session) == Some(&number)
    }

    /// Reads a command, whose number is `number`, as it is sent.
    pub fn read_command(
        &mut self,
        entry: &Entry,
        number: i64,
        cursors: &LiveCursors,
    ) -> Result<ReadCommand, LeftOut> {
        let (name, database, body) = parts_of(&entry.arguments).ok_or(LeftOut::NoCursor)?;
        if !self.note_transaction(&entry.arguments) {
            return Err(LeftOut::NoTransaction);
        }
        // It was found to be well-formed when it was chosen.
        let sent = sent_body(name, database, body, self.replay_number).map_err(|_| LeftOut::NoCursor)?;
        let mut document = Document::default();
        let mut waits = !entry.overlaps && !self.unacknowledged.contains(&entry.connection);
        if uses_cursor(name) {
            let (Some(key), Some(at)) = (sent.opened_by, sent.cursor_at) else {
                return Err(LeftOut::NoCursor);
            };
            if cursors.state_of(key) == CursorState::Gone {
                return Err(LeftOut::NoCursor);
            }
            document.cursor = Some(UsedCursor { key, at, number: 0, ends: name == "killCursors" });
            waits = true;
        } else if may_open_cursor(name) {
            document.opens = Some((entry.connection, number));
        }
        if sent.unacknowledged {
            self.unacknowledged.insert(entry.connection);
        } else {
            self.unacknowledged.remove(&entry.connection);
        }
        let is_comparable = is_comparable(name, body);
        Ok(ReadCommand { bytes: sent.bytes, document, waits, is_comparable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_transaction(number: i64, starts: bool) -> Entry {
        let body = bson::build_document(|out| {
            bson::put_string(out, "insert", "items");
            bson::put_document(out, "lsid", &bson::build_document(|out| bson::put_int32(out, "id", 1)));
            bson::put_int64(out, "txnNumber", number);
            if starts {
                bson::put_boolean(out, "startTransaction", true);
            }
            bson::put_boolean(out, "autocommit", false);
        });
        Entry { arguments: Arguments::from_words([b"insert".as_slice(), b"shop", &body]), ..Entry::default() }
    }

    #[test]
    fn the_rest_of_a_transaction_that_was_not_begun_is_left_out() {
        let (mut reader, cursors) = (CommandReader::new(1), LiveCursors::default());
        let mut is_sent = |entry: &Entry| match reader.read_command(entry, 0, &cursors) {
            Ok(_) => true,
            Err(reason) => {
                assert_eq!(reason, LeftOut::NoTransaction);
                false
            }
        };
        let found = [(1, false), (2, true), (2, false), (3, false), (4, true)]
            .map(|(number, starts)| is_sent(&in_transaction(number, starts)));
        assert_eq!(found, [false, true, true, false, true]);
    }

    #[test]
    fn what_follows_a_write_without_reply_does_not_wait() {
        let (mut reader, cursors) = (CommandReader::new(1), LiveCursors::default());
        let mut waits = |w: i32| {
            let body = bson::build_document(|out| {
                bson::put_string(out, "insert", "items");
                bson::put_document(
                    out,
                    "writeConcern",
                    &bson::build_document(|out| bson::put_int32(out, "w", w)),
                );
            });
            let arguments = Arguments::from_words([b"insert".as_slice(), b"shop", &body]);
            reader.read_command(&Entry { arguments, ..Entry::default() }, 0, &cursors).unwrap().waits
        };
        assert_eq!([1, 0, 0, 1, 1].map(&mut waits), [true, true, false, false, true]);
    }
}
