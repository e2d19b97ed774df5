//! Workers on other hosts: their numbers there, and their clocks beside ours.

use crate::protocol::offset::{Offset, quickest_offset};
use crate::protocol::worker::{FromWorker, ToWorker};
use crate::remote::worker::pool::{READY, WorkerPool};
use crate::remote::worker::pool_error::WorkerPoolError;
use dyno_engine::Control;
use dyno_types::sync::held;
use std::sync::atomic::Ordering;

impl WorkerPool {
    /// Process numbers of the workers on another host, by its name.
    pub fn pids_on(&self, host: &str) -> Vec<u32> {
        let there = self
            .members
            .iter()
            .filter(|member| member.transport.as_ref().is_some_and(|transport| transport.name() == host));
        there.map(|member| member.pid.load(Ordering::Relaxed)).collect()
    }

    /// Clocks of workers on other hosts beside ours, as they were asked before the last phase: worker, offset.
    pub fn worker_clocks(&self) -> Vec<(String, Offset)> {
        let elsewhere = self.members.iter().enumerate().filter(|(_, member)| member.transport.is_some());
        elsewhere.map(|(at, member)| (format!("worker-{}", at + 1), *held(&member.clock))).collect()
    }

    /// Between the first and the last worker's beginning of the last phase, nanoseconds, by the clocks as they are known: of
    /// workers on this host exactly, of others within the bounds of their clocks. None if fewer than two have begun.
    pub fn start_skew(&self) -> Option<u64> {
        let begun: Vec<u64> = self.begun().into_iter().flatten().collect();
        let skew = begun.iter().max()? - begun.iter().min()?;
        (begun.len() > 1).then_some(skew)
    }

    /// When each worker began the last phase, Unix nanoseconds by this host's clock; none where it has not begun.
    pub(super) fn begun(&self) -> Vec<Option<u64>> {
        let begun = self.members.iter().map(|member| {
            let own = member.began_ns.load(Ordering::Relaxed);
            (own > 0).then(|| own.saturating_add_signed(-held(&member.clock).ns))
        });
        begun.collect()
    }

    /// The worker whose clock is this one's, too: the first of its group, if one kernel runs both. Pods of a node may have
    /// kernels of their own (virtual machines).
    fn clock_owner(&self, worker: usize) -> usize {
        let kernel =
            |at: usize| self.members[at].on.get().map(|(host, _)| host.boot_id.as_str()).unwrap_or_default();
        let party = self.members[worker].party;
        if kernel(worker) == kernel(party) { party } else { worker }
    }

    /// Asks the clocks of workers on other hosts; one of a group is asked for all that share its kernel.
    pub(super) fn ask_clocks(&self, control: &Control) -> Result<u64, WorkerPoolError> {
        let mut widest_ns = 0;
        let owners: Vec<usize> = (0..self.members.len()).map(|at| self.clock_owner(at)).collect();
        let firsts = self.members.iter().enumerate().filter(|(at, _)| owners[*at] == *at);
        for (worker, _) in firsts.filter(|(_, member)| member.transport.is_some()) {
            let found = quickest_offset(|| {
                self.say(worker, &ToWorker::Clock);
                let is = |word: &FromWorker| matches!(word, FromWorker::Clock { .. });
                let answers = self.answers(control, &[worker], READY, "tell its time", is)?;
                match answers.first() {
                    Some((_, FromWorker::Clock { now_ns })) => Ok(*now_ns),
                    _ => Err(WorkerPoolError::Worker("another answer than the time".into())),
                }
            })?;
            tracing::debug!(
                worker = worker + 1,
                offset_ns = found.ns,
                within_ns = found.bound_ns,
                "a worker's clock is known"
            );
            widest_ns = widest_ns.max(found.bound_ns);
            let shared = self.members.iter().zip(&owners).filter(|(_, owner)| **owner == worker);
            shared.for_each(|(member, _)| *held(&member.clock) = found);
        }
        Ok(widest_ns)
    }
}
