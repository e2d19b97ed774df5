//! Points and queries as bytes. YCSB squeezes both into its key-value interface: a point is a record with
//! its tags, its timestamp and its value as fields; a query is a read or a scan whose *field names* say what is
//! wanted: `tag=value`, `YCSBTS=from,to`, `YCSBGB=function`, `YCSBDS=...`.
//!
//! Timestamps and numbers are written as decimal text (YCSB hands its bindings eight bytes, which each of them
//! encodes in its own way).

use super::config::{NumberKind, TimeSeriesConfig};
use super::space::Space;
use crate::keys::{java_hash_ascii, push_decimal, push_signed};
use dyno_types::rng::{Purpose, Stream};
use dyno_types::{Content, Request, Verb};
use std::cell::RefCell;
use std::io::Write;

thread_local! {
    /// Where a value is rendered to be measured or compared; kept, so that this does not allocate.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The content of the time-series workload.
#[derive(Clone, Debug)]
pub struct TimeSeriesContent {
    pub(super) config: TimeSeriesConfig,
    pub(super) space: Space,
    tag_names: Vec<Vec<u8>>,
}

/// Appends the `number`-th of the strings AA..A, AA..B, ... of `letters` letters.
fn push_letters(mut number: u64, letters: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + letters, b'A');
    for letter in out[start..].iter_mut().rev() {
        *letter += (number % 26) as u8;
        number /= 26;
    }
}

impl TimeSeriesContent {
    pub(super) fn new(config: &TimeSeriesConfig) -> Self {
        let tag = |i: usize| {
            let mut name = Vec::new();
            push_letters(i as u64, config.tag_letters, &mut name);
            name
        };
        TimeSeriesContent {
            config: config.clone(),
            space: Space::new(config),
            tag_names: (0..config.cardinalities.len()).map(tag).collect(),
        }
    }

    fn tags(&self) -> usize {
        self.tag_names.len()
    }

    fn push_tag_value(&self, code: u64, tag: usize, out: &mut Vec<u8>) {
        let mut combination = self.space.key_and_tags(code).1;
        // The last tag changes fastest.
        for cardinality in self.config.cardinalities[tag + 1..].iter().rev() {
            combination /= cardinality;
        }
        push_letters(combination % self.config.cardinalities[tag], self.config.tag_value_letters, out);
    }

    fn push_pair(&self, code: u64, tag: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tag_names[tag]);
        out.extend_from_slice(self.config.pair_delimiter.as_bytes());
        self.push_tag_value(code, tag, out);
    }

    /// `YCSBTS=from` or `YCSBTS=from,to`.
    fn push_time(&self, request: &Request, out: &mut Vec<u8>) {
        let from = self.space.timestamp(request.key);
        out.extend_from_slice(self.config.timestamp_name.as_bytes());
        out.extend_from_slice(self.config.pair_delimiter.as_bytes());
        push_signed(from, out);
        let span = self.span(request.seed);
        if span > 0 {
            out.extend_from_slice(self.config.span_delimiter.as_bytes());
            push_signed(from.saturating_add(span as i64), out);
        }
    }

    /// Units that the query with this seed covers.
    fn span(&self, seed: u64) -> u64 {
        if !self.config.random_span {
            return self.config.span;
        }
        let steps = self.config.span / self.space.interval() + 1;
        Stream::new(seed, 1, Purpose::Choice).next_below(steps) * self.space.interval()
    }

    /// Appends what follows tags and time in a query: grouping (0), downsampling (1).
    fn push_aggregate(&self, request: &Request, mut part: usize, out: &mut Vec<u8>) {
        let delimiter = self.config.pair_delimiter.as_bytes();
        if let Some(grouping) = &self.config.grouping {
            if part == 0 {
                out.extend_from_slice(self.config.group_name.as_bytes());
                out.extend_from_slice(delimiter);
                out.extend_from_slice(grouping.function.as_bytes());
                return;
            }
            part -= 1;
        }
        if let (0, Some(downsampling)) = (part, &self.config.downsampling) {
            out.extend_from_slice(self.config.downsampling_name.as_bytes());
            out.extend_from_slice(delimiter);
            out.extend_from_slice(downsampling.function.as_bytes());
            if request.verb == Verb::Scan {
                // YCSB's two forms, kept: `avg60` in a read, `avg=60` in a scan.
                out.extend_from_slice(delimiter);
            }
            push_decimal(downsampling.interval, out);
        }
    }

    fn push_number(&self, request: &Request, out: &mut Vec<u8>) {
        if self.config.data_integrity {
            return push_signed(self.checksum(request.key), out);
        }
        let mut stream = Stream::new(request.seed, 0, Purpose::Value);
        let float = match self.config.numbers {
            NumberKind::Floats => true,
            NumberKind::Integers => false,
            NumberKind::Mixed => stream.next_u64() & 1 == 0,
        };
        if float {
            // Writing to a vector cannot fail.
            let _ = write!(out, "{}", stream.next_unit() * 100_000.0);
        } else {
            push_signed(i64::from(stream.next_u64() as i32), out);
        }
    }

    /// The value that can be verified: Java's string hash of all tags and their values, XOR the timestamp.
    fn checksum(&self, code: u64) -> i64 {
        SCRATCH.with_borrow_mut(|text| {
            text.clear();
            for tag in 0..self.tags() {
                text.extend_from_slice(&self.tag_names[tag]);
                self.push_tag_value(code, tag, text);
            }
            i64::from(java_hash_ascii(0, text)) ^ self.space.timestamp(code)
        })
    }
}

