//! The figures that are compared.

use super::args::CompareArgs;
use super::gather::{Group, begin_of};
use super::noise::Floor;
use dyno_analysis::ArrivalLatency;
use dyno_analysis::compare::{
    Comparison, Drift, Margin, Quantiles, compare_samples as compare_values, estimate_drift,
};
use dyno_record::Scale;
use dyno_report::comparison::{ComparedFigure, Responses};
use dyno_report::cost_efficiency;
use dyno_rundir::RunDir;
use dyno_rundir::is_beside;
use dyno_rundir::schema::{Claim, Phase};
use dyno_types::metric::{WAIT, is_request};

/// Percentiles that are compared, where enough samples support them.
const PERCENTILES: [(f64, &str); 4] = [(50.0, "p50"), (95.0, "p95"), (99.0, "p99"), (99.9, "p99.9")];

/// Percentiles of the shift function, beside those that are compared.
const SHIFTS: [f64; 13] = [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 70.0, 80.0, 90.0, 98.0, 99.5, 99.99];

/// Samples beyond a percentile that it needs, on either end.
const BEYOND: f64 = 100.0;

fn measured(run: &RunDir) -> Option<&Phase> {
    run.summary.as_ref()?.measured_phase()
}

/// A figure of every run that has it; none unless all have.
fn each(runs: &[&RunDir], figure: impl Fn(&Phase) -> Option<f64>) -> Option<Vec<f64>> {
    runs.iter().map(|run| measured(run).and_then(&figure)).collect()
}

/// Runs of both groups of which a claim can be used.
struct Usable<'a> {
    first: Vec<&'a RunDir>,
    second: Vec<&'a RunDir>,
}

impl<'a> Usable<'a> {
    fn of(first: &'a Group, second: &'a Group, claim: Claim) -> Self {
        Usable { first: first.usable(&[claim]), second: second.usable(&[claim]) }
    }

