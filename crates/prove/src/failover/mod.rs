//! Failover: servers on this host that elect a primary among themselves, which is killed, cut off or frozen at random moments
//! under load.
//!
//! A proof that cannot fail proves nothing. Before a kill or a freeze the others stand still for a moment, so that what is in
//! one place only is surely lost with it; a primary that is cut off goes on acknowledging what no other server has. With one copy
//! asked for records are lost; with as many as the servers promise to keep, none.
//!
//! `sentinel` and `replica_set` are the servers; `partition` is what cuts; `curve` is what the writers felt.

mod cluster;
pub mod curve;
pub mod partition;
mod plan;
pub mod replica_set;
pub mod sentinel;
#[cfg(test)]
mod tests;

pub use cluster::FailoverError;
pub use plan::{Disruption, FailoverPlan};

use crate::drive::{IngestResult, ingest};
use crate::failover::cluster::{ELECTION, FailoverCluster, pause};
use crate::failover::curve::Curve;
use crate::verify::{Copy, verify};
use dyno_config::server::Election;
use dyno_db::copies::ledger::{Ledger, RecordStatus};
use dyno_engine::Control;
use dyno_types::rng::{Purpose, Stream};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A primary that was taken away.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Fault that was injected.
    pub by: Disruption,
    /// When, seconds after the first sending.
    pub at_s: f64,
    /// Member that was primary.
    pub primary: String,
    /// Member that is primary now.
    pub promoted: String,
    /// Until another was primary and said so, seconds.
    pub elected_s: f64,
    /// Time that it was cut off or frozen, seconds.
    pub cut_s: Option<f64>,
    /// From the healing or the restart until the old primary followed the new one, seconds.
    pub back_s: f64,
    /// From the fault until every server was where it should be, seconds.
    pub settled_s: f64,
    /// Longest time without an acknowledgement around it, seconds.
    pub without_acks_s: f64,
    /// Acknowledged records around it.
    pub curve: Option<Curve>,
}

/// Result of a proof.
#[derive(Clone, Debug)]
pub struct FailoverProof {
    /// Result of writing.
    pub written: IngestResult,
    /// Rounds that were made.
    pub rounds: Vec<Round>,
    /// Contents of the last primary and its replicas.
    pub copies: Vec<Copy>,
    /// Version of the servers.
    pub version: String,
}

/// Outcome of all records, by the last primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    /// Acknowledged, and not there.
    pub lost: u64,
    /// There with other content.
    pub wrong: u64,
    /// Without an acknowledgement, and there.
    pub indeterminate_found: u64,
    /// Without an acknowledgement, and not there.
    pub indeterminate_not_found: u64,
    /// Refused, and there all the same.
    pub refused_found: u64,
    /// There more often than once; `None` where a name can be there only once.
    pub duplicated: Option<u64>,
}

/// Takes primary after primary away, at random moments, and leaves the writers some time after the last.
struct FaultRounds<'a> {
    plan: &'a FailoverPlan,
    control: &'a Control,
    begun: Instant,
    moments: Stream,
}

