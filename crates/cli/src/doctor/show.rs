//! Output of `dyno doctor` for people.

use dyno_experiment::ListedJournal;
use dyno_monitor::environment::{Checked, Finding, Match, RecipeProfile};
use dyno_rundir::system::{Difference, System};
use dyno_types::units::counted;

/// Values longer than this are cut unless everything is wanted.
const SHORT: usize = 80;

/// Groups whose facts are shown only with `--all`.
const LONG: [&str; 3] = ["mitigations", "interrupts", "limits"];

/// Facts by group, a hash first.
pub fn facts(system: &System, all: bool) -> String {
    let mut out = format!("\nenvironment {}\n", system.hash);
    let groups = system.facts.iter().map(|group| ("", group));
    let volatile = system.volatile.iter().map(|group| (" (changes by itself)", group));
    let mut left_out = 0;
    for (what, (group, facts)) in groups.chain(volatile) {
        if !all && LONG.contains(&group.as_str()) {
            left_out += facts.len();
            continue;
        }
        out.push_str(&format!("\n{group}{what}\n"));
        let width = facts.keys().map(String::len).max().unwrap_or(0).min(36);
        for (name, value) in facts {
            let cut: String = value.chars().take(SHORT).collect();
            let shown = if all || cut.len() == value.len() { value.clone() } else { format!("{cut}...") };
            out.push_str(&format!("  {name:<width$}  {shown}\n"));
        }
    }
    if left_out > 0 {
        out.push_str(&format!("\n{left_out} facts more with --all\n"));
    }
    out
}

/// A line for the facts that are not shown.
pub fn left_out(system: &System, unknown: usize) -> String {
    let facts: usize = system.facts.values().chain(system.volatile.values()).map(|group| group.len()).sum();
    format!("\nenvironment {}\n{facts} facts with -v, {unknown} are unknown\n", system.hash)
}

/// Lists what is not known here, and what would tell it.
pub fn unknown(facts: &[(String, &str)]) -> String {
    let mut out = String::from("\nunknown\n");
    for (fact, told_by) in facts {
        out.push_str(&format!("  {fact}: {told_by}\n"));
    }
    out
}

/// Lists what dynos that were killed have left.
pub fn left(all: &[ListedJournal]) -> String {
    let line = |one: &ListedJournal| {
        format!("  {}: {} to be put back\n", one.journal.display(), counted(one.pending, "thing"))
    };
    match all.is_empty() {
        true => String::new(),
        false => format!(
            "\nleft by a dyno that was killed; `dyno stop --left` puts it back\n{}",
            all.iter().map(line).collect::<String>()
        ),
    }
}

/// Findings, those that matter most first.
pub fn findings(found: &[Finding]) -> String {
    if found.is_empty() {
        return "Nothing that was read speaks against good measurements.\n".into();
    }
    let mut out = format!("{}\n", counted(found.len(), "finding"));
    for finding in found {
        out.push_str(&format!("  {:<6}  {}: {}\n", finding.severity.name(), finding.check, finding.found));
        out.push_str(&format!("          {} [{}]\n", finding.reason, finding.source));
        out.push_str(&format!("          {}\n", finding.command));
    }
    out
}

/// Result of an item's comparison, in one word.
pub fn word(result: Match) -> &'static str {
    match result {
        Match::Same => "same",
        Match::Different => "different",
        Match::Unknown => "unknown",
    }
}

/// A recipe's list against this host.
pub fn profile(profile: &RecipeProfile, checked: &[Checked]) -> String {
    let mut out = format!("{}: {}\n\n", profile.name, profile.message);
    for c in checked {
        let found = c.found.as_deref().unwrap_or("-");
        out.push_str(&format!(
            "  {:<9}  {:<8}  {:<32}  {:<36}  {found}\n",
            word(c.result),
            c.part,
            c.item,
            c.wanted
        ));
    }
    let count = |result: Match| checked.iter().filter(|c| c.result == result).count();
    out.push_str(&format!(
        "\n{} as listed, {} different, {} cannot be read here\n",
        count(Match::Same),
        count(Match::Different),
        count(Match::Unknown)
    ));
    out
}

/// Facts that differ, both sides one below the other.
pub fn differences(found: &[Difference]) -> String {
    if found.is_empty() {
        return "no difference\n".into();
    }
    let mut out = String::new();
    for one in found {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(unknown)".into());
        out.push_str(&format!("{}.{}\n", one.group, one.name));
        out.push_str(&format!("  - {}\n  + {}\n", side(&one.first), side(&one.second)));
    }
    out.push_str(&format!("\n{} facts differ\n", found.len()));
    out
}
