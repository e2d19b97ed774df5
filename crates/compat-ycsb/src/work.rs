//! A load or a run of YCSB's command line as the work of an experiment: client, workload, binding and measurements, all checked
//! before the target is touched.

use crate::bindings::{self, Binding, BindingTarget, take_environment};
use crate::plan::{Extras, Mode, YcsbCommand};
use crate::report::java::property_names_order;
use crate::report::options::{Interval, MeasurementOptions};
use dyno_config::client::{ClientConfig, GapDistribution, Warning};
use dyno_config::experiment::{self, Experiment, Stamps, Wait};
use dyno_config::settings::{BadSetting, DRAWN, PropertySettings, Setting, Source};
use dyno_config::values::{Count, Span};
use dyno_db::target::OpenTarget;
use dyno_db_mongodb::official::NO_BATCHES;
use dyno_engine::{Control, Job, Queue, Retry, RunError};
use dyno_record::Scale;
use dyno_session::existing_records::find_inserted;
use dyno_session::work::ycsb::{core_config, needed_verbs};
use dyno_session::work::{Prepared, Work, measured_job};
use dyno_types::bounded;
use dyno_types::limits::{DRAIN_NS, TEXT_BYTES};
use dyno_types::rng::fresh_seed;
use dyno_types::secret::mask_value;
use dyno_types::{Content, Refused, Verb};
use dyno_workload::Workload;
use dyno_workload::ycsb::{
    BadProperty, ConstantOccupancy, CoreConfig, CoreWorkload, EconomyConfig, EconomyWorkload, PriorInserts,
    TimeSeriesConfig, TimeSeriesWorkload, WorkloadClass, workload_class,
};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;

/// Length of a run that nothing ends, nanoseconds: 30 years.
const FOREVER_NS: u64 = 30 * 365 * 86_400 * SECOND_NS;

/// A load or a run.
pub struct YcsbWork {
    /// Load or run.
    pub mode: Mode,
    /// `load redis`, for titles.
    pub title: String,
    /// All properties with their sources.
    pub settings: PropertySettings,
    /// Our own options.
    pub extras: Extras,
    /// Threads, target, counts.
    pub client: ClientConfig,
    /// Measurements, and how they are shown.
    pub options: MeasurementOptions,
    /// The database.
    pub binding: Binding,
    /// Target of the load.
    pub target: BindingTarget,
    /// True if values are verified.
    pub data_integrity: bool,
    /// The closed economy whose money is counted after the run.
    pub economy: Option<Arc<EconomyWorkload>>,
    /// Warnings for the user, a line each.
    pub warnings: Vec<String>,
    spec: Experiment,
    workload: Arc<dyn Workload>,
    verbs: Vec<Verb>,
    /// The core workload whose inserts go on after those of earlier runs, which are looked for first.
    resume: Option<CoreConfig>,
    retry: Option<Retry>,
}

/// A workload, and what follows from it.
struct Built {
    workload: Arc<dyn Workload>,
    retry: Option<Retry>,
    verbs: Vec<Verb>,
    seed: u64,
    data_integrity: bool,
    economy: Option<Arc<EconomyWorkload>>,
    resume: Option<CoreConfig>,
}

