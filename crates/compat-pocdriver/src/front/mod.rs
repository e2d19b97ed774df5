//! `dyno pocdriver FLAGS`: takes POCDriver's command line and prints what POCDriver prints.
//!
//! ```text
//! flags --args--> PocConfig --> sample (-p)
//!                           '-> setup (drop, indexes, first sequence numbers) --> session --> what is still queued
//!                                                                    watch: a report every ten seconds
//! ```

mod sample;
mod watch;

use crate::WorkFrontEnd;
use crate::plan::args::PocArgs;
use crate::plan::forms::effective;
use crate::setup::{PrepareError, prepare};
use crate::work::PocWork;
use clap::ArgMatches;
use dyno_config::experiment::{Experiment, Stamps};
use dyno_config::settings::DRAWN;
use dyno_config::values::Span;
use dyno_databases::registry;
use dyno_db::target::{OpenTarget, Target};
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_engine::{Control, Job, Pacing};
use dyno_frontend::conductor::{self, AppliedPhases, RunPlan, choose_cores};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::run_directory::check_new;
use dyno_frontend::{signals, terminal};
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Reason, Setting, Status, Summary, Trust};
use dyno_session::conductor::Conductor;
use dyno_session::load_generator::LocalGenerator;
use dyno_session::work::{Prepared, Work, jobs_of_workers};
use dyno_types::rng::fresh_seed;
use dyno_workload::Workload;
use dyno_workload::pocdriver::PocConfig;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use watch::PocWatch;

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Refused(refused) => refused.into(),
            PrepareError::Command(error) => error.into(),
            PrepareError::Run(error) => error.into(),
        }
    }
}

/// Functions of this program that the load uses.
pub const FRONT_END: WorkFrontEnd = WorkFrontEnd { warn: terminal::warn, interrupted: signals::interrupted };

const SECOND_NS: u64 = 1_000_000_000;

/// The command; `matches`: what clap has found of it.
pub fn pocdriver(args: &PocArgs, matches: &ArgMatches) -> Result<Exit, Failure> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    let drawn = PocArgs { seed: args.seed.or_else(|| Some(fresh_seed())), ..args.clone() };
    let is_drawn = args.seed.is_none();
    let (args, seed) = (&drawn, drawn.seed.unwrap_or_default());
    let config = args.config(now_ms)?;
    if args.print {
        terminal::out(&sample::print(&config));
        return Ok(Exit::Ok);
    }
    // Whatever is wrong is said before -e empties anything.
    if args.workers == 0 || args.workers > config.workers {
        let expected = format!("expected 1 to {}, the number of --threads", config.workers);
        return Err(Failure::usage(format!("--workers {}: {expected}", args.workers)));
    }
    check_new(args.out.as_ref())?;
    let log = PocWatch::log(args)?;
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let mut work = PocWork::of(experiment(args, &config), args.clone(), config.clone(), FRONT_END)?;
    let (target, opened) = open(args, &work)?;
    let ready = prepare(args, &config, opened.as_ref(), FRONT_END)?;
    say_write_concern(&config, opened.as_ref());
    work.adopt(&Prepared { fresh: ready.next.clone(), ..Prepared::default() })?;
    let jobs = jobs(args, &work, target.as_ref())?;
    let workloads = work.workloads();
    let cores: Vec<Option<usize>> = jobs.iter().flat_map(|job| job.cores.clone()).collect();
    let first_ns = workloads.first().map_or(0, |workload| workload.begin_ns());
    if first_ns >= args.duration.saturating_mul(SECOND_NS) {
        terminal::warn(&format!(
            "-q {}: the first bulk of {} is due after {:.1} s, when the run is over: all goes out at its end; give a smaller -b",
            config.per_second,
            config.bulk,
            first_ns as f64 / 1e9
        ));
    }
    let mut settings = effective(matches);
    if is_drawn {
        terminal::note(&format!("seed {seed} was drawn: --seed {seed} repeats this run"));
        settings.push(Setting { key: "seed".into(), value: seed.to_string(), source: DRAWN.into() });
    }
    let plan = RunPlan {
        title: format!("pocdriver, {} workers", config.workers),
        target: target.redacted(),
        conditions: Vec::new(),
        strict: false,
        // A proof of ingest is about a rate, not about tails.
        claims: vec![Claim::Throughput],
        out: args.out.clone(),
        settings,
        scale: Scale::Ns64,
        watch: (args.out.is_some() && !args.no_monitor).then(conductor::every_second),
        busy: conductor::busy(&jobs),
    };
    let phases = |conductor: &mut Conductor<'_>| {
        let mut watch = PocWatch::new(args, workloads.clone(), ready.before, log);
        let mut ended = conductor.session.run_workers("measure", &jobs, &mut watch)?;
        // A server that has died by then takes nothing from what was measured.
        let (mut left, mut why_left) = send_the_rests(&work, &cores, opened.as_ref(), &control)?;
        if !why_left.is_empty() && MongoAdmin::from_target(opened.as_ref()).is_some() {
            // Members that were there at the beginning may be gone, and another one primary.
            if let Ok((_, now)) = open(args, &work) {
                (left, why_left) = send_the_rests(&work, &cores, now.as_ref(), &control)?;
            }
        }
        let missed = workloads.iter().map(|workload| workload.missed_iterations(args.duration * SECOND_NS));
        let (missed, due) = missed.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        ended.observations.missed = (due > 0).then_some((missed, due));
        watch.finish();
        if left > 0 {
            terminal::warn(&format!("{left} bulks that were queued at the end could not be sent{why_left}"));
        }
        Ok(AppliedPhases { ended, pacing: Pacing::Closed { think_ns: 0 }, rest: () })
    };
    let executed =
        conductor::execute(plan, &opened, control.clone(), phases, |summary, _| exit(args, summary))?;
    Ok(executed.closed.exit)
}