impl FaultRounds<'_> {
    /// At least so long, up to as long again at random.
    fn random(&mut self, least: Duration) -> Duration {
        least.mul_f64(1.0 + self.moments.next_unit())
    }

    fn all(
        &mut self,
        cluster: &mut dyn FailoverCluster,
        on_round: &mut (dyn FnMut(&Round) + Send),
    ) -> Result<Vec<Round>, FailoverError> {
        let mut rounds = Vec::new();
        for _ in 0..self.plan.rounds {
            let wait = self.random(self.plan.between);
            pause(wait, self.control);
            if self.control.is_stopping() {
                return Ok(rounds);
            }
            let round = self.one(cluster)?;
            on_round(&round);
            rounds.push(round);
        }
        pause(self.plan.between, self.control);
        Ok(rounds)
    }

    fn one(&mut self, cluster: &mut dyn FailoverCluster) -> Result<Round, FailoverError> {
        // On a busy host they may have elected another without being asked to.
        let primary = cluster.await_healthy()?;
        let injected = cluster.inject(&primary)?;
        let promoted = cluster.await_primary(&primary, self.control)?;
        let elected = injected.elapsed();
        if self.plan.by.lasts() {
            let more = self.random(self.plan.heal_after);
            pause(more, self.control);
        }
        let healed = cluster.heal(&primary, &promoted)?;
        cluster.await_replica(&primary, &promoted, self.control)?;
        let back = healed.elapsed();
        cluster.await_healthy()?;
        Ok(Round {
            by: self.plan.by,
            at_s: (injected - self.begun).as_secs_f64(),
            primary,
            promoted,
            elected_s: elected.as_secs_f64(),
            cut_s: self.plan.by.lasts().then(|| (healed - injected).as_secs_f64()),
            back_s: back.as_secs_f64(),
            settled_s: injected.elapsed().as_secs_f64(),
            without_acks_s: 0.0,
            curve: None,
        })
    }
}

/// Carries out a proof; `work_dir` is an empty folder for the servers' files.
///
/// # Errors
/// The servers do not come up, do not elect or do not answer, or `control` stops while they are waited for.
pub fn failover(
    plan: &FailoverPlan,
    work_dir: &Path,
    control: &Arc<Control>,
    on_round: &mut (dyn FnMut(&Round) + Send),
) -> Result<FailoverProof, FailoverError> {
    let mut cluster: Box<dyn FailoverCluster> = match plan.election {
        Election::Members => Box::new(replica_set::ReplicaSet::start(plan, work_dir, control)?),
        Election::Sentinels => Box::new(sentinel::SentinelCluster::start(plan, work_dir, control)?),
    };
    prove(plan, cluster.as_mut(), control, on_round)
}

fn prove(
    plan: &FailoverPlan,
    cluster: &mut dyn FailoverCluster,
    control: &Control,
    on_round: &mut (dyn FnMut(&Round) + Send),
) -> Result<FailoverProof, FailoverError> {
    let (version, database) = (cluster.version(), cluster.database());
    let enough = Arc::new(Control::default());
    let (written, rounds) = std::thread::scope(|scope| {
        let moments = Stream::new(plan.ingest.seed, 0, Purpose::Key);
        let mut faults = FaultRounds { plan, control, begun: Instant::now(), moments };
        let writer = scope.spawn(|| ingest(database.clone(), &plan.ingest, &enough, &mut |_, _| ()));
        let rounds = faults.all(cluster, on_round);
        enough.stop();
        (writer.join(), rounds)
    });
    let (written, mut rounds) = (written.map_err(|_| FailoverError::Panicked)??, rounds?);
    for round in &mut rounds {
        let settled_s = round.at_s + round.settled_s;
        round.without_acks_s = curve::longest_gap(&written.history, round.at_s, settled_s).1;
        round.curve = Some(curve::curve(&written.history, round.at_s, settled_s));
    }
    let replicas = database.replicas()?;
    let copies = verify(database.as_ref(), &replicas, &plan.ingest, &written.ledger, ELECTION);
    Ok(FailoverProof { written, rounds, copies, version })
}

impl FailoverProof {
    /// The last primary, if it could be looked at to the end: otherwise nothing is known.
    pub fn primary(&self) -> Option<&Copy> {
        self.copies.iter().find(|copy| copy.primary && copy.trouble.is_none())
    }

    /// Outcome of all records, by the last primary.
    pub fn outcomes(&self) -> Option<OutcomeCounts> {
        let last = self.primary()?;
        Some(OutcomeCounts {
            lost: last.missing,
            wrong: last.wrong,
            indeterminate_found: last.indeterminate_found,
            indeterminate_not_found: last.indeterminate_missing,
            refused_found: last.failed_found,
            duplicated: last.duplicated,
        })
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.written.ledger
    }

    /// Acknowledged records.
    pub fn acknowledged(&self) -> u64 {
        self.written.ledger.count(RecordStatus::Acknowledged)
    }
}
