//! Logs of Dragonfly's traffic: what `DEBUG TRAFFIC PATH` writes, a file for each of the server's threads.
//!
//! ```text
//! version u8 (2 or 3) | listener u8 (version 3 alone: 1 main, 2 memcached, 3 admin, 4 of replicas)
//! record: client u32 | nanoseconds since 1970 u64 | database u32 | flags u32 | words u32 | length of each u32 | their bytes
//! ```
//!
//! Numbers are little-endian. Flag 1 says that the next command of the connection had come with this one. There are no replies.

use super::clock::SourceClock;
use super::databases::ConnectionDatabases;
use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry};
use crate::format::{Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals};
use dyno_types::limits::RECORD_BYTES;
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};

/// The listener of memcached's protocol.
const MEMCACHED: u8 = 2;

/// Bytes of a record before the lengths of its words.
const HEAD_BYTES: usize = 24;

/// Bytes of a command's words that are kept.
const COMMAND_BYTES: usize = 64 << 20;

/// Most words of a command.
const WORDS: u32 = 1 << 20;

/// Times of records that are taken for one, nanoseconds since 1970: 2017 to 2096.
const TIMES: std::ops::Range<u64> = 1_500_000_000_000_000_000..4_000_000_000_000_000_000;

/// The first bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordHead {
    client: u32,
    at_ns: u64,
    database: u32,
    has_more: bool,
    words: u32,
}

fn read_head(bytes: &[u8]) -> Option<RecordHead> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    let at_ns = u64::from_le_bytes(*bytes.get(4..)?.first_chunk::<8>()?);
    let (flags, words) = (word(16)?, word(20)?);
    let is_possible = TIMES.contains(&at_ns) && flags <= 1 && (1..=WORDS).contains(&words);
    is_possible.then_some(RecordHead {
        client: word(0)?,
        at_ns,
        database: word(12)?,
        has_more: flags == 1,
        words,
    })
}

/// Returns whether a file begins as such a log does.
pub fn is_traffic_log(head: &[u8]) -> bool {
    match head {
        // A thread that had nothing to do has a file without records.
        [2] | [3, 1..=4] => true,
        [2, rest @ ..] | [3, 1..=4, rest @ ..] => read_head(rest).is_some(),
        _ => false,
    }
}

/// A file, and the record that stands next in it.
struct LogFile<'a> {
    input: Box<dyn BufRead + 'a>,
    next: Option<(RecordHead, Arguments)>,
    limit: usize,
    cut_off: bool,
}

impl<'a> LogFile<'a> {
    fn open(mut input: Box<dyn BufRead + 'a>, limit: usize) -> Result<Self, SourceError> {
        let mut version = [0];
        input.read_exact(&mut version)?;
        let mut listener = [1];
        match version[0] {
            2 => {}
            3 => input.read_exact(&mut listener)?,
            other => {
                let message =
                    format!("it is no log of Dragonfly's traffic of version 2 or 3, but of {other}");
                return Err(SourceError::Unreadable(message));
            }
        }
        if listener[0] == MEMCACHED {
            let message = "it is traffic of Dragonfly's port for memcached, which dyno does not replay";
            return Err(SourceError::Unreadable(message.into()));
        }
        let mut file = LogFile { input, next: None, limit, cut_off: false };
        file.advance()?;
        Ok(file)
    }

    /// Reads the next record.
    fn advance(&mut self) -> Result<(), SourceError> {
        self.next = None;
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        Read::take(&mut self.input, HEAD_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() < HEAD_BYTES {
            self.cut_off = true;
            return Ok(());
        }
        let damaged = |what: &str| SourceError::Unreadable(format!("it is a damaged log of traffic: {what}"));
        let head = read_head(&bytes).ok_or_else(|| damaged("a record that cannot be"))?;
        bytes.clear();
        Read::take(&mut self.input, u64::from(head.words) * 4).read_to_end(&mut bytes)?;
        if bytes.len() < head.words as usize * 4 {
            self.cut_off = true;
            return Ok(());
        }
        let (mut arguments, mut word) = (Arguments::default(), Vec::new());
        for length in bytes.as_chunks::<4>().0 {
            let length = u64::from(u32::from_le_bytes(*length));
            if length > RECORD_BYTES {
                return Err(damaged("a word that is too long"));
            }
            word.clear();
            Read::take(&mut self.input, length).read_to_end(&mut word)?;
            if (word.len() as u64) < length {
                self.cut_off = true;
                return Ok(());
            }
            let is_room = arguments.kept_bytes() + word.len() <= COMMAND_BYTES;
            arguments.push_limited(&word, if is_room { self.limit } else { 0 });
        }
        self.next = Some((head, arguments));
        Ok(())
    }
}

/// Records logs of a server's threads, merged by their times.
///
/// # Errors
/// One is damaged, there are no commands in them, or the recording cannot be written.
pub fn record_traffic_logs<'a, W: Write>(
    inputs: Vec<Box<dyn BufRead + 'a>>,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Redis);
    let files: Result<Vec<_>, _> = inputs.into_iter().map(|input| LogFile::open(input, limit)).collect();
    let mut files = files?;
    let mut recording = None;
    let mut connections = ConnectionDatabases::default();
    // Connections whose last command had another behind it.
    let mut pipelined: HashMap<u32, bool> = HashMap::new();
    let mut clock = SourceClock::default();
    let time = |file: &LogFile<'_>| file.next.as_ref().map_or(u64::MAX, |(head, _)| head.at_ns);
    while let Some(file) = files.iter_mut().min_by_key(|file| time(file))
        && let Some((head, arguments)) = file.next.take()
    {
        file.advance()?;
        let (begins_ns, at_ns) = clock.take_time(head.at_ns);
        let writer = match &mut recording {
            Some(writer) => writer,
            None => recording.insert(new.begin(&header(begins_ns, limit))?),
        };
        let connection = connections.enter(at_ns, &head.client, head.database, &arguments, writer)?;
        let overlaps = pipelined.insert(head.client, head.has_more).unwrap_or(false);
        writer.push_entry(&Entry { at_ns, connection, arguments, overlaps, ..Entry::default() })?;
    }
    let Some(mut writer) = recording else { return Err(SourceError::Nothing("commands")) };
    clock.note_backward(&mut writer);
    let cut_off = files.iter().filter(|file| file.cut_off).count() as u64;
    writer.leave_out("commands that are cut off at a file's end", cut_off);
    Ok(writer.finish()?)
}

