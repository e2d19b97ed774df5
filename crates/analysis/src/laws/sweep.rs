//! Conclusions from a sweep over users: demands and their constancy, bounds, the model the data choose, where the curve bends,
//! and what would happen with other resources.

use super::demand::{Demand, Visits, estimate_demands, estimate_visits};
use super::observe::Observed;
use super::uncertain::{Asymptotes, LevelMeans, estimate_intervals};
use super::what_if::{WhatIf, what_if};
use crate::interval::mean_interval;
use crate::scalability::fit::{Fitted, ModelChoice, Point};
use crate::scalability::{Model, choose_model, knee};
use crate::series::mean;
use serde::Serialize;
use std::collections::BTreeMap;

/// One number of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserLevel {
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
    /// Half of the 95 % interval of the mean throughput over the level's runs; `None` of one run.
    pub half_width: Option<f64>,
    /// Greatest throughput the asymptotes allow.
    pub bound: f64,
    /// Balanced job bounds of throughput: least and greatest of separable systems with these demands whose stations are single
    /// servers. Stations of several servers do more than the greatest.
    pub balanced: (f64, f64),
    /// True if throughput lies above the asymptotes by more than its interval: the demand depends on load.
    pub above: bool,
    /// Throughput by the chosen model.
    pub model: Option<f64>,
}

/// A fitted model in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Name.
    pub model: &'static str,
    /// Parameters by name.
    pub parameters: Vec<(&'static str, f64)>,
    /// 95 % intervals of the parameters over runs, of the chosen model and of the universal law; else none.
    pub intervals: Vec<(f64, f64)>,
    /// Root mean square error, operations per second.
    pub rmse: f64,
    /// Akaike's corrected criterion.
    pub aicc: Option<f64>,
}

/// Greatest throughput, as far as the measured levels show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Maximum {
    /// The chosen law has a peak, and no level contradicts it.
    Peak,
    /// Levels beyond the saturation agree.
    Plateau,
    /// The best level is the maximum: beyond it throughput falls, down to this level (users, operations per second).
    Fall(f64, f64),
    /// The best level lies above what the law makes of all levels, and none beyond it is clearly lower.
    Above,
    /// Throughput still grows at the last level.
    Growing,
    /// Runs of one level differ by more than levels do: the half-width of the best level's interval, as a share of its mean.
    Unsure(f64),
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Conclusion on the maximum.
    pub maximum: Maximum,
    /// Distance of the chosen law from the level that it fits worst, as a share of the level; `None` without a law.
    pub misfit: Option<f64>,
    /// Levels in order of users.
    pub levels: Vec<UserLevel>,
    /// Total demand: the least mean response time of all levels, seconds.
    pub total_s: f64,
    /// Demand of the bottleneck, seconds: one by the plateau's throughput, or by the greatest where there is a peak.
    pub bottleneck_s: f64,
    /// The number of users at which the asymptotes cross.
    pub saturation: f64,
    /// 95 % interval over runs of the peak's throughput where there is one, else of the greatest that the bottleneck allows.
    pub maximum_interval: Option<(f64, f64)>,
    /// 95 % interval of the crossing, over runs.
    pub saturation_interval: Option<(f64, f64)>,
    /// Greatest mean throughput, and its users.
    pub best: (f64, f64),
    /// True if the sweep reaches a plateau: the levels beyond three times the saturation agree, or throughput no longer grows.
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
    /// Runs that are invalid, and no points of it.
    pub left_out: usize,
    /// The least users whose level is within a twentieth of the best.
    pub near: f64,
    /// True if a law misses no level by more than 15 %, and no level lies beyond what it allows: only then its figures are told
    /// beside the levels.
    pub fits_all: bool,
}

fn levels(runs: &[&Observed]) -> Vec<UserLevel> {
    let mut users: Vec<f64> = runs.iter().filter_map(|run| run.users).collect();
    users.sort_by(f64::total_cmp);
    users.dedup();
    users
        .into_iter()
        .map(|users| {
            let same: Vec<&&Observed> = runs.iter().filter(|run| run.users == Some(users)).collect();
            let all: Vec<f64> = same.iter().map(|run| run.throughput).collect();
            let implied: Vec<f64> = same.iter().filter_map(|run| run.implied_users).collect();
            UserLevel {
                users,
                runs: same.len(),
                throughput: mean(same.iter().map(|run| run.throughput)),
                response_s: mean(same.iter().map(|run| run.response_s)),
                little: (!implied.is_empty()).then(|| mean(implied) / users - 1.0),
                half_width: mean_interval(&all).map(|found| found.half_width),
                bound: 0.0,
                balanced: (0.0, 0.0),
                above: false,
                model: None,
            }
        })
        .collect()
}

/// Runs of the same levels.
#[derive(Clone, Copy, Debug)]
pub struct ObservedGroup<'a> {
    /// The level of each factor: (factor, level).
    pub levels: &'a [(String, String)],
    /// Observed runs.
    pub runs: &'a [Observed],
}

