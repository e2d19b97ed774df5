//! The settings of `dyno run`, each with who set it, for `run.json`.

use super::resolve::Resolved;
use super::spec::is_used;
use crate::derived_options::DERIVED_OPTIONS;
use dyno_config::experiment::flags::RUN_FLAGS;
use dyno_config::experiment::recorded::recorded_values;
use dyno_config::experiment::{Experiment, Wait};
use dyno_config::settings::PropertySettings;
use dyno_config::values::Span;
use dyno_engine::{Job, Pacing};
use dyno_frontend::exit::Failure;
use dyno_rundir::schema::Setting;
use dyno_types::secret::mask_value;
use dyno_workload::ycsb::known_properties;

/// Keys that shape no load, or that YCSB's properties say.
const APART: [&str; 3] = ["require", "strict", "workload.ycsb.records"];

/// Keys of the open loop alone.
const OPEN: [&str; 5] = ["rate", "connections", "arrivals", "queue", "queue_age"];
/// Keys of the closed loop alone.
const CLOSED: [&str; 2] = ["users", "think"];

/// Every setting of the load and of the workload with its source: an option, a file, `-p` or `default`.
pub(super) fn settings_of(resolved: &Resolved) -> Result<Vec<Setting>, Failure> {
    let (run, job) = (&resolved.run, &resolved.job);
    let is_open = matches!(job.pacing, Pacing::Open { .. });
    let experiment = chosen(&run.experiment, job);
    let values = recorded_values(&run.tree, &experiment).map_err(Failure::internal)?;
    let is_recorded = |key: &str| {
        let other_loop = if is_open { &CLOSED[..] } else { &OPEN };
        let measured = key.strip_prefix("phases.measure.");
        (DERIVED_OPTIONS.iter().any(|one| one.key == key)
            || key.starts_with("monitors.prometheus.")
            || RUN_FLAGS.iter().any(|flag| flag.key == key))
            && !APART.contains(&key)
            && !measured.is_some_and(|key| other_loop.contains(&key))
            && (run.loads() || !key.starts_with("phases.load.") || key == "phases.load.when")
    };
    let how = if is_open { ("open", "--rate") } else { ("closed", "default") };
    let mut list = vec![Setting { key: "loop".into(), value: how.0.into(), source: how.1.into() }];
    list.extend(values.into_iter().filter(|one| is_recorded(&one.key)).map(|one| Setting {
        key: one.key,
        value: one.value,
        source: one.source.unwrap_or_else(|| "default".into()),
    }));
    list.extend(of_workload(&resolved.settings()));
    Ok(list)
}

/// The experiment with what was chosen where nothing was said.
fn chosen(experiment: &Experiment, job: &Job) -> Experiment {
    let mut experiment = experiment.clone();
    let measure = &mut experiment.phases.measure;
    measure.set_concurrency(job.users);
    measure.duration = job.end.duration_ns.map(Span);
    measure.warmup = Some(Span(job.warmup_ns));
    measure.think.get_or_insert(Span(0));
    experiment.client.threads = Some(job.cores.len());
    experiment.client.wait = if job.spin { Wait::Spin } else { Wait::Sleep };
    experiment
}

