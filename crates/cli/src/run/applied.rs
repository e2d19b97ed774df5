//! The settings of `dyno run`, each with who set it, for `run.json`.

use super::lower::is_used;
use super::resolve::Resolved;
use crate::exit::Failure;
use crate::options::RunArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use dyno_config::settings::Settings;
use dyno_engine::Pacing;
use dyno_rundir::schema::Setting;
use dyno_types::secret::{mask_text, mask_value};
use dyno_workload::ycsb::known_properties;

/// Options of the workload: the properties that they set are recorded, and name them.
const OF_WORKLOAD: [&str; 7] =
    ["target", "records", "distribution", "fields", "field_length", "properties", "seed"];

/// Options that say where the result goes, what must hold of it, or how its target is reached: they shape no load.
const OF_RESULT: [&str; 16] = [
    "require",
    "strict",
    "out",
    "no_out",
    "json",
    "junit",
    "quiet",
    "web",
    "open",
    "password_from",
    "metrics",
    "remote_write",
    "remote_write_headers",
    "otlp",
    "otlp_headers",
    "push_interval",
];

/// Options of experiments, and of runs that are made by turns.
const OF_EXPERIMENTS: [&str; 5] = ["sets", "scale", "require_rate", "versus", "turns"];

/// Options of the open loop alone.
const OPEN: [&str; 5] = ["rate", "connections", "arrivals", "queue", "queue_age"];
/// Options of the closed loop alone.
const CLOSED: [&str; 2] = ["users", "think"];
/// Options of a load that is made.
const LOAD: [&str; 2] = ["load_batch", "load_pipeline"];

/// Every setting of the workload and of the load with its source: an option, a file, `-p` or `default`. All options are settings
/// but those that are named above. `matches`: what clap has found.
pub(super) fn settings_of(
    (args, matches): (&RunArgs, &ArgMatches),
    resolved: &Resolved,
) -> Result<Vec<Setting>, Failure> {
    let (job, load) = (resolved.measure_job()?, &resolved.spec.phases.load);
    let open = matches!(job.pacing, Pacing::Open { .. });
    let apart = [
        &OF_WORKLOAD[..],
        &OF_RESULT,
        &OF_EXPERIMENTS,
        if open { &CLOSED[..] } else { &OPEN },
        if args.no_load { &LOAD[..] } else { &[] },
    ]
    .concat();
    // What became of options whose value is chosen where none is given.
    let chosen = |id: &str| -> Option<String> {
        Some(match id {
            "users" | "connections" => job.users.to_string(),
            "duration" => seconds(job.end.duration_ns?),
            "warmup" => seconds(job.warmup_ns),
            "threads" => resolved.cores.len().to_string(),
            "wait" => if job.spin { "spin" } else { "sleep" }.to_owned(),
            "load_batch" => load.batch.to_string(),
            "load_pipeline" => load.pipeline.to_string(),
            _ => return None,
        })
    };
    let as_given = |id: &str| -> Option<String> {
        let values: Vec<String> =
            matches.get_raw(id)?.map(|value| value.to_string_lossy().into_owned()).collect();
        Some(mask_text(&values.join(",")))
    };
    let of = |option: &clap::Arg| {
        let (id, name) = (option.get_id().as_str(), option.get_long()?);
        let typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        Some(Setting {
            key: name.to_owned(),
            value: chosen(id).or_else(|| as_given(id))?,
            source: if typed { format!("--{name}") } else { "default".into() },
        })
    };
    let how = if open { ("open", "--rate") } else { ("closed", "default") };
    let mut list = vec![Setting { key: "loop".into(), value: how.0.into(), source: how.1.into() }];
    let command = RunArgs::augment_args(Command::new("run"));
    let options = command.get_arguments().filter(|option| !apart.contains(&option.get_id().as_str()));
    list.extend(options.filter_map(of));
    // A property may have an option's default.
    let is_default = |source: &str| {
        let id = source.strip_prefix("--").map(|name| name.replace('-', "_"));
        id.is_some_and(|id| matches.value_source(&id) == Some(ValueSource::DefaultValue))
    };
    list.extend(of_workload(&resolved.settings()).into_iter().map(|one| match is_default(&one.source) {
        true => Setting { source: "default".into(), ..one },
        false => one,
    }));
    Ok(list)
}

