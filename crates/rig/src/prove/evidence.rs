//! What else a proof takes down: what has gone out, how far copies were behind meanwhile, whose clock says what.

use super::database::{Database, PreCheck};
use serde::Serialize;
use std::collections::BTreeMap;

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
    pub(super) fn record(&mut self, bytes: u64) {
        self.least_bytes = if self.records == 0 { bytes } else { self.least_bytes.min(bytes) };
        self.most_bytes = self.most_bytes.max(bytes);
        self.records += 1;
        self.record_bytes += bytes;
    }

    /// What another connection has sent, too.
    pub(super) fn merge(&mut self, other: Sent) {
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

/// How far copies were behind the primary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lag {
    /// What it is counted in.
    pub unit: String,
    /// Of each member: seconds since the first sending, and how far it was behind.
    pub members: BTreeMap<String, Vec<(f64, f64)>>,
    /// How often nobody said so.
    pub unanswered: u64,
}

impl Lag {
    /// Asks at so many seconds.
    pub fn ask(&mut self, database: &dyn Database, at_s: f64) {
        match database.behind() {
            Ok((unit, all)) => {
                self.unit = unit.to_owned();
                for (member, behind) in all {
                    self.members.entry(member).or_default().push((at_s, behind));
                }
            }
            Err(_) => self.unanswered += 1,
        }
    }

    /// The greatest of each member.
    pub fn greatest(&self) -> Vec<(&str, f64)> {
        let most = |all: &[(f64, f64)]| all.iter().map(|(_, behind)| *behind).fold(0.0, f64::max);
        self.members.iter().map(|(member, all)| (member.as_str(), most(all))).collect()
    }
}

/// By how much clocks of members differ from this host's. Said, not demanded: the proof's times are this host's own.
pub fn clocks(database: &dyn Database, members: &[String]) -> Vec<PreCheck> {
    let said = |member: &String| {
        let found = match crate::remote::offset(|| database.clock_ns(member)) {
            Ok(clock) => {
                let (ms, bound) = (clock.ns as f64 / 1e6, clock.bound_ns as f64 / 1e6);
                format!("{ms:+.3} ms from this host's, within {bound:.3} ms")
            }
            Err(why) => format!("not told: {why}"),
        };
        PreCheck::new(&format!("clock of {member}"), true, found)
    };
    members.iter().map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_what_was_sent_add_up() {
        let (mut one, mut other) = (Sent::default(), Sent::default());
        [10, 30].into_iter().for_each(|bytes| one.record(bytes));
        other.record(20);
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