fn of_workload(settings: &PropertySettings) -> Vec<Setting> {
    // Documents of one's own have none of YCSB's properties.
    let ycsb = ["dyno.template", "dyno.recording"].iter().all(|key| settings.get(key).is_none());
    let defaults = known_properties().iter().filter(|_| ycsb).map(|p| (p.name, p.default));
    let list = settings.list_provenance(defaults, mask_value).into_iter();
    // The number of operations shapes the key space of a workload that inserts, if one is given.
    let used = list.filter(|p| is_used(&p.key) && (p.key != "operationcount" || p.value != "0"));
    used.map(|p| Setting { key: p.key, value: p.value, source: p.source }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RunArgs;
    use crate::run::spec::RunSpec;
    use clap::{Args, Command, FromArgMatches};

    /// Settings of `dyno run` with these words.
    fn settings(words: &[&str]) -> Vec<Setting> {
        let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        let args = RunArgs::from_arg_matches(&matches).unwrap();
        let run = RunSpec::from_args(&args).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        settings_of(&Resolved::new(run).unwrap_or_else(|e| panic!("{words:?}: {e}"))).unwrap()
    }

    /// A file of rows.
    const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/lab-short.csv");

    /// A file of commands.
    const LINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/commands.txt");

    /// A recording of ten seconds.
    const TRAFFIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/traffic.dyno");

    /// A recording that is a data set.
    const DATA_SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/data-set.dyno");

    /// A value of an option that is not its default, and what it needs beside it.
    fn typed(name: &str) -> (&'static str, &'static [&'static str]) {
        match name {
            "queue-age" => ("3s", &["--rate", "5"]),
            "rate" => ("5", &[]),
            "interval" => ("100ms", &[]),
            "arrivals" => ("constant", &["--rate", "5"]),
            "queue" | "connections" => ("3", &["--rate", "5"]),
            "client" => ("official", &[]),
            "cores" => ("0", &[]),
            "wait" => ("spin", &[]),
            "stamps" => ("client", &[]),
            "command-data" => (DATA, &["--command", "GET __field:test__"]),
            "command-file" => (LINES, &[]),
            "recording" => (TRAFFIC, &[]),
            "load-from" => (DATA_SET, &[]),
            "against" => ("redis://127.0.0.1:2", &["--recording", TRAFFIC]),
            "pace" => ("due", &["--recording", TRAFFIC]),
            "only" => ("reads", &["--recording", TRAFFIC]),
            "speed" | "from" | "to" | "include" | "yes-write" | "split" | "scale-ttl" => {
                ("3", &["--recording", TRAFFIC])
            }
            "command-ratio" | "command-keys" => ("3", &["--command", "GET a"]),
            _ => ("3", &[]),
        }
    }

    /// The value that is recorded of one that was typed.
    fn recorded<'a>(name: &str, value: &'a str) -> &'a str {
        match name {
            // A bare number counts seconds.
            "from" | "to" => "3s",
            "think" | "duration" | "warmup" | "timeout" | "drain" | "monitor-interval" => "3s",
            // No cores are chosen before the target is known, and no thread spins without one.
            "wait" => "sleep",
            _ => value,
        }
    }

    #[test]
    fn every_option_is_a_setting_with_its_value_and_source() {
        let mut seen = 0;
        for flag in RUN_FLAGS.iter().filter(|flag| !APART.contains(&flag.key.as_str())) {
            let (value, beside) = typed(&flag.long);
            let option = format!("--{}", flag.long);
            let (value, typed) = match &flag.value_name {
                Some(_) => (value, &[option.as_str(), value][..]),
                None => ("true", &[option.as_str()][..]),
            };
            let words = [typed, beside].concat();
            let all = settings(&words);
            let found = all.iter().find(|one| one.key == flag.key);
            let found = found.map(|one| (one.value.as_str(), one.source.as_str()));
            assert_eq!(found, Some((recorded(&flag.long, value), option.as_str())), "{words:?}: {all:?}");
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn options_of_the_workload_and_switches_are_settings() {
        for (words, key, value, source) in [
            (&["--workload", "b"][..], "readproportion", "0.95", "built-in workloadb:6"),
            (&["--workload", "b"], "workload.ycsb.workload", "b", "--workload"),
            (&["--records", "3k"], "recordcount", "3000", "--records"),
            (&["--fields", "3"], "fieldcount", "3", "--fields"),
            (&["--distribution", "uniform"], "requestdistribution", "uniform", "--distribution"),
            (&["-p", "dyno.zipfian=true"], "dyno.zipfian", "true", "-p"),
            (&["--ops", "1k"], "operationcount", "1000", "--ops"),
            (&["--seed", "7"], "dyno.seed", "7", "--seed"),
            (&["--seed", "18446744073709551615"], "dyno.seed", "18446744073709551615", "--seed"),
            (&["--no-pin"], "client.pin", "false", "--no-pin"),
            (&["--reload"], "phases.load.when", "always", "--reload"),
            (&["--no-load"], "phases.load.when", "never", "--no-load"),
            (&["--no-monitor"], "monitors.enabled", "false", "--no-monitor"),
            (&["--prometheus", "r.x=http://h:1"], "monitors.prometheus.r.x", "http://h:1", "--prometheus"),
            (
                &["--prometheus", "x=http://u:hidden@h:1/m?token=hidden"],
                "monitors.prometheus.x",
                "http://u:***@h:1/m?token=***",
                "--prometheus",
            ),
        ] {
            let all = settings(words);
            let found = all.iter().find(|one| one.key == key);
            let found = found.map(|one| (one.value.as_str(), one.source.as_str()));
            assert_eq!(found, Some((value, source)), "{words:?}: {all:?}");
        }
    }

    #[test]
    fn options_that_are_not_typed_are_defaults() {
        let all = settings(&["--users", "4"]);
        let of = |key: &str| {
            let found = all.iter().find(|one| one.key == key);
            found.map(|one| (one.value.as_str(), one.source.as_str()))
        };
        assert_eq!(of("phases.measure.users"), Some(("4", "--users")));
        for (key, value) in [
            ("phases.measure.think", "0s"),
            ("phases.measure.duration", "10s"),
            ("phases.measure.warmup", "1s"),
            ("client.pin", "true"),
            ("monitors.enabled", "true"),
            ("phases.load.when", "missing"),
            ("dyno.seed", "1"),
            ("monitors.interval", "1s"),
            ("workload.ycsb.workload", "a"),
        ] {
            assert_eq!(of(key), Some((value, "default")), "{key}: {all:?}");
        }
        assert_eq!((of("phases.measure.rate"), of("phases.measure.queue")), (None, None));
        assert_eq!(of("require"), None);
    }
}
