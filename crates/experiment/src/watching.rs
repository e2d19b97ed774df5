//! Monitors of an experiment's run: host, servers, workers, databases, exporters.

use crate::experiment_error::ExperimentError;
use crate::provisioned_target::ProvisionedTarget;
use dyno_config::experiment::Experiment;
use dyno_databases::registry;
use dyno_db::target::OpenTarget;
use dyno_db::target_error::TargetError;
use dyno_engine::Control;
use dyno_hosts::remote::remote_agent::{RemoteAgent, RemoteServer, WatchedThere};
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_localhost::error::Cause;
use dyno_monitor::Pid;
use dyno_monitor::prometheus::Url;
use dyno_session::hosts::boot_id_of;
use dyno_session::load_generator::LoadGenerator;
use dyno_session::session::RunSession;
use dyno_session::watch::sources::{DeclaredProcess, server_process, watch_all};
use dyno_session::watch::{MonitorWatch, WatchPlan};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Errors that keep the monitors from starting.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The address of an exporter is none.
    #[error("monitors.prometheus.{name}: {source}")]
    Exporter {
        /// The exporter's name.
        name: String,
        /// Why.
        source: Cause,
    },
    /// The monitors of this host do not start.
    #[error("cannot start the monitors: {0}")]
    Here(#[source] io::Error),
    /// Monitors of another host do not start.
    #[error("monitors: {0}")]
    Elsewhere(#[from] RemoteError),
    /// The description of a host cannot be written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl From<WatchError> for ExperimentError {
    fn from(error: WatchError) -> Self {
        ExperimentError::other(error)
    }
}

/// Starts the monitors that the experiment asks for, here and on remote hosts.
pub(super) fn begin(
    spec: &Experiment,
    target: &ProvisionedTarget,
    pool: &WorkerPool,
    session: &mut RunSession<'_>,
    control: &Control,
) -> Result<(), WatchError> {
    let monitors = &spec.monitors;
    if let Some(dashboard) = &monitors.grafana {
        session.link_to(dashboard);
    }
    // Nothing that is measured in real time says anything of a simulated run.
    if !monitors.enabled || pool.target().virtual_time {
        return Ok(());
    }
    let mut exporters = Vec::new();
    for (name, url) in &monitors.prometheus {
        let wrong = |why| WatchError::Exporter { name: name.clone(), source: Cause::from(why) };
        exporters.push((name.clone(), Url::parse(url).map_err(wrong)?));
    }
    let (mut opened, mut words): (Vec<Box<dyn OpenTarget>>, Vec<String>) = (Vec::new(), Vec::new());
    for uri in target.uris.iter().filter(|_| !target.is_in_pods()) {
        // An embedded store says nothing of itself, and opening it again would be in its way.
        let target = registry::parse(uri);
        if target.as_ref().is_ok_and(|target| !target.is_watched()) {
            continue;
        }
        let looked = target.map_err(TargetError::from);
        match looked.and_then(|target| target.open_for_look(&|| control.is_stopping())) {
            Ok(one) => opened.push(one),
            Err(why) => words.push(format!("database: {why}")),
        }
    }
    // Skip servers that a fault of an earlier run has killed.
    let started: Vec<_> = target.processes().into_iter().filter(|(_, pid)| pid.get().is_some()).collect();
    let alone = started.len() == 1;
    let called = |name: String| if alone { "server".to_owned() } else { format!("server-{name}") };
    let mut processes: Vec<(String, Pid)> =
        started.into_iter().map(|(name, pid)| (called(name), pid)).collect();
    if processes.is_empty() {
        processes = numbered(
            "server",
            &opened.iter().filter_map(|one| server_process(one.as_ref())).collect::<Vec<_>>(),
        );
    }
    processes.extend(numbered("worker", &pool.worker_pids()));
    let plan = WatchPlan {
        interval: Duration::from_nanos(monitors.interval.0),
        processes,
        exporters,
        // Workers have all cores that servers do not have: there is none to spare.
        cores: Vec::new(),
    };
    let sources = watch_all(&opened);
    let directory = session.run_writer().map(|writer| writer.run_path().to_owned());
    let watch = MonitorWatch::start(sources, &plan, directory.as_deref());
    let mut watch = watch.map_err(WatchError::Here)?;
    let told: Vec<DeclaredProcess> =
        opened.iter().filter_map(|one| DeclaredProcess::of_target(one.as_ref())).collect();
    elsewhere(target, pool, &told, plan.interval, &mut watch, directory.as_deref())?;
    if let Some(pods) = target.pods() {
        match pods.watch_pods(watch.remote_sink()) {
            Ok(kubelets) => kubelets.into_iter().for_each(|kubelets| watch.keep_kubelets(Box::new(kubelets))),
            Err(why) => words.push(format!("server pods are not watched: {why}")),
        }
    }
    session.start_watch(watch);
    if let Some(writer) = session.run_writer() {
        words.iter().for_each(|message| writer.write_event("monitor", message));
    }
    Ok(())
}

/// Ends the monitors of other hosts. An agent that is lost has been told of already.
pub(super) fn end(target: &ProvisionedTarget) {
    for agent in target.remote_servers().iter().map(RemoteServer::agent).chain(&target.beside) {
        let _ = agent.end_watch();
    }
}

/// Has the agents of other hosts tell what they read there, and writes down what hosts those are.
fn elsewhere(
    target: &ProvisionedTarget,
    pool: &WorkerPool,
    told: &[DeclaredProcess],
    interval: Duration,
    watch: &mut MonitorWatch,
    directory: Option<&Path>,
) -> Result<(), WatchError> {
    let servers = target.remote_servers();
    let agents = servers.iter().map(RemoteServer::agent).chain(&target.beside);
    let kernel = |agent: &RemoteAgent| boot_id_of(&agent.environment);
    // Processes of the run by the kernel that they are seen on: several names may mean one host, and this one, too.
    let mut of_run: Vec<(String, u32)> =
        vec![(dyno_monitor::boot_id().unwrap_or_default(), std::process::id())];
    for (at, agent) in agents.clone().enumerate() {
        let servers =
            servers.get(at).into_iter().flat_map(|server| server.processes.iter().map(|(_, pid)| *pid));
        of_run.extend(pool.pids_on(agent.name()).into_iter().chain(servers).map(|pid| (kernel(agent), pid)));
    }
    let tellers = host_tellers(agents.clone().map(|agent| (agent.name(), kernel(agent))));
    let mut all = Vec::new();
    for (at, agent) in agents.enumerate() {
        let name = agent.name();
        // Pods of a node see the same CPU, memory and disks: the first one tells of them, and a thousand do not repeat that each
        // second. The network's figures are those of that pod's own network namespace.
        let host = !target.is_in_pods() || tellers.get(&kernel(agent)).is_none_or(|teller| *teller == name);
        let same = of_run.iter().filter(|(own, _)| !target.is_in_pods() && *own == kernel(agent));
        let beside: Vec<u32> = same.map(|(_, pid)| *pid).collect();
        if let Some(directory) = directory {
            let path = directory.join(format!("environment-{name}.json"));
            let text = serde_json::to_string_pretty(&agent.environment).map_err(io::Error::from);
            let written = text.and_then(|text| std::fs::write(&path, text + "\n"));
            written.map_err(|source| WatchError::File { path, source })?;
        }
        let mut processes = numbered(&format!("worker-{name}"), &pool.pids_on(name));
        for (process, pid) in servers.get(at).map_or(&[][..], |server| &server.processes) {
            processes.push((format!("server-{name}-{process}"), *pid));
        }
        let told: Vec<_> = match target.watched.iter().any(|host| host == name) {
            true => told.iter().map(|one| (format!("server-{name}-{}", one.program), one.clone())).collect(),
            false => Vec::new(),
        };
        // One of those who can reach the databases asks them.
        let databases = if target.is_in_pods() && at == 0 { target.uris.clone() } else { Vec::new() };
        all.push((agent, WatchedThere { host, processes, told, beside, databases }));
    }
    // Each waits for its own host alone.
    std::thread::scope(|scope| {
        let mut started = Vec::new();
        for (agent, watched) in all {
            let sink = watch.remote_sink();
            started.push((agent, scope.spawn(move || agent.start_watch(interval, watched, sink))));
        }
        for (agent, thread) in started {
            let lost = || RemoteError::Failed {
                host: agent.name().to_owned(),
                source: "its monitors could not be started".into(),
            };
            thread.join().unwrap_or_else(|_| Err(lost()))?;
            watch.mark_too(std::sync::Arc::new(agent.marker()));
        }
        Ok(())
    })
}

/// The agent that tells of the host of each kernel: the first one there of `agents`, which are names and kernels. Those whose
/// kernel is not known are left out.
pub(super) fn host_tellers<'a>(agents: impl Iterator<Item = (&'a str, String)>) -> BTreeMap<String, &'a str> {
    let mut tellers = BTreeMap::new();
    for (name, kernel) in agents.filter(|(_, kernel)| !kernel.is_empty()) {
        tellers.entry(kernel).or_insert(name);
    }
    tellers
}

/// `NAME` for one process, `NAME-1` and so on for several.
pub(super) fn numbered<P: From<u32>>(name: &str, pids: &[u32]) -> Vec<(String, P)> {
    let named =
        |number: usize| if pids.len() == 1 { name.to_owned() } else { format!("{name}-{}", number + 1) };
    pids.iter().enumerate().map(|(number, pid)| (named(number), P::from(*pid))).collect()
}
