//! `dyno compare` and `dyno history`: runs of the same thing are repetitions, and the unit of every statistic.

mod args;
pub mod gather;
mod history;
mod metrics;
mod noise;
mod replays;
mod settings;

use crate::price;
use args::{ComparisonFormat, FailOn};
use dyno_analysis::compare::Conclusion;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{pages, terminal};
use dyno_report::comparison::junit::build_junit;
use dyno_report::comparison::markdown::render_markdown;
use dyno_report::comparison::text::render_comparisons;
use dyno_report::comparison::{Pairing, ReportLink, describe_sides};
use dyno_report::html::comparison::comparison_page;
use dyno_rundir::RunDir;
use gather::{ComparedSide, Group};
use std::path::{Path, PathBuf};

pub use args::CompareArgs;
pub use history::{HistoryArgs, history};
pub use settings::{RunTrait, RunTraits, differ, what as what_was_run};

/// `dyno compare`.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let price = args.price.as_deref().map(price::per_hour).transpose()?;
    let mut sides: Vec<ComparedSide> =
        args.sides.iter().map(|path| gather::side(path, gather::Take::Usable)).collect::<Result<_, _>>()?;
    let experiment = match (&args.by, &mut sides[..]) {
        (Some(factor), [side]) => Some(gather::name_by_level(side, factor)),
        // More sides than one are refused with what may be compared.
        (Some(_), _) => None,
        (None, sides) => {
            gather::tell_apart(sides);
            None
        }
    };
    let left_out = left_out(&sides);
    left_out.iter().for_each(|warning| terminal::warn(warning));
    for (at, path) in args.sides.iter().enumerate() {
        let same = |other: &PathBuf| {
            other.canonicalize().ok().is_some_and(|one| path.canonicalize().ok() == Some(one))
        };
        if args.sides[..at].iter().any(same) {
            let message = "is compared with itself: the same runs on both sides say nothing about noise";
            terminal::warn(&format!("{} {message}", path.display()));
        }
    }
    let pairs = pairs(args, &sides)?;
    let floors = noise::Floors::read();
    let beside = args.html.as_deref().or(args.out.as_deref()).and_then(Path::parent).unwrap_or(Path::new(""));
    let mut all = pairings(args, price, &pairs, &floors, &|run| pages::address_of_report(run, beside));
    all.iter_mut().for_each(|pairing| pairing.experiment.clone_from(&experiment));
    if args.noise_floor {
        let kept = floors.keep(&pairs, &all)?;
        terminal::note(&format!("noise floor kept in {}", kept.display()));
    }
    if let Some(path) = &args.html {
        pages::write(path, &comparison_page(&all, &left_out))?;
    }
    if let Some(path) = &args.junit {
        pages::write(path, &build_junit(&all, |conclusion| is_bad(args.fail_on, conclusion)).xml())?;
    }
    let made = match if args.json { ComparisonFormat::Json } else { args.format } {
        ComparisonFormat::Text => render_comparisons(&all),
        ComparisonFormat::Html => comparison_page(&all, &left_out),
        ComparisonFormat::Md => render_markdown(&all),
        ComparisonFormat::Json => {
            let text = serde_json::to_string_pretty(&all)?;
            format!("{text}\n")
        }
    };
    pages::put(&made, args.out.as_deref())?;
    Ok(exit(args.fail_on, &all))
}

/// Compares two folders of runs that were made by turns, with the usual margins, and prints what comes out.
pub fn compare_turns(sides: [PathBuf; 2], json: bool) -> Result<Exit, Failure> {
    compare(&CompareArgs { sides: sides.into(), json, ..CompareArgs::usual() })
}

/// The page of a comparison of directories with the usual margins, as `dyno serve` shows it. `address` is that of a run's report.
pub fn page(
    sides: &mut [ComparedSide],
    address: &dyn Fn(&Path) -> Option<String>,
) -> Result<String, Failure> {
    let args = CompareArgs::usual();
    gather::tell_apart(sides);
    let pairs = pairs(&args, sides)?;
    Ok(comparison_page(&pairings(&args, None, &pairs, &noise::Floors::read(), address), &left_out(sides)))
}

/// What is not compared: runs, and claims of others.
fn left_out(sides: &[ComparedSide]) -> Vec<String> {
    sides.iter().flat_map(|side| side.warnings.iter().chain(&side.in_part).cloned()).collect()
}

