//! Traces of caches: the tables that Twitter and Meta have published, and what momento-proxy writes in Twitter's form.
//!
//! ```text
//! timestamp, key, key size, value size, client, operation, TTL                        (Twitter: no header)
//! key,op,size,op_count,key_size[,ttl]                                                 (Meta, 2022: no times)
//! op_time,key,key_size,op,op_count,size,cache_hits,ttl[,usecase,sub_usecase]          (Meta, later)
//! ```
//!
//! Their requests are memcached's; they become the commands of Redis that do the same. Keys are numbers or hashes in place of the
//! real ones: they are filled up to the length that they had. `op_count` requests of Meta's stand in one line.

use super::cache_request::{CacheRequest, put_command};
use super::seconds::{SECOND_NS, SpreadSecond};
use super::{NewRecording, SourceError};
use crate::entry::{Arguments, Entry};
use crate::format::{
    Lack, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};

/// Longest line, bytes.
const LINE_BYTES: u64 = 1 << 20;

/// Most requests that a line stands for.
const REQUESTS: u64 = 1 << 16;

/// Operations of Twitter's table.
const OPERATIONS: [&str; 11] =
    ["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr"];

/// Columns of a table of Meta's, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MetaColumns {
    time: Option<usize>,
    key: usize,
    key_length: usize,
    operation: usize,
    count: usize,
    value_length: usize,
    ttl: Option<usize>,
}

impl MetaColumns {
    fn of_header(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let place = |name: &str| names.iter().position(|one| *one == name);
        Some(MetaColumns {
            time: place("op_time"),
            key: place("key")?,
            key_length: place("key_size")?,
            operation: place("op")?,
            count: place("op_count")?,
            value_length: place("size")?,
            ttl: place("ttl"),
        })
    }
}

/// Form of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TraceForm {
    Twitter,
    Meta(MetaColumns),
}

impl TraceForm {
    fn of_line(line: &str) -> Option<Self> {
        if let Some(columns) = MetaColumns::of_header(line) {
            return Some(TraceForm::Meta(columns));
        }
        let row = TraceRow::of_twitter(line)?;
        OPERATIONS.contains(&row.request.operation).then_some(TraceForm::Twitter)
    }

    /// Source's name, and what it does not tell.
    fn describe(&self) -> (&'static str, Vec<Lack>) {
        let mut lacks = vec![Lack::Replies, Lack::Values];
        match self {
            TraceForm::Twitter => {
                lacks.push(Lack::Subseconds);
                ("cache-trace-twitter", lacks)
            }
            TraceForm::Meta(columns) => {
                lacks.push(Lack::Connections);
                lacks.push(if columns.time.is_some() { Lack::Subseconds } else { Lack::Times });
                ("cache-trace-meta", lacks)
            }
        }
    }
}

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TraceRow<'a> {
    /// Seconds, from any begin.
    time_s: Option<u64>,
    client: &'a str,
    count: u64,
    request: CacheRequest<'a>,
}

impl<'a> TraceRow<'a> {
    /// A key may hold commas.
    fn of_twitter(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(',')?;
        let mut from_end = rest.rsplitn(6, ',').map(str::trim);
        let (ttl, operation, client) = (from_end.next()?, from_end.next()?, from_end.next()?);
        let (value, key_length, key) = (from_end.next()?, from_end.next()?, from_end.next()?);
        Some(TraceRow {
            time_s: Some(time.trim().parse().ok()?),
            client,
            count: 1,
            request: CacheRequest {
                operation,
                key: key.as_bytes(),
                key_length: key_length.parse().ok()?,
                value_length: value.parse().ok()?,
                ttl_s: ttl.parse().ok()?,
            },
        })
    }

    fn of_meta(line: &'a str, columns: &MetaColumns) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |at: usize| fields.get(at).copied();
        let number = |at: usize| field(at)?.parse::<u64>().ok();
        let time_s = match columns.time {
            Some(at) => Some(number(at)?),
            None => None,
        };
        Some(TraceRow {
            time_s,
            client: "",
            count: number(columns.count)?,
            request: CacheRequest {
                operation: field(columns.operation)?,
                key: field(columns.key)?.as_bytes(),
                key_length: number(columns.key_length)?,
                value_length: number(columns.value_length)?,
                ttl_s: columns.ttl.and_then(number).unwrap_or(0),
            },
        })
    }

    fn read(line: &'a str, form: &TraceForm) -> Option<Self> {
        let row = match form {
            TraceForm::Twitter => Self::of_twitter(line),
            TraceForm::Meta(columns) => Self::of_meta(line, columns),
        };
        row.filter(|row| !row.request.key.is_empty() && (1..=REQUESTS).contains(&row.count))
    }
}

/// Returns whether the first line of a file is that of a cache's trace.
pub fn is_cache_trace(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    std::str::from_utf8(line).is_ok_and(|line| TraceForm::of_line(line.trim_end()).is_some())
}

