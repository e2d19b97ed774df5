//! From a command line that was understood to a job: client, workload, binding and measurements, all checked
//! before anything is sent. Nothing here touches the target.

use crate::exit::Failure;
use dyno_compat_ycsb::bindings;
use dyno_compat_ycsb::bindings::BindingTarget;
use dyno_compat_ycsb::bindings::take_environment;
use dyno_compat_ycsb::plan::Extras;
use dyno_compat_ycsb::plan::{Mode, YcsbCommand};
use dyno_compat_ycsb::report::options::{Interval, MeasurementOptions};
use dyno_config::client::Warning;
use dyno_config::client::{Arrivals, ClientConfig};
use dyno_config::settings::BadSetting;
use dyno_config::settings::Settings;
use dyno_databases::target::OpenTarget;
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::{Control, End, Job, Pacing, Queue, Retry};
use dyno_record::Scale;
use dyno_session::presence::inserted;
use dyno_session::work::ycsb::{core_config, verbs};
use dyno_types::Verb;
use dyno_types::limits::DRAIN_NS;
use dyno_workload::Workload;
use dyno_workload::ycsb::{
    BadProperty, ConstantOccupancy, CoreConfig, CoreWorkload, Earlier, EconomyConfig, EconomyWorkload,
    TimeSeriesConfig, TimeSeriesWorkload, WorkloadClass, workload_class,
};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;

/// Length of a run that nothing ends, nanoseconds: 30 years.
const FOREVER_NS: u64 = 30 * 365 * 86_400 * SECOND_NS;

/// Everything a load or a run needs to know.
pub(super) struct Prepared {
    /// Load or run.
    pub mode: Mode,
    /// `load redis`, for titles.
    pub title: String,
    /// All properties with their sources.
    pub settings: Settings,
    /// Our own options.
    pub extras: Extras,
    /// Threads, target, counts.
    pub client: ClientConfig,
    /// What is measured and how it is shown.
    pub options: MeasurementOptions,
    /// Where the load goes.
    pub target: BindingTarget,
    /// Operations.
    pub workload: Arc<dyn Workload>,
    /// Verbs that the workload uses.
    pub verbs: Vec<Verb>,
    /// Whether values are verified.
    pub data_integrity: bool,
    /// The core workload whose inserts go on after those of earlier runs, which are looked for first.
    pub resume: Option<CoreConfig>,
    /// The closed economy whose money is counted after the run.
    pub economy: Option<Arc<EconomyWorkload>>,
    retry: Option<Retry>,
    /// What is worth saying, a line each.
    pub warnings: Vec<String>,
    timeout_ns: Option<u64>,
    seed: u64,
}

/// A workload and what must be known about it.
struct Built {
    workload: Arc<dyn Workload>,
    retry: Option<Retry>,
    verbs: Vec<Verb>,
    seed: u64,
    data_integrity: bool,
    economy: Option<Arc<EconomyWorkload>>,
    resume: Option<CoreConfig>,
}

impl Prepared {
    /// Checks everything that can be checked without the target.
    pub fn new(command: YcsbCommand) -> Result<Self, BadSetting> {
        let YcsbCommand { mode, binding, mut settings, notes, extras } = command;
        take_environment(&mut settings, |variable| std::env::var(variable).ok());
        let mut warnings = notes;
        let mut client = ClientConfig::from_settings(&settings)?;
        let options = MeasurementOptions::from_lookup(&mut settings.lookup())
            .map_err(|bad| settings.blame(BadProperty::new(&bad.key, bad.value, bad.expected)))?;
        let bound = bindings::resolve(binding, &settings)?;
        let built = build(&settings, mode, &mut client, &mut warnings)?;
        warnings.extend(bound.notes);
        warnings.extend(client.warnings.iter().map(|warning| match warning {
            // YCSB's own text brings the word along.
            Warning::MoreThreads => warning.to_string().replacen("Warning: ", "", 1),
            Warning::Endless => warning.to_string(),
        }));
        warnings.extend(options.warnings.iter().cloned());
        let official = matches!(bound.target, BindingTarget::Official { .. });
        let wire = !official && !matches!(bound.target, BindingTarget::Store { .. });
        if client.pipeline > 1 && !wire {
            warnings.push(format!("dyno.pipeline={} has no effect: users block", client.pipeline));
            client.pipeline = 1;
        }
        let sizes = ["batchsize", "mongodb.batchsize"].map(|key| settings.text(key).map(str::trim));
        if let [Some(one), Some(other)] = sizes
            && one != other
        {
            warnings.push(format!("batchsize={one} and mongodb.batchsize={other}: the first counts"));
        }
        if client.batch > 1 && official {
            warnings.push(format!(
                "batchsize={} has no effect: {}",
                client.batch,
                dyno_databases::mongodb::official::NO_BATCHES
            ));
            client.batch = 1;
        }
        if mode == Mode::Load && client.warmup_ns > 0 {
            warnings.push("dyno.warmup has no effect on load: every record counts".to_owned());
            client.warmup_ns = 0;
        }
        let timeout_ns = match &bound.target {
            BindingTarget::Redis { timeout_ns, .. }
            | BindingTarget::Mongo { timeout_ns, .. }
            | BindingTarget::Memcached { timeout_ns, .. }
            | BindingTarget::Official { timeout_ns, .. } => *timeout_ns,
            BindingTarget::Store { .. } | BindingTarget::Null => client.timeout_ns,
        };
        Ok(Prepared {
            mode,
            title: format!("ycsb {} {}", mode.name(), binding.name()),
            settings,
            extras,
            client,
            options,
            target: bound.target,
            workload: built.workload,
            verbs: built.verbs,
            data_integrity: built.data_integrity,
            retry: built.retry,
            economy: built.economy,
            resume: built.resume,
            warnings,
            timeout_ns,
            seed: built.seed,
        })
    }

