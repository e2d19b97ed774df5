//! Silences: stretches in which no user's operation succeeded although a user waited for one; and pauses of the client.

use dyno_record::{Gap, SHORTEST_NS, Totals};
use dyno_rundir::schema::{Pause, Silence};

/// A silence lasts so many usual service times at least: slow operations are no silence.
const SERVICE_TIMES: u64 = 20;

/// Silences of the phase that lasted from one time after the epoch to another, nanoseconds: in them all load threads were without
/// a success, and an operation was under way, or failed without an answer, in one of them.
pub fn find_silences(totals: &Totals, from_ns: u64, until_ns: u64) -> Vec<Silence> {
    let mut service = totals.slots.iter().step_by(2).flatten().map(|slot| &slot.service);
    let usual_ns = service.next().map_or(0, |first| {
        let mut all = first.clone();
        service.for_each(|other| all.merge(other));
        all.percentile_ns(50.0)
    });
    let shortest_ns = SHORTEST_NS.max(SERVICE_TIMES.saturating_mul(usual_ns));
    let s = |ns: u64| ns as f64 / 1e9;
    common(&totals.gaps, totals.threads, from_ns, until_ns)
        .into_iter()
        .filter(|(from, until)| until - from >= shortest_ns)
        .map(|(from, until)| Silence { from_s: s(from - from_ns), length_s: s(until - from) })
        .collect()
}

/// Shortest pause that is kept: a tenth of a second's operations.
const SHORTEST_PAUSE_NS: u64 = 100_000_000;

/// Pauses of the client in the phase, given as [`find_silences`] gets it: in them no load thread ran.
pub fn find_pauses(totals: &Totals, from_ns: u64, until_ns: u64) -> Vec<Pause> {
    let all: Vec<Gap> = totals
        .pauses
        .iter()
        .map(|one| Gap { from_ns: one.from_ns, waiting_ns: 0, until_ns: one.until_ns })
        .collect();
    let s = |ns: u64| ns as f64 / 1e9;
    common(&all, totals.threads, from_ns, until_ns)
        .into_iter()
        .filter(|(from, until)| until - from >= SHORTEST_PAUSE_NS)
        .map(|(from, until)| Pause { from_s: s(from - from_ns), length_s: s(until - from) })
        .collect()
}

