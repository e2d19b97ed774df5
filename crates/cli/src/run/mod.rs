//! `dyno run`: one target, measured.
//!
//! `spec` makes an experiment of the options, `resolve` reads its work and thresholds, without touching anything; here they are
//! carried out in order: target, records, measurement, summary.

mod resolve;
mod settings;
mod spec;
mod versus;

use crate::options::RunArgs;
use crate::{experiment, serve};
use dyno_config::experiment::Driver;
use dyno_config::server::ServerKind;
use dyno_databases::registry;
use dyno_databases::spawn::{Spawned, find_server, meant, spawn_under};
use dyno_db::target::{ClientDriver, OpenTarget, Target};
use dyno_engine::Control;
use dyno_frontend::conductor::{self, AppliedPhases, ExecutedRun, RunPlan};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::junit;
use dyno_frontend::live::Live;
use dyno_frontend::metrics::{MetricsOutlets, ObserverPair, Outlets};
use dyno_frontend::run_directory::{check_new, new_directory, now};
use dyno_frontend::secret;
use dyno_frontend::summary::{exit_of, show};
use dyno_frontend::{signals, terminal};
use dyno_localhost::temporary::Temporary;
use dyno_record::Scale;
use dyno_report::junit::{Document, of_run};
use dyno_report::summary::SummaryExtras;
use dyno_rundir::schema::Summary;
use dyno_session::conductor::Conductor;
use dyno_session::session::{EndedPhase, PhasePlan, RunSession};
use dyno_session::watch::WatchPlan;
use dyno_session::work::with_jobs_beside;
use dyno_types::secret::{mask_text, mask_value};
use resolve::Resolved;
use settings::settings_of;
use spec::RunSpec;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Target that the run is to be applied to, and what must be removed afterwards.
struct ProvidedTarget {
    target: Box<dyn Target>,
    server: Option<Spawned>,
    _folder: Option<Temporary>,
}

/// Kind of target that the load is for.
enum TargetKind {
    /// The target that a URI names.
    Target(Box<dyn Target>),
    /// A server of this kind that is started for the run; empty: of any.
    Spawn(String),
    /// A SQLite database of this run's own, for want of a server.
    Sqlite,
}

/// Reads the positional: a URI.
fn target_kind(args: &RunArgs, client: ClientDriver) -> Result<TargetKind, Failure> {
    let Some(text) = &args.target else {
        if args.password_from.is_some() {
            return Err(Failure::usage("--password-from: expected a target, such as redis://host"));
        }
        if client == ClientDriver::Official {
            return Err(Failure::usage("--client official: expected a target, such as mongodb://host"));
        }
        return Ok(match find_server(None) {
            Some((kind, _)) => TargetKind::Spawn(kind.to_string()),
            None => TargetKind::Sqlite,
        });
    };
    let text = &secret::uri(text, args.password_from.as_ref())?;
    let scheme = text.split(':').next().unwrap_or_default();
    // A host and a port do not say how to speak to it; nor does a host alone.
    let has_port = registry::is_host_and_port(text);
    if text.contains(':')
        && !has_port
        && !scheme.is_empty()
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')
    {
        let target = registry::parse_for(text, client)?;
        if target.has_password() && args.password_from.is_none() {
            terminal::warn("a password on the command line can be seen by every user of this host");
        }
        let kind = target.must_start().map(str::to_owned);
        return Ok(kind.map_or(TargetKind::Target(target), TargetKind::Spawn));
    }
    let presets = dyno_presets::PRESETS.iter().map(|preset| preset.name);
    if let Some(near) = dyno_types::suggest::nearest(text, presets.clone()) {
        let message = "is no target URI, no experiment and no preset";
        return Err(Failure::usage(format!(
            "{text:?} {message}; did you mean {near}? `dyno presets` lists them"
        )));
    }
    // A group of presets with another name in it: no target looks like that.
    let group = text.split_once('/').map(|(group, _)| group);
    if group.is_some() && presets.clone().any(|preset| preset.split('/').next() == group) {
        return Err(Failure::usage(format!("{text:?} is no preset; `dyno presets` lists them")));
    }
    let is_host = has_port || text.contains('.') || text == "localhost";
    let near = dyno_types::suggest::nearest(text, registry::schemes().map(|one| one.name));
    let hint = match (registry::meant_uri(text), near) {
        (Some(meant), _) => format!("; did you mean {}?", mask_value("target", &meant)),
        _ if is_host => registry::protocol_hint(text),
        (None, Some(near)) => format!("; did you mean {near}:?"),
        (None, None) => String::new(),
    };
    let forms: String = registry::schemes().map(|one| format!("\n  {}", one.form)).collect();
    let others = "Experiments are files that end in .yaml; `dyno presets` lists presets.";
    Err(Failure::usage(format!("{text:?} is no target{hint}\nTargets:{forms}\n{others}")))
}

