//! A run's servers and workers in pods of a cluster.

use crate::hosts::Reached;
use crate::one::Failed;
use crate::place::{Held, Place, Shared, random, secured};
use crate::volumes::Volume;
use dyno_config::experiment::Experiment;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::server::ServerSpec;
use dyno_engine::Control;
use dyno_kubernetes::manifests::everywhere;
use dyno_kubernetes::place::InPods;
use dyno_kubernetes::standing::Stood;
use dyno_localhost::error::{Cause, LocalError};
use dyno_remote::far::Far;
use dyno_remote::relay::near::Relay;
use dyno_remote::ssh::RemoteError;
use dyno_remote::way::{Pod, Way};
use std::path::Path;
use std::sync::Arc;

/// Servers and workers in pods; the first worker's agent makes clusters, because it can reach the servers.
pub(super) fn in_pods(
    spec: &Experiment,
    kubernetes: &Kubernetes,
    home: &Path,
    (below, lasting): (&Path, bool),
    control: &Arc<Control>,
) -> Result<Place, Failed> {
    let mut own = everywhere(spec);
    own.server = own.server.as_ref().map(secured).transpose()?;
    let mut volume = match &own.server {
        Some(server) => Volume::in_pods(spec, server, kubernetes, below)?,
        None => None,
    };
    loop {
        volume.as_ref().map_or(Ok(()), |volume| volume.clear(control))?;
        let place = pods_of(&own, kubernetes, (home, below, lasting), volume.as_ref(), control)?;
        let Some(found) = volume.as_mut().filter(|volume| volume.is_full()) else {
            return Ok(Place { volume, ..place });
        };
        match place.counted_in_pods(false, control)?.and_then(|count| found.miscounted(count)) {
            None => return Ok(Place { volume, ..place }),
            Some(why) => {
                found.refuse(why);
                place.end(spec, &mut Shared::default())?;
            }
        }
    }
}

/// Pods that are ready, with the servers made one.
fn pods_of(
    own: &Experiment,
    kubernetes: &Kubernetes,
    (home, below, lasting): (&Path, &Path, bool),
    volume: Option<&Volume>,
    control: &Arc<Control>,
) -> Result<Place, Failed> {
    let name = format!("dyno-{}", random(4)?);
    let journal = below.join(format!("kubernetes-{name}.json"));
    let start = if lasting { InPods::start_lasting } else { InPods::start };
    let pods = start(own, kubernetes, (&name, &random(32)?), &journal, control).map_err(unreachable)?;
    let made = volume.is_some_and(Volume::is_full);
    with_agents(own, pods, home, made, control)
}

fn unreachable(why: impl Into<Cause>) -> Failed {
    Failed::unreachable(LocalError::failed("kubernetes", why))
}

/// An agent beside each worker; the first sees to it that the servers are one.
fn with_agents(
    own: &Experiment,
    pods: InPods,
    home: &Path,
    made: bool,
    control: &Arc<Control>,
) -> Result<Place, Failed> {
    let Some((first, _)) = pods.workers.first() else { return Err(unreachable("no pods of workers")) };
    // One kubectl for all pods.
    let relay = Relay::start(&pods.kubectl, first, &home.join("relay.log"), control).map_err(unreachable)?;
    let relay = Arc::new(relay);
    let reached = |(name, address): &(String, _)| {
        let way = Way::Pod(Pod { name: name.clone(), address: *address, relay: relay.clone() });
        Reached { way, program: "dyno".into(), directory: Some("/tmp".into()) }
    };
    let clients: Vec<Reached> = pods.workers.iter().map(reached).collect();
    let beside = agents(&clients, home)?;
    let uris = match (&own.server, beside.first()) {
        (Some(server), Some(agent)) => agent.form(server, &pods.servers, made, control)?,
        _ => own.target.iter().cloned().collect(),
    };
    let place =
        Place::new(uris, Vec::new(), false, Held::Pods(own.server.clone().map(Box::new), Box::new(pods)));
    Ok(Place { clients, beside, ..place })
}

/// Workers in pods, on servers that stand.
pub(super) fn on_standing(
    spec: &Experiment,
    kubernetes: &Kubernetes,
    (secured, stood): (&ServerSpec, &Stood),
    (home, below): (&Path, &Path),
    control: &Arc<Control>,
) -> Result<Place, Failed> {
    let own = Experiment { server: Some(secured.clone()), ..spec.clone() };
    let name = format!("dyno-{}", random(4)?);
    let journal = below.join(format!("kubernetes-{name}.json"));
    let pods = InPods::start_on(&own, kubernetes, (&name, &random(32)?), (&journal, stood), control)
        .map_err(unreachable)?;
    with_agents(&own, pods, home, true, control)
}

/// An agent on each host, all started at the same time.
fn agents(hosts: &[Reached], home: &Path) -> Result<Vec<Far>, RemoteError> {
    std::thread::scope(|scope| {
        let started: Vec<_> = hosts.iter().map(|host| scope.spawn(|| host.agent(home))).collect();
        let lost = |host: &Reached| RemoteError::Failed {
            host: host.way.name().to_owned(),
            source: "its agent could not be started".into(),
        };
        let joined = started.into_iter().zip(hosts);
        joined.map(|(thread, host)| thread.join().unwrap_or_else(|_| Err(lost(host)))).collect()
    })
}
