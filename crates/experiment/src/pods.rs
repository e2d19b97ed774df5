//! A run's servers and workers in pods of a cluster.

use crate::experiment_error::ExperimentError;
use crate::hosts::ReachedHost;
use crate::provisioned_target::{OwnedResources, ProvisionedTarget, SharedServers};
use crate::random::{random, random_name, secured};
use crate::volumes::Volume;
use dyno_config::experiment::Experiment;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::server::ServerSpec;
use dyno_engine::Control;
use dyno_hosts::kubernetes::manifests::everywhere;
use dyno_hosts::kubernetes::persistent_pods::PersistentPods;
use dyno_hosts::kubernetes::run_pods::{PlacedWorker, RunPods};
use dyno_hosts::remote::relay::controller::Relay;
use dyno_hosts::remote::remote_agent::RemoteAgent;
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::remote::transport::{Transport, WorkerPod};
use dyno_localhost::error::{Cause, LocalError};
use dyno_localhost::machine::Machine;
use dyno_localhost::registry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Servers and workers in pods; the first worker's agent makes clusters, because it can reach the servers.
pub(super) fn in_pods(
    spec: &Experiment,
    kubernetes: &Kubernetes,
    work_dir: &Path,
    (experiment_dir, lasting): (&Path, bool),
    control: &Arc<Control>,
) -> Result<ProvisionedTarget, ExperimentError> {
    let mut own = everywhere(spec);
    own.server = own.server.as_ref().map(secured).transpose()?;
    let mut volume = match &own.server {
        Some(server) => Volume::in_pods(spec, server, kubernetes, experiment_dir)?,
        None => None,
    };
    loop {
        volume.as_ref().map_or(Ok(()), |volume| volume.clear(control))?;
        let target =
            pods_of(&own, kubernetes, (work_dir, experiment_dir, lasting), volume.as_ref(), control)?;
        let Some(found) = volume.as_mut().filter(|volume| volume.is_full()) else {
            return Ok(ProvisionedTarget { volume, ..target });
        };
        match target.counted_in_pods(false, control)?.and_then(|count| found.miscounted(count)) {
            None => return Ok(ProvisionedTarget { volume, ..target }),
            Some(why) => {
                found.refuse(why);
                target.end(spec, &mut SharedServers::default())?;
            }
        }
    }
}

/// Pods that are ready, with the servers made one.
fn pods_of(
    own: &Experiment,
    kubernetes: &Kubernetes,
    (work_dir, experiment_dir, lasting): (&Path, &Path, bool),
    volume: Option<&Volume>,
    control: &Arc<Control>,
) -> Result<ProvisionedTarget, ExperimentError> {
    let name = random_name()?;
    let journal = noted(experiment_dir, &name)?;
    let start = if lasting { RunPods::start_lasting } else { RunPods::start };
    let pods =
        start(own, kubernetes, (&name, &random(32)?), (&journal, work_dir), control).map_err(unreachable)?;
    let made = volume.is_some_and(Volume::is_full);
    with_agents(own, pods, work_dir, made, control)
}

/// The journal of objects with this random name, which stands in the list of journals from now on.
fn noted(experiment_dir: &Path, name: &str) -> Result<PathBuf, LocalError> {
    let journal = experiment_dir.join(format!("kubernetes-{name}.json"));
    registry::enter_path(&Machine::default(), &journal)?;
    Ok(journal)
}

fn unreachable(why: impl Into<Cause>) -> ExperimentError {
    ExperimentError::unreachable(LocalError::failed_step("kubernetes", why))
}

/// An agent beside each worker; the first sees to it that the servers are one. Where that fails, what pods have said is kept.
fn with_agents(
    own: &Experiment,
    pods: RunPods,
    work_dir: &Path,
    made: bool,
    control: &Arc<Control>,
) -> Result<ProvisionedTarget, ExperimentError> {
    let (uris, clients, beside) =
        reached(own, &pods, work_dir, made, control).inspect_err(|_| pods.collect(work_dir))?;
    let owned = OwnedResources::Pods(own.server.clone().map(Box::new), Box::new(pods));
    Ok(ProvisionedTarget { clients, beside, ..ProvisionedTarget::new(uris, Vec::new(), false, owned) })
}

/// URIs of the servers that have been made one, hosts of workers, and an agent beside each.
type Reached = (Vec<String>, Vec<ReachedHost>, Vec<RemoteAgent>);

fn reached(
    own: &Experiment,
    pods: &RunPods,
    work_dir: &Path,
    made: bool,
    control: &Arc<Control>,
) -> Result<Reached, ExperimentError> {
    let Some(first) = pods.workers.first() else { return Err(unreachable("no pods of workers")) };
    // One kubectl for all pods.
    let relay =
        Relay::start(&pods.kubectl, (&first.name, pods.token()), &work_dir.join("relay.log"), control)
            .map_err(unreachable)?;
    let relay = Arc::new(relay);
    let reached = |worker: &PlacedWorker| {
        let PlacedWorker { name, node, address } = worker.clone();
        let transport = Transport::Pod(WorkerPod { name, node, address, relay: relay.clone() });
        ReachedHost { transport, program: "dyno".into(), directory: Some("/tmp".into()) }
    };
    let clients: Vec<ReachedHost> = pods.workers.iter().map(reached).collect();
    let beside = agents(&clients, work_dir)?;
    let uris = match (&own.server, beside.first()) {
        (Some(server), Some(agent)) => agent.form_cluster(server, &pods.servers, made, control)?,
        _ => own.target.iter().cloned().collect(),
    };
    Ok((uris, clients, beside))
}

/// Workers in pods, on servers that stand.
pub(super) fn on_persistent(
    spec: &Experiment,
    kubernetes: &Kubernetes,
    (secured, persistent): (&ServerSpec, &PersistentPods),
    (work_dir, experiment_dir): (&Path, &Path),
    control: &Arc<Control>,
) -> Result<ProvisionedTarget, ExperimentError> {
    let own = Experiment { server: Some(secured.clone()), ..spec.clone() };
    let name = random_name()?;
    let journal = noted(experiment_dir, &name)?;
    let pods = RunPods::start_on(
        &own,
        kubernetes,
        (&name, &random(32)?),
        ((&journal, work_dir), persistent),
        control,
    )
    .map_err(unreachable)?;
    with_agents(&own, pods, work_dir, true, control)
}

/// An agent on each host, all started at the same time.
fn agents(hosts: &[ReachedHost], work_dir: &Path) -> Result<Vec<RemoteAgent>, RemoteError> {
    std::thread::scope(|scope| {
        let started: Vec<_> = hosts.iter().map(|host| scope.spawn(|| host.agent(work_dir))).collect();
        let lost = |host: &ReachedHost| RemoteError::Failed {
            host: host.transport.name().to_owned(),
            source: "its agent could not be started".into(),
        };
        let joined = started.into_iter().zip(hosts);
        joined.map(|(thread, host)| thread.join().unwrap_or_else(|_| Err(lost(host)))).collect()
    })
}
