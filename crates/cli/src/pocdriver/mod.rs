//! `dyno pocdriver FLAGS`: takes POCDriver's command line and prints what POCDriver prints.
//!
//! ```text
//! flags --args--> PocConfig --> sample (-p)
//!                           '-> setup (drop, indexes, first sequence numbers) --> session --> what is still queued
//!                                                                    watch: a report every ten seconds
//! ```

mod sample;
mod watch;

use crate::conductor::{self, Conductor, RunPlan, choose_cores};
use crate::exit::{Exit, Failure};
use crate::run_directory::check_new;
use crate::work::CALLER;
use crate::{signals, terminal};
use dyno_compat_pocdriver::plan::args::PocArgs;
use dyno_compat_pocdriver::plan::forms::effective;
use dyno_compat_pocdriver::setup::{prepare, refused};
use dyno_compat_pocdriver::work::{part_of_rate, rest};
use dyno_databases::registry;
use dyno_databases::target::{OpenTarget, Target};
use dyno_engine::{Control, End, Job, Pacing, Team, every_nth};
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Reason, Status, Summary, Trust};
use dyno_session::load_generator::InProcess;
use dyno_workload::pocdriver::{PocConfig, PocWorkload};
use dyno_workload::{Frontier, Workload};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use watch::Watch;

const SECOND_NS: u64 = 1_000_000_000;

/// The command.
pub fn pocdriver(args: &PocArgs) -> Result<Exit, Failure> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    let config = args.config(now_ms)?;
    if args.print {
        terminal::out(&sample::print(&config));
        return Ok(Exit::Ok);
    }
    // Whatever is wrong is said before -e empties anything.
    check_new(args.out.as_ref())?;
    let log = Watch::log(args)?;
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let (target, opened) = open(args, &config)?;
    let ready = prepare(args, &config, opened.as_ref(), CALLER)?;
    say_write_concern(&config, opened.as_ref());
    let jobs = jobs(args, &config, &ready.next, target.as_ref())?;
    let workloads: Vec<Arc<PocWorkload>> = jobs.iter().map(|(workload, _)| workload.clone()).collect();
    let jobs: Vec<Job> = jobs.into_iter().map(|(_, job)| job).collect();
    let first_ns = workloads.first().map_or(0, |workload| workload.begin_ns());
    if first_ns >= args.duration.saturating_mul(SECOND_NS) {
        terminal::warn(&format!(
            "-q {}: the first bulk of {} is due after {:.1} s, when the run is over: all goes out at its end; give a smaller -b",
            config.per_second,
            config.bulk,
            first_ns as f64 / 1e9
        ));
    }
    let plan = RunPlan {
        title: format!("pocdriver, {} workers", config.workers),
        target: target.redacted(),
        conditions: Vec::new(),
        // A proof of ingest is about a rate, not about tails.
        claims: vec![Claim::Throughput],
        out: args.out.clone(),
        settings: effective(),
        scale: Scale::Ns64,
        watch: (args.out.is_some() && !args.no_monitor).then(conductor::every_second),
        busy: conductor::busy(&jobs),
    };
    let mut conductor = Conductor::begin(plan, &opened, control.clone())?;
    let mut watch = Watch::new(args, workloads.clone(), ready.before, log);
    let ended = conductor.session.run_workers("measure", &jobs, &mut watch);
    let mut ended = ended.map_err(|error| conductor.failed(error.into()))?;
    let mut left = 0;
    for (workload, job) in workloads.iter().zip(&jobs) {
        left += send_the_rest(workload, opened.as_ref(), job, &control)?;
    }
    let missed = workloads.iter().map(|workload| workload.missed(args.duration * SECOND_NS));
    let (missed, due) = missed.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    ended.observations.missed = (due > 0).then_some((missed, due));
    let summary = conductor.finish(&ended, &Pacing::Closed { think_ns: 0 });
    watch.finish();
    if left > 0 {
        terminal::warn(&format!("{left} bulks that were queued at the end could not be sent"));
    }
    Ok(conductor.close(exit(args, &summary)))
}

fn open(args: &PocArgs, config: &PocConfig) -> Result<(Box<dyn Target>, InProcess), Failure> {
    let mut target = registry::parse_for(&args.host, args.client).map_err(Failure::from)?;
    target.set_database(args.names()?.0);
    let probe = PocWorkload::new(config, &[]).map_err(refused)?;
    let opened = conductor::open(target.as_ref(), &probe.content(), &[], 1)?;
    Ok((target, opened))
}

