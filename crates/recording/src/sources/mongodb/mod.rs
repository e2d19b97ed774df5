//! What MongoDB's servers write down of commands: their profiler's documents, and lines of their logs.
//!
//! Both are written when a command ends, with the time that it took. So commands are put in the order of their begins here, and
//! each `getMore` is told which command has opened its cursor.

mod log;
mod profile;
mod shell_text;

pub use log::{is_mongod_log, record_mongod_log};
pub use profile::{is_profile, record_profile};

use super::{NewRecording, SourceError};
use crate::credentials::{Credentials, of_command};
use crate::entry::{Arguments, Entry, RecordedKind, RecordedReply};
use crate::exchange::{CommandRole, CursorLinks, CursorOpener, put_opener};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use dyno_types::bson::{self, kind};
use dyno_types::command::ReplyKind;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// Commands that wait for others which have begun before them and ended later, at most.
const WAITING: usize = 100_000;

/// Bytes of them, at most.
const WAITING_BYTES: usize = 64 << 20;

const MILLISECOND_NS: u64 = 1_000_000;

/// Reasons for which something of such a file is not in the recording.
mod reason {
    pub const CHECKS: &str = crate::exchange::reason::SERVER_CHECKS;
    pub const INSERTS: &str = "inserts without their documents, which the server does not write down";
    pub const CUT: &str = "commands that the server has cut off, or written in a form that cannot be read";
    pub const WHOLES: &str = "updates and deletes as a whole (their statements are recorded)";
    pub const BACKWARD: &str =
        "commands out of the order of their begins (taken as begun with the one before)";
    pub const OTHER_LINES: &str = "lines that are no commands";
    pub const OWN: &str = "commands of the server's own";
}

/// A command as a server has written it down.
#[derive(Debug, Default)]
struct LoggedCommand {
    /// Number of its connection.
    connection: u32,
    /// When it has ended, nanoseconds since 1970, and the time that it took.
    ended_ns: u64,
    took_ns: u64,
    /// `DATABASE.COLLECTION`.
    namespace: String,
    /// `update` or `remove` where the body is a statement of one.
    operation: String,
    /// The command, or the statement.
    body: Vec<u8>,
    /// What the server says of its outcome.
    outcome: LoggedOutcome,
}

/// What a server says of a command's outcome; `None` where it says nothing.
#[derive(Debug, Default)]
struct LoggedOutcome {
    /// Its error.
    error: Option<LoggedError>,
    /// Documents of a batch.
    returned: Option<u64>,
    /// Documents that were inserted, matched or deleted.
    written: Option<u64>,
    /// The cursor of a batch, open or not.
    cursor: Option<i64>,
    /// The cursor was read to its end.
    exhausted: bool,
}

impl LoggedOutcome {
    /// The reply to a command, as far as it follows from what the server says. `nreturned` is said of commands without a batch,
    /// too (`count`, `distinct`).
    fn reply(&self, command: &str) -> Option<RecordedReply> {
        let has_batch = ["find", "getMore", "aggregate", "listCollections", "listIndexes"].contains(&command);
        let returned = self.returned.filter(|_| has_batch);
        if self.returned.is_some() && !has_batch && self.error.is_none() {
            return None;
        }
        let (kind, size, error) = match (&self.error, returned, self.written) {
            (Some(error), _, _) => (RecordedKind::Error, 0, error.class(command)?),
            (None, Some(count), _) => (RecordedKind::Reply(ReplyKind::Array), count, String::new()),
            (None, None, Some(count)) => (RecordedKind::Reply(ReplyKind::Status), count, String::new()),
            (None, None, None) => return None,
        };
        // How long it took in the server is not when its reply had come.
        Some(RecordedReply { kind, size, error, after_ns: None })
    }
}

/// The code of an error whose name the server does not say in its replies to writes.
const DUPLICATE_KEY: (&str, i64) = ("DuplicateKey", 11_000);

/// An error as a server's log names it.
#[derive(Debug)]
struct LoggedError {
    name: Option<String>,
    code: Option<i64>,
}

impl LoggedError {
    fn new(name: Option<&str>, code: Option<i64>) -> Option<Self> {
        let code = code.or((name == Some(DUPLICATE_KEY.0)).then_some(DUPLICATE_KEY.1));
        (name.is_some() || code.is_some()).then(|| LoggedError { name: name.map(str::to_owned), code })
    }

