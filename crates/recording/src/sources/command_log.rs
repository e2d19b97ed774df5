//! Command logs of momento-proxy, which rpc-perf replays, and of Pelikan in whose form they began.
//!
//! ```text
//! 2025-07-16T17:00:00.123Z "get KEY" STATUS SIZE
//! 2025-07-16T17:00:00.124Z "set KEY FLAGS TTL SIZE" STATUS SIZE
//! 2025-07-16T17:00:00.125Z {"command": "get", "key": "KEY", "response_status": "4", "response_size": "10"}
//! ```
//!
//! They become the commands of Redis that do the same, with replies as far as the status tells them; the log has no connections
//! and no bytes of values.

use super::cache_request::{CacheRequest, put_command};
use super::clock::SourceClock;
use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry, RecordedKind, RecordedReply};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use dyno_types::command::ReplyKind;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::io::{BufRead, Read, Write};

/// Longest line, bytes.
const LINE_BYTES: u64 = 4 << 20;

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LogLine {
    at_ns: u64,
    operation: String,
    key: Vec<u8>,
    ttl_s: u64,
    value_length: u64,
    /// Number of the outcome, and length of the value that was found.
    status: u64,
    size: u64,
}

/// Bytes of a key that the log has escaped as Rust's `escape_default` does.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, taken) = match (first, after) {
            (b'\\', [b'x', high, low, ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok();
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => (byte, 4),
                    None => (b'\\', 1),
                }
            }
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [other, ..]) => (*other, 2),
            (byte, _) => (*byte, 1),
        };
        out.push(byte);
        rest = &rest[taken..];
    }
    out
}

fn read_line(line: &str) -> Option<LogLine> {
    let (time, rest) = line.split_once(' ')?;
    let at_ns = u64::try_from(time.parse::<Timestamp>().ok()?.as_nanosecond()).ok()?;
    match rest.starts_with('{') {
        true => read_object(at_ns, &serde_json::from_str(&escape_for_json(rest)).ok()?),
        false => read_words(at_ns, rest),
    }
}

/// The proxy writes `\x01` into its JSON, which JSON does not know, and `\'`.
fn escape_for_json(text: &str) -> String {
    text.replace("\\x", "\\\\x").replace("\\'", "\\\\'")
}

fn read_object(at_ns: u64, object: &Map<String, Value>) -> Option<LogLine> {
    let text = |name: &str| object.get(name)?.as_str();
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    // Commands on a field of a key are of Redis' kinds, whose arguments are not in the log.
    if object.contains_key("field") {
        return None;
    }
    Some(LogLine {
        at_ns,
        operation: text("command")?.to_owned(),
        key: unescape(text("key")?),
        ttl_s: number("ttl").unwrap_or(0),
        value_length: number("request_size").unwrap_or(0),
        status: number("response_status")?,
        size: number("response_size")?,
    })
}

fn read_words(at_ns: u64, rest: &str) -> Option<LogLine> {
    let (request, outcome) = rest.strip_prefix('"')?.rsplit_once("\" ")?;
    let (status, size) = outcome.split_once(' ')?;
    let mut words = request.split(' ');
    let (operation, key) = (words.next()?.to_owned(), unescape(words.next()?));
    let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
    let (ttl, value_length) = match numbers?.as_slice() {
        [] => (0, 0),
        // Flags, time to live and length; of `cas` a number, too.
        [_, ttl, length] | [_, ttl, length, _] => (*ttl, *length),
        _ => return None,
    };
    Some(LogLine {
        at_ns,
        operation,
        key,
        // Less than nothing has expired at once.
        ttl_s: u64::try_from(ttl).unwrap_or(1),
        value_length: u64::try_from(value_length).ok()?,
        status: status.parse().ok()?,
        size: size.trim_end().parse().ok()?,
    })
}

impl LogLine {
    /// The reply of Redis that says what the status says; `None` where that is an error, or unknown.
    fn reply(&self) -> Option<RecordedReply> {
        let (kind, size) = match (self.operation.as_str(), self.status) {
            ("get" | "gets", 0 | 8) => (ReplyKind::Nil, 0),
            ("get" | "gets", 4) => (ReplyKind::Text, self.size),
            ("set" | "add" | "replace" | "cas", 5) => (ReplyKind::Status, 0),
            ("add" | "replace" | "cas", 9) => (ReplyKind::Nil, 0),
            ("delete", 7 | 8) => (ReplyKind::Integer, 0),
            _ => return None,
        };
        Some(RecordedReply { kind: RecordedKind::Reply(kind), size, error: String::new(), after_ns: None })
    }
}

/// Returns whether a line is one of such a log.
pub fn is_command_log(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| read_line(line.trim_end()).is_some())
}

