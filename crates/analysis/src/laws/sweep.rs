//! What a sweep over users says: demands and their constancy, bounds, the model the data choose, where the curve bends, and
//! what would happen with other resources.

use super::observe::Observed;
use crate::queueing::{Bounds, Closed};
use crate::scalability::fit::Point;
use crate::scalability::{Model, choose, knee};
use serde::Serialize;

/// What one operation asks of a resource.
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
    /// Variation of `U / X` over the runs, as a share of its mean; below 0.15 the demand does not depend on load.
    pub variation: f64,
    /// Greatest utilisation of a server that was seen.
    pub utilisation: Option<f64>,
}

/// Something done more or less often for one operation: the forced flow law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Visits {
    /// What.
    pub name: String,
    /// How often for one operation, mean over the runs.
    pub visits: f64,
    /// Its variation over the runs as a share.
    pub variation: f64,
}

/// One number of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Users.
    pub users: f64,
    /// Runs.
    pub runs: usize,
    /// Mean throughput.
    pub throughput: f64,
    /// Mean response time, seconds.
    pub response_s: f64,
    /// `X (R + Z)` against the number of users, less 1.
    pub little: Option<f64>,
    /// Greatest throughput the asymptotes allow.
    pub bound: f64,
    /// Throughput by the chosen model.
    pub model: Option<f64>,
}

/// A prediction for other resources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// What is changed.
    pub change: String,
    /// Greatest throughput then, by the demands.
    pub limit: f64,
    /// What limits it then.
    pub bottleneck: String,
}

/// A fitted model in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Its name.
    pub model: &'static str,
    /// Its parameters by name.
    pub parameters: Vec<(&'static str, f64)>,
    /// Root mean square error, operations per second.
    pub rmse: f64,
    /// Akaike's corrected criterion.
    pub aicc: Option<f64>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Levels in order of users.
    pub levels: Vec<Level>,
    /// Total demand: the response time of one user, seconds.
    pub total_s: f64,
    /// Demand of the bottleneck: one by the plateau's throughput, seconds.
    pub bottleneck_s: f64,
    /// The number of users at which the asymptotes cross.
    pub saturation: f64,
    /// Greatest mean throughput, and its users.
    pub best: (f64, f64),
    /// Whether the sweep reaches a plateau: the levels beyond three times the saturation agree, or throughput no longer grows.
    pub plateau: bool,
    /// Demands by resource.
    pub demands: Vec<Demand>,
    /// Forced flow.
    pub visits: Vec<Visits>,
    /// Models, best first; empty with fewer than six numbers of users.
    pub fits: Vec<Fit>,
    /// 95 % interval of the users at the universal law's peak; infinite where there may be none.
    pub peak_interval: Option<(f64, f64)>,
    /// The peak, if the data support one.
    pub peak: Option<(f64, f64)>,
    /// Predictions go no further than this number of users.
    pub reach: f64,
    /// Knees: by distance from the chord, and by power.
    pub knees: (Option<f64>, Option<f64>),
    /// Predictions for other resources.
    pub what_if: Vec<WhatIf>,
}

