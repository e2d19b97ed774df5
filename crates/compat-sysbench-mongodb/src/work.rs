//! sysbench-mongodb's load and transactions as the work of an experiment.

use crate::plan::parse_named;
use crate::plan::resolve::{Overrides, SysbenchPlan};
use dyno_config::experiment::{Experiment, When};
use dyno_config::settings::Source;
use dyno_config::values::Span;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, Job, RunError, share_of};
use dyno_session::dataset_check::{DOCUMENTS, same_documents};
use dyno_session::work::users::part_of_users;
use dyno_session::work::{Prepared, Work, load_job, measured_job};
use dyno_types::{Content, RefusalCode, Refused};
use dyno_workload::sysbench_mongodb::{INDEX, SysbenchConfig, SysbenchLoad, SysbenchRun};
use dyno_workload::ycsb::BadProperty;
use dyno_workload::{Frontier, Workload};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// The variable that names a configuration file.
const CONFIG: &str = "CONFIG";

/// Collections `sbtest1` to `sbtestN` and their transaction.
pub struct SysbenchWork {
    spec: Experiment,
    plan: SysbenchPlan,
    content: Arc<dyn Content>,
    must_load: bool,
}

fn refuse_variables(why: &dyn Display) -> Refused {
    Refused::new(RefusalCode::BadValue, "workload.sysbench", format!("workload.sysbench: {why}"))
}

fn bad(bad: BadProperty) -> Refused {
    let BadProperty { key, value, expected } = bad;
    refuse_variables(&format_args!("{key} {value}: expected {expected}"))
}

impl SysbenchWork {
    /// Reads `workload.sysbench` of an experiment.
    ///
    /// # Errors
    /// Names the variable that is unknown, or whose value cannot be used.
    pub fn read(spec: &Experiment, variables: &BTreeMap<String, String>) -> Result<Self, Refused> {
        let mut words: Vec<String> = variables.get(CONFIG).into_iter().cloned().collect();
        let pairs = variables.iter().filter(|(name, _)| *name != CONFIG);
        words.extend(pairs.map(|(name, value)| format!("{name}={value}")));
        // The clock would give every worker another seed.
        if !variables.contains_key("SEED") {
            words.push(format!("SEED={}", spec.run_seed()));
        }
        let overrides = Overrides { dialect: None, faithful: false, independent: false };
        let plan = parse_named(&words, &overrides, 0).map_err(|e| refuse_variables(&e))?;
        Self::of(spec, plan)
    }

    /// The work of a configuration that has been read; users and length of an experiment have the last word.
    ///
    /// # Errors
    /// Names the variable whose value cannot be used.
    pub fn of(spec: &Experiment, mut plan: SysbenchPlan) -> Result<Self, Refused> {
        let mut spec = spec.clone();
        let measure = &mut spec.phases.measure;
        match measure.concurrency() {
            Some(users) => plan.config.writers = users as u32,
            None => measure.set_concurrency(plan.config.writers as usize),
        }
        if measure.duration.is_none() && measure.operations.is_none() {
            measure.duration = Some(Span(plan.run_seconds * 1_000_000_000));
        }
        // The original has no warm-up: its users leave the beginning out themselves.
        measure.warmup.get_or_insert(Span(0));
        spec.phases.load.users = plan.config.loaders as usize;
        let must_load = spec.phases.load.when == When::Always;
        let content = SysbenchRun::new(&plan.config).map_err(bad)?.content();
        Ok(SysbenchWork { spec, plan, content, must_load })
    }
}

