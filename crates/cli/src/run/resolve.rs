//! Options into settings, workloads, jobs and thresholds. Nothing here touches the target.

use super::applied::{INSTEAD, is_used};
use super::{choose_cores, documents};
use crate::exit::Failure;
use crate::options::{Arrivals, RunArgs, Wait};
use crate::terminal;
use dyno_analysis::Condition;
use dyno_config::properties;
use dyno_config::settings::{Settings, Source};
use dyno_databases::target::{OpenTarget, Target};
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::{Control, End, Job, Pacing, Queue};
use dyno_record::Scale;
use dyno_session::presence::inserted;
use dyno_session::work::ycsb::{core_config, verbs};
use dyno_types::units::{Rate, counted, parse_count, parse_duration_ns};
use dyno_types::{Refused, Verb};
use dyno_workload::Workload;
use dyno_workload::template::{Template, TemplateLoad, TemplateRun};
use dyno_workload::ycsb::{CoreConfig, CoreWorkload, Earlier, stock, stock_by_letter};
use std::path::Path;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// Everything a run needs to know, checked.
pub(super) struct Resolved {
    settings: Settings,
    /// `workloada`, or the file's name: part of the directory's name.
    pub name: String,
    /// Records of the data set.
    pub records: u64,
    /// Documents of one's own.
    template: Option<Template>,
    resume: Option<CoreConfig>,
    /// YCSB's records.
    pub core: Option<CoreConfig>,
    /// Whether they must be loaded, once that is known.
    pub must_load: Option<bool>,
    load_workload: Arc<dyn Workload>,
    /// The measured workload.
    pub measure_workload: Arc<dyn Workload>,
    /// Verbs the measured workload uses.
    pub verbs: Vec<Verb>,
    /// Closed or open loop.
    pub pacing: Pacing,
    /// Thresholds.
    pub conditions: Vec<Condition>,
    pub(super) users: usize,
    pub(super) pipeline: usize,
    pub(super) load_pipeline: usize,
    pub(super) load_batch: usize,
    pub(super) end: End,
    pub(super) warmup_ns: u64,
    timeout_ns: Option<u64>,
    drain_ns: u64,
    interval_ns: u64,
    queue: Queue,
    seed: u64,
    stamps: dyno_engine::Clock,
    pub(super) spin: bool,
    pub(super) cores: Vec<Option<usize>>,
    load_cores: Vec<Option<usize>>,
}

/// A workload, read: YCSB's or documents of one's own.
struct Wanted {
    settings: Settings,
    name: String,
    template: Option<Template>,
    records: u64,
    verbs: Vec<Verb>,
    load: Arc<dyn Workload>,
    measure: Arc<dyn Workload>,
    /// What must be built anew once the inserts of earlier runs are known.
    resume: Option<CoreConfig>,
    core: Option<CoreConfig>,
}

fn bad(bad: dyno_workload::ycsb::BadProperty) -> Failure {
    Failure::Usage(format!("{} {}: expected {}", bad.key, bad.value, bad.expected))
}

impl Wanted {
    fn read(args: &RunArgs) -> Result<Self, Failure> {
        if documents::is_template(&args.workload) {
            return Self::documents(args);
        }
        let (settings, name) = settings(args)?;
        let config = core_config(&settings).map_err(|bad| Failure::Usage(bad.to_string()))?;
        let blame = |bad| Failure::Usage(settings.blame(bad).to_string());
        let load = Arc::new(CoreWorkload::load(&config).map_err(blame)?);
        let measure = Arc::new(CoreWorkload::run(&config).map_err(blame)?);
        let (records, verbs) = (config.insert_count, verbs(&config.proportions));
        let resume = config.resume.then(|| config.clone());
        let core = Some(config);
        Ok(Wanted { settings, name, template: None, records, verbs, load, measure, resume, core })
    }

    fn documents(args: &RunArgs) -> Result<Self, Failure> {
        documents::refuse_options(args)?;
        let template = documents::read_template(&args.workload, (args.seed != 1).then_some(args.seed))?;
        let load = TemplateLoad::new(&template).map_err(bad)?;
        let measure = Arc::new(TemplateRun::new(&template, &[], template.seed).map_err(bad)?);
        let mut settings = Settings::new();
        let option = |flag: &str| Source::Option { flag: flag.to_owned() };
        settings.set("dyno.template", args.workload.as_str(), option("--workload"));
        settings.set("dyno.seed", template.seed.to_string(), option("--seed"));
        let name = Path::new(&args.workload).file_stem();
        Ok(Wanted {
            settings,
            name: name.map_or("documents".into(), |stem| stem.to_string_lossy().into_owned()),
            records: load.operations(),
            verbs: Vec::new(),
            load: Arc::new(load),
            measure,
            template: Some(template),
            resume: None,
            core: None,
        })
    }
}

