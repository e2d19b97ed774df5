//! Counts of one load thread in one interval, and the recorder that swaps intervals out.

use crate::gaps::{Gap, GapWatch, Pause};
use crate::histogram::{Histogram, Scale};
use crate::stamps::Stamps;
use dyno_types::Outcome;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

/// Service and response time of one (metric, ok or failed).
#[derive(Clone, Debug)]
pub struct HistogramSlot {
    /// Completion less sending.
    pub service: Histogram,
    /// Completion less intended start.
    pub response: Histogram,
}

/// One recorded sample, kept only where a report asks for raw data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// Metric number.
    pub metric: u16,
    /// Outcome.
    pub outcome: Outcome,
    /// Completion, nanoseconds after the run's epoch.
    pub done_ns: u64,
    /// Service time, nanoseconds.
    pub service_ns: u64,
    /// Response time, nanoseconds.
    pub response_ns: u64,
}

/// Everything one load thread counted between two swaps.
#[derive(Clone, Debug)]
pub struct ThreadInterval {
    /// Number of the load thread.
    pub thread: usize,
    /// Number of the interval, counted from the epoch in steps of the job's interval.
    pub number: u64,
    /// True if it belongs to the warm-up.
    pub warmup: bool,
    /// Slots by `metric * 2 + failed`, allocated at first use.
    pub slots: Vec<Option<Box<HistogramSlot>>>,
    /// Open loop: the server's share of the response times of successful requests, by metric, allocated at first use: what a
    /// client that is never late would have seen. In the closed loop it is the service time.
    pub server: Vec<Option<Box<Histogram>>>,
    /// Ended requests by metric and outcome.
    pub outcomes: Vec<[u64; Outcome::COUNT]>,
    /// Arrivals taken from the schedule (sent or dropped).
    pub arrivals: u64,
    /// Ended arrivals by outcome; over a whole run their sum equals `arrivals`.
    pub ended: [u64; Outcome::COUNT],
    /// Successes within the phase's time [0, T) less successes of its arrivals: those of the warm-up that ended well in it
    /// count, those of its own that ended after it do not.
    pub crossed: i64,
    /// Time of users in [0, T) that the histograms lack, less what they hold of times outside it, nanoseconds (closed loop).
    pub clipped_ns: i64,
    /// Number of the dropped arrivals that still waited when the drain ended.
    pub undrained: u64,
    /// Arrivals of the warm-up that ended after it.
    pub carried: u64,
    /// Arrivals of the warm-up that were taken from the schedule after it.
    pub carried_arrivals: u64,
    /// Schedule lag: sending less the moment at which a client that is never late would have sent.
    pub lag: Histogram,
    /// Kernel's arrival of a reply to its handling.
    pub receive_lag: Histogram,
    /// Counts of replies by the clock that ended service times.
    pub stamps: Stamps,
    /// Decoding of a reply to the next sending on the same connection (closed loop).
    pub turnaround: Histogram,
    /// Response times of successful requests as a client that is never late would have seen them (open loop).
    pub ideal: Histogram,
    /// Dropped arrivals by their intended second.
    pub drops: Vec<(u64, u64)>,
    /// Replies that came after their request had timed out.
    pub late: u64,
    /// Replies that the client had not asked for.
    pub unexpected: u64,
    /// Replies that do not follow the protocol.
    pub broken: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Redirections followed.
    pub redirects: u64,
    /// Longest queue of due arrivals that was seen.
    pub backlog: u64,
    /// Nanoseconds the thread did not sleep.
    pub busy_ns: u64,
    /// Time of all users, and of those that had a connection ready, nanoseconds.
    pub users_ns: [u64; 2],
    /// Stretches without a success that ended in it.
    pub gaps: Vec<Gap>,
    /// Stretches in which the thread did not run that ended in it.
    pub pauses: Vec<Pause>,
    /// Raw samples, if asked for.
    pub samples: Vec<RawSample>,
    /// The thread's last one: it has ended.
    pub last: bool,
    scale: Scale,
}

