//! Monitors of `dyno run`: what its options mean.

use super::Place;
use super::lower::usage;
use crate::exit::Failure;
use crate::options::RunArgs;
use crate::{pages, terminal};
use dyno_databases::target::OpenTarget;
use dyno_engine::{Job, affinity};
use dyno_monitor::prometheus::Url;
use dyno_rundir::schema::Status;
use dyno_session::session::Session;
use dyno_session::watch::sources::server_process;
use dyno_session::watch::sources::watch;
use dyno_session::watch::{Watch, WatchPlan};
use dyno_types::units::parse_duration_ns;
use std::time::Duration;

/// Shortest and longest time between two ticks, seconds.
const INTERVAL_S: (f64, f64) = (0.01, 3_600.0);

/// What was asked for, checked; `None` with `--no-monitor`.
pub(super) fn plan(args: &RunArgs) -> Result<Option<WatchPlan>, Failure> {
    let option = "--monitor-interval";
    let ns = parse_duration_ns(&args.monitor_interval, 1_000_000_000).map_err(|e| usage(option, e))?;
    let interval = Duration::from_nanos(ns);
    if !(INTERVAL_S.0..=INTERVAL_S.1).contains(&interval.as_secs_f64()) {
        return Err(usage(option, format!("{}: expected 10ms to 1h", args.monitor_interval)));
    }
    let mut exporters: Vec<(String, Url)> = Vec::new();
    for text in &args.prometheus {
        let option = "--prometheus";
        let (name, url) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            usage(option, format!("{text:?}: expected NAME=URL, such as redis=http://127.0.0.1:9121"))
        })?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.chars().all(plain) || exporters.iter().any(|(known, _)| known == name) {
            return Err(usage(
                option,
                format!("{name:?}: expected a name of its own, of letters, digits, . _ and -"),
            ));
        }
        exporters.push((name.to_owned(), Url::parse(url).map_err(|e| usage(option, e))?));
    }
    let plan = WatchPlan { interval, processes: Vec::new(), exporters, cores: Vec::new() };
    Ok((!args.no_monitor).then_some(plan))
}

/// Has monitors look on at a run of another front end that keeps a run directory: host, this process, the server's process,
/// the database, once a second.
pub fn beside(opened: &dyn OpenTarget, jobs: &[Job], session: &mut Session<'_>) -> Result<(), Failure> {
    if session.writer().is_none() {
        return Ok(());
    }
    let busy: Vec<usize> = jobs.iter().flat_map(|job| job.cores.iter().copied().flatten()).collect();
    let plan = WatchPlan {
        interval: Duration::from_secs(1),
        processes: Vec::new(),
        exporters: Vec::new(),
        cores: Vec::new(),
    };
    look(plan, None, opened, &busy, session)
}

/// Has monitors look on, if that is wanted and time is not virtual. `busy` are the cores of the load threads.
pub(super) fn start(
    plan: Option<WatchPlan>,
    place: &Place,
    opened: &dyn OpenTarget,
    busy: &[usize],
    session: &mut Session<'_>,
) -> Result<(), Failure> {
    let Some(plan) = plan else { return Ok(()) };
    look(plan, place.server.as_ref().map(|server| server.pid()), opened, busy, session)
}

fn look(
    mut plan: WatchPlan,
    server: Option<u32>,
    opened: &dyn OpenTarget,
    busy: &[usize],
    session: &mut Session<'_>,
) -> Result<(), Failure> {
    if opened.is_virtual() {
        return Ok(());
    }
    let server = server.or_else(|| server_process(opened));
    plan.processes.extend(server.map(|pid| ("server".to_owned(), pid.into())));
    plan.cores = affinity::allowed_cores().into_iter().filter(|core| !busy.contains(core)).collect();
    let directory = session.writer().map(|writer| writer.path().to_owned());
    let monitors = Watch::start(watch(opened), &plan, directory.as_deref());
    session.watch(monitors.map_err(|e| Failure::Usage(format!("cannot start the monitors: {e}")))?);
    Ok(())
}

/// Ends the monitors, and leaves reports in the run directory; false if the monitors' part of it is incomplete.
pub fn finish(session: &mut Session<'_>) -> bool {
    let failure = session.unwatch();
    if let Some(failure) = &failure {
        terminal::error(&format!("the monitors' part of the run directory is incomplete: {failure}"));
    }
    if let Some(writer) = session.writer() {
        pages::leave(writer.path());
    }
    failure.is_none()
}

/// Notes in the run directory why the run has failed, and leaves reports of what there is.
pub fn failed(session: &mut Session<'_>, failure: Failure) -> Failure {
    if let Some(writer) = session.writer() {
        writer.event("failed", &failure.to_string());
        let interrupted = matches!(failure, Failure::Interrupted);
        writer.update(|run| run.status = if interrupted { Status::Interrupted } else { Status::Failed });
        pages::leave(writer.path());
    }
    failure
}
