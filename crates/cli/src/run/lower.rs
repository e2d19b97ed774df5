//! Options of `dyno run` as an experiment. Nothing here touches the target.

use crate::exit::Failure;
use crate::options::{self, RunArgs};
use dyno_config::experiment::{Arrivals, Driver, Experiment, Stamps, Wait, When, Ycsb};
use dyno_config::settings::Source;
use dyno_config::values::{Cores, Count, Span};
use dyno_db::target::Client;
use dyno_engine::affinity;
use dyno_engine::arrivals::Profile;
use dyno_session::work::Wording;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::units::{parse_count, parse_duration_ns};
use dyno_workload::ycsb::{Scope, known_properties};
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;

/// Most users that load records.
const LOADERS: usize = 16;

/// Properties of YCSB's client that say what the data set is; the others are YCSB's alone.
const DATA: [&str; 4] = ["recordcount", "insertstart", "insertcount", "operationcount"];

/// Properties whose place an option of `dyno run` takes.
pub(super) const INSTEAD: [(&str, &str); 4] = [
    ("threadcount", "--users"),
    ("target", "--rate"),
    ("operationcount", "--ops"),
    ("maxexecutiontime", "--duration"),
];

/// Returns whether `dyno run` takes note of a property: of YCSB's client only of those that describe the data.
pub(super) fn is_used(key: &str) -> bool {
    let scope = known_properties().iter().find(|p| p.name == key).map(|p| p.scope);
    match scope {
        Some(Scope::Client) => DATA.contains(&key),
        Some(Scope::Occupancy | Scope::TimeSeries | Scope::Economy) => false,
        Some(Scope::Core | Scope::Dyno) | None => true,
    }
}

/// Returns whether `--workload` names documents of one's own.
pub(super) fn is_template(workload: &str) -> bool {
    workload.ends_with(".yaml") || workload.ends_with(".yml")
}

pub(super) fn usage(option: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option}: {error}"))
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    parse_duration_ns(text, SECOND_NS).map(Span).map_err(|e| usage(option, e))
}

fn count(option: &str, text: &str) -> Result<Count, Failure> {
    parse_count(text).map(Count).map_err(|e| usage(option, e))
}

/// Experiment that was asked for, and which option has set which property of the workload.
pub(super) struct Lowered {
    /// The experiment.
    pub spec: Experiment,
    sources: BTreeMap<String, Source>,
}

impl Lowered {
    /// Reads the options.
    ///
    /// # Errors
    /// Names the option whose value cannot be used.
    pub fn from_args(args: &RunArgs) -> Result<Self, Failure> {
        let mut lowered = Lowered { spec: Experiment::default(), sources: BTreeMap::new() };
        let spec = &mut lowered.spec;
        (spec.target, spec.seed) = (args.target.clone(), args.seed);
        spec.require = args.require.clone();
        spec.strict = args.strict;
        client(args, spec)?;
        phases(args, spec)?;
        if is_template(&args.workload) {
            refuse_options(args)?;
            refuse_experiment(&args.workload)?;
            spec.workload.documents = Some(args.workload.clone());
        } else {
            lowered.take_records(args)?;
        }
        Ok(lowered)
    }

    fn take_records(&mut self, args: &RunArgs) -> Result<(), Failure> {
        let mut properties = BTreeMap::new();
        let mut set = |key: &str, value: String, source: Source| {
            self.sources.insert(key.to_owned(), source);
            properties.insert(key.to_owned(), value);
        };
        let option = |flag: &str| Source::Option { flag: flag.to_owned() };
        if let Some(fields) = args.fields {
            set("fieldcount", fields.to_string(), option("--fields"));
        }
        if let Some(length) = args.field_length {
            set("fieldlength", length.to_string(), option("--field-length"));
        }
        if let Some(distribution) = &args.distribution {
            let (name, theta) = distribution.split_once(':').unwrap_or((distribution, ""));
            set("requestdistribution", name.to_owned(), option("--distribution"));
            if name == "zipfian" && !theta.is_empty() {
                set("dyno.zipfian", "true".to_owned(), option("--distribution"));
                set("dyno.zipfian.theta", theta.to_owned(), option("--distribution"));
            }
        }
        for pair in &args.properties {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| usage("-p", format!("{pair:?}: expected KEY=VALUE, such as fieldcount=5")))?;
            let instead = INSTEAD.iter().find(|(property, _)| *property == key);
            if !is_used(key) || instead.is_some() {
                let use_ = instead.map_or("`dyno ycsb` has it".into(), |(_, option)| format!("use {option}"));
                return Err(usage("-p", format!("{key} has no effect on `dyno run`: {use_}")));
            }
            set(key, value.to_owned(), Source::CommandLine);
        }
        if let Some(operations) = &self.spec.phases.measure.operations {
            set("operationcount", operations.0.to_string(), option("--ops"));
        }
        // A file's own recordcount stands unless --records is typed.
        let records = args.records.as_deref().map(|text| count("--records", text)).transpose()?;
        let workload = args.workload.clone();
        self.spec.workload.ycsb = Some(Ycsb { workload, records, properties, ..Ycsb::default() });
        Ok(())
    }

    /// Calls `read` with the words of this command line.
    pub fn worded<T>(&self, read: impl FnOnce(&Experiment, &Wording<'_>) -> T) -> T {
        let source = |key: &str| {
            let property = key.strip_prefix("workload.ycsb.properties.");
            let flag = match key {
                "workload.ycsb.records" => "--records",
                "seed" => "--seed",
                _ => "--workload",
            };
            let known = property.and_then(|property| self.sources.get(property)).cloned();
            known.unwrap_or_else(|| Source::Option { flag: flag.to_owned() })
        };
        read(&self.spec, &Wording { source: &source, reload: "--reload", no_load: "--no-load" })
    }
}

