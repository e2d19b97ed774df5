//! Carries out `load` and `run`: target, job, report, in YCSB's order.

use super::audit;
use super::output::{check, exit_of, say, say_integrity, warn, warn_of, write};
use super::watch::YcsbWatch;
use super::ycsb_failure::YcsbFailure;
use crate::plan::{Mode, YcsbCommand};
use crate::report::metrics::metrics;
use crate::report::render::Overall;
use crate::work::YcsbWork;
use dyno_config::client::Warning;
use dyno_engine::{Control, Job};
use dyno_frontend::conductor::{self, AppliedPhases, ExecutedRun, RunPlan, choose_cores, settings_list};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, summary, terminal};
use dyno_record::Scale;
use dyno_report::summary::SummaryExtras;
use dyno_rundir::schema::Summary;
use dyno_session::conductor::Conductor;
use dyno_session::load_generator::LocalGenerator;
use dyno_session::work::{Work, jobs_of_workers};
use dyno_workload::ycsb::Audit;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The version whose output this is: YCSB's main line, which has more percentiles than the release 0.17.0.
const YCSB: &str = "0.18.0-SNAPSHOT";

/// A target that answers, and what belongs to it.
struct OpenBinding {
    opened: LocalGenerator,
    /// URI of the target without secrets.
    shown: String,
    /// True if it runs on this host, so that a core is left to it.
    local: bool,
    /// Where the `basic` binding writes its lines.
    lines: Arc<Mutex<terminal::Results>>,
}

/// The command; `shown` is its line without secrets.
pub(super) fn run(command: YcsbCommand, shown: &str) -> Result<Exit, YcsbFailure> {
    let mut work = YcsbWork::new(command)?;
    check(&work)?;
    for warning in &work.warnings {
        warn(&work, warning);
    }
    say(&work, &format!("Command line: {shown}"));
    if work.extras.compat_exit {
        say(&work, &format!("YCSB Client {YCSB}\n"));
        if work.client.warnings.contains(&Warning::MoreThreads) {
            terminal::out(&format!("{}\n", Warning::MoreThreads));
        }
    } else {
        say(&work, &format!("YCSB Client {YCSB} (dyno {})\n", env!("CARGO_PKG_VERSION")));
        if let Some(seed) = work.drawn_seed() {
            say(&work, &format!("Seed {seed} (drawn): -p dyno.seed={seed} repeats it"));
        }
    }
    say(&work, "Loading workload...");
    say_integrity(&work);
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let place = open(&work)?;
    let (job, jobs) = jobs(&mut work, &place, &control)?;
    let (extras, title) = (&work.extras, work.title.clone());
    let plan = RunPlan {
        title,
        target: place.shown.clone(),
        conditions: Vec::new(),
        strict: false,
        claims: Vec::new(),
        out: extras.out.clone(),
        settings: settings_list(&work.settings),
        scale: Scale::Micros,
        watch: (extras.out.is_some() && !extras.no_monitor).then(conductor::every_second),
        busy: conductor::busy(&jobs),
    };
    let mut watch = YcsbWatch::new(&work);
    let phases = |conductor: &mut Conductor<'_>| {
        conductor.session.keep_samples(work.client.samples);
        say(&work, "Starting test.");
        if let Some(limit_s) = work.client.max_execution_s {
            say(&work, &format!("Maximum execution time specified as: {limit_s} secs"));
        }
        say(&work, &work.options.wrapper_notice());
        if let Some(block) = work.properties_of_basic() {
            // A closed pipe is no error.
            let _ = place.lines.lock().unwrap_or_else(PoisonError::into_inner).write_all(block.as_bytes());
        }
        let begun = Instant::now();
        let name = if work.mode == Mode::Load { "load" } else { "measure" };
        let ended = conductor.session.run_workers(name, &jobs, &mut watch)?;
        let run_ms = begun.elapsed().as_millis() as u64;
        // Lines of the basic binding stand before the report. A closed pipe is no error; others show as failed
        // requests.
        let _ = place.lines.lock().unwrap_or_else(PoisonError::into_inner).flush();
        let audit = audit::take(&work, place.opened.as_ref(), &job, &ended)?;
        watch.finish(&ended.totals, signals::interrupted());
        Ok(AppliedPhases { ended, pacing: job.pacing.clone(), rest: (run_ms, audit) })
    };
    let exit = |summary: &Summary, _: &_| exit_of(work.mode, summary);
    let executed = conductor::execute(plan, &place.opened, control, phases, exit)?;
    conclude(&work, &executed, &watch, job.warmup_ns)
}

/// The job, and the part of each worker of this process.
fn jobs(
    work: &mut YcsbWork,
    place: &OpenBinding,
    control: &Arc<Control>,
) -> Result<(Job, Vec<Job>), Failure> {
    let found = work.prepare(place.opened.as_ref(), control)?;
    found.notes.iter().for_each(|message| say(work, message));
    work.adopt(&found)?;
    let wanted = work.client.load_threads.map(|n| n as usize);
    let cores = choose_cores(wanted, work.client.threads as usize, place.local, None)?;
    let job = Job { cores: cores.into_iter().map(Some).collect(), ..work.measure()? };
    job.check()?;
    let jobs = jobs_of_workers(work, &job, work.client.workers as usize)?;
    Ok((job, jobs))
}

/// Connects once, or opens the store.
fn open(work: &YcsbWork) -> Result<OpenBinding, Failure> {
    let (content, lines) = (work.content(), Arc::new(Mutex::new(terminal::Results::default())));
    let (target, opened) = work.target.open(&content, lines.clone(), &signals::interrupted)?;
    let opened = conductor::accept(opened, &content, &work.verbs(), work.client.pipeline as usize)?;
    Ok(OpenBinding { shown: target.redacted(), local: target.is_local(), opened, lines })
}

/// Prints and writes what came out of it.
fn conclude(
    work: &YcsbWork,
    executed: &ExecutedRun<(u64, Option<Audit>)>,
    watch: &YcsbWatch,
    warmup_ns: u64,
) -> Result<Exit, YcsbFailure> {
    let ExecutedRun { ended, summary, closed, rest: (run_ms, audit), .. } = executed;
    let interval = work.interval();
    let names = &work.metrics();
    let metrics = metrics(names, &ended.totals, ended.finished.epoch, &work.options, interval);
    let warmup_ms = warmup_ns / 1_000_000;
    let ms = |ms: u64| ms.saturating_sub(warmup_ms).max(1);
    let overall = Overall::of(&ended.totals, ms(*run_ms), ms(ended.finished.elapsed_ns / 1_000_000));
    write(work, &overall, &metrics, audit.as_ref().map(audit::lines).unwrap_or_default())?;
    if work.extras.json {
        summary::show(summary, SummaryExtras::default(), true)?;
    }
    warn_of(work, summary);
    if let Some(text) = audit.as_ref().and_then(audit::complaint) {
        warn(work, &text);
    }
    match watch.failure() {
        None => Ok(closed.exit),
        Some(text) => {
            terminal::error(&text.to_string());
            Ok(if closed.exit == Exit::Interrupted { closed.exit } else { Exit::Internal })
        }
    }
}
