//! mongod.

use super::rules::{Election, ServerRules};
use crate::server::invalid::InvalidSetting;
use crate::server::{ServerSpec, Topology};
use dyno_types::mongod::MongodVersion;
use dyno_types::mongod::versions::{
    JOURNAL_ALWAYS_ON, MEMBERS_NEED_JOURNAL, ZSTD, engine_absence, key_absence,
};

/// The port that clients of MongoDB expect.
pub const PORT: u16 = 27_017;

/// Least cache that mongod's own settings take, bytes.
const SMALL: u64 = 256 << 20;

/// Memory that mongod takes beside its cache, bytes: 75 MiB when it starts, and its threads and buffers.
pub const OWN: u64 = 128 << 20;

/// Memory that a mongod whose engine has a cache needs where no size is given, bytes: WiredTiger takes 256 MiB or more.
const UNSIZED: u64 = 384 << 20;

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
        let message = match spec.engine.as_deref() {
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
        Err(InvalidSetting::new("cache", message))
    }

    fn has_engines(&self) -> bool {
        true
    }

    fn journals(&self, spec: &ServerSpec, version: &str) -> Option<bool> {
        let always = MongodVersion::parse(version).is_some_and(MongodVersion::always_journals);
        Some(spec.journal != Some(false) || always)
    }

    fn absences(&self, spec: &ServerSpec, version: &str) -> Vec<InvalidSetting> {
        let Some(known) = MongodVersion::parse(version) else { return Vec::new() };
        let mut all = Vec::new();
        let mut add = |key: &str, why: String| {
            all.push(InvalidSetting::new(key, format!("{why}; this is {version}")));
        };
        if let Some(engine) = &spec.engine
            && let Some(why) = engine_absence(engine, known)
        {
            add("engine", format!("{engine} {why}"));
        }
        let is_member = matches!(spec.topology, Topology::ReplicaSet | Topology::Sharded);
        if spec.journal == Some(false) && known.always_journals() {
            add("journal", format!("is mandatory from mongod {JOURNAL_ALWAYS_ON} on"));
        } else if spec.journal == Some(false)
            && is_member
            && is_wired_tiger(spec)
            && !known.allows_members_without_journal()
        {
            add(
                "journal",
                format!("members of a replica set need one from mongod {MEMBERS_NEED_JOURNAL} on"),
            );
        }
        for (key, value) in
            [("compressor", &spec.compressor), ("journal_compressor", &spec.journal_compressor)]
        {
            if value.as_deref() == Some("zstd") && known < ZSTD {
                add(key, format!("zstd came with mongod {ZSTD}"));
            }
        }
        for key in spec.options.keys() {
            if let Some(why) = key_absence(key, known) {
                add(&format!("options.{key}"), why);
            }
        }
        all
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

#[cfg(test)]
mod tests {
    use super::*;

    fn absences(spec: &str, version: &str) -> Vec<String> {
        let spec: ServerSpec = serde_json::from_str(&format!(r#"{{"kind": "mongod", {spec}}}"#)).unwrap();
        Mongod.absences(&spec, version).into_iter().map(|absence| absence.to_string()).collect()
    }

    #[test]
    fn a_version_says_what_it_does_not_have() {
        let mmapv1 = r#""engine": "mmapv1", "journal": false"#;
        assert!(absences(mmapv1, "db version v3.6.8").is_empty());
        assert_eq!(
            absences(mmapv1, "db version v8.0.4"),
            [
                "engine: mmapv1 was removed in mongod 4.2; this is db version v8.0.4",
                "journal: is mandatory from mongod 6.1 on; this is db version v8.0.4",
            ]
        );
        assert!(absences(mmapv1, "unknown").is_empty(), "nothing is said of a version that is not known");
        assert!(absences(r#""journal": false"#, "6.0.14").is_empty());
        let member = r#""journal": false, "topology": "replica_set""#;
        assert!(absences(member, "3.6.8").is_empty());
        assert!(absences(member, "4.4.29")[0].starts_with("journal: members of a replica set need one"));
        let zstd = r#""compressor": "zstd", "options": {"net.serviceExecutor": "adaptive"}"#;
        assert_eq!(absences(zstd, "v4.0.1"), ["compressor: zstd came with mongod 4.2; this is v4.0.1"]);
        assert_eq!(
            absences(zstd, "v7.0.1"),
            ["options.net.serviceExecutor: was removed in mongod 5.0; this is v7.0.1"]
        );
    }
}
