//! Output of `redis-cli MONITOR`, of Redis, Valkey, KeyDB and Dragonfly.
//!
//! ```text
//! OK
//! 1339518083.107412 [0 127.0.0.1:60866] "SET" "key" "a\x00\n"
//! ```
//!
//! It has no replies. Commands that a script calls come behind the script's, with `lua` instead of an address: they are left
//! out, since the script's command brings them back. Passwords the server leaves out itself.

use super::clock::SourceClock;
use super::databases::ConnectionDatabases;
use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry};
use crate::exchange::read_inline;
use crate::format::{Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals};
use std::io::{BufRead, Write};

/// Longest line, bytes: a byte of a value takes four at most.
const LINE_BYTES: u64 = 4 << 30;

/// A line of a command.
#[derive(Debug, PartialEq, Eq)]
struct MonitorLine<'a> {
    at_ns: u64,
    database: u32,
    client: &'a [u8],
    words: &'a [u8],
}

/// Returns whether a line looks as the output of MONITOR does.
pub fn is_monitor_line(line: &[u8]) -> bool {
    read_line(line).is_some()
}

/// Nanoseconds of a time in seconds with a fraction.
fn read_time(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let part = fraction.parse::<u64>().ok()? * 10u64.pow(9 - fraction.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

fn read_line(line: &[u8]) -> Option<MonitorLine<'_>> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let at_ns = read_time(&line[..space])?;
    let rest = line[space + 1..].strip_prefix(b"[")?;
    // An address of IPv6 has brackets of its own.
    let end = rest.windows(3).position(|three| three == b"] \"")?;
    let space = rest[..end].iter().position(|byte| *byte == b' ')?;
    let database = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
    Some(MonitorLine { at_ns, database, client: &rest[space + 1..end], words: &rest[end + 2..] })
}

/// Records the output of MONITOR.
///
/// # Errors
/// It has no line of a command, or the recording cannot be written.
pub fn record_monitor<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Redis);
    let (mut line, mut arguments) = (Vec::new(), Arguments::default());
    let mut recording = None;
    let mut clock = SourceClock::default();
    let (mut unread, mut scripts) = (0, 0);
    let mut connections = ConnectionDatabases::default();
    loop {
        line.clear();
        if std::io::Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_whole = line.ends_with(b"\n");
        while line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
            line.pop();
        }
        arguments.clear();
        // Words are quoted as the server reads them in a command that is a line.
        let read = read_line(&line).filter(|found| read_inline(found.words, &mut arguments).is_ok());
        let Some(found) = read else {
            // The server's answer to MONITOR, and an end in the middle of a line.
            unread += u64::from(!line.is_empty() && line != b"OK" && is_whole);
            continue;
        };
        if found.client == b"lua" {
            scripts += 1;
            continue;
        }
        let (begins_ns, at_ns) = clock.take_time(found.at_ns);
        let writer = match &mut recording {
            Some(writer) => writer,
            None => recording.insert(new.begin(&header(begins_ns, limit))?),
        };
        let connection = connections.enter(at_ns, found.client, found.database, &arguments, writer)?;
        let mut entry = Entry { at_ns, connection, ..Entry::default() };
        arguments.words().for_each(|word| entry.arguments.push_limited(word, limit));
        writer.push_entry(&entry)?;
    }
    let Some(mut writer) = recording else { return Err(SourceError::Nothing("lines of MONITOR")) };
    writer.leave_out("lines that are no commands", unread);
    writer.leave_out("commands that scripts have called", scripts);
    clock.note_backward(&mut writer);
    Ok(writer.finish()?)
}

fn header(begins_ns: u64, value_limit: usize) -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "monitor".into(),
        point: RecordingPoint::Server,
        begins_ns: Some(begins_ns),
        clock_step_ns: 1_000,
        lacks: vec![Lack::Replies],
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    #[test]
    fn connections_databases_and_scripts_are_told_apart() {
        let text = concat!(
            "OK\n",
            "10.000001 [0 127.0.0.1:1] \"SET\" \"k\" \"v\"\n",
            "10.5 [3 127.0.0.1:2] \"get\" \"k\"\n",
            "10.5 [3 127.0.0.1:2] \"get\" \"l\"\n",
            "10.6 [0 127.0.0.1:1] \"select\" \"3\"\n",
            "10.7 [3 127.0.0.1:1] \"get\" \"m\"\n",
            "10.8 [3 lua] \"get\" \"m\"\n",
            "10.4 [3 127.0.0.1:1] \"eval\" \"return 1\" \"0\"\n",
            "nonsense\n",
            "10.9 [3 127.0.0.1:1] \"get\" \"cut o",
        );
        let (all, totals, header) = recorded(|new| record_monitor(&mut text.as_bytes(), new));
        let shown: Vec<String> = all
            .iter()
            .map(|one| {
                let words: Vec<_> = one.arguments.words().map(String::from_utf8_lossy).collect();
                let implied = if one.implied { " implied" } else { "" };
                format!("{} {} {}{implied}", one.at_ns / 1_000, one.connection, words.join(" "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "0 0 SET k v",
                "499999 1 SELECT 3 implied",
                "499999 1 get k",
                "499999 1 get l",
                "599999 0 select 3",
                "699999 0 get m",
                "699999 0 eval return 1 0"
            ]
        );
        let left: Vec<(&str, u64)> = totals.left_out.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(
            left,
            [
                ("commands that scripts have called", 1),
                ("lines that are no commands", 1),
                ("times that went back (taken as the time before)", 1)
            ]
        );
        assert_eq!((header.begins_ns, header.lacks), (Some(10_000_001_000), vec![Lack::Replies]));
    }

    #[test]
    fn a_text_of_something_else_is_refused() {
        let mut new =
            NewRecording::new(1, |_| crate::format::RecordingWriter::new(Vec::new(), &header(0, 1)));
        let refused = record_monitor(&mut &b"GET a\nGET b\n"[..], &mut new);
        assert!(matches!(refused, Err(SourceError::Nothing(_))));
    }

    #[test]
    fn lines_are_read_as_the_server_writes_them() {
        let line = br#"1339518083.107412 [12 [::1]:60866] "set" "a b" "\x00\n\r\t\a\b\\\"]\xff""#;
        let found = read_line(line).unwrap();
        assert_eq!(
            (found.at_ns, found.database, found.client),
            (1_339_518_083_107_412_000, 12, &b"[::1]:60866"[..])
        );
        let mut arguments = Arguments::default();
        read_inline(found.words, &mut arguments).unwrap();
        assert!(arguments.words().eq([&b"set"[..], b"a b", b"\0\n\r\t\x07\x08\\\"]\xff"]));
        for wrong in [
            &b"OK"[..],
            b"1339518083 [0 127.0.0.1:1] \"get\"",
            b"1339518083.1 0 127.0.0.1:1 \"get\"",
            b"x.1 [0 127.0.0.1:1] \"get\"",
            b"1.2 [a 127.0.0.1:1] \"get\"",
        ] {
            assert_eq!(read_line(wrong), None);
        }
        // A line that was cut within a word.
        for wrong in [&b"\"get"[..], b"\"a\"\"b\"", b"\"a\\"] {
            assert!(read_inline(wrong, &mut arguments).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
