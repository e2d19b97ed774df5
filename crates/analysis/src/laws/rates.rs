//! Conclusions from a sweep over rates: the share of the arrivals that is done, the growth of response times, and the capacity.
//!
//! Source of the model: M/M/m with Erlang's C; Lazowska and others, "Quantitative System Performance" (1984), chapter 6. Even
//! arrivals by Allen and Cunneen's approximation of G/G/m.

use super::observe::Observed;
use crate::compare::bootstrap::Small;
use crate::interval::mean_interval;
use crate::queueing::open::OpenStation;
use crate::series::mean;
use dyno_types::rng::{Purpose, Stream};
use dyno_types::stats;
use dyno_types::units::Rate;
use serde::Serialize;

/// One rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLevel {
    /// Operations per second that were asked for.
    pub rate: f64,
    /// Runs.
    pub runs: usize,
    /// Mean successful operations per second.
    pub throughput: f64,
    /// Half of the 95 % interval of the mean throughput over the level's runs; `None` of one run.
    pub half_width: Option<f64>,
    /// Throughput by the arrivals that were due.
    pub ratio: f64,
    /// True if the queue grew in most of the runs: then the rate is not kept, however much of it is done.
    pub grows: bool,
    /// Mean time from when operations were due to their end, seconds; `None` where none succeeded.
    pub response_s: Option<f64>,
    /// The model's response time, where there is a model and it has one.
    pub model_s: Option<f64>,
}

/// A station with several servers and one queue that explains the response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenFit {
    /// Mean service time, seconds.
    pub service_s: f64,
    /// Servers.
    pub servers: u32,
    /// Squared coefficient of variation of the times between arrivals: 1 for Poisson arrivals, 0 for even ones.
    pub arrivals: f64,
    /// The same of the service times: 1 for exponential ones, 0 for constant ones.
    pub services: f64,
    /// Operations per second at which response times grow without end.
    pub capacity: f64,
    /// Interval of 95 %: over runs where every rate has three or more, else by what the station misses the times by.
    pub interval: (f64, f64),
    /// The rate whose response time the station misses most, and by which share of it.
    pub worst: (f64, f64),
    /// Root mean square of the response times' relative errors.
    pub error: f64,
    /// Utilisation at the greatest rate that was kept.
    pub utilisation: f64,
}

impl OpenFit {
    /// Returns whether the station is contradicted by what was done where a rate was not kept: there the server does what it can.
    pub fn is_contradicted_by(&self, done: f64) -> bool {
        done < self.interval.0 * KEPT || done * KEPT > self.interval.1
    }

    /// Returns its name in Kendall's notation: M/M/m, D/M/m where arrivals were evenly spaced, M/D/m or M/G/m where service
    /// times are constant or of another variation.
    pub fn kendall_notation(&self) -> String {
        let service = match self.services {
            0.0 => 'D',
            1.0 => 'M',
            _ => 'G',
        };
        format!("{}/{service}/{}", if self.arrivals > 0.0 { 'M' } else { 'D' }, self.servers)
    }

    /// The mean of both variations, by which a wait is longer than in M/M/m.
    fn variation(&self) -> f64 {
        f64::midpoint(self.arrivals, self.services)
    }

    /// Mean response time at a rate, seconds; `None` from the capacity on.
    pub fn response_s(&self, rate: f64) -> Option<f64> {
        let station = OpenStation { rate, service: self.service_s, servers: self.servers };
        (station.utilisation() < 1.0).then(|| response(&station, self.variation()))
    }
}

/// Mean response time where arrivals and service times vary by so much on average (Allen and Cunneen's approximation; exact for
/// Poisson arrivals and one server).
fn response(station: &OpenStation, variation: f64) -> f64 {
    station.service + station.allen_cunneen(variation, variation)
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Levels in order of the rate.
    pub levels: Vec<RateLevel>,
    /// The greatest rate that was kept.
    pub kept: Option<f64>,
    /// The least rate beyond it, and the throughput there.
    pub missed: Option<(f64, f64)>,
    /// Lower rates that were not kept, and the throughput there: the rate is not what kept these runs from it.
    pub disturbed: Vec<(f64, f64)>,
    /// The model, where it explains the response times.
    pub fit: Option<OpenFit>,
    /// Reason for which there is none.
    pub why: Option<String>,
}

