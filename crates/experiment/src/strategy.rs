//! Which point of a cell comes next: a pure function of the runs that have ended, so that a resumed search goes the same
//! way.

use crate::journal::{RunRecord, RunStatus};
use crate::point::Point;
use crate::tune;
use dyno_config::experiment::{HighestRate, Ladder, RepeatUntil, Strategy};

const USERS: &str = "phases.measure.users";
const RATE: &str = "phases.measure.rate";

/// Achieved below this share of the offered rate is not sustained.
const SUSTAINED: f64 = 0.99;
/// Most runs of one search: a bisection to any precision that measurements have is far below it.
const RUNS: usize = 64;

/// The next point of one cell (and, where the strategy has no repetitions of its own, of one repetition of it); `None`
/// when the search has ended. `history` holds that cell's runs in their order.
pub fn next(strategy: &Strategy, seed: u64, repetition: u32, history: &[&RunRecord]) -> Option<Point> {
    if history.len() >= RUNS && !matches!(strategy, Strategy::Tune(_)) {
        return None;
    }
    match strategy {
        Strategy::Ladder(ladder) => climb(ladder, repetition, history),
        Strategy::HighestRate(search) => bisect(search, repetition, history),
        Strategy::RepeatUntil(goal) => repeat(goal, history),
        Strategy::Tune(tune) => tune::next(tune, seed, history),
    }
}

fn users(n: f64, repetition: u32) -> Point {
    Point::one(USERS, n.round(), repetition)
}

fn climb(ladder: &Ladder, repetition: u32, history: &[&RunRecord]) -> Option<Point> {
    let Some(last) = history.last() else { return Some(users(ladder.from.max(1) as f64, repetition)) };
    let throughputs: Vec<f64> = history.iter().map(|run| run.throughput.unwrap_or(0.0)).collect();
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

/// Returns whether a run kept its objectives at its rate, as far as its figures can be used.
pub fn kept(run: &RunRecord) -> bool {
    holds(run) && run.trust != "invalid"
}

/// Returns whether nothing speaks against a rate but that its run is invalid: a client that was late is no fault of the target.
pub fn undecided(run: &RunRecord) -> bool {
    holds(run) && run.trust == "invalid"
}

fn holds(run: &RunRecord) -> bool {
    let sustained = match (run.throughput, run.offered) {
        (Some(achieved), Some(offered)) => achieved >= SUSTAINED * offered,
        _ => false,
    };
    run.status == RunStatus::Complete && run.passed && sustained && !run.overloaded
}

fn rate(value: f64, repetition: u32) -> Point {
    // Four digits: rates are for people too.
    let unit = 10f64.powf((value.log10().floor() - 3.0).max(0.0));
    Point::one(RATE, (value / unit).round() * unit, repetition)
}

fn bisect(search: &HighestRate, repetition: u32, history: &[&RunRecord]) -> Option<Point> {
    // An undecided rate ends nothing: rates above it are tried, and one that is kept there decides it.
    let good = history.iter().filter(|run| kept(run) || undecided(run)).map(|run| run.value).reduce(f64::max);
    let bad =
        history.iter().filter(|run| !kept(run) && !undecided(run)).map(|run| run.value).reduce(f64::min);
    match (good, bad) {
        (None, None) => Some(rate(search.from.0, repetition)),
        // Not even the lowest rate: there is nothing to find.
        (None, Some(_)) => None,
        (Some(good), None) if good >= search.to.0 => None,
        (Some(good), None) => Some(rate((good * 2.0).min(search.to.0), repetition)),
        // A rate that failed below one that was kept: noise; what was kept stands.
        (Some(good), Some(bad)) if bad <= good * (1.0 + search.precision) => None,
        (Some(good), Some(bad)) => {
            let next = rate((good * bad).sqrt(), repetition);
            (next.value > good && next.value < bad).then_some(next)
        }
    }
}

fn repeat(goal: &RepeatUntil, history: &[&RunRecord]) -> Option<Point> {
    let made = history.len() as u32;
    let next = Point::plain(made + 1);
    if made < goal.at_least.max(2) {
        return Some(next);
    }
    if made >= goal.at_most {
        return None;
    }
    let all: Vec<f64> = history.iter().filter_map(|run| run.throughput).collect();
    let narrow = dyno_analysis::interval::mean_interval(&all)
        .is_some_and(|i| i.half_width <= goal.half_width * i.mean);
    (!narrow).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::values::PerSecond;

    fn record(value: f64, throughput: f64) -> RunRecord {
        RunRecord {
            cell: 1,
            repetition: 1,
            point: String::new(),
            value,
            dir: String::new(),
            status: RunStatus::Complete,
            unreachable: false,
            not_started: false,
            words: String::new(),
            trust: "valid".into(),
            throughput: Some(throughput),
            offered: Some(value),
            passed: true,
            overloaded: false,
            window: None,
            objective: None,
        }
    }

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
    fn the_highest_rate_is_found() {
        let asked = HighestRate {
            objectives: Vec::new(),
            from: PerSecond(1_000.0),
            to: PerSecond(1e7),
            precision: 0.02,
        };
        let system = |rate: f64| record(rate, rate.min(37_500.0));
        let tried = search(&Strategy::HighestRate(asked.clone()), system);
        let best =
            tried.iter().copied().filter(|rate| *rate <= 37_500.0 / SUSTAINED).reduce(f64::max).unwrap();
        assert!((36_500.0..=37_900.0).contains(&best), "{tried:?}");
        assert!(tried.len() < 15, "{tried:?}");
        // A queue that grows is no rate that is kept, though nearly all of it is done within the run.
        let growing = |rate: f64| RunRecord { overloaded: rate > 37_500.0, ..record(rate, rate) };
        let tried = search(&Strategy::HighestRate(asked.clone()), growing);
        assert!(tried.iter().all(|rate| *rate < 80_000.0), "{tried:?}");
        // A client that is late once says nothing of the target.
        let late = |rate: f64| RunRecord {
            trust: if rate == 8_000.0 { "invalid" } else { "valid" }.into(),
            ..growing(rate)
        };
        let tried = search(&Strategy::HighestRate(asked.clone()), late);
        let best = tried.iter().copied().filter(|rate| kept(&late(*rate))).reduce(f64::max).unwrap();
        assert!((36_500.0..=37_900.0).contains(&best), "{tried:?}");
        let never = |rate: f64| record(rate, rate / 2.0);
        assert_eq!(search(&Strategy::HighestRate(asked), never), [1_000.0]);
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
