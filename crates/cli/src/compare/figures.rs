//! Which figures are compared.

use super::CompareArgs;
use super::gather::Group;
use super::noise::Floor;
use crate::exit::Failure;
use dyno_analysis::compare::{Comparison, Margin, compare as compare_values, compare_quantiles};
use dyno_record::Buckets;
use dyno_rundir::RunDir;
use dyno_rundir::schema::Phase;

/// One figure of two groups.
#[derive(Debug, serde::Serialize)]
pub struct Figure {
    /// Its name: `throughput`, `READ p99`.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// The comparison.
    #[serde(flatten)]
    pub found: Comparison,
    /// The noise floor it was held against, as a share; 0 if none is known.
    pub noise: f64,
}

/// Percentiles that are compared, where enough samples support them.
const PERCENTILES: [(f64, &str); 4] = [(50.0, "p50"), (95.0, "p95"), (99.0, "p99"), (99.9, "p99.9")];

/// Samples beyond a percentile that it needs.
const BEYOND: f64 = 100.0;

/// The sum of `role=price,role=price`, per hour.
pub fn price(text: &str) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for part in text.split(',') {
        let value = part.split_once('=').and_then(|(_, value)| value.trim().parse::<f64>().ok());
        match value.filter(|value| value.is_finite() && *value > 0.0) {
            Some(value) => sum += value,
            None => {
                let words = "expected ROLE=PRICE,... with prices above 0, such as server=0.34,client=0.17";
                return Err(Failure::Usage(format!("--price {part}: {words}")));
            }
        }
    }
    Ok(sum)
}

fn measured(run: &RunDir) -> Option<&Phase> {
    run.summary.as_ref()?.measured()
}

/// A figure of every run that has it; none unless all have.
fn each(group: &Group, figure: impl Fn(&Phase) -> Option<f64>) -> Option<Vec<f64>> {
    group.runs.iter().map(|run| measured(run).and_then(&figure)).collect()
}

/// Operations per core-second of the server; of embedded stores, of the workers.
fn per_core(phase: &Phase) -> Option<f64> {
    let seen = phase.monitor.as_ref()?;
    let cores = seen.server.as_ref().or(seen.workers.as_ref())?.cpu_cores;
    (cores > 0.0).then(|| phase.throughput / cores)
}

/// Compares everything that both groups have.
pub fn compare(
    args: &CompareArgs,
    price: Option<f64>,
    first: &Group,
    second: &Group,
    floor: &Floor,
) -> Vec<Figure> {
    let throughput = Margin { share: args.margin / 100.0, ..Margin::THROUGHPUT };
    let latency = Margin { share: args.latency_margin / 100.0, ..Margin::LATENCY };
    let mut figures = Vec::new();
    let mut values = |name: &str, unit, figure: &dyn Fn(&Phase) -> Option<f64>| {
        let (Some(one), Some(other)) = (each(first, figure), each(second, figure)) else { return };
        let noise = floor.of(name);
        let found = compare_values(&one, &other, throughput, noise, args.seed);
        figures.extend(found.map(|found| Figure { name: name.to_owned(), unit, found, noise }));
    };
    values("throughput", "ops/s", &|phase| Some(phase.throughput));
    values("throughput per core", "ops/core-s", &per_core);
    if let Some(price) = price {
        values("throughput per price", "ops/currency unit", &|phase| {
            Some(phase.throughput * 3_600.0 / price)
        });
    }
    for metric in metrics(first).into_iter().filter(|metric| metrics(second).contains(metric)) {
        let (one, other) = (responses(first, &metric), responses(second, &metric));
        let samples = |all: &[Buckets]| all.iter().map(Buckets::count).sum::<u64>() as f64;
        let fewest = samples(&one).min(samples(&other));
        for (percentile, short) in PERCENTILES {
            if fewest * (1.0 - percentile / 100.0) < BEYOND {
                continue;
            }
            let name = format!("{metric} {short}");
            let noise = floor.of(&name);
            let found = compare_quantiles(&one, &other, percentile, latency, noise, args.seed);
            figures.extend(found.map(|found| Figure { name, unit: "us", found: in_us(found), noise }));
        }
    }
    figures
}

fn in_us(mut found: Comparison) -> Comparison {
    found.means = (found.means.0 / 1e3, found.means.1 / 1e3);
    let difference = &mut found.difference;
    for value in [&mut difference.value, &mut difference.low, &mut difference.high, &mut found.shift] {
        *value /= 1e3;
    }
    found
}

/// Names of the measured operations of a group's first run.
fn metrics(group: &Group) -> Vec<String> {
    let phase = group.runs.first().and_then(measured);
    phase.map_or(Vec::new(), |phase| {
        let used =
            phase.metrics.iter().filter(|metric| metric.response.is_some() && metric.name != "CLEANUP");
        used.map(|metric| metric.name.clone()).collect()
    })
}

/// Response times of successful requests of a metric, one histogram a run.
fn responses(group: &Group, metric: &str) -> Vec<Buckets> {
    let of = |run: &RunDir| {
        let phase = run.phases.iter().find(|phase| phase.name == "measure").or(run.phases.last())?;
        let number = run.run.metrics.get(&phase.name)?.iter().position(|name| name == metric)?;
        phase.totals.ok_slot(number).map(|slot| slot.response.clone())
    };
    group.runs.iter().filter_map(of).collect()
}
