//! Looking everything up again: on every copy, every record, byte by byte.

use dyno_db::copies::database::DatabaseError;
use dyno_db::copies::database::{RecordSpan, ReplicatedStore};
use dyno_db::copies::ledger::{Ledger, RecordStatus};
use dyno_db::copies::plan::IngestPlan;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};

/// Most records that are asked for at once.
const BATCH: u64 = 500;
/// Most bytes that are asked for at once: replies of MongoDB end at 16 MiB.
const BYTES: u64 = 8 << 20;

/// Content of a copy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copy {
    /// Where it is.
    pub member: String,
    /// True if it is the primary.
    pub primary: bool,
    /// Acknowledged records that are there as they were sent.
    pub found: u64,
    /// Acknowledged records that are not there.
    pub missing: u64,
    /// Records that are there with other content.
    pub wrong: u64,
    /// Records without an acknowledgement that are there.
    pub indeterminate_found: u64,
    /// Records without an acknowledgement that are not there.
    pub indeterminate_missing: u64,
    /// Refused records that are there all the same.
    pub failed_found: u64,
    /// Records that are there more often than once; `None` where a name can be there only once.
    pub duplicated: Option<u64>,
    /// Entries of each index.
    pub indexed: Vec<u64>,
    /// SHA-256 over names and contents of all records that are there, in the order of the ledger.
    pub digest: String,
    /// Time after the last acknowledgement at which it had everything, seconds; `None` if it did not within the patience.
    pub caught_up_s: Option<f64>,
    /// The first names that are missing or wrong.
    pub examples: Vec<String>,
    /// Why it could not be looked at to the end.
    pub trouble: Option<String>,
}

impl Copy {
    /// Returns whether it could not be looked at to its end, and what was seen of it refutes nothing.
    pub fn is_unread(&self) -> bool {
        let refuted = [self.missing, self.wrong, self.failed_found, self.duplicated.unwrap_or(0)];
        self.trouble.is_some() && refuted == [0; 4]
    }

    /// Returns whether it holds all that was acknowledged, and its indexes all that it holds.
    pub fn is_whole(&self) -> bool {
        let records = self.found + self.indeterminate_found + self.failed_found;
        self.trouble.is_none()
            && self.missing == 0
            && self.wrong == 0
            && self.duplicated.is_none_or(|more| more == 0)
            && self.indexed.iter().all(|count| *count == records)
    }
}

/// Looks every record up on every member, once each: those that are `known` from before and those that are there now, the
/// primary of now first. Waits for the others to catch up, at most for `patience`. A member that cannot be looked at has its
/// trouble, and is no copy.
pub fn verify(
    set: &dyn ReplicatedStore,
    known: &[String],
    plan: &IngestPlan,
    ledger: &Ledger,
    patience: Duration,
) -> Vec<Copy> {
    let begun = Instant::now();
    // An election may be under way.
    let primary = loop {
        match set.primary() {
            Ok(primary) => break primary,
            Err(_) if begun.elapsed() < patience => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => break "primary".into(),
        }
    };
    let mut replicas: Vec<String> = Vec::new();
    for member in known.iter().cloned().chain(set.replicas().unwrap_or_default()) {
        if member != primary && !replicas.contains(&member) {
            replicas.push(member);
        }
    }
    let mut behind = replicas.clone();
    let mut caught: Vec<(String, f64)> = Vec::new();
    while !behind.is_empty() && begun.elapsed() < patience {
        behind.retain(|replica| match set.caught_up(replica) {
            Ok(true) => {
                caught.push((replica.clone(), begun.elapsed().as_secs_f64()));
                false
            }
            _ => true,
        });
        std::thread::sleep(Duration::from_millis(1));
    }
    let when = |member: &str| caught.iter().find(|(one, _)| one == member).map(|(_, seconds)| *seconds);
    let members = std::iter::once((primary, true));
    let members = members.chain(replicas.iter().map(|replica| (replica.clone(), false)));
    let looked = members.map(|(member, primary)| {
        let mut look = CopyScan::new(&member);
        look.copy.trouble = copy(set, &member, plan, ledger, &mut look).err().map(|error| error.to_string());
        (look.copy.primary, look.copy.caught_up_s) =
            (primary, if primary { Some(0.0) } else { when(&member) });
        look.end()
    });
    looked.collect()
}

