//! Servers on hosts that are reached by ssh, with the data of a volume there where one is asked for.

use crate::hosts::Reached;
use crate::one::Failed;
use crate::place::{Held, Place, secured};
use crate::volumes::Volume;
use dyno_config::experiment::Experiment;
use dyno_config::server::ServerSpec;
use dyno_engine::Control;
use dyno_remote::far::FarServer;
use dyno_remote::ssh::RemoteError;
use dyno_servers::server::faults::Room;
use std::path::Path;
use std::sync::Arc;

/// On each host what the file describes. `home` is a folder of the run, `below` the experiment's.
pub(super) fn elsewhere(
    spec: &Experiment,
    server: &ServerSpec,
    hosts: &[Reached],
    (home, below): (&Path, &Path),
    control: &Arc<Control>,
) -> Result<Place, Failed> {
    let room = Room::of(&spec.faults, &[]);
    let mut all: Vec<(FarServer, ServerSpec)> = Vec::new();
    for host in hosts {
        let address = server.address.map_or_else(|| host.address(), Ok)?;
        let own = secured(&ServerSpec { address: Some(address), ..server.clone() })?;
        all.push((FarServer::of(host.agent(home)?), own));
    }
    let agents: Vec<_> = all.iter().map(|(one, _)| one.far()).collect();
    let mut volume = Volume::elsewhere(spec, server, &agents, below)?;
    let why = match start(&mut all, &room, volume.as_ref(), control) {
        Ok(()) => counted(&all, volume.as_ref(), control)?,
        Err(why) if control.stopping() || !volume.as_ref().is_some_and(Volume::is_full) => {
            return Err(why.into());
        }
        Err(why) => Some(format!("no server starts with its data: {why}")),
    };
    if let (Some(why), Some(volume)) = (why, &mut volume) {
        volume.refuse(why);
        start(&mut all, &room, None, control)?;
    }
    let started: Vec<FarServer> = all.into_iter().map(|(one, _)| one).collect();
    let uris = started.iter().flat_map(|one| one.uris.clone()).collect();
    Ok(Place { volume, ..Place::new(uris, Vec::new(), false, Held::Far(started)) })
}

fn start(
    all: &mut [(FarServer, ServerSpec)],
    room: &Room,
    volume: Option<&Volume>,
    control: &Control,
) -> Result<(), RemoteError> {
    for (at, (one, own)) in all.iter_mut().enumerate() {
        one.start((own, room), volume.and_then(|volume| volume.source_on(at)), control)?;
    }
    Ok(())
}

/// What speaks against the data that the servers have begun with, if something does.
fn counted(
    all: &[(FarServer, ServerSpec)],
    volume: Option<&Volume>,
    control: &Control,
) -> Result<Option<String>, Failed> {
    let Some(volume) = volume.filter(|volume| volume.is_full()) else { return Ok(None) };
    let mut count = 0;
    for (one, _) in all {
        count += one.counted(control)?;
    }
    Ok(volume.miscounted(count))
}
