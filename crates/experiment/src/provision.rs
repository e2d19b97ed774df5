//! Provision of what a run is applied to: a target that exists, a folder for an embedded store, or a server that is started.
//!
//! A server lives for a run, or (`server_lifetime: shared`) until a run describes it in other words.

use crate::experiment_error::{ExperimentError, of_server};
use crate::faults::{by_proxies, on_workers};
use crate::persistent_servers::PersistentServers;
use crate::pods::in_pods;
use crate::provisioned_target::{DescribedServer, OwnedResources, ProvisionedTarget, SharedServers};
use crate::random::secured;
use crate::remote_servers::provision_remote;
use crate::volumes;
use crate::volumes::Volume;
use dyno_config::experiment::{Experiment, Lifetime, When};
use dyno_config::server::ServerSpec;
use dyno_databases::registry;
use dyno_databases::spawn::{find_server, spawn_under};
use dyno_engine::Control;
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use dyno_hosts::servers::volume::is_still;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::temporary::remove_abandoned;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Brings about what a cell asks for. `work_dir` is a folder of the run, `experiment_dir` the experiment's.
pub(super) fn provision(
    spec: &Experiment,
    work_dir: &Path,
    experiment_dir: &Path,
    shared: &mut SharedServers,
    (machine, control, program): (&Machine, &Arc<Control>, &Path),
) -> Result<ProvisionedTarget, ExperimentError> {
    if let Some(persistent) = &shared.persistent {
        let found = PersistentServers::of(persistent)?;
        let found = found.ok_or_else(|| {
            ExperimentError::other(format!("{}: its servers have been stopped", persistent.display()))
        })?;
        return found.target(spec, (work_dir, experiment_dir), (machine, control));
    }
    if let Some(kubernetes) = &spec.kubernetes {
        return in_pods(spec, kubernetes, work_dir, (experiment_dir, false), control);
    }
    let clients = shared.hosts.reach(&spec.ssh, &spec.ssh.clients, (program, control))?;
    let servers = shared.hosts.reach(&spec.ssh, &spec.ssh.servers, (program, control))?;
    let watched = shared.hosts.reach(&spec.ssh, &spec.ssh.watched, (program, control))?;
    let mut target = match &spec.server {
        Some(server) if !servers.is_empty() => {
            provision_remote(spec, server, &servers, (work_dir, experiment_dir), control)?
        }
        _ => here(spec, work_dir, experiment_dir, shared, (machine, control))?,
    };
    if spec.monitors.enabled || on_workers(&spec.faults) {
        // A host has one agent.
        let mut known: Vec<&str> = servers.iter().map(|server| server.transport.name()).collect();
        for host in watched.iter().chain(&clients) {
            if !known.contains(&host.transport.name()) {
                target.beside.push(host.agent(work_dir)?);
                known.push(host.transport.name());
            }
        }
    }
    let watched = watched.iter().map(|host| host.transport.name().to_owned()).collect();
    Ok(ProvisionedTarget { clients, watched, ..target })
}

fn here(
    spec: &Experiment,
    work_dir: &Path,
    experiment_dir: &Path,
    shared: &mut SharedServers,
    (machine, control): (&Machine, &Arc<Control>),
) -> Result<ProvisionedTarget, ExperimentError> {
    if let Some(server) = &spec.server {
        return described(spec, server, work_dir, experiment_dir, shared, (machine, control));
    }
    let uri = spec.target.clone().unwrap_or_else(|| "spawn:".into());
    if let Some(kind) = uri.strip_prefix("spawn:") {
        let found = find_server(Some(kind).filter(|kind| !kind.is_empty()));
        let Some((kind, program)) = found else {
            return Err(ExperimentError::other(format!("target: no server of kind {kind:?} on PATH")));
        };
        // Things that could not be removed are told by `dyno stop`.
        let _ = remove_abandoned();
        let server = spawn_under(kind, &program, Some(control))?;
        let uris = vec![server.uri()];
        let taken = server.core.into_iter().collect();
        return Ok(ProvisionedTarget::new(uris, taken, true, OwnedResources::Temporary(Box::new(server))));
    }
    let uri = match uri.contains("{dir}") {
        true => {
            let data = work_dir.join("data");
            std::fs::create_dir_all(&data).map_err(|e| LocalError::failed_step(data.display(), e))?;
            uri.replace("{dir}", &data.display().to_string())
        }
        false => uri,
    };
    let local = registry::parse(&uri).is_ok_and(|target| target.is_local());
    Ok(ProvisionedTarget::new(vec![uri], Vec::new(), local, OwnedResources::Nothing))
}

fn described(
    spec: &Experiment,
    server: &ServerSpec,
    work_dir: &Path,
    experiment_dir: &Path,
    shared: &mut SharedServers,
    (machine, control): (&Machine, &Arc<Control>),
) -> Result<ProvisionedTarget, ExperimentError> {
    let mut running = shared.server.take();
    let proxied = by_proxies(spec, machine);
    let preparation = FaultPreparation::for_faults(&spec.faults, &proxied);
    let other = |running: &DescribedServer| running.spec != *server || running.preparation != preparation;
    if running.as_ref().is_some_and(|running| other(running) || spec.server_lifetime == Lifetime::Run) {
        // The run describes another server: this one's time is over.
        if let Some(old) = running.take() {
            old.server.stop().map_err(of_server)?;
        }
    }
    let mut volume = Volume::here(spec, server, experiment_dir, machine)?;
    let described = match running {
        Some(mut running) => {
            if let Some(died) = running.server.describe_death() {
                return Err(ExperimentError::other(format!("server: {died}")));
            }
            if running.copied {
                running.server.restore_snapshot().map_err(of_server)?;
            }
            if server.drop_caches {
                running.server.drop_caches().map_err(of_server)?;
            }
            running
        }
        None => {
            let folder = match spec.server_lifetime {
                Lifetime::Run => work_dir.to_owned(),
                Lifetime::Shared => {
                    shared.made += 1;
                    fresh(experiment_dir, shared.made)
                }
            };
            std::fs::create_dir_all(&folder).map_err(|e| LocalError::failed_step(folder.display(), e))?;
            let own = secured(server)?;
            let fills = volume.as_ref().is_some_and(|volume| !volume.is_full() && !is_still(&own));
            let loads = (own.data.snapshot || fills) && spec.phases.load.when != When::Never;
            let begin = (&preparation, false, loads);
            volume.as_ref().map_or(Ok(()), |volume| volume.clear(control))?;
            let started = volumes::start(&own, begin, &folder, (machine, control), &mut volume)?;
            Box::new(DescribedServer {
                spec: server.clone(),
                own,
                preparation,
                server: started,
                copied: false,
            })
        }
    };
    let (uris, taken) = (described.server.client_uris(), described.server.given_cores());
    let mut target = ProvisionedTarget {
        volume,
        ..ProvisionedTarget::new(uris, taken, true, OwnedResources::Server(described))
    };
    if !proxied.is_empty() {
        target.stand_between()?;
        target.by_proxies = proxied;
    }
    Ok(target)
}

/// A folder for a shared server that does not exist yet.
fn fresh(experiment_dir: &Path, number: usize) -> PathBuf {
    let all = (number..number + 10_000).map(|n| experiment_dir.join(format!("server-{n:03}")));
    all.into_iter().find(|path| !path.exists()).unwrap_or_else(|| experiment_dir.join("server"))
}
