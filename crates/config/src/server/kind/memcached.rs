//! memcached.

use super::rules::ServerRules;
use crate::server::ServerSpec;
use crate::server::invalid::InvalidSetting;
use crate::values::Bytes;

/// Cache where no size is given, bytes: `--memory-limit` of 64.
const OWN_CACHE: u64 = 64 << 20;

/// Memory that a process takes beside its cache, bytes: hash table, threads, buffers of connections.
const OWN: u64 = 16 << 20;

/// Cache of a temporary server: the records of a first run must not be evicted.
const TEMPORARY_CACHE: Bytes = Bytes(1 << 30);

pub(super) struct Memcached;

impl ServerRules for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn program(&self) -> &'static str {
        "memcached"
    }

    fn remedy(&self) -> &'static str {
        "Debian and Ubuntu have it in the package memcached"
    }

    fn image(&self) -> &'static str {
        "memcached:1.6"
    }

    fn port(&self) -> u16 {
        11_211
    }

    fn memory_needed(&self, spec: &ServerSpec) -> u64 {
        spec.cache.as_ref().map_or(OWN_CACHE, |cache| cache.0) + OWN
    }

    fn own_cache(&self, _total: u64) -> u64 {
        OWN_CACHE
    }

    fn temporary_cache(&self) -> Option<Bytes> {
        Some(TEMPORARY_CACHE)
    }

    fn check(&self, spec: &ServerSpec) -> Result<(), InvalidSetting> {
        let in_memory = "memcached keeps its data in memory alone";
        if spec.journal.is_some() {
            return Err(InvalidSetting::new("journal", in_memory));
        }
        if spec.data.snapshot {
            return Err(InvalidSetting::new("data.snapshot", in_memory));
        }
        if spec.data.volume.is_some() {
            return Err(InvalidSetting::new("data.volume", in_memory));
        }
        match &spec.cache {
            Some(cache) if cache.0 < 1 << 20 || !cache.0.is_multiple_of(1 << 20) => {
                Err(InvalidSetting::new("cache", format!("{cache}: expected whole MiB from 1MiB")))
            }
            _ => Ok(()),
        }
    }

    fn writes_while_serving(&self, _spec: &ServerSpec) -> bool {
        false
    }
}
