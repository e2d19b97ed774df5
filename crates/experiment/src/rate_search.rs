//! Search for the highest rate that keeps objectives: a bisection whose steps are decisions, and an answer that runs of its own
//! confirm.
//!
//! A run says by how many half widths of its interval it is within its limits: its margin. Margins of runs at one rate are added
//! up by Stouffer's rule (sum by the root of their number). A rate is kept or missed where that passes a bound that holds
//! for several looks at the same rate (Pocock 1977), and else open: open rates end no bisection, they bound it.

use crate::journal::{RunRecord, RunStatus};
use crate::point::SearchPoint;
use dyno_config::experiment::HighestRate;
use dyno_rundir::schema::{Trust, Verdict};

const RATE: &str = "phases.measure.rate";

/// Achieved below this share of the offered rate is not sustained.
const SUSTAINED: f64 = 0.99;

/// Pocock's bound for five looks, 2.413, by that of one, 1.960.
const BOUND: f64 = 1.23;

/// Most runs at one rate: the looks of that bound.
const LOOKS: usize = 5;

/// Fewest runs at the rate that is the answer.
const CONFIRMED: usize = 2;

/// Most runs that repeat others, of one search.
const REPEATS: usize = 12;

/// Most that one run may say: a figure without spread is no reason to forget all others.
const MOST: f64 = 3.0;

/// Checks that find a run invalid because the target does not do what is asked of it: such a run has missed its rate.
const OF_THE_TARGET: [&str; 5] = ["samples", "errors", "drops", "gone", "connections"];

/// Returns whether a run is invalid for another reason than the target: a client that was late, a worker that was lost. Then even
/// what it missed may be the client's.
pub(crate) fn is_spoiled(verdict: &Verdict) -> bool {
    let invalid = verdict.reasons.iter().filter(|one| one.trust == Trust::Invalid && verdict.is_asked(one));
    invalid.into_iter().any(|reason| !OF_THE_TARGET.contains(&reason.check.as_str()))
}

/// Runs at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    rate: f64,
    runs: usize,
    /// Sum of the margins of the runs that are not invalid, and their number.
    margins: (f64, usize),
}

/// What is known of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateAnswer {
    Kept,
    Missed,
    /// Too close to call.
    Open,
    /// Only invalid runs, and nothing else speaks against it.
    Unknown,
}

impl Tried {
    fn answer(&self) -> RateAnswer {
        let (sum, runs) = self.margins;
        match sum / (runs as f64).sqrt() {
            _ if runs == 0 => RateAnswer::Unknown,
            margin if margin >= BOUND => RateAnswer::Kept,
            margin if margin <= -BOUND => RateAnswer::Missed,
            _ => RateAnswer::Open,
        }
    }
}

/// Margin of a run; `None` where it decides nothing: a client that was late is no fault of the target, and what an invalid run
/// has kept is not known.
fn margin(run: &RunRecord) -> Option<f64> {
    if run.spoiled {
        return None;
    }
    let sustained = match (run.throughput, run.offered) {
        (Some(achieved), Some(offered)) => achieved >= SUSTAINED * offered,
        _ => false,
    };
    if run.status != RunStatus::Complete || !sustained || run.overloaded {
        return Some(-MOST);
    }
    // A figure that has no interval decides by itself.
    let plain = if run.passed { MOST } else { -MOST };
    let margin = run.margin.map_or(plain, |margin| margin.clamp(-MOST, MOST));
    (run.trust != "invalid" || margin < 0.0).then_some(margin)
}

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundRate {
    /// Highest rate that is kept and below every rate that is missed.
    pub kept: Option<f64>,
    /// Number of runs at it.
    pub runs: usize,
    /// Lowest rate above it that is missed: the highest rate lies between both.
    pub missed: Option<f64>,
    /// Rates between them that are too close to call, ascending.
    pub open: Vec<f64>,
    /// Lowest and highest rate above it that only invalid runs speak of.
    pub unknown: Option<(f64, f64)>,
}

/// Runs by their rate, ascending.
fn tried(history: &[&RunRecord]) -> Vec<Tried> {
    let mut all: Vec<Tried> = Vec::new();
    for run in history {
        let at = all.iter().position(|one| one.rate == run.value).unwrap_or_else(|| {
            all.push(Tried { rate: run.value, runs: 0, margins: (0.0, 0) });
            all.len() - 1
        });
        all[at].runs += 1;
        if let Some(margin) = margin(run) {
            all[at].margins = (all[at].margins.0 + margin, all[at].margins.1 + 1);
        }
    }
    all.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    all
}