    /// Its class as the server's reply has it: errors of statements have codes there, others names. `None` where that is not
    /// logged.
    fn class(&self, command: &str) -> Option<String> {
        let digits = self.code.map(|code| code.to_string());
        match ["insert", "update", "delete"].contains(&command) {
            true => digits,
            false => self.name.clone().or(digits),
        }
    }
}

/// A command that waits for its place.
struct WaitingCommand {
    entry: Entry,
    ended_ns: u64,
    opens: Option<i64>,
    uses: Option<i64>,
    bytes: usize,
}

/// Commands in the order of their begins.
struct SortedCommands<'a, 'b, W: Write> {
    new: &'a mut NewRecording<'b, W>,
    header: RecordingHeader,
    writer: Option<RecordingWriter<W>>,
    waiting: BTreeMap<(u64, u64), WaitingCommand>,
    waiting_bytes: usize,
    count: u64,
    last_ns: u64,
    links: CursorLinks,
    /// Entries of each connection.
    entries: HashMap<u32, u64>,
    /// Where the source names no connections: when each of as many as were needed at once is free again.
    free_ns: Option<Vec<u64>>,
    left_out: BTreeMap<&'static str, u64>,
}

impl<'a, 'b, W: Write> SortedCommands<'a, 'b, W> {
    fn new(new: &'a mut NewRecording<'b, W>, source: &str, lacks: &[Lack]) -> Self {
        let header = RecordingHeader {
            protocol: RecordedProtocol::Mongodb,
            source: source.into(),
            point: RecordingPoint::Server,
            begins_ns: None,
            clock_step_ns: MILLISECOND_NS,
            lacks: [lacks, &[Lack::ReplyTimes, Lack::QuickCommands]].concat(),
            value_limit: new.value_limit(RecordedProtocol::Mongodb) as u64,
        };
        SortedCommands {
            new,
            header,
            writer: None,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            count: 0,
            last_ns: 0,
            links: CursorLinks::default(),
            entries: HashMap::new(),
            free_ns: lacks.contains(&Lack::Connections).then(Vec::new),
            left_out: BTreeMap::new(),
        }
    }

    /// The connection of a command that ran for this time: the first that is free, where the source names none.
    fn connection_of(&mut self, named: u32, begun_ns: u64, ended_ns: u64) -> u32 {
        let Some(free_ns) = &mut self.free_ns else { return named };
        let place = free_ns.iter().position(|free| *free <= begun_ns).unwrap_or(free_ns.len());
        if place == free_ns.len() {
            free_ns.push(0);
        }
        free_ns[place] = ended_ns;
        place as u32
    }

    fn leave_out(&mut self, reason: &'static str) {
        *self.left_out.entry(reason).or_default() += 1;
    }