/// Refuses collections whose documents do not look like those that a load would write; `ways` say how to go on.
pub fn same_collections(
    opened: &dyn OpenTarget,
    config: &SysbenchConfig,
    ways: &str,
) -> Result<(), RunError> {
    let Some(collections) = opened.collections() else { return Ok(()) };
    let load = SysbenchLoad::new(config).map_err(bad)?;
    let (content, first) = (load.content(), load.request(0, &Frontier::new(0)));
    let wanted = |number: u32| {
        let mut out = Vec::new();
        content.document(&first, number, &mut out);
        out
    };
    let wanted: Vec<Vec<u8>> = (0..content.documents(&first).min(DOCUMENTS as u32)).map(wanted).collect();
    (1..=config.collections)
        .try_for_each(|number| same_documents(collections.as_ref(), &collection(number), &wanted, &[], ways))
}

/// The name of a collection, from 1.
fn collection(number: u32) -> String {
    format!("sbtest{number}")
}

impl Work for SysbenchWork {
    fn name(&self) -> String {
        "sysbench-mongodb".into()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn database(&self) -> Option<String> {
        Some(self.plan.database.clone())
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, _control: &Arc<Control>) -> Result<Prepared, RunError> {
        let (config, when) = (&self.plan.config, self.spec.phases.load.when);
        let mut load = when != When::Never;
        let ways =
            "phases.load.when: `always` drops them and loads them again, `never` takes them as they are";
        let Some(collections) = opened.collections() else {
            return Ok(Prepared { load, ..Prepared::default() });
        };
        let fields = [(INDEX.1.to_owned(), 1)];
        let mut there = 0;
        for number in 1..=config.collections {
            let name = collection(number);
            if when == When::Always {
                collections.remove(&name)?;
            }
            collections.index(&name, INDEX.0, &fields)?;
            let count = collections.count(&name)?;
            if when == When::Missing && count > 0 && count < u64::from(config.documents) {
                let message =
                    "phases.load.when: `always` drops it and loads it again, `never` takes it as it is";
                let message = format!("{name} holds {count} documents, not {}: {message}", config.documents);
                return Err(Refused::new(RefusalCode::OtherData, "phases.load.when", message).into());
            }
            there += u32::from(count >= u64::from(config.documents));
        }
        if when == When::Missing {
            same_collections(opened, config, ways)?;
        }
        load &= there < config.collections;
        Ok(Prepared { load, ..Prepared::default() })
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.must_load = prepared.load;
        Ok(())
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        if !self.must_load {
            return Ok(None);
        }
        let load = Arc::new(SysbenchLoad::new(&self.plan.config).map_err(bad)?);
        let operations = load.count_inserts();
        let job = load_job(&self.spec, load, operations)?;
        // A batch is one operation here already, and may take as long as the server likes.
        Ok(Some(Job { batch: 1, timeout_ns: None, ..job }))
    }

    fn measure(&self) -> Result<Job, Refused> {
        let run = Arc::new(SysbenchRun::new(&self.plan.config).map_err(bad)?);
        measured_job(&self.spec, run)
    }

    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        if total == 1 || !job.workload.is_per_user() {
            return match total {
                1 => Ok(job.clone()),
                _ => Ok(job.divide_among(total)?.swap_remove(index)),
            };
        }
        // Users are numbered on from worker to worker: the stream of each is its own.
        let config = &self.plan.config;
        let users = config.writers as usize;
        if total > users {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "client.workers",
                format!("client.workers: {total}: expected 1 to {users}, the number of users"),
            ));
        }
        let own = |n: usize| share_of(users, n, total) as u32;
        let mine = SysbenchConfig {
            writers: own(index),
            first_writer: config.first_writer + (0..index).map(own).sum::<u32>(),
            all_writers: config.writers,
            ..config.clone()
        };
        let workload = Arc::new(SysbenchRun::new(&mine).map_err(bad)?);
        Ok(part_of_users(job, workload, index, total))
    }

    fn settings(&self) -> dyno_config::settings::PropertySettings {
        let mut settings = dyno_config::settings::PropertySettings::new();
        for one in &self.plan.provenance {
            settings.set_property(&one.key, &one.value, Source::Option { flag: one.source.clone() });
        }
        settings
    }
}
