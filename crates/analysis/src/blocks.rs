//! A phase in blocks of equal length: what intervals of its figures are made of.

use crate::ArrivalLatency;
use dyno_record::{Buckets, Scale, Totals, bucket_high, codec};
use dyno_rundir::adds_up;
use std::collections::BTreeMap;

/// Blocks that are kept: of a longer phase each is of more seconds.
const KEPT: usize = 400;

/// Latencies and outcomes of each block, in the bytes of workers' frames: a block of 10,000 operations takes about 10 KB.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Metrics in the engine's order.
    names: Vec<String>,
    /// Seconds of a block.
    step_s: u64,
    /// The last block, which may go on.
    open: Option<(u64, Totals)>,
    /// Those before it, by their number after the epoch.
    closed: BTreeMap<u64, Vec<u8>>,
}

/// Latencies and outcomes alone.
fn essentials(totals: &Totals) -> Totals {
    let mut own = totals.empty_like();
    own.slots.clone_from(&totals.slots);
    own.outcomes.clone_from(&totals.outcomes);
    own.ended = totals.ended;
    own
}

/// One side of the latencies of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatencyKind {
    /// Completion less sending.
    Service,
    /// Completion less intended start.
    Response,
}

impl Blocks {
    /// None yet, for metrics in the engine's order.
    pub fn new(names: Vec<String>) -> Self {
        Blocks { names, step_s: 1, open: None, closed: BTreeMap::new() }
    }

    /// Returns the number of a metric, whatever its case.
    pub(crate) fn number_of(&self, metric: &str) -> Option<usize> {
        self.names.iter().position(|name| name.eq_ignore_ascii_case(metric))
    }

    /// Adds what ended in a second after the epoch, or in a part of it.
    pub fn add_second(&mut self, second: u64, totals: &Totals) {
        match &mut self.open {
            Some((open, own)) if *open == second / self.step_s => own.merge(&essentials(totals)),
            _ => {
                self.close();
                self.open = Some((second / self.step_s, essentials(totals)));
            }
        }
    }

    /// Puts the open block to the others, and two each together where there are too many.
    fn close(&mut self) {
        let Some((number, mut totals)) = self.open.take() else { return };
        if let Some(bytes) = self.closed.get(&number) {
            totals.merge(&decoded(bytes));
        }
        self.closed.insert(number, encoded(&totals));
        if self.closed.len() > KEPT {
            self.step_s *= 2;
            for (number, bytes) in std::mem::take(&mut self.closed) {
                let whole = match self.closed.remove(&(number / 2)) {
                    None => bytes,
                    Some(half) => {
                        let mut whole = decoded(&half);
                        whole.merge(&decoded(&bytes));
                        encoded(&whole)
                    }
                };
                self.closed.insert(number / 2, whole);
            }
        }
    }