/// Says what an acknowledgement of a write stands for: figures of a load that one member acknowledges are none of copies.
fn say_write_concern(config: &PocConfig, opened: &dyn OpenTarget) {
    let facts = opened.facts();
    let Some(words) = facts.get("durability").filter(|_| opened.mongo_admin().is_some() && config.writes())
    else {
        return;
    };
    let one = words.starts_with("write concern w: 1") && !words.starts_with("write concern w: 1.");
    match one {
        false => terminal::note(words),
        true => terminal::warn(&format!(
            "{words}: a write counts when one member has it, and may be lost with that member; for copies put w=majority into \
             the URI (dyno prove ingest proves them)"
        )),
    }
}

/// A job for each worker, with its share of the threads, which are numbered on from the worker before.
fn jobs(
    args: &PocArgs,
    config: &PocConfig,
    next: &[u64],
    target: &dyn Target,
) -> Result<Vec<(Arc<PocWorkload>, Job)>, Failure> {
    let (workers, threads) = (args.workers, config.workers);
    if workers == 0 || workers > threads {
        let expected = format!("expected 1 to {threads}, the number of --threads");
        return Err(Failure::Usage(format!("--workers {workers}: {expected}")));
    }
    let cores = choose_cores(args.load_threads, threads as usize, target.is_local(), None)?;
    let cores: Vec<Option<usize>> = cores.into_iter().map(Some).collect();
    let team = (workers > 1).then(|| Team::new(workers as usize, Frontier::new(0)));
    let mut first = 0;
    let part = |number: u32| {
        let own = threads / workers + u32::from(number < threads % workers);
        let mine = PocConfig {
            workers: own,
            first_worker: config.first_worker + first,
            per_second: part_of_rate(config.per_second, u64::from(first), u64::from(own), u64::from(threads)),
            ..config.clone()
        };
        let next = next.get(first as usize..(first + own) as usize).unwrap_or_default();
        let workload = Arc::new(PocWorkload::new(&mine, next).map_err(refused)?);
        first += own;
        let job = Job {
            cores: every_nth(&cores, number as usize, workers as usize),
            team: team.clone(),
            ..job(args, &mine, workload.clone())
        };
        job.check().map_err(Failure::from)?;
        Ok((workload, job))
    };
    (0..workers).map(part).collect()
}

fn job(args: &PocArgs, config: &PocConfig, workload: Arc<PocWorkload>) -> Job {
    Job {
        cores: Vec::new(),
        seed: config.seed,
        ..Job::of(
            workload,
            config.workers as usize,
            End { operations: None, duration_ns: Some(args.duration * SECOND_NS) },
        )
    }
}

/// Sends what the workers had queued when the time was over; returns the number of bulks that failed.
fn send_the_rest(
    workload: &PocWorkload,
    opened: &dyn OpenTarget,
    job: &Job,
    control: &Arc<Control>,
) -> Result<u64, Failure> {
    let Some(job) = rest(workload, job) else { return Ok(0) };
    let bulks = job.end.operations.unwrap_or(0);
    if signals::interrupted() {
        return Ok(bulks);
    }
    let mut sent = 0;
    opened.run(job, control.clone(), &mut |second| sent += second.totals.ok()).map_err(Failure::from)?;
    Ok(bulks - sent.min(bulks))
}

/// Whether nothing failed but searches for documents that are not there: an update of a document whose insert still
/// waits for its bulk finds nothing, and that is how this load works.
fn only_misses(summary: &Summary) -> bool {
    let measured = summary.phases.iter().filter(|phase| phase.name == "measure");
    measured
        .flat_map(|phase| &phase.outcomes)
        .all(|(name, count)| *count == 0 || name == "ok" || name == "not_found")
}

fn exit(args: &PocArgs, summary: &Summary) -> Exit {
    let matters = |reason: &&Reason| {
        let misses = reason.check == "errors" && only_misses(summary);
        reason.trust != Trust::Valid && summary.verdict.is_asked(reason) && !misses
    };
    let reasons = || summary.verdict.reasons.iter().filter(matters);
    for reason in reasons() {
        let word = reason.trust.word();
        terminal::warn(&format!("the run is {word} ({}): {}", reason.check, reason.text));
    }
    let invalid = reasons().any(|reason| reason.trust == Trust::Invalid);
    match summary.status {
        Status::Interrupted => Exit::Interrupted,
        _ if invalid && !args.compat_exit => Exit::Invalid,
        _ => Exit::Ok,
    }
}