fn pairings(
    args: &CompareArgs,
    price: Option<f64>,
    pairs: &[(String, &Group, &Group)],
    floors: &noise::Floors,
    address: &dyn Fn(&Path) -> Option<String>,
) -> Vec<Pairing> {
    let reports = |group: &Group| -> Vec<ReportLink> {
        let link = |run: &RunDir| {
            let name = run.path.file_name().unwrap_or(run.path.as_os_str()).to_string_lossy().into_owned();
            Some(ReportLink { name, address: address(&run.path)? })
        };
        group.runs.iter().filter_map(link).collect()
    };
    let one = |(cell, first, second): &(String, &Group, &Group)| {
        let (figures, responses, mut beyond) =
            metrics::compare(args, price, first, second, &floors.of(first));
        let replays = replays::compare_replays(first, second);
        beyond.extend(replays.iter().flat_map(|replays| replays.warnings(&first.name, &second.name)));
        Pairing {
            experiment: None,
            cell: cell.clone(),
            first: first.name.clone(),
            second: second.name.clone(),
            figures,
            responses,
            replays,
            settings: gather::settings(first, second),
            environment: gather::environment(first, second),
            warnings: gather::warnings(first, second).into_iter().chain(beyond).collect(),
            about: match (first.runs.first(), second.runs.first()) {
                (Some(first), Some(second)) => describe_sides(first, second),
                _ => Vec::new(),
            },
            reports: (reports(first), reports(second)),
        }
    };
    pairs.iter().map(one).collect()
}

/// Returns whether the command fails on a conclusion.
fn is_bad(fail_on: Option<FailOn>, conclusion: Conclusion) -> bool {
    match (fail_on, conclusion) {
        (None, _) => false,
        (Some(_), Conclusion::Worse) => true,
        (Some(FailOn::Different), Conclusion::Better) => true,
        (Some(FailOn::Unclear), Conclusion::Unclear(_)) => true,
        _ => false,
    }
}

fn exit(fail_on: Option<FailOn>, all: &[Pairing]) -> Exit {
    let conclusions =
        || all.iter().flat_map(|pairing| &pairing.figures).map(|figure| figure.found.decision.conclusion);
    if conclusions().any(|conclusion| is_bad(fail_on, conclusion)) {
        return Exit::Threshold;
    }
    match conclusions().next() {
        None => Exit::Invalid,
        Some(_) => Exit::Ok,
    }
}

/// Pairs the groups that stand beside each other.
fn pairs<'a>(
    args: &CompareArgs,
    sides: &'a [ComparedSide],
) -> Result<Vec<(String, &'a Group, &'a Group)>, Failure> {
    if let Some(factor) = &args.by {
        return by_factor(factor, sides);
    }
    let [first, others @ ..] = sides else { return Ok(Vec::new()) };
    if others.is_empty() {
        let message = "nothing to compare with: give two directories or more, or --by FACTOR";
        return Err(Failure::usage(format!("{}: {message}", first.name)));
    }
    let mut pairs = Vec::new();
    for other in others {
        if let ([one], [two]) = (&first.groups[..], &other.groups[..]) {
            pairs.push((one.key(), one, two));
            continue;
        }
        let found = first.groups.iter().filter_map(|group| {
            let same = other.groups.iter().find(|candidate| candidate.key() == group.key())?;
            Some((group.key(), group, same))
        });
        let before = pairs.len();
        pairs.extend(found);
        if pairs.len() == before {
            let keys =
                |side: &ComparedSide| side.groups.iter().map(Group::key).collect::<Vec<_>>().join("; ");
            let (one, two) = (keys(first), keys(other));
            let message = format!("no cell in common: {} has {one}; {} has {two}", first.name, other.name);
            return Err(Failure::usage(message));
        }
    }
    Ok(pairs)
}

/// Each level of a factor beside the first, where all other levels are the same.
fn by_factor<'a>(
    factor: &str,
    sides: &'a [ComparedSide],
) -> Result<Vec<(String, &'a Group, &'a Group)>, Failure> {
    let [side] = sides else {
        return Err(Failure::usage(format!("--by {factor}: goes with one experiment")));
    };
    let factors = || side.groups.iter().flat_map(|group| group.levels.iter().map(|(name, _)| name.as_str()));
    if !factors().any(|name| name == factor) {
        let hint = dyno_types::suggest::hint(factor, factors());
        let mut known: Vec<&str> = factors().collect();
        known.sort_unstable();
        known.dedup();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        return Err(Failure::usage(format!(
            "--by {factor}: no factor of {}{hint}; factors: {known}",
            side.name
        )));
    }
    let mut pairs = Vec::new();
    let mut baselines: Vec<(String, &Group)> = Vec::new();
    for group in &side.groups {
        let rest = group.without(&[factor]);
        match baselines.iter().find(|(key, _)| *key == rest) {
            Some((_, first)) => pairs.push((rest, *first, group)),
            None => baselines.push((rest, group)),
        }
    }
    Ok(pairs)
}