impl RateLevel {
    /// Returns whether it was kept: done, with a queue that did not grow.
    pub fn is_kept(&self) -> bool {
        self.ratio >= KEPT && !self.grows
    }
}

impl Rates {
    /// Returns whether a rate is one that was kept.
    pub fn is_rate_kept(&self, rate: f64) -> bool {
        self.levels.iter().any(|level| level.rate == rate && level.is_kept())
    }

    /// Returns in words where the station differs from what was seen.
    pub fn describe_doubts(&self) -> Vec<String> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let mut doubts = Vec::new();
        let (at, share) = fit.worst;
        if share > GOOD {
            let (at, share) = (Rate(at), share * 100.0);
            doubts.push(format!(
                "the station misses the time at {at}/s by {share:.0} %: trust the times, not the station"
            ));
        }
        if let Some((missed, done)) = self.missed.filter(|(_, done)| fit.is_contradicted_by(*done)) {
            let (missed, done) = (Rate(missed), Rate(done));
            doubts.push(format!(
                "of {missed}/s {done}/s are done, which contradicts that capacity: something else limits the server"
            ));
        }
        doubts
    }
}

/// A rate is kept where at least this share of what was due is done, and its queue does not grow.
pub const KEPT: f64 = 0.98;
/// Rates that must have been kept for a model.
const LEVELS: usize = 4;
/// Servers that are tried.
const SERVERS: u32 = 64;
/// Relative error up to which a model explains something.
const GOOD: f64 = 0.15;
/// Squared variations of service times that are tried beside 1.
const VARIATIONS: [f64; 5] = [0.0, 0.25, 0.5, 2.0, 4.0];
/// Another variation is taken where the error is less than this share, and not below what any fit reaches.
const CLEARLY: f64 = 0.5;
const EXACT: f64 = 0.01;
/// Utilisation up to which response times say nothing about the capacity.
const IDLE: f64 = 0.5;

/// Analyses open-loop runs that differ in the rate; `None` with fewer than two rates.
pub fn analyse_rates(runs: &[Observed]) -> Option<Rates> {
    let open: Vec<(f64, &Observed)> = runs.iter().filter_map(|run| Some((run.rate?, run))).collect();
    let mut all: Vec<f64> = open.iter().map(|(rate, _)| *rate).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let level = |rate: f64| -> Option<RateLevel> {
        let same: Vec<&Observed> = open.iter().filter(|(own, _)| *own == rate).map(|(_, run)| *run).collect();
        let done: Vec<f64> = same.iter().map(|run| run.throughput).collect();
        let due: Vec<f64> = same.iter().filter_map(|run| run.offered).collect();
        let times: Vec<f64> = same.iter().filter_map(|run| run.due_s).collect();
        (!due.is_empty()).then(|| RateLevel {
            rate,
            runs: same.len(),
            throughput: mean(&done),
            half_width: mean_interval(&done).map(|found| found.half_width),
            ratio: mean(&done) / mean(&due),
            grows: 2 * same.iter().filter(|run| run.grows).count() > same.len(),
            response_s: stats::mean(&times),
            model_s: None,
        })
    };
    let mut levels: Vec<RateLevel> = all.into_iter().filter_map(level).collect();
    if levels.len() < 2 {
        return None;
    }
    let stable: Vec<&RateLevel> = levels.iter().filter(|level| level.is_kept()).collect();
    let even = open.iter().filter(|(_, run)| run.even).count();
    let found = match even {
        0 => fit(&stable, 1.0),
        all if all == open.len() => fit(&stable, 0.0),
        _ => Err(NoFit::MixedArrivals),
    };
    let found = found.map(|fit| OpenFit { interval: interval(&fit, &open, &stable), ..fit });
    let (fit, why) = match found {
        Ok(fit) => (Some(fit), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let kept = stable.last().map(|level| level.rate);
    let missed = levels.iter().filter(|level| !level.is_kept()).map(|level| (level.rate, level.throughput));
    let (disturbed, beyond): (Vec<_>, Vec<_>) = missed.partition(|(rate, _)| kept > Some(*rate));
    let missed = beyond.first().copied();
    for level in levels.iter_mut().filter(|level| level.is_kept()) {
        level.model_s = fit.as_ref().and_then(|fit| fit.response_s(level.throughput));
    }
    Some(Rates { levels, kept, missed, disturbed, fit, why })
}

/// Root mean square of `ln(model / measured)`: the relative error, where it is small.
fn error(levels: &[(f64, f64)], service: f64, servers: u32, variation: f64) -> f64 {
    let square = |(rate, measured): &(f64, f64)| {
        (response(&OpenStation { rate: *rate, service, servers }, variation) / measured).ln().powi(2)
    };
    (levels.iter().map(square).sum::<f64>() / levels.len() as f64).sqrt()
}

/// The least of a function with one minimum between `low` and `high`, by the golden section.
fn least(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..48 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if of(a) < of(b) { high = b } else { low = a }
    }
    f64::midpoint(low, high)
}

/// Rates that no model explains.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
enum NoFit {
    #[error("arrivals were evenly spaced in some runs and not in others: no model is for both")]
    MixedArrivals,
    #[error("{0} rates were kept: a model of response times takes {LEVELS}")]
    TooFewRates(usize),
    #[error("when operations were due was not recorded: there are no response times for a model")]
    NoResponseTimes,
    #[error(
        "no station with one queue explains these response times (the best, with {servers} servers, misses by {:.0} %)",
        error * 100.0
    )]
    Misses { servers: u32, error: f64 },
    #[error("response times hardly grow up to the greatest rate: the capacity is beyond, try higher rates")]
    Idle,
}