/// Experiment of these arguments: no time-outs and no warm-up, and times by the client's clock, as the original takes them.
fn experiment(args: &PocArgs, config: &PocConfig) -> Experiment {
    let mut spec = Experiment { seed: config.seed, ..Experiment::default() };
    spec.client.stamps = Stamps::Client;
    let measure = &mut spec.phases.measure;
    measure.users = Some(config.workers as usize);
    measure.duration = Some(Span(args.duration.saturating_mul(SECOND_NS)));
    measure.warmup = Some(Span(0));
    spec
}

fn open(args: &PocArgs, work: &PocWork) -> Result<(Box<dyn Target>, LocalGenerator), Failure> {
    let mut target = registry::parse_for(&args.host, args.client).map_err(Failure::from)?;
    target.set_database(args.names()?.0);
    let opened = conductor::open(target.as_ref(), &work.content(), &[], 1)?;
    Ok((target, opened))
}

/// Says what an acknowledgement of a write stands for: figures of a load that one member acknowledges are none of copies.
fn say_write_concern(config: &PocConfig, opened: &dyn OpenTarget) {
    let facts = opened.facts();
    let Some(message) =
        facts.get("durability").filter(|_| MongoAdmin::from_target(opened).is_some() && config.writes())
    else {
        return;
    };
    match opened.write_concern().as_deref() == Some("1") {
        false => terminal::verbatim(message),
        true => terminal::warn(&format!(
            "{message}: a write counts when one member has it, and may be lost with that member; for copies put w=majority into \
             the URI (dyno prove ingest proves them)"
        )),
    }
}

/// A job for each worker, with its share of the threads, which are numbered on from the worker before.
fn jobs(args: &PocArgs, work: &PocWork, target: &dyn Target) -> Result<Vec<Job>, Failure> {
    let job = work.measure()?;
    let cores = choose_cores(args.load_threads, job.users, target.is_local(), None)?;
    let job = Job { cores: cores.into_iter().map(Some).collect(), ..job };
    let jobs = jobs_of_workers(work, &job, args.workers as usize)?;
    jobs.iter().try_for_each(Job::check)?;
    Ok(jobs)
}

/// Sends what all workers have queued: bulks that could not be sent, and why.
fn send_the_rests(
    work: &PocWork,
    cores: &[Option<usize>],
    opened: &dyn OpenTarget,
    control: &Arc<Control>,
) -> Result<(u64, String), Failure> {
    let (mut left, mut why_left) = (0, String::new());
    for job in work.rests() {
        let rest = Job { cores: cores.to_vec(), ..job };
        let (bulks, failure) = send_the_rest(rest, opened, control);
        left += bulks;
        match failure {
            Some(Failure::Unreachable(why)) => why_left = format!(": {why}"),
            Some(other) => return Err(other),
            None => {}
        }
    }
    Ok((left, why_left))
}

/// Sends what a worker had queued when the time was over; returns the number of bulks that were not sent, and why it ended early.
fn send_the_rest(job: Job, opened: &dyn OpenTarget, control: &Arc<Control>) -> (u64, Option<Failure>) {
    let bulks = job.end.operations.unwrap_or(0);
    if signals::interrupted() {
        return (bulks, None);
    }
    let mut sent = 0;
    let ran = opened.run(job, control.clone(), &mut |second| sent += second.totals.count_ok());
    (bulks - sent.min(bulks), ran.err().map(Failure::from))
}

/// Returns whether nothing failed but searches for documents that are not there: an update of a document whose insert still
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
        let word = reason.trust.trust_word();
        terminal::warn(&format!("the run is {word} ({}): {}", reason.check, reason.text));
    }
    let invalid = reasons().any(|reason| reason.trust == Trust::Invalid);
    match summary.status {
        Status::Interrupted => Exit::Interrupted,
        _ if invalid && !args.compat_exit => Exit::Invalid,
        _ => Exit::Ok,
    }
}