/// Records a command log.
///
/// # Errors
/// It has no line of a command, or the recording cannot be written.
pub fn record_command_log<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Redis);
    let mut recording: Option<RecordingWriter<W>> = None;
    let (mut line, mut arguments) = (Vec::new(), Arguments::default());
    let mut clock = SourceClock::default();
    let (mut unread, mut without) = (0, 0);
    loop {
        line.clear();
        if Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let Some(found) = read_line(text.trim_end()) else {
            unread += u64::from(!text.trim().is_empty());
            continue;
        };
        let request = CacheRequest {
            operation: &found.operation,
            key: &found.key,
            key_length: 0,
            value_length: found.value_length,
            ttl_s: found.ttl_s,
        };
        if !put_command(&request, &mut arguments) {
            without += 1;
            continue;
        }
        let (begins_ns, at_ns) = clock.take_time(found.at_ns);
        let writer = match &mut recording {
            Some(writer) => writer,
            None => recording.insert(new.begin(&header(begins_ns, limit))?),
        };
        writer.push_entry(&Entry {
            at_ns,
            arguments: arguments.clone(),
            reply: found.reply(),
            // Lines of all connections: none is known to have waited for another.
            overlaps: true,
            ..Entry::default()
        })?;
    }
    let Some(mut writer) = recording else { return Err(SourceError::Nothing("lines of a command log")) };
    writer.leave_out("lines that are no commands", unread);
    writer.leave_out("requests that Redis has no command for", without);
    clock.note_backward(&mut writer);
    Ok(writer.finish()?)
}

fn header(begins_ns: u64, value_limit: usize) -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "command-log".into(),
        point: RecordingPoint::Proxy,
        begins_ns: Some(begins_ns),
        clock_step_ns: 1_000_000,
        lacks: vec![Lack::Connections, Lack::Values, Lack::ReplyTimes],
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    /// A line of JSON: its millisecond, and fields with their texts.
    fn object(ms: u32, fields: &[(&str, &str)]) -> String {
        let fields: Vec<String> =
            fields.iter().map(|(name, text)| format!("\"{name}\": \"{text}\"")).collect();
        format!("2025-07-16T17:00:00.{ms}Z {{{}}}\n", fields.join(", "))
    }

    #[test]
    fn both_forms_are_read() {
        let outcome = |status, size| [("response_status", status), ("response_size", size)];
        let set = [("command", "set"), ("key", "d"), ("flags", "0"), ("ttl", "0"), ("request_size", "7")];
        let text = [
            "2025-07-16T17:00:00.123Z \"get a\\x01b\" 4 10\n".to_owned(),
            "2025-07-16T17:00:00.124+00:00 \"set b 0 60 5\" 5 8\n".to_owned(),
            object(125, &[&[("command", "get"), ("key", "c\\x02\\\"")][..], &outcome("0", "0")].concat()),
            object(126, &[&set[..], &outcome("11", "0")].concat()),
            object(
                127,
                &[&[("command", "hget"), ("key", "h"), ("field", "f")][..], &outcome("4", "1")].concat(),
            ),
            "2025-07-16T17:00:00.128Z \"delete a\" 7 9\n".to_owned(),
            "2025-07-16T17:00:00.129Z \"touch a\" 4 9\n".to_owned(),
        ]
        .concat();
        assert!(is_command_log(text.lines().next().unwrap().as_bytes()));
        let (all, totals, header) = recorded(|new| record_command_log(&mut text.as_bytes(), new));
        let shown = |one: &Entry| {
            let word = |number: usize| match one.arguments.long_value(number) {
                Some(value) => format!("<{}>", value.length),
                None => String::from_utf8_lossy(one.arguments.word(number)).into_owned(),
            };
            let words: Vec<_> = (0..one.arguments.count()).map(word).collect();
            let reply = one.reply.as_ref().map(|reply| (reply.kind, reply.size));
            (one.at_ns / 1_000_000, words.join(" "), reply)
        };
        let kind = |kind, size| Some((RecordedKind::Reply(kind), size));
        assert_eq!(
            all.iter().map(shown).collect::<Vec<_>>(),
            [
                (0, "GET a\u{1}b".into(), kind(ReplyKind::Text, 10)),
                (1, "SET b <5> EX 60".into(), kind(ReplyKind::Status, 0)),
                (2, "GET c\u{2}\"".into(), kind(ReplyKind::Nil, 0)),
                (3, "SET d <7>".into(), None),
                (5, "DEL a".into(), kind(ReplyKind::Integer, 0)),
            ]
        );
        assert_eq!(totals.left_out.values().copied().collect::<Vec<_>>(), [1, 1]);
        assert!(header.is_without(Lack::ReplyTimes) && header.is_without(Lack::Connections));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "2025-07-16T17:00:00Z",
            "1339518083.107412 [0 127.0.0.1:60866] \"SET\" \"key\"",
            "{\"t\": 1}",
        ] {
            assert!(!is_command_log(line.as_bytes()), "{line}");
        }
        assert!(!is_command_log(b"2025-07-16T17:00:00Z {\"s\":\"I\", \"c\":\"NETWORK\"}"));
        assert!(!is_command_log(b"2025-07-16T17:00:00Z \"set a 0 5\" 5 8"));
    }
}