fn copy(
    set: &dyn ReplicatedStore,
    member: &str,
    plan: &IngestPlan,
    ledger: &Ledger,
    look: &mut CopyScan,
) -> Result<(), DatabaseError> {
    let mut talk = set.connect(member, Duration::ZERO)?;
    let records = plan.record_recipe();
    let batch = (BYTES / plan.record_bytes.max(1) as u64).clamp(1, BATCH);
    for range in ledger.merged_ranges() {
        for from in (range.from..range.to).step_by(batch as usize) {
            let part = RecordSpan { worker: range.worker, from, to: (from + batch).min(range.to) };
            let values = talk.get(&records, part)?;
            if values.len() as u64 != part.to - part.from {
                let message = format!("{} values for {} names", values.len(), part.to - part.from);
                return Err(DatabaseError::Incomplete(message));
            }
            for (number, value) in (from..part.to).zip(&values) {
                let right =
                    value.as_ref().map(|value| *value == talk.content(&records, range.worker, number));
                let key = records.record_key(range.worker, number);
                look.record(key, range.status, right, value.as_deref().unwrap_or_default());
            }
        }
    }
    for index in 0..records.indexes {
        look.copy.indexed.push(talk.indexed(&records, index)?);
    }
    let there = look.there();
    look.copy.duplicated = talk.held(&records)?.map(|held| held.saturating_sub(there));
    Ok(())
}

/// Findings of a scan so far.
pub(super) struct CopyScan {
    pub copy: Copy,
    digest: Sha256,
}

impl CopyScan {
    pub fn new(member: &str) -> Self {
        let copy = Copy {
            member: member.to_owned(),
            primary: false,
            found: 0,
            missing: 0,
            wrong: 0,
            indeterminate_found: 0,
            indeterminate_missing: 0,
            failed_found: 0,
            duplicated: None,
            indexed: Vec::new(),
            digest: String::new(),
            caught_up_s: None,
            examples: Vec::new(),
            trouble: None,
        };
        CopyScan { copy, digest: Sha256::new() }
    }

    /// A record that was looked up: whether it is right if it is there, and its value.
    pub fn record(&mut self, key: String, status: RecordStatus, found: Option<bool>, value: &[u8]) {
        if found.is_some() {
            self.digest.update(key.as_bytes());
            self.digest.update(value);
        }
        let copy = &mut self.copy;
        let (count, bad) = match (status, found) {
            (_, Some(false)) => (&mut copy.wrong, true),
            (RecordStatus::Acknowledged, Some(true)) => (&mut copy.found, false),
            (RecordStatus::Acknowledged, None) => (&mut copy.missing, true),
            (RecordStatus::Indeterminate, Some(true)) => (&mut copy.indeterminate_found, false),
            (RecordStatus::Indeterminate, None) => (&mut copy.indeterminate_missing, false),
            (RecordStatus::Failed, Some(true)) => (&mut copy.failed_found, true),
            (RecordStatus::Failed, None) => return,
        };
        *count += 1;
        if bad && copy.examples.len() < 5 {
            copy.examples.push(key);
        }
    }

    /// Names that are there, whatever became of them.
    fn there(&self) -> u64 {
        let copy = &self.copy;
        copy.found + copy.wrong + copy.indeterminate_found + copy.failed_found
    }

    pub fn end(mut self) -> Copy {
        self.copy.digest = hex::encode(self.digest.finalize());
        self.copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_refutes_a_claim_is_not_unread() {
        let of = |missing: u64, trouble: bool| {
            let mut copy = CopyScan::new("a").end();
            (copy.missing, copy.trouble) = (missing, trouble.then(|| "the connection is gone".to_owned()));
            (copy.is_unread(), copy.is_whole())
        };
        assert_eq!([of(0, false), of(0, true), of(5, true)], [(false, true), (true, false), (false, false)]);
    }
}