impl ThreadInterval {
    /// An empty interval for `metrics` metrics.
    pub fn new(metrics: usize, scale: Scale) -> Self {
        ThreadInterval {
            thread: 0,
            number: 0,
            warmup: false,
            slots: vec![None; metrics * 2],
            server: vec![None; metrics],
            outcomes: vec![[0; Outcome::COUNT]; metrics],
            arrivals: 0,
            ended: [0; Outcome::COUNT],
            crossed: 0,
            clipped_ns: 0,
            undrained: 0,
            carried: 0,
            carried_arrivals: 0,
            lag: Histogram::new(Scale::Ns64),
            receive_lag: Histogram::new(Scale::Ns64),
            stamps: Stamps::default(),
            turnaround: Histogram::new(Scale::Ns64),
            ideal: Histogram::new(Scale::Ns64),
            drops: Vec::new(),
            late: 0,
            unexpected: 0,
            broken: 0,
            reconnects: 0,
            redirects: 0,
            backlog: 0,
            busy_ns: 0,
            users_ns: [0; 2],
            gaps: Vec::new(),
            pauses: Vec::new(),
            samples: Vec::new(),
            last: false,
            scale,
        }
    }

    /// Counts one ended request of `metric`.
    #[inline]
    pub fn record_ended(&mut self, metric: u16, outcome: Outcome, service_ns: u64, response_ns: u64) {
        self.outcomes[metric as usize][outcome as usize] += 1;
        let slot = &mut self.slots[metric as usize * 2 + usize::from(!outcome.is_ok())];
        let slot = match slot {
            Some(slot) => slot,
            None => fresh(slot, self.scale),
        };
        slot.service.record(service_ns);
        slot.response.record(response_ns);
    }

    /// Notes the server's share of the response time of a successful request of `metric`, nanoseconds.
    #[inline]
    pub fn record_server(&mut self, metric: u16, server_ns: u64) {
        let scale = self.scale;
        let server = &mut self.server[metric as usize];
        server.get_or_insert_with(|| Box::new(Histogram::new(scale))).record(server_ns);
    }

    /// Counts one ended request as [`ThreadInterval::record_ended`] does and keeps its sample, which ended at `done_ns` after the
    /// run's epoch, if `keep`.
    pub fn record_sample(&mut self, sample: RawSample, keep: bool) {
        self.record_ended(sample.metric, sample.outcome, sample.service_ns, sample.response_ns);
        if keep {
            self.samples.push(sample);
        }
    }

    /// Counts a dropped arrival at its intended second.
    pub fn drop_at(&mut self, second: u64) {
        self.arrivals += 1;
        self.ended[Outcome::Dropped as usize] += 1;
        match self.drops.last_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => self.drops.push((second, 1)),
        }
    }

    /// An empty interval for the same metrics and thread.
    fn sibling(&self) -> Self {
        ThreadInterval { thread: self.thread, ..ThreadInterval::new(self.outcomes.len(), self.scale) }
    }

    /// Forgets everything but the allocations.
    pub fn reset(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.service.reset();
            slot.response.reset();
        }
        self.server.iter_mut().flatten().for_each(|server| server.reset());
        self.outcomes.fill([0; Outcome::COUNT]);
        self.ended = [0; Outcome::COUNT];
        for histogram in [&mut self.lag, &mut self.receive_lag, &mut self.turnaround, &mut self.ideal] {
            histogram.reset();
        }
        self.stamps = Stamps::default();
        self.drops.clear();
        self.samples.clear();
        self.gaps.clear();
        self.pauses.clear();
        self.users_ns = [0; 2];
        (self.arrivals, self.carried, self.late, self.reconnects, self.redirects) = (0, 0, 0, 0, 0);
        (self.carried_arrivals, self.backlog, self.busy_ns, self.last) = (0, 0, 0, false);
        (self.crossed, self.clipped_ns, self.undrained) = (0, 0, 0);
        (self.unexpected, self.broken) = (0, 0);
        debug_assert!(self.is_blank());
    }

    /// Returns whether nothing is counted in it, as far as that shows at once.
    fn is_blank(&self) -> bool {
        let slots = self.slots.iter().flatten().all(|s| s.service.is_empty() && s.response.is_empty());
        let counts = [self.arrivals, self.carried, self.carried_arrivals, self.late, self.undrained];
        slots && counts == [0; 5] && self.samples.is_empty() && self.drops.is_empty() && !self.last
    }
}

