//! What `dyno run` was asked for, as an experiment. Nothing here touches the target.
//!
//! Options become the tree that a file becomes, each value with the option that has set it; the same reader makes an
//! experiment of it. Messages and recorded settings name who has set a value by the tree alone.

use crate::derived_options::{DerivedOption, PROPERTIES, PROPERTY, typed_options};
use crate::options::RunArgs;
use dyno_config::experiment::flags::RUN_FLAGS;
use dyno_config::experiment::{Driver, Experiment, When};
use dyno_config::settings::Source;
use dyno_config::tree::{Node, Origin, TreeError, Value};
use dyno_db::target::ClientDriver;
use dyno_engine::affinity;
use dyno_frontend::exit::Failure;
use dyno_monitor::prometheus::Url;
use dyno_session::watch::WatchPlan;
use dyno_session::work::Wording;
use dyno_session::work::rates::parse_profile;
use dyno_session::work::ycsb::KEYS_INSTEAD;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_workload::ycsb::{Property, known_properties};
use std::time::Duration;

/// Most users that load records.
const LOADERS: usize = 16;

/// The option that sets a key of the experiment.
pub(super) fn option_of(key: &str) -> String {
    let flag = RUN_FLAGS.iter().find(|flag| flag.key == key);
    flag.map_or_else(|| key.to_owned(), |flag| format!("--{}", flag.long))
}

/// Returns whether `dyno run` takes note of a property, as far as it is one of YCSB's.
pub(super) fn is_used(key: &str) -> bool {
    known_properties().iter().find(|p| p.name == key).is_none_or(Property::describes_workload)
}

/// Returns whether `--workload` names a workload of one's own.
fn is_template(workload: &str) -> bool {
    workload.ends_with(".yaml") || workload.ends_with(".yml")
}

pub(super) fn usage(option: &str, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{option}: {error}"))
}

fn typed(option: &str, value: Value) -> Node {
    Node { value, origin: Origin::Variable(option.into()) }
}

/// An experiment, and who has set its values.
pub(super) struct RunSpec {
    /// What was typed.
    pub tree: Node,
    /// The experiment, with its defaults.
    pub experiment: Experiment,
}

impl RunSpec {
    /// Reads the options.
    ///
    /// # Errors
    /// Names the option whose value cannot be used.
    pub fn from_args(args: &RunArgs) -> Result<Self, Failure> {
        let mut tree = args.spec.tree.clone();
        for (key, value) in derived_values(args)? {
            tree.set_path(key, value);
        }
        let mut experiment = Experiment::from_tree(&tree).map_err(refused)?;
        experiment.target.clone_from(&args.target);
        let measure = &experiment.phases.measure;
        if let Some(rate) = &measure.rate {
            parse_profile(&experiment, rate).map_err(|e| usage("--rate", e))?;
        }
        if let Some(cores) = &experiment.client.cores {
            allow(&cores.0)?;
        }
        experiment.phases.load.users = measure.concurrency().unwrap_or(LOADERS).clamp(1, LOADERS);
        Ok(RunSpec { tree, experiment })
    }