pub(super) fn usage(option: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option}: {error}"))
}

fn duration(option: &str, text: &str) -> Result<u64, Failure> {
    parse_duration_ns(text, SECOND_NS).map_err(|e| usage(option, e))
}

fn count(option: &str, text: &str) -> Result<u64, Failure> {
    parse_count(text).map_err(|e| usage(option, e))
}

/// A whole number of intervals makes a second.
fn interval_ns(text: &str) -> Result<u64, Failure> {
    match duration("--interval", text)? {
        ns if (10_000_000..=SECOND_NS).contains(&ns) && SECOND_NS.is_multiple_of(ns) => Ok(ns),
        _ => Err(usage(
            "--interval",
            format!("{text}: expected 10ms to 1s, a whole number of them in a second"),
        )),
    }
}

impl Resolved {
    /// Checks everything that can be checked without the target.
    pub fn from_args(args: &RunArgs) -> Result<Self, Failure> {
        let Wanted {
            settings,
            name,
            template,
            records,
            verbs,
            load: load_workload,
            measure: measure_workload,
            resume,
            core,
        } = Wanted::read(args)?;
        let conditions = args
            .require
            .iter()
            .map(|text| {
                let condition = Condition::parse(text)?;
                condition.check(measure_workload.metrics())?;
                Ok(condition)
            })
            .collect::<Result<_, dyno_analysis::BadThreshold>>()
            .map_err(|e| usage("--require", e))?;
        let operations = args.ops.as_deref().map(|o| count("--ops", o)).transpose()?;
        let duration_ns = match (&args.duration, operations) {
            (Some(text), _) => Some(duration("--duration", text)?),
            (None, None) => Some(10 * SECOND_NS),
            (None, Some(_)) => None,
        };
        let warmup_ns = match (&args.warmup, duration_ns) {
            (Some(text), _) => duration("--warmup", text)?,
            (None, Some(d)) => (d / 10).min(5 * SECOND_NS),
            (None, None) => 0,
        };
        let timeout_ns = Some(duration("--timeout", &args.timeout)?).filter(|t| *t > 0);
        let age_ns = args.queue_age.as_deref().map(|t| duration("--queue-age", t)).transpose()?;
        Ok(Resolved {
            records,
            verbs,
            name,
            template,
            resume,
            core,
            must_load: None,
            load_workload,
            measure_workload,
            pacing: pacing(args)?,
            conditions,
            users: args.users.or(args.connections).unwrap_or(if args.rate.is_some() { 64 } else { 16 }),
            pipeline: args.pipeline,
            load_pipeline: args.load_pipeline,
            load_batch: args.load_batch,
            end: End { operations, duration_ns },
            warmup_ns,
            timeout_ns,
            drain_ns: duration("--drain", &args.drain)?,
            interval_ns: interval_ns(&args.interval)?,
            queue: Queue { length: count("--queue", &args.queue)?, age_ns, ..Queue::default() },
            seed: args.seed,
            stamps: args.stamps.into(),
            spin: false,
            settings,
            cores: vec![None],
            load_cores: vec![None],
        })
    }

    /// Lets inserts of the measured phase go on after those of earlier runs, if that is wanted.
    pub fn resume_inserts(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<(), Failure> {
        let Some(config) = self.resume.as_mut().filter(|_| !opened.is_virtual()) else { return Ok(()) };
        let found = inserted(opened, &self.measure_workload.content(), config, control)?;
        config.earlier = Earlier::new(found.end, &found.missing);
        if found.end > 0 {
            let (count, first) = (config.earlier.count(), config.record_count);
            terminal::note(&format!("{count} inserts of earlier runs are there, from key number {first} on"));
        }
        self.measure_workload = Arc::new(CoreWorkload::run(config).map_err(bad)?);
        Ok(())
    }

    /// Prepares collections of one's own.
    pub fn prepare(&mut self, args: &RunArgs, opened: &dyn OpenTarget) -> Result<(), Failure> {
        let Some(template) = &self.template else { return Ok(()) };
        let ready = documents::prepare(args, template, opened)?;
        self.must_load = Some(ready.load);
        self.measure_workload =
            Arc::new(TemplateRun::new(template, &ready.fresh, template.seed).map_err(bad)?);
        Ok(())
    }

    /// What the load counts, in words.
    pub fn unit(&self) -> &'static str {
        if self.template.is_some() { "inserts" } else { "records" }
    }

