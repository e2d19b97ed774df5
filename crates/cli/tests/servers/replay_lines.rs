//! Recordings of a few lines, for tests of replays.

use dyno_recording::entry::Arguments;
use dyno_recording::{
    Entry, RecordedKind, RecordedProtocol, RecordedReply, RecordingHeader, RecordingPoint, RecordingWriter,
};
use dyno_testkit::{Dyno, phase};
use dyno_types::command::ReplyKind;
use serde_json::Value;
use std::collections::BTreeMap;

/// A command of a recording.
pub struct Line {
    /// When it was sent, milliseconds.
    pub at_ms: u64,
    pub connection: u32,
    /// Its words, with blanks between.
    pub command: String,
    /// Its reply in short: `+` a status, `5` a text of five bytes, `:` a number, `*3` three elements, `nil`, `-MOVED` an error.
    pub reply: &'static str,
    /// Time that the reply took, milliseconds.
    pub took_ms: u64,
}

/// A command that took no time.
pub fn line(at_ms: u64, connection: u32, command: impl Into<String>, reply: &'static str) -> Line {
    Line { at_ms, connection, command: command.into(), reply, took_ms: 0 }
}

fn reply_of(line: &Line) -> RecordedReply {
    let of = |kind: ReplyKind, size: &str| RecordedReply {
        kind: RecordedKind::Reply(kind),
        size: size.parse().unwrap_or(0),
        error: String::new(),
        after_ns: Some((line.took_ms * 1_000_000).max(50_000)),
    };
    match line.reply.split_at(1) {
        ("+", _) => of(ReplyKind::Status, ""),
        (":", _) => of(ReplyKind::Integer, ""),
        ("*", count) => of(ReplyKind::Array, count),
        ("-", class) => {
            RecordedReply { kind: RecordedKind::Error, error: class.into(), ..of(ReplyKind::Nil, "") }
        }
        _ if line.reply == "nil" => of(ReplyKind::Nil, ""),
        _ => of(ReplyKind::Text, line.reply),
    }
}

/// Writes `t.dyno`, with replies, as a proxy would have recorded it.
pub fn record_lines(dyno: &Dyno, lines: &[Line]) {
    let header = RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "proxy".into(),
        point: RecordingPoint::Proxy,
        begins_ns: None,
        clock_step_ns: 1,
        lacks: Vec::new(),
        value_limit: 1 << 16,
    };
    let mut writer = RecordingWriter::create_file(&dyno.path("t.dyno"), &header).unwrap();
    for (place, line) in lines.iter().enumerate() {
        let is_unanswered = |before: &Line| {
            before.connection == line.connection && before.at_ms + before.took_ms > line.at_ms
        };
        let entry = Entry {
            overlaps: lines[..place].iter().any(is_unanswered),
            at_ns: line.at_ms * 1_000_000,
            connection: line.connection,
            arguments: Arguments::from_words(line.command.split(' ')),
            reply: Some(reply_of(line)),
            ..Entry::default()
        };
        writer.push_entry(&entry).unwrap();
    }
    writer.finish().unwrap();
}

/// Calls by command, of the text of `INFO commandstats`.
pub fn count_calls(stats: &str) -> BTreeMap<String, u64> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_uppercase(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(one).collect()
}

/// What the summary says of the replay.
pub fn replayed(summary: &Value) -> &Value {
    &phase(summary, "measure")["replay"]
}

/// The figures of a metric of the measured phase.
pub fn metric<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let all = phase(summary, "measure")["metrics"].as_array().unwrap();
    all.iter().find(|metric| metric["name"] == name).unwrap_or(&Value::Null)
}