impl YcsbWork {
    /// Checks everything that can be checked without the target.
    ///
    /// # Errors
    /// Names the property whose value cannot be used.
    pub fn new(command: YcsbCommand) -> Result<Self, BadSetting> {
        let YcsbCommand { mode, binding, mut settings, notes, extras } = command;
        take_environment(&mut settings, |variable| std::env::var(variable).ok());
        // As YCSB, which draws anew: clients on several hosts must not ask for the same keys in step, nor a run for those that
        // the last one has left in the caches.
        // Clients that are numbered draw apart already, and share the order of their keys by the seed.
        let is_one = settings.text_of("dyno.client.count").is_none_or(|count| count.trim() == "1");
        if is_one && settings.text_of("dyno.seed").is_none_or(|seed| seed.trim() == DRAWN) {
            settings.set_property("dyno.seed", fresh_seed().to_string(), Source::Drawn);
        }
        let mut warnings = notes;
        if mode == Mode::Run && takes_all_keys(&settings)? {
            warnings.push(format!(
                "recordcount is not set: keys of {ALL_KEYS} records are asked for, as YCSB does"
            ));
            let source = Source::Option { flag: "recordcount=0".into() };
            settings.set_property("recordcount", ALL_KEYS.to_string(), source);
        }
        let mut client = ClientConfig::from_settings(&settings)?;
        let options = MeasurementOptions::from_lookup(&mut settings.property_lookup())
            .map_err(|bad| settings.blame_source(BadProperty::new(&bad.key, bad.value, bad.expected)))?;
        let bound = bindings::resolve(binding, &settings)?;
        let built = build(&settings, mode, &mut client, &mut warnings)?;
        warnings.extend(bound.notes);
        warnings.extend(client.warnings.iter().map(|warning| match warning {
            // YCSB's own text brings the word along.
            Warning::MoreThreads => warning.to_string().replacen("Warning: ", "", 1),
            Warning::Endless => warning.to_string(),
        }));
        warnings.extend(options.warnings.iter().cloned());
        if client.pipeline > 1 && !bound.target.is_wire() {
            warnings.push(format!("dyno.pipeline={} has no effect: users block", client.pipeline));
            client.pipeline = 1;
        }
        let sizes = ["batchsize", "mongodb.batchsize"].map(|key| settings.text_of(key).map(str::trim));
        if let [Some(one), Some(other)] = sizes
            && one != other
        {
            warnings.push(format!("batchsize={one} and mongodb.batchsize={other}: the first counts"));
        }
        if client.batch > 1 && bound.target.is_official() {
            warnings.push(format!("batchsize={} has no effect: {NO_BATCHES}", client.batch));
            client.batch = 1;
        }
        if mode == Mode::Load && client.warmup_ns > 0 {
            warnings.push("dyno.warmup has no effect on load: every record counts".to_owned());
            client.warmup_ns = 0;
        }
        let timeout_ns = bound.target.timeout_ns(client.timeout_ns);
        Ok(YcsbWork {
            mode,
            title: format!("ycsb {} {}", mode.name(), binding.name()),
            settings,
            extras,
            spec: experiment(&client, timeout_ns, built.seed),
            client,
            options,
            binding,
            target: bound.target,
            workload: built.workload,
            verbs: built.verbs,
            data_integrity: built.data_integrity,
            retry: built.retry,
            economy: built.economy,
            resume: built.resume,
            warnings,
        })
    }

    /// The block of properties that YCSB's mock prints for each of its threads, unless it is to say nothing; secrets are masked.
    pub fn properties_of_basic(&self) -> Option<String> {
        let is_mock = matches!(self.binding, Binding::Basic | Binding::BasicTs);
        if !is_mock || self.settings.text_of("basicdb.verbose").is_some_and(|word| word.trim() == "false") {
            return None;
        }
        let own = [
            ("dotransactions".to_owned(), (self.mode != Mode::Load).to_string()),
            ("db".to_owned(), self.binding.class().to_owned()),
        ];
        let is_set = |setting: &Setting| !matches!(setting.source, Source::Default | Source::Drawn);
        let set = self
            .settings
            .iter()
            .filter(|(key, setting)| is_set(setting) && own.iter().all(|(own, _)| own != key));
        // Those of files come first, in the order of their lines.
        let mut set: Vec<(&str, &Setting)> = set.collect();
        set.sort_by_key(|(_, setting)| match &setting.source {
            Source::File { line, .. } | Source::BuiltIn { line, .. } => *line,
            _ => u32::MAX,
        });
        let set = set.into_iter().map(|(key, setting)| (key.to_owned(), mask_value(key, &setting.value)));
        let all: Vec<(String, String)> = set.chain(own.clone()).collect();
        let keys: Vec<&str> = all.iter().map(|(key, _)| key.as_str()).collect();
        let line = |at: usize| format!("\"{}\"=\"{}\"\n", all[at].0, all[at].1);
        let lines: String = property_names_order(&keys).into_iter().map(line).collect();
        let begin = "***************** properties *****************";
        let block = format!("{begin}\n{lines}{}\n", "*".repeat(begin.len()));
        Some(block.repeat(self.client.threads as usize))
    }

