//! `dyno explain`: what the maximum is, how sure that is, what limits it, and whether the laws hold.

mod show;
mod show_rates;

use crate::compare::gather;
use crate::exit::{Exit, Failure};
use crate::terminal;
use clap::Args;
use dyno_analysis::diagnose::{Finding, diagnose};
use dyno_analysis::laws::{
    Check, Group, Observed, Rates, Sweep, checks, factors_of_rates, factors_of_users, observe, observe_rate,
    rates, sweep,
};
use dyno_analysis::series::{Stability, stability};
use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;
use serde::Serialize;
use std::path::PathBuf;

/// `dyno explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A run is explained by itself: laws, stability, what limits it. An experiment whose cells differ in users is explained as a \
sweep, too: bounds, models, demands, and what other resources would change; one whose cells differ in rates by what is kept, \
how response times grow, and the capacity.")]
pub struct ExplainArgs {
    /// Run directories, or experiments
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Explain every run of an experiment, not only the sweep
    #[arg(long)]
    pub all: bool,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A run explained.
#[derive(Debug, Serialize)]
pub struct OfRun {
    /// Its directory.
    pub dir: String,
    /// Its title.
    pub title: String,
    /// What speaks against the run, by its verdict.
    pub verdict: Vec<String>,
    /// Users, throughput, times, resources; `None` where nothing succeeded.
    pub observed: Option<Observed>,
    /// The laws.
    pub laws: Vec<Check>,
    /// Seconds in each interval of `stability`.
    pub step_s: u64,
    /// When the first interval of `stability` begins, seconds after the warm-up: later than 0 where records are missing.
    pub from_s: u64,
    /// Levels, period, drift of its throughput.
    pub stability: Option<Stability>,
    /// What limits it.
    pub findings: Vec<Finding>,
    /// What cannot be said, and why.
    pub missing: Vec<String>,
}

/// A sweep over users explained.
#[derive(Debug, Serialize)]
pub struct OfSweep {
    /// What its cells have in common.
    pub what: String,
    /// The analysis.
    pub sweep: Sweep,
}

/// A sweep over rates explained.
#[derive(Debug, Serialize)]
pub struct OfRates {
    /// What its cells have in common.
    pub what: String,
    /// The analysis.
    pub rates: Rates,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// Runs.
    pub runs: Vec<OfRun>,
    /// Sweeps over users.
    pub sweeps: Vec<OfSweep>,
    /// Sweeps over rates.
    pub rates: Vec<OfRates>,
}

/// `dyno explain`.
pub fn explain(args: &ExplainArgs) -> Result<Exit, Failure> {
    let mut explained = Explained { runs: Vec::new(), sweeps: Vec::new(), rates: Vec::new() };
    for dir in &args.dirs {
        let side = gather::side(dir, gather::Take::All)?;
        side.warnings.iter().for_each(|warning| terminal::warn(warning));
        let single = side.groups.len() == 1 && side.groups[0].runs.len() == 1;
        let users = along(&side.groups, factors_of_users);
        let by_users = users
            .into_iter()
            .filter_map(|(what, runs)| Some(OfSweep { what, sweep: sweep(&runs, args.seed)? }));
        let by_users: Vec<OfSweep> = by_users.collect();
        let along_rates = along(&side.groups, factors_of_rates).into_iter();
        let by_rates: Vec<OfRates> =
            along_rates.filter_map(|(what, runs)| Some(OfRates { what, rates: rates(&runs)? })).collect();
        let no_sweep = by_users.is_empty() && by_rates.is_empty();
        explained.sweeps.extend(by_users);
        explained.rates.extend(by_rates);
        if args.all || single || no_sweep {
            for run in side.groups.iter().flat_map(|group| &group.runs) {
                explained.runs.push(of_run(run)?);
            }
        }
    }
    match args.json {
        true => {
            let text =
                serde_json::to_string_pretty(&explained).map_err(|e| Failure::Internal(e.to_string()))?;
            terminal::out(&format!("{text}\n"));
        }
        false => terminal::out(&show::text(&explained)),
    }
    Ok(Exit::Ok)
}

/// Runs of groups that differ in nothing but the `factors` that set what is swept, by what they have in common.
fn along(
    groups: &[gather::Group],
    factors: for<'a> fn(&[Group<'a>]) -> Vec<&'a str>,
) -> Vec<(String, Vec<Observed>)> {
    let observed: Vec<Vec<Observed>> =
        groups.iter().map(|group| group.runs.iter().filter_map(observe_rate).collect()).collect();
    let rows: Vec<Group<'_>> =
        groups.iter().zip(&observed).map(|(group, runs)| Group { levels: &group.levels, runs }).collect();
    let factors = factors(&rows);
    let mut lines: Vec<(String, Vec<Observed>)> = Vec::new();
    for (group, found) in groups.iter().zip(observed.iter().cloned()) {
        let what = group.without(&factors);
        match lines.iter_mut().find(|(known, _)| *known == what) {
            Some((_, all)) => all.extend(found),
            None => lines.push((what, found)),
        }
    }
    lines
}

fn of_run(run: &RunDir) -> Result<OfRun, Failure> {
    let recording = Recording::open(&run.path)?;
    let observed = observe(run);
    let course = run.course()?;
    let stability = stability(&course.values);
    let mut missing = Vec::new();
    if recording.is_none() {
        missing.push("no monitors: nothing can be said of the server's and the host's resources".to_owned());
    }
    if stability.is_none() {
        missing.push(format!(
            "{} whole intervals of {} s: levels need 5 or more, an interval of the mean 10; 10 checkpoint periods are better",
            course.values.len(),
            course.step_s
        ));
    }
    missing.extend(course.missing());
    if observed.is_none() {
        let ok = run.phases.iter().any(|phase| phase.totals.ok() > 0);
        let why = if ok { "times are not known" } else { "no operation succeeded" };
        missing.push(format!("{why}: there is nothing to hold against a law"));
    }
    Ok(OfRun {
        dir: run.path.display().to_string(),
        title: run.summary.as_ref().map_or(String::new(), |summary| summary.title.clone()),
        verdict: run.summary.as_ref().map_or(Vec::new(), |summary| {
            summary.verdict.reasons.iter().map(|reason| reason.text.clone()).collect()
        }),
        laws: observed.as_ref().map(checks).unwrap_or_default(),
        findings: diagnose(run, recording.as_ref()),
        observed,
        step_s: course.step_s,
        from_s: course.from_s,
        stability,
        missing,
    })
}
