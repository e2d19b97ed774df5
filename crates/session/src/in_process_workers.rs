//! Several engine runs side by side, as one: the workers of one process.
//!
//! Each has its own users and its own workload; their seconds are added up, each handed out once all workers are past
//! it.

use dyno_db::target::OpenTarget;
use dyno_engine::{Control, Finished, Job, RunError, Second};
use dyno_record::{SparseTotals, Totals};
use dyno_types::Outcome;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// A second of one worker, or how it ended.
enum PartEvent {
    Second(usize, Box<Second>),
    Ended(usize, Result<Finished, RunError>),
}

/// The target of a job that is not applied to that of the others ([`Job::elsewhere`]).
pub struct OtherTarget(pub Arc<dyn OpenTarget>);

fn other_target(job: &Job) -> Option<&OtherTarget> {
    job.elsewhere.as_ref()?.downcast_ref()
}

/// One job that stands for all that are not beside the others: their users and threads together.
pub fn join_jobs(jobs: &[Job]) -> Option<Job> {
    let jobs: Vec<&Job> = jobs.iter().filter(|job| !job.workload.is_beside()).collect();
    let first = *jobs.first()?;
    Some(Job {
        users: jobs.iter().map(|job| job.users).sum(),
        warm_users: first.warm_users.map(|_| jobs.iter().filter_map(|job| job.warm_users).sum()),
        cores: jobs.iter().flat_map(|job| job.cores.iter().copied()).collect(),
        ..first.clone()
    })
}

/// Runs all jobs at the same time. Those beside the others end with the last of these.
pub(crate) fn run(
    opened: &dyn OpenTarget,
    jobs: &[Job],
    control: &Arc<Control>,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    if let [job] = jobs {
        return opened.run(job.clone(), control.clone(), on_second);
    }
    let (tell, told) = channel();
    let beside = Arc::new(Control::below_control(control));
    let left = AtomicUsize::new(jobs.iter().filter(|job| !job.workload.is_beside()).count());
    let (beside, left) = (&beside, &left);
    std::thread::scope(|scope| {
        for (worker, job) in jobs.iter().enumerate() {
            let tell = tell.clone();
            scope.spawn(move || {
                let is_beside = job.workload.is_beside();
                // The receiver outlives the workers.
                let mut seconds = |mut second: Second| {
                    if job.elsewhere.is_some() {
                        second.totals = second.totals.empty_like();
                    } else if is_beside {
                        second.totals.keep_metrics();
                    }
                    drop(tell.send(PartEvent::Second(worker, Box::new(second))));
                };
                let own = if is_beside { beside } else { control };
                let target = match other_target(job) {
                    Some(other) => other.0.as_ref(),
                    None => opened,
                };
                let ended = target.run(job.clone(), own.clone(), &mut seconds);
                if ended.is_err() {
                    control.abort_run();
                }
                if !is_beside && left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    beside.stop();
                }
                drop(tell.send(PartEvent::Ended(worker, ended)));
            });
        }
        drop(tell);
        merge(jobs, &told, on_second)
    })
}

fn merge(
    jobs: &[Job],
    told: &Receiver<PartEvent>,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    let mut seconds = Seconds::new(jobs.len());
    let mut finished: Option<Finished> = None;
    let mut failed = None;
    let mut beside = Vec::new();
    while let Ok(word) = told.recv() {
        match word {
            PartEvent::Second(worker, second) => seconds.take_second(worker, *second),
            PartEvent::Ended(worker, Ok(ended)) => {
                seconds.note_ended(worker);
                if jobs[worker].workload.is_beside() {
                    // What another target says explains nothing here.
                    if jobs[worker].elsewhere.is_none() {
                        beside.extend(ended.errors);
                    }
                    seconds.hand_out(on_second);
                    continue;
                }
                finished = Some(match finished.take() {
                    None => ended,
                    Some(others) => both(others, ended),
                });
            }
            PartEvent::Ended(worker, Err(error)) => {
                seconds.note_ended(worker);
                failed.get_or_insert(error);
            }
        }
        seconds.hand_out(on_second);
    }
    match (failed, finished) {
        (Some(error), _) => Err(error),
        (None, Some(mut finished)) => {
            add_errors(&mut finished.errors, beside);
            Ok(finished)
        }
        (None, None) => Err(RunError::Panicked),
    }
}