fn fit(levels: &[&RateLevel], arrivals: f64) -> Result<OpenFit, NoFit> {
    let kept = levels.len();
    let levels: Vec<(f64, f64)> =
        levels.iter().filter_map(|one| Some((one.throughput, one.response_s?))).collect();
    if kept < LEVELS {
        return Err(NoFit::TooFewRates(kept));
    }
    if levels.len() < LEVELS {
        return Err(NoFit::NoResponseTimes);
    }
    let most = levels.iter().map(|level| level.0).fold(0.0, f64::max);
    // Exponential service times, unless others explain the response times clearly better.
    let of = |services: f64| (services, station(&levels, f64::midpoint(arrivals, services), 1..=SERVERS));
    let usual = of(1.0);
    let other = VARIATIONS.map(of).into_iter().min_by(|a, b| a.1.2.total_cmp(&b.1.2)).unwrap_or(usual);
    let better = other.1.2 < CLEARLY * usual.1.2 && usual.1.2 > EXACT;
    let (services, (servers, service_s, error)) = if better { other } else { usual };
    let variation = f64::midpoint(arrivals, services);
    if !error.is_finite() || error > GOOD {
        return Err(NoFit::Misses { servers, error });
    }
    let utilisation = OpenStation { rate: most, service: service_s, servers }.utilisation();
    if utilisation < IDLE {
        return Err(NoFit::Idle);
    }
    let miss = |(rate, measured): &(f64, f64)| {
        (
            *rate,
            (response(&OpenStation { rate: *rate, service: service_s, servers }, variation) / measured - 1.0)
                .abs(),
        )
    };
    let worst = levels.iter().map(miss).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let capacity = f64::from(servers) / service_s;
    Ok(OpenFit {
        service_s,
        servers,
        arrivals,
        services,
        capacity,
        interval: (capacity, capacity),
        worst,
        error,
        utilisation,
    })
}

/// The station that misses the response times of `levels` (rate, response time) least: servers, service time, error.
fn station(levels: &[(f64, f64)], variation: f64, servers: std::ops::RangeInclusive<u32>) -> (u32, f64, f64) {
    let most = levels.iter().map(|level| level.0).fold(0.0, f64::max);
    let of = |servers: u32| {
        let longest = f64::from(servers) / most;
        let service = least(longest * 1e-6, longest * (1.0 - 1e-9), |service| {
            error(levels, service, servers, variation)
        });
        (servers, service, error(levels, service, servers, variation))
    };
    servers.map(of).min_by(|a, b| a.2.total_cmp(&b.2)).unwrap_or((1, 0.0, f64::INFINITY))
}