    /// Places of the runs of each group in the order in which all of them were made.
    fn places(&self) -> (Vec<f64>, Vec<f64>) {
        let begins = |side: &[&'a RunDir]| side.iter().map(|run| begin_of(run)).collect::<Vec<_>>();
        places_of(&begins(&self.first), &begins(&self.second))
    }
}

/// Place of each of two sides' runs in the order of all of them: how many began before it.
fn places_of<T: PartialOrd>(first: &[T], second: &[T]) -> (Vec<f64>, Vec<f64>) {
    let place = |one: &T| first.iter().chain(second).filter(|other| *other < one).count() as f64;
    (first.iter().map(place).collect(), second.iter().map(place).collect())
}

/// Claims that no run of a group has: no figure that rests on them is compared.
fn unusable(first: &Group, second: &Group) -> Vec<String> {
    let words = |claim: Claim| {
        let group = [first, second].into_iter().find(|group| group.usable(&[claim]).is_empty())?;
        Some(format!("no run of {} has a {} that can be used: it is not compared", group.name, claim.name()))
    };
    Claim::FIGURES.into_iter().filter_map(words).collect()
}

/// That the runs of one group were made before those of the other, if they were: a host that drifts looks like a difference.
fn order(
    figure: &ComparedFigure,
    places: &(Vec<f64>, Vec<f64>),
    first: &Group,
    second: &Group,
) -> Option<String> {
    let drift = figure.found.drift.filter(Drift::is_confounded)?;
    let mean = |places: &[f64]| places.iter().sum::<f64>() / places.len() as f64;
    let (before, after) = match mean(&places.0) < mean(&places.1) {
        true => (&first.name, &second.name),
        false => (&second.name, &first.name),
    };
    Some(format!(
        "runs of {before} were made before those of {after}, so that a host that drifts looks like a difference: within the \
         sides {} changes by {:+.2} % from run to run (p = {:.3}), and what does not hold without that is left open; make \
         them by turns (dyno run A --versus B)",
        figure.name,
        drift.per_run * 100.0,
        drift.p
    ))
}

/// Compares everything that both groups have.
pub fn compare(
    args: &CompareArgs,
    price: Option<f64>,
    first: &Group,
    second: &Group,
    floor: &Floor,
) -> (Vec<ComparedFigure>, Vec<Responses>, Vec<String>) {
    let throughput = Margin { share: args.margin / 100.0, ..Margin::THROUGHPUT };
    let mut figures = Vec::new();
    let usable = Usable::of(first, second, Claim::Throughput);
    let places = usable.places();
    let mut values = |name: &str, unit, figure: &dyn Fn(&Phase) -> Option<f64>| {
        let (Some(one), Some(other)) = (each(&usable.first, figure), each(&usable.second, figure)) else {
            return;
        };
        let noise = floor.of(name);
        let drift = estimate_drift((&one, &places.0), (&other, &places.1));
        let found = compare_values(&one, &other, throughput, noise).map(|f| f.with_drift(drift, throughput));
        let each = (one, other);
        figures.extend(found.map(|found| ComparedFigure { name: name.to_owned(), unit, found, noise, each }));
    };
    values("throughput", "ops/s", &|phase| Some(phase.throughput));
    values("throughput per core", "ops/core-s", &cost_efficiency::per_core);
    if let Some(price) = price {
        values("throughput per price", "ops/currency unit", &|phase| {
            Some(cost_efficiency::per_price(phase.throughput, price))
        });
    }
    let (mut responses, mut beyond) = (Vec::new(), unusable(first, second));
    beyond.extend(figures.first().and_then(|figure: &ComparedFigure| order(figure, &places, first, second)));
    for metric in metrics(first).into_iter().filter(|metric| metrics(second).contains(metric)) {
        let (found, of_metric) = latencies(args, &metric, first, second, floor, &mut beyond);
        figures.extend(found);
        responses.extend(of_metric);
    }
    (figures, responses, beyond)
}

/// Percentiles of an operation's response time, and the shift function, which is of runs whose tail can be used.
fn latencies(
    args: &CompareArgs,
    metric: &str,
    first: &Group,
    second: &Group,
    floor: &Floor,
    beyond: &mut Vec<String>,
) -> (Vec<ComparedFigure>, Option<Responses>) {
    let of = |claim| Usable::of(first, second, claim);
    let (median, tail) = (of(Claim::Median), of(Claim::Tail));
    let alike = (median.first.len(), median.second.len()) == (tail.first.len(), tail.second.len());
    if alike {
        return percentiles(args, metric, (&PERCENTILES, &SHIFTS), (first, second), &tail, floor, beyond);
    }
    let (at_p50, above) = PERCENTILES.split_at(1);
    let (mut figures, _) = percentiles(args, metric, (at_p50, &[]), (first, second), &median, floor, beyond);
    let (found, responses) =
        percentiles(args, metric, (above, &SHIFTS), (first, second), &tail, floor, beyond);
    figures.extend(found);
    (figures, responses)
}

/// These percentiles of usable runs, and the shift function of them and others.
fn percentiles(
    args: &CompareArgs,
    metric: &str,
    (compared, shifts): (&[(f64, &str)], &[f64]),
    (first, second): (&Group, &Group),
    usable: &Usable<'_>,
    floor: &Floor,
    beyond: &mut Vec<String>,
) -> (Vec<ComparedFigure>, Option<Responses>) {
    let latency = Margin { share: args.latency_margin / 100.0, ..Margin::LATENCY };
    let (one, other) = (of_metric(&usable.first, metric), of_metric(&usable.second, metric));
    let samples = |all: &[ArrivalLatency]| all.iter().map(ArrivalLatency::count).sum::<u64>() as f64;
    let fewest = samples(&one).min(samples(&other));
    let supported = |percentile: f64| {
        let share = percentile / 100.0;
        fewest * (1.0 - share).min(share) >= BEYOND
    };
    let mut wanted: Vec<f64> =
        compared.iter().map(|(p, _)| *p).chain(shifts.iter().copied()).filter(|p| supported(*p)).collect();
    wanted.sort_by(f64::total_cmp);
    let scales: Vec<Scale> = one.iter().chain(&other).map(|run| run.ok.bucket_scale()).collect();
    // Counts of other units cannot be added up.
    let alike = scales.windows(2).all(|pair| pair[0] == pair[1]);
    let drawn = Quantiles::draw_replicates(&one, &other, &wanted, args.seed);
    let Some(drawn) = drawn.filter(|_| alike && !wanted.is_empty()) else { return (Vec::new(), None) };
    let figure = |(percentile, short): &(f64, &str)| {
        let name = format!("{metric} {short}");
        let noise = floor.of(&name);
        let each = |side: &[ArrivalLatency]| -> Vec<f64> {
            side.iter().map(|run| run.percentile_ns(*percentile)).collect()
        };
        let places = usable.places();
        let drift = estimate_drift((&each(&one), &places.0), (&each(&other), &places.1));
        let found = in_us(drawn.compare_percentile(*percentile, latency, noise)?.with_drift(drift, latency));
        Some(ComparedFigure { name, unit: "us", found, noise, each: (Vec::new(), Vec::new()) })
    };
    let figures = compared.iter().filter_map(figure).collect();
    for (percentile, short) in compared {
        let Some((a, b)) = drawn.percentile_values(*percentile) else { continue };
        let infinite: Vec<&str> = [(a, &first.name), (b, &second.name)]
            .into_iter()
            .filter(|(value, _)| value.is_infinite())
            .map(|(_, name)| name.as_str())
            .collect();
        if !infinite.is_empty() {
            let of = infinite.join(" and ");
            beyond.push(format!(
                "{metric} {short} of {of} lies among arrivals that were never sent: it is beyond every time"
            ));
        }
    }
    let responses = Responses {
        metric: metric.to_owned(),
        shifts: drawn.percentile_shifts(),
        merged: (merged(&one), merged(&other)),
    };
    (figures, Some(responses))
}

fn merged(all: &[ArrivalLatency]) -> ArrivalLatency {
    let mut sum = ArrivalLatency::new(all.first().map_or(Scale::Ns64, |run| run.ok.bucket_scale()));
    all.iter().for_each(|one| sum.merge(one));
    sum
}

fn in_us(mut found: Comparison) -> Comparison {
    found.means = (found.means.0 / 1e3, found.means.1 / 1e3);
    let difference = &mut found.difference;
    for value in [&mut difference.value, &mut difference.low, &mut difference.high, &mut found.shift] {
        *value /= 1e3;
    }
    found
}

/// Returns whether times of a metric say something of the server: not what commands wait for data.
fn is_judged(name: &str) -> bool {
    is_request(name) && !(is_beside(name) && name.ends_with(WAIT))
}

/// Names of the measured operations of a group's first run.
fn metrics(group: &Group) -> Vec<String> {
    let phase = group.runs.first().and_then(measured);
    phase.map_or(Vec::new(), |phase| {
        let used = phase
            .metrics
            .iter()
            .filter(|metric| metric.arrival_response().is_some() && is_judged(&metric.name));
        used.map(|metric| metric.name.clone()).collect()
    })
}

/// Response times of a metric, of each run.
fn of_metric(runs: &[&RunDir], metric: &str) -> Vec<ArrivalLatency> {
    let of_run = |run: &&RunDir| {
        let phase = run.phases.iter().find(|phase| phase.name == "measure").or(run.phases.last())?;
        let names = run.run.metrics.get(&phase.name).map_or(&[][..], Vec::as_slice);
        let number = names.iter().position(|name| name == metric)?;
        Some(ArrivalLatency::from_response_times(&phase.totals, number))
            .filter(|arrivals| arrivals.count() > 0)
    };
    runs.iter().filter_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_all_runs() {
        // By turns: A B B A.
        assert_eq!(places_of(&[1, 4], &[2, 3]), (vec![0.0, 3.0], vec![1.0, 2.0]));
        // Runs that began at once share a place.
        assert_eq!(places_of(&[1, 1], &[1, 2]), (vec![0.0, 0.0], vec![0.0, 3.0]));
    }
}
