//! Seconds of all workers, gathered as they come.

use crate::protocol::worker::{FromWorker, PhaseDone, ToWorker};
use crate::remote::worker::event::WorkerEvent;
use crate::remote::worker::member::{OwnPart, OwnTotals};
use crate::remote::worker::pool::WorkerPool;
use crate::remote::worker::pool_error::WorkerPoolError;
use crate::remote::worker::sums::WorkerSums;
use dyno_engine::{Control, Second};
use dyno_record::Totals;
use dyno_rundir::log::NOTICE;
use dyno_types::sync::held;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Time that a worker may take to end at once.
const GIVEN_UP: Duration = Duration::from_secs(15);

/// Time in which a worker that was killed may end, and its group hand over what has waited for it.
const KILLED: Duration = Duration::from_secs(5);

/// Returns whether workers that were told then to end at once have had their time.
fn given_up(told: Option<Instant>, now: Instant) -> bool {
    told.is_some_and(|told| now.duration_since(told) > GIVEN_UP)
}

/// Time between two looks at who is silent.
const LOOK: Duration = Duration::from_secs(1);

/// A worker that has said nothing for so long is told of: one gives a sign of life every second.
const SILENT: Duration = Duration::from_secs(10);

/// How long each worker has said nothing while this process looked: what has been said waits while it stands still.
struct SilentWorkers {
    lease: Duration,
    looked: Instant,
    quiet: Vec<Duration>,
}

impl SilentWorkers {
    fn new(count: usize, lease: Duration) -> Self {
        SilentWorkers { lease, looked: Instant::now(), quiet: vec![Duration::ZERO; count] }
    }

    fn heard(&mut self, worker: usize) {
        self.quiet[worker] = Duration::ZERO;
    }

    /// Looks at those who have not ended, once a second; tells once of each silence, and returns those whose lease is over.
    fn look(&mut self, open: &[usize], now: Instant, name: impl Fn(usize) -> String) -> Vec<usize> {
        if now.duration_since(self.looked) < LOOK {
            return Vec::new();
        }
        self.looked = now;
        for worker in open {
            self.quiet[*worker] += LOOK;
            if self.quiet[*worker] == SILENT {
                let (name, lease) = (name(*worker), self.lease.as_secs());
                tracing::warn!(target: NOTICE, "{name} says nothing; it is waited for, {lease} s at most");
            }
        }
        open.iter().copied().filter(|worker| self.quiet[*worker] >= self.lease).collect()
    }
}