    /// The blocks with their numbers, in order.
    fn iter(&self) -> impl Iterator<Item = (u64, Totals)> + '_ {
        let closed = self.closed.iter().map(|(number, bytes)| (*number, decoded(bytes)));
        closed.chain(self.open.clone())
    }

    /// Seconds of a block, and the response times of successful operations in each, by its number after the epoch.
    pub fn responses_by_block(&self) -> (u64, BTreeMap<u64, Buckets>) {
        let own = |totals: &Totals| {
            let mut all = Buckets::new(totals.slot_scale());
            let names = &self.names;
            let adding = names.iter().enumerate().filter(|(_, name)| adds_up(names, name));
            adding.filter_map(|(n, _)| totals.ok_slot(n)).for_each(|slot| all.merge(&slot.response));
            all
        };
        let mut all: BTreeMap<u64, Buckets> = BTreeMap::new();
        for (number, totals) in self.iter() {
            match all.get_mut(&number) {
                Some(block) => block.merge(&own(&totals)),
                None => drop(all.insert(number, own(&totals))),
            }
        }
        (self.step_s, all)
    }

    /// Operations that ended in each block, and those of them that failed.
    pub(crate) fn failures_by_block(&self) -> Vec<(u64, u64)> {
        let one = |(_, totals): (u64, Totals)| (totals.ended_total(), totals.count_failed());
        let add = |a: &mut (u64, u64), b: (u64, u64)| *a = (a.0 + b.0, a.1 + b.1);
        folded(self.iter().map(one).collect(), |block| block.0, add)
    }

    /// Latencies of a metric as callers have them, and those of its successes alone where some failed: a percentile is the
    /// greater of both ([`ArrivalLatency`]).
    pub(crate) fn latency_populations(&self, metric: usize, kind: LatencyKind) -> Vec<Population> {
        let arrivals = |(_, totals): (u64, Totals)| match kind {
            LatencyKind::Service => ArrivalLatency::from_service_times(&totals, metric),
            LatencyKind::Response => ArrivalLatency::from_response_times(&totals, metric),
        };
        let (mut all, mut ok, mut all_ok) = (Vec::new(), Vec::new(), true);
        for block in self.iter().map(arrivals) {
            all_ok &= block.all_ok();
            all.push(LatencyBlock::of(&block.timed_buckets(), block.unsent));
            ok.push(LatencyBlock::of(&block.ok, 0));
        }
        let both = if all_ok { vec![all] } else { vec![all, ok] };
        both.into_iter().filter_map(Population::of).collect()
    }
}

fn encoded(totals: &Totals) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode_totals(totals, &mut bytes);
    bytes
}

fn decoded(bytes: &[u8]) -> Totals {
    codec::decode_own_totals(bytes).expect("the bytes of a block were encoded here").to_dense()
}

/// Blocks of which those at both ends hold half as much as the median one or more: a phase begins and ends within a second, and
/// its drain has few operations. What is less belongs to its neighbour.
fn folded<T>(mut blocks: Vec<T>, size: impl Fn(&T) -> u64, add: impl Fn(&mut T, T)) -> Vec<T> {
    let mut sizes: Vec<u64> = blocks.iter().map(&size).collect();
    sizes.sort_unstable();
    let half = sizes.get(sizes.len() / 2).map_or(0, |median| median.div_ceil(2));
    while blocks.len() > 1 && blocks.last().is_some_and(|last| size(last) < half) {
        let last = blocks.pop().expect("there are two");
        add(blocks.last_mut().expect("there is one"), last);
    }
    while blocks.len() > 1 && size(&blocks[0]) < half {
        let first = blocks.remove(0);
        add(&mut blocks[0], first);
    }
    blocks
}

/// Latencies of a block: counts of the buckets that hold any, in their order, and what is beyond all.
#[derive(Clone, Debug)]
struct LatencyBlock {
    counts: Vec<(u32, u64)>,
    scale: Scale,
    count: u64,
    unsent: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl LatencyBlock {
    fn of(buckets: &Buckets, unsent: u64) -> Self {
        LatencyBlock {
            counts: buckets.iter().map(|(bucket, count)| (bucket as u32, count)).collect(),
            scale: buckets.bucket_scale(),
            count: buckets.count() + unsent,
            unsent,
            sum_ns: buckets.sum_ns(),
            max_ns: buckets.max_ns(),
        }
    }

    fn add(&mut self, other: LatencyBlock) {
        if self.counts.is_empty() {
            self.scale = other.scale;
        }
        let mut all: BTreeMap<u32, u64> = self.counts.drain(..).collect();
        other.counts.into_iter().for_each(|(bucket, count)| *all.entry(bucket).or_default() += count);
        self.counts = all.into_iter().collect();
        (self.count, self.unsent) = (self.count + other.count, self.unsent + other.unsent);
        (self.sum_ns, self.max_ns) = (self.sum_ns + other.sum_ns, self.max_ns.max(other.max_ns));
    }
}

/// Latencies of the same operations in all blocks.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    blocks: Vec<LatencyBlock>,
    whole: LatencyBlock,
}

/// Operations of a block, and what was counted of them.
pub(crate) type BlockCounts = (f64, f64);

