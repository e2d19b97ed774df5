//! FerretDB 1.x with its SQLite backend.

use super::mongod;
use super::rules::ServerRules;
use crate::server::ServerSpec;
use crate::server::invalid::InvalidSetting;

/// Memory that a process takes, bytes.
const OWN: u64 = 48 << 20;

pub(super) struct FerretDb;

impl ServerRules for FerretDb {
    fn name(&self) -> &'static str {
        "ferretdb"
    }

    fn program(&self) -> &'static str {
        "ferretdb"
    }

    fn remedy(&self) -> &'static str {
        "releases 1.x are at https://github.com/FerretDB/FerretDB/releases"
    }

    fn image(&self) -> &'static str {
        "ghcr.io/ferretdb/ferretdb:1.24.2"
    }

    fn port(&self) -> u16 {
        mongod::PORT
    }

    fn memory_needed(&self, _spec: &ServerSpec) -> u64 {
        OWN
    }

    fn check(&self, spec: &ServerSpec) -> Result<(), InvalidSetting> {
        if spec.cache.is_some() || spec.journal.is_some() {
            return Err(InvalidSetting::new("cache, journal", "FerretDB has no such settings"));
        }
        Ok(())
    }

    fn writes_while_serving(&self, _spec: &ServerSpec) -> bool {
        true
    }

    fn writes_at_end(&self) -> bool {
        true
    }

    fn fixed_clock(&self) -> Option<&'static str> {
        Some("ferretdb is a Go program, which asks the kernel for the time and not the C library")
    }
}
