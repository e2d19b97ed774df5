//! The settings that shaped the load of `dyno run`, each with who set it, for `run.json`.

use super::lower::is_used;
use super::resolve::Resolved;
use crate::exit::Failure;
use crate::options::RunArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, ValueEnum};
use dyno_config::settings::Settings;
use dyno_engine::Pacing;
use dyno_rundir::schema::Setting;
use dyno_types::secret::mask_value;
use dyno_workload::ycsb::known_properties;

/// Arguments that were typed behind `run`.
fn typed() -> Option<ArgMatches> {
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
    let words = std::env::args_os().skip_while(|word| word != "run").skip(1);
    command.try_get_matches_from(words).ok()
}

/// Every setting of the workload and of the load with its source: an option, a file, `-p` or `default`.
pub(super) fn settings_of(args: &RunArgs, resolved: &Resolved) -> Result<Vec<Setting>, Failure> {
    let (matches, job, load) = (typed(), resolved.measure_job()?, &resolved.spec.phases.load);
    let is_typed = |id: &str| {
        let source = matches.as_ref().and_then(|matches| matches.value_source(id));
        source == Some(ValueSource::CommandLine)
    };
    let mut list = Vec::new();
    // An option is named as it is typed; its field has _ for -.
    let mut add = |key: &str, value: String| {
        let source = if is_typed(&key.replace('-', "_")) { format!("--{key}") } else { "default".into() };
        list.push(Setting { key: key.into(), value, source });
    };
    match &job.pacing {
        Pacing::Closed { .. } => {
            add("users", job.users.to_string());
            add("think", args.think.clone());
        }
        Pacing::Open { .. } => {
            add("rate", args.rate.clone().unwrap_or_default());
            add("connections", job.users.to_string());
            add("arrivals", name_of(args.arrivals));
            add("queue", args.queue.clone());
            args.queue_age.iter().for_each(|age| add("queue-age", age.clone()));
        }
    }
    args.ops.iter().for_each(|ops| add("ops", ops.clone()));
    job.end.duration_ns.iter().for_each(|ns| add("duration", seconds(*ns)));
    add("warmup", seconds(job.warmup_ns));
    add("pipeline", job.pipeline.to_string());
    add("timeout", args.timeout.clone());
    add("drain", args.drain.clone());
    add("interval", args.interval.clone());
    add("client", name_of(args.client));
    add("stamps", name_of(args.stamps));
    add("threads", resolved.cores.len().to_string());
    add("wait", if job.spin { "spin" } else { "sleep" }.into());
    if !args.no_load {
        add("load-batch", load.batch.to_string());
        add("load-pipeline", load.pipeline.to_string());
    }
    let how = if args.rate.is_some() { ("open", "--rate") } else { ("closed", "default") };
    list.insert(0, Setting { key: "loop".into(), value: how.0.into(), source: how.1.into() });
    list.extend(of_workload(&resolved.settings()));
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

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

fn seconds(ns: u64) -> String {
    format!("{}s", ns as f64 / 1e9)
}
