//! `dyno explain`: what the maximum is, how sure that is, what limits it, and whether the laws hold.

mod explained;
mod figures;
mod show;
mod show_rates;

use crate::compare::gather;
use clap::Args;
use dyno_analysis::diagnose::{Diagnosis, diagnose_run, unreported_figures};
use dyno_analysis::laws::{
    Observed, ObservedGroup, analyse_rates, analyse_sweep, check_laws, factors_of_rates, factors_of_users,
    for_their_course, observe_rate, observe_run,
};
use dyno_analysis::series::judge_stability;
use dyno_analysis::{IntervalFigures, steadiness_of_responses};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;
use explained::{ExplainedParts, OfRates, OfRun, OfSweep, OutsideSweep};
use std::path::PathBuf;

/// `dyno explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A run is explained by itself: laws, stability, what limits it. An experiment whose cells differ in users is explained as a \
sweep, too: bounds, models, demands, and what other resources would change; one whose cells differ in rates by what is kept, \
how response times grow, and the capacity. Runs that were meant to last four times as long as most, or longer, are no points \
of a sweep: each is explained by itself.")]
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

/// `dyno explain`.
pub fn explain(args: &ExplainArgs) -> Result<Exit, Failure> {
    let mut explained =
        ExplainedParts { runs: Vec::new(), sweeps: Vec::new(), rates: Vec::new(), alone: Vec::new() };
    for dir in &args.dirs {
        let side = gather::side(dir, gather::Take::All)?;
        side.warnings.iter().for_each(|warning| terminal::warn(warning));
        let single = side.groups.len() == 1 && side.groups[0].runs.len() == 1;
        // A run that was made for its course is no point of a sweep.
        let observed: Vec<Vec<Observed>> =
            side.groups.iter().map(|group| group.runs.iter().filter_map(observe_rate).collect()).collect();
        let seen: Vec<ObservedGroup<'_>> = side
            .groups
            .iter()
            .zip(&observed)
            .map(|(group, runs)| ObservedGroup { levels: &group.levels, runs })
            .collect();
        let long = for_their_course(&seen);
        let points: Vec<(&gather::Group, &ObservedGroup<'_>)> = side
            .groups
            .iter()
            .zip(&seen)
            .zip(&long)
            .filter(|(_, long)| !**long)
            .map(|(one, _)| one)
            .collect();
        let users = along(&points, factors_of_users);
        let of_rates = along(&points, factors_of_rates);
        let (mut by_users, mut by_rates) = (Vec::new(), Vec::new());
        // True for each point that belongs to a sweep.
        let mut used = vec![false; points.len()];
        for SweepRuns { what, runs, members } in users {
            let Some(sweep) = analyse_sweep(&runs, args.seed) else { continue };
            members
                .iter()
                .for_each(|at| used[*at] |= points[*at].1.runs.iter().any(|run| run.users.is_some()));
            by_users.push(OfSweep { what, sweep });
        }
        for SweepRuns { what, runs, members } in of_rates {
            let Some(rates) = analyse_rates(&runs) else { continue };
            members
                .iter()
                .for_each(|at| used[*at] |= points[*at].1.runs.iter().any(|run| run.rate.is_some()));
            by_rates.push(OfRates { what, rates });
        }
        let no_sweep = by_users.is_empty() && by_rates.is_empty();
        let left = points.iter().zip(&used).filter(|(_, used)| !no_sweep && !args.all && !**used);
        explained.alone.extend(left.filter_map(|((group, seen), _)| alone(group, seen.runs)));
        explained.sweeps.extend(by_users);
        explained.rates.extend(by_rates);
        let every = args.all || single || no_sweep;
        let shown = side.groups.iter().zip(&long).filter(|(_, long)| every || **long);
        for run in shown.flat_map(|(group, _)| &group.runs) {
            explained.runs.push(of_run(run)?);
        }
    }
    match args.json {
        true => {
            let text = serde_json::to_string_pretty(&explained)?;
            terminal::out(&format!("{text}\n"));
        }
        false => terminal::prose(&show::text(&explained)),
    }
    Ok(Exit::Ok)
}

/// Runs that no sweep has in.
fn alone(group: &gather::Group, runs: &[Observed]) -> Option<OutsideSweep> {
    let mean = |of: fn(&Observed) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (!runs.is_empty()).then(|| OutsideSweep {
        what: group.key(),
        runs: runs.len(),
        throughput: mean(|run| run.throughput),
        response_s: mean(|run| run.response_s),
    })
}

/// Runs along what is swept.
struct SweepRuns {
    what: String,
    runs: Vec<Observed>,
    /// Positions of their groups.
    members: Vec<usize>,
}

/// Runs of groups that differ in nothing but the `factors` that set what is swept, by what they have in common.
fn along(
    points: &[(&gather::Group, &ObservedGroup<'_>)],
    factors: for<'a> fn(&[ObservedGroup<'a>]) -> Vec<&'a str>,
) -> Vec<SweepRuns> {
    let rows: Vec<ObservedGroup<'_>> = points.iter().map(|(_, seen)| **seen).collect();
    let factors = factors(&rows);
    let mut lines: Vec<SweepRuns> = Vec::new();
    for (at, (group, seen)) in points.iter().enumerate() {
        let what = group.without(&factors);
        match lines.iter_mut().find(|line| line.what == what) {
            Some(line) => {
                line.runs.extend_from_slice(seen.runs);
                line.members.push(at);
            }
            None => lines.push(SweepRuns { what, runs: seen.runs.to_vec(), members: vec![at] }),
        }
    }
    lines
}

fn of_run(run: &RunDir) -> Result<OfRun, Failure> {
    let recording = Recording::open(&run.path)?;
    let observed = observe_run(run);
    let history = run.interval_history()?;
    let stability = judge_stability(&history.values);
    let responses = steadiness_of_responses(&IntervalFigures {
        responses_s: &history.responses_s,
        step_s: history.step_s as f64,
        from_s: history.from_s as f64,
        ..IntervalFigures::default()
    });
    let mut missing = Vec::new();
    if recording.is_none() {
        missing.push("no monitors: nothing can be said of the server's and the host's resources".to_owned());
    }
    missing.extend(unreported_figures(run, recording.as_ref()));
    if stability.is_none() {
        missing.push(format!(
            "{} whole intervals of {} s: levels need 5 or more, an interval of the mean 10; 10 checkpoint periods are better",
            history.values.len(),
            history.step_s
        ));
    }
    missing.extend(history.describe_missing());
    if observed.is_none() {
        let ok = run.phases.iter().any(|phase| phase.totals.count_ok() > 0);
        let why = if ok { "times are not known" } else { "no operation succeeded" };
        missing.push(format!("{why}: there is nothing to hold against a law"));
    }
    let Diagnosis { change, findings } = diagnose_run(run, recording.as_ref());
    Ok(OfRun {
        change,
        watched: recording.is_some(),
        dir: run.path.display().to_string(),
        title: run.summary.as_ref().map_or(String::new(), |summary| summary.title.clone()),
        verdict: run.summary.as_ref().map_or(Vec::new(), |summary| {
            summary.verdict.reasons.iter().map(|reason| reason.text.clone()).collect()
        }),
        laws: observed.as_ref().map(check_laws).unwrap_or_default(),
        findings,
        observed,
        step_s: history.step_s,
        from_s: history.from_s,
        stability,
        responses: responses.as_ref().map(|(answer, _)| *answer),
        responses_found: responses.and_then(|(_, found)| found),
        missing,
    })
}
