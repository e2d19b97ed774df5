//! An append-only file of Redis: the commands that have written, without connections and replies.
//!
//! ```text
//! #TS:1700000000
//! *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n
//! ```
//!
//! Times are seconds, where the server was told to write them (`aof-timestamp-enabled yes`): the commands of a second are spread
//! evenly over it. A file that begins with a snapshot (`REDIS...`) is refused: of an append-only file of several parts the base
//! is a data set, the incremental files are traffic.

use super::seconds::{SECOND_NS, SpreadSecond};
use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use dyno_types::limits::RECORD_BYTES;
use std::io::{BufRead, Read, Write};

/// Returns whether a file begins as an append-only file does.
pub fn is_aof(head: &[u8]) -> bool {
    head.starts_with(b"#TS:") || (head.starts_with(b"*") && head.get(1).is_some_and(u8::is_ascii_digit))
}

/// Reads a line without its end; `None` at the end of the file.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<bool, std::io::Error> {
    line.clear();
    Read::take(&mut *input, 64 << 10).read_until(b'\n', line)?;
    let is_whole = line.ends_with(b"\n");
    while line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
        line.pop();
    }
    Ok(is_whole)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What stands next in the file.
enum Found {
    /// The time of what follows, seconds since 1970.
    Time(u64),
    /// A command, in the arguments.
    Command,
    /// The file ends, or is cut off here.
    End { cut_off: bool },
}

/// Reads what stands next.
fn read_next(
    input: &mut dyn BufRead,
    line: &mut Vec<u8>,
    arguments: &mut Arguments,
    limit: usize,
) -> Result<Found, SourceError> {
    let damaged = |what: &str| SourceError::Unreadable(format!("it is no append-only file of Redis: {what}"));
    if !read_line(input, line)? {
        return Ok(Found::End { cut_off: !line.is_empty() });
    }
    if let Some(time) = line.strip_prefix(b"#TS:") {
        return number(time).map(Found::Time).ok_or_else(|| damaged("a time that is no number"));
    }
    if line.starts_with(b"#") {
        // An annotation of a later version.
        return read_next(input, line, arguments, limit);
    }
    if line.starts_with(b"REDIS") {
        let message = "it begins with a snapshot, which is data and no traffic: an incremental file (NAME.aof.N.incr.aof) is \
                     traffic; appendonly with aof-use-rdb-preamble no writes commands alone";
        return Err(SourceError::Unreadable(message.into()));
    }
    let count = line.strip_prefix(b"*").and_then(number).filter(|count| *count <= 1 << 20);
    let Some(count) = count else { return Err(damaged("expected a command")) };
    arguments.clear();
    for _ in 0..count {
        if !read_line(input, line)? {
            return Ok(Found::End { cut_off: true });
        }
        let length = line.strip_prefix(b"$").and_then(number).filter(|length| *length <= RECORD_BYTES);
        let Some(length) = length else { return Err(damaged("expected the length of a word")) };
        let mut word = Vec::new();
        Read::take(&mut *input, length + 2).read_to_end(&mut word)?;
        if word.len() as u64 != length + 2 {
            return Ok(Found::End { cut_off: true });
        }
        word.truncate(length as usize);
        arguments.push_limited(&word, limit);
    }
    Ok(Found::Command)
}

/// Records an append-only file.
///
/// # Errors
/// It is no such file, or the recording cannot be written.
pub fn record_aof<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Redis);
    let (mut line, mut arguments) = (Vec::new(), Arguments::default());
    let mut begins_s = None;
    let mut recording: Option<RecordingWriter<W>> = None;
    let mut second = SpreadSecond::default();
    let (mut backward, mut cut) = (0, 0);
    loop {
        match read_next(input, &mut line, &mut arguments, limit)? {
            Found::End { cut_off } => {
                cut += u64::from(cut_off);
                break;
            }
            Found::Time(time) => {
                let first = *begins_s.get_or_insert(time);
                let at_ns = time.saturating_sub(first).saturating_mul(SECOND_NS);
                backward += u64::from(second.begin_second(at_ns, recording.as_mut())?);
            }
            Found::Command => {
                let writer = match &mut recording {
                    Some(writer) => writer,
                    None => recording.insert(new.begin(&header(begins_s, limit))?),
                };
                let entry = Entry { arguments: arguments.clone(), ..Entry::default() };
                match begins_s {
                    Some(_) => second.push(entry, writer)?,
                    None => drop(writer.push_entry(&entry)?),
                }
            }
        }
    }
    let Some(mut writer) = recording else {
        return Err(SourceError::Nothing("commands of an append-only file"));
    };
    second.finish(&mut writer)?;
    writer.leave_out("times that went back (taken as the time before)", backward);
    writer.leave_out("commands that are cut off at the file's end", cut);
    Ok(writer.finish()?)
}