impl WorkerPool {
    /// Takes seconds until every worker that takes part has ended.
    pub(super) fn gather(
        &self,
        active: &[usize],
        control: &Control,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Vec<Option<PhaseDone>>, WorkerPoolError> {
        let mut sums = WorkerSums::new(self.members.len());
        let mut done: Vec<Option<PhaseDone>> = vec![None; self.members.len()];
        let mut open = active.to_vec();
        // Seconds come by party: its first worker's number stands for it.
        let parties = (0..self.members.len()).filter(|at| !self.has_party(*at, &open));
        parties.for_each(|at| sums.note_ended(at));
        let mut own: Vec<Option<OwnTotals>> = vec![None; self.members.len()];
        let (mut said_stop, mut aborted) = (false, None);
        let mut instances: Vec<Totals> = Vec::new();
        let mut killed: BTreeMap<usize, Instant> = BTreeMap::new();
        // Results that have arrived are kept; the others end as if told to.
        let leave = |worker: usize, sums: &mut WorkerSums, open: &mut Vec<usize>| {
            open.retain(|other| *other != worker);
            self.end_party(worker, open, sums);
            self.say_all(&ToWorker::Stop);
        };
        let lose = |worker: usize, message: &str, sums: &mut WorkerSums, open: &mut Vec<usize>| {
            let ending = self.ending_of(worker, message);
            held(&self.lost).push(ending);
            leave(worker, sums, open);
        };
        // A worker that hangs is killed: its group hands over the seconds that have waited for it, then says that it has ended.
        let kill = |worker: usize, message: String, killed: &mut BTreeMap<usize, Instant>| {
            held(&self.lost).push(message);
            held(&self.members[worker].running).end(Instant::now());
            killed.insert(worker, Instant::now());
        };
        let mut waited = SilentWorkers::new(self.members.len(), self.lease);
        while !open.is_empty() {
            let event = held(&self.told).recv_timeout(Duration::from_millis(50));
            if let Ok((worker, _)) = &event {
                waited.heard(*worker);
            }
            for worker in waited.look(&open, Instant::now(), |worker| self.name(worker)) {
                if !killed.contains_key(&worker) {
                    let (name, lease) = (self.name(worker), self.lease.as_secs());
                    kill(worker, format!("{name} was lost: it says nothing for {lease} s"), &mut killed);
                }
            }
            for (worker, at) in &killed {
                if open.contains(worker) && at.elapsed() > KILLED {
                    leave(*worker, &mut sums, &mut open);
                }
            }
            match event {
                Ok((worker, WorkerEvent::Second(packed))) if self.has_party(worker, &open) => {
                    match sums.take_second(worker, &packed) {
                        Ok(second) if self.shown.len() > 1 && !second.warmup => {
                            let at = self.members[worker].instance;
                            let empty = || second.totals.to_empty();
                            instances.resize_with(instances.len().max(at + 1), empty);
                            instances[at].merge(&second.totals);
                        }
                        Ok(_) => {}
                        Err(error) => {
                            let party = |other: &usize| self.members[*other].party == worker;
                            for one in open.clone().into_iter().filter(party) {
                                lose(one, &error.to_string(), &mut sums, &mut open);
                            }
                        }
                    }
                }
                Ok((worker, WorkerEvent::Whole(packed))) if open.contains(&worker) => match packed.open() {
                    Ok(whole) if sums.is_alike(&whole) => own[worker] = Some(OwnTotals::Whole(packed)),
                    Ok(_) => {
                        lose(worker, "it has measured other things than the others", &mut sums, &mut open)
                    }
                    Err(error) => lose(worker, &error.to_string(), &mut sums, &mut open),
                },
                Ok((worker, WorkerEvent::Message(FromWorker::Done(ended)))) => {
                    tracing::info!(
                        worker = worker + 1,
                        elapsed_ns = ended.elapsed_ns,
                        late_ns = ended.late_ns,
                        unheard_ns = ended.unheard_ns,
                        early = ended.ended_early.as_deref().unwrap_or("no"),
                        "a worker has ended its phase"
                    );
                    if let Some(why) = &ended.ended_early {
                        held(&self.lost).push(format!("{} ended early: {why}", self.name(worker)));
                    }
                    // On our clock.
                    let offset_ns = held(&self.members[worker].clock).ns;
                    let epoch_ns = ended.epoch_ns.saturating_add_signed(-offset_ns);
                    let began_ns = ended.epoch_ns + ended.late_ns;
                    self.members[worker].began_ns.store(began_ns, Ordering::Relaxed);
                    *held(&self.members[worker].host_cpu) = ended.host_cpu;
                    self.members[worker].unheard_ns.store(ended.unheard_ns, Ordering::Relaxed);
                    done[worker] = Some(PhaseDone { epoch_ns, ..ended });
                    open.retain(|other| *other != worker);
                    self.end_party(worker, &open, &mut sums);
                }
                Ok((worker, WorkerEvent::Message(FromWorker::Failed { unreachable, cause }))) => {
                    self.say_all(&ToWorker::Abort);
                    return Err(self.failed(worker, unreachable, cause));
                }
                Ok((worker, WorkerEvent::Lost(_))) if killed.contains_key(&worker) => {
                    leave(worker, &mut sums, &mut open);
                }
                Ok((worker, WorkerEvent::Lost(message))) => {
                    lose(worker, &message, &mut sums, &mut open);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                _ => {}
            }
            if control.is_stopping() && !said_stop {
                said_stop = true;
                tracing::info!("workers are told to stop");
                self.say_all(&ToWorker::Stop);
            }
            let cut_short = self.cut_short.take_reason();
            if (control.is_aborting() || cut_short.is_some()) && aborted.is_none() {
                held(&self.lost).extend(cut_short);
                aborted = Some(Instant::now());
                tracing::warn!("workers are told to end at once");
                self.say_all(&ToWorker::Abort);
            }
            if given_up(aborted, Instant::now()) {
                let left: Vec<usize> = open.iter().copied().filter(|at| !killed.contains_key(at)).collect();
                for worker in left {
                    kill(worker, format!("{} did not end when told to", self.name(worker)), &mut killed);
                }
            }
            sums.hand_out(on_second);
        }
        // A worker that has not ended holds back nothing of what the others have done.
        open.iter().for_each(|worker| sums.note_ended(self.members[*worker].party));
        sums.hand_out(on_second);
        let longest_ns = done.iter().flatten().map(|done| done.measured_ns).max().unwrap_or(0);
        let mut counts = |worker: usize| {
            let alone = self.members[worker].group.is_none();
            alone
                .then(|| sums.take_counts(worker))
                .flatten()
                .map(|counts| OwnTotals::Counts(Box::new(counts)))
        };
        let parts = (0..self.members.len()).filter_map(|worker| {
            let totals = own[worker].take().or_else(|| counts(worker))?;
            // One that was lost ends the phase of the others soon.
            let (users, measured_ns) =
                done[worker].as_ref().map_or((0, longest_ns), |done| (done.users, done.measured_ns));
            Some(OwnPart { worker, users, measured_ns, totals })
        });
        *held(&self.parts) = parts.collect();
        *held(&self.instances) = instances;
        Ok(done)
    }

    /// Returns whether seconds that are the sum of this party may still come.
    fn has_party(&self, party: usize, open: &[usize]) -> bool {
        open.iter().any(|worker| self.members[*worker].party == party)
    }

    /// Notes that the party of a worker has no more seconds, if none of its workers is open.
    fn end_party(&self, worker: usize, open: &[usize], sums: &mut WorkerSums) {
        let party = self.members[worker].party;
        if !self.has_party(party, open) {
            sums.note_ended(party);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::silence::LEASE;

    #[test]
    fn a_worker_that_says_nothing_is_given_up_with_its_lease() {
        let begun = Instant::now();
        let mut waited = SilentWorkers { lease: LEASE, looked: begun, quiet: vec![Duration::ZERO; 3] };
        let name = |worker: usize| format!("worker {worker}");
        for second in 1..90 {
            assert!(waited.look(&[0, 2], begun + Duration::from_secs(second), name).is_empty());
            waited.heard(2);
        }
        assert_eq!(waited.look(&[0, 2], begun + Duration::from_secs(90), name), [0]);
        // Who stood still for an hour has looked once.
        let mut waited = SilentWorkers { lease: LEASE, looked: begun, quiet: vec![Duration::ZERO; 1] };
        assert!(waited.look(&[0], begun + Duration::from_secs(3_600), name).is_empty());
        assert_eq!(waited.quiet, [Duration::from_secs(1)]);
    }

    #[test]
    fn workers_have_their_time_to_end_and_not_more() {
        let told = Instant::now();
        let after = |time: Duration| given_up(Some(told), told + time);
        assert!(!after(Duration::ZERO) && !after(GIVEN_UP) && after(GIVEN_UP + Duration::from_nanos(1)));
        assert!(!given_up(None, told + 2 * GIVEN_UP));
    }
}
