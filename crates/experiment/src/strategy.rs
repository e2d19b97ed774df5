//! Which point of a cell comes next: a pure function of the runs that have ended, so that a resumed search goes the same
//! way.

use crate::journal::RunRecord;
use crate::point::SearchPoint;
use crate::{rate_search, tune};
use dyno_config::experiment::{Ladder, RepeatUntil, Strategy};

const USERS: &str = "phases.measure.users";

/// Most runs of one search: a bisection to any precision that measurements have is far below it.
const RUNS: usize = 64;

/// The next point of one cell (and, where the strategy has no repetitions of its own, of one repetition of it); `None`
/// when the search has ended. `history` holds that cell's runs in their order.
pub fn next(strategy: &Strategy, seed: u64, repetition: u32, history: &[&RunRecord]) -> Option<SearchPoint> {
    if history.len() >= RUNS && !matches!(strategy, Strategy::Tune(_)) {
        return None;
    }
    match strategy {
        Strategy::Ladder(ladder) => climb(ladder, repetition, history),
        Strategy::HighestRate(search) => rate_search::next(search, repetition, history),
        Strategy::RepeatUntil(goal) => repeat(goal, history),
        Strategy::Tune(tune) => tune::next(tune, seed, history),
    }
}

fn users(n: f64, repetition: u32) -> SearchPoint {
    SearchPoint::one(USERS, n.round(), repetition)
}

/// Runs that say something of the target: an invalid one of a client that was late decides nothing.
fn sound<'a>(history: &'a [&RunRecord]) -> impl Iterator<Item = &'a RunRecord> {
    history.iter().copied().filter(|run| !run.spoiled)
}

fn climb(ladder: &Ladder, repetition: u32, history: &[&RunRecord]) -> Option<SearchPoint> {
    let Some(last) = history.last() else { return Some(users(ladder.from.max(1) as f64, repetition)) };
    let throughputs: Vec<f64> = sound(history).map(|run| run.throughput.unwrap_or(0.0)).collect();
    // Two steps in a row that add nothing to the best before them.
    if let [before @ .., one, two] = throughputs.as_slice()
        && let Some(best) = before.iter().copied().reduce(f64::max)
        && one.max(*two) < best * (1.0 + ladder.gain)
    {
        return None;
    }
    let grown = (last.value * ladder.times.max(1.001)).round().max(last.value + 1.0);
    let to = ladder.to as f64;
    match last.value < to {
        true => Some(users(grown.min(to), repetition)),
        false => None,
    }
}

fn repeat(goal: &RepeatUntil, history: &[&RunRecord]) -> Option<SearchPoint> {
    let made = history.len() as u32;
    let next = SearchPoint::plain(made + 1);
    if made < goal.at_least.max(2) {
        return Some(next);
    }
    if made >= goal.at_most {
        return None;
    }
    let all: Vec<f64> = sound(history).filter_map(|run| run.throughput).collect();
    let narrow = dyno_analysis::interval::mean_interval(&all)
        .is_some_and(|i| i.half_width <= goal.half_width * i.mean);
    (!narrow).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_search::tests::record;

    /// Runs a search against `system`, which says how a run at a value ends.
    fn search(strategy: &Strategy, system: impl Fn(f64) -> RunRecord) -> Vec<f64> {
        let mut runs: Vec<RunRecord> = Vec::new();
        while let Some(point) = next(strategy, 1, 1, &runs.iter().collect::<Vec<_>>()) {
            runs.push(system(point.value));
        }
        runs.iter().map(|run| run.value).collect()
    }

    #[test]
    fn a_ladder_ends_where_throughput_does_not_grow() {
        let ladder = Strategy::Ladder(Ladder::default());
        let saturating = |users: f64| record(users, 10_000.0 * users.min(8.0));
        assert_eq!(search(&ladder, saturating), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        let growing = |users: f64| record(users, users);
        assert_eq!(search(&ladder, growing).last(), Some(&1_024.0));
    }

    #[test]
    fn a_client_that_was_late_ends_no_ladder_and_no_repetition() {
        let late = |run: RunRecord, is_late: bool| RunRecord { spoiled: is_late, ..run };
        // 2 and 4 users are slow because the client is: throughput still grows up to 8.
        let ladder = Strategy::Ladder(Ladder::default());
        let system = |users: f64| {
            let is_late = users == 2.0 || users == 4.0;
            late(record(users, if is_late { 10.0 } else { 10_000.0 * users.min(8.0) }), is_late)
        };
        assert_eq!(search(&ladder, system), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        // The second of three runs is another figure altogether: the two that are alike end it.
        let goal = Strategy::RepeatUntil(RepeatUntil::default());
        let made = std::cell::Cell::new(0u32);
        let system = |_| {
            made.set(made.get() + 1);
            late(record(0.0, if made.get() == 2 { 1.0 } else { 1_000.0 }), made.get() == 2)
        };
        assert_eq!(search(&goal, system).len(), 3);
    }

    #[test]
    fn repetitions_end_when_the_interval_is_narrow() {
        let goal = Strategy::RepeatUntil(RepeatUntil::default());
        assert_eq!(search(&goal, |_| record(0.0, 1_000.0)).len(), 3);
        let noisy = std::cell::Cell::new(0u32);
        let swinging = |_| {
            noisy.set(noisy.get() + 1);
            record(0.0, if noisy.get().is_multiple_of(2) { 500.0 } else { 1_500.0 })
        };
        assert_eq!(search(&goal, swinging).len(), 30);
    }
}
