//! `intervals.jsonl`: the exact counters of every interval. Together with the histogram log they give back the totals
//! of a run without loss.

use crate::schema::Latency;
use dyno_record::{Buckets, Gap, MergedSlot, Pause, Stamps, Totals};
use dyno_types::Outcome;
use dyno_types::limits::{GAPS, INTERVAL_COUNT};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Exact sum and extremes of one histogram, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exact {
    /// Samples.
    pub count: u64,
    /// Sum.
    pub sum_ns: u64,
    /// Minimum.
    pub min_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Exact {
    fn of(buckets: &Buckets) -> Self {
        Exact {
            count: buckets.count(),
            sum_ns: buckets.sum_ns().min(u128::from(u64::MAX)) as u64,
            min_ns: buckets.min_ns(),
            max_ns: buckets.max_ns(),
        }
    }

    fn merge(&mut self, other: &Exact) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Gives buckets read from a log their exact sum and extremes, if they are of the same samples.
    pub fn restore_buckets(&self, buckets: &mut Buckets) {
        if buckets.count() == self.count {
            buckets.restore_extremes(u128::from(self.sum_ns), self.min_ns, self.max_ns);
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalLine {
    /// Phase.
    pub phase: String,
    /// Second since the phase's epoch.
    pub second: u64,
    /// Milliseconds after it at which the interval begins, where intervals are shorter than a second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ms: u32,
    /// Milliseconds that it covers, where these are known to be more than a second: imported results.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length_ms: u32,
    /// Arrivals that the rate asks for in it, where the rate changes on the way; how many came is a matter of chance, and they
    /// end in later intervals too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<f64>,
    /// Arrivals taken from the schedule.
    pub arrivals: u64,
    /// Arrivals by outcome.
    pub ended: BTreeMap<String, u64>,
    /// Successes in the interval that lie within the phase's time [0, T), in whichever phase they arrived: what throughput
    /// counts. Absent where it is the number of successes in `ended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Time of users in [0, T) that the histograms lack, less what they hold of times outside it, nanoseconds (closed loop).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clipped_ns: i64,
    /// Number of the dropped arrivals that still waited when the drain ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undrained: u64,
    /// Requests by metric and outcome.
    pub outcomes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Latencies whose histograms are not known, by the tag of the histogram log, without the phase: imported results.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, Latency>,
    /// Exact figures by the tag of the histogram log, without the phase.
    pub exact: BTreeMap<String, Exact>,
    /// Arrivals of the warm-up that ended after it, and those taken after it.
    pub carried: (u64, u64),
    /// Late replies, reconnects, redirects.
    pub links: (u64, u64, u64),
    /// Replies that the client had not asked for, and replies that do not follow the protocol.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strange: (u64, u64),
    /// Longest queue.
    pub backlog: u64,
    /// Nanoseconds the load threads did not sleep.
    pub busy_ns: u64,
    /// Where the kernel was asked when replies arrived: replies by its clock, by the client's, those that came with later
    /// bytes, and by how many nanoseconds one of these may be overstated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stamps: (u64, u64, u64, u64),
    /// Of the replies by the kernel's clock those by a network card's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub card: u64,
    /// Dropped arrivals by intended second.
    pub drops: Vec<(u64, u64)>,
    /// Stretches of a load thread without a success that ended in it, nanoseconds since the phase's epoch: begin, from when on an
    /// operation waited, end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<(u64, u64, u64)>,
    /// Stretches in which a load thread did not run that ended in it: begin and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<(u64, u64)>,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns the counts of replies by clock, in the order of a line.
fn in_line(stamps: Stamps) -> (u64, u64, u64, u64) {
    (stamps.kernel, stamps.client, stamps.shared, stamps.shared_most_ns)
}

fn by_name(counts: &[u64; Outcome::COUNT]) -> BTreeMap<String, u64> {
    Outcome::ALL
        .into_iter()
        .filter(|o| counts[*o as usize] > 0)
        .map(|o| (o.name().to_owned(), counts[o as usize]))
        .collect()
}

fn by_number(counts: &BTreeMap<String, u64>) -> [u64; Outcome::COUNT] {
    let mut out = [0; Outcome::COUNT];
    for (name, count) in counts {
        if let Some(outcome) = Outcome::from_name(name) {
            out[outcome as usize] += count;
        }
    }
    out
}

/// An implausible interval: counts or times that no run can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImplausibleInterval {
    /// Milliseconds that make a second or more.
    #[error("ms: {0} is more than a second")]
    Ms(u32),
    /// A figure beyond what can be counted.
    #[error("{name}: {count} cannot have been counted in one interval")]
    Count {
        /// Name.
        name: String,
        /// The figure.
        count: u64,
    },
}

impl IntervalLine {
    /// The counters of an interval.
    pub fn from_interval(phase: &str, start: Duration, metrics: &[String], totals: &Totals) -> Self {
        let mut exact = BTreeMap::new();
        for (number, slot) in totals.slots.iter().enumerate() {
            let Some(slot) = slot else { continue };
            let outcome = if number % 2 == 0 { "ok" } else { "failed" };
            let name = &metrics[number / 2];
            exact.insert(format!("{name}.{outcome}.service"), Exact::of(&slot.service));
            exact.insert(format!("{name}.{outcome}.response"), Exact::of(&slot.response));
        }
        for (number, server) in totals.server.iter().enumerate() {
            if let Some(server) = server {
                exact.insert(format!("{}.ok.server", metrics[number]), Exact::of(server));
            }
        }
        for (name, found) in totals.of_all() {
            if found.count() > 0 {
                exact.insert(format!("client.{name}"), Exact::of(found));
            }
        }
        IntervalLine {
            phase: phase.to_owned(),
            second: start.as_secs(),
            ms: start.subsec_millis(),
            length_ms: 0,
            due: None,
            known: BTreeMap::new(),
            arrivals: totals.arrivals,
            ended: by_name(&totals.ended),
            completed: (totals.crossed != 0).then(|| totals.count_completed()),
            clipped_ns: totals.clipped_ns,
            undrained: totals.undrained,
            outcomes: metrics
                .iter()
                .zip(&totals.outcomes)
                .map(|(name, counts)| (name.clone(), by_name(counts)))
                .filter(|(_, counts)| !counts.is_empty())
                .collect(),
            exact,
            carried: (totals.carried, totals.carried_arrivals),
            links: (totals.late, totals.reconnects, totals.redirects),
            strange: (totals.unexpected, totals.broken),
            backlog: totals.backlog,
            busy_ns: totals.busy_ns,
            stamps: in_line(totals.stamps),
            card: totals.stamps.card,
            drops: totals.drops.clone(),
            gaps: totals.gaps.iter().map(|gap| (gap.from_ns, gap.waiting_ns, gap.until_ns)).collect(),
            pauses: totals.pauses.iter().map(|pause| (pause.from_ns, pause.until_ns)).collect(),
        }
    }

    /// When it begins, milliseconds since the phase's epoch.
    pub fn start_ms(&self) -> u64 {
        self.second * 1_000 + u64::from(self.ms)
    }

    /// The first whole second since the phase's epoch that it does not reach.
    pub fn end_s(&self) -> u64 {
        (self.start_ms() + u64::from(self.length_ms)).div_ceil(1_000).max(self.second + 1)
    }

    /// Refuses a figure that cannot have been counted: beyond it, sums over a day's intervals would not be true.
    pub fn check(&self) -> Result<(), ImplausibleInterval> {
        if self.ms >= 1_000 {
            return Err(ImplausibleInterval::Ms(self.ms));
        }
        let counts = [
            ("second", self.second),
            ("arrivals", self.arrivals),
            ("carried", self.carried.0.max(self.carried.1)),
            ("links", self.links.0.max(self.links.1).max(self.links.2)),
            ("strange", self.strange.0.max(self.strange.1)),
            ("backlog", self.backlog),
            ("completed", self.completed.unwrap_or(0)),
            ("clipped_ns", self.clipped_ns.unsigned_abs()),
            ("undrained", self.undrained),
            ("busy_ns", self.busy_ns),
            ("stamps", self.card.max(self.stamps.0).max(self.stamps.1).max(self.stamps.2).max(self.stamps.3)),
        ];
        let named = self.outcomes.values().flatten().chain(&self.ended).map(|(name, n)| (name.as_str(), *n));
        let exact = self.exact.iter().map(|(tag, exact)| (tag.as_str(), exact.count));
        let drops = self.drops.iter().map(|(_, n)| ("drops", *n));
        let beyond =
            counts.into_iter().chain(named).chain(exact).chain(drops).find(|(_, n)| *n > INTERVAL_COUNT);
        match beyond {
            None => Ok(()),
            Some((name, count)) => Err(ImplausibleInterval::Count { name: name.to_owned(), count }),
        }
    }

    fn stamps(&self) -> Stamps {
        let (kernel, client, shared, shared_most_ns) = self.stamps;
        Stamps { kernel, card: self.card, client, shared, shared_most_ns }
    }

    /// Returns the successes within the phase's time.
    pub fn count_successes(&self) -> u64 {
        self.completed.unwrap_or_else(|| self.ended.get(Outcome::Ok.name()).copied().unwrap_or(0))
    }

    /// Adds a later interval of the same phase.
    pub fn merge(&mut self, other: &IntervalLine) {
        self.completed = Some(self.count_successes() + other.count_successes());
        self.clipped_ns = self.clipped_ns.saturating_add(other.clipped_ns);
        self.undrained += other.undrained;
        self.arrivals += other.arrivals;
        for (name, count) in &other.ended {
            *self.ended.entry(name.clone()).or_default() += count;
        }
        for (metric, counts) in &other.outcomes {
            let mine = self.outcomes.entry(metric.clone()).or_default();
            for (name, count) in counts {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
        for (tag, exact) in &other.exact {
            self.exact.entry(tag.clone()).and_modify(|mine| mine.merge(exact)).or_insert(*exact);
        }
        self.carried = (self.carried.0 + other.carried.0, self.carried.1 + other.carried.1);
        let (a, b) = (self.links, other.links);
        self.links = (a.0 + b.0, a.1 + b.1, a.2 + b.2);
        self.strange = (self.strange.0 + other.strange.0, self.strange.1 + other.strange.1);
        self.backlog = self.backlog.max(other.backlog);
        self.busy_ns += other.busy_ns;
        let mut stamps = self.stamps();
        stamps.add(&other.stamps());
        (self.stamps, self.card) = (in_line(stamps), stamps.card);
        let end_s = self.end_s().max(other.end_s());
        (self.second, self.ms, self.length_ms) = (end_s.saturating_sub(1), 0, 0);
        self.drops.extend_from_slice(&other.drops);
        let room = |length: usize| GAPS.saturating_sub(length);
        self.gaps.extend(other.gaps.iter().take(room(self.gaps.len())));
        self.pauses.extend(other.pauses.iter().take(room(self.pauses.len())));
    }

    /// The totals of a phase, from its counters and the merged histograms of its log.
    pub fn phase_totals(
        &self,
        metrics: &[String],
        scale: dyno_record::Scale,
        log: &BTreeMap<String, Buckets>,
    ) -> Totals {
        let mut totals = Totals::new(metrics.len(), scale);
        let find = |tag: &str| {
            let mut buckets = log.get(&format!("{}.{tag}", self.phase))?.clone();
            if let Some(exact) = self.exact.get(tag) {
                exact.restore_buckets(&mut buckets);
            }
            Some(buckets)
        };
        for (number, name) in metrics.iter().enumerate() {
            if let Some(counts) = self.outcomes.get(name) {
                totals.outcomes[number] = by_number(counts);
            }
            totals.server[number] = find(&format!("{name}.ok.server"));
            for (offset, outcome) in ["ok", "failed"].into_iter().enumerate() {
                let service = find(&format!("{name}.{outcome}.service"));
                let response = find(&format!("{name}.{outcome}.response"));
                if service.is_some() || response.is_some() {
                    // An imported result may know but one of them.
                    let whole = |found: Option<Buckets>| found.unwrap_or_else(|| Buckets::new(scale));
                    let slot = MergedSlot { service: whole(service), response: whole(response) };
                    totals.slots[number * 2 + offset] = Some(slot);
                }
            }
        }
        totals.ended = by_number(&self.ended);
        totals.arrivals = self.arrivals;
        totals.crossed = self.count_successes() as i64 - totals.count_ok() as i64;
        (totals.clipped_ns, totals.undrained) = (self.clipped_ns, self.undrained);
        (totals.carried, totals.carried_arrivals) = self.carried;
        (totals.late, totals.reconnects, totals.redirects) = self.links;
        (totals.unexpected, totals.broken) = self.strange;
        totals.backlog = self.backlog;
        totals.busy_ns = self.busy_ns;
        totals.stamps = self.stamps();
        totals.drops = self.drops.clone();
        let gap = |&(from_ns, waiting_ns, until_ns): &_| Gap { from_ns, waiting_ns, until_ns };
        totals.gaps = self.gaps.iter().map(gap).collect();
        totals.pauses = self.pauses.iter().map(|&(from_ns, until_ns)| Pause { from_ns, until_ns }).collect();
        for (name, whole) in totals.of_all_mut() {
            if let Some(found) = find(&format!("client.{name}")) {
                *whole = found;
            }
        }
        totals
    }
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