fn of_workload(settings: &Settings) -> Vec<Setting> {
    // Documents of one's own have none of YCSB's properties.
    let ycsb = settings.get("dyno.template").is_none();
    let defaults = known_properties().iter().filter(|_| ycsb).map(|p| (p.name, p.default));
    let list = settings.provenance(defaults, mask_value).into_iter();
    // The number of operations shapes the key space of a workload that inserts, if one is given.
    let used = list.filter(|p| is_used(&p.key) && (p.key != "operationcount" || p.value != "0"));
    used.map(|p| Setting { key: p.key, value: p.value, source: p.source }).collect()
}

fn seconds(ns: u64) -> String {
    format!("{}s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    /// Settings of `dyno run` with these words.
    fn settings(words: &[&str]) -> Vec<Setting> {
        let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        let args = RunArgs::from_arg_matches(&matches).unwrap();
        let resolved = Resolved::from_args(&args).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        settings_of((&args, &matches), &resolved).unwrap()
    }

    /// A value of an option that is not its default, and what it needs beside it.
    fn typed(id: &str) -> (&'static str, &'static [&'static str]) {
        match id {
            "workload" => ("b", &[]),
            "distribution" => ("uniform", &[]),
            "properties" => ("fieldcount=3", &[]),
            "duration" | "think" | "warmup" | "timeout" | "drain" | "monitor_interval" => ("3s", &[]),
            "queue_age" => ("3s", &["--rate", "5"]),
            "interval" => ("100ms", &[]),
            "arrivals" => ("constant", &["--rate", "5"]),
            "queue" | "connections" => ("3", &["--rate", "5"]),
            "client" => ("official", &[]),
            "cores" => ("0", &[]),
            "wait" => ("spin", &[]),
            "stamps" => ("client", &[]),
            "prometheus" => ("redis=http://127.0.0.1:9121", &[]),
            _ => ("3", &[]),
        }
    }

    #[test]
    fn every_option_is_a_setting_with_its_source() {
        let command = RunArgs::augment_args(Command::new("run"));
        let apart = [&OF_RESULT[..], &OF_EXPERIMENTS].concat();
        let mut seen = 0;
        for option in command.get_arguments() {
            let id = option.get_id().as_str();
            let Some(name) = option.get_long().filter(|_| !apart.contains(&id)) else { continue };
            let (value, beside) = typed(id);
            let flag = format!("--{name}");
            let mut words = vec![flag.as_str()];
            if option.get_action().takes_values() {
                words.push(value);
            }
            words.extend(beside);
            let all = settings(&words);
            let sources = [flag.as_str(), "-p", "command line"];
            let of_workload = OF_WORKLOAD.contains(&id);
            let is_it = |one: &&Setting| match of_workload {
                true => sources.contains(&one.source.as_str()) || one.source.starts_with(&flag),
                false => one.key == name && one.source == flag,
            };
            assert!(all.iter().any(|one| is_it(&one)), "{words:?} is not recorded: {all:?}");
            seen += 1;
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn options_that_are_not_typed_are_defaults() {
        let all = settings(&["--users", "4"]);
        let of = |key: &str| {
            let found = all.iter().find(|one| one.key == key);
            found.map(|one| (one.value.as_str(), one.source.as_str()))
        };
        assert_eq!((of("users"), of("think")), (Some(("4", "--users")), Some(("0s", "default"))));
        assert_eq!(
            (of("no-pin"), of("no-monitor"), of("reload")),
            (Some(("false", "default")), Some(("false", "default")), Some(("false", "default")))
        );
        assert_eq!((of("dyno.seed"), of("workload")), (Some(("1", "default")), Some(("a", "default"))));
        assert_eq!((of("monitor-interval"), of("rate"), of("out")), (Some(("1s", "default")), None, None));
    }
}