    /// Chooses the cores of load threads, now that the target is known.
    pub fn place_threads(
        &mut self,
        args: &RunArgs,
        opened: &dyn OpenTarget,
        local: bool,
        taken: Option<usize>,
    ) -> Result<(), Failure> {
        let chosen = match (&args.cores, opened.is_virtual()) {
            (_, true) => vec![0],
            (Some(list), _) => core_list(list)?,
            (None, _) => choose_cores(args.threads, self.users, local, taken)?,
        };
        let pinned = !args.no_pin && !opened.is_virtual();
        self.spin = match args.wait {
            Wait::Spin => true,
            Wait::Sleep => false,
            // Only a server that was started here is known to stay on its core.
            Wait::Auto => pinned && taken.is_some_and(|core| !chosen.contains(&core)),
        };
        self.cores = chosen.iter().map(|core| pinned.then_some(*core)).collect();
        self.cores.truncate(self.users.max(1));
        self.load_cores = self.cores.clone();
        self.measure_job().check().map_err(|Refused(text)| Failure::Usage(text))
    }

    /// The job of the load phase: closed loop, pipelined, until every record is in.
    pub fn load_job(&self, opened: &dyn OpenTarget) -> Job {
        Job {
            workload: self.load_workload.clone(),
            pacing: Pacing::Closed { think_ns: 0 },
            end: End { operations: Some(self.records), duration_ns: None },
            warmup_ns: 0,
            users: self.users.clamp(1, 16),
            pipeline: opened.pipeline(self.load_pipeline),
            batch: self.load_batch,
            cores: self.load_cores.iter().copied().take(self.users.clamp(1, 16)).collect(),
            ..self.measure_job()
        }
    }

    /// The job of the measured phase.
    pub fn measure_job(&self) -> Job {
        Job {
            workload: self.measure_workload.clone(),
            pacing: self.pacing.clone(),
            end: self.end,
            warmup_ns: self.warmup_ns,
            users: self.users,
            warm_users: None,
            pipeline: self.pipeline,
            cores: self.cores.clone(),
            timeout_ns: self.timeout_ns,
            queue: self.queue,
            seed: self.seed,
            stripe: (0, 1),
            team: None,
            scale: Scale::Ns64,
            interval_ns: self.interval_ns,
            raw_samples: false,
            stamps: self.stamps,
            spin: self.spin,
            drain_ns: self.drain_ns,
            batch: 1,
            retry: None,
        }
    }

    /// What is done, in words.
    pub fn title(&self, target: &dyn Target) -> String {
        let loop_words = match &self.pacing {
            Pacing::Closed { .. } => counted(self.users * self.pipeline, "user"),
            Pacing::Open { profile: Profile::Constant { rate }, .. } => format!("{}/s", Rate(*rate)),
            Pacing::Open { .. } => "varying rate".into(),
        };
        let _ = target;
        format!("{}, {loop_words}", self.name)
    }

    /// Cores that load threads are pinned to.
    pub fn busy_cores(&self) -> Vec<usize> {
        self.cores.iter().chain(&self.load_cores).copied().flatten().collect()
    }

