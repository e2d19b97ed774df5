//! Totals as bytes, for frames between worker and controller.
//!
//! Numbers are LEB128: seven bits a byte, lowest first. A histogram is its samples' number (nothing follows none), sum,
//! minimum, maximum, the number of its buckets, and for each the distance to the one before and the count. Raw samples do
//! not travel.

use crate::gaps::{Gap, Pause};
use crate::histogram::{Buckets, Scale, SparseBuckets, bucket_of};
use crate::totals::{MergedSlot, SparseTotals, Totals};
use dyno_types::Outcome;
use dyno_types::limits::{HISTOGRAM_BITS, METRICS};

/// The bytes are no totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no totals: {0}")]
pub struct Malformed(pub &'static str);

/// More than any interval of a worker counts.
const MOST: u64 = 1 << 53;

/// The same of times, nanoseconds: an interval in which a worker stood still holds the whole pause of each of its users.
const LONGEST_NS: u64 = 1 << 60;

const TOO_MUCH: &str = "a number that no interval has";

/// Most entries of a list that is not a histogram's.
const LIST: u64 = 1 << 20;

fn put(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends the totals to `out`.
pub fn encode_totals(totals: &Totals, out: &mut Vec<u8>) {
    debug_assert_eq!(totals.slots.len(), 2 * totals.outcomes.len(), "the reader counts on it");
    debug_assert_eq!(totals.server.len(), totals.outcomes.len(), "the reader counts on it");
    let int = |out: &mut Vec<u8>, n: u64| put(out, u128::from(n));
    int(out, totals.outcomes.len() as u64);
    out.push(u8::from(totals.slot_scale() == Scale::Micros));
    for slot in &totals.slots {
        out.push(u8::from(slot.is_some()));
        if let Some(slot) = slot {
            histogram(&slot.service, out);
            histogram(&slot.response, out);
        }
    }
    for server in &totals.server {
        out.push(u8::from(server.is_some()));
        if let Some(server) = server {
            histogram(server, out);
        }
    }
    for counts in totals.outcomes.iter().chain([&totals.ended]) {
        counts.iter().for_each(|n| int(out, *n));
    }
    let numbers = [
        totals.arrivals,
        totals.carried,
        totals.carried_arrivals,
        totals.late,
        totals.unexpected,
        totals.broken,
        totals.reconnects,
        totals.redirects,
        totals.backlog,
        totals.busy_ns,
        totals.stamps.kernel,
        totals.stamps.card,
        totals.stamps.client,
        totals.stamps.shared,
        totals.stamps.shared_most_ns,
        // Numbers have no sign here: `crossed` is what this differs by from the successes.
        totals.count_completed(),
        totals.clipped_ns as u64,
        totals.undrained,
        totals.users_ns[0],
        totals.users_ns[1],
        totals.threads,
    ];
    numbers.into_iter().for_each(|n| int(out, n));
    [&totals.lag, &totals.receive_lag, &totals.turnaround, &totals.ideal]
        .into_iter()
        .for_each(|h| histogram(h, out));
    int(out, totals.drops.len() as u64);
    for (second, count) in &totals.drops {
        int(out, *second);
        int(out, *count);
    }
    int(out, totals.gaps.len() as u64);
    for gap in &totals.gaps {
        [gap.from_ns, gap.waiting_ns, gap.until_ns].into_iter().for_each(|n| int(out, n));
    }
    int(out, totals.pauses.len() as u64);
    for pause in &totals.pauses {
        [pause.from_ns, pause.until_ns].into_iter().for_each(|n| int(out, n));
    }
}

fn histogram(buckets: &Buckets, out: &mut Vec<u8>) {
    put(out, u128::from(buckets.count()));
    if buckets.count() == 0 {
        return;
    }
    put(out, buckets.sum_ns());
    put(out, u128::from(buckets.min_ns()));
    put(out, u128::from(buckets.max_ns()));
    put(out, buckets.iter().count() as u128);
    let mut last = 0;
    for (bucket, count) in buckets.iter() {
        debug_assert!(last <= bucket, "distances have no sign");
        put(out, (bucket - last) as u128);
        put(out, u128::from(count));
        last = bucket;
    }
}

/// Reads what a worker has sent by [`encode_totals`], and nothing else.
///
/// # Errors
/// The bytes are no totals, or hold a number that no interval of a worker has.
pub fn decode_totals(bytes: &[u8]) -> Result<SparseTotals, Malformed> {
    decode(ByteReader { rest: bytes, is_foreign: true })
}

/// Reads what this process has written by [`encode_totals`], sums of many intervals among it.
///
/// # Errors
/// The bytes are no totals.
pub fn decode_own_totals(bytes: &[u8]) -> Result<SparseTotals, Malformed> {
    decode(ByteReader { rest: bytes, is_foreign: false })
}

fn decode(mut from: ByteReader<'_>) -> Result<SparseTotals, Malformed> {
    let metrics = from.below(METRICS as u64 + 1, "too many metrics")? as usize;
    let scale = if from.flag()? { Scale::Micros } else { Scale::Ns64 };
    let mut totals = SparseTotals::sparse(metrics, scale);
    for slot in &mut totals.slots {
        if from.flag()? {
            *slot = Some(MergedSlot { service: from.histogram(scale)?, response: from.histogram(scale)? });
        }
    }
    for server in &mut totals.server {
        if from.flag()? {
            *server = Some(from.histogram(scale)?);
        }
    }
    for metric in 0..metrics {
        totals.outcomes[metric] = from.counts()?;
    }
    totals.ended = from.counts()?;
    for number in [
        &mut totals.arrivals,
        &mut totals.carried,
        &mut totals.carried_arrivals,
        &mut totals.late,
        &mut totals.unexpected,
        &mut totals.broken,
        &mut totals.reconnects,
        &mut totals.redirects,
        &mut totals.backlog,
    ] {
        *number = from.bounded()?;
    }
    totals.busy_ns = from.within(LONGEST_NS)?;
    let stamps = &mut totals.stamps;
    for number in [&mut stamps.kernel, &mut stamps.card, &mut stamps.client, &mut stamps.shared] {
        *number = from.bounded()?;
    }
    stamps.shared_most_ns = from.within(LONGEST_NS)?;
    let (completed, clipped_ns) = (from.bounded()?, from.number()?);
    totals.undrained = from.bounded()?;
    totals.users_ns = [from.number()?, from.number()?];
    totals.threads = from.bounded()?;
    totals.crossed = (completed as i64).wrapping_sub(totals.count_ok() as i64);
    totals.clipped_ns = clipped_ns as i64;
    totals.lag = from.histogram(Scale::Ns64)?;
    totals.receive_lag = from.histogram(Scale::Ns64)?;
    totals.turnaround = from.histogram(Scale::Ns64)?;
    totals.ideal = from.histogram(Scale::Ns64)?;
    for _ in 0..from.below(LIST, "too many seconds with drops")? {
        totals.drops.push((from.number()?, from.bounded()?));
    }
    for _ in 0..from.below(LIST, "too many stretches without a success")? {
        totals.gaps.push(Gap {
            from_ns: from.number()?,
            waiting_ns: from.number()?,
            until_ns: from.number()?,
        });
    }
    for _ in 0..from.below(LIST, "too many pauses")? {
        totals.pauses.push(Pause { from_ns: from.number()?, until_ns: from.number()? });
    }
    if from.rest.is_empty() { Ok(totals) } else { Err(Malformed("more bytes than totals")) }
}

struct ByteReader<'a> {
    rest: &'a [u8],
    /// True if another process has written it: its numbers are bounded.
    is_foreign: bool,
}

impl ByteReader<'_> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed("too few bytes"))?;
        self.rest = rest;
        Ok(*first)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag above 1")),
        }
    }

    fn wide(&mut self) -> Result<u128, Malformed> {
        let mut n = 0u128;
        for shift in (0..126).step_by(7) {
            let byte = self.byte()?;
            n |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Malformed("a number without end"))
    }

    #[inline]
    fn number(&mut self) -> Result<u64, Malformed> {
        // Nearly all numbers have one byte or two.
        match self.rest {
            [low @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                return Ok(u64::from(*low));
            }
            [low, high @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                return Ok(u64::from(*low & 0x7f) | u64::from(*high) << 7);
            }
            _ => {}
        }
        u64::try_from(self.wide()?).map_err(|_| Malformed("a number beyond 64 bits"))
    }

    fn below(&mut self, end: u64, why: &'static str) -> Result<u64, Malformed> {
        Some(self.number()?).filter(|n| *n < end).ok_or(Malformed(why))
    }

    fn within(&mut self, end: u64) -> Result<u64, Malformed> {
        if self.is_foreign { self.below(end, TOO_MUCH) } else { self.number() }
    }

    fn bounded(&mut self) -> Result<u64, Malformed> {
        self.within(MOST)
    }

    fn counts(&mut self) -> Result<[u64; Outcome::COUNT], Malformed> {
        let mut counts = [0; Outcome::COUNT];
        for count in &mut counts {
            *count = self.bounded()?;
        }
        Ok(counts)
    }

    fn histogram(&mut self, scale: Scale) -> Result<SparseBuckets, Malformed> {
        let mut buckets = SparseBuckets::new(scale);
        let count = self.bounded()?;
        if count == 0 {
            return Ok(buckets);
        }
        let (sum, min, max) = (self.wide()?, self.number()?, self.number()?);
        let end = bucket_of((1 << HISTOGRAM_BITS) - 1) as u64 + 1;
        let held = self.below(end + 1, "too many buckets")?;
        // A number that is a lie costs no more than what comes: a bucket takes two bytes at least.
        buckets.counts.reserve_exact((held as usize).min(self.rest.len() / 2));
        let mut at = 0u64;
        for number in 0..held {
            // Most buckets lie near the one before and hold few samples.
            let (distance, samples) = match self.rest {
                [distance @ 0..0x80, samples @ 0..0x80, rest @ ..] => {
                    self.rest = rest;
                    (u64::from(*distance), u64::from(*samples))
                }
                _ => (self.below(end, "a bucket beyond the last")?, self.number()?),
            };
            at = at.saturating_add(distance);
            if at >= end || samples > count - buckets.count || samples == 0 || (distance == 0 && number > 0) {
                return Err(Malformed("a bucket beyond the last, beyond the count, empty, or twice"));
            }
            buckets.counts.push((at as u32, samples));
            buckets.count += samples;
        }
        if buckets.count != count || min > max {
            return Err(Malformed("buckets that are not the count"));
        }
        if sum > u128::from(count) * u128::from(max) {
            return Err(Malformed("a sum above what so many samples make"));
        }
        (buckets.sum_ns, buckets.min_ns, buckets.max_ns) = (sum, min, max);
        Ok(buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamps;
    use crate::ThreadInterval;
    use proptest::prelude::*;

    fn some(latencies: &[u64]) -> Totals {
        let mut interval = ThreadInterval::new(3, Scale::Ns64);
        for (number, ns) in latencies.iter().enumerate() {
            let outcome = if number % 7 == 0 { Outcome::TimedOut } else { Outcome::Ok };
            interval.record_ended((number % 3) as u16, outcome, *ns, ns * 2);
            interval.record_server((number % 2) as u16, ns / 3);
            interval.lag.record(ns / 2);
            interval.ideal.record(ns * 3);
            interval.arrivals += 1;
            interval.ended[outcome as usize] += 1;
        }
        interval.drop_at(7);
        let mut totals = Totals::new(3, Scale::Ns64);
        totals.add_interval(&interval);
        totals.busy_ns = LONGEST_NS - 1;
        (totals.clipped_ns, totals.undrained) = (-(latencies.len() as i64), 3);
        totals.crossed = -((totals.count_ok() / 2) as i64);
        (totals.users_ns, totals.threads) = ([LONGEST_NS - 1, 5], 2);
        (totals.unexpected, totals.broken) = (6, 7);
        totals.gaps = vec![Gap { from_ns: 3, waiting_ns: 4, until_ns: u64::MAX }; latencies.len() % 3];
        totals.pauses = vec![Pause { from_ns: 5, until_ns: 1 << 40 }; latencies.len() % 2];
        totals.stamps = Stamps { kernel: 1, card: 4, client: 2, shared: 3, shared_most_ns: LONGEST_NS - 1 };
        totals
    }

    proptest! {
        #[test]
        fn totals_come_back(latencies in prop::collection::vec(0u64..200_000_000_000, 0..200)) {
            let totals = some(&latencies);
            let mut bytes = Vec::new();
            encode_totals(&totals, &mut bytes);
            prop_assert_eq!(decode_totals(&bytes).unwrap().to_dense(), totals);
            for cut in (0..bytes.len()).step_by(1 + bytes.len() / 40) {
                prop_assert!(decode_totals(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_totals(&bytes);
        }

        #[test]
        fn no_change_panics(latencies in prop::collection::vec(0u64..2_000_000, 1..50), at: prop::sample::Index, to: u8) {
            let mut bytes = Vec::new();
            encode_totals(&some(&latencies), &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = decode_totals(&bytes);
        }
    }

    #[test]
    fn numbers_that_no_interval_has_are_refused() {
        let refused = |change: fn(&mut Totals)| {
            let mut totals = some(&[10, 20, 30]);
            change(&mut totals);
            let mut bytes = Vec::new();
            encode_totals(&totals, &mut bytes);
            decode_totals(&bytes).unwrap_err().0
        };
        let message = TOO_MUCH;
        assert_eq!(refused(|totals| totals.arrivals = MOST), message);
        assert_eq!(refused(|totals| totals.outcomes[1][0] = u64::MAX), message);
        assert_eq!(refused(|totals| totals.busy_ns = LONGEST_NS), message);
        assert_eq!(refused(|totals| totals.drops.push((1, MOST))), message);
        assert_eq!(
            refused(|totals| totals.lag.restore_extremes(1 << 100, 1, 2)),
            "a sum above what so many samples make"
        );
    }

    #[test]
    fn sums_of_ones_own_are_read_whatever_they_are() {
        let mut totals = some(&[10, 20, 30]);
        totals.outcomes[0][0] = 3 * MOST;
        totals.arrivals = u64::MAX;
        let mut bytes = Vec::new();
        encode_totals(&totals, &mut bytes);
        assert_eq!(decode_totals(&bytes).unwrap_err().0, TOO_MUCH);
        let read = decode_own_totals(&bytes).unwrap();
        assert_eq!((read.outcomes[0][0], read.arrivals), (3 * MOST, u64::MAX));
    }
}
