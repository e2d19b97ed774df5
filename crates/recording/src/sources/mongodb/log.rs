//! Logs of `mongod` and `mongos`: their lines of slow commands, as JSON (since 4.4) and as text before.
//!
//! ```text
//! {"t":{"$date":"..."},"s":"I","c":"COMMAND","id":51803,"ctx":"conn281","msg":"Slow query","attr":{"type":"command",...}}
//! 2026-11-30T07:20:56.889+0000 I COMMAND  [conn1] command t.c command: find { find: "c", $db: "t" } ... 12ms
//! ```
//!
//! A line is written when a command ends. Statements of updates and deletes have lines of their own; those of the whole command
//! do not hold them.

use super::shell_text::read_shell_document;
use super::{LoggedCommand, LoggedError, LoggedOutcome, MILLISECOND_NS, SortedCommands, reason};
use crate::format::RecordingTotals;
use crate::sources::extended_json::{JsonOf, to_bytes};
use crate::sources::{NewRecording, SourceError};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};

/// Longest line, bytes: the server cuts them at 10 KB unless it is told otherwise.
const LINE_BYTES: u64 = 64 << 20;

/// Returns whether a line is one of a log of `mongod`.
pub fn is_mongod_log(line: &[u8]) -> bool {
    line.starts_with(b"{\"t\":{\"$date\":")
        || std::str::from_utf8(line).is_ok_and(|line| read_head(line).is_some())
}

/// The head of a line of text.
struct LineHead<'a> {
    ended_ns: u64,
    component: &'a str,
    thread: &'a str,
    message: &'a str,
}

fn read_head(line: &str) -> Option<LineHead<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let (severity, rest) = rest.split_once(' ')?;
    let is_severity = matches!(severity, "I" | "W" | "E" | "F" | "D" | "D1" | "D2" | "D3" | "D4" | "D5");
    let (component, rest) = rest.split_once(' ')?;
    let (thread, message) = rest.trim_start().strip_prefix('[')?.split_once("] ")?;
    let is_component =
        component == "-" || component.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let time: jiff::Timestamp = time.parse().ok()?;
    let ended_ns = u64::try_from(time.as_nanosecond()).ok()?;
    (is_severity && is_component).then_some(LineHead { ended_ns, component, thread, message })
}

/// What a line is.
enum LogLine {
    Command(Box<LoggedCommand>, String),
    Other,
    /// A command that was cut off, or cannot be read.
    Unreadable,
}

/// Records a log.
///
/// # Errors
/// It has no line of a command, or the recording cannot be written.
pub fn record_mongod_log<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let mut sorted = SortedCommands::new(new, "mongodb-log", &[]);
    let mut connections: HashMap<String, u32> = HashMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // What is no text of UTF-8 is in values.
        let read = match std::str::from_utf8(line.trim_ascii()) {
            Ok(text) if text.starts_with('{') => read_json(text),
            Ok(text) => read_text(text),
            Err(_) => LogLine::Unreadable,
        };
        match read {
            LogLine::Command(mut logged, thread) => {
                if !thread.starts_with("conn") {
                    sorted.leave_out(reason::OWN);
                    continue;
                }
                let number = connections.len() as u32;
                logged.connection = *connections.entry(thread).or_insert(number);
                sorted.take_command(&logged)?;
            }
            LogLine::Other => sorted.leave_out(reason::OTHER_LINES),
            LogLine::Unreadable => sorted.leave_out(reason::CUT),
        }
    }
    sorted.finish("lines of commands in a log of MongoDB")
}