/// The target of runs that are repeated, as an experiment names it; a password is asked for once.
fn repeated_target(args: &RunArgs, client: ClientDriver) -> Result<String, Failure> {
    if let (Some(text), Some(from)) = (&args.target, &args.password_from) {
        let uri = secret::uri(text, Some(from))?;
        registry::parse_for(&uri, client)?;
        return Ok(uri);
    }
    Ok(match target_kind(args, client)? {
        TargetKind::Sqlite => "sqlite:{dir}/bench.sqlite".to_owned(),
        TargetKind::Spawn(kind) => format!("spawn:{kind}"),
        TargetKind::Target(_) => args.target.clone().unwrap_or_default(),
    })
}

/// Client that speaks to the database.
fn client_of(run: &RunSpec) -> ClientDriver {
    match run.experiment.client.driver {
        Driver::Wire => ClientDriver::Wire,
        Driver::Official => ClientDriver::Official,
    }
}

/// Starts what must be started, after what a dyno that was killed has left of the same kind is gone.
fn prepare(wanted: TargetKind, control: &Control) -> Result<ProvidedTarget, Failure> {
    if !matches!(wanted, TargetKind::Target(_)) {
        dyno_localhost::temporary::remove_abandoned().iter().for_each(|line| terminal::note(line));
    }
    match wanted {
        TargetKind::Spawn(kind) => {
            let wanted = Some(kind.as_str()).filter(|kind| !kind.is_empty());
            let Some((name, program)) = find_server(wanted) else {
                let offered = match wanted {
                    Some(_) => ServerKind::ALL.to_vec(),
                    None => meant(None).collect(),
                };
                let known: Vec<String> =
                    offered.iter().map(|kind| format!("{kind} ({})", kind.program_name())).collect();
                let of = if kind.is_empty() { String::new() } else { format!(" of kind {kind:?}") };
                let text = format!("no server{of} on PATH; known kinds: {}", known.join(", "));
                return Err(Failure::usage(text));
            };
            let server = spawn_under(name, &program, Some(control));
            let server = server.map_err(|e| match control.is_stopping() {
                true => Failure::Interrupted,
                false => Failure::usage(e),
            })?;
            let target = registry::parse(&server.uri())?;
            terminal::note(&format!(
                "started a temporary {name} on port {}; it ends with this run",
                server.port
            ));
            Ok(ProvidedTarget { target, server: Some(server), _folder: None })
        }
        TargetKind::Sqlite => {
            let folder = Temporary::for_store().map_err(Failure::internal)?;
            let path = folder.data_folder().join("bench.sqlite");
            terminal::note(
                "no redis-server, valkey-server, dragonfly or keydb-server on PATH: measuring SQLite instead",
            );
            let target = registry::parse(&format!("sqlite:{}", path.display()))?;
            Ok(ProvidedTarget { target, server: None, _folder: Some(folder) })
        }
        TargetKind::Target(target) => Ok(ProvidedTarget { target, server: None, _folder: None }),
    }
}

