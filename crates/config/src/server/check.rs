//! Checks of a server's configuration that look at no machine.

use crate::server::invalid::InvalidSetting;
use crate::server::{Reads, ServerKind, ServerSpec, Topology};
use crate::values::Bytes;
use dyno_types::limits::PROCESSES;

impl ServerSpec {
    /// Refuses an invalid configuration by its key, without looking at the machine.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.check_shape()?;
        self.check_engine()?;
        self.placement.check().map_err(|wrong| wrong.below_key("placement"))?;
        self.limits.check().map_err(|wrong| wrong.below_key("limits"))?;
        self.data.check().map_err(|wrong| wrong.below_key("data"))?;
        let needed = self.kind.server_rules().memory_needed(self);
        if let Some(limit) = &self.limits.memory
            && limit.0 < needed
        {
            let cache =
                self.cache.as_ref().map_or(String::new(), |cache| format!(" with a cache of {cache}"));
            return Err(InvalidSetting::new(
                "limits.memory",
                format!("{limit} is less than {}{cache} needs, at least {}", self.kind, Bytes(needed)),
            ));
        }
        if self.ready_within.0 == 0 {
            return Err(InvalidSetting::new("ready_within", "expected a duration above 0s"));
        }
        Ok(())
    }

    fn check_shape(&self) -> Result<(), InvalidSetting> {
        if self.instances == 0 {
            return Err(InvalidSetting::new("instances", "expected a whole number from 1"));
        }
        if self.topology != Topology::Single
            && !self.kind.server_rules().topologies().contains(&self.topology)
        {
            let can = ServerKind::names_where(|rules| rules.topologies().contains(&self.topology));
            return Err(InvalidSetting::new(
                "topology",
                format!("{} is for {can}, not {}", self.topology, self.kind),
            ));
        }
        match (self.topology, self.members) {
            (Topology::Single, Some(n)) if n != 1 => {
                return Err(InvalidSetting::new(
                    "members",
                    format!("a single server has one, not {n}; see topology"),
                ));
            }
            (Topology::Replication, Some(n)) if n != 1 => {
                return Err(InvalidSetting::new(
                    "members",
                    format!("a replication has one primary, not {n}; its copies are replicas"),
                ));
            }
            (Topology::Sharded, Some(0)) => {
                return Err(InvalidSetting::new("members", "expected one shard or more"));
            }
            (Topology::ReplicaSet, Some(n)) if n == 0 || n > 7 => {
                return Err(InvalidSetting::new(
                    "members",
                    format!("a replica set has 1 to 7 that vote, not {n}"),
                ));
            }
            (Topology::Cluster, Some(n)) if n < 3 => {
                return Err(InvalidSetting::new(
                    "members",
                    format!("a cluster needs 3 primaries or more, not {n}"),
                ));
            }
            _ => {}
        }
        self.check_copies()?;
        if self.processes() > PROCESSES {
            return Err(InvalidSetting::new(
                "instances",
                format!(
                    "{} processes in all, at most {PROCESSES}",
                    u64::from(self.processes_each()) * u64::from(self.instances)
                ),
            ));
        }
        if let Some(port) = self.port {
            // A Redis cluster's bus listens 10,000 higher.
            let above = if self.topology == Topology::Cluster { 10_000 } else { 0 };
            if port == 0 || u32::from(port) + self.processes() - 1 + above > 65_535 {
                return Err(InvalidSetting::new(
                    "port",
                    format!("{port} and the {} that follow are not all ports", self.processes() - 1),
                ));
            }
        }
        Ok(())
    }

    fn check_copies(&self) -> Result<(), InvalidSetting> {
        match (self.topology, self.replicas) {
            (Topology::Single, n) if n > 0 => {
                return Err(InvalidSetting::new(
                    "replicas",
                    "a single server has none: expected topology: replication or cluster",
                ));
            }
            (Topology::ReplicaSet, n) if n > 0 => {
                return Err(InvalidSetting::new("replicas", "a replica set has members"));
            }
            (Topology::Sharded, n) if n > 6 => {
                return Err(InvalidSetting::new(
                    "replicas",
                    format!("a shard has 1 to 7 members that vote, not {}", n + 1),
                ));
            }
            (Topology::Replication, 0) => {
                return Err(InvalidSetting::new("replicas", "expected 1 or more copies of the primary"));
            }
            _ => {}
        }
        match (self.topology, self.routers) {
            (Topology::Sharded, Some(0)) => return Err(InvalidSetting::new("routers", "expected 1 or more")),
            (Topology::Sharded, _) | (_, None) => {}
            _ => return Err(InvalidSetting::new("routers", "only a sharded cluster has them")),
        }
        if self.reads == Reads::Primary {
            return Ok(());
        }
        let copies = match self.topology {
            Topology::ReplicaSet => self.primaries() - 1,
            _ => self.replicas,
        };
        if copies == 0 {
            return Err(InvalidSetting::new(
                "reads",
                "there are no copies to be read from: expected primary",
            ));
        }
        if self.topology == Topology::Cluster && !self.kind.server_rules().reads_replicas_of_clusters() {
            return Err(InvalidSetting::new(
                "reads",
                format!("clusters of {} are read from their primaries alone: expected primary", self.kind),
            ));
        }
        Ok(())
    }

    fn check_engine(&self) -> Result<(), InvalidSetting> {
        let rules = self.kind.server_rules();
        let own = [
            ("compressor", self.compressor.is_some()),
            ("journal_compressor", self.journal_compressor.is_some()),
            ("sync_delay", self.sync_delay.is_some()),
            ("engine", self.engine.is_some()),
        ];
        if let Some((key, _)) = own.iter().find(|(_, set)| *set && !rules.has_engines()) {
            let can = ServerKind::names_where(|rules| rules.has_engines());
            return Err(InvalidSetting::new(key, format!("is for {can}, not {}", self.kind)));
        }
        for (key, value) in
            [("compressor", &self.compressor), ("journal_compressor", &self.journal_compressor)]
        {
            if let Some(name) = value
                && !["none", "snappy", "zlib", "zstd"].contains(&name.as_str())
            {
                return Err(InvalidSetting::new(
                    key,
                    format!("{name:?}: expected none, snappy, zlib or zstd"),
                ));
            }
        }
        if let Some(delay) = &self.sync_delay
            && (delay.0 == 0 || delay.0 % 1_000_000_000 != 0)
        {
            return Err(InvalidSetting::new(
                "sync_delay",
                format!("{delay}: expected whole seconds from 1s"),
            ));
        }
        rules.check(self)?;
        match &self.cache {
            Some(cache) if cache.0 == 0 => Err(InvalidSetting::new("cache", "expected a size above 0")),
            _ => Ok(()),
        }
    }
}