fn read_json(line: &str) -> LogLine {
    let Ok(Value::Object(all)) = serde_json::from_str(line) else { return LogLine::Unreadable };
    let text = |name: &str| all.get(name).and_then(Value::as_str).unwrap_or_default();
    let attributes = all.get("attr").and_then(Value::as_object);
    let Some(attributes) = attributes.filter(|_| ["COMMAND", "WRITE", "QUERY"].contains(&text("c"))) else {
        return LogLine::Other;
    };
    if text("msg") != "Slow query" {
        return LogLine::Other;
    }
    let read = || {
        // The server says which parts of a line it has cut off.
        if all.contains_key("truncated") {
            return None;
        }
        let time: jiff::Timestamp = all.get("t")?.get("$date")?.as_str()?.parse().ok()?;
        let number = |name: &str| attributes.get(name).and_then(Value::as_u64);
        let operation = attributes.get("type")?.as_str()?.to_owned();
        let name = attributes.get("errName").and_then(Value::as_str);
        let error = LoggedError::new(name, attributes.get("errCode").and_then(Value::as_i64));
        let written = match operation.as_str() {
            "update" => number("nMatched").map(|n| {
                // Later servers say how many, earlier ones whether.
                let is_upsert = attributes.get("upsert").and_then(Value::as_bool) == Some(true);
                n.saturating_add(number("nUpserted").unwrap_or(u64::from(is_upsert)))
            }),
            "remove" => number("ndeleted"),
            _ => number("ninserted"),
        };
        Some(LoggedCommand {
            connection: 0,
            ended_ns: u64::try_from(time.as_nanosecond()).ok()?,
            took_ns: number("durationMillis")?.checked_mul(MILLISECOND_NS)?,
            namespace: attributes.get("ns")?.as_str()?.to_owned(),
            operation,
            body: with_long_cursor(to_bytes(attributes.get("command")?.clone(), JsonOf::Commands).ok()?),
            outcome: LoggedOutcome {
                error,
                returned: number("nreturned"),
                written,
                cursor: attributes.get("cursorid").and_then(Value::as_i64),
                exhausted: attributes.get("cursorExhausted").is_some_and(|is| is != false),
            },
        })
    };
    read().map_or(LogLine::Unreadable, |logged| LogLine::Command(Box::new(logged), text("ctx").to_owned()))
}

/// The id of a cursor is one of 64 bits, which the relaxed form does not tell where it is small.
fn with_long_cursor(body: Vec<u8>) -> Vec<u8> {
    use dyno_types::bson::{self, kind};
    let first = bson::read_elements(&body).ok().and_then(|mut all| all.next()?.ok());
    let Some(first) = first.filter(|first| first.name == b"getMore" && first.kind == kind::INT32) else {
        return body;
    };
    let id = first.as_i64().unwrap_or_default();
    bson::build_document(|out| {
        bson::put_int64(out, "getMore", id);
        // Behind the length, the type, the name and four bytes; before the last zero.
        out.extend_from_slice(&body[4 + 1 + 8 + 4..body.len() - 1]);
    })
}

fn read_text(line: &str) -> LogLine {
    let Some(head) = read_head(line) else { return LogLine::Other };
    if !["COMMAND", "WRITE", "QUERY"].contains(&head.component) {
        return LogLine::Other;
    }
    let Some((operation, rest)) = head.message.split_once(' ') else { return LogLine::Other };
    if !["command", "update", "remove", "query", "getmore", "insert"].contains(&operation) {
        return LogLine::Other;
    }
    let Some((namespace, rest)) = rest.split_once(' ') else { return LogLine::Other };
    let Some((_, rest)) = rest.split_once("command: ") else { return LogLine::Other };
    let read = || {
        // The name of a command stands before its document.
        let document = if rest.starts_with('{') { rest } else { rest.split_once(' ')?.1 };
        let (body, facts) = read_shell_document(document)?;
        // The command that has opened the cursor may hold words like these facts.
        let facts = match facts.strip_prefix(" originatingCommand: ") {
            Some(origin) => read_shell_document(origin)?.1,
            None => facts,
        };
        let fact = |name: &str| {
            let mut words = facts.split(' ');
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
        };
        let number = |name: &str| fact(name).and_then(|text| text.parse::<u64>().ok());
        let written = match operation {
            "update" => number("nMatched").map(|n| n + u64::from(fact("upsert").is_some())),
            "remove" => number("ndeleted"),
            _ => number("ninserted"),
        };
        let is_failed = facts.contains(" exception: ");
        let took = facts.rsplit(' ').next()?.strip_suffix("ms")?.parse::<u64>().ok()?;
        Some(LoggedCommand {
            connection: 0,
            ended_ns: head.ended_ns,
            took_ns: took.checked_mul(MILLISECOND_NS)?,
            namespace: namespace.to_owned(),
            operation: operation.to_owned(),
            body,
            outcome: LoggedOutcome {
                error: is_failed.then(|| LoggedError::new(fact("code"), None)).flatten(),
                returned: number("nreturned"),
                written,
                cursor: fact("cursorid").and_then(|id| id.parse().ok()),
                exhausted: fact("cursorExhausted").is_some(),
            },
        })
    };
    read().map_or(LogLine::Unreadable, |logged| LogLine::Command(Box::new(logged), head.thread.to_owned()))
}