/// The command.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    if let Some(other) = &args.versus {
        return versus::versus(args, other);
    }
    if let Some(parent) = std::env::var(versus::TURN_OF).ok().and_then(|pid| pid.parse().ok()) {
        versus::end_with(parent)?;
    }
    let name = args.target.as_deref().map_or_else(|| "dyno run".to_owned(), mask_text);
    junit::keep(args.junit.as_deref(), &name, |place| run_to(args, place))
}

/// The same; `place`: the file of `--junit`.
fn run_to(args: &RunArgs, place: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(name) = args.target.as_deref().filter(|name| experiment::is_experiment(name)) {
        if args.password_from.is_some() {
            return Err(Failure::usage(format!(
                "--password-from: goes with a target's URI; {name} has its own"
            )));
        }
        if args.repeat.is_some() {
            let message = format!("--repeat: {name} says it itself: use --set repetitions=N");
            return Err(Failure::usage(message));
        }
        return experiment::run(args, name, place);
    }
    if args.in_cluster {
        return Err(Failure::usage(
            "--in-cluster: goes with an experiment, a .yaml file with a section `kubernetes`",
        ));
    }
    if let Some(rate) = &args.require_rate {
        let message =
            format!("--require-rate {rate}: goes with an experiment; use --require 'throughput > {rate}'");
        return Err(Failure::usage(message));
    }
    if let Some(set) = args.sets.first() {
        return Err(Failure::usage(format!("--set {set}: goes with an experiment, a .yaml file")));
    }
    let run = RunSpec::from_args(args)?;
    if let Some(repetitions) = args.repeat {
        let target = repeated_target(args, client_of(&run))?;
        return experiment::repeat(
            args,
            &run.as_experiment(args, resolve::work_name(&run)?, repetitions)?,
            &target,
            place,
        );
    }
    let wanted = target_kind(args, client_of(&run))?;
    let watch = run.watch_plan()?;
    let mut resolved = Resolved::new(run)?;
    resolved.one_loader = matches!(wanted, TargetKind::Sqlite);
    let outlets = args.live.outlets()?;
    check_new(args.out.as_ref().filter(|_| !args.no_out))?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let provided = prepare(wanted, &control)?;
    let content = resolved.work.content();
    let opened = conductor::open(
        provided.target.as_ref(),
        &content,
        &resolved.work.verbs(),
        resolved.run.experiment.phases.measure.pipeline,
    )?;
    let local = provided.target.is_local();
    resolved.place_threads(opened.as_ref(), local, provided.server.as_ref().and_then(|s| s.core))?;
    let server = provided.server.as_ref().map(|server| ("server".to_owned(), server.pid().into()));
    let plan = RunPlan {
        title: resolved.title()?,
        target: provided.target.redacted(),
        conditions: resolved.conditions.clone(),
        strict: resolved.run.experiment.strict,
        claims: Vec::new(),
        out: directory(args, &resolved),
        settings: settings_of(&resolved)?,
        scale: Scale::Ns64,
        watch: watch.map(|plan| WatchPlan { processes: server.into_iter().collect(), ..plan }),
        busy: resolved.busy_cores(),
    };
    let target = plan.target.clone();
    let mut live = None;
    let apply = |conductor: &mut Conductor<'_>| {
        let mut metrics = metrics(outlets, &target, conductor)?;
        if let Some(writer) = conductor.session.run_writer().filter(|_| args.web || args.open) {
            live = Some(serve::show_live_page(writer.run_path(), args.open)?);
        }
        let session = &mut conductor.session;
        let ended = phases(args, &mut resolved, opened.as_ref(), &control, session, metrics.as_mut());
        if let Some(metrics) = &mut metrics {
            metrics.finish();
        }
        // The exporter answers until the summary is written.
        Ok(AppliedPhases { ended: ended?, pacing: resolved.measure_job()?.pacing, rest: metrics })
    };
    let executed = conductor::execute(plan, &opened, control.clone(), apply, |summary, _| exit_of(summary))?;
    let ended = conclude(args, executed, place);
    if let Some(live) = live {
        live.hand_over_report();
    }
    ended
}