/// Records a cache's trace.
///
/// # Errors
/// It is none, or the recording cannot be written.
pub fn record_cache_trace<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Redis);
    let mut form = None;
    let mut line = Vec::new();
    let mut recording: Option<RecordingWriter<W>> = None;
    let mut second = SpreadSecond::default();
    let (mut clients, mut begins_s) = (HashMap::new(), None);
    let (mut unread, mut backward, mut without) = (0, 0, 0);
    let mut arguments = Arguments::default();
    loop {
        line.clear();
        if Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        let known = match &form {
            Some(known) => known,
            None => {
                let found = TraceForm::of_line(text);
                let known = form.insert(found.ok_or(SourceError::Nothing("table of a cache's requests"))?);
                if matches!(known, TraceForm::Meta(_)) {
                    continue;
                }
                known
            }
        };
        let Some(row) = TraceRow::read(text, known) else {
            unread += u64::from(!text.is_empty());
            continue;
        };
        if !put_command(&row.request, &mut arguments) {
            without += row.count;
            continue;
        }
        let writer = match &mut recording {
            Some(writer) => writer,
            None => recording.insert(new.begin(&header(known, limit))?),
        };
        if let Some(time_s) = row.time_s {
            let since_s = time_s.saturating_sub(*begins_s.get_or_insert(time_s));
            let at_ns = since_s.saturating_mul(SECOND_NS);
            backward += u64::from(second.begin_second(at_ns, Some(&mut *writer))?);
        }
        let number = clients.len() as u32;
        let connection = match clients.get(row.client) {
            Some(known) => *known,
            None => *clients.entry(row.client.to_owned()).or_insert(number),
        };
        // A client is a service with many connections: none of its requests is known to have waited for another.
        let entry = Entry { connection, arguments: arguments.clone(), overlaps: true, ..Entry::default() };
        for _ in 0..row.count {
            match row.time_s {
                Some(_) => second.push(entry.clone(), writer)?,
                None => drop(writer.push_entry(&entry)?),
            }
        }
    }
    let Some(mut writer) = recording else { return Err(SourceError::Nothing("requests of a cache")) };
    second.finish(&mut writer)?;
    writer.leave_out("lines that are no requests", unread);
    writer.leave_out("times that went back (taken as the time before)", backward);
    writer.leave_out("requests that Redis has no command for", without);
    Ok(writer.finish()?)
}

fn header(form: &TraceForm, value_limit: usize) -> RecordingHeader {
    let (source, lacks) = form.describe();
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: source.into(),
        point: RecordingPoint::Server,
        // Times count from the trace's begin.
        begins_ns: None,
        clock_step_ns: SECOND_NS,
        lacks,
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    fn read(text: &str) -> (Vec<(u64, u32, String)>, RecordingTotals, RecordingHeader) {
        let (all, totals, header) = recorded(|new| record_cache_trace(&mut text.as_bytes(), new));
        let shown = |one: &Entry| {
            let word = |number: usize| match one.arguments.long_value(number) {
                Some(value) => format!("<{}>", value.length),
                None => String::from_utf8_lossy(one.arguments.word(number)).into_owned(),
            };
            let words: Vec<_> = (0..one.arguments.count()).map(word).collect();
            (one.at_ns / 1_000_000, one.connection, words.join(" "))
        };
        (all.iter().map(shown).collect(), totals, header)
    }

    #[test]
    fn twitters_table() {
        let text = "0,nz:u:eeW511W3dcH3de3d15ec,22,304,1,get,0\n0,nz:q,4,10,1,set,600\n\
                    2,a,b,3,7,2,add,0\n1,x,1,0,1,prepend,0\nno line\n2,c,1,0,1,delete,0\n";
        assert!(is_cache_trace(text.as_bytes()));
        let (all, totals, header) = read(text);
        let all: Vec<_> = all.iter().map(|(at, client, words)| (*at, *client, words.as_str())).collect();
        assert_eq!(
            all,
            [
                (0, 0, "GET nz:u:eeW511W3dcH3de3d15ec"),
                (500, 0, "SET nz:q <10> EX 600"),
                (2_000, 1, "SET a,b <7> NX"),
                (2_500, 0, "DEL c"),
            ]
        );
        assert_eq!(totals.left_out.values().copied().collect::<Vec<_>>(), [1, 1]);
        assert!(
            [Lack::Subseconds, Lack::Values, Lack::Replies].into_iter().all(|lack| header.is_without(lack))
        );
    }

    #[test]
    fn metas_tables_have_their_columns_by_name() {
        let text = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                    604038471,8213,6,GET,2,87,1,0,3,3\n604038473,9,1,SET,1,65,0,7200,2,6\n604038473,9,1,FLUSH,1,0,0,0,2,6\n";
        assert!(is_cache_trace(text.as_bytes()));
        let (all, totals, header) = read(text);
        let get = "GET 8213..".to_owned();
        assert_eq!(all, [(0, 0, get.clone()), (500, 0, get), (2_000, 0, "SET 9 <65> EX 7200".into())]);
        assert_eq!(totals.left_out.get("requests that Redis has no command for"), Some(&1));
        assert!(header.is_without(Lack::Connections) && header.is_without(Lack::Subseconds));
        let (all, _, header) = read("key,op,size,op_count,key_size\n7,GET,0,1,3\n7,SET,82,1,3\n");
        assert_eq!(all, [(0, 0, "GET 7..".into()), (0, 0, "SET 7.. <82>".into())]);
        assert!(header.is_without(Lack::Times) && header.begins_ns.is_none());
    }

    #[test]
    fn other_tables_are_none() {
        for text in ["a,b,c\n1,2,3\n", "time,rate\n0,5\n", "1,k,1,2,3,fly,0\n", "", "\u{fffd}"] {
            assert!(!is_cache_trace(text.as_bytes()), "{text:?}");
        }
    }
}
