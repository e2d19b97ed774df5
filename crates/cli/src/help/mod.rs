//! Help: the commands in groups, and examples of each.

mod examples;
pub mod mistakes;

use clap::Command;
use examples::EXAMPLES;

/// Groups of commands, in the order in which help lists them, each command with what it is for.
const GROUPS: [(&str, &[(&str, &str)]); 7] = [
    (
        "Measure",
        &[
            ("run", "Measure a target, or carry out an experiment"),
            ("record", "Record the traffic of your own applications"),
            ("replay", "Send it once more, and compare the replies"),
            ("learn", "Make a workload that behaves like it"),
            ("top", "Watch a server alone, one line a second"),
            ("clean", "Remove what runs have loaded into a database"),
            ("selftest", "Check the engine against queueing theory"),
        ],
    ),
    (
        "Experiment",
        &[
            ("init", "Write a commented experiment to begin with"),
            ("presets", "List presets, or print one as a file"),
            ("plan", "Print cells, order and duration; nothing is touched"),
            ("status", "Print how far an experiment is, and its table"),
            ("resume", "Go on after an interruption or a crash"),
            ("stop", "End an experiment, or remove what a crash has left"),
            ("logs", "What an experiment says that a pod conducts"),
            ("fetch", "Bring the results of such an experiment here"),
            ("sample", "Print documents of your own workload"),
        ],
    ),
    (
        "Understand",
        &[
            ("list", "Runs and experiments: how far they are, what came of them"),
            ("report", "Summary, page or Markdown of a run directory"),
            ("explain", "The maximum, what limits it, whether the laws hold"),
            ("compare", "Is B better than A? Intervals and a verdict"),
            ("history", "One figure over many runs, and where it changed"),
        ],
    ),
    ("Prove", &[("prove", "Prove an ingest rate with copies, or a failover without loss")]),
    (
        "Share",
        &[
            ("serve", "A local page of all runs, live and compared"),
            ("export", "CSV, Parquet, a spreadsheet, or others' formats"),
            ("import", "Make run directories of other tools' results"),
            ("merge", "Merge runs made side by side, exactly"),
            ("grafana", "Write dashboards for Grafana"),
        ],
    ),
    (
        "Drop-in for",
        &[
            ("ycsb", "YCSB: load, run, shell"),
            ("sysbench-mongodb", "sysbench-mongodb: configuration, data, transaction"),
            ("pocdriver", "POCDriver: flags and reports"),
            ("memtier", "memtier_benchmark: flags and reports"),
            ("redis-benchmark", "redis-benchmark: flags and reports"),
            ("valkey-benchmark", "valkey-benchmark: flags and reports"),
            ("wsf", "Workload Services Framework: Mongo-YCSB cases and KPIs"),
            ("bexhoma", "bexhoma: ycsb on Dragonfly and Redis"),
        ],
    ),
    (
        "Set-up",
        &[
            ("doctor", "Check this host for things that disturb measurements"),
            ("requests", "What pods have used, as requests of the next runs"),
            ("schema", "Print a JSON Schema"),
            ("completions", "Print the completions of a shell"),
            ("help", "Print this, or the help of a command"),
        ],
    ),
];

/// The list of commands, by groups.
fn groups() -> String {
    let width = GROUPS.iter().flat_map(|(_, of)| of.iter()).map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (group, commands) in GROUPS {
        out.push_str(&format!("{group}:\n"));
        for (name, about) in commands {
            out.push_str(&format!("  {name:width$}  {about}\n"));
        }
        out.push('\n');
    }
    out
}

/// The same command line, with commands in groups and examples behind the options of each.
pub fn with_groups(whole: Command) -> Command {
    let listed = format!(
        "{}Begin with `dyno run`: it measures a temporary Redis, or SQLite. `dyno help COMMAND` has examples.",
        groups()
    );
    let whole = whole.help_template("{about}\n\nUsage: {usage}{after-help}\n\nOptions:\n{options}");
    let whole = whole.after_help(listed);
    EXAMPLES.iter().fold(whole, |whole, (name, lines)| {
        whole.mut_subcommand(name, |command| {
            let before = command.get_after_help().map_or(String::new(), |text| format!("{text}\n\n"));
            let lines: Vec<String> = lines.iter().map(|line| format!("  $ dyno {name} {line}")).collect();
            let examples = format!("{before}Examples:\n{}", lines.join("\n"));
            command.after_help(examples)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    #[test]
    fn every_command_stands_in_one_group_on_a_short_line() {
        let whole = command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, of)| of.iter().map(|(name, _)| *name)).collect();
        for one in whole.get_subcommands().filter(|one| !one.is_hide_set()) {
            let times = listed.iter().filter(|name| **name == one.get_name()).count();
            assert_eq!(times, 1, "{}", one.get_name());
        }
        for name in listed.iter().filter(|name| **name != "help") {
            assert!(whole.find_subcommand(name).is_some(), "{name}");
        }
        assert!(groups().lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn every_example_can_be_typed() {
        for (name, lines) in EXAMPLES {
            assert!(lines.len() >= 3, "{name}");
            for line in *lines {
                let words = dyno_types::shell::split_words(line).unwrap();
                let typed = ["dyno", name].into_iter().map(str::to_owned).chain(words);
                let parsed = command().try_get_matches_from(typed.collect::<Vec<_>>());
                assert!(parsed.is_ok(), "dyno {name} {line}: {}", parsed.unwrap_err());
            }
        }
        let without = ["ycsb", "bexhoma", "help"];
        for one in command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            assert!(without.contains(&name) || EXAMPLES.iter().any(|(of, _)| *of == name), "{name}");
        }
    }
}
