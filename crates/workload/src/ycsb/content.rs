//! Bytes of the core workload's requests: key names, field names and values.

use super::config::{CoreConfig, FieldLengths};
use super::properties::BadProperty;
use crate::distributions::{LengthHistogram, THETA, Zipfian};
use crate::keys::KeyNames;
use crate::values::{ValueKind, put_integrity_value, value_pool};
use dyno_types::rng::{Purpose, Stream};
use dyno_types::{Content, Fields, Request, Verb};
use std::cell::RefCell;

thread_local! {
    /// Where an expected value is rendered for comparison; kept, so that verifying does not allocate.
    static EXPECTED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lengths of field values, ready to draw from.
#[derive(Clone, Debug, PartialEq)]
enum Lengths {
    Constant(usize),
    Uniform { least: u64, choices: u64 },
    Zipfian { least: u64, ranks: Zipfian },
    Histogram(LengthHistogram),
}

impl Lengths {
    fn new(config: &CoreConfig) -> Result<Self, BadProperty> {
        let least = config.min_field_bytes;
        let choices = config.field_bytes.saturating_sub(least) + 1;
        Ok(match &config.lengths {
            FieldLengths::Constant => Lengths::Constant(config.field_bytes as usize),
            FieldLengths::Uniform => Lengths::Uniform { least, choices },
            FieldLengths::Zipfian => Lengths::Zipfian { least, ranks: Zipfian::new(choices, THETA) },
            FieldLengths::Histogram { histogram: Some(histogram), .. } => {
                Lengths::Histogram(histogram.clone())
            }
            FieldLengths::Histogram { file, histogram: None } => {
                return Err(BadProperty::new("fieldlengthhistogram", file, "a file that has been read"));
            }
        })
    }

    /// The length in bytes of field `field` of the values of `seed`.
    #[inline]
    fn of(&self, seed: u64, field: u16) -> usize {
        // Index 0 of this purpose is taken by the request's own choices.
        let stream = || Stream::new(seed, u64::from(field) + 1, Purpose::Choice);
        match self {
            Lengths::Constant(bytes) => *bytes,
            Lengths::Uniform { least, choices } => (least + stream().next_below(*choices)) as usize,
            Lengths::Zipfian { least, ranks } => (least + ranks.rank(stream().next_unit())) as usize,
            Lengths::Histogram(histogram) => histogram.length(stream().next_u64()) as usize,
        }
    }
}

/// The content of YCSB's core workload.
#[derive(Clone, Debug)]
pub struct CoreContent {
    table: String,
    names: KeyNames,
    /// Names of the fields, one after the other.
    field_names: Vec<Box<[u8]>>,
    lengths: Lengths,
    value: ValueKind,
    integrity: bool,
}

impl CoreContent {
    /// The content of a checked config; fails if its field-length histogram has not been handed in.
    pub fn new(config: &CoreConfig) -> Result<Self, BadProperty> {
        let name = |i: u16| format!("{}{i}", config.field_prefix).into_bytes().into_boxed_slice();
        if config.value == ValueKind::Pool {
            // Made before the first operation.
            value_pool();
        }
        Ok(CoreContent {
            table: config.table.clone(),
            names: config.names.clone(),
            field_names: (0..config.field_count).map(name).collect(),
            lengths: Lengths::new(config)?,
            value: config.value,
            integrity: config.data_integrity,
        })
    }

    /// The number in the record of field `field` of the request.
    #[inline]
    fn number(request: &Request, field: usize) -> u16 {
        match request.fields {
            Fields::One(number) => number,
            Fields::All | Fields::Named => field as u16,
        }
    }

    fn push_value(&self, request: &Request, number: u16, out: &mut Vec<u8>) {
        let bytes = self.lengths.of(request.seed, number);
        if self.integrity {
            let name = &self.field_names[usize::from(number)];
            put_integrity_value(|out| self.names.render(request.key, out), name, bytes, out);
        } else {
            self.value.render_value(request.seed, u64::from(number), bytes, out);
        }
    }
}

impl Content for CoreContent {
    fn table(&self) -> &str {
        &self.table
    }

    #[inline]
    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        self.names.render(request.key, out);
    }

    #[inline]
    fn fields(&self, request: &Request) -> usize {
        match (request.verb, request.fields) {
            (Verb::Delete | Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology, _)
            | (Verb::Read | Verb::Scan, Fields::All) => 0,
            (_, Fields::One(_)) => 1,
            (_, Fields::Named) | (Verb::Insert | Verb::Update, Fields::All) => self.field_names.len(),
        }
    }

    #[inline]
    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.field_names[usize::from(Self::number(request, field))]);
    }

    #[inline]
    fn value_len(&self, request: &Request, field: usize) -> usize {
        self.lengths.of(request.seed, Self::number(request, field))
    }

    #[inline]
    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.push_value(request, Self::number(request, field), out);
    }

    fn verifies(&self) -> bool {
        self.integrity
    }

    fn verify(&self, request: &Request, field: &[u8], value: &[u8]) -> bool {
        if !self.integrity {
            return true;
        }
        EXPECTED.with_borrow_mut(|expected| {
            expected.clear();
            let bytes = self.lengths.of(request.seed, 0);
            put_integrity_value(|out| self.names.render(request.key, out), field, bytes, expected);
            expected == value
        })
    }
}