/// What the runs of one search say.
pub fn found(history: &[&RunRecord]) -> FoundRate {
    let all = tried(history);
    let of = |answer: RateAnswer| all.iter().filter(move |one| one.answer() == answer);
    // A rate that is kept above one that is missed is luck: what is below both is sure.
    let lowest = of(RateAnswer::Missed).map(|one| one.rate).next();
    let kept = of(RateAnswer::Kept).rfind(|one| lowest.is_none_or(|missed| one.rate < missed));
    let above = |rate: f64| kept.is_none_or(|kept| rate > kept.rate);
    let between = |rate: f64| above(rate) && lowest.is_none_or(|missed| rate < missed);
    let mut unknown = of(RateAnswer::Unknown).map(|one| one.rate).filter(|rate| above(*rate));
    let first = unknown.next();
    FoundRate {
        kept: kept.map(|one| one.rate),
        runs: kept.map_or(0, |one| one.runs),
        missed: lowest,
        open: of(RateAnswer::Open).map(|one| one.rate).filter(|rate| between(*rate)).collect(),
        unknown: first.map(|first| (first, unknown.next_back().unwrap_or(first))),
    }
}

/// Four significant digits: rates are for people too.
fn at(value: f64, repetition: u32) -> SearchPoint {
    // Digits behind the point; before it where less than none.
    let digits = 3 - value.log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    // A quotient of whole numbers is the nearest number there is: 70.71, not 70.71000000000001.
    let rounded = if digits > 0 { (value * scale).round() / scale } else { (value / scale).round() * scale };
    SearchPoint::one(RATE, rounded, repetition)
}

/// From the draws of one repetition to those of the runs that repeat its runs.
const DRAWS: u32 = 1_000;