#[cold]
fn fresh(slot: &mut Option<Box<HistogramSlot>>, scale: Scale) -> &mut HistogramSlot {
    slot.insert(Box::new(HistogramSlot { service: Histogram::new(scale), response: Histogram::new(scale) }))
}

/// Time that virtual time waits for the other side of the recording.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A load thread's end of the recording: counts into the current interval, hands it over at a swap.
#[derive(Debug)]
pub struct Recorder {
    /// The interval being counted.
    pub now: Box<ThreadInterval>,
    watch: GapWatch,
    full: SyncSender<Box<ThreadInterval>>,
    empty: Receiver<Box<ThreadInterval>>,
}

impl Recorder {
    /// A recorder that sends full intervals to `full` and takes emptied ones back from `empty`.
    pub fn new(
        first: Box<ThreadInterval>,
        full: SyncSender<Box<ThreadInterval>>,
        empty: Receiver<Box<ThreadInterval>>,
    ) -> Self {
        Recorder { now: first, watch: GapWatch::new(0), full, empty }
    }

    /// Counting begins at the run's epoch, on the clock whose times are given from now on, nanoseconds.
    pub fn begin_at(&mut self, epoch_ns: u64) {
        self.watch = GapWatch::new(epoch_ns);
    }

    /// Returns whether a success at `at_ns` ends a stretch without one that is kept.
    #[inline]
    pub fn ends_gap(&self, at_ns: u64) -> bool {
        self.watch.ends_gap(at_ns)
    }

    /// The success at `at_ns`, of an operation that had begun at `begun_ns`, ends a stretch that is kept. It is noted behind it.
    pub fn end_gap(&mut self, begun_ns: u64, at_ns: u64) {
        self.watch.end_gap(begun_ns, at_ns, &mut self.now.gaps);
    }

    /// A request has succeeded at `at_ns`.
    #[inline]
    pub fn note_success(&mut self, at_ns: u64) {
        self.watch.note_success(at_ns);
    }

    /// An operation that had begun at `begun_ns` was given up without an answer.
    #[inline]
    pub fn note_unanswered(&mut self, begun_ns: u64) {
        self.watch.note_unanswered(begun_ns);
    }

    /// The thread begins to work at `now_ns`; it was to wake up by `due_ns` at the latest.
    #[inline]
    pub fn note_wake(&mut self, due_ns: u64, now_ns: u64) {
        self.watch.note_wake(due_ns, now_ns);
    }

    /// The thread has done its work at `now_ns`.
    #[inline]
    pub fn note_work(&mut self, now_ns: u64) {
        self.watch.note_work(now_ns);
    }

    /// Hands the current interval over and begins interval `number`. Where the other side has not emptied an interval
    /// yet, counting goes on in the old one, which then covers more than one interval: nothing is lost.
    ///
    /// Where the interval being counted is that one already (the warm-up has just ended) or a later one, nothing happens.
    pub fn swap_interval(&mut self, number: u64, warmup: bool) {
        if self.is_counted(number, warmup) {
            return;
        }
        if let Ok(next) = self.empty.try_recv() {
            self.begin(next, number, warmup);
        }
    }

    /// As [`Recorder::swap_interval`], but waits a while for the other side: where time is virtual it would be left behind for no
    /// reason of the load's.
    pub fn swap_waiting(&mut self, number: u64, warmup: bool) {
        if self.is_counted(number, warmup) {
            return;
        }
        if let Ok(next) = self.empty.recv_timeout(PATIENCE) {
            self.begin(next, number, warmup);
        }
    }