/// Seconds of several workers, added up; each is handed out once all workers are past it.
pub struct Seconds {
    /// By (second, measured).
    open: BTreeMap<(u64, bool), Totals>,
    /// Second that each worker is counting; `None` when it has ended.
    at: Vec<Option<(u64, bool)>>,
}

impl Seconds {
    /// Expects seconds of so many workers.
    pub fn new(workers: usize) -> Self {
        Seconds { open: BTreeMap::new(), at: vec![Some((0, false)); workers] }
    }

    /// Expects seconds of a worker that had ended.
    pub fn expect_again(&mut self, worker: usize) {
        self.at[worker] = Some((0, false));
    }

    /// Notes that a worker is past a second; returns the second's key.
    fn pass(&mut self, worker: usize, number: u64, warmup: bool) -> (u64, bool) {
        self.at[worker] = Some((number + u64::from(!warmup), warmup));
        (number, !warmup)
    }

    /// A worker's second that has travelled, without samples.
    pub fn take_sparse(&mut self, worker: usize, number: u64, warmup: bool, totals: &SparseTotals) {
        let key = self.pass(worker, number, warmup);
        match self.open.get_mut(&key) {
            Some(sum) => sum.merge(totals),
            None => drop(self.open.insert(key, totals.to_dense())),
        }
    }

    /// A worker's second.
    pub fn take_second(&mut self, worker: usize, second: Second) {
        let key = self.pass(worker, second.number, second.warmup);
        match self.open.get_mut(&key) {
            Some(totals) => {
                // Merging leaves the samples out: they would grow without bound.
                totals.merge(&second.totals);
                totals.samples.extend(second.totals.samples);
            }
            None => drop(self.open.insert(key, second.totals)),
        }
    }

    /// A worker has no more seconds.
    pub fn note_ended(&mut self, worker: usize) {
        self.at[worker] = None;
    }

    /// Returns whether no worker has more seconds.
    pub fn are_over(&self) -> bool {
        self.at.iter().all(Option::is_none)
    }

    /// Hands out the seconds that all workers are past.
    pub fn hand_out(&mut self, on_second: &mut dyn FnMut(Second)) {
        let safe = self.at.iter().flatten().min().copied();
        while let Some(entry) = self.open.first_entry() {
            let (number, measured) = *entry.key();
            if safe.is_some_and(|safe| (number, measured) >= safe) {
                break;
            }
            on_second(Second { number, warmup: !measured, totals: entry.remove() });
        }
    }
}

/// Adds the first words of each outcome that has none yet.
fn add_errors(all: &mut Vec<(Outcome, String)>, more: Vec<(Outcome, String)>) {
    for (outcome, message) in more {
        if all.iter().all(|(known, _)| *known != outcome) {
            all.push((outcome, message));
        }
    }
}

/// Two workers' endings as one.
pub(crate) fn both(mut one: Finished, other: Finished) -> Finished {
    add_errors(&mut one.errors, other.errors);
    Finished {
        errors: one.errors,
        epoch: one.epoch.min(other.epoch),
        elapsed_ns: one.elapsed_ns.max(other.elapsed_ns),
        measured_ns: one.measured_ns.max(other.measured_ns),
        busy_rate: one.busy_rate.zip(other.busy_rate).map(|(one, other)| one + other),
        connecting_ns: one.connecting_ns.max(other.connecting_ns),
        pinned: one.pinned && other.pinned,
    }
}