    /// Takes a command, or counts why it is not taken.
    fn take_command(&mut self, logged: &LoggedCommand) -> Result<(), SourceError> {
        let (name, database, body) = match whole_command(logged) {
            Ok(found) => found,
            Err(why) => {
                self.leave_out(why);
                return Ok(());
            }
        };
        let mut entry = Entry { connection: logged.connection, ..Entry::default() };
        for word in [name.as_bytes(), database.as_bytes(), &body] {
            entry.arguments.push_word(word);
        }
        entry.reply = logged.outcome.reply(&name);
        let role = CommandRole::of_name(name.as_bytes());
        let uses = match role {
            CommandRole::GetMore => bson::find_element(&body, &name).and_then(|id| id.as_i64()),
            _ => None,
        };
        let outcome = &logged.outcome;
        let opens = outcome.cursor.filter(|id| *id != 0 && !outcome.exhausted && uses.is_none());
        let bytes = body.len() + 256;
        let begun_ns = logged.ended_ns.saturating_sub(logged.took_ns);
        self.waiting.insert(
            (begun_ns, self.count),
            WaitingCommand { entry, ended_ns: logged.ended_ns, opens, uses, bytes },
        );
        (self.count, self.waiting_bytes) = (self.count + 1, self.waiting_bytes + bytes);
        while self.waiting.len() > WAITING || self.waiting_bytes > WAITING_BYTES {
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> Result<(), SourceError> {
        let Some(((begun_ns, _), mut first)) = self.waiting.pop_first() else { return Ok(()) };
        self.waiting_bytes -= first.bytes;
        let begins_ns = *self.header.begins_ns.get_or_insert(begun_ns);
        let at_ns = begun_ns.saturating_sub(begins_ns);
        if at_ns < self.last_ns || begun_ns < begins_ns {
            self.leave_out(reason::BACKWARD);
        }
        self.last_ns = self.last_ns.max(at_ns);
        first.entry.at_ns = self.last_ns;
        first.entry.connection = self.connection_of(first.entry.connection, begun_ns, first.ended_ns);
        let opener = first.uses.and_then(|cursor| self.links.find_opener(cursor));
        let mut arguments = Arguments::default();
        let limit = self.header.value_limit as usize;
        arguments.push_limited(first.entry.arguments.word(0), limit);
        arguments.push_limited(first.entry.arguments.word(1), limit);
        let mut body = first.entry.arguments.word(2).to_vec();
        if let Some(opener) = opener {
            // The end of the document is written anew.
            body.pop();
            put_opener(&mut body, opener);
            bson::close(&mut body, 0);
        }
        arguments.push_limited(&body, limit);
        // Looked for in the whole body: of a long one nothing is kept.
        let is_secret = of_command(RecordedProtocol::Mongodb, &first.entry.arguments) != Credentials::None;
        first.entry.arguments = arguments;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(self.new.begin(&self.header)?),
        };
        if is_secret {
            writer.leave_out(crate::credentials::CREDENTIALS, 1);
            return Ok(());
        }
        writer.push_entry(&first.entry)?;
        let connection = first.entry.connection;
        let number = self.entries.entry(connection).or_default();
        if let Some(cursor) = first.opens {
            self.links.note_opened(cursor, CursorOpener { connection, command: *number });
        }
        *number += 1;
        Ok(())
    }

    /// Writes what waits, and ends the recording.
    fn finish(mut self, what: &'static str) -> Result<RecordingTotals, SourceError> {
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        let Some(mut writer) = self.writer else { return Err(SourceError::Nothing(what)) };
        self.left_out.iter().for_each(|(reason, count)| writer.leave_out(reason, *count));
        Ok(writer.finish()?)
    }
}

/// Name, database and body of a command; the reason why there is none.
fn whole_command(logged: &LoggedCommand) -> Result<(String, String, Vec<u8>), &'static str> {
    bson::check(&logged.body).map_err(|_| reason::CUT)?;
    let (database, collection) = logged.namespace.split_once('.').ok_or(reason::CUT)?;
    let has = |name: &str| bson::find_element(&logged.body, name).is_some();
    let of_statement = |command: &str, list: &str, needs: &[&str]| {
        if !needs.iter().all(|name| has(name)) {
            return Err(reason::CUT);
        }
        let body = bson::build_document(|out| {
            bson::put_string(out, command, collection);
            bson::put_head(out, kind::ARRAY, list);
            let at = bson::open(out);
            bson::put_item_head(out, kind::DOCUMENT, 0);
            out.extend_from_slice(&logged.body);
            bson::close(out, at);
        });
        Ok((command.to_owned(), database.to_owned(), body))
    };
    match logged.operation.as_str() {
        "update" => return of_statement("update", "updates", &["q", "u"]),
        "remove" => return of_statement("delete", "deletes", &["q", "limit"]),
        _ => {}
    }
    let elements = || bson::read_elements(&logged.body).map_err(|_| reason::CUT);
    let first = elements()?.next().and_then(Result::ok).ok_or(reason::CUT)?;
    let name = String::from_utf8(first.name.to_vec()).map_err(|_| reason::CUT)?;
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if name.starts_with('$') {
        return Err(reason::CUT);
    }
    if is("update") || is("delete") {
        return Err(reason::WHOLES);
    }
    if is("insert") && !has("documents") {
        return Err(reason::INSERTS);
    }
    if CommandRole::of_name(name.as_bytes()) == CommandRole::ServerCheck {
        return Err(reason::CHECKS);
    }
    let named = bson::find_element(&logged.body, "$db").and_then(|database| database.as_str());
    let database = named.unwrap_or(database).to_owned();
    let body = bson::build_document(|out| {
        for element in elements().into_iter().flatten().flatten() {
            if element.name != b"$db" && element.name != b"$clusterTime" {
                out.push(element.kind);
                out.extend_from_slice(element.name);
                out.push(0);
                out.extend_from_slice(element.value);
            }
        }
    });
    Ok((name, database, body))
}

#[cfg(test)]
mod tests;