    /// Returns whether this interval is the one being counted, or an earlier one: who asks for it read the clock, and was
    /// preempted while another thread went on.
    fn is_counted(&self, number: u64, warmup: bool) -> bool {
        let now = &self.now;
        number < now.number || warmup && !now.warmup || (number, warmup) == (now.number, now.warmup)
    }

    fn begin(&mut self, mut next: Box<ThreadInterval>, number: u64, warmup: bool) {
        debug_assert!(next.is_blank(), "what was handed over would be counted once more");
        debug_assert_eq!(next.thread, self.now.thread, "it would count for another thread");
        next.number = number;
        next.warmup = warmup;
        self.watch.hand_over(&mut self.now.pauses);
        std::mem::swap(&mut self.now, &mut next);
        match self.full.try_send(next) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(back)) => self.now = merge_back(back, &self.now),
        }
    }

    /// Ends the warm-up, unless it has ended: as [`Recorder::swap_interval`], but where the other side is behind, an interval is
    /// allocated and the old one handed over by waiting, because what is measured must not be counted as warm-up.
    #[inline]
    pub fn end_warmup(&mut self, number: u64) {
        if self.now.warmup {
            self.begin_measured(number);
        }
    }

    #[cold]
    fn begin_measured(&mut self, number: u64) {
        let mut next = self.empty.try_recv().unwrap_or_else(|_| Box::new(self.now.sibling()));
        debug_assert!(next.is_blank(), "what was handed over would be counted once more");
        debug_assert_eq!(next.thread, self.now.thread, "it would count for another thread");
        (next.number, next.warmup) = (number, false);
        self.watch.hand_over(&mut self.now.pauses);
        std::mem::swap(&mut self.now, &mut next);
        // The receiver outlives the load threads; if it is gone, the counts are not wanted.
        let _ = self.full.send(next);
    }

    /// Hands the last interval over, waiting if it must.
    pub fn finish(mut self) {
        debug_assert!(!self.now.last, "a thread has one last interval");
        self.now.last = true;
        self.watch.finish(&mut self.now.gaps);
        self.watch.hand_over(&mut self.now.pauses);
        // The receiver outlives the load threads; if it is gone, the counts are not wanted.
        let _ = self.full.send(self.now);
    }
}

/// The queue holds as many intervals as there are, so a full queue cannot happen; the fresh interval is still empty.
#[cold]
fn merge_back(back: Box<ThreadInterval>, fresh: &ThreadInterval) -> Box<ThreadInterval> {
    debug_assert_eq!(fresh.arrivals, 0);
    back
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, sync_channel};

    #[test]
    fn who_comes_late_with_an_earlier_interval_changes_nothing() {
        let interval = || Box::new(ThreadInterval::new(1, Scale::Ns64));
        let (full, filled) = sync_channel(4);
        let (give, empty) = channel();
        (0..4).for_each(|_| give.send(interval()).unwrap());
        let mut recorder = Recorder::new(interval(), full, empty);
        recorder.now.warmup = true;
        let mut counted = Vec::new();
        // A user ends the warm-up in interval 3, and goes on to 4, before the swap to 3 is done.
        recorder.swap_interval(2, true);
        recorder.end_warmup(3);
        for (number, warmup) in [(3, true), (2, true), (3, false), (4, false), (3, false), (4, true)] {
            recorder.swap_interval(number, warmup);
            counted.push((recorder.now.number, recorder.now.warmup));
        }
        assert_eq!(counted, [(3, false), (3, false), (3, false), (4, false), (4, false), (4, false)]);
        recorder.finish();
        let ended: Vec<_> = filled.iter().map(|interval| (interval.number, interval.warmup)).collect();
        assert_eq!(ended, [(0, true), (2, true), (3, false), (4, false)]);
    }
}
