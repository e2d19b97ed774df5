//! Carries out `load` and `run`: target, job, report, in YCSB's order.

use super::Trouble;
use super::audit;
use super::output::{check, exit_of, say, say_integrity, warn, warn_of, write};
use super::prepare::Prepared;
use super::watch::Watch;
use crate::conductor::{self, RunPlan, choose_cores, settings_list};
use crate::exit::{Exit, Failure};
use crate::{report, signals, terminal};
use dyno_compat_ycsb::bindings::BindingTarget;
use dyno_compat_ycsb::plan::{Mode, YcsbCommand};
use dyno_compat_ycsb::report::metrics::metrics;
use dyno_compat_ycsb::report::render::Overall;
use dyno_databases::registry;
use dyno_databases::target::{OpenTarget, Target, TargetError};
use dyno_engine::{Control, Job};
use dyno_record::Scale;
use dyno_session::conductor::Conductor;
use dyno_session::load_generator::InProcess;
use dyno_session::session::EndedPhase;
use dyno_stores::Sink;
use dyno_types::Content;
use dyno_workload::ycsb::Audit;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A target that answers, and what belongs to it.
struct Place {
    opened: InProcess,
    /// Its URI without secrets.
    shown: String,
    /// Whether it runs on this host, so that a core is left to it.
    local: bool,
    /// Where the `basic` binding writes its lines.
    lines: Arc<Mutex<terminal::Results>>,
}

/// The command; `shown` is its line without secrets.
pub(super) fn run(command: YcsbCommand, shown: &str) -> Result<Exit, Trouble> {
    let mut prepared = Prepared::new(command)?;
    check(&prepared)?;
    for warning in &prepared.warnings {
        warn(&prepared, warning);
    }
    say(&prepared, &format!("Command line: {shown}"));
    say(&prepared, &format!("YCSB Client 0.17.0 (dyno {})\n", env!("CARGO_PKG_VERSION")));
    say(&prepared, "Loading workload...");
    say_integrity(&prepared);
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let place = open(&prepared)?;
    if let Some(words) = prepared.resume_inserts(place.opened.as_ref(), &control)? {
        say(&prepared, &words);
    }
    let wanted = prepared.client.load_threads.map(|n| n as usize);
    let cores = choose_cores(wanted, prepared.client.threads as usize, place.local, None)?;
    let job = prepared.job(cores.into_iter().map(Some).collect());
    job.check().map_err(Failure::from)?;
    let jobs = job.divide(prepared.client.workers as usize).map_err(Failure::from)?;
    let (extras, title) = (&prepared.extras, prepared.title.clone());
    let plan = RunPlan {
        title,
        target: place.shown.clone(),
        conditions: Vec::new(),
        claims: Vec::new(),
        out: extras.out.clone(),
        settings: settings_list(&prepared.settings),
        scale: Scale::Micros,
        watch: (extras.out.is_some() && !extras.no_monitor).then(conductor::every_second),
        busy: conductor::busy(&jobs),
    };
    let mut conductor = conductor::begin(plan, &place.opened, control)?;
    conductor.session.keep_samples(prepared.client.samples);
    say(&prepared, "Starting test.");
    if let Some(limit_s) = prepared.client.max_execution_s {
        say(&prepared, &format!("Maximum execution time specified as: {limit_s} secs"));
    }
    say(&prepared, &prepared.options.wrapper_notice());
    let mut watch = Watch::new(&prepared);
    let begun = Instant::now();
    let name = if prepared.mode == Mode::Load { "load" } else { "measure" };
    let ended = conductor.session.run_workers(name, &jobs, &mut watch);
    let run_ms = begun.elapsed().as_millis() as u64;
    let ended = ended.map_err(|error| conductor::failed(&mut conductor, error.into()))?;
    // Lines of the basic binding stand before the report. A closed pipe is no error; others show as failed
    // requests.
    let _ = place.lines.lock().unwrap_or_else(PoisonError::into_inner).flush();
    let audit = audit::take(&prepared, place.opened.as_ref(), &job, &ended)
        .map_err(|error| conductor::failed(&mut conductor, error))?;
    conclude(&prepared, conductor, &mut watch, &ended, (&job, run_ms), audit.as_ref())
}

/// Connects once, or opens the store.
fn open(prepared: &Prepared) -> Result<Place, Failure> {
    let content = prepared.workload.content();
    let lines = Arc::new(Mutex::new(terminal::Results::new()));
    let (target, opened) = open_target(&prepared.target, &content, &lines)?;
    let opened = conductor::accept(opened, &content, &prepared.verbs, prepared.client.pipeline as usize)?;
    Ok(Place { shown: target.redacted(), local: target.is_local(), opened, lines })
}

/// Connects once, or opens the store; the `basic` binding writes to `lines`.
pub(super) fn open_target(
    target: &BindingTarget,
    content: &Arc<dyn Content>,
    lines: &Arc<Mutex<terminal::Results>>,
) -> Result<(Box<dyn Target>, Box<dyn OpenTarget>), Failure> {
    let target = match target {
        BindingTarget::Redis { options, .. } => dyno_databases::redis::target(options.as_ref().clone()),
        BindingTarget::Mongo { options, .. } => dyno_databases::mongodb::target(options.as_ref().clone()),
        BindingTarget::Memcached { options, .. } => {
            dyno_databases::memcached::target(options.as_ref().clone())
        }
        BindingTarget::Official { uri, database, upsert, .. } => {
            dyno_databases::mongodb::official_target(uri, database.as_deref(), *upsert)
                .map_err(TargetError::from)?
        }
        BindingTarget::Store { uri } => {
            let target = registry::parse(uri)?;
            let sink: Sink = lines.clone();
            let store = dyno_stores::open_with_sink(uri, content.clone(), Some(sink));
            return Ok((target, dyno_databases::embedded::open_store(store.map_err(TargetError::from)?)));
        }
        BindingTarget::Null => registry::parse("null:")?,
    };
    let opened = target.open(content.clone(), &signals::interrupted)?;
    Ok((target, opened))
}

/// Prints and writes what came out of it.
fn conclude(
    prepared: &Prepared,
    mut conductor: Conductor<'_>,
    watch: &mut Watch,
    ended: &EndedPhase,
    (job, run_ms): (&Job, u64),
    audit: Option<&Audit>,
) -> Result<Exit, Trouble> {
    let interrupted = signals::interrupted();
    watch.finish(&ended.totals, interrupted);
    let summary = conductor.finish(ended, &job.pacing);
    let interval = prepared.interval();
    let names = prepared.workload.metrics();
    let metrics = metrics(names, &ended.totals, ended.finished.epoch, &prepared.options, interval);
    let warmup_ms = job.warmup_ns / 1_000_000;
    let ms = |ms: u64| ms.saturating_sub(warmup_ms).max(1);
    let overall = Overall::of(&ended.totals, ms(run_ms), ms(ended.finished.elapsed_ns / 1_000_000));
    write(prepared, &overall, &metrics, audit.map(audit::lines).unwrap_or_default())?;
    if prepared.extras.json {
        report::show(&summary, true)?;
    }
    warn_of(prepared, &summary);
    if let Some(text) = audit.and_then(audit::complaint) {
        warn(prepared, &text);
    }
    let exit = conductor::close(conductor, exit_of(prepared.mode, &summary));
    match watch.failure() {
        None => Ok(exit),
        Some(text) => {
            terminal::error(&text.to_string());
            Ok(if exit == Exit::Interrupted { exit } else { Exit::Internal })
        }
    }
}