/// The times that gaps of all threads have in common, from when an operation was under way in one of them.
fn common(gaps: &[Gap], threads: u64, from_ns: u64, until_ns: u64) -> Vec<(u64, u64)> {
    let clipped = |gap: &&Gap| gap.until_ns > from_ns && gap.from_ns < until_ns;
    let mut begins: Vec<&Gap> = gaps.iter().filter(clipped).collect();
    let mut ends = begins.clone();
    begins.sort_unstable_by_key(|gap| gap.from_ns);
    ends.sort_unstable_by_key(|gap| gap.until_ns);
    let mut begins = begins.into_iter().peekable();
    // Those of a thread follow each other, so that as many as there are threads are of all of them.
    let (mut open, mut found): (Vec<&Gap>, Vec<(u64, u64)>) = (Vec::new(), Vec::new());
    for end in ends {
        while let Some(gap) = begins.next_if(|gap| gap.from_ns < end.until_ns) {
            open.push(gap);
        }
        if open.len() as u64 >= threads.max(1) {
            let begin = open.iter().map(|gap| gap.from_ns).max().unwrap_or(from_ns);
            let waiting = open.iter().map(|gap| gap.waiting_ns).min().unwrap_or(u64::MAX);
            let (from, until) = (begin.max(waiting).max(from_ns), end.until_ns.min(until_ns));
            if from < until {
                found.push((from, until));
            }
        }
        open.retain(|gap| !std::ptr::eq(*gap, end));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    const MS: u64 = 1_000_000;

    fn gap(from: u64, waiting: u64, until: u64) -> Gap {
        let ns = |ms: u64| if ms == u64::MAX { ms } else { ms * MS };
        Gap { from_ns: ns(from), waiting_ns: ns(waiting), until_ns: ns(until) }
    }

    /// Begin and length in milliseconds, of a phase of 10 s after a warm-up of 1 s.
    fn found(threads: u64, gaps: &[Gap]) -> Vec<(f64, f64)> {
        let mut totals = Totals::new(1, Scale::Ns64);
        (totals.threads, totals.gaps) = (threads, gaps.to_vec());
        let all = find_silences(&totals, 1_000 * MS, 11_000 * MS);
        all.iter().map(|one| ((one.from_s * 1e3).round(), (one.length_s * 1e3).round())).collect()
    }

    #[test]
    fn all_threads_are_silent_in_what_their_gaps_have_in_common() {
        assert_eq!(found(1, &[gap(2_000, 2_000, 2_500)]), [(1_000.0, 500.0)]);
        let two = [gap(2_000, 2_000, 4_000), gap(3_000, 3_000, 5_000)];
        assert_eq!(found(2, &two), [(2_000.0, 1_000.0)]);
        assert_eq!(found(2, &two[..1]), []);
        // One of two threads has three gaps within the other's one.
        let several = [
            gap(2_000, 2_000, 9_000),
            gap(2_100, 2_100, 3_000),
            gap(3_000, 3_000, 3_200),
            gap(4_000, 4_000, 5_000),
        ];
        assert_eq!(found(2, &several), [(1_100.0, 900.0), (3_000.0, 1_000.0)]);
        // Shorter than 300 ms in common.
        assert_eq!(found(2, &[gap(2_000, 2_000, 3_000), gap(2_701, 2_701, 3_500)]), []);
    }

    #[test]
    fn a_client_that_asks_nothing_does_not_wait() {
        assert_eq!(found(1, &[gap(2_000, u64::MAX, 4_000)]), []);
        assert_eq!(found(1, &[gap(2_000, 3_500, 4_000)]), [(2_500.0, 500.0)]);
        // A thread without users, beside one whose operations wait.
        assert_eq!(found(2, &[gap(0, u64::MAX, u64::MAX), gap(2_000, 2_001, 4_000)]), [(1_001.0, 1_999.0)]);
    }

    #[test]
    fn the_phase_bounds_its_silences() {
        let gaps = [gap(0, 0, 1_500), gap(10_000, 10_100, u64::MAX)];
        assert_eq!(found(1, &gaps), [(0.0, 500.0), (9_100.0, 900.0)]);
        assert_eq!(found(1, &[gap(0, 0, 1_000), gap(11_000, 11_000, 12_000)]), []);
    }

    #[test]
    fn a_client_pauses_while_none_of_its_threads_runs() {
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.threads = 2;
        totals.pauses = [(2_000, 2_100), (2_010, 4_000), (3_000, 5_000), (10_950, 12_000), (10_500, 12_000)]
            .map(|(from, until)| dyno_record::Pause { from_ns: from * MS, until_ns: until * MS })
            .to_vec();
        let all = find_pauses(&totals, 1_000 * MS, 11_000 * MS);
        // 90 ms in common are too short, and 50 ms before the end.
        assert_eq!(all, [Pause { from_s: 2.0, length_s: 1.0 }]);
    }

    #[test]
    fn slow_operations_are_no_silence() {
        let long = |length_ms: u64| {
            let mut interval = dyno_record::ThreadInterval::new(1, Scale::Ns64);
            (0..9).for_each(|_| interval.record_ended(0, dyno_types::Outcome::Ok, 100 * MS, 100 * MS));
            let mut totals = Totals::new(1, Scale::Ns64);
            totals.add_interval(&interval);
            (totals.threads, totals.gaps) = (1, vec![gap(2_000, 2_000, 2_000 + length_ms)]);
            find_silences(&totals, 1_000 * MS, 11_000 * MS).len()
        };
        assert_eq!([long(1_900), long(2_100)], [0, 1]);
    }
}