/// Factors whose levels differ in the number of users while those of all other factors are the same: along them lies a sweep.
pub fn factors_of_users<'a>(groups: &[ObservedGroup<'a>]) -> Vec<&'a str> {
    factors_of(groups, |run| run.connections)
}

/// The same of the rate that was asked for.
pub fn factors_of_rates<'a>(groups: &[ObservedGroup<'a>]) -> Vec<&'a str> {
    factors_of(groups, |run| run.rate)
}

/// A run that was meant to last this many times as long as the others of its experiment is there for its course.
const LONG: f64 = 4.0;

/// Returns the groups that are no points of a sweep, because their runs were meant to last much longer than most: these were run
/// for the course of their throughput.
pub fn for_their_course(groups: &[ObservedGroup<'_>]) -> Vec<bool> {
    let planned =
        |group: &ObservedGroup<'_>| group.runs.iter().filter_map(|run| run.planned_s).reduce(f64::max);
    let mut all: Vec<f64> = groups.iter().filter_map(planned).collect();
    all.sort_by(f64::total_cmp);
    let Some(usual) = all.get(all.len().saturating_sub(1) / 2).copied() else {
        return vec![false; groups.len()];
    };
    groups.iter().map(|group| planned(group).is_some_and(|length| length >= LONG * usual)).collect()
}

fn factors_of<'a>(groups: &[ObservedGroup<'a>], by: fn(&Observed) -> Option<f64>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| group.levels) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let varies = |factor: &&str| {
        // For each combination of the other factors: levels of this one with users that were seen.
        let mut others: BTreeMap<String, Vec<(&str, f64)>> = BTreeMap::new();
        for group in groups {
            let (own, rest): (Vec<_>, Vec<_>) = group.levels.iter().partition(|(name, _)| name == factor);
            let Some((_, level)) = own.first() else { continue };
            let users = group.runs.iter().filter_map(|run| Some((level.as_str(), by(run)?)));
            others.entry(format!("{rest:?}")).or_default().extend(users);
        }
        others
            .values()
            .any(|all| all.iter().any(|one| all.iter().any(|other| one.0 != other.0 && one.1 != other.1)))
    };
    names.into_iter().filter(varies).collect()
}

/// Analyses closed-loop runs that differ in users; `None` with fewer than two numbers of users, or a think time that is not
/// the same in all.
pub fn analyse_sweep(runs: &[Observed], seed: u64) -> Option<Sweep> {
    let (invalid, closed): (Vec<&Observed>, Vec<&Observed>) =
        runs.iter().filter(|run| run.users.is_some()).partition(|run| run.invalid);
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
    // Of equals the one with the least users.
    let all = levels.iter().rev().map(|level| (level.throughput, level.users));
    let best = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let points: Vec<Point> = closed
        .iter()
        .filter_map(|run| Some(Point { users: run.users?, throughput: run.throughput }))
        .collect();
    let choice = choose_model(&points, seed);
    let peak = choice.as_ref().and_then(|choice| choice.peak);
    let means: Vec<LevelMeans> = levels.iter().map(|l| (l.users, l.throughput, l.response_s)).collect();
    let mut system = Asymptotes::from_levels(&means, think_s + client_s, peak.is_some());
    let chosen = choice.as_ref().map(|choice| &choice.fitted[0]);
    let sure = estimate_intervals(&closed, &points, chosen, &system, peak.is_some(), seed);
    let of_peak = choice.as_ref().filter(|choice| choice.peak.is_some());
    let of_peak = of_peak.and_then(|choice| Some(choice.chosen.as_ref()?.peak_throughput));
    let knees = knee::find_knees(&points);
    let demands = estimate_demands(&closed);
    let grows = levels.last().is_some_and(|last| last.users == best.1);
    let plateau = system.plateau || !grows;
    let limit = sure.map_or(1.0 / system.bottleneck_s, |sure| sure[0].1);
    let limit = of_peak.map_or(limit, |(_, most)| limit.max(most)) * (1.0 + SLACK);
    let maximum = maximum(&levels, limit, peak.is_some(), plateau);
    let mut maximum_interval = of_peak.or(sure.map(|sure| sure[0]));
    let mut saturation_interval = sure.map(|sure| sure[1]);
    if let Maximum::Fall(..) = maximum {
        // The mean of what falls is no bound: the best level is what the bottleneck can do.
        system = Asymptotes::from_levels(&means, think_s + client_s, true);
        let own = levels.iter().find(|level| level.users == best.1).and_then(|level| level.half_width);
        maximum_interval = own.map(|half| ((best.0 - half).max(0.0), best.0 + half));
        saturation_interval =
            estimate_intervals(&closed, &points, chosen, &system, true, seed).map(|sure| sure[1]);
    }
    bound(&mut levels, &system, choice.as_ref());
    let misses = levels.iter().filter_map(|level| Some((level.model? / level.throughput - 1.0).abs()));
    Some(Sweep {
        maximum,
        misfit: misses.reduce(f64::max),
        total_s: system.total_s,
        bottleneck_s: system.bottleneck_s,
        saturation: system.saturation_users(),
        maximum_interval,
        saturation_interval,
        best,
        plateau,
        visits: estimate_visits(&closed),
        fits: choice.as_ref().map(fits).unwrap_or_default(),
        peak_interval: choice.as_ref().and_then(|c| Some(c.universal.as_ref()?.peak_users)),
        peak,
        reach: levels.last().map_or(0.0, |last| 2.0 * last.users),
        left_out: invalid.len(),
        near: near(&levels, best.0),
        fits_all: fits_all(&levels, system.bottleneck_s, peak),
        knees: (knees.kneedle, knees.power),
        what_if: what_if(&demands, best.0),
        levels,
        demands,
    })
}