/// The run directory, if one is wanted.
fn directory(args: &RunArgs, resolved: &Resolved) -> Option<PathBuf> {
    let new = || new_directory(&resolved.work.name());
    (!args.no_out).then(|| args.out.clone().unwrap_or_else(new))
}

/// Live metrics, if they are wanted; the run is called as its directory is.
fn metrics(
    outlets: Outlets,
    target: &str,
    conductor: &mut Conductor<'_>,
) -> Result<Option<MetricsOutlets>, Failure> {
    let writer = conductor.session.run_writer();
    let name = writer.and_then(|w| w.run_path().file_name()).map(|name| name.to_string_lossy().into_owned());
    MetricsOutlets::open(outlets, name.unwrap_or_else(now), target.to_owned())
}

fn phases(
    args: &RunArgs,
    resolved: &mut Resolved,
    opened: &dyn OpenTarget,
    control: &Arc<Control>,
    session: &mut RunSession<'_>,
    metrics: Option<&mut MetricsOutlets>,
) -> Result<EndedPhase, Failure> {
    let live = Live::new(args.quiet || args.json && !terminal::live());
    let mut live = live.with_thresholds(&resolved.conditions);
    let mut live = ObserverPair(&mut live, metrics);
    resolved.prepare(opened, control)?;
    let load = resolved.load_job(opened)?;
    let records = resolved.work.load_operations();
    tracing::info!(load = load.is_some(), records, "record check done (field load says the rest)");
    if let Some(job) = load.filter(|_| !signals::interrupted()) {
        if let (2.., Some(why)) = (job.batch, opened.why_no_batches()) {
            terminal::note(&format!("records are loaded one by one: {why}"));
        }
        let loaded = session.run(&PhasePlan { name: "load", job }, &mut live)?;
        if signals::interrupted() {
            return Ok(loaded);
        }
        let missing = records.saturating_sub(loaded.totals.count_ok());
        if missing > 0 {
            let first =
                loaded.finished.errors.first().map_or(String::new(), |(o, w)| format!(": {} {w}", o.name()));
            let what = resolved.unit();
            terminal::warn(&format!("{missing} of {records} {what} could not be loaded{first}"));
        }
    }
    if signals::interrupted() {
        return Err(Failure::Interrupted);
    }
    let jobs = with_jobs_beside(resolved.measure_job()?, resolved.work.beside()?, None);
    Ok(session.run_workers("measure", &jobs, &mut live)?)
}

/// Writes and prints what came out of it.
fn conclude<T>(args: &RunArgs, executed: ExecutedRun<T>, place: Option<&Path>) -> Result<Exit, Failure> {
    let ExecutedRun { summary, closed, directory, rest: _outlets, .. } = executed;
    let known = SummaryExtras { findings: closed.findings.as_deref(), page: closed.page.as_deref() };
    show(&summary, known, args.json)?;
    if known.page.is_none()
        && let Some(path) = directory.filter(|_| !args.json)
    {
        terminal::out(&format!("run directory: {}\n", path.display()));
    }
    if let Some(place) = place {
        let suites = vec![of_run(summary.title.clone(), &summary, None)];
        junit::write(place, &Document { name: "dyno run".into(), suites })?;
    }
    if args.json || !stdout().is_terminal() || !stderr().is_terminal() {
        warn_if_suspect(&summary);
    }
    Ok(closed.exit)
}

/// Prints the verdict to stderr too, for a user who keeps the summary elsewhere.
fn warn_if_suspect(summary: &Summary) {
    if let Some(reason) = summary.verdict.worst_reason() {
        terminal::warn(&format!("the run is {}: {}", reason.trust.trust_word(), reason.text));
    }
}
