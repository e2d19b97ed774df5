//! Redis and its forks that read redis.conf.

use super::rules::{Election, ServerRules};
use crate::server::invalid::InvalidSetting;
use crate::server::{ServerSpec, Topology};

pub(super) struct Redis {
    name: &'static str,
    program: &'static str,
    remedy: &'static str,
    image: &'static str,
    election: Option<Election>,
}

pub(super) static REDIS: Redis = Redis {
    name: "redis",
    program: "redis-server",
    remedy: "Debian and Ubuntu have it in the package redis-server",
    image: "redis:7",
    election: Some(Election::Sentinels),
};

pub(super) static VALKEY: Redis = Redis {
    name: "valkey",
    program: "valkey-server",
    remedy: "Debian and Ubuntu have it in the package valkey-server",
    image: "valkey/valkey:8",
    election: Some(Election::Sentinels),
};

pub(super) static KEYDB: Redis = Redis {
    name: "keydb",
    program: "keydb-server",
    remedy: "see https://docs.keydb.dev/docs/download",
    image: "eqalpha/keydb:latest",
    election: None,
};

/// Memory that a process takes beside its data, bytes.
const OWN: u64 = 8 << 20;

/// Port, topologies and password of everything that speaks Redis' protocol.
pub(super) const PORT: u16 = 6_379;
pub(super) const PASSWORD: &str = "requirepass";
pub(super) const TOPOLOGIES: [Topology; 2] = [Topology::Replication, Topology::Cluster];

/// Returns whether a server of this protocol writes while it serves: its log of commands is on, or snapshots are asked for.
pub(super) fn writes_while_serving(spec: &ServerSpec) -> bool {
    let asked = ["appendonly", "save"].iter().any(|option| spec.options.contains_key(*option));
    spec.journal == Some(true) || asked
}

impl ServerRules for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn program(&self) -> &'static str {
        self.program
    }

    fn remedy(&self) -> &'static str {
        self.remedy
    }

    fn image(&self) -> &'static str {
        self.image
    }

    fn port(&self) -> u16 {
        PORT
    }

    fn topologies(&self) -> &'static [Topology] {
        &TOPOLOGIES
    }

    fn password_option(&self) -> Option<&'static str> {
        Some(PASSWORD)
    }

    fn stands_for_any(&self) -> bool {
        true
    }

    fn memory_needed(&self, spec: &ServerSpec) -> u64 {
        spec.cache.as_ref().map_or(0, |cache| cache.0) + OWN
    }

    fn check(&self, _spec: &ServerSpec) -> Result<(), InvalidSetting> {
        Ok(())
    }

    fn writes_while_serving(&self, spec: &ServerSpec) -> bool {
        writes_while_serving(spec)
    }

    fn election(&self) -> Option<Election> {
        self.election
    }
}
