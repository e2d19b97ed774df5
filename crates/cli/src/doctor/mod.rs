//! `dyno doctor`: what this host is, what of it speaks against good measurements, how two hosts or days differ, and how
//! this host compares with a recipe's list.

mod show;

use clap::Args;
use dyno_experiment::{ListedJournal, ListedState, listed};
use dyno_frontend::environment::read_system;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_monitor::environment::{EnvironmentFacts, PROFILES, Places, find_profile, list_findings};
use dyno_rundir::system::System;
use serde_json::json;
use std::path::{Path, PathBuf};

/// `dyno doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Compare two environments: run directories, experiment directories, or files with the output of `dyno doctor --json`
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "profile")]
    pub diff: Option<Vec<PathBuf>>,
    /// Check this host against the hardware, kernel and BIOS list of a recipe: wsf/bkm-icx, bkm-spr, bkm-m6i.32xlarge,
    /// bkm-m6i.16xlarge
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Show every fact in full
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The command.
pub fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    if let Some([first, second]) = args.diff.as_deref() {
        return diff(first, second, args.json);
    }
    let read = EnvironmentFacts::read(&Places::default());
    if let Some(name) = &args.profile {
        return against(name, &read, args.json);
    }
    let found = list_findings(&read);
    let unknown = read.unknown();
    let system = System::new(read.facts, read.volatile);
    if args.json {
        let found: Vec<_> = found
            .iter()
            .map(|f| {
                json!({ "severity": f.severity.name(), "check": f.check, "found": f.found, "reason": f.reason,
                        "source": f.source, "command": f.command })
            })
            .collect();
        let unknown: Vec<_> =
            unknown.iter().map(|(fact, told_by)| json!({ "fact": fact, "told_by": told_by })).collect();
        let left: Vec<_> =
            left().iter().map(|one| json!({ "journal": one.journal, "things": one.pending })).collect();
        print_json(&json!({ "system": system, "findings": found, "unknown": unknown, "left": left }));
    } else {
        terminal::out(&show::findings(&found));
        terminal::out(&show::left(&left()));
        match args.all || terminal::has_details() {
            true => {
                terminal::out(&show::facts(&system, args.all));
                terminal::out(&show::unknown(&unknown));
            }
            false => terminal::out(&show::left_out(&system, unknown.len())),
        }
    }
    Ok(Exit::Ok)
}

/// What dynos that were killed have left here.
fn left() -> Vec<ListedJournal> {
    listed().into_iter().filter(|one| one.state == ListedState::Left).collect()
}

fn print_json(value: &serde_json::Value) {
    terminal::out(&format!("{value:#}\n"));
}

fn against(name: &str, read: &EnvironmentFacts, json: bool) -> Result<Exit, Failure> {
    let Some(profile) = find_profile(name) else {
        let hint = dyno_types::suggest::hint(name, PROFILES.iter().map(|profile| profile.name));
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        return Err(Failure::usage(format!("--profile {name}: known are {}{hint}", known.join(", "))));
    };
    let checked = profile.check(read);
    if json {
        let items: Vec<_> = checked
            .iter()
            .map(|c| {
                json!({ "part": c.part, "item": c.item, "wanted": c.wanted, "found": c.found, "result": show::word(c.result) })
            })
            .collect();
        print_json(&json!({ "profile": profile.name, "items": items }));
    } else {
        terminal::out(&show::profile(profile, &checked));
    }
    let differs = checked.iter().any(|c| c.result == dyno_monitor::environment::Match::Different);
    Ok(if differs { Exit::Threshold } else { Exit::Ok })
}

fn diff(first: &Path, second: &Path, json: bool) -> Result<Exit, Failure> {
    let differences = read_system(first)?.list_differences(&read_system(second)?);
    if json {
        print_json(&json!({ "equal": differences.is_empty(), "differences": differences }));
    } else {
        terminal::out(&show::differences(&differences));
    }
    Ok(if differences.is_empty() { Exit::Ok } else { Exit::Threshold })
}
