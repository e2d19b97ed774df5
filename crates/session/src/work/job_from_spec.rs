//! Parts that jobs of all kinds take from `phases` and `client`.

use crate::work::rates::parse_profile;
use dyno_config::experiment::{Arrivals, Experiment, Stamps};
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::{Clock, End, Job, Pacing, Queue};
use dyno_types::limits::THREADS;
use dyno_types::{RefusalCode, Refused};
use dyno_workload::Workload;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// The measured job of `workload`.
pub(super) fn measure_job(spec: &Experiment, workload: Arc<dyn Workload>) -> Result<Job, Refused> {
    let measure = &spec.phases.measure;
    let operations = measure.operations.as_ref().map(|n| n.0);
    let duration_ns = match (&measure.duration, operations) {
        (Some(span), _) => Some(span.0),
        (None, None) => Some(10 * SECOND_NS),
        (None, Some(_)) => None,
    };
    let warmup = spec.phases.warmup.as_ref();
    let warmup_ns = match (warmup.map(|own| &own.duration).or(measure.warmup.as_ref()), duration_ns) {
        (Some(span), _) => span.0,
        (None, Some(ns)) => (ns / 10).min(5 * SECOND_NS),
        (None, None) => 0,
    };
    let users = measure.concurrency().unwrap_or(if measure.rate.is_some() { 64 } else { 16 });
    let interval_ns = measure.interval.0;
    if let Some(threads) = spec.client.threads.filter(|threads| *threads > THREADS) {
        return Err(Refused::new(
            RefusalCode::Limit,
            "client.threads",
            format!("{threads} load threads: expected 1 to {THREADS}"),
        ));
    }
    let job = Job {
        pacing: pacing(spec)?,
        warmup_ns,
        warm_users: warmup.and_then(|own| own.users).map(|warm| warm.min(users)),
        pipeline: measure.pipeline,
        cores: cores(spec),
        timeout_ns: Some(measure.timeout.0).filter(|ns| *ns > 0),
        queue: Queue {
            length: measure.queue.0,
            age_ns: measure.queue_age.as_ref().map(|span| span.0),
            ..Queue::default()
        },
        seed: spec.run_seed(),
        interval_ns,
        stamps: match spec.client.stamps {
            Stamps::Kernel => Clock::Kernel,
            Stamps::Hardware => Clock::Hardware,
            Stamps::Client => Clock::Client,
        },
        drain_ns: measure.drain.0,
        ..Job::closed_loop(workload, users, End { operations, duration_ns })
    };
    job.check()?;
    Ok(job)
}

/// The load job of `workload`: closed loop unless a rate is given, until `operations` are done.
pub(super) fn load_job(
    spec: &Experiment,
    workload: Arc<dyn Workload>,
    operations: u64,
) -> Result<Job, Refused> {
    let load = &spec.phases.load;
    let pacing = match &load.rate {
        Some(rate) => {
            Pacing::Open { profile: profile(spec, "phases.load.rate", rate)?, process: Process::Constant }
        }
        None => Pacing::Closed { think_ns: 0 },
    };
    let job = Job {
        pacing,
        end: End { operations: Some(operations), duration_ns: None },
        warmup_ns: 0,
        users: load.users,
        warm_users: None,
        pipeline: load.pipeline,
        batch: load.batch,
        ..measure_job(spec, workload)?
    };
    job.check()?;
    Ok(job)
}

/// How operations are paced, as `phases.measure` asks for it.
pub(super) fn pacing(spec: &Experiment) -> Result<Pacing, Refused> {
    let measure = &spec.phases.measure;
    let Some(rate) = &measure.rate else {
        return Ok(Pacing::Closed { think_ns: measure.think.as_ref().map_or(0, |span| span.0) });
    };
    let read = |key: &str, rate: &str| profile(spec, key, rate);
    let mut profile = read("phases.measure.rate", rate)?;
    if let Some(warmup) = &spec.phases.warmup
        && let Some(rate) = &warmup.rate
    {
        profile = Profile::first_then(read("phases.warmup.rate", rate)?, warmup.duration.0, profile);
    }
    let process = match measure.arrivals {
        Arrivals::Poisson => Process::Poisson,
        Arrivals::Constant => Process::Constant,
    };
    Ok(Pacing::Open { profile, process })
}

/// The rate over time at a key of the experiment.
fn profile(spec: &Experiment, key: &str, rate: &str) -> Result<Profile, Refused> {
    let bad = |e| Refused::new(RefusalCode::BadValue, key, format!("{key}: {e}"));
    parse_profile(spec, rate).map_err(bad)
}

/// Load threads as far as the file says; a worker fills in what it does not.
fn cores(spec: &Experiment) -> Vec<Option<usize>> {
    let pinned = |core: usize| spec.client.pin.then_some(core);
    match (&spec.client.cores, spec.client.threads) {
        (Some(cores), Some(threads)) => {
            cores.0.iter().cycle().take(threads).map(|core| pinned(*core)).collect()
        }
        (Some(cores), None) => cores.0.iter().map(|core| pinned(*core)).collect(),
        (None, threads) => vec![None; threads.unwrap_or(1).max(1)],
    }
}
