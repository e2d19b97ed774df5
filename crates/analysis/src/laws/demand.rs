//! Demands of one operation on each resource, and what is done for it, by regression over runs.

use super::observe::Observed;
use crate::series::mean;
use serde::Serialize;

/// Demand of one operation on a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// The resource.
    pub name: String,
    /// Busy server-seconds for one operation, by regression over the runs: the slope.
    pub demand_s: f64,
    /// Servers busy without load: the intercept.
    pub background: f64,
    /// Servers; `None` where that is not known.
    pub servers: Option<f64>,
    /// True if more cores make more servers of it.
    pub grows: bool,
    /// Variation of `U / X` over the runs, as a share of its mean; below 0.15 the demand does not depend on load.
    pub variation: f64,
    /// Greatest utilisation of a server that was seen.
    pub utilisation: Option<f64>,
}

/// Something done more or less often for one operation: the forced flow law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Visits {
    /// Activity.
    pub name: String,
    /// Visits for one operation, mean over the runs.
    pub visits: f64,
    /// Variation over the runs as a share.
    pub variation: f64,
}

pub(super) fn estimate_demands(runs: &[&Observed]) -> Vec<Demand> {
    let mut names: Vec<&str> = runs.iter().flat_map(|run| run.uses.iter().map(|u| u.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &str| -> Option<Demand> {
        let found = runs.iter().filter_map(|run| Some((run, run.uses.iter().find(|u| u.name == name)?)));
        let found: Vec<_> = found.collect();
        if found.len() < 2 {
            return None;
        }
        let points: Vec<(f64, f64)> = found.iter().map(|(run, used)| (run.throughput, used.busy)).collect();
        let each: Vec<f64> = points.iter().map(|(x, busy)| busy / x).collect();
        let (background, demand_s) = fit_line(&points);
        let (servers, grows) = (found[0].1.servers, found[0].1.grows);
        let most = points.iter().map(|(_, busy)| *busy).fold(0.0, f64::max);
        Some(Demand {
            name: name.to_owned(),
            demand_s,
            background,
            servers,
            grows,
            variation: coefficient_of_variation(&each),
            utilisation: servers.filter(|n| *n > 0.0).map(|n| most / n),
        })
    };
    let mut all: Vec<Demand> = names.into_iter().filter_map(of).collect();
    all.sort_by(|a, b| b.utilisation.unwrap_or(0.0).total_cmp(&a.utilisation.unwrap_or(0.0)));
    all
}

pub(super) fn estimate_visits(runs: &[&Observed]) -> Vec<Visits> {
    let mut names: Vec<&str> =
        runs.iter().flat_map(|run| run.rates.iter().map(|(name, _)| name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| {
            let each: Vec<f64> = runs
                .iter()
                .filter_map(|run| {
                    let rate = run.rates.iter().find(|(known, _)| known == name)?.1;
                    Some(rate / run.throughput)
                })
                .collect();
            Visits { name: name.to_owned(), visits: mean(&each), variation: coefficient_of_variation(&each) }
        })
        .collect()
}

/// Standard deviation by mean.
pub(super) fn coefficient_of_variation(all: &[f64]) -> f64 {
    let middle = mean(all);
    if all.len() < 2 || middle == 0.0 {
        return 0.0;
    }
    let squares: f64 = all.iter().map(|one| (one - middle).powi(2)).sum();
    (squares / (all.len() - 1) as f64).sqrt() / middle.abs()
}

/// A line through points by least squares with an intercept of at least 0: (intercept, slope).
pub(super) fn fit_line(points: &[(f64, f64)]) -> (f64, f64) {
    let (x, y) = (mean(points.iter().map(|p| p.0)), mean(points.iter().map(|p| p.1)));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let slope = if spread > 0.0 { both / spread } else { 0.0 };
    let intercept = y - slope * x;
    if intercept >= 0.0 && slope >= 0.0 && spread > 0.0 {
        return (intercept, slope);
    }
    let squares: f64 = points.iter().map(|p| p.0 * p.0).sum();
    (0.0, if squares > 0.0 { points.iter().map(|p| p.0 * p.1).sum::<f64>() / squares } else { 0.0 })
}