/// The next rate; `None` when the search has ended.
pub(super) fn next(search: &HighestRate, repetition: u32, history: &[&RunRecord]) -> Option<SearchPoint> {
    let all = tried(history);
    let Some(top) = all.last() else { return Some(at(search.from.0, repetition)) };
    let repeats = history.len() - all.len();
    let again = |rate: f64| {
        let one = all.iter().find(|one| one.rate == rate)?;
        let draw = repetition + DRAWS * one.runs as u32;
        let point = SearchPoint { draw, ..SearchPoint::one(RATE, rate, repetition) };
        (one.runs < LOOKS && repeats < REPEATS).then_some(point)
    };
    let FoundRate { kept, runs, missed, open, unknown } = found(history);
    // Where two rates in a row decide nothing, higher ones will not either.
    let highest = all.iter().rev().take(2);
    let blind = all.len() > 1 && highest.clone().all(|one| one.answer() == RateAnswer::Unknown);
    // Rates are rounded, the highest of all as well.
    if missed.is_none() && !blind && top.rate < at(search.to.0, repetition).value {
        return Some(at((top.rate * 2.0).min(search.to.0), repetition));
    }
    let ceiling = missed.unwrap_or(f64::INFINITY);
    // Rates above one of which only invalid runs speak are tried: one that is kept there decides it.
    let below = all.iter().rfind(|one| one.answer() == RateAnswer::Unknown && one.rate < ceiling);
    let low = kept.into_iter().chain(below.map(|one| one.rate)).reduce(f64::max);
    let first = unknown.map(|(first, _)| first).filter(|first| *first < ceiling);
    let known =
        kept.into_iter().chain(open.iter().copied().filter(|rate| Some(*rate) < first)).reduce(f64::max);
    let gaps = [
        low.zip(open.first().copied().or(missed)),
        open.last().copied().zip(missed),
        // At last what lies below the rates that nothing is known of.
        known.zip(first),
    ];
    let middle = |(low, high): (f64, f64)| {
        let next = at((low * high).sqrt(), repetition);
        (high > low * (1.0 + search.precision) && next.value > low && next.value < high).then_some(next)
    };
    let refined = gaps.into_iter().flatten().find_map(middle);
    // The lowest rate that is too close to call is decided by more runs, then the answer by runs of its own.
    let decided = || open.first().and_then(|rate| again(*rate));
    let confirmed = || kept.filter(|_| runs < CONFIRMED).and_then(again);
    refined.or_else(decided).or_else(confirmed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dyno_config::values::PerSecond;

    pub(crate) fn record(value: f64, throughput: f64) -> RunRecord {
        RunRecord {
            cell: 1,
            repetition: 1,
            point: String::new(),
            value,
            dir: String::new(),
            status: RunStatus::Complete,
            unreachable: false,
            out_of_reach: false,
            not_started: false,
            cause: String::new(),
            trust: "valid".into(),
            throughput: Some(throughput),
            offered: Some(value),
            passed: true,
            too_close: false,
            margin: None,
            overloaded: false,
            spoiled: false,
            window: None,
            objective: None,
        }
    }

    fn asked(from: f64, precision: f64) -> HighestRate {
        let (from, to) = (PerSecond(from), PerSecond(1e7));
        HighestRate { objectives: Vec::new(), from, to, precision }
    }

    /// Runs a search against `system`, which says how a run at a value ends.
    fn search(asked: &HighestRate, system: impl Fn(f64) -> RunRecord) -> Vec<RunRecord> {
        let mut runs: Vec<RunRecord> = Vec::new();
        while let Some(point) = next(asked, 1, &runs.iter().collect::<Vec<_>>()) {
            runs.push(system(point.value));
        }
        runs
    }

    #[test]
    fn the_highest_rate_is_found_and_confirmed() {
        let asked = asked(1_000.0, 0.02);
        let rates = |tried: &[RunRecord]| tried.iter().map(|run| run.value).collect::<Vec<_>>();
        let answer = |tried: &[RunRecord]| found(&tried.iter().collect::<Vec<_>>());
        let system = |rate: f64| record(rate, rate.min(37_500.0));
        let tried = search(&asked, system);
        let told = answer(&tried);
        let best = told.kept.unwrap();
        assert!((36_500.0..=37_900.0).contains(&best), "{tried:?}");
        assert!(told.runs == CONFIRMED && told.open.is_empty(), "{told:?}");
        assert!(told.missed.is_some_and(|missed| missed > best && missed <= best * 1.021), "{told:?}");
        assert!(tried.len() < 16, "{tried:?}");
        // A queue that grows is no rate that is kept, though nearly all of it is done within the run.
        let growing = |rate: f64| RunRecord { overloaded: rate > 37_500.0, ..record(rate, rate) };
        let tried = search(&asked, growing);
        assert!(rates(&tried).iter().all(|rate| *rate < 80_000.0), "{tried:?}");
        // A client that is late once says nothing of the target.
        let late = |rate: f64| RunRecord {
            trust: if rate == 8_000.0 { "invalid" } else { "valid" }.into(),
            ..growing(rate)
        };
        let tried = search(&asked, late);
        assert!((36_500.0..=37_900.0).contains(&answer(&tried).kept.unwrap()), "{tried:?}");
        // One that was late at every rate from 8,000 on, and so did not send all of it, has missed none of them: what the
        // target does there is not known, and higher rates are left alone.
        let slow = |rate: f64| match rate < 8_000.0 {
            true => record(rate, rate),
            false => RunRecord { trust: "invalid".into(), spoiled: true, ..record(rate, rate / 2.0) },
        };
        let tried = search(&asked, slow);
        let told = answer(&tried);
        assert_eq!(told.missed, None, "{tried:?}");
        assert!(rates(&tried).iter().all(|rate| *rate <= 16_000.0), "{tried:?}");
        assert!(told.kept.is_some_and(|kept| (7_800.0..8_000.0).contains(&kept)), "{told:?}");
        assert_eq!(told.unknown, Some((8_000.0, 16_000.0)));
        // One that was invalid because the target dropped what was due has missed its rate.
        let dropping = |rate: f64| match rate <= 5_000.0 {
            true => record(rate, rate),
            false => RunRecord { trust: "invalid".into(), ..record(rate, 5_000.0) },
        };
        let told = answer(&search(&asked, dropping));
        assert!(told.kept.is_some_and(|kept| (4_900.0..=5_050.0).contains(&kept)), "{told:?}");
        assert!(told.missed.is_some_and(|missed| missed > 5_000.0), "{told:?}");
        let never = |rate: f64| record(rate, rate / 2.0);
        assert_eq!(rates(&search(&asked, never)), [1_000.0]);
    }

    #[test]
    fn rates_have_four_digits_however_small() {
        let said = |value: f64| at(value, 1).label;
        assert_eq!(said(123_456.0), "rate=123500");
        assert_eq!(said(1_234.4), "rate=1234");
        assert_eq!(said(70.710678), "rate=70.71");
        // Not 0, which is no rate.
        assert_eq!(said(0.4), "rate=0.4");
    }

    #[test]
    fn what_is_not_the_targets_spoils_a_run() {
        use dyno_rundir::schema::Reason;
        let spoiled = |checks: &[(&str, Trust)]| {
            let reason = |(check, trust): &(&str, Trust)| Reason::of_all(check, *trust, String::new());
            is_spoiled(&Verdict::new(checks.iter().map(reason).collect(), Vec::new(), &[]))
        };
        assert!(!spoiled(&[]) && !spoiled(&[("client_share", Trust::Suspect)]));
        assert!(!spoiled(&[("drops", Trust::Invalid), ("errors", Trust::Invalid)]));
        assert!(spoiled(&[("drops", Trust::Invalid), ("client_share", Trust::Invalid)]));
        assert!(spoiled(&[("workers", Trust::Invalid)]));
    }

    #[test]
    fn a_highest_rate_of_five_digits_is_tried_as_it_is_rounded() {
        for to in [12_344.0, 12_345.0, 12_346.0] {
            let asked = HighestRate { to: PerSecond(to), ..asked(5_000.0, 0.02) };
            let tried = search(&asked, |rate| record(rate, rate));
            let rates: Vec<f64> = tried.iter().map(|run| run.value).collect();
            let last = (to / 10.0).round() * 10.0;
            assert_eq!(rates, [5_000.0, 10_000.0, last, last], "twice: the answer is confirmed");
        }
    }

    #[test]
    fn runs_that_are_too_close_decide_by_their_number_and_not_by_luck() {
        let run = |value: f64, margin: f64| RunRecord {
            margin: Some(margin),
            passed: margin > -1.0,
            too_close: margin.abs() < 1.0,
            ..record(value, value)
        };
        let of = |runs: &[RunRecord]| found(&runs.iter().collect::<Vec<_>>());
        // Three runs at 0.8 half widths: 1.39 of one.
        let close = [run(100.0, 0.8), run(100.0, 0.8)];
        assert_eq!((of(&close).kept, of(&close).open), (None, vec![100.0]));
        let more = [run(100.0, 0.8), run(100.0, 0.8), run(100.0, 0.8), run(200.0, -9.0)];
        assert_eq!((of(&more).kept, of(&more).runs, of(&more).missed), (Some(100.0), 3, Some(200.0)));
        // A rate that was kept above one that was missed is luck.
        let luck = [run(100.0, 2.0), run(150.0, -2.0), run(180.0, 2.0)];
        assert_eq!((of(&luck).kept, of(&luck).missed), (Some(100.0), Some(150.0)));
    }

    /// A server whose margin falls with the rate, seen with the error of a run.
    #[test]
    fn the_interval_of_the_answer_holds_the_truth() {
        use dyno_types::rng::{Purpose, Stream};
        let (truth, rounds) = (769.7, 400);
        let mut within = 0;
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        let mut runs = 0;
        for round in 0..rounds {
            let random = std::cell::RefCell::new(Stream::new(round, 0, Purpose::Choice));
            let normal = || (0..12).map(|_| random.borrow_mut().next_unit()).sum::<f64>() - 6.0;
            // One standard error of a run is 1.7 % of the rate.
            let system = |rate: f64| {
                let margin = ((truth - rate) / (0.017 * truth) + normal()) / 1.96;
                let (passed, too_close) = (margin > -1.0, margin.abs() < 1.0);
                RunRecord { margin: Some(margin), passed, too_close, ..record(rate, rate) }
            };
            let tried = search(&asked(100.0, 0.02), system);
            let told = found(&tried.iter().collect::<Vec<_>>());
            let kept = told.kept.unwrap_or(0.0);
            within += u64::from(kept <= truth && told.missed.is_some_and(|missed| truth <= missed));
            (low, high) = (low.min(kept), high.max(kept));
            runs += tried.len() as u64;
        }
        let share = within as f64 / rounds as f64;
        assert!(share >= 0.92, "{share}, answers {low} to {high}, {} runs", runs / rounds);
        assert!(low > 0.9 * truth && high < 1.03 * truth && runs / rounds < 30, "{low} {high} {runs}");
    }
}