fn header(begins_s: Option<u64>, value_limit: usize) -> RecordingHeader {
    let mut lacks = vec![Lack::Connections, Lack::Replies, Lack::Reads];
    lacks.push(if begins_s.is_some() { Lack::Subseconds } else { Lack::Times });
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "aof".into(),
        point: RecordingPoint::Server,
        begins_ns: begins_s.map(|s| s.saturating_mul(SECOND_NS)),
        clock_step_ns: SECOND_NS,
        lacks,
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    fn command(words: &[&str]) -> String {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        format!("*{}\r\n{}", words.len(), words.iter().map(word).collect::<String>())
    }

    fn times(text: &str) -> (Vec<(u64, String)>, RecordingTotals, RecordingHeader) {
        let (all, totals, header) = recorded(|new| record_aof(&mut text.as_bytes(), new));
        let shown = |one: &Entry| {
            let words: Vec<_> = one.arguments.words().map(String::from_utf8_lossy).collect();
            (one.at_ns / 1_000_000, words.join(" "))
        };
        (all.iter().map(shown).collect(), totals, header)
    }

    #[test]
    fn the_commands_of_a_second_are_spread_over_it() {
        let set = |key: &str| command(&["SET", key, "v"]);
        let text = format!(
            "#TS:100\r\n{}{}#TS:101\r\n#TS:103\r\n{}{}{}{}#TS:102\r\n{}*2\r\n$3\r\nGE",
            command(&["SELECT", "0"]),
            set("a"),
            set("b"),
            set("c"),
            set("d"),
            set("e"),
            set("f")
        );
        let (all, totals, header) = times(&text);
        let at: Vec<(u64, &str)> = all.iter().map(|(at, message)| (*at, message.as_str())).collect();
        assert_eq!(
            at,
            [
                (0, "SELECT 0"),
                (500, "SET a v"),
                (3_000, "SET b v"),
                (3_200, "SET c v"),
                (3_400, "SET d v"),
                (3_600, "SET e v"),
                (3_800, "SET f v")
            ]
        );
        assert_eq!(totals.left_out.values().copied().collect::<Vec<_>>(), [1, 1]);
        assert!(header.is_without(Lack::Subseconds) && header.is_without(Lack::Replies));
        assert_eq!(header.begins_ns, Some(100 * SECOND_NS));
    }

    #[test]
    fn a_file_without_times_has_none() {
        let (all, _, header) = times(&(command(&["SET", "a", "1"]) + &command(&["DEL", "a"])));
        assert_eq!(all, [(0, "SET a 1".into()), (0, "DEL a".into())]);
        assert!(header.is_without(Lack::Times) && header.begins_ns.is_none());
    }

    #[test]
    fn other_files_are_refused() {
        for (text, message) in
            [("REDIS0011\u{fa}\n", "snapshot"), ("*x\r\n", "command"), ("*1\r\n:5\r\n", "length")]
        {
            let mut new = NewRecording::new(1, |header| RecordingWriter::new(Vec::new(), header));
            let refused = record_aof(&mut text.as_bytes(), &mut new).unwrap_err().to_string();
            assert!(refused.contains(message), "{refused}");
        }
        assert!(is_aof(b"#TS:1\r\n*1") && is_aof(b"*3\r\n") && !is_aof(b"REDIS0009") && !is_aof(b"* x"));
    }
}
