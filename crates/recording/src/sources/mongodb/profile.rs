//! Documents of MongoDB's profiler (`system.profile`), as `mongodump` (BSON) and `mongoexport` (a line of JSON each) write them.
//!
//! The profiler writes the statements of an update or a delete one by one, and inserts without their documents where these came
//! in a sequence of their own, as drivers send them.

use super::{LoggedCommand, LoggedError, LoggedOutcome, MILLISECOND_NS, SortedCommands, reason};
use crate::format::{Lack, RecordingTotals};
use crate::sources::bson_file::{NextDocument, read_document};
use crate::sources::extended_json::{JsonOf, read_line};
use crate::sources::{NewRecording, SourceError};
use dyno_types::bson::{self, kind};
use dyno_types::limits::BSON_BYTES;
use std::io::{BufRead, Read, Write};

/// Longest line of JSON, bytes: hexadecimal digits and names of types take more room than BSON does.
const LINE_BYTES: u64 = 8 * BSON_BYTES;

/// Returns whether a file that begins with these bytes holds documents of the profiler: the operation is their first field.
pub fn is_profile(head: &[u8]) -> bool {
    head.starts_with(b"{\"op\":") || is_bson(head)
}

fn is_bson(head: &[u8]) -> bool {
    let length = bson::document_length(head).and_then(Result::ok);
    length.is_some_and(|length| length as u64 <= BSON_BYTES) && head[4..].starts_with(b"\x02op\0")
}

/// Records documents of the profiler.
///
/// # Errors
/// It holds none, is damaged, or the recording cannot be written.
pub fn record_profile<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let is_json = input.fill_buf()?.first() == Some(&b'{') && !is_bson(input.fill_buf()?);
    let mut sorted = SortedCommands::new(new, "mongodb-profile", &[Lack::Connections]);
    let (mut line, mut cut_off) = (Vec::new(), false);
    loop {
        if !is_json {
            match read_document(input, BSON_BYTES, &mut line)? {
                NextDocument::Document => {}
                end => {
                    cut_off = end == NextDocument::CutOff;
                    break;
                }
            }
            match read_profiled(&line) {
                Some(logged) => sorted.take_command(&logged)?,
                None => sorted.leave_out(reason::CUT),
            }
            continue;
        }
        line.clear();
        if Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match read_line(&line, JsonOf::Commands).ok().and_then(|document| read_profiled(&document)) {
            Some(logged) => sorted.take_command(&logged)?,
            None => sorted.leave_out(reason::CUT),
        }
    }
    if cut_off {
        sorted.leave_out("documents that are cut off at the file's end");
    }
    sorted.finish("documents of MongoDB's profiler")
}

/// A command of a document.
fn read_profiled(document: &[u8]) -> Option<LoggedCommand> {
    bson::check(document).ok()?;
    let find = |name: &str| bson::find_element(document, name);
    let number = |name: &str| find(name)?.as_i64().and_then(|number| u64::try_from(number).ok());
    let operation = find("op")?.as_str()?.to_owned();
    let ts = find("ts").filter(|ts| ts.kind == kind::DATE)?.as_i64()?;
    let ended_ns = u64::try_from(ts).ok()?.checked_mul(MILLISECOND_NS)?;
    // The code is called otherwise since 4.2.
    let code = ["errCode", "exceptionCode"].iter().find_map(|name| find(name)?.as_i64());
    let name = find("errName").and_then(|name| name.as_str());
    let error = LoggedError::new(name, code);
    let written = match operation.as_str() {
        "insert" => number("ninserted"),
        "update" => number("nMatched").map(|n| {
            // Later servers say how many, earlier ones whether.
            let is_upsert = find("upsert").is_some_and(|e| e.is_true());
            n.saturating_add(number("nUpserted").unwrap_or(u64::from(is_upsert)))
        }),
        "remove" => number("ndeleted"),
        _ => None,
    };
    Some(LoggedCommand {
        connection: 0,
        ended_ns,
        took_ns: number("millis")?.checked_mul(MILLISECOND_NS)?,
        namespace: find("ns")?.as_str()?.to_owned(),
        operation,
        body: find("command")?.as_document()?.to_vec(),
        outcome: LoggedOutcome {
            error,
            returned: number("nreturned"),
            written,
            cursor: find("cursorid").and_then(|id| id.as_i64()),
            exhausted: find("cursorExhausted").is_some_and(|e| e.is_true()),
        },
    })
}
