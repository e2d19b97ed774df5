//! Dragonfly.

use super::redis;
use super::rules::ServerRules;
use crate::server::invalid::InvalidSetting;
use crate::server::{ServerSpec, Topology};

/// Least memory of its data, and what it takes beside them, bytes.
const LEAST: u64 = 256 << 20;
const OWN: u64 = 64 << 20;

pub(super) struct DragonflyRules;

impl ServerRules for DragonflyRules {
    fn name(&self) -> &'static str {
        "dragonfly"
    }

    fn program(&self) -> &'static str {
        "dragonfly"
    }

    fn remedy(&self) -> &'static str {
        "see https://www.dragonflydb.io/docs/getting-started/binary"
    }

    fn image(&self) -> &'static str {
        "docker.dragonflydb.io/dragonflydb/dragonfly:v1.37.0"
    }

    fn port(&self) -> u16 {
        redis::PORT
    }

    fn topologies(&self) -> &'static [Topology] {
        &redis::TOPOLOGIES
    }

    fn password_option(&self) -> Option<&'static str> {
        Some(redis::PASSWORD)
    }

    fn stands_for_any(&self) -> bool {
        true
    }

    fn memory_needed(&self, spec: &ServerSpec) -> u64 {
        spec.cache.as_ref().map_or(0, |cache| cache.0).max(LEAST) + OWN
    }

    fn check(&self, spec: &ServerSpec) -> Result<(), InvalidSetting> {
        match spec.journal {
            Some(true) => Err(InvalidSetting::new("journal", "Dragonfly has no append-only file")),
            _ => Ok(()),
        }
    }

    fn reads_replicas_of_clusters(&self) -> bool {
        false
    }

    fn writes_while_serving(&self, spec: &ServerSpec) -> bool {
        redis::writes_while_serving(spec)
    }

    fn writes_at_end(&self) -> bool {
        true
    }

    fn sizes_by_free_memory(&self) -> bool {
        true
    }
}
