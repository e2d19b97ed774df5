//! Servers on hosts that are reached by ssh, with the data of a volume there where one is asked for.

use crate::experiment_error::ExperimentError;
use crate::hosts::ReachedHost;
use crate::provisioned_target::{OwnedResources, ProvisionedTarget};
use crate::random::secured;
use crate::volumes::Volume;
use dyno_config::experiment::Experiment;
use dyno_config::server::ServerSpec;
use dyno_config::server::tuning::HostTuning;
use dyno_engine::Control;
use dyno_hosts::remote::remote_agent::RemoteServer;
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use std::path::Path;
use std::sync::Arc;

/// On each host what the file describes. `work_dir` is a folder of the run, `experiment_dir` the experiment's.
pub(super) fn provision_remote(
    spec: &Experiment,
    server: &ServerSpec,
    hosts: &[ReachedHost],
    (work_dir, experiment_dir): (&Path, &Path),
    control: &Arc<Control>,
) -> Result<ProvisionedTarget, ExperimentError> {
    let preparation = FaultPreparation::for_faults(&spec.faults, &[]);
    let mut all: Vec<(RemoteServer, ServerSpec)> = Vec::new();
    for host in hosts {
        let address = server.address.map_or_else(|| host.address(), Ok)?;
        let own = secured(&ServerSpec { address: Some(address), ..server.clone() })?;
        all.push((RemoteServer::of_agent(host.agent(work_dir)?), own));
    }
    let agents: Vec<_> = all.iter().map(|(one, _)| one.agent()).collect();
    let mut volume = Volume::elsewhere(spec, server, &agents, experiment_dir)?;
    let why = match start(&mut all, (&preparation, &spec.host), volume.as_ref(), control) {
        Ok(()) => counted(&all, volume.as_ref(), control)?,
        Err(why) if control.is_stopping() || !volume.as_ref().is_some_and(Volume::is_full) => {
            return Err(why.into());
        }
        Err(why) => Some(format!("no server starts with its data: {why}")),
    };
    if let (Some(why), Some(volume)) = (why, &mut volume) {
        volume.refuse(why);
        start(&mut all, (&preparation, &spec.host), None, control)?;
    }
    let started: Vec<RemoteServer> = all.into_iter().map(|(one, _)| one).collect();
    let uris = started.iter().flat_map(|one| one.uris.clone()).collect();
    Ok(ProvisionedTarget {
        volume,
        ..ProvisionedTarget::new(uris, Vec::new(), false, OwnedResources::Remote(started))
    })
}

fn start(
    all: &mut [(RemoteServer, ServerSpec)],
    (preparation, tuning): (&FaultPreparation, &HostTuning),
    volume: Option<&Volume>,
    control: &Control,
) -> Result<(), RemoteError> {
    for (at, (one, own)) in all.iter_mut().enumerate() {
        one.start((own, preparation), tuning, volume.and_then(|volume| volume.source_on(at)), control)?;
    }
    Ok(())
}

/// Returns what is wrong with the data that the servers have begun with, if something is.
fn counted(
    all: &[(RemoteServer, ServerSpec)],
    volume: Option<&Volume>,
    control: &Control,
) -> Result<Option<String>, ExperimentError> {
    let Some(volume) = volume.filter(|volume| volume.is_full()) else { return Ok(None) };
    let mut count = 0;
    for (one, _) in all {
        count += one.count_records(control)?;
    }
    Ok(volume.miscounted(count))
}