    /// The same run, made so many times, as the text of an experiment without its target; it is called as its work is
    /// where no other name is given.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn as_experiment(&self, args: &RunArgs, work: String, repetitions: u32) -> Result<String, Failure> {
        let mut tree = self.tree.clone();
        let mut set = |key: &str, option: &str, value: Value| tree.set_path(key, typed(option, value));
        set("name", "--name", Value::Text(args.name.clone().unwrap_or(work)));
        if let Some(note) = &args.note {
            set("description", "--note", Value::Text(note.clone()));
        }
        set("repetitions", "--repeat", Value::Int(i128::from(repetitions)));
        let loaders = self.experiment.phases.load.users as i128;
        set("phases.load.users", "default", Value::Int(loaders));
        let all: serde_json::Value = tree.read().map_err(refused)?;
        // What JSON writes, YAML reads.
        serde_json::to_string_pretty(&all).map(|text| text + "\n").map_err(Failure::internal)
    }

    /// Calls `read` with the words of this command line.
    pub fn worded<T>(&self, read: impl FnOnce(&Experiment, &Wording<'_>) -> T) -> T {
        let source = |key: &str| match self.tree.origin_at(key) {
            Origin::Variable(option) if &**option == PROPERTY => Source::CommandLine,
            Origin::Variable(option) => Source::Option { flag: option.to_string() },
            // Stronger than what a file of properties says of the same.
            _ => Source::Option { flag: "default".into() },
        };
        read(&self.experiment, &Wording { source: &source, reload: "--reload", no_load: "--no-load" })
    }

    /// Plan of the monitors that were asked for; `None` without monitors.
    ///
    /// # Errors
    /// Names the exporter that cannot be read.
    pub fn watch_plan(&self) -> Result<Option<WatchPlan>, Failure> {
        let monitors = &self.experiment.monitors;
        let url = |(name, url): (&String, &String)| {
            Ok((name.clone(), Url::parse(url).map_err(|e| usage("--prometheus", e))?))
        };
        let exporters = monitors.prometheus.iter().map(url).collect::<Result<_, Failure>>()?;
        let interval = Duration::from_nanos(monitors.interval.0);
        let plan = WatchPlan { interval, processes: Vec::new(), exporters, cores: Vec::new() };
        Ok(monitors.enabled.then_some(plan))
    }

    /// Client that speaks to the database.
    pub fn client_driver(&self) -> ClientDriver {
        match self.experiment.client.driver {
            Driver::Wire => ClientDriver::Wire,
            Driver::Official => ClientDriver::Official,
        }
    }

    /// Returns whether records are loaded at all.
    pub fn loads(&self) -> bool {
        self.experiment.phases.load.when != When::Never
    }
}

fn refused(error: TreeError) -> Failure {
    Failure::usage(error)
}

/// A key of the experiment, and its value.
type KeyValue = (&'static str, Node);

/// What options say that are no fields of the experiment.
fn derived_values(args: &RunArgs) -> Result<Vec<KeyValue>, Failure> {
    let switch = |one: &DerivedOption| one.value.map(|value| (one.key, typed(one.option, value())));
    let mut all: Vec<KeyValue> = typed_options(args).filter_map(switch).collect();
    if !args.prometheus.is_empty() {
        all.push(("monitors.prometheus", exporters(&args.prometheus)?));
    }
    all.extend(workload_values(args)?);
    Ok(all)
}

/// What `--workload` and YCSB's properties say.
fn workload_values(args: &RunArgs) -> Result<Vec<KeyValue>, Failure> {
    let tree = &args.spec.tree;
    let named = |key, name: &String| (key, typed("--workload", Value::Text(name.clone())));
    match &args.workload {
        Some(file) if is_template(file) => {
            refuse_options(args, file)?;
            refuse_experiment(file)?;
            let text = bounded::text_file(file, TEXT_BYTES).unwrap_or_default();
            let commands = dyno_config::template::has_commands(&text);
            Ok(vec![named(if commands { "workload.commands.file" } else { "workload.documents" }, file)])
        }
        None if tree.find_path("workload.recording").is_some() => {
            match tree.find_path("workload.recording.file") {
                Some(_) => Ok(Vec::new()),
                None => Err(usage(
                    "--recording",
                    "expected a file: --speed, --pace, --from, --to, --only, --split, --scale-ttl, --against, --include and \
                     --yes-write say how it is replayed",
                )),
            }
        }
        None if tree.find_path("workload.commands").is_some() => {
            refuse_unused(tree)?;
            Ok(Vec::new())
        }
        workload => {
            let workload = workload.iter().map(|name| named("workload.ycsb.workload", name));
            let properties = (PROPERTIES, properties(args, tree)?);
            Ok(workload.chain([properties]).collect())
        }
    }
}

/// `NAME=URL` for each exporter.
fn exporters(given: &[String]) -> Result<Node, Failure> {
    let option = "--prometheus";
    let mut all: Vec<(String, Node)> = Vec::new();
    for text in given {
        let (name, url) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            usage(option, format!("{text:?}: expected NAME=URL, such as redis=http://127.0.0.1:9121"))
        })?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.chars().all(plain) || all.iter().any(|(known, _)| known == name) {
            return Err(usage(
                option,
                format!("{name:?}: expected a name of its own, of letters, digits, . _ and -"),
            ));
        }
        all.push((name.to_owned(), typed(option, Value::Text(url.to_owned()))));
    }
    Ok(typed(option, Value::Map(all)))
}

