//! POCDriver's flags as the work of an experiment.

use crate::WorkFrontEnd;
use crate::plan::args::PocArgs;
use crate::plan::forms::normal;
use crate::setup::{self, PrepareError};
use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};
use dyno_config::experiment::{Experiment, When};
use dyno_config::values::Span;
use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job, Pacing, RunError};
use dyno_session::work::users::part_of_users;
use dyno_session::work::{Prepared, Work, measured_job};
use dyno_types::limits::DRAIN_NS;
use dyno_types::{Content, Outcome, RefusalCode, Refused};
use dyno_workload::Workload;
use dyno_workload::pocdriver::{PocConfig, PocWorkload};
use dyno_workload::ycsb::BadProperty;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// "Now" of the date fields, milliseconds since 1970: the same for all workers and repetitions.
const NOW_MS: i64 = 1_700_000_000_000;

/// A load of POCDriver's.
pub struct PocWork {
    caller: WorkFrontEnd,
    spec: Experiment,
    args: PocArgs,
    config: PocConfig,
    next: Vec<u64>,
    content: Arc<dyn Content>,
    /// The measured phase, which knows what is still queued.
    made: Mutex<MeasuredParts>,
}

/// The measured phase: whole, or the parts of it that workers of this process have.
#[derive(Default)]
struct MeasuredParts {
    parts: Vec<(Arc<PocWorkload>, Job)>,
    whole: bool,
}

/// The key of an experiment that has the flags.
const KEY: &str = "workload.pocdriver";

fn refuse_flags(code: RefusalCode, failure: &dyn Display) -> Refused {
    Refused::new(code, KEY, format!("{KEY}: {failure}"))
}

fn bad(bad: BadProperty) -> Refused {
    let BadProperty { key, value, expected } = bad;
    refuse_flags(RefusalCode::BadValue, &format_args!("{key} {value}: expected {expected}"))
}

/// Flags that are not understood.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.first_line())]
pub struct BadFlags(#[from] clap::Error);

impl BadFlags {
    /// Returns the kind of the refusal.
    fn refusal_code(&self) -> RefusalCode {
        match self.0.kind() {
            ErrorKind::UnknownArgument => RefusalCode::UnknownName,
            ErrorKind::ArgumentConflict => RefusalCode::Conflict,
            ErrorKind::MissingRequiredArgument => RefusalCode::Missing,
            _ => RefusalCode::BadValue,
        }
    }

    /// Says it without the usage.
    fn first_line(&self) -> String {
        let text = self.0.to_string();
        let first = text.lines().next().unwrap_or("flags that are not understood");
        first.trim_start_matches("error: ").to_owned()
    }
}

/// Reads flags, words with blanks between them; `warn` hears of flags that are given twice.
///
/// # Errors
/// The parser's own.
pub fn parse(flags: &str, warn: fn(&str)) -> Result<PocArgs, BadFlags> {
    let command = PocArgs::augment_args(Command::new("pocdriver").no_binary_name(true));
    let words = ["dyno", "pocdriver"].into_iter().chain(flags.split_whitespace()).map(Into::into).collect();
    let words = normal(words, warn).into_iter().skip(2);
    Ok(PocArgs::from_arg_matches(&command.try_get_matches_from(words)?)?)
}

fn code_of(error: &PrepareError) -> RefusalCode {
    match error {
        PrepareError::Refused(refused) | PrepareError::Run(RunError::Refused(refused)) => {
            refused.refusal_code()
        }
        _ => RefusalCode::Unsupported,
    }
}

/// Says why a load could not be prepared, and whether that is the target's fault.
fn describe_error(error: &PrepareError) -> String {
    let unreachable = match error {
        PrepareError::Refused(_) => false,
        PrepareError::Command(error) => error.server_code().is_none(),
        PrepareError::Run(RunError::Unreachable { outcome: Outcome::Aborted, .. }) => {
            return "interrupted".into();
        }
        PrepareError::Run(RunError::Unreachable { message, .. }) => {
            return format!("target unreachable: {message}");
        }
        PrepareError::Run(_) => false,
    };
    format!("{}{error}", if unreachable { "target unreachable: " } else { "" })
}

impl PocWork {
    /// Reads flags: words with blanks between them.
    ///
    /// # Errors
    /// The flag that is not understood, or that cannot be.
    pub fn read(spec: &Experiment, flags: &str, caller: WorkFrontEnd) -> Result<Self, Refused> {
        let mut args = parse(flags, caller.warn).map_err(|why| refuse_flags(why.refusal_code(), &why))?;
        let mut spec = spec.clone();
        let measure = &mut spec.phases.measure;
        match measure.concurrency() {
            Some(users) => args.threads = users as u32,
            None => measure.set_concurrency(args.threads as usize),
        }
        if measure.duration.is_none() && measure.operations.is_none() {
            measure.duration = Some(Span(args.duration * 1_000_000_000));
        }
        measure.warmup.get_or_insert(Span(0));
        args.seed = Some(spec.run_seed());
        args.empty |= spec.phases.load.when == When::Always;
        let config = args.config(NOW_MS).map_err(|why| refuse_flags(why.refusal_code(), &why))?;
        Self::of(spec, args, config, caller)
    }

    /// The work of flags that have been read; `phases.measure` says how many users, and how long.
    ///
    /// # Errors
    /// Names the flag whose value cannot be used.
    pub fn of(
        spec: Experiment,
        args: PocArgs,
        config: PocConfig,
        caller: WorkFrontEnd,
    ) -> Result<Self, Refused> {
        let content = PocWorkload::new(&config, &[]).map_err(bad)?.content();
        Ok(PocWork { caller, spec, args, config, next: Vec::new(), content, made: Mutex::default() })
    }

    /// The workloads of the measured phase: one, or one for each part that was asked for since.
    pub fn workloads(&self) -> Vec<Arc<PocWorkload>> {
        self.made().parts.iter().map(|(workload, _)| workload.clone()).collect()
    }

    /// Jobs of what is still queued, one for each part: not measured.
    pub fn rests(&self) -> Vec<Job> {
        self.made().parts.iter().filter_map(|(workload, job)| rest(workload, job)).collect()
    }

    fn made(&self) -> MutexGuard<'_, MeasuredParts> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workload(&self, config: &PocConfig, next: &[u64]) -> Result<Arc<PocWorkload>, Refused> {
        PocWorkload::new(config, next).map(Arc::new).map_err(bad)
    }
}

