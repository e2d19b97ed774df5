//! Jobs whose operations belong to users, divided among workers.

use dyno_engine::{End, Job, Pacing, Queue, every_nth, share_of};
use dyno_workload::Workload;
use std::sync::Arc;

/// Share of worker `index` of `total` in a job whose operations belong to users. Users are numbered on from worker to worker, and
/// each does as many operations as if there were no workers; `workload` is for the worker's own.
pub fn part_of_users(job: &Job, workload: Arc<dyn Workload>, index: usize, total: usize) -> Job {
    let own = share_of(job.users, index, total);
    let first = first_user(job, index, total);
    let part = Job {
        workload,
        users: own,
        warm_users: job.warm_users.map(|warm| share_of(warm, index, total)),
        cores: every_nth(&job.cores, index, total),
        ..job.clone()
    };
    match job.pacing {
        Pacing::Closed { .. } => {
            let operations = |all| operations_of(all, first as u64, own as u64, job.users as u64);
            Job { end: End { operations: job.end.operations.map(operations), ..job.end }, ..part }
        }
        Pacing::Recorded => part,
        // Every n-th arrival of the schedule of all.
        Pacing::Open { .. } => Job {
            stripe: (index as u64, total as u64),
            queue: Queue { length: (job.queue.length / total as u64).max(1), ..job.queue },
            ..part
        },
    }
}

/// The number of worker `index`'s first user among those of all `total` workers.
pub fn first_user(job: &Job, index: usize, total: usize) -> usize {
    (0..index).map(|before| share_of(job.users, before, total)).sum()
}

/// Counts how many of the indexes below `operations` are those of `own` users from `first` on, where index i is that of user i
/// modulo `all`. After renumbering within this worker, each user again gets its own number of them.
fn operations_of(operations: u64, first: u64, own: u64, all: u64) -> u64 {
    let all = all.max(1);
    let part = operations / all * own + (operations % all).saturating_sub(first).min(own);
    debug_assert!(part <= operations, "a part is no more than the whole");
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of a user among `users`, as load threads claim them.
    fn claimed(user: u64, users: u64, operations: u64) -> u64 {
        (0u64..).take_while(|done| user + done * users < operations).count() as u64
    }

    #[test]
    fn every_user_does_what_it_does_without_workers() {
        for (operations, users, workers) in [
            (1000, 4, 2),
            (1000, 7, 3),
            (1, 4, 2),
            (0, 4, 4),
            (5, 4, 2),
            (17, 5, 5),
            (9, 10, 3),
            (1003, 64, 6),
        ] {
            let (mut first, mut sum) = (0, 0);
            for number in 0..workers {
                let own = share_of(users, number, workers) as u64;
                let limit = operations_of(operations, first, own, users as u64);
                for user in 0..own {
                    let done = claimed(user, own, limit);
                    assert_eq!(
                        done,
                        claimed(first + user, users as u64, operations),
                        "user {user} of {number}"
                    );
                    sum += done;
                }
                first += own;
            }
            assert_eq!(sum, operations, "{users} users, {workers} workers");
        }
    }
}