/// Properties of YCSB's workload, by the options that set them.
fn properties(args: &RunArgs, tree: &Node) -> Result<Node, Failure> {
    let mut all: Vec<(String, Node)> = Vec::new();
    let mut set = |key: &str, value: String, option: &str| {
        all.retain(|(known, _)| known != key);
        all.push((key.to_owned(), typed(option, Value::Text(value))));
    };
    if let Some(fields) = args.fields {
        set("fieldcount", fields.to_string(), "--fields");
    }
    if let Some(length) = args.field_length {
        set("fieldlength", length.to_string(), "--field-length");
    }
    if let Some(distribution) = &args.distribution {
        let option = "--distribution";
        let (name, theta) = distribution.split_once(':').unwrap_or((distribution, ""));
        set("requestdistribution", name.to_owned(), option);
        if name == "zipfian" && !theta.is_empty() {
            set("dyno.zipfian", "true".to_owned(), option);
            set("dyno.zipfian.theta", theta.to_owned(), option);
        }
    }
    for pair in &args.properties {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| usage(PROPERTY, format!("{pair:?}: expected KEY=VALUE, such as fieldcount=5")))?;
        let instead = KEYS_INSTEAD.into_iter().find(|(property, _)| *property == key);
        if !is_used(key) || instead.is_some() {
            let use_ =
                instead.map_or("`dyno ycsb` has it".into(), |(_, key)| format!("use {}", option_of(key)));
            return Err(usage(PROPERTY, format!("{key} has no effect on `dyno run`: {use_}")));
        }
        set(key, value.to_owned(), PROPERTY);
    }
    if let Some(operations) = tree.find_path("phases.measure.operations") {
        let read: dyno_config::values::Count = operations.read().map_err(|e| usage("--ops", e.text))?;
        set("operationcount", read.0.to_string(), "--ops");
    }
    Ok(Node { value: Value::Map(all), origin: Origin::Built })
}

/// Options that speak of YCSB's records have no meaning for documents.
fn refuse_options(args: &RunArgs, file: &str) -> Result<(), Failure> {
    let records = args.spec.tree.find_path("workload.ycsb.records").map(|_| "--records");
    let mut properties = typed_options(args).filter(|one| one.key.starts_with(PROPERTIES));
    match records.or_else(|| properties.next().map(|one| one.option)) {
        Some(option) => {
            Err(usage(option, format!("has no effect on a workload of one's own: say it in {file}")))
        }
        None => Ok(()),
    }
}

/// Keys and rows that no command draws from.
fn refuse_unused(tree: &Node) -> Result<(), Failure> {
    let given = |key: &str| tree.find_path(&format!("workload.commands.{key}")).is_some();
    let unused =
        [("keys", "--command-keys"), ("data", "--command-data")].into_iter().find(|(key, _)| given(key));
    match unused.filter(|_| !["file", "text", "list", "lines"].into_iter().any(given)) {
        Some((_, option)) => Err(usage(option, "goes with --command or --command-file")),
        None => Ok(()),
    }
}

/// An experiment is no workload: it has one.
fn refuse_experiment(path: &str) -> Result<(), Failure> {
    let run = format!("an experiment is run by its name alone: dyno run {path}");
    let Ok(text) = bounded::text_file(path, TEXT_BYTES) else {
        let missing = !std::path::Path::new(path).exists();
        let message = format!("{path}: no such file; {run}");
        return if missing { Err(usage("--workload", message)) } else { Ok(()) };
    };
    let has =
        |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    let is_experiment = ["phases", "factors", "server", "workload"].into_iter().any(has)
        && !has("collections")
        && !has("commands");
    if is_experiment { Err(usage("--workload", format!("{path} is an experiment; {run}"))) } else { Ok(()) }
}

/// This process may use these cores.
fn allow(cores: &[usize]) -> Result<(), Failure> {
    let allowed = affinity::allowed_cores();
    match cores.iter().find(|core| !allowed.contains(core)) {
        Some(core) => {
            Err(usage("--cores", format!("core {core} is not allowed to this process; allowed: {allowed:?}")))
        }
        None => Ok(()),
    }
}