    /// What was set, and by whom.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

fn pacing(args: &RunArgs) -> Result<Pacing, Failure> {
    let Some(rate) = &args.rate else {
        return Ok(Pacing::Closed { think_ns: duration("--think", &args.think)? });
    };
    let profile = Profile::parse(rate).map_err(|e| usage("--rate", e))?;
    let process = match args.arrivals {
        Arrivals::Poisson => Process::Poisson,
        Arrivals::Constant => Process::Constant,
    };
    Ok(Pacing::Open { profile, process })
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
    let allowed = dyno_engine::affinity::allowed_cores();
    match cores.iter().find(|c| !allowed.contains(c)) {
        Some(core) => {
            Err(usage("--cores", format!("core {core} is not allowed to this process; allowed: {allowed:?}")))
        }
        None => Ok(cores),
    }
}

/// Layers: the workload's file or built-in text, then options and `-p`.
fn settings(args: &RunArgs) -> Result<(Settings, String), Failure> {
    let mut settings = Settings::new();
    let name = take_workload(&args.workload, &mut settings)?;
    let option = |flag: &str| Source::Option { flag: flag.to_owned() };
    let records = count("--records", &args.records)?;
    let from_file = settings.get("recordcount").is_some_and(|s| matches!(s.source, Source::File { .. }));
    // A file's own recordcount stands unless --records is typed; built-in texts say 1000, which nobody means.
    if !(from_file && args.records == "100k") {
        settings.set("recordcount", records.to_string(), option("--records"));
    }
    let of_file = |key: &str| settings.get(key).filter(|s| matches!(s.source, Source::File { .. }));
    for (key, option) in INSTEAD.iter().filter(|(key, _)| *key != "operationcount") {
        if let Some(setting) = of_file(key) {
            terminal::note(&format!("{}: {key} has no effect on `dyno run`: use {option}", setting.source));
        }
    }
    // The built-in texts say 1000, which nobody means: --ops says it.
    if of_file("operationcount").is_none() {
        settings.set("operationcount", "0", option("default"));
    }
    if let Some(fields) = args.fields {
        settings.set("fieldcount", fields.to_string(), option("--fields"));
    }
    if let Some(length) = args.field_length {
        settings.set("fieldlength", length.to_string(), option("--field-length"));
    }
    settings.set("dyno.seed", args.seed.to_string(), option("--seed"));
    if let Some(distribution) = &args.distribution {
        let (name, theta) = distribution.split_once(':').unwrap_or((distribution, ""));
        settings.set("requestdistribution", name, option("--distribution"));
        if name == "zipfian" && !theta.is_empty() {
            settings.set("dyno.zipfian", "true", option("--distribution"));
            settings.set("dyno.zipfian.theta", theta, option("--distribution"));
        }
    }
    for pair in &args.properties {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| usage("-p", format!("{pair:?}: expected KEY=VALUE, such as fieldcount=5")))?;
        let known = dyno_workload::ycsb::known_properties();
        if !known.iter().any(|p| p.name == key) {
            let hint = dyno_config::suggest::hint(key, known.iter().map(|p| p.name));
            return Err(usage("-p", format!("unknown property {key:?}{hint}")));
        }
        let instead = INSTEAD.iter().find(|(property, _)| *property == key);
        if !is_used(key) || instead.is_some() {
            let use_ = instead.map_or("`dyno ycsb` has it".into(), |(_, option)| format!("use {option}"));
            return Err(usage("-p", format!("{key} has no effect on `dyno run`: {use_}")));
        }
        settings.set(key, value, Source::CommandLine);
    }
    if let Some(total) = args.ops.as_deref() {
        settings.set("operationcount", count("--ops", total)?.to_string(), option("--ops"));
    }
    Ok((settings, name))
}

/// A letter, a built-in name, or a file.
fn take_workload(text: &str, settings: &mut Settings) -> Result<String, Failure> {
    let path = Path::new(text);
    if path.is_file() {
        let entries = properties::read_file(path).map_err(|e| usage("--workload", format!("{text}: {e}")))?;
        for entry in entries {
            let source = Source::File { path: text.to_owned(), line: entry.line };
            settings.set(&entry.key, entry.value, source);
        }
        return Ok(path.file_stem().map_or("workload".into(), |s| s.to_string_lossy().into_owned()));
    }
    let Some(found) = stock_by_letter(text).or_else(|| stock(text)) else {
        let names: Vec<&str> = dyno_workload::ycsb::stock::stock_names().collect();
        let hint = dyno_config::suggest::hint(text, names.iter().copied());
        return Err(usage(
            "--workload",
            format!(
                "{text:?} is no file and no built-in workload{hint}; expected a to f, a file, or one of {}",
                names.join(", ")
            ),
        ));
    };
    let name =
        if text.len() == 1 { format!("workload{}", text.to_ascii_lowercase()) } else { text.to_owned() };
    let entries = properties::parse(found.as_bytes()).map_err(|e| Failure::Internal(e.to_string()))?;
    for entry in entries {
        let source = Source::BuiltIn { name: name.clone(), line: entry.line };
        settings.set(&entry.key, entry.value, source);
    }
    Ok(name.rsplit('/').next().unwrap_or(&name).to_owned())
}