fn header(begins_ns: u64, value_limit: usize) -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "dragonfly-traffic".into(),
        point: RecordingPoint::Server,
        begins_ns: Some(begins_ns),
        clock_step_ns: 1,
        lacks: vec![Lack::Replies],
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

    fn record((client, at_ns): (u32, u64), database: u32, more: u32, words: &[&str]) -> Vec<u8> {
        let mut out = client.to_le_bytes().to_vec();
        out.extend((BEGIN_NS + at_ns).to_le_bytes());
        for number in [database, more, words.len() as u32] {
            out.extend(number.to_le_bytes());
        }
        words.iter().for_each(|word| out.extend((word.len() as u32).to_le_bytes()));
        words.iter().for_each(|word| out.extend(word.as_bytes()));
        out
    }

    fn read(files: &[Vec<u8>]) -> (Vec<(u64, u32, bool, String)>, RecordingTotals) {
        let (all, totals, header) = recorded(|new| {
            let inputs = files.iter().map(|file| Box::new(&file[..]) as Box<dyn BufRead>);
            record_traffic_logs(inputs.collect(), new)
        });
        assert!(header.is_without(Lack::Replies) && header.begins_ns == Some(BEGIN_NS));
        let shown = |one: &Entry| {
            let words: Vec<_> = one.arguments.words().map(String::from_utf8_lossy).collect();
            (one.at_ns, one.connection, one.overlaps, words.join(" "))
        };
        (all.iter().map(shown).collect(), totals)
    }

    #[test]
    fn logs_of_threads_are_merged_by_their_times() {
        let first = [
            vec![3, 1],
            record((7, 0), 0, 1, &["SET", "a", ""]),
            record((7, 5), 0, 0, &["GET", "a"]),
            record((7, 900), 0, 0, &["PING"]),
        ];
        let second = [
            vec![2],
            record((9, 3), 2, 0, &["GET", "b"]),
            record((9, 950), 2, 0, &["GET", "cut"])[..30].into(),
        ];
        let (all, totals) = read(&[first.concat(), second.concat()]);
        let all: Vec<_> = all
            .iter()
            .map(|(at, connection, overlaps, words)| (*at, *connection, *overlaps, words.as_str()))
            .collect();
        assert_eq!(
            all,
            [
                (0, 0, false, "SET a "),
                (3, 1, false, "SELECT 2"),
                (3, 1, false, "GET b"),
                (5, 0, true, "GET a"),
                (900, 0, false, "PING"),
            ]
        );
        assert_eq!(totals.left_out.values().sum::<u64>(), 1, "{:?}", totals.left_out);
        assert!(is_traffic_log(&first.concat()) && is_traffic_log(&second.concat()));
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |file: &[u8]| {
            let mut new = NewRecording::new(None, |header| crate::RecordingWriter::new(Vec::new(), header));
            record_traffic_logs(vec![Box::new(file)], &mut new).unwrap_err().to_string()
        };
        assert!(refused(&[9, 9]).contains("version 2 or 3"));
        assert!(refused(&[3, 2]).contains("memcached"));
        assert_eq!(refused(&[2]), "it has no commands");
        assert!(refused(&[&[2][..], &[0; 24]].concat()).contains("damaged"));
        let mut long = [&[2][..], &record((1, 0), 0, 0, &["GET"])].concat();
        long[25..29].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(refused(&long).contains("too long"));
        assert!(!is_traffic_log(b"*3\r\n$3") && !is_traffic_log(&[3, 9]) && !is_traffic_log(&[2; 40]));
    }
}
