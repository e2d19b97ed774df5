//! Work: what an experiment's `workload` and `phases` ask for, as jobs of the engine.
//!
//! Controller and workers read the same text and come to the same jobs; a worker then takes its part. One file for each
//! kind of workload, chosen by `kinds`; `job_from_spec` is what they share, `users` divides those whose operations belong to
//! users.
//!
//! ```text
//! Experiment --read--> Work --prepare(opened)--> Prepared (to the other workers) --load, measure--> Job --part--> Job
//! ```

pub mod commands;
mod data_set;
pub mod documents;
pub mod job_from_spec;
pub mod kinds;
pub mod rates;
pub mod recording;
pub mod texts;
pub mod users;
pub mod ycsb;

pub use kinds::{read, read_as};

use dyno_config::experiment::Experiment;
use dyno_config::settings::Source;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, Gate, Job, RunError, Team};
use dyno_types::key_rule::KeyRule;
use dyno_types::{Content, Refused, Verb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts of a command, as workers tell each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommand {
    /// Numbers of the arguments that are keys.
    pub keys: Vec<u16>,
    /// True if it only reads.
    pub reads: bool,
    /// True if it may wait for data.
    pub blocks: bool,
}

/// Findings of the first worker of a target, for all workers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// True if records must be loaded.
    pub load: bool,
    /// The first free number of each collection or sequence, where there is such a thing.
    pub fresh: Vec<u64>,
    /// Run-phase inserts of earlier runs: how many keys they reach over, and which of them are not there.
    #[serde(default)]
    pub inserted: (u64, Vec<u64>),
    /// Facts of commands that the server has told.
    #[serde(default)]
    pub commands: Vec<FoundCommand>,
    /// Number of the database in which connections of a replay begin.
    #[serde(default)]
    pub database: u32,
    /// A number that no other replay has: sessions of a recording get ids of their own by it.
    #[serde(default)]
    pub replay_number: u64,
    /// Names of recorded commands that only read, as the server says.
    #[serde(default)]
    pub reading: Vec<String>,
    /// Where the keys of recorded commands are, by name, if the target is a cluster.
    #[serde(default)]
    pub key_rules: Option<BTreeMap<String, KeyRule>>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A workload of an experiment. Time is in nanoseconds, as everywhere in jobs.
pub trait Work: Send {
    /// Name in tables and directories.
    fn name(&self) -> String;

    /// Returns the content, which renders its requests.
    fn content(&self) -> Arc<dyn Content>;

    /// The verbs of its requests, for the driver to check.
    fn verbs(&self) -> Vec<Verb> {
        Vec::new()
    }

    /// The database it wants, where the target is MongoDB and the URI names none.
    fn database(&self) -> Option<String> {
        None
    }

    /// Collections and indexes are made, records are looked for, until `control` ends it.
    fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Prepared, RunError>;

    /// Takes over what [`Work::prepare`] has found, here or in another worker.
    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused>;

    /// Operations of the load phase, whether or not it is needed; 0 where the measured phase makes its own data.
    fn load_operations(&self) -> u64 {
        0
    }

    /// The job of the load phase: all workers of a target together.
    fn load(&self) -> Result<Option<Job>, Refused>;

    /// The job of the measured phase: all workers of a target together.
    fn measure(&self) -> Result<Job, Refused>;

    /// Jobs beside the measured one, with users or a rate of their own: the first worker of a target has them.
    fn beside(&self) -> Result<Vec<Job>, Refused> {
        Ok(Vec::new())
    }

    /// Share of worker `index` of `total` in a job.
    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        if total == 1 {
            return Ok(job.clone());
        }
        let part = job.divide_among(total)?.swap_remove(index);
        let own = part.workload.part(index as u64, total as u64);
        Ok(Job { workload: own.unwrap_or(part.workload), ..part })
    }

    /// Returns the operations still queued when the measured phase ended, after this worker's [`Work::part`] of it
    /// has run: a job that is not measured, as many requests as its `end` says.
    fn rest(&self) -> Option<Job> {
        None
    }

    /// Every setting of the workload with its source, for the run directory.
    fn settings(&self) -> dyno_config::settings::PropertySettings {
        dyno_config::settings::PropertySettings::new()
    }
}

/// The measured job of a workload, as `phases` and `client` ask for it; for workloads that are read elsewhere.
pub fn measured_job(spec: &Experiment, workload: Arc<dyn dyno_workload::Workload>) -> Result<Job, Refused> {
    job_from_spec::measure_job(spec, workload)
}

/// The load job of a workload; for workloads that are read elsewhere.
///
/// # Errors
/// Names the key of `phases` whose value cannot be used.
pub fn load_job(
    spec: &Experiment,
    workload: Arc<dyn dyno_workload::Workload>,
    operations: u64,
) -> Result<Job, Refused> {
    job_from_spec::load_job(spec, workload, operations)
}

/// The measured job of the only worker of a target and those beside it, which begin together; `gate` may hold them back.
pub fn with_jobs_beside(job: Job, beside: Vec<Job>, gate: Option<Arc<Gate>>) -> Vec<Job> {
    let (count, frontier) = (1 + beside.len(), job.workload.frontier());
    let team = match gate {
        Some(gate) => Some(Team::with_gate(count, frontier, gate)),
        None => (count > 1).then(|| Team::new(count, frontier)),
    };
    let all = std::iter::once(job).chain(beside);
    all.map(|job| Job { team: team.clone(), ..job }).collect()
}

/// The jobs of `total` workers of this process: each has its part of the users, and of the load threads.
///
/// # Errors
/// As [`Work::part`].
pub fn jobs_of_workers(work: &dyn Work, job: &Job, total: usize) -> Result<Vec<Job>, Refused> {
    if total == 1 {
        return Ok(vec![job.clone()]);
    }
    let team = Team::new(total, job.workload.frontier());
    let part = |index: usize| {
        let part = work.part(job, index, total)?;
        Ok(Job { team: Some(team.clone()), ..part })
    };
    (0..total).map(part).collect()
}

/// Wording by which the user says what is wanted: by keys of a file, or by options of a command. Messages and the list of
/// settings use these words.
pub struct Wording<'a> {
    /// Returns who set a key of the experiment, such as `workload.ycsb.records`, or a property of YCSB's:
    /// `workload.ycsb.properties.NAME`.
    pub source: &'a dyn Fn(&str) -> Source,
    /// Says that data are loaded although some are there.
    pub reload: &'static str,
    /// Says that data are taken as they are.
    pub no_load: &'static str,
}

impl Wording<'static> {
    /// An experiment file's.
    pub const FILE: Wording<'static> = Wording {
        source: &|key| {
            let properties = ["workload.ycsb.properties", "workload.ycsb.run_properties"];
            let whole = properties.into_iter().find(|whole| key.starts_with(whole));
            Source::Option { flag: whole.unwrap_or(key).to_owned() }
        },
        reload: "phases.load.when: `always`",
        no_load: "`never`",
    };
}
