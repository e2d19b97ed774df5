//! Intervals of all threads, added up exactly.

use crate::gaps::{Gap, Pause};
use crate::histogram::{Buckets, Counts, Scale, SparseBuckets};
use crate::interval::{RawSample, ThreadInterval};
use crate::stamps::Stamps;
use dyno_types::Outcome;

/// Merged service and response time of one (metric, ok or failed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedSlot<H = Buckets> {
    /// Completion less sending.
    pub service: H,
    /// Completion less intended start.
    pub response: H,
}

/// Sums over threads and intervals; `H` is how histograms are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals<H = Buckets> {
    /// Slots by `metric * 2 + failed`; `None` where nothing was recorded.
    pub slots: Vec<Option<MergedSlot<H>>>,
    /// Open loop: the server's share of the response times of successful requests, by metric; `None` where nothing was recorded.
    pub server: Vec<Option<H>>,
    /// Ended requests by metric and outcome.
    pub outcomes: Vec<[u64; Outcome::COUNT]>,
    /// Arrivals taken from the schedule.
    pub arrivals: u64,
    /// Ended arrivals by outcome.
    pub ended: [u64; Outcome::COUNT],
    /// Successes within the phase's time [0, T) less successes of its arrivals; see [`Totals::count_completed`].
    pub crossed: i64,
    /// Time of users in [0, T) that the histograms lack, less what they hold of times outside it, nanoseconds (closed loop).
    pub clipped_ns: i64,
    /// Number of the dropped arrivals that still waited when the drain ended.
    pub undrained: u64,
    /// Arrivals of the warm-up that ended after it.
    pub carried: u64,
    /// Arrivals of the warm-up that were taken from the schedule after it.
    pub carried_arrivals: u64,
    /// Schedule lag.
    pub lag: H,
    /// Kernel's arrival of a reply to its handling.
    pub receive_lag: H,
    /// Counts of replies by the clock that ended service times.
    pub stamps: Stamps,
    /// Decoding of a reply to the next sending.
    pub turnaround: H,
    /// Response times of successful requests as a client that is never late would have seen them (open loop).
    pub ideal: H,
    /// Dropped arrivals by intended second.
    pub drops: Vec<(u64, u64)>,
    /// Replies after their time-out.
    pub late: u64,
    /// Replies that the client had not asked for.
    pub unexpected: u64,
    /// Replies that do not follow the protocol.
    pub broken: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Redirections followed.
    pub redirects: u64,
    /// Longest queue of due arrivals.
    pub backlog: u64,
    /// Nanoseconds the threads did not sleep, added up.
    pub busy_ns: u64,
    /// Time of all users, and of those that had a connection ready, nanoseconds.
    pub users_ns: [u64; 2],
    /// Load threads that have ended.
    pub threads: u64,
    /// Stretches without a success of each of them.
    pub gaps: Vec<Gap>,
    /// Stretches in which a load thread did not run, of each thread.
    pub pauses: Vec<Pause>,
    /// Raw samples, if asked for.
    pub samples: Vec<RawSample>,
    scale: Scale,
}

/// Totals as they travel.
pub type SparseTotals = Totals<SparseBuckets>;

impl<H> Totals<H> {
    /// Nothing yet, for `metrics` metrics; `empty` makes a histogram.
    fn with_histograms(metrics: usize, scale: Scale, empty: impl Fn(Scale) -> H) -> Self {
        Totals {
            slots: (0..metrics * 2).map(|_| None).collect(),
            server: (0..metrics).map(|_| None).collect(),
            outcomes: vec![[0; Outcome::COUNT]; metrics],
            arrivals: 0,
            ended: [0; Outcome::COUNT],
            crossed: 0,
            clipped_ns: 0,
            undrained: 0,
            carried: 0,
            carried_arrivals: 0,
            lag: empty(Scale::Ns64),
            receive_lag: empty(Scale::Ns64),
            stamps: Stamps::default(),
            turnaround: empty(Scale::Ns64),
            ideal: empty(Scale::Ns64),
            drops: Vec::new(),
            late: 0,
            unexpected: 0,
            broken: 0,
            reconnects: 0,
            redirects: 0,
            backlog: 0,
            busy_ns: 0,
            users_ns: [0; 2],
            threads: 0,
            gaps: Vec::new(),
            pauses: Vec::new(),
            samples: Vec::new(),
            scale,
        }
    }

    /// The unit of the slots.
    pub fn slot_scale(&self) -> Scale {
        self.scale
    }

    /// Ended arrivals of any outcome.
    pub fn ended_total(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// Arrivals that ended well.
    pub fn count_ok(&self) -> u64 {
        self.ended[Outcome::Ok as usize]
    }

    /// Successes within the phase's time [0, T), in whichever phase they arrived: what throughput counts.
    pub fn count_completed(&self) -> u64 {
        self.count_ok().saturating_add_signed(self.crossed)
    }

    /// Arrivals that ended in any other way.
    pub fn count_failed(&self) -> u64 {
        self.ended_total() - self.count_ok()
    }
}

impl SparseTotals {
    /// Nothing yet, for `metrics` metrics.
    pub(crate) fn sparse(metrics: usize, scale: Scale) -> Self {
        Totals::with_histograms(metrics, scale, SparseBuckets::new)
    }