    /// Which latencies are reported.
    pub fn interval(&self) -> Interval {
        self.options.interval(self.client.target > 0, self.extras.compat_exit)
    }

    /// Lets inserts go on after those of earlier runs, if that is wanted: says how many there are.
    pub fn resume_inserts(
        &mut self,
        opened: &dyn OpenTarget,
        control: &Arc<Control>,
    ) -> Result<Option<String>, Failure> {
        let Some(config) = self.resume.as_mut() else { return Ok(None) };
        let found = inserted(opened, &self.workload.content(), config, control)?;
        config.earlier = Earlier::new(found.end, &found.missing);
        let (count, first) = (config.earlier.count(), config.record_count);
        let blame = |bad| Failure::Usage(self.settings.blame(bad).to_string());
        self.workload = Arc::new(CoreWorkload::run(config).map_err(blame)?);
        Ok(Some(format!("{count} inserts of earlier runs are there, from key number {first} on")))
    }

    /// The job, on load threads with these cores.
    pub fn job(&self, cores: Vec<Option<usize>>) -> Job {
        let client = &self.client;
        let pacing = match (client.target, client.arrivals) {
            (0, _) => Pacing::Closed { think_ns: 0 },
            (target, arrivals) => Pacing::Open {
                profile: Profile::Constant { rate: target as f64 },
                process: match arrivals {
                    Arrivals::Constant => Process::Constant,
                    Arrivals::Poisson => Process::Poisson,
                },
            },
        };
        let limit_ns = client.max_execution_s.map(|s| s * SECOND_NS - client.warmup_ns);
        let endless = client.operations.is_none().then_some(FOREVER_NS);
        Job {
            pacing,
            warmup_ns: client.warmup_ns,
            pipeline: client.pipeline as usize,
            batch: client.batch as usize,
            cores,
            timeout_ns: self.timeout_ns,
            queue: Queue { outlasts_end: false, ..Queue::default() },
            seed: self.seed,
            scale: Scale::Micros,
            interval_ns: client.interval_ns,
            raw_samples: self.options.needs_samples(),
            spin: client.spin_sleep,
            drain_ns: self.timeout_ns.map_or(DRAIN_NS, |ns| ns.max(DRAIN_NS)),
            retry: self.retry,
            ..Job::of(
                self.workload.clone(),
                client.threads as usize,
                End { operations: client.operations, duration_ns: limit_ns.or(endless) },
            )
        }
    }
}

/// The workload that `workload` names, in the phase of `mode`.
fn build(
    settings: &Settings,
    mode: Mode,
    client: &mut ClientConfig,
    warnings: &mut Vec<String>,
) -> Result<Built, BadSetting> {
    let blame = |bad| settings.blame(bad);
    match workload_class(settings.text("workload").unwrap_or("core")).map_err(blame)? {
        WorkloadClass::Core => core(&core_config(settings)?, mode).map_err(blame),
        WorkloadClass::ConstantOccupancy => {
            let mut histogram = |path: &str| std::fs::read_to_string(path).ok();
            let sized =
                ConstantOccupancy::from_lookup(&mut settings.lookup(), &mut histogram).map_err(blame)?;
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
            let config =
                TimeSeriesConfig::from_lookup(&mut settings.lookup(), users, now_ms()).map_err(blame)?;
            let load = mode == Mode::Load;
            let workload = match load {
                true => TimeSeriesWorkload::load(&config),
                false => TimeSeriesWorkload::run(&config).map_err(blame)?,
            };
            Ok(Built {
                workload: Arc::new(workload),
                retry: None,
                verbs: if load { vec![Verb::Insert] } else { verbs(&config.proportions) },
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
    let workload = if load { CoreWorkload::load(config)? } else { CoreWorkload::run(config)? };
    Ok(Built {
        workload: Arc::new(workload),
        // Only the load phase repeats inserts, as in YCSB.
        retry: Some(Retry { limit: config.retries.limit, pause_ns: config.retries.interval_s * SECOND_NS })
            .filter(|retry| load && retry.limit > 0),
        verbs: if load { vec![Verb::Insert] } else { verbs(&config.proportions) },
        seed: config.seed,
        data_integrity: config.data_integrity,
        economy: None,
        resume: (config.resume && !load).then(|| config.clone()),
    })
}

fn economy(settings: &Settings, mode: Mode, warnings: &mut Vec<String>) -> Result<Built, BadSetting> {
    let blame = |bad| settings.blame(bad);
    let config = EconomyConfig::from_lookup(&mut settings.lookup()).map_err(blame)?;
    warnings.extend(config.warnings.iter().cloned());
    let load = mode == Mode::Load;
    let workload = match load {
        true => EconomyWorkload::load(&config),
        false => EconomyWorkload::run(&config).map_err(blame)?,
    };
    let workload = Arc::new(workload);
    Ok(Built {
        economy: (!load).then(|| workload.clone()),
        workload,
        retry: None,
        verbs: if load { vec![Verb::Insert] } else { verbs(&config.core.proportions) },
        seed: config.core.seed,
        data_integrity: false,
        resume: None,
    })
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
