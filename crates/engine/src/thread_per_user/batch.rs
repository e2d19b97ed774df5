//! Batches: several inserts executed as one transaction, each an arrival with an outcome of its own.

use super::{Task, Turn, Users};
use crate::net::monotonic_ns;
use dyno_types::{Executed, Outcome, Request, StoreSession};
use std::sync::PoisonError;

impl Users {
    /// Adds the operations that make the batch of the first one full: a user's next, or arrivals that are due as well.
    pub(super) fn fill(
        &self,
        user: usize,
        turn: &mut Turn,
        free_ns: u64,
        tasks: &mut Vec<Task>,
        batch: usize,
    ) {
        let since_ns = tasks.first().map_or(free_ns, |leader| leader.intended_ns);
        while tasks.len() < batch {
            let task = match &self.schedule {
                None => {
                    // Only the leader takes its time to think; all begin when it does.
                    turn.first = true;
                    let next = self.next_closed(user, turn, since_ns);
                    turn.first = false;
                    next
                }
                Some(schedule) => {
                    let due = schedule.lock().unwrap_or_else(PoisonError::into_inner).peek_arrival().1;
                    if self.epoch_ns.saturating_add(due) > monotonic_ns() {
                        return;
                    }
                    self.next_arrival(user, schedule, free_ns)
                }
            };
            let Some(task) = task else { return };
            tasks.push(Task { rides: true, ..task });
        }
    }

    /// Executes several inserts as one; each is recorded with the whole time, because it is done when the batch is. Returns
    /// when a user who is never late would have ended it: all begin when the last of them is due.
    pub(super) fn operate_batch(
        &self,
        user: usize,
        session: &mut dyn StoreSession,
        tasks: &mut [Task],
        requests: &mut Vec<Request>,
        errors: &mut Vec<(Outcome, String)>,
    ) -> u64 {
        debug_assert!(!tasks.is_empty(), "a batch has its leader");
        let mut ideal_ns = tasks.iter().map(|task| task.ideal_ns).max().unwrap_or_default();
        tasks.iter_mut().for_each(|task| task.ideal_ns = ideal_ns);
        let workload = &self.shared.job.workload;
        requests.clear();
        requests.extend(tasks.iter().map(|t| workload.bind(&workload.draw(t.index), &self.shared.frontier)));
        let begun = monotonic_ns();
        let executed = session.execute_batch(requests);
        let done = monotonic_ns();
        if !executed.outcome.is_ok() && self.shared.job.retry.is_some() {
            // Each is tried again by itself.
            ideal_ns += done - begun;
            let mut parts = Vec::new();
            for (task, request) in tasks.iter_mut().zip(requests.iter()) {
                task.ideal_ns = ideal_ns;
                ideal_ns = self.operate(user, session, task, *request, errors, &mut parts);
            }
            return ideal_ns;
        }
        if !executed.outcome.is_ok() && errors.iter().all(|(o, _)| *o != executed.outcome) {
            self.shared.control.note_error(executed.outcome, session.last_error());
            errors.push((executed.outcome, session.last_error().to_owned()));
        }
        let one = Executed { records: 0, ..executed };
        for (task, request) in tasks.iter().zip(requests.iter()) {
            workload.settled(request, &self.shared.frontier);
            let part = (*request, one, done - begun, done.saturating_sub(task.intended_ns));
            self.record(user, task, request, executed.outcome, &[part], (begun, done));
        }
        ideal_ns + (done - begun)
    }
}
