//! Throughput for what it takes: a core of the server, and money.

use crate::comparison::format_number;
use dyno_analysis::interval::{MeanInterval, mean_interval};
use dyno_analysis::series::judge_stability;
use dyno_rundir::RunDir;
use dyno_rundir::schema::Phase;
use dyno_types::stats::mean;
use serde::Serialize;

/// A figure with half of its 95 % interval, where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostEfficiency {
    /// The figure.
    pub value: f64,
    /// Half of its interval.
    pub half_width: Option<f64>,
}

/// Operations per core-second of the server; of embedded stores, of the workers. `None` where neither was watched.
pub fn per_core(phase: &Phase) -> Option<f64> {
    let seen = phase.monitor.as_ref()?;
    let cores = seen.server.as_ref().or(seen.workers.as_ref())?.cpu_cores;
    (cores > 0.0).then(|| phase.throughput / cores)
}

/// Operations for a unit of the currency in which an hour costs `price`.
pub fn per_price(throughput: f64, price: f64) -> f64 {
    throughput * 3_600.0 / price
}

impl CostEfficiency {
    /// Of a figure of several runs; of one run without an interval.
    pub fn of_runs(all: &[f64]) -> Option<CostEfficiency> {
        let half_width = mean_interval(all).map(|found| found.half_width);
        Some(CostEfficiency { value: mean(all)?, half_width })
    }

    /// Of one run: as wide, for its size, as the interval of the run's throughput.
    fn of_run(value: f64, level: Option<&MeanInterval>) -> CostEfficiency {
        let level = level.filter(|level| level.mean > 0.0);
        CostEfficiency { value, half_width: level.map(|level| value * level.half_width / level.mean) }
    }

    /// `1,234 ± 56`.
    pub fn format_with_interval(&self) -> String {
        match self.half_width {
            Some(half) => format!("{} ± {}", format_number(self.value), format_number(half)),
            None => format_number(self.value),
        }
    }
}

/// The interval of a run's throughput within the run; `None` where its level changes.
pub fn throughput_interval(dir: &RunDir) -> Option<MeanInterval> {
    Some(judge_stability(&dir.interval_history().ok()?.values)?.steady?.interval)
}

/// Computes a run's worth for a core-second, where that is known, and for a unit of money, where a price is given. `level` is the
/// throughput's interval.
pub fn of_run(
    phase: &Phase,
    level: Option<&MeanInterval>,
    price: Option<f64>,
) -> Vec<(&'static str, &'static str, CostEfficiency)> {
    let core = per_core(phase).map(|value| ("Per core-second", "operations, server", value));
    let money = price.map(|price| ("Per currency unit", "operations", per_price(phase.throughput, price)));
    let all = core.into_iter().chain(money);
    all.map(|(name, what, value)| (name, what, CostEfficiency::of_run(value, level))).collect()
}

/// The same as lines of text; what is not known is said.
pub fn render_cost_efficiency(phase: &Phase, level: Option<&MeanInterval>, price: f64) -> String {
    let found = of_run(phase, level, Some(price));
    let mut out = String::new();
    if !found.iter().any(|(name, ..)| *name == "Per core-second") {
        out.push_str("per core-second: not known, the server was not watched\n");
    }
    for (name, what, worth) in found {
        let interval = if worth.half_width.is_some() { " (95 %)" } else { ", too short for an interval" };
        out.push_str(&format!(
            "{}: {} {what}{interval}\n",
            name.to_lowercase(),
            worth.format_with_interval()
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::schema::{Monitored, ProcessUse};

    #[test]
    fn intervals_are_as_wide_as_those_of_throughput() {
        let server = ProcessUse { cpu_cores: 2.0, ..ProcessUse::default() };
        let monitor = Monitored { server: Some(server), ..Monitored::default() };
        let facts = dyno_analysis::PhaseFacts { name: "measure".into(), seconds: 1.0, ..Default::default() };
        let empty = dyno_analysis::summarise_phase(
            facts,
            &[],
            &dyno_record::Totals::new(0, dyno_record::Scale::Ns64),
        );
        let blind = Phase { throughput: 1_000.0, ..empty };
        let phase = Phase { monitor: Some(monitor), ..blind.clone() };
        let level = MeanInterval { count: 10, mean: 900.0, deviation: 1.0, half_width: 90.0 };
        let found = of_run(&phase, Some(&level), Some(0.5));
        assert_eq!(found[0].2, CostEfficiency { value: 500.0, half_width: Some(50.0) });
        assert_eq!(found[1].2, CostEfficiency { value: 7_200_000.0, half_width: Some(720_000.0) });
        assert!(
            render_cost_efficiency(&blind, None, 0.5).contains("not known")
                && render_cost_efficiency(&blind, None, 0.5).contains("7,200,000")
        );
        assert_eq!(CostEfficiency::of_runs(&[]), None);
        assert_eq!(CostEfficiency::of_runs(&[4.0]), Some(CostEfficiency { value: 4.0, half_width: None }));
    }
}
