//! `dyno compare` and `dyno history`: runs of the same thing are repetitions, and the unit of every statistic.

pub mod gather;
mod history;
mod metrics;
mod noise;
mod settings;

use crate::exit::{Exit, Failure};
use crate::{pages, price, terminal};
use clap::{Args, ValueEnum};
use dyno_analysis::compare::Conclusion;
use dyno_report::comparison::Pairing;
use dyno_report::comparison::markdown::markdown;
use dyno_report::comparison::text::text;
use dyno_report::html::comparison::comparison_page;
use gather::{Group, Side};
use std::path::PathBuf;

pub use history::{HistoryArgs, history};
pub use settings::what as what_was_run;

/// Per cent of throughput that matter.
const MARGIN: f64 = 2.0;

/// Per cent of a latency that matter.
const LATENCY_MARGIN: f64 = 5.0;

/// Seed of the resampling.
const SEED: u64 = 1;

/// A text that is no margin.
#[derive(Debug, thiserror::Error)]
#[error("expected per cent, from 0 to below 100")]
struct NoShare;

/// A margin, per cent.
fn share(text: &str) -> Result<f64, NoShare> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..100.0).contains(value));
    value.ok_or(NoShare)
}

/// What ends with exit code 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A figure is worse
    Worse,
    /// A figure is better or worse
    Different,
    /// A figure is worse, or nothing can be said of it
    Unclear,
}

/// `dyno compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A side is a run directory, an experiment's directory, or a folder of run directories that are repetitions of each other.\n\
Experiments are compared cell by cell. With --by FACTOR one experiment is enough: its levels are compared with the first.")]
pub struct CompareArgs {
    /// What to compare: the first is the baseline
    #[arg(required = true, value_name = "DIR")]
    pub sides: Vec<PathBuf>,
    /// Compare the levels of a factor within one experiment
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Relative difference of throughput that matters, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN, value_parser = share)]
    pub margin: f64,
    /// Relative difference of latencies that matters, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = LATENCY_MARGIN, value_parser = share)]
    pub latency_margin: f64,
    /// Exit with code 4 on this
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// The sides are the same thing: keep what differs as the noise floor of this environment and database
    #[arg(long)]
    pub noise_floor: bool,
    /// Price of an hour of everything that takes part, such as server=0.34,client=0.17
    #[arg(long, value_name = "ROLE=PRICE,...")]
    pub price: Option<String>,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    /// What to make of it
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to a file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write one page that works offline, beside what is printed
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Forms of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Verdicts in words and tables
    #[default]
    Text,
    /// One page that works offline
    Html,
    /// The same tables as Markdown
    Md,
    /// Everything that was found
    Json,
}

/// `dyno compare`.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let price = args.price.as_deref().map(price::per_hour).transpose()?;
    let mut sides: Vec<Side> =
        args.sides.iter().map(|path| gather::side(path, gather::Take::Usable)).collect::<Result<_, _>>()?;
    if args.by.is_none() {
        gather::tell_apart(&mut sides);
    }
    for warning in sides.iter().flat_map(|side| &side.warnings) {
        terminal::warn(warning);
    }
    for (at, path) in args.sides.iter().enumerate() {
        let same = |other: &PathBuf| {
            other.canonicalize().ok().is_some_and(|one| path.canonicalize().ok() == Some(one))
        };
        if args.sides[..at].iter().any(same) {
            let words = "is compared with itself: the same runs on both sides say nothing about noise";
            terminal::warn(&format!("{} {words}", path.display()));
        }
    }
    let pairs = pairs(args, &sides)?;
    let floors = noise::Floors::read();
    let all = pairings(args, price, &pairs, &floors);
    if args.noise_floor {
        let kept = floors.keep(&pairs, &all)?;
        terminal::note(&format!("noise floor kept in {}", kept.display()));
    }
    let left_out: Vec<String> = sides.iter().flat_map(|side| side.warnings.iter().cloned()).collect();
    if let Some(path) = &args.html {
        pages::write(path, &comparison_page(&all, &left_out))?;
    }
    let made = match if args.json { FormatArg::Json } else { args.format } {
        FormatArg::Text => text(&all),
        FormatArg::Html => comparison_page(&all, &left_out),
        FormatArg::Md => markdown(&all),
        FormatArg::Json => {
            let text = serde_json::to_string_pretty(&all)?;
            format!("{text}\n")
        }
    };
    pages::put(&made, args.out.as_deref())?;
    Ok(exit(args.fail_on, &all))
}