fn client(args: &RunArgs, spec: &mut Experiment) -> Result<(), Failure> {
    let client = &mut spec.client;
    client.driver = match args.client {
        Client::Wire => Driver::Wire,
        Client::Official => Driver::Official,
    };
    client.stamps = match args.stamps {
        options::Stamps::Kernel => Stamps::Kernel,
        options::Stamps::Hardware => Stamps::Hardware,
        options::Stamps::Client => Stamps::Client,
    };
    client.wait = match args.wait {
        options::Wait::Auto => Wait::Auto,
        options::Wait::Sleep => Wait::Sleep,
        options::Wait::Spin => Wait::Spin,
    };
    if args.threads == Some(0) {
        return Err(usage("--threads", "0: expected 1 or more"));
    }
    client.threads = args.threads;
    client.cores = args.cores.as_deref().map(core_list).transpose()?.map(Cores);
    client.pin = !args.no_pin;
    Ok(())
}

fn phases(args: &RunArgs, spec: &mut Experiment) -> Result<(), Failure> {
    let measure = &mut spec.phases.measure;
    if let Some(rate) = &args.rate {
        Profile::parse(rate).map_err(|e| usage("--rate", e))?;
    }
    let optional = |option: &str, text: &Option<String>| text.as_deref().map(|t| span(option, t)).transpose();
    (measure.users, measure.connections) = (args.users, args.connections);
    measure.rate = args.rate.clone();
    measure.arrivals = match args.arrivals {
        options::Arrivals::Poisson => Arrivals::Poisson,
        options::Arrivals::Constant => Arrivals::Constant,
    };
    measure.think = Some(span("--think", &args.think)?);
    measure.operations = args.ops.as_deref().map(|text| count("--ops", text)).transpose()?;
    measure.duration = optional("--duration", &args.duration)?;
    if measure.duration.as_ref().is_some_and(|duration| duration.0 == 0) {
        return Err(usage(
            "--duration",
            format!("{}: expected a time above 0", args.duration.as_deref().unwrap_or("0")),
        ));
    }
    measure.warmup = optional("--warmup", &args.warmup)?;
    measure.pipeline = args.pipeline;
    measure.timeout = span("--timeout", &args.timeout)?;
    measure.drain = span("--drain", &args.drain)?;
    measure.queue = count("--queue", &args.queue)?;
    measure.queue_age = optional("--queue-age", &args.queue_age)?;
    measure.interval = interval(&args.interval)?;
    let users = measure.concurrency().unwrap_or(LOADERS);
    let load = &mut spec.phases.load;
    load.when = match (args.no_load, args.reload) {
        (true, _) => When::Never,
        (false, true) => When::Always,
        (false, false) => When::Missing,
    };
    load.users = users.clamp(1, LOADERS);
    (load.pipeline, load.batch) = (args.load_pipeline, args.load_batch);
    Ok(())
}

/// A whole number of intervals makes a second.
fn interval(text: &str) -> Result<Span, Failure> {
    match span("--interval", text)? {
        Span(ns) if (10_000_000..=SECOND_NS).contains(&ns) && SECOND_NS.is_multiple_of(ns) => Ok(Span(ns)),
        _ => Err(usage(
            "--interval",
            format!("{text}: expected 10ms to 1s, a whole number of them in a second"),
        )),
    }
}

/// Options that speak of YCSB's records have no meaning for documents.
fn refuse_options(args: &RunArgs) -> Result<(), Failure> {
    let typed = [
        ("--records", args.records.is_some()),
        ("--fields", args.fields.is_some()),
        ("--field-length", args.field_length.is_some()),
        ("--distribution", args.distribution.is_some()),
        ("-p", !args.properties.is_empty()),
    ];
    match typed.into_iter().find(|(_, typed)| *typed) {
        Some((option, _)) => {
            Err(usage(option, format!("has no effect on documents: say it in {}", args.workload)))
        }
        None => Ok(()),
    }
}

/// An experiment is no workload: it has one.
fn refuse_experiment(path: &str) -> Result<(), Failure> {
    let run = format!("an experiment is run by its name alone: dyno run {path}");
    let Ok(text) = bounded::text_file(path, TEXT_BYTES) else {
        let missing = !std::path::Path::new(path).exists();
        let words = format!("{path}: no such file of documents; {run}");
        return if missing { Err(usage("--workload", words)) } else { Ok(()) };
    };
    let has =
        |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    let is_experiment =
        ["phases", "factors", "server", "workload"].into_iter().any(has) && !has("collections");
    if is_experiment { Err(usage("--workload", format!("{path} is an experiment; {run}"))) } else { Ok(()) }
}

/// `2,3` or `4-7`.
fn core_list(text: &str) -> Result<Vec<usize>, Failure> {
    let bad = || usage("--cores", format!("{text:?}: expected a list such as 2,3 or 4-7"));
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) =
            (from.trim().parse().map_err(|_| bad())?, to.trim().parse().map_err(|_| bad())?);
        if from > to || to > 4_095 {
            return Err(bad());
        }
        cores.extend(from..=to);
    }
    let allowed = affinity::allowed_cores();
    match cores.iter().find(|c| !allowed.contains(c)) {
        Some(core) => {
            Err(usage("--cores", format!("core {core} is not allowed to this process; allowed: {allowed:?}")))
        }
        None => Ok(cores),
    }
}
