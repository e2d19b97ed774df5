//! Reports of load threads, and how the intervals of all are added up, second by second.

use crate::run_error::RunError;
use crate::shared::RunState;
use dyno_record::{Recorder, ThreadInterval, Totals};
use dyno_types::Outcome;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::time::SystemTime;

/// One interval of all threads together: a second unless the job says otherwise (or a part, at the end of the warm-up).
#[derive(Debug)]
pub struct Second {
    /// Number of the interval since the epoch.
    pub number: u64,
    /// True if it belongs to the warm-up.
    pub warmup: bool,
    /// Counts of the interval.
    pub totals: Totals,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The first error text of every class.
    pub errors: Vec<(Outcome, String)>,
    /// Wall clock at the epoch.
    pub epoch: SystemTime,
    /// From the epoch to the last completion, drain and all, nanoseconds.
    pub elapsed_ns: u64,
    /// Length T of the measured phase, nanoseconds: its duration, or until the last of its operations was done (closed loop) or
    /// the next one would have been due (open loop), or until the run was ended early; 0 if that was in the warm-up.
    pub measured_ns: u64,
    /// Closed loop that ends by a number of operations: successes a second until the first user had nothing left to do.
    pub busy_rate: Option<f64>,
    /// From the first thread's start to the epoch (connecting), nanoseconds.
    pub connecting_ns: u64,
    /// True if all threads are on the cores they were given.
    pub pinned: bool,
}

/// How a load thread, or all of them, ended. Times are the clock's, nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// First error text of every class.
    pub errors: Vec<(Outcome, String)>,
    /// When it was over.
    pub ended_ns: u64,
    /// When the measured phase was over at the latest, whatever had been done by then.
    pub bound_ns: u64,
    /// The last completion of a measured operation.
    pub done_ns: u64,
    /// True if it is over with that: users had a number of operations, and all were done.
    pub counted: bool,
    /// Successes a second until the first user had nothing left to do; `None` where that is not known.
    pub busy_rate: Option<f64>,
}

impl Ending {
    /// The end of two threads.
    fn and(mut self, other: Ending) -> Ending {
        for (outcome, text) in other.errors {
            if self.errors.iter().all(|(known, _)| *known != outcome) {
                self.errors.push((outcome, text));
            }
        }
        Ending {
            errors: self.errors,
            ended_ns: self.ended_ns.max(other.ended_ns),
            // A thread that notices late that the run is to end had nothing to do meanwhile.
            bound_ns: self.bound_ns.min(other.bound_ns),
            done_ns: self.done_ns.max(other.done_ns),
            counted: self.counted && other.counted,
            busy_rate: self.busy_rate.zip(other.busy_rate).map(|(one, other)| one + other),
        }
    }

    /// The length of the phase that began at `measure_ns`, nanoseconds.
    pub fn measured_ns(&self, measure_ns: u64) -> u64 {
        let unbound = self.counted || self.bound_ns == u64::MAX;
        let until_ns = if unbound { self.bound_ns.min(self.done_ns) } else { self.bound_ns };
        until_ns.saturating_sub(measure_ns)
    }
}

/// Event that a load thread reports to the control thread.
pub(crate) enum ThreadEvent {
    /// Connected and on its core (or not), or not connected.
    Ready(Result<bool, RunError>),
    /// Ended.
    Ended(Result<Ending, RunError>),
}

/// Channels of one recorder: two intervals circulate.
pub(crate) fn recorder(
    shared: &RunState,
    thread: usize,
    full: &SyncSender<Box<ThreadInterval>>,
) -> (Recorder, Sender<Box<ThreadInterval>>) {
    let fresh = || {
        let mut interval = ThreadInterval::new(shared.job.workload.metrics().len(), shared.job.scale);
        interval.thread = thread;
        Box::new(interval)
    };
    let (empty, emptied) = channel();
    // The receiver is in our hands.
    let _ = empty.send(fresh());
    (Recorder::new(fresh(), full.clone(), emptied), empty)
}

pub(crate) fn await_ready(events: &Receiver<ThreadEvent>, threads: usize) -> Result<bool, RunError> {
    let mut pinned = true;
    for _ in 0..threads {
        match events.recv() {
            Ok(ThreadEvent::Ready(ready)) => pinned &= ready?,
            _ => return Err(RunError::Panicked),
        }
    }
    Ok(pinned)
}

