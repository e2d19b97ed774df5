//! Counts of the records that have gone out.

use serde::Serialize;

/// Records that have gone out, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Records.
    pub records: u64,
    /// Bytes of all of them: values of Redis, documents of MongoDB.
    pub record_bytes: u64,
    /// Bytes of the smallest.
    pub least_bytes: u64,
    /// Bytes of the largest.
    pub most_bytes: u64,
    /// Bytes of the commands that carried them: names, indexes and protocol are in it.
    pub wire_bytes: u64,
}

impl Sent {
    /// A record of so many bytes.
    pub fn record_sent(&mut self, bytes: u64) {
        self.least_bytes = if self.records == 0 { bytes } else { self.least_bytes.min(bytes) };
        self.most_bytes = self.most_bytes.max(bytes);
        self.records += 1;
        self.record_bytes += bytes;
    }

    /// Adds the records that another connection has sent.
    pub fn merge(&mut self, other: Sent) {
        if other.records > 0 {
            self.least_bytes =
                if self.records == 0 { other.least_bytes } else { self.least_bytes.min(other.least_bytes) };
        }
        self.most_bytes = self.most_bytes.max(other.most_bytes);
        self.records += other.records;
        self.record_bytes += other.record_bytes;
        self.wire_bytes += other.wire_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_what_was_sent_add_up() {
        let (mut one, mut other) = (Sent::default(), Sent::default());
        [10, 30].into_iter().for_each(|bytes| one.record_sent(bytes));
        other.record_sent(20);
        other.wire_bytes = 99;
        one.merge(Sent::default());
        one.merge(other);
        let expected = Sent { records: 3, record_bytes: 60, least_bytes: 10, most_bytes: 30, wire_bytes: 99 };
        assert_eq!(one, expected);
        let mut first = Sent::default();
        first.merge(one);
        assert_eq!(first, expected);
    }
}
