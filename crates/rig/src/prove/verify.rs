//! Looking everything up again: on every copy, every record, byte by byte.

use super::drive::IngestPlan;
use super::ledger::{Ledger, Status};
use super::redis::RedisSet;
use crate::local::RespReply as Reply;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Records that are asked for at once.
const BATCH: u64 = 500;

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copy {
    /// Where it is.
    pub member: String,
    /// Whether it is the primary.
    pub primary: bool,
    /// Acknowledged records that are there as they were sent.
    pub found: u64,
    /// Acknowledged records that are not there.
    pub missing: u64,
    /// Records that are there with other content.
    pub wrong: u64,
    /// Records without an acknowledgement that are there.
    pub indeterminate_found: u64,
    /// Refused records that are there all the same.
    pub failed_found: u64,
    /// Entries of each index.
    pub indexed: Vec<u64>,
    /// SHA-256 over names and contents of all records that are there, in the order of the ledger.
    pub digest: String,
    /// How long after the last acknowledgement it had everything, seconds; `None` if it did not within the patience.
    pub caught_up_s: Option<f64>,
    /// The first names that are missing or wrong.
    pub examples: Vec<String>,
}

impl Copy {
    /// Whether it holds all that was acknowledged, and its indexes all that it holds.
    pub fn is_whole(&self) -> bool {
        let records = self.found + self.indeterminate_found + self.failed_found;
        self.missing == 0 && self.wrong == 0 && self.indexed.iter().all(|count| *count == records)
    }
}

/// Looks every record up on the primary and on each of `replicas`; waits for those to catch up, at most for `patience`.
pub fn verify(
    set: &RedisSet,
    replicas: &[SocketAddr],
    plan: &IngestPlan,
    ledger: &Ledger,
    patience: Duration,
) -> Result<Vec<Copy>, String> {
    let begun = Instant::now();
    let mut behind: Vec<SocketAddr> = replicas.to_vec();
    let mut caught: Vec<(SocketAddr, f64)> = Vec::new();
    while !behind.is_empty() && begun.elapsed() < patience {
        behind.retain(|replica| match set.caught_up(*replica) {
            Ok(true) => {
                caught.push((*replica, begun.elapsed().as_secs_f64()));
                false
            }
            _ => true,
        });
        std::thread::sleep(Duration::from_millis(1));
    }
    let when =
        |member: &SocketAddr| caught.iter().find(|(one, _)| one == member).map(|(_, seconds)| *seconds);
    let members =
        std::iter::once((set.primary, true)).chain(replicas.iter().map(|replica| (*replica, false)));
    let looked = members.map(|(member, primary)| {
        let mut copy = copy(set, member, plan, ledger).map_err(|why| format!("{member}: {why}"))?;
        (copy.primary, copy.caught_up_s) = (primary, if primary { Some(0.0) } else { when(&member) });
        Ok(copy)
    });
    looked.collect()
}

fn copy(set: &RedisSet, member: SocketAddr, plan: &IngestPlan, ledger: &Ledger) -> Result<Copy, String> {
    let mut client = set.connect(member)?;
    let records = plan.contents();
    let mut copy = Copy {
        member: member.to_string(),
        primary: false,
        found: 0,
        missing: 0,
        wrong: 0,
        indeterminate_found: 0,
        failed_found: 0,
        indexed: Vec::new(),
        digest: String::new(),
        caught_up_s: None,
        examples: Vec::new(),
    };
    let mut digest = Sha256::new();
    for range in ledger.ranges() {
        for from in (range.from..range.to).step_by(BATCH as usize) {
            let to = (from + BATCH).min(range.to);
            let keys: Vec<String> = (from..to).map(|number| records.key(range.worker, number)).collect();
            let words: Vec<&str> = std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect();
            let Reply::List(values) = client.call(&words)? else { return Err("MGET gives no list".into()) };
            for ((number, key), value) in (from..to).zip(&keys).zip(&values) {
                let there = !matches!(value, Reply::Null);
                let right = there && value.text() == records.value(range.worker, number);
                if there {
                    digest.update(key.as_bytes());
                    digest.update(value.text().as_bytes());
                }
                let (count, bad) = match (range.status, there, right) {
                    (_, true, false) => (&mut copy.wrong, true),
                    (Status::Acknowledged, true, _) => (&mut copy.found, false),
                    (Status::Acknowledged, false, _) => (&mut copy.missing, true),
                    (Status::Indeterminate, true, _) => (&mut copy.indeterminate_found, false),
                    (Status::Failed, true, _) => (&mut copy.failed_found, true),
                    (_, false, _) => continue,
                };
                *count += 1;
                if bad && copy.examples.len() < 5 {
                    copy.examples.push(key.clone());
                }
            }
        }
    }
    for index in 0..records.indexes {
        let count = client.call(&["ZCARD", &records.index(index)])?;
        copy.indexed.push(count.text().parse().unwrap_or(0));
    }
    copy.digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(copy)
}