impl Content for TimeSeriesContent {
    fn table(&self) -> &str {
        &self.config.table
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        let (key, _) = self.space.key_and_tags(request.key);
        push_letters(key, self.config.key_letters, out);
        if request.verb == Verb::Delete {
            // A delete has no fields, so the whole address goes into the key.
            for tag in 0..self.tags() {
                out.extend_from_slice(self.config.delete_delimiter.as_bytes());
                self.push_pair(request.key, tag, out);
            }
            out.extend_from_slice(self.config.delete_delimiter.as_bytes());
            self.push_time(request, out);
        }
    }

    fn fields(&self, request: &Request) -> usize {
        match request.verb {
            Verb::Insert | Verb::Update => self.tags() + 2,
            Verb::Read | Verb::Scan => {
                let aggregates = [self.config.grouping.is_some(), self.config.downsampling.is_some()];
                self.tags() + 1 + aggregates.into_iter().filter(|a| *a).count()
            }
            Verb::Delete | Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology => 0,
        }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let tags = self.tags();
        let writes = request.verb.changes_data();
        let grouped = |tag| self.config.grouping.as_ref().is_some_and(|g| g.tags[tag]);
        if field < tags {
            if writes || grouped(field) {
                out.extend_from_slice(&self.tag_names[field]);
            } else {
                self.push_pair(request.key, field, out);
            }
        } else if writes {
            let name = if field == tags { &self.config.timestamp_name } else { &self.config.value_name };
            out.extend_from_slice(name.as_bytes());
        } else if field == tags {
            self.push_time(request, out);
        } else {
            self.push_aggregate(request, field - tags - 1, out);
        }
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        if field < self.tags() {
            return self.config.tag_value_letters;
        }
        // The checksum borrows the scratch buffer too, so it is taken out for the time being.
        let mut text = SCRATCH.take();
        text.clear();
        self.value(request, field, &mut text);
        let len = text.len();
        SCRATCH.set(text);
        len
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let tags = self.tags();
        if field < tags {
            self.push_tag_value(request.key, field, out);
        } else if field == tags {
            push_signed(self.space.timestamp(request.key), out);
        } else {
            self.push_number(request, out);
        }
    }

    fn verifies(&self) -> bool {
        self.config.data_integrity
    }

    fn verify(&self, request: &Request, field: &[u8], value: &[u8]) -> bool {
        if !self.config.data_integrity || field != self.config.value_name.as_bytes() {
            return true;
        }
        let expected = self.checksum(request.key);
        std::str::from_utf8(value).is_ok_and(|text| text.parse() == Ok(expected))
    }
}
