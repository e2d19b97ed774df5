//! Records that can be made again from worker and number.

use dyno_types::rng::{Purpose, Stream, mix_bits};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Kind of the values of a field: which range holds all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Numbers from 0 on.
    Number,
    /// Dates.
    Date,
    /// Texts.
    Text,
}

/// Documents of a form of their own, in place of names and values, where a database keeps documents. A function of worker and
/// number, as records are.
pub trait RecordDocuments: fmt::Debug + Send + Sync {
    /// Dotted name of the field that an index sorts by, and the kind of its values; `None` for an index that the documents
    /// have no field for.
    fn indexed_field(&self, index: usize) -> Option<(&str, ValueKind)>;

    /// A field that every document has, to count them by.
    fn counted_field(&self) -> (&'static str, ValueKind);

    /// Appends the `_id` of a record as the element `name`.
    fn put_id(&self, worker: u32, number: u64, name: &str, out: &mut Vec<u8>);

    /// Appends the document of a record.
    fn render_document(&self, seed: u64, worker: u32, number: u64, out: &mut Vec<u8>);
}

/// Recipe by which records are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Records {
    /// Makes names of this run's own.
    pub run: String,
    /// Length of the value, bytes.
    pub bytes: usize,
    /// Secondary indexes.
    pub indexes: usize,
    /// Seed.
    pub seed: u64,
    /// The documents, where records are of a form of their own.
    #[serde(skip)]
    pub documents: Option<Arc<dyn RecordDocuments>>,
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Records {
    fn stream(&self, worker: u32, number: u64) -> Stream {
        let seed = mix_bits(self.seed ^ mix_bits(u64::from(worker) + 1));
        Stream::new(seed, number, Purpose::Value)
    }

    /// The name of a record.
    pub fn record_key(&self, worker: u32, number: u64) -> String {
        format!("proof:{}:{worker}:{number}", self.run)
    }

    /// The value of a record: letters that do not compress to less than six bits each.
    pub fn record_value(&self, worker: u32, number: u64) -> String {
        let mut stream = self.stream(worker, number);
        let mut out = String::with_capacity(self.bytes);
        while out.len() < self.bytes {
            let mut bits = stream.next_u64();
            for _ in 0..10.min(self.bytes - out.len()) {
                out.push(char::from(LETTERS[(bits & 63) as usize]));
                bits >>= 6;
            }
        }
        out
    }

    /// The collection of a run's own, where there are collections.
    pub fn run_collection(&self) -> String {
        format!("proof_{}", self.run)
    }

    /// A pattern of the names of all records and indexes, where these are keys.
    pub fn key_pattern(&self) -> String {
        format!("proof:{}:*", self.run)
    }

    /// The name of an index.
    pub fn index_name(&self, index: usize) -> String {
        format!("proof:{}:index:{index}", self.run)
    }

    /// Number that an index sorts the record by.
    pub fn index_score(&self, worker: u32, number: u64, index: usize) -> u64 {
        mix_bits(self.seed ^ mix_bits(u64::from(worker) << 32 ^ number) ^ index as u64) >> 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_a_function_of_its_number() {
        let records = Records { run: "r".into(), bytes: 25, indexes: 2, seed: 1, documents: None };
        assert_eq!(records.record_value(0, 7), records.record_value(0, 7));
        assert_eq!(records.record_value(0, 7).len(), 25);
        assert_ne!(records.record_value(0, 7), records.record_value(1, 7));
        assert_ne!(records.record_value(0, 7), records.record_value(0, 8));
        assert_eq!(records.record_key(3, 9), "proof:r:3:9");
        assert_ne!(records.index_score(0, 1, 0), records.index_score(0, 1, 1));
    }
}