fn mean(all: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = all.fold((0.0, 0usize), |(sum, count), one| (sum + one, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Standard deviation by mean.
fn variation(all: &[f64]) -> f64 {
    let middle = mean(all.iter().copied());
    if all.len() < 2 || middle == 0.0 {
        return 0.0;
    }
    let squares: f64 = all.iter().map(|one| (one - middle).powi(2)).sum();
    (squares / (all.len() - 1) as f64).sqrt() / middle.abs()
}

/// A line through points by least squares with an intercept of at least 0: (intercept, slope).
fn line(points: &[(f64, f64)]) -> (f64, f64) {
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

fn levels(runs: &[&Observed]) -> Vec<Level> {
    let mut users: Vec<f64> = runs.iter().filter_map(|run| run.users).collect();
    users.sort_by(f64::total_cmp);
    users.dedup();
    users
        .into_iter()
        .map(|users| {
            let same: Vec<&&Observed> = runs.iter().filter(|run| run.users == Some(users)).collect();
            let implied: Vec<f64> = same.iter().filter_map(|run| run.implied_users).collect();
            Level {
                users,
                runs: same.len(),
                throughput: mean(same.iter().map(|run| run.throughput)),
                response_s: mean(same.iter().map(|run| run.response_s)),
                little: (!implied.is_empty()).then(|| mean(implied.into_iter()) / users - 1.0),
                bound: 0.0,
                model: None,
            }
        })
        .collect()
}

/// Analyses closed-loop runs that differ in users; `None` with fewer than two numbers of users, or a think time that is not
/// the same in all.
pub fn sweep(runs: &[Observed], seed: u64) -> Option<Sweep> {
    let closed: Vec<&Observed> = runs.iter().filter(|run| run.users.is_some()).collect();
    let think_s = closed.first()?.think_s;
    if closed.iter().any(|run| run.think_s != think_s) {
        return None;
    }
    let mut levels = levels(&closed);
    if levels.len() < 2 {
        return None;
    }
    // With few users the client's part is its own work; with many they queue there, too.
    let least = levels.first()?.users;
    let client_s = mean(closed.iter().filter(|run| run.users == Some(least)).map(|run| run.client_s));
    // One user meets no queue: its time is the total demand. Of more users, the least is an upper bound of it.
    let total_s = levels.iter().map(|level| level.response_s).fold(f64::INFINITY, f64::min);
    let best =
        levels.iter().map(|level| (level.throughput, level.users)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    // The plateau by the mean of what lies well beyond the crossing: the maximum of noisy runs is too high.
    let first = (total_s + think_s + client_s) * best.0;
    let beyond: Vec<f64> = levels.iter().filter(|l| l.users >= 3.0 * first).map(|l| l.throughput).collect();
    let plateau = if beyond.is_empty() { best.0 } else { mean(beyond.iter().copied()) };
    // How the rest of the demand is spread does not matter to the asymptotes.
    let rest = (total_s - 1.0 / plateau).max(0.0);
    let system = Closed { demands: vec![1.0 / plateau], think: think_s + client_s + rest };
    for level in &mut levels {
        let Bounds { throughput, .. } = system.asymptotic(level.users);
        level.bound = throughput.1;
    }
    let points: Vec<Point> = closed
        .iter()
        .filter_map(|run| Some(Point { users: run.users?, throughput: run.throughput }))
        .collect();
    let choice = choose(&points, seed);
    let mut fits = Vec::new();
    if let Some(choice) = &choice {
        for level in &mut levels {
            let best = &choice.fitted[0];
            level.model = Some(best.model.throughput(&best.parameters, level.users));
        }
        fits = choice
            .fitted
            .iter()
            .map(|fit| Fit {
                model: fit.model.name(),
                parameters: Model::names(fit.model).iter().copied().zip(fit.parameters.clone()).collect(),
                rmse: fit.rmse,
                aicc: fit.aicc,
            })
            .collect();
    }
    let knees = knee::knees(&points);
    let demands = demands(&closed);
    let grows = levels.last().is_some_and(|last| last.users == best.1);
    Some(Sweep {
        total_s,
        bottleneck_s: 1.0 / plateau,
        saturation: system.saturation(),
        best,
        plateau: !beyond.is_empty() || !grows,
        visits: visits(&closed),
        fits,
        peak_interval: choice.as_ref().and_then(|c| Some(c.universal.as_ref()?.peak_users)),
        peak: choice.as_ref().and_then(|choice| choice.peak),
        reach: levels.last().map_or(0.0, |last| 2.0 * last.users),
        knees: (knees.kneedle, knees.power),
        what_if: what_if(&demands),
        levels,
        demands,
    })
}

fn demands(runs: &[&Observed]) -> Vec<Demand> {
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
        let (background, demand_s) = line(&points);
        let servers = found[0].1.servers;
        let most = points.iter().map(|(_, busy)| *busy).fold(0.0, f64::max);
        Some(Demand {
            name: name.to_owned(),
            demand_s,
            background,
            servers,
            variation: variation(&each),
            utilisation: servers.filter(|n| *n > 0.0).map(|n| most / n),
        })
    };
    let mut all: Vec<Demand> = names.into_iter().filter_map(of).collect();
    all.sort_by(|a, b| b.utilisation.unwrap_or(0.0).total_cmp(&a.utilisation.unwrap_or(0.0)));
    all
}

fn visits(runs: &[&Observed]) -> Vec<Visits> {
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
            Visits { name: name.to_owned(), visits: mean(each.iter().copied()), variation: variation(&each) }
        })
        .collect()
}

/// Twice each resource: the new limit, and what sets it. Only demands that do not depend on load predict anything.
fn what_if(demands: &[Demand]) -> Vec<WhatIf> {
    let per_server = |demand: &Demand, times: f64| {
        demand.servers.filter(|_| demand.demand_s > 0.0).map(|n| demand.demand_s / (n * times))
    };
    // The host's CPU is the sum of the others.
    let steady: Vec<&Demand> = demands
        .iter()
        .filter(|d| d.variation < 0.15 && d.servers.is_some() && d.name != "host CPU")
        .collect();
    let limit = |doubled: Option<&str>| {
        let loads = steady.iter().filter_map(|demand| {
            let times = if doubled == Some(demand.name.as_str()) { 2.0 } else { 1.0 };
            Some((per_server(demand, times)?, demand.name.as_str()))
        });
        loads.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let Some((now, bottleneck)) = limit(None) else { return Vec::new() };
    let mut all = vec![WhatIf { change: "as it is".into(), limit: 1.0 / now, bottleneck: bottleneck.into() }];
    for demand in &steady {
        if let Some((load, bottleneck)) = limit(Some(&demand.name)) {
            let change = format!("twice the {}", demand.name);
            all.push(WhatIf { change, limit: 1.0 / load, bottleneck: bottleneck.into() });
        }
    }
    all
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
