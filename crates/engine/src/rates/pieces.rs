//! A rate of straight pieces: points of a file, bursts, a two-state process.

use dyno_types::rng::{Purpose, draw_at, unit_interval};
use std::sync::Arc;

const NS: f64 = 1e9;

/// Changes of state that a two-state process draws; then they repeat.
pub const STATE_CHANGES: u64 = 65_536;

/// Computes how many arrivals a straight line from one rate to another, `over` seconds later, has in its first `seconds`.
pub(super) fn count_on_line(from: f64, to: f64, over: f64, seconds: f64) -> f64 {
    from * seconds + (to - from) / over * seconds * seconds / 2.0
}

/// Computes after how many seconds such a line has come to `count`: the root of from*t + slope*t^2/2 = count that is stable for
/// slopes near 0.
pub(super) fn time_on_line(from: f64, to: f64, over: f64, count: f64) -> f64 {
    let slope = (to - from) / over;
    let divisor = from + (from * from + 2.0 * slope * count).max(0.0).sqrt();
    if divisor > 0.0 { 2.0 * count / divisor } else { 0.0 }
}

/// A stretch of time in which the rate is a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Begin, nanoseconds.
    at_ns: u64,
    /// Arrivals before it.
    before: f64,
    /// Operations per second at its begin.
    from: f64,
    /// Operations per second at its end.
    to: f64,
}

/// A stretch of a rate over time that is to become a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Length in nanoseconds; one without a length is left out.
    pub length_ns: u64,
    /// Operations per second at its begin.
    pub from: f64,
    /// Operations per second at its end.
    pub to: f64,
}

impl Stretch {
    /// The same rate for `length_ns` nanoseconds.
    pub fn level(rate: f64, length_ns: u64) -> Self {
        Stretch { length_ns, from: rate, to: rate }
    }
}

/// Straight pieces one after another, then one rate for ever, or all of them again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    pieces: Arc<[Piece]>,
    /// Length of all pieces, nanoseconds.
    length_ns: u64,
    /// Arrivals in all pieces.
    total: f64,
    /// Operations per second after the last piece; `None`: the pieces repeat.
    then: Option<f64>,
}

impl Pieces {
    /// The stretches in their order, then the rate `then` for ever, or the stretches again where it is `None`. `None` if there
    /// never is an arrival.
    pub fn from_stretches(stretches: impl IntoIterator<Item = Stretch>, then: Option<f64>) -> Option<Self> {
        let (mut pieces, mut at_ns, mut before) = (Vec::new(), 0u64, 0.0);
        for Stretch { length_ns, from, to } in stretches {
            debug_assert!(from >= 0.0 && to >= 0.0, "no rate is below 0");
            if length_ns > 0 {
                pieces.push(Piece { at_ns, before, from, to });
                before += (from + to) / 2.0 * (length_ns as f64 / NS);
                at_ns = at_ns.saturating_add(length_ns);
            }
        }
        let arrives = before > 0.0 || then.is_some_and(|rate| rate > 0.0);
        (arrives && !pieces.is_empty()).then(|| Pieces {
            pieces: pieces.into(),
            length_ns: at_ns,
            total: before,
            then,
        })
    }

    /// Bursts of `peak` operations per second, one at the beginning of every period, so that the mean is `mean`; nothing between
    /// them. `None` where the peak is below the mean.
    pub fn bursts(mean: f64, peak: f64, period_ns: u64) -> Option<Self> {
        if peak < mean {
            return None;
        }
        let on_ns = (period_ns as f64 * mean / peak).round().clamp(1.0, period_ns as f64) as u64;
        Pieces::from_stretches([Stretch::level(peak, on_ns), Stretch::level(0.0, period_ns - on_ns)], None)
    }

    /// A two-state Markov process: each state has a rate, and lasts for an exponential time with the mean that stands beside it,
    /// nanoseconds. It begins in either state as often as it is in it. All is a function of the seed.
    pub fn two_state(states: [(f64, u64); 2], seed: u64) -> Option<Self> {
        let draw = |index: u64| unit_interval(draw_at(seed, index, Purpose::Modulation));
        let [first, second] = states.map(|(_, mean_ns)| mean_ns as f64);
        let begins_in_second = draw(0) >= first / (first + second);
        let stretch = |number: u64| {
            let (rate, mean_ns) = states[((number + u64::from(begins_in_second)) % 2) as usize];
            let length = -(1.0 - draw(number + 1)).ln() * mean_ns as f64;
            Stretch::level(rate, (length.round() as u64).max(1))
        };
        Pieces::from_stretches((0..STATE_CHANGES).map(stretch), None)
    }

    /// Arrivals that there ever are; `None` where they do not end.
    pub fn total(&self) -> Option<f64> {
        (self.then == Some(0.0)).then_some(self.total)
    }

    /// The piece at `at`, with its length in seconds.
    fn piece(&self, at: usize) -> (&Piece, f64) {
        let end_ns = self.pieces.get(at + 1).map_or(self.length_ns, |next| next.at_ns);
        (&self.pieces[at], (end_ns - self.pieces[at].at_ns) as f64 / NS)
    }

