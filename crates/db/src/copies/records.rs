//! Records that can be made again from worker and number.

use dyno_types::rng::{Purpose, Stream, mix_bits};
use dyno_workload::pocdriver::Template;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// POCDriver's document, where records are such documents.
    #[serde(skip)]
    pub pocdriver: Option<Arc<Template>>,
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
        let records = Records { run: "r".into(), bytes: 25, indexes: 2, seed: 1, pocdriver: None };
        assert_eq!(records.record_value(0, 7), records.record_value(0, 7));
        assert_eq!(records.record_value(0, 7).len(), 25);
        assert_ne!(records.record_value(0, 7), records.record_value(1, 7));
        assert_ne!(records.record_value(0, 7), records.record_value(0, 8));
        assert_eq!(records.record_key(3, 9), "proof:r:3:9");
        assert_ne!(records.index_score(0, 1, 0), records.index_score(0, 1, 1));
    }
}