/// The page of a comparison of directories with the usual margins, as `dyno serve` shows it.
pub fn page(sides: &mut [Side]) -> Result<String, Failure> {
    let args = CompareArgs::usual();
    gather::tell_apart(sides);
    let pairs = pairs(&args, sides)?;
    let left_out: Vec<String> = sides.iter().flat_map(|side| side.warnings.iter().cloned()).collect();
    Ok(comparison_page(&pairings(&args, None, &pairs, &noise::Floors::read()), &left_out))
}

impl CompareArgs {
    /// What holds where nothing is said.
    fn usual() -> Self {
        CompareArgs {
            sides: Vec::new(),
            by: None,
            margin: MARGIN,
            latency_margin: LATENCY_MARGIN,
            fail_on: None,
            noise_floor: false,
            price: None,
            seed: SEED,
            format: FormatArg::Text,
            json: false,
            out: None,
            html: None,
        }
    }
}

fn pairings(
    args: &CompareArgs,
    price: Option<f64>,
    pairs: &[(String, &Group, &Group)],
    floors: &noise::Floors,
) -> Vec<Pairing> {
    let one = |(cell, first, second): &(String, &Group, &Group)| {
        let (figures, responses, beyond) = metrics::compare(args, price, first, second, &floors.of(first));
        Pairing {
            cell: cell.clone(),
            first: first.name.clone(),
            second: second.name.clone(),
            figures,
            responses,
            settings: gather::settings(first, second),
            environment: gather::environment(first, second),
            warnings: gather::warnings(first, second).into_iter().chain(beyond).collect(),
        }
    };
    pairs.iter().map(one).collect()
}

fn exit(fail_on: Option<FailOn>, all: &[Pairing]) -> Exit {
    let bad = |conclusion: Conclusion| match (fail_on, conclusion) {
        (None, _) => false,
        (Some(_), Conclusion::Worse) => true,
        (Some(FailOn::Different), Conclusion::Better) => true,
        (Some(FailOn::Unclear), Conclusion::Unclear(_)) => true,
        _ => false,
    };
    let conclusions =
        || all.iter().flat_map(|pairing| &pairing.figures).map(|figure| figure.found.conclusion);
    if conclusions().any(bad) {
        return Exit::Threshold;
    }
    match conclusions().next() {
        None => Exit::Invalid,
        Some(_) => Exit::Ok,
    }
}

/// Which groups stand beside each other.
fn pairs<'a>(args: &CompareArgs, sides: &'a [Side]) -> Result<Vec<(String, &'a Group, &'a Group)>, Failure> {
    if let Some(factor) = &args.by {
        return by_factor(factor, sides);
    }
    let [first, others @ ..] = sides else { return Ok(Vec::new()) };
    if others.is_empty() {
        let words = "nothing to compare with: give two directories or more, or --by FACTOR";
        return Err(Failure::Usage(format!("{}: {words}", first.name)));
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
            let keys = |side: &Side| side.groups.iter().map(Group::key).collect::<Vec<_>>().join("; ");
            let (one, two) = (keys(first), keys(other));
            let words = format!("no cell in common: {} has {one}; {} has {two}", first.name, other.name);
            return Err(Failure::Usage(words));
        }
    }
    Ok(pairs)
}

/// Each level of a factor beside the first, where all other levels are the same.
fn by_factor<'a>(factor: &str, sides: &'a [Side]) -> Result<Vec<(String, &'a Group, &'a Group)>, Failure> {
    let [side] = sides else {
        return Err(Failure::Usage(format!("--by {factor}: goes with one experiment")));
    };
    let factors = || side.groups.iter().flat_map(|group| group.levels.iter().map(|(name, _)| name.as_str()));
    if !factors().any(|name| name == factor) {
        let hint = dyno_types::suggest::hint(factor, factors());
        let mut known: Vec<&str> = factors().collect();
        known.sort_unstable();
        known.dedup();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        return Err(Failure::Usage(format!(
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
