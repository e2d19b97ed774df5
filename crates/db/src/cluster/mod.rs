//! Arrangements that processes make together: clusters, copies of a primary, replica sets and shards. Data that they keep are
//! made once, the rest at every start; all of it is awaited.

mod error;

pub use error::ClusterError;

use crate::node::ServerNode;
use dyno_config::server::{ServerSpec, Topology};
use dyno_engine::Control;
use dyno_localhost::error::LocalError;
use std::time::{Duration, Instant};

/// Time that one command may take.
pub const COMMAND: Duration = Duration::from_secs(10);

/// Interval between looks at whether the caller wants the end.
const LOOK: Duration = Duration::from_millis(5);

/// The processes of one instance, and who may end the waiting for them.
pub struct ProcessGroup<'a> {
    /// Specification of the group that they are to be.
    pub spec: &'a ServerSpec,
    /// The processes; primaries come before replicas.
    pub nodes: &'a [&'a ServerNode],
    /// True if their data say that it has been made.
    pub made: bool,
    /// The wait ends once it stops.
    pub control: Option<&'a Control>,
}

impl ProcessGroup<'_> {
    /// Tries until it works, for as long as servers may take to be ready.
    ///
    /// # Errors
    /// Returns the last reason, once time is over or the caller no longer waits.
    pub fn retry_until_ready(
        &self,
        mut step: impl FnMut() -> Result<(), ClusterError>,
    ) -> Result<(), ClusterError> {
        let patience = Duration::from_nanos(self.spec.ready_within.0);
        let begun = Instant::now();
        loop {
            match step() {
                Ok(()) => return Ok(()),
                Err(why) if self.control.is_some_and(Control::is_stopping) => return Err(why),
                Err(why) if begun.elapsed() > patience => {
                    return Err(ClusterError::Late { patience, source: Box::new(why) });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Takes a step of the group's kind of server, and says whose it was where it fails.
    ///
    /// # Errors
    /// Names the first process and the topology.
    pub fn take_step(&self, step: impl FnOnce(&Self) -> Result<(), ClusterError>) -> Result<(), LocalError> {
        let failed =
            |why| LocalError::failed_step(format!("{} {:?}", self.nodes[0].name, self.spec.topology), why);
        if self.spec.topology == Topology::Single { Ok(()) } else { step(self).map_err(failed) }
    }
}

/// Takes a step with every group. Once `control` stops, `end` is called, which ends the servers: whatever is being waited
/// for then fails at once.
///
/// # Errors
/// As [`ProcessGroup::take_step`]; says so where the caller no longer waited.
pub fn with_all(
    groups: &[ProcessGroup<'_>],
    step: impl Fn(&ProcessGroup<'_>) -> Result<(), ClusterError> + Sync,
    control: Option<&Control>,
    end: &dyn Fn(),
) -> Result<(), LocalError> {
    if groups.iter().all(|group| group.spec.topology == Topology::Single) {
        return Ok(());
    }
    let stopping = || control.is_some_and(Control::is_stopping);
    let formed = std::thread::scope(|scope| {
        let forming = scope.spawn(|| groups.iter().try_for_each(|group| group.take_step(&step)));
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
            Err(LocalError::Failed(format!("{}: no longer waited for", groups[0].nodes[0].name)))
        }
        formed => formed,
    }
}

/// The number of the primary that process number `i` of a cluster copies; replicas come after the primaries, in turn.
pub fn primary_of(spec: &ServerSpec, i: usize) -> Option<usize> {
    let primaries = spec.primaries() as usize;
    (i >= primaries).then(|| i % primaries)
}