impl Population {
    fn of(blocks: Vec<LatencyBlock>) -> Option<Self> {
        let blocks = folded(blocks, |block| block.count, LatencyBlock::add);
        let mut whole = LatencyBlock::of(&Buckets::new(Scale::Ns64), 0);
        blocks.iter().for_each(|block| whole.add(block.clone()));
        (whole.count > 0).then_some(Population { blocks, whole })
    }

    /// Number of operations.
    fn count(&self) -> f64 {
        self.whole.count as f64
    }

    /// The end of a bucket in microseconds: what a percentile within it is said to be.
    fn end_us(&self, bucket: u32) -> f64 {
        let unit = self.whole.scale.unit_ns();
        (bucket_high(bucket as usize) * unit + unit - 1).min(self.whole.max_ns) as f64 / 1e3
    }

    /// Operations of each block, and those that took so long that a percentile among them misses a limit.
    pub(crate) fn count_beyond_limit(&self, misses: impl Fn(f64) -> bool) -> Vec<BlockCounts> {
        let counted = |block: &LatencyBlock| {
            let slow = block.counts.iter().filter(|(bucket, _)| misses(self.end_us(*bucket)));
            (block.count as f64, (slow.map(|(_, count)| count).sum::<u64>() + block.unsent) as f64)
        };
        self.blocks.iter().map(counted).collect()
    }

    /// The value in microseconds that a share of the operations does not exceed; `None` among what was never sent, or beyond
    /// all of them.
    pub(crate) fn quantile_us(&self, share: f64) -> Option<f64> {
        let wanted = (share * self.count() - 1e-9).ceil().max(1.0);
        self.bucket_at(wanted).map(|(bucket, _, _)| self.end_us(bucket))
    }

    /// The bucket of so high a rank, operations before it, and in it.
    fn bucket_at(&self, wanted: f64) -> Option<(u32, f64, f64)> {
        let mut before = 0.0;
        self.whole.counts.iter().find_map(|(bucket, count)| {
            let count = *count as f64;
            before += count;
            (before >= wanted).then_some((*bucket, before - count, count))
        })
    }

    /// Operations of each block, and those beyond a quantile: of those in its own bucket as many, in proportion, as leave the
    /// share exact.
    pub(crate) fn beyond_quantile(&self, share: f64) -> Vec<BlockCounts> {
        let rank = share * self.count();
        let at = self.bucket_at(rank.ceil().max(1.0));
        let counted = |block: &LatencyBlock| {
            let Some((bucket, before, count)) = at else {
                // Among what was never sent: a part of it.
                let part = (self.count() - rank) / self.whole.unsent.max(1) as f64;
                return (block.count as f64, block.unsent as f64 * part);
            };
            let part = ((before + count - rank) / count).clamp(0.0, 1.0);
            let from = block.counts.partition_point(|(one, _)| *one < bucket);
            let beyond = block.counts[from..].iter().map(|(one, count)| match one == &bucket {
                true => *count as f64 * part,
                false => *count as f64,
            });
            (block.count as f64, beyond.sum::<f64>() + block.unsent as f64)
        };
        self.blocks.iter().map(counted).collect()
    }

    /// Operations of each block that have a time, and their sum in microseconds.
    pub(crate) fn time_sums_us(&self) -> Vec<BlockCounts> {
        let timed = |block: &LatencyBlock| ((block.count - block.unsent) as f64, block.sum_ns as f64 / 1e3);
        self.blocks.iter().map(timed).collect()
    }

    /// Standard deviation of the times, microseconds, by the buckets.
    pub(crate) fn deviation_us(&self) -> f64 {
        let timed = (self.whole.count - self.whole.unsent).max(1) as f64;
        let mean = self.whole.sum_ns as f64 / 1e3 / timed;
        let square = |(bucket, count): &(u32, u64)| *count as f64 * (self.end_us(*bucket) - mean).powi(2);
        (self.whole.counts.iter().map(square).sum::<f64>() / timed).sqrt()
    }
}
