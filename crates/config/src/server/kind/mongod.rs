//! mongod.

use super::rules::{Election, ServerRules};
use crate::server::invalid::InvalidSetting;
use crate::server::{ServerSpec, Topology};

/// The port that clients of MongoDB expect.
pub const PORT: u16 = 27_017;

/// Least cache that mongod's own settings take, bytes.
const SMALL: u64 = 256 << 20;

/// Memory that mongod takes beside its cache, bytes: 75 MiB when it starts, and its threads and buffers.
pub const OWN: u64 = 128 << 20;

/// Memory that a mongod whose engine has a cache needs where no size is given, bytes: WiredTiger takes 256 MiB or more.
const UNSIZED: u64 = 384 << 20;

/// Returns whether a mongod of this version (`db version v7.0.5`, `7.0.5`) keeps its journal whatever it is told: 6.1
/// and later. One that is unknown is not.
pub fn always_journals(version: &str) -> bool {
    let number =
        version.split(['v', ' ', ',', ':', '-']).find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number.unwrap_or_default().split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 1),
        // A tag of an image may be that short.
        (Some(Ok(major)), None) => major > 6,
        _ => false,
    }
}

/// The setting of an engine that is its cache in GiB; `None` for one that leaves it to the kernel.
pub fn cache_key(spec: &ServerSpec) -> Option<&'static str> {
    match spec.engine.as_deref() {
        None | Some("wiredTiger") => Some("storage.wiredTiger.engineConfig.cacheSizeGB"),
        Some("inMemory") => Some("storage.inMemory.engineConfig.inMemorySizeGB"),
        Some("rocksdb") => Some("storage.rocksdb.cacheSizeGB"),
        Some(_) => None,
    }
}

/// Returns whether the cache is smaller than mongod's own setting takes, so that WiredTiger must be told in its own words.
pub fn has_small_cache(spec: &ServerSpec) -> bool {
    is_wired_tiger(spec) && spec.cache.as_ref().is_some_and(|cache| cache.0 < SMALL)
}

fn is_wired_tiger(spec: &ServerSpec) -> bool {
    matches!(spec.engine.as_deref(), None | Some("wiredTiger"))
}

/// Least cache of the engine, bytes.
fn least_cache(spec: &ServerSpec) -> u64 {
    if is_wired_tiger(spec) { 1 << 20 } else { SMALL }
}

pub(super) struct Mongod;

impl ServerRules for Mongod {
    fn name(&self) -> &'static str {
        "mongod"
    }

    fn program(&self) -> &'static str {
        "mongod"
    }

    fn remedy(&self) -> &'static str {
        "see https://www.mongodb.com/docs/manual/administration/install-on-linux"
    }

    fn image(&self) -> &'static str {
        "mongo:8"
    }

    fn port(&self) -> u16 {
        PORT
    }

    fn topologies(&self) -> &'static [Topology] {
        &[Topology::ReplicaSet, Topology::Sharded]
    }

    fn memory_needed(&self, spec: &ServerSpec) -> u64 {
        match &spec.cache {
            // Engines without a cache leave it to the kernel.
            None if cache_key(spec).is_some() => UNSIZED,
            cache => cache.as_ref().map_or(0, |cache| cache.0) + OWN,
        }
    }

    /// Half of all memory but one GiB, each process for itself.
    fn own_cache(&self, total: u64) -> u64 {
        (total.saturating_sub(1 << 30) / 2).max(SMALL)
    }

    fn check(&self, spec: &ServerSpec) -> Result<(), InvalidSetting> {
        let Some(cache) = &spec.cache else { return Ok(()) };
        let words = match spec.engine.as_deref() {
            engine if cache_key(spec).is_none() => {
                format!("engine {} has no cache of its own", engine.unwrap_or(""))
            }
            Some("rocksdb") if !cache.0.is_multiple_of(1 << 30) => {
                format!("{cache}: expected whole GiB for this engine")
            }
            _ if cache.0 < least_cache(spec) => {
                format!("{cache}: expected {}MiB or more for this engine", least_cache(spec) >> 20)
            }
            _ => return Ok(()),
        };
        Err(InvalidSetting::new("cache", words))
    }

    fn has_engines(&self) -> bool {
        true
    }

    fn journals(&self, spec: &ServerSpec, version: &str) -> Option<bool> {
        Some(spec.journal != Some(false) || always_journals(version))
    }

    fn writes_while_serving(&self, _spec: &ServerSpec) -> bool {
        true
    }

    fn writes_at_end(&self) -> bool {
        true
    }

    fn election(&self) -> Option<Election> {
        Some(Election::Members)
    }
}