impl Work for PocWork {
    fn name(&self) -> String {
        "pocdriver".into()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn database(&self) -> Option<String> {
        self.args.names().ok().map(|(database, _)| database.to_owned())
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, _control: &Arc<Control>) -> Result<Prepared, RunError> {
        let ready = setup::prepare(&self.args, &self.config, opened, self.caller)
            .map_err(|error| refuse_flags(code_of(&error), &describe_error(&error)))?;
        Ok(Prepared { fresh: ready.next, ..Prepared::default() })
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.next = prepared.fresh.clone();
        Ok(())
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        Ok(None)
    }

    fn measure(&self) -> Result<Job, Refused> {
        let workload = self.workload(&self.config, &self.next)?;
        let job = Job { timeout_ns: None, ..measured_job(&self.spec, workload.clone())? };
        *self.made() = MeasuredParts { parts: vec![(workload, job.clone())], whole: true };
        Ok(job)
    }

    fn part(&self, job: &Job, index: usize, total: usize) -> Result<Job, Refused> {
        let (threads, total, index) = (self.config.workers, total as u32, index as u32);
        if total == 1 {
            return Ok(job.clone());
        }
        if total > threads {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "client.workers",
                format!("client.workers: {total}: expected 1 to {threads}, the number of users"),
            ));
        }
        let own = |n: u32| threads / total + u32::from(n < threads % total);
        let first = (0..index).map(own).sum::<u32>();
        let mine = own(index);
        let cap = part_of_rate(self.config.per_second, u64::from(first), u64::from(mine), u64::from(threads));
        let config = PocConfig {
            workers: mine,
            first_worker: self.config.first_worker + first,
            per_second: cap,
            ..self.config.clone()
        };
        let next = self.next.get(first as usize..(first + mine) as usize).unwrap_or_default();
        let workload = self.workload(&config, next)?;
        let part = part_of_users(job, workload.clone(), index as usize, total as usize);
        let mut made = self.made();
        if std::mem::take(&mut made.whole) {
            made.parts.clear();
        }
        made.parts.push((workload, part.clone()));
        Ok(part)
    }

    fn rest(&self) -> Option<Job> {
        self.rests().pop()
    }
}

/// The share of a cap of `own` threads from number `first` on: the shares of all add up to the cap; 0 is no cap.
fn part_of_rate(cap: u64, first: u64, own: u64, threads: u64) -> u64 {
    let upto = |thread: u64| (u128::from(cap) * u128::from(thread) / u128::from(threads.max(1))) as u64;
    if cap == 0 { 0 } else { (upto(first + own) - upto(first)).max(1) }
}

/// A job of the bulks that a workload still has in its queues, if there are any.
fn rest(workload: &PocWorkload, job: &Job) -> Option<Job> {
    let (rest, bulks) = workload.queued_writes(job.end.duration_ns.unwrap_or(0));
    (bulks > 0).then(|| Job {
        workload: Arc::new(rest),
        pacing: Pacing::Closed { think_ns: 0 },
        end: End { operations: Some(bulks), duration_ns: Some(DRAIN_NS) },
        timeout_ns: Some(DRAIN_NS),
        warmup_ns: 0,
        users: bulks as usize,
        warm_users: None,
        cores: job.cores.iter().copied().take(bulks as usize).collect(),
        pipeline: 1,
        team: None,
        // It is this worker's own, whatever part of the arrivals was.
        stripe: (0, 1),
        ..job.clone()
    })
}