    /// Returns the seed if the user has not chosen it.
    pub fn drawn_seed(&self) -> Option<&str> {
        let setting = self.settings.get("dyno.seed")?;
        (setting.source == Source::Drawn).then_some(setting.value.as_str())
    }

    /// Names of its metrics.
    pub fn metrics(&self) -> Vec<String> {
        self.workload.metrics().to_vec()
    }

    /// Returns the latencies that are reported.
    pub fn interval(&self) -> Interval {
        self.options.interval(self.client.target > 0, self.extras.compat_exit)
    }
}

/// Returns what an experiment says of it: times by the client's clock, as the original takes them.
fn experiment(client: &ClientConfig, timeout_ns: Option<u64>, seed: u64) -> Experiment {
    let mut spec = Experiment { seed, ..Experiment::default() };
    spec.client.stamps = Stamps::Client;
    spec.client.wait = if client.spin_sleep { Wait::Spin } else { Wait::Sleep };
    let measure = &mut spec.phases.measure;
    measure.rate = (client.target > 0).then(|| client.target.to_string());
    measure.set_concurrency(client.threads as usize);
    measure.arrivals = match client.arrivals {
        GapDistribution::Constant => experiment::Arrivals::Constant,
        GapDistribution::Poisson => experiment::Arrivals::Poisson,
    };
    let limit_ns = client.max_execution_s.map(|s| s * SECOND_NS - client.warmup_ns);
    let endless = client.operations.is_none().then_some(FOREVER_NS);
    measure.duration = limit_ns.or(endless).map(Span);
    measure.operations = client.operations.map(Count);
    measure.warmup = Some(Span(client.warmup_ns));
    measure.pipeline = client.pipeline as usize;
    measure.timeout = Span(timeout_ns.unwrap_or(0));
    measure.drain = Span(timeout_ns.map_or(DRAIN_NS, |ns| ns.max(DRAIN_NS)));
    measure.interval = Span(client.interval_ns);
    spec
}

impl Work for YcsbWork {
    fn name(&self) -> String {
        self.title.clone()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.workload.content()
    }

    fn verbs(&self) -> Vec<Verb> {
        self.verbs.clone()
    }

    /// Looks for inserts of earlier runs, where this one goes on after them.
    fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Prepared, RunError> {
        let load = self.mode == Mode::Load;
        let Some(config) = &self.resume else { return Ok(Prepared { load, ..Prepared::default() }) };
        let found = find_inserted(opened, &self.workload.content(), config, control)?;
        let (count, first) = (PriorInserts::new(found.end, &found.missing).count(), config.record_count);
        let notes = vec![format!("{count} inserts of earlier runs are there, from key number {first} on")];
        Ok(Prepared { load, inserted: (found.end, found.missing), notes, ..Prepared::default() })
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        if let Some(config) = &mut self.resume {
            config.earlier = PriorInserts::new(prepared.inserted.0, &prepared.inserted.1);
            let blame = |bad| self.settings.blame_source(bad);
            self.workload = Arc::new(CoreWorkload::run(config).map_err(blame)?);
        }
        Ok(())
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        (self.mode == Mode::Load).then(|| self.measure()).transpose()
    }

    /// The job of the only phase, which a load is, too.
    fn measure(&self) -> Result<Job, Refused> {
        Ok(Job {
            batch: self.client.batch as usize,
            queue: Queue { outlasts_end: false, ..Queue::default() },
            scale: Scale::Micros,
            raw_samples: self.options.needs_samples(),
            spin: self.client.spin_sleep,
            retry: self.retry,
            ..measured_job(&self.spec, self.workload.clone())?
        })
    }

    /// Workers of one process share the workload.
    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        Ok(job.divide_among(total)?.swap_remove(index))
    }

    fn settings(&self) -> PropertySettings {
        self.settings.clone()
    }
}

/// Records of a run whose settings do not say how many there are.
const ALL_KEYS: i32 = i32::MAX;