    /// Nothing, for the same metrics.
    pub fn to_empty(&self) -> Totals {
        Totals::new(self.outcomes.len(), self.scale)
    }

    /// The same, to be added to.
    pub fn to_dense(&self) -> Totals {
        let mut totals = self.to_empty();
        totals.merge(self);
        totals
    }
}

impl Totals {
    /// Nothing yet, for `metrics` metrics.
    pub fn new(metrics: usize, scale: Scale) -> Self {
        Totals::with_histograms(metrics, scale, Buckets::new)
    }

    /// Leaves what is recorded under names alone, and nothing that is a sum of all operations.
    pub fn keep_metrics(&mut self) {
        let empty = Totals::new(self.outcomes.len(), self.scale);
        let (slots, outcomes) = (std::mem::take(&mut self.slots), std::mem::take(&mut self.outcomes));
        *self = Totals { slots, outcomes, ..empty };
    }

    /// Returns the histograms of all operations together, by the names in the run directory.
    pub fn of_all(&self) -> [(&'static str, &Buckets); 4] {
        [
            ("lag.schedule", &self.lag),
            ("lag.receive", &self.receive_lag),
            ("lag.turnaround", &self.turnaround),
            ("ideal.response", &self.ideal),
        ]
    }

    /// The same to be filled.
    pub fn of_all_mut(&mut self) -> [(&'static str, &mut Buckets); 4] {
        [
            ("lag.schedule", &mut self.lag),
            ("lag.receive", &mut self.receive_lag),
            ("lag.turnaround", &mut self.turnaround),
            ("ideal.response", &mut self.ideal),
        ]
    }

    /// Operations of a metric that were due and had not been sent when the time was over: they end as aborted and have no
    /// latency.
    pub fn unsent_operations(&self, metric: usize) -> u64 {
        let counts = &self.outcomes[metric];
        let failed = counts.iter().sum::<u64>() - counts[Outcome::Ok as usize];
        let timed = self.failed_slot(metric).map_or(0, |slot| slot.service.count());
        let unsent = failed.saturating_sub(timed).saturating_sub(counts[Outcome::Dropped as usize]);
        unsent.min(counts[Outcome::Aborted as usize])
    }

    /// Nothing, for the same metrics.
    pub fn empty_like(&self) -> Self {
        Totals::new(self.outcomes.len(), self.scale)
    }

    fn slot(&mut self, index: usize) -> &mut MergedSlot {
        let scale = self.scale;
        self.slots[index]
            .get_or_insert_with(|| MergedSlot { service: Buckets::new(scale), response: Buckets::new(scale) })
    }

    /// Adds a thread's interval.
    pub fn add_interval(&mut self, interval: &ThreadInterval) {
        // What is longer on one side would be left out without a word.
        debug_assert_eq!(self.slots.len(), interval.slots.len());
        debug_assert_eq!(self.server.len(), interval.server.len());
        debug_assert_eq!(self.outcomes.len(), interval.outcomes.len());
        for (index, slot) in interval.slots.iter().enumerate() {
            let Some(slot) = slot.as_deref().filter(|s| !s.service.is_empty()) else { continue };
            let mine = self.slot(index);
            let before = (mine.service.count(), mine.response.count());
            mine.service.add(&slot.service);
            mine.response.add(&slot.response);
            let added = (mine.service.count() - before.0, mine.response.count() - before.1);
            debug_assert_eq!(added.0, added.1, "each request has both times");
            debug_assert!(has_outcomes(&interval.outcomes[index / 2], index, added.0));
        }
        for (metric, server) in interval.server.iter().enumerate() {
            let Some(server) = server.as_deref().filter(|server| !server.is_empty()) else { continue };
            self.server[metric].get_or_insert_with(|| Buckets::new(self.scale)).add(server);
        }
        add_counts(&mut self.outcomes, &interval.outcomes);
        self.lag.add(&interval.lag);
        self.receive_lag.add(&interval.receive_lag);
        self.stamps.add(&interval.stamps);
        self.turnaround.add(&interval.turnaround);
        self.ideal.add(&interval.ideal);
        self.drops.extend_from_slice(&interval.drops);
        self.samples.extend_from_slice(&interval.samples);
        for (mine, theirs) in self.ended.iter_mut().zip(interval.ended) {
            *mine += theirs;
        }
        self.arrivals += interval.arrivals;
        self.crossed += interval.crossed;
        self.clipped_ns = self.clipped_ns.saturating_add(interval.clipped_ns);
        self.undrained += interval.undrained;
        self.carried += interval.carried;
        self.carried_arrivals += interval.carried_arrivals;
        self.late += interval.late;
        self.unexpected += interval.unexpected;
        self.broken += interval.broken;
        self.reconnects += interval.reconnects;
        self.redirects += interval.redirects;
        self.backlog = self.backlog.max(interval.backlog);
        self.busy_ns += interval.busy_ns;
        self.add_watched(interval.users_ns, u64::from(interval.last), (&interval.gaps, &interval.pauses));
    }

    /// Adds other totals, except their raw samples, which [`Totals::samples`] alone would let grow without bound.
    pub fn merge<H: Counts>(&mut self, other: &Totals<H>) {
        for (index, slot) in other.slots.iter().enumerate() {
            if let Some(slot) = slot {
                let mine = self.slot(index);
                slot.service.add_to(&mut mine.service);
                slot.response.add_to(&mut mine.response);
            }
        }
        for (metric, server) in other.server.iter().enumerate() {
            let Some(server) = server else { continue };
            server.add_to(self.server[metric].get_or_insert_with(|| Buckets::new(self.scale)));
        }
        other.lag.add_to(&mut self.lag);
        other.receive_lag.add_to(&mut self.receive_lag);
        other.turnaround.add_to(&mut self.turnaround);
        other.ideal.add_to(&mut self.ideal);
        self.merge_counts(other);
    }

    /// Adds what other totals count, without their histograms.
    pub fn merge_counts<H>(&mut self, other: &Totals<H>) {
        add_counts(&mut self.outcomes, &other.outcomes);
        self.stamps.add(&other.stamps);
        for &(second, count) in &other.drops {
            match self.drops.iter_mut().find(|(s, _)| *s == second) {
                Some((_, mine)) => *mine = mine.saturating_add(count),
                None => self.drops.push((second, count)),
            }
        }
        for (mine, theirs) in self.ended.iter_mut().zip(other.ended) {
            *mine += theirs;
        }
        self.arrivals += other.arrivals;
        self.crossed = self.crossed.saturating_add(other.crossed);
        self.clipped_ns = self.clipped_ns.saturating_add(other.clipped_ns);
        self.undrained += other.undrained;
        self.carried += other.carried;
        self.carried_arrivals += other.carried_arrivals;
        self.late += other.late;
        self.unexpected += other.unexpected;
        self.broken += other.broken;
        self.reconnects += other.reconnects;
        self.redirects += other.redirects;
        self.backlog = self.backlog.max(other.backlog);
        self.busy_ns += other.busy_ns;
        self.add_watched(other.users_ns, other.threads, (&other.gaps, &other.pauses));
    }

    fn add_watched(&mut self, users_ns: [u64; 2], threads: u64, (gaps, pauses): (&[Gap], &[Pause])) {
        for (mine, theirs) in self.users_ns.iter_mut().zip(users_ns) {
            *mine = mine.saturating_add(theirs);
        }
        self.threads = self.threads.saturating_add(threads);
        self.gaps.extend_from_slice(gaps);
        self.pauses.extend_from_slice(pauses);
    }

    /// Service and response time of successful requests of a metric.
    pub fn ok_slot(&self, metric: usize) -> Option<&MergedSlot> {
        self.slots.get(metric * 2)?.as_ref()
    }

    /// Server's share of the response times of successful requests of a metric, where it was recorded.
    pub fn server_share(&self, metric: usize) -> Option<&Buckets> {
        self.server.get(metric)?.as_ref()
    }

    /// Service and response time of failed requests of a metric.
    pub fn failed_slot(&self, metric: usize) -> Option<&MergedSlot> {
        self.slots.get(metric * 2 + 1)?.as_ref()
    }
}

/// Returns whether the outcomes of a metric hold those `timed` requests of its slot: of requests that ended well just as many, of
/// others perhaps more, because what was never sent has no time.
fn has_outcomes(counts: &[u64; Outcome::COUNT], slot: usize, timed: u64) -> bool {
    let ok = counts[Outcome::Ok as usize];
    if slot.is_multiple_of(2) { timed == ok } else { timed <= counts.iter().sum::<u64>() - ok }
}

fn add_counts(mine: &mut [[u64; Outcome::COUNT]], theirs: &[[u64; Outcome::COUNT]]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let mut all = Totals::new(2, Scale::Ns64);
        for thread in 0..3u64 {
            let mut interval = ThreadInterval::new(2, Scale::Ns64);
            for i in 0..10 {
                interval.arrivals += 1;
                let outcome = if i == 0 { Outcome::TimedOut } else { Outcome::Ok };
                interval.ended[outcome as usize] += 1;
                interval.record_ended((i % 2) as u16, outcome, thread * 1_000 + i, i);
            }
            interval.drop_at(7);
            all.add_interval(&interval);
        }
        assert_eq!(all.arrivals, 33);
        assert_eq!(all.ended_total(), all.arrivals);
        assert_eq!((all.count_ok(), all.count_failed()), (27, 6));
        assert_eq!(all.ok_slot(0).unwrap().service.count(), 12);
        assert_eq!(all.failed_slot(0).unwrap().service.count(), 3);
        assert!(all.failed_slot(1).is_none());
    }
}