/// Adds up intervals of all threads and hands out each second once all threads are past it.
pub(crate) struct Merger {
    metrics: usize,
    scale: dyno_record::Scale,
    empties: Vec<Sender<Box<ThreadInterval>>>,
    /// By (second, measured): sums so far.
    open: BTreeMap<(u64, bool), Totals>,
    /// The second that each thread is counting; `None` when it has ended.
    at: Vec<Option<(u64, bool)>>,
    /// Arrivals that have begun and that have ended so far, those of the warm-up too.
    begun: u64,
    ended: u64,
}

impl Merger {
    pub(crate) fn new(shared: &RunState, empties: Vec<Sender<Box<ThreadInterval>>>) -> Self {
        Merger {
            metrics: shared.job.workload.metrics().len(),
            scale: shared.job.scale,
            at: vec![Some((0, false)); empties.len()],
            empties,
            open: BTreeMap::new(),
            begun: 0,
            ended: 0,
        }
    }

    pub(crate) fn run(
        mut self,
        filled: &Receiver<Box<ThreadInterval>>,
        events: &Receiver<ThreadEvent>,
        ending: usize,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Ending, RunError> {
        // Ends when every recorder has been dropped.
        while let Ok(interval) = filled.recv() {
            self.take(interval);
            self.hand_out(on_second);
        }
        self.at.fill(None);
        self.hand_out(on_second);
        debug_assert!(self.open.is_empty(), "a second would be missing in the run");
        let mut all: Option<Ending> = None;
        for _ in 0..ending {
            match events.recv() {
                Ok(ThreadEvent::Ended(ended)) => {
                    let ended = ended?;
                    all = Some(match all {
                        Some(others) => others.and(ended),
                        None => ended,
                    });
                }
                _ => return Err(RunError::Panicked),
            }
        }
        // Only here: a thread that has failed has not ended what it had begun.
        debug_assert_eq!(self.begun, self.ended, "every arrival ends as exactly one outcome");
        all.ok_or(RunError::Panicked)
    }

    fn take(&mut self, mut interval: Box<ThreadInterval>) {
        debug_assert!(self.at[interval.thread].is_some(), "a thread that has ended counts nothing more");
        self.begun += interval.arrivals + interval.carried_arrivals;
        self.ended += interval.ended.iter().sum::<u64>() + interval.carried;
        let key = (interval.number, !interval.warmup);
        let totals = self.open.entry(key).or_insert_with(|| Totals::new(self.metrics, self.scale));
        totals.add_interval(&interval);
        // An interval has come: the thread counts a later one now.
        let next = Some((key.0 + u64::from(key.1), !key.1));
        self.at[interval.thread] = if interval.last { None } else { next };
        let thread = interval.thread;
        interval.reset();
        // A thread that has ended needs no more intervals.
        let _ = self.empties[thread].send(interval);
    }

    fn hand_out(&mut self, on_second: &mut dyn FnMut(Second)) {
        let safe = self.at.iter().flatten().min().copied().unwrap_or((u64::MAX, true));
        while let Some(entry) = self.open.first_entry() {
            let (number, measured) = *entry.key();
            if (number, measured) >= safe && safe != (u64::MAX, true) {
                break;
            }
            on_second(Second { number, warmup: !measured, totals: entry.remove() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_holds_back_no_second() {
        let scale = dyno_record::Scale::Ns64;
        let at = vec![Some((0, false)); 2];
        let mut merger =
            Merger { metrics: 1, scale, empties: Vec::new(), open: BTreeMap::new(), at, begun: 0, ended: 0 };
        // A thread that has ended wants no interval back: two receivers that live as long as the test.
        let mut emptied = Vec::new();
        for _ in 0..2 {
            let (empty, receiver) = channel();
            merger.empties.push(empty);
            emptied.push(receiver);
        }
        let mut counted = |thread: usize, number: u64, last: bool| {
            let mut interval = ThreadInterval::new(1, scale);
            (interval.thread, interval.number, interval.last) = (thread, number, last);
            merger.take(Box::new(interval));
            let mut seconds = Vec::new();
            merger.hand_out(&mut |second| seconds.push(second.number));
            seconds
        };
        assert!(counted(0, 0, false).is_empty());
        assert_eq!(counted(1, 0, false), [0]);
        assert!(counted(1, 1, false).is_empty());
        assert_eq!(counted(0, 1, true), [1]);
        assert_eq!(counted(1, 2, false), [2]);
        assert_eq!(counted(1, 3, true), [3]);
    }
}