/// Replicates of the capacity's bootstrap.
const REPLICATES: usize = 200;
/// Fewest runs of a rate that can stand for each other.
const ALIKE: usize = 3;

/// The numbers of servers that explain the response times of `levels` (rate, response time) nearly as well as the best one:
/// they miss at most twice as much, and 2 % more. Others explain no replicate better.
fn plausible_servers(levels: &[(f64, f64)], fit: &OpenFit) -> std::ops::RangeInclusive<u32> {
    let good = |servers: &u32| {
        station(levels, fit.variation(), *servers..=*servers).2 <= 2.0 * fit.error + 0.02
            || *servers == fit.servers
    };
    let mut all = (1..=SERVERS).filter(good);
    let first = all.next().unwrap_or(fit.servers);
    first..=all.next_back().unwrap_or(first)
}

/// A response time of the model that is missed by a factor that another level's was missed by.
fn missed_by(model: f64, by: f64) -> f64 {
    model * by
}

/// The 95 % interval of the capacity. Replicates draw the runs of each rate anew, or without three of them each the station's
/// misses; the interval is Student's on the logarithm of what the capacity has beyond the greatest rate that was kept.
fn interval(fit: &OpenFit, runs: &[(f64, &Observed)], kept: &[&RateLevel]) -> (f64, f64) {
    let of_level = |level: &&RateLevel| -> Vec<(f64, f64)> {
        let same = runs.iter().filter(|(rate, _)| *rate == level.rate);
        same.filter_map(|(_, run)| Some((run.throughput, run.due_s?))).collect()
    };
    let levels: Vec<Vec<(f64, f64)>> = kept.iter().map(of_level).filter(|runs| !runs.is_empty()).collect();
    let fewest = levels.iter().map(Vec::len).min().unwrap_or(0);
    let by_runs = fewest >= ALIKE;
    let middle = |runs: &[(f64, f64)]| {
        let of = |pick: fn(&(f64, f64)) -> f64| runs.iter().map(pick).sum::<f64>() / runs.len() as f64;
        (of(|run| run.0), of(|run| run.1))
    };
    let model = |rate: f64| {
        response(&OpenStation { rate, service: fit.service_s, servers: fit.servers }, fit.variation())
    };
    let means: Vec<(f64, f64)> = levels.iter().map(|runs| middle(runs)).collect();
    let misses: Vec<f64> = means.iter().map(|(rate, time)| time / model(*rate)).collect();
    let most = means.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let beyond = |capacity: f64| (capacity / most - 1.0).max(1e-9).ln();
    let plausible = plausible_servers(&means, fit);
    let mut random = Stream::new(1, 2, Purpose::Choice);
    let mut pick = |count: usize| random.next_below(count as u64) as usize;
    let replicates: Vec<f64> = (0..REPLICATES)
        .map(|_| {
            let drawn: Vec<(f64, f64)> = levels
                .iter()
                .zip(&means)
                .map(|(runs, (rate, _))| match by_runs {
                    true => middle(&runs.iter().map(|_| runs[pick(runs.len())]).collect::<Vec<_>>()),
                    false => (*rate, missed_by(model(*rate), misses[pick(misses.len())])),
                })
                .collect();
            let (servers, service, _) = station(&drawn, fit.variation(), plausible.clone());
            beyond(f64::from(servers) / service)
        })
        .collect();
    let small = match by_runs {
        // The runs of the two greatest rates say nearly all of the capacity.
        true => Small { freedom: (2 * (fewest - 1)) as f64, ..Small::of_runs(fewest) },
        false => Small::of_residuals(levels.len(), 2),
    };
    let half = small.interval_reach(0.025) * mean_interval(&replicates).map_or(0.0, |found| found.deviation);
    let at = beyond(fit.capacity);
    (most * (1.0 + (at - half).exp()), most * (1.0 + (at + half).exp()))
}