/// Returns whether a run asks for keys of all records that there could be, because no setting says how many there are.
fn takes_all_keys(settings: &PropertySettings) -> Result<bool, BadSetting> {
    let class = workload_class(settings.text_of("workload").unwrap_or("core"))
        .map_err(|bad| settings.blame_source(bad))?;
    let unset = settings.text_of("recordcount").is_none_or(|count| count.trim().parse() == Ok(0));
    Ok(unset && matches!(class, WorkloadClass::Core | WorkloadClass::TimeSeries))
}

/// The workload that `workload` names, in the phase of `mode`.
fn build(
    settings: &PropertySettings,
    mode: Mode,
    client: &mut ClientConfig,
    warnings: &mut Vec<String>,
) -> Result<Built, BadSetting> {
    let blame = |bad| settings.blame_source(bad);
    match workload_class(settings.text_of("workload").unwrap_or("core")).map_err(blame)? {
        WorkloadClass::Core => core(&core_config(settings)?, mode).map_err(blame),
        WorkloadClass::ConstantOccupancy => {
            let mut histogram = |path: &str| bounded::text_file(path, TEXT_BYTES).ok();
            let sized = ConstantOccupancy::from_lookup(&mut settings.property_lookup(), &mut histogram)
                .map_err(blame)?;
            warnings.extend(
                sized
                    .ignored
                    .iter()
                    .map(|key| format!("{key} has no effect: disksize, occupancy and storageages set it")),
            );
            let config = &sized.config;
            client.set_operations(match mode {
                Mode::Load => Some(config.load_operations()),
                _ => config.run_operations(),
            });
            core(config, mode).map_err(blame)
        }
        WorkloadClass::ClosedEconomy => economy(settings, mode, warnings),
        WorkloadClass::TimeSeries => {
            let users = u64::from(client.threads);
            let config = TimeSeriesConfig::from_lookup(&mut settings.property_lookup(), users, now_ms())
                .map_err(blame)?;
            let load = mode == Mode::Load;
            let workload = match load {
                true => TimeSeriesWorkload::load_phase(&config),
                false => TimeSeriesWorkload::run(&config).map_err(blame)?,
            };
            Ok(Built {
                workload: Arc::new(workload),
                retry: None,
                verbs: if load { vec![Verb::Insert] } else { needed_verbs(&config.proportions) },
                seed: config.seed,
                data_integrity: config.data_integrity,
                economy: None,
                resume: None,
            })
        }
    }
}

fn core(config: &CoreConfig, mode: Mode) -> Result<Built, BadProperty> {
    let load = mode == Mode::Load;
    let workload = if load { CoreWorkload::load_phase(config)? } else { CoreWorkload::run(config)? };
    Ok(Built {
        workload: Arc::new(workload),
        // Only the load phase repeats inserts, as in YCSB.
        retry: Some(Retry { limit: config.retries.limit, pause_ns: config.retries.interval_s * SECOND_NS })
            .filter(|retry| load && retry.limit > 0),
        verbs: if load { vec![Verb::Insert] } else { needed_verbs(&config.proportions) },
        seed: config.seed,
        data_integrity: config.data_integrity,
        economy: None,
        resume: (config.resume && !load).then(|| config.clone()),
    })
}

fn economy(settings: &PropertySettings, mode: Mode, warnings: &mut Vec<String>) -> Result<Built, BadSetting> {
    let blame = |bad| settings.blame_source(bad);
    let config = EconomyConfig::from_lookup(&mut settings.property_lookup()).map_err(blame)?;
    warnings.extend(config.warnings.iter().cloned());
    let load = mode == Mode::Load;
    let workload = match load {
        true => EconomyWorkload::load_phase(&config),
        false => EconomyWorkload::run(&config).map_err(blame)?,
    };
    let workload = Arc::new(workload);
    Ok(Built {
        economy: (!load).then(|| workload.clone()),
        workload,
        retry: None,
        verbs: if load { vec![Verb::Insert] } else { needed_verbs(&config.core.proportions) },
        seed: config.core.seed,
        data_integrity: false,
        resume: None,
    })
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
