//! `dyno history`: one figure over many runs, and where its level changed.

use super::gather::{self, Group, begin_of};
use clap::Args;
use dyno_analysis::ThresholdFigure;
use dyno_analysis::compare::history::{FEWEST, LevelStep, find_level_steps};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::RunDir;
use dyno_rundir::schema::{Phase, Trust};
use dyno_types::units::{Change, Rate, ShownLatency, Significant, counted};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// `dyno history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Run directories, folders of them, or experiments, in any order: runs are put in order of their beginning
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The figure: throughput, errors, or a percentile of an operation's response time such as p99(read)
    #[arg(long, value_name = "FIGURE", default_value = "throughput")]
    pub figure: String,
    /// Relative change that matters, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub margin: f64,
    /// Exit with code 4 if the last level is worse than the one before it
    #[arg(long)]
    pub fail_on_worse: bool,
    /// Seed of the permutation test
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The unit of throughput.
const THROUGHPUT: &str = "1/s";

/// One run's figure.
#[derive(serde::Serialize)]
struct HistoryPoint {
    started: String,
    dir: String,
    value: f64,
}

/// Runs of one cell, or of the same title and database.
#[derive(serde::Serialize)]
struct HistoryLine {
    what: String,
    points: Vec<HistoryPoint>,
    steps: Vec<StepShown>,
}

#[derive(serde::Serialize)]
struct StepShown {
    first_run: String,
    before: f64,
    after: f64,
    p: f64,
    better: bool,
}

/// Names of the operations that a phase has response times of.
fn operations(phase: &Phase) -> impl Iterator<Item = String> + '_ {
    phase.metrics.iter().filter(|metric| metric.response.is_some()).map(|metric| metric.name.to_lowercase())
}

/// `dyno history`.
pub fn history(args: &HistoryArgs) -> Result<Exit, Failure> {
    let figure = ThresholdFigure::parse(&args.figure.to_lowercase());
    let figure = figure.map_err(|e| Failure::usage(format!("--figure {}: {}", args.figure, e.why)))?;
    // Of all other figures less is better.
    let grows = figure.unit() == THROUGHPUT;
    let claims = figure.claims();
    let mut lines: Vec<(String, Vec<RunDir>)> = Vec::new();
    let sides = args.dirs.iter().map(|dir| gather::read(dir, gather::Take::Usable));
    let sides = sides.collect::<Result<Vec<_>, _>>()?;
    // Runs that cannot be used are left out, with a word, whether they are named one by one or lie in a folder.
    let unnamed = sides.iter().find(|side| side.groups.is_empty() && side.warnings.is_empty());
    let none = sides.first().filter(|_| sides.iter().all(|side| side.groups.is_empty()));
    if let Some(side) = unnamed.or(none) {
        return Err(side.empty());
    }
    for side in sides {
        side.warnings.iter().for_each(|warning| terminal::warn(warning));
        for Group { levels, runs, .. } in side.groups {
            for run in runs {
                let title = run.summary.as_ref().map_or(String::new(), |s| s.title.clone());
                let levels: Vec<String> =
                    levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
                let product = run.run.database.split(' ').next().unwrap_or("").to_owned();
                let what = format!("{title}, {product} {}", levels.join(" ")).trim().to_owned();
                match lines.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, all)) => all.push(run),
                    None => lines.push((what, vec![run])),
                }
            }
        }
    }
    let (mut shown, mut recorded) = (Vec::new(), BTreeSet::new());
    for (what, mut runs) in lines {
        runs.sort_by_cached_key(begin_of);
        let mut points = Vec::new();
        for run in &runs {
            let summary = run.summary.as_ref();
            let summary = summary.filter(|summary| summary.verdict.trust_in(&claims) != Trust::Invalid);
            let value =
                summary.and_then(|s| s.measured_phase()).and_then(|phase| figure.measured_value(phase));
            let dir = run.path.display().to_string();
            points.extend(value.map(|value| HistoryPoint { started: run.run.started.clone(), dir, value }));
        }
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let found = find_level_steps(&values, args.margin / 100.0, args.seed);
        let step = |step: &LevelStep| StepShown {
            first_run: points[step.at].dir.clone(),
            before: step.before,
            after: step.after,
            p: step.p,
            better: (step.after > step.before) == grows,
        };
        let steps = found.iter().map(step).collect();
        if points.len() < runs.len() {
            let without = runs.len() - points.len();
            let message = format!(
                "{what}: {without} of {} runs have no {}, or an invalid one",
                runs.len(),
                args.figure
            );
            terminal::warn(&message);
        }
        recorded.extend(
            runs.iter().filter_map(|run| run.summary.as_ref()?.measured_phase()).flat_map(operations),
        );
        shown.push(HistoryLine { what, points, steps });
    }
    if shown.iter().all(|line| line.points.is_empty()) {
        let known: Vec<String> = recorded.into_iter().collect();
        let message = format!("no run has this figure; operations that were recorded: {}", known.join(", "));
        return Err(Failure::usage(format!("--figure {}: {message}", args.figure)));
    }
    match args.json {
        true => {
            let text = serde_json::to_string_pretty(&shown)?;
            terminal::out(&format!("{text}\n"));
        }
        false => shown.iter().for_each(|line| terminal::out(&text(line, &args.figure, figure.unit()))),
    }
    let worse = shown.iter().any(|line| line.steps.last().is_some_and(|step| !step.better));
    Ok(if args.fail_on_worse && worse { Exit::Threshold } else { Exit::Ok })
}

/// A figure with its unit.
fn format_figure(value: f64, unit: &str) -> String {
    match unit {
        THROUGHPUT => format!("{}/s", Rate(value)),
        "%" => format!("{} %", Significant(value)),
        _ => ShownLatency((value * 1e3).round() as u64).to_string(),
    }
}

fn text(line: &HistoryLine, figure: &str, unit: &str) -> String {
    let mut out = format!("{}: {figure} of {}\n", line.what, counted(line.points.len(), "run"));
    let greatest = line.points.iter().map(|p| p.value).fold(f64::MIN_POSITIVE, f64::max);
    for point in &line.points {
        let step = line.steps.iter().find(|step| step.first_run == point.dir);
        let mark = step.map_or(String::new(), |step| {
            let word = if step.better { "better" } else { "worse" };
            let change = Change(step.after / step.before);
            format!("  <- {word} from here on: {change} (p = {:.3})", step.p)
        });
        let bar = "#".repeat((point.value / greatest * 30.0).round() as usize);
        let second = point.started.split('.').next().unwrap_or(&point.started);
        out += &format!("  {second:<20}  {:>12}  {bar:<30}{mark}\n", format_figure(point.value, unit));
    }
    if line.points.len() < 2 * FEWEST {
        out += &format!("  fewer than {} runs: no change can be told from noise\n", 2 * FEWEST);
    } else if line.steps.is_empty() {
        out += "  no change\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_unit() {
        let unit =
            |figure: &str| ThresholdFigure::parse(figure).map(|figure| figure.unit()).unwrap_or_default();
        assert_eq!(format_figure(1_234.4, unit("throughput")), "1,234/s");
        // A latency is in microseconds.
        assert_eq!(format_figure(1_500.0, unit("p99(read)")), "1.50 ms");
        assert_eq!(format_figure(0.25, unit("errors")), "0.250 %");
    }
}