#[cfg(test)]
mod tests {
    /// One rate that something disturbed says nothing of the others.
    #[test]
    fn each_rate_is_judged() {
        let rates_of = [100.0, 200.0, 300.0, 500.0, 1_000.0];
        let done = |rate: f64| if rate == 300.0 { 150.0 } else { rate };
        let runs: Vec<Observed> = rates_of.iter().map(|rate| at(*rate, done(*rate), 0.001)).collect();
        let found = analyse_rates(&runs).unwrap();
        assert_eq!((found.kept, found.missed), (Some(1_000.0), None));
        assert_eq!(found.disturbed, [(300.0, 150.0)]);
        assert!(found.is_rate_kept(500.0) && !found.is_rate_kept(300.0));
    }

    use super::*;

    fn at(rate: f64, done: f64, due_s: f64) -> Observed {
        Observed {
            planned_s: None,
            unit: "operations",
            users: None,
            connections: None,
            think_s: 0.0,
            offered: Some(rate),
            rate: Some(rate),
            grows: false,
            invalid: false,
            even: false,
            due_s: Some(due_s),
            seconds: 10.0,
            flow: (0, 0),
            throughput: done,
            response_s: due_s,
            client_s: 0.0,
            implied_users: None,
            failed: 0,
            uses: Vec::new(),
            rates: Vec::new(),
        }
    }

    fn station(servers: u32, rates: &[f64]) -> Vec<Observed> {
        let response = |rate| OpenStation { rate, service: 0.002, servers }.mean_response();
        rates.iter().map(|rate| at(*rate, *rate, response(*rate))).collect()
    }