    /// As `Profile::time_of`. Where nothing arrives for a while, the time is the end of it.
    pub(super) fn time_of(&self, count: f64) -> f64 {
        let (mut rounds, mut left) = (0.0, count);
        if count >= self.total {
            match self.then {
                Some(rate) if rate > 0.0 => {
                    return self.length_ns as f64 + (count - self.total) / rate * NS;
                }
                Some(_) => return f64::INFINITY,
                None => {
                    rounds = (count / self.total).floor();
                    left = (count - rounds * self.total).clamp(0.0, self.total);
                }
            }
        }
        let at = self.pieces.partition_point(|piece| piece.before <= left).saturating_sub(1);
        let (piece, over) = self.piece(at);
        let within = time_on_line(piece.from, piece.to, over, left - piece.before).min(over);
        rounds * self.length_ns as f64 + piece.at_ns as f64 + within * NS
    }

    /// As `Profile::count_at`.
    pub(super) fn count_at(&self, ns: u64) -> f64 {
        let (before, ns) = match self.then {
            Some(rate) if ns >= self.length_ns => {
                return self.total + rate * (ns - self.length_ns) as f64 / NS;
            }
            Some(_) => (0.0, ns),
            None => ((ns / self.length_ns) as f64 * self.total, ns % self.length_ns),
        };
        let at = self.pieces.partition_point(|piece| piece.at_ns <= ns) - 1;
        let (piece, over) = self.piece(at);
        before + piece.before + count_on_line(piece.from, piece.to, over, (ns - piece.at_ns) as f64 / NS)
    }

    /// As `Profile::rate_at`.
    pub(super) fn rate_at(&self, ns: u64) -> f64 {
        let ns = match self.then {
            Some(rate) if ns >= self.length_ns => return rate,
            Some(_) => ns,
            None => ns % self.length_ns,
        };
        let at = self.pieces.partition_point(|piece| piece.at_ns <= ns) - 1;
        let (piece, over) = self.piece(at);
        piece.from + (piece.to - piece.from) * ((ns - piece.at_ns) as f64 / NS / over)
    }

    /// Returns whether the rate never changes.
    pub fn is_level(&self) -> bool {
        let first = self.pieces[0].from;
        self.pieces.iter().all(|piece| piece.from == first && piece.to == first)
            && self.then.is_none_or(|rate| rate == first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn bursts_have_their_mean_and_nothing_between_them() {
        let bursts = Pieces::bursts(300.0, 1_000.0, 2 * SECOND_NS).unwrap();
        // 0.6 s at 1,000/s in every 2 s.
        for round in [0, 1, 1_000_000] {
            let at = |tenths: u64| (20 * round + tenths) * SECOND_NS / 10;
            assert_eq!([0, 5, 6, 19].map(|tenth| bursts.rate_at(at(tenth))), [1_000.0, 1_000.0, 0.0, 0.0]);
            let counts = [0, 3, 6, 10, 20].map(|tenth| bursts.count_at(at(tenth)) - 600.0 * round as f64);
            assert_eq!(counts, [0.0, 300.0, 600.0, 600.0, 600.0]);
        }
        // The one that would be due where nothing is due comes with the next burst.
        assert_eq!(bursts.time_of(599.0), 599e6);
        assert_eq!(bursts.time_of(600.0), 2e9);
        assert_eq!(Pieces::bursts(300.0, 299.0, SECOND_NS), None);
        assert!(Pieces::bursts(300.0, 300.0, SECOND_NS).unwrap().is_level());
    }

    #[test]
    fn pieces_that_end_at_nothing_have_a_total_and_no_time_beyond_it() {
        let pieces =
            Pieces::from_stretches([Stretch { length_ns: SECOND_NS, from: 0.0, to: 100.0 }], Some(0.0));
        let pieces = pieces.unwrap();
        assert_eq!(pieces.total(), Some(50.0));
        assert_eq!((pieces.time_of(50.0), pieces.count_at(9 * SECOND_NS)), (f64::INFINITY, 50.0));
        // t^2 * 50 = 12.5
        assert_eq!((pieces.time_of(12.5), pieces.count_at(SECOND_NS / 2)), (0.5e9, 12.5));
        assert_eq!(Pieces::from_stretches([Stretch::level(0.0, 5)], None), None);
        assert_eq!(Pieces::from_stretches([Stretch::level(0.0, 5)], Some(0.0)), None);
    }

    /// Shares of the time, mean times and seeds.
    #[test]
    fn a_two_state_process_is_in_its_states_as_long_as_asked() {
        let process = Pieces::two_state([(10.0, 3 * SECOND_NS), (90.0, SECOND_NS)], 1).unwrap();
        let mean = process.total / (process.length_ns as f64 / NS);
        assert!((mean / 30.0 - 1.0).abs() < 0.02, "{mean}/s");
        assert!((process.length_ns as f64 / (STATE_CHANGES as f64 * 2e9) - 1.0).abs() < 0.02);
        let begins: usize = (0..10_000)
            .filter(|seed| {
                Pieces::two_state([(10.0, 3_000), (90.0, 1_000)], *seed).unwrap().rate_at(0) == 10.0
            })
            .count();
        assert!((7_300..7_700).contains(&begins), "{begins} of 10,000 begin in the first state");
    }
}
