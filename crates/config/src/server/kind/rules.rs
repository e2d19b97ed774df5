//! Questions that can be asked of a kind of server.

use crate::server::invalid::InvalidSetting;
use crate::server::{ServerSpec, Topology};
use crate::values::Bytes;

/// Processes that make a copy the primary when the primary fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// Processes beside the servers: Redis Sentinel.
    Sentinels,
    /// The members of a replica set.
    Members,
}

/// Facts about a kind of server that need no look at a machine.
pub trait ServerRules: Sync {
    /// Name in an experiment file.
    fn name(&self) -> &'static str;

    /// The program's usual name.
    fn program(&self) -> &'static str;

    /// Says where its program comes from, for a user who lacks it.
    fn remedy(&self) -> &'static str;

    /// The usual container image.
    fn image(&self) -> &'static str;

    /// The port that clients expect.
    fn port(&self) -> u16;

    /// Topologies that its processes can form beside [`Topology::Single`].
    fn topologies(&self) -> &'static [Topology] {
        &[]
    }

    /// The option that makes it ask clients for a password.
    fn password_option(&self) -> Option<&'static str> {
        None
    }

    /// Least memory that one process needs, bytes: below it the server does not start or is killed at once.
    fn memory_needed(&self, spec: &ServerSpec) -> u64;

    /// Cache that a process takes where no size is given, of `total` bytes of memory; 0 where that is not known.
    fn own_cache(&self, _total: u64) -> u64 {
        0
    }

    /// Returns whether a temporary one is started where a run names no target.
    fn stands_for_any(&self) -> bool {
        false
    }

    /// Cache of a temporary server; `None` for the server's own.
    fn temporary_cache(&self) -> Option<Bytes> {
        None
    }

    /// Refuses settings that it does not have, or not with these values.
    ///
    /// # Errors
    /// Names the key.
    fn check(&self, spec: &ServerSpec) -> Result<(), InvalidSetting>;

    /// Returns whether compressors, the interval of its checkpoints and a storage engine can be chosen.
    fn has_engines(&self) -> bool {
        false
    }

    /// Returns whether replicas of a cluster can be read from.
    fn reads_replicas_of_clusters(&self) -> bool {
        true
    }

    /// Returns the settings that the version of its program does not have; of a version that is not known it says nothing.
    /// `version` is as the program tells it.
    fn absences(&self, _spec: &ServerSpec, _version: &str) -> Vec<InvalidSetting> {
        Vec::new()
    }

    /// Returns whether its journal is on, for servers that have one unless told otherwise. `version` is as the program tells it.
    fn journals(&self, _spec: &ServerSpec, _version: &str) -> Option<bool> {
        None
    }

    /// Returns whether it writes to its disk while it serves, with these settings. Otherwise it writes when told to,
    /// or at its end.
    fn writes_while_serving(&self, spec: &ServerSpec) -> bool;

    /// Returns whether it writes all data to its disk at its end, told or not.
    fn writes_at_end(&self) -> bool {
        false
    }

    /// Returns whether it sizes itself by the host's free memory, so that a limit must be known when it is configured.
    fn sizes_by_free_memory(&self) -> bool {
        false
    }

    /// Processes that elect a new primary; `None` where dyno has not tried it.
    fn election(&self) -> Option<Election> {
        None
    }

    /// Why its clock cannot be stepped, where it cannot: a library before the C library does it.
    fn fixed_clock(&self) -> Option<&'static str> {
        None
    }
}