    #[test]
    fn a_station_is_found_again() {
        for (servers, rates_of) in
            [(1, [50.0, 150.0, 300.0, 400.0, 475.0]), (4, [500.0, 900.0, 1_400.0, 1_700.0, 1_900.0])]
        {
            let found = analyse_rates(&station(servers, &rates_of)).unwrap();
            let fit = found.fit.unwrap();
            assert_eq!(fit.servers, servers);
            assert!((fit.service_s / 0.002 - 1.0).abs() < 1e-3 && fit.error < 1e-3, "{fit:?}");
            assert!((fit.capacity / (f64::from(servers) / 0.002) - 1.0).abs() < 1e-3);
            assert_eq!((found.kept, found.missed), (Some(rates_of[4]), None));
            let last = found.levels.last().unwrap();
            assert!((last.model_s.unwrap() / last.response_s.unwrap() - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn what_is_not_kept_is_told_and_is_no_part_of_the_model() {
        let mut runs = station(1, &[50.0, 150.0, 300.0, 400.0, 475.0]);
        runs.push(at(800.0, 499.0, 2.0));
        let found = analyse_rates(&runs).unwrap();
        assert_eq!((found.kept, found.missed), (Some(475.0), Some((800.0, 499.0))));
        assert_eq!(found.fit.as_ref().unwrap().servers, 1);
        assert_eq!(found.levels[5].model_s, None);
    }

    /// The target sweep of the performance lab: eight rates, of which the last was not kept.
    #[test]
    fn the_labs_targets() {
        let targets = [100.0, 200.0, 300.0, 500.0, 1_000.0, 2_000.0, 3_000.0, 5_000.0];
        let ratios = [0.9926, 0.9959, 0.9921, 0.9967, 0.9973, 0.9975, 0.9955, 0.8618];
        let runs: Vec<Observed> =
            targets.iter().zip(ratios).map(|(rate, ratio)| at(*rate, rate * ratio, 0.001)).collect();
        let found = analyse_rates(&runs).unwrap();
        assert_eq!((found.kept, found.missed.map(|missed| missed.0)), (Some(3_000.0), Some(5_000.0)));
        assert!(found.levels.iter().zip(ratios).all(|(level, ratio)| (level.ratio - ratio).abs() < 1e-12));
        // Times that do not grow say nothing of the capacity.
        assert!(found.why.unwrap().contains("try higher rates"));
    }

    /// 1,008/s on a server of 1,000/s: 99.2 % are done, and the queue grows all the time.
    #[test]
    fn a_rate_whose_queue_grows_is_not_kept() {
        let mut runs = station(1, &[50.0, 150.0, 300.0, 400.0]);
        runs.push(Observed { grows: true, ..at(504.0, 500.0, 0.5) });
        let found = analyse_rates(&runs).unwrap();
        assert_eq!((found.kept, found.missed), (Some(400.0), Some((504.0, 500.0))));
        let (low, high) = found.fit.as_ref().unwrap().interval;
        assert!(
            low <= 500.0 && 500.0 <= high && found.describe_doubts().is_empty(),
            "{low} to {high}: {:?}",
            found.describe_doubts()
        );
    }

    #[test]
    fn the_capacity_has_an_interval_and_a_station_that_misses_says_so() {
        let mut random = Stream::new(3, 0, Purpose::Choice);
        let mut inside = 0;
        for _ in 0..100 {
            let mut noisy = |run: Observed| {
                let noise = (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
                Observed { due_s: run.due_s.map(|s| s * (1.0 + 0.05 * noise)), ..run }
            };
            let runs: Vec<Observed> = [100.0, 200.0, 300.0, 400.0, 450.0]
                .into_iter()
                .flat_map(|rate| station(1, &[rate, rate, rate, rate]))
                .map(&mut noisy)
                .collect();
            let (low, high) = analyse_rates(&runs).unwrap().fit.unwrap().interval;
            inside += u32::from(low <= 500.0 && 500.0 <= high);
        }
        assert!((90..=100).contains(&inside), "{inside} of 100");
        // A lock behind the station: at 475/s 300/s are done.
        let mut runs = station(1, &[50.0, 150.0, 300.0, 400.0, 450.0]);
        runs.push(at(475.0, 300.0, 2.0));
        let words = analyse_rates(&runs).unwrap().describe_doubts();
        assert!(words.len() == 1 && words[0].starts_with("of 475/s 300/s are done"), "{words:?}");
    }

    #[test]
    fn even_arrivals_wait_less() {
        let rate = |rate: f64| {
            let station = OpenStation { rate, service: 0.002, servers: 2 };
            Observed { even: true, ..at(rate, rate, 0.002 + station.mean_wait() / 2.0) }
        };
        let runs: Vec<Observed> = [100.0, 500.0, 700.0, 850.0, 950.0].map(rate).into();
        let fit = analyse_rates(&runs).unwrap().fit.unwrap();
        assert_eq!(fit.kendall_notation(), "D/M/2");
        assert!((fit.capacity - 1_000.0).abs() < 1.0, "{fit:?}");
        let mut mixed = runs;
        mixed[0].even = false;
        assert!(analyse_rates(&mixed).unwrap().why.unwrap().contains("evenly spaced in some"));
    }

    #[test]
    fn a_rate_at_which_nothing_succeeds_is_missed() {
        let mut runs = station(1, &[50.0, 150.0, 300.0, 400.0]);
        runs.push(Observed { due_s: None, ..at(900.0, 0.0, 0.0) });
        let found = analyse_rates(&runs).unwrap();
        assert_eq!((found.kept, found.missed), (Some(400.0), Some((900.0, 0.0))));
        assert_eq!(found.levels[4].response_s, None);
    }

    #[test]
    fn nothing_is_claimed_where_nothing_fits() {
        let shrinking: Vec<Observed> = [(100.0, 0.1), (200.0, 0.001), (300.0, 0.1), (400.0, 0.001)]
            .map(|(rate, s)| at(rate, rate, s))
            .into();
        assert!(analyse_rates(&shrinking).unwrap().why.unwrap().contains("no station"));
        assert!(
            analyse_rates(&station(1, &[100.0, 200.0, 300.0]))
                .unwrap()
                .why
                .unwrap()
                .contains("3 rates were kept")
        );
        assert_eq!(analyse_rates(&station(1, &[100.0])), None);
    }
}

#[cfg(test)]
#[path = "rates_parts_tests.rs"]
mod parts;
