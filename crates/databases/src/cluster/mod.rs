//! What processes make together: clusters, copies of a primary, replica sets and shards. What their data keep is made once,
//! the rest at every start; all of it is awaited.

mod error;
#[cfg(test)]
mod tests;

pub use error::ClusterError;

use crate::dragonfly::cluster as dragonfly;
use crate::mongodb::cluster as mongod;
use crate::redis::cluster as redis;
use crate::servers::Node;
use dyno_config::server::{ServerKind, ServerSpec, Topology};
use dyno_engine::Control;
use dyno_localhost::error::LocalError;
use std::time::{Duration, Instant};

/// How long one command may take.
pub const COMMAND: Duration = Duration::from_secs(10);

/// How often it is looked whether somebody wants the end.
const LOOK: Duration = Duration::from_millis(5);

/// What is done to the processes of one instance.
pub type Step = fn(&ServerSpec, &[&Node], bool, Option<&Control>) -> Result<(), LocalError>;

/// Takes a step with every instance. Once `control` stops, `end` is called, which ends the servers: whatever is being waited
/// for then fails at once.
pub fn with_all(
    step: Step,
    spec: &ServerSpec,
    instances: &[Vec<&Node>],
    made: bool,
    (control, end): (Option<&Control>, &dyn Fn()),
) -> Result<(), LocalError> {
    if spec.topology == Topology::Single {
        return Ok(());
    }
    let stopping = || control.is_some_and(Control::stopping);
    let formed = std::thread::scope(|scope| {
        let forming = scope.spawn(|| instances.iter().try_for_each(|nodes| step(spec, nodes, made, control)));
        while !forming.is_finished() {
            if stopping() {
                end();
            }
            std::thread::sleep(LOOK);
        }
        forming.join().unwrap_or_else(|_| Err(LocalError::Failed("forming the cluster failed".into())))
    });
    match formed {
        Err(_) if stopping() => {
            Err(LocalError::Failed(format!("{}: no longer waited for", instances[0][0].name)))
        }
        formed => formed,
    }
}

/// Makes what the topology says of the processes of one instance, unless their data say that it has been made: all but
/// what routers take part in.
pub fn form(
    spec: &ServerSpec,
    nodes: &[&Node],
    made: bool,
    control: Option<&Control>,
) -> Result<(), LocalError> {
    let failed = failure(spec, nodes);
    let until = |step: &mut dyn FnMut() -> Result<(), ClusterError>| until(spec, control, step);
    match (spec.topology, spec.kind) {
        (Topology::Single, _) => Ok(()),
        (Topology::Replication, _) => {
            redis::follow(spec, nodes).map_err(failed)?;
            until(&mut || redis::followed(spec, nodes)).map_err(failed)
        }
        (Topology::Cluster, ServerKind::Dragonfly) => {
            redis::replicate(spec, nodes, &mut redis::follows).map_err(failed)?;
            dragonfly::assign(spec, nodes, false).map_err(failed)?;
            until(&mut || redis::whole(spec, nodes)).map_err(failed)
        }
        (Topology::Cluster, _) => {
            if !made {
                redis::slots_and_meeting(spec, nodes).map_err(failed)?;
                until(&mut || redis::all_know_all(spec, nodes)).map_err(failed)?;
                redis::attach(spec, nodes).map_err(failed)?;
            } else {
                redis::meet_again(spec, nodes).map_err(failed)?;
            }
            until(&mut || redis::whole(spec, nodes)).map_err(failed)
        }
        (Topology::ReplicaSet | Topology::Sharded, _) => {
            let sets = mongod::sets(spec, nodes);
            if !made {
                let mut each = sets.iter();
                each.try_for_each(|set| until(&mut || mongod::initiate(spec, set))).map_err(failed)?;
            }
            until(&mut || sets.iter().try_for_each(|set| mongod::elected(spec, set))).map_err(failed)
        }
    }
}

/// What routers take part in: they are told of the shards, unless that has been made, and know them all.
pub fn join(
    spec: &ServerSpec,
    nodes: &[&Node],
    made: bool,
    control: Option<&Control>,
) -> Result<(), LocalError> {
    let failed = failure(spec, nodes);
    if !made {
        until(spec, control, &mut || mongod::add_shards(spec, nodes)).map_err(failed)?;
    }
    until(spec, control, &mut || mongod::know_shards(spec, nodes)).map_err(failed)
}

/// Tells a process that was started again, number `i` of its instance, what its data do not: whom it copies, and which slots
/// are whose.
pub fn rejoin(spec: &ServerSpec, nodes: &[&Node], i: usize) -> Result<(), LocalError> {
    let done = match (spec.topology, spec.kind) {
        (Topology::Replication, _) if i > 0 => redis::follows(spec, nodes[0], nodes[i]),
        (Topology::Cluster, ServerKind::Dragonfly) => {
            let primary = primary_of(spec, i).map(|primary| nodes[primary]);
            let copied = primary.map_or(Ok(()), |primary| redis::follows(spec, primary, nodes[i]));
            copied.and_then(|()| dragonfly::assign(spec, nodes, true))
        }
        _ => Ok(()),
    };
    done.map_err(|why| LocalError::failed(&nodes[i].name, why))
}

/// The number of the primary that process number `i` of a cluster copies; replicas come after the primaries, in turn.
pub fn primary_of(spec: &ServerSpec, i: usize) -> Option<usize> {
    let primaries = spec.primaries() as usize;
    (i >= primaries).then(|| i % primaries)
}

/// Says whose forming failed.
fn failure<'a>(
    spec: &ServerSpec,
    nodes: &[&'a Node],
) -> impl Fn(ClusterError) -> LocalError + Copy + use<'a> {
    let whose = (nodes[0].name.as_str(), spec.topology);
    move |why| LocalError::failed(format!("{} {:?}", whose.0, whose.1), why)
}

/// Tries until it works; the last reason if it does not.
fn until(
    spec: &ServerSpec,
    control: Option<&Control>,
    step: &mut dyn FnMut() -> Result<(), ClusterError>,
) -> Result<(), ClusterError> {
    let patience = Duration::from_nanos(spec.ready_within.0);
    let begun = Instant::now();
    loop {
        match step() {
            Ok(()) => return Ok(()),
            Err(why) if control.is_some_and(Control::stopping) => return Err(why),
            Err(why) if begun.elapsed() > patience => {
                return Err(ClusterError::Late { patience, source: Box::new(why) });
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
