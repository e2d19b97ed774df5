//! Further evidence of a proof: how far copies were behind meanwhile, whose clock says what.

use dyno_db::copies::database::{PreCheck, ReplicatedStore};
use serde::Serialize;
use std::collections::BTreeMap;

/// Lag of copies behind the primary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lag {
    /// Unit.
    pub unit: String,
    /// Of each member: seconds since the first sending, and how far it was behind.
    pub members: BTreeMap<String, Vec<(f64, f64)>>,
    /// Number of questions without an answer.
    pub unanswered: u64,
}

impl Lag {
    /// Asks at so many seconds.
    pub fn ask(&mut self, database: &dyn ReplicatedStore, at_s: f64) {
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
pub fn clocks(database: &dyn ReplicatedStore, members: &[String]) -> Vec<PreCheck> {
    let said = |member: &String| {
        let found = match dyno_hosts::protocol::offset::quickest_offset(|| database.clock_ns(member)) {
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