/// Runs of a level that differ by more than this share of their mean say nothing of the course over levels.
const TOO_WIDE: f64 = 0.25;

/// A level that is lower than the best by less than this share is no fall.
const FALL: f64 = 0.05;

/// A law that misses a level by more than this share of it is told by no figure.
const MISFIT: f64 = 0.15;

/// The least users whose level is within a twentieth of the best.
fn near(levels: &[UserLevel], best: f64) -> f64 {
    levels.iter().find(|level| level.throughput >= best * (1.0 - FALL)).map_or(0.0, |level| level.users)
}

/// Returns whether the chosen law describes every level, and its greatest throughput none less than was measured.
fn fits_all(levels: &[UserLevel], bottleneck_s: f64, peak: Option<(f64, f64)>) -> bool {
    let most = peak.map_or(1.0 / bottleneck_s, |(_, throughput)| throughput) * (1.0 + SLACK);
    levels.iter().all(|level| {
        let misses = level.model.map(|model| (model / level.throughput - 1.0).abs());
        misses.is_some_and(|share| share <= MISFIT)
            && level.throughput - level.half_width.unwrap_or(0.0) <= most
            && !level.above
    })
}

/// Concludes on the maximum; `limit` is the greatest throughput that the law allows, with its interval.
fn maximum(levels: &[UserLevel], limit: f64, has_peak: bool, plateau: bool) -> Maximum {
    let noise = |level: &UserLevel| level.half_width.unwrap_or(UNKNOWN * level.throughput);
    let place = (0..levels.len()).max_by(|a, b| levels[*a].throughput.total_cmp(&levels[*b].throughput));
    let Some((best, beyond)) = place.map(|at| (&levels[at], &levels[at + 1..])) else {
        return Maximum::Growing;
    };
    let share = noise(best) / best.throughput;
    if share > TOO_WIDE {
        return Maximum::Unsure(share);
    }
    let least = best.throughput - noise(best);
    let lowest = beyond.iter().min_by(|a, b| a.throughput.total_cmp(&b.throughput));
    let fallen = |low: &&UserLevel| {
        low.throughput + noise(low) < least && low.throughput < best.throughput * (1.0 - FALL)
    };
    let (fall, above) = (lowest.filter(fallen), least > limit);
    match fall {
        _ if has_peak && !above => Maximum::Peak,
        Some(low) => Maximum::Fall(low.users, low.throughput),
        None if beyond.is_empty() && (above || !plateau) => Maximum::Growing,
        None if above => Maximum::Above,
        None if plateau => Maximum::Plateau,
        None => Maximum::Growing,
    }
}

/// Slack of a bound, as a share: what measuring at the edges of a run gives.
const SLACK: f64 = 0.01;
/// Variation of a level of one run where no model says it, as a share.
const UNKNOWN: f64 = 0.05;

/// Puts bounds and the chosen model beside what was measured.
fn bound(levels: &mut [UserLevel], system: &Asymptotes, choice: Option<&ModelChoice>) {
    let chosen = choice.map(|choice| &choice.fitted[0]);
    for level in levels {
        (level.bound, level.balanced) = system.throughput_bounds(level.users);
        level.model = chosen.map(|best| best.model.throughput_at(&best.parameters, level.users));
        let spread = chosen.map_or(UNKNOWN * level.bound, |best| 2.0 * best.rmse);
        let least = level.throughput - level.half_width.unwrap_or(spread);
        level.above = least > level.bound * (1.0 + SLACK);
    }
}

fn fits(choice: &ModelChoice) -> Vec<Fit> {
    let intervals = |at: usize, model: Model| match (at, model) {
        (0, _) => choice.chosen.as_ref(),
        (_, Model::Universal) => choice.universal.as_ref(),
        _ => None,
    };
    let of = |(at, fit): (usize, &Fitted)| Fit {
        model: fit.model.name(),
        parameters: Model::parameter_names(fit.model).iter().copied().zip(fit.parameters.clone()).collect(),
        intervals: intervals(at, fit.model).map_or(Vec::new(), |all| all.parameters.clone()),
        rmse: fit.rmse,
        aicc: fit.aicc,
    };
    choice.fitted.iter().enumerate().map(of).collect()
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sweep_parts_tests.rs"]
mod parts;
