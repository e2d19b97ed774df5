//! Loaded data that outlive their run: the record that lies beside them, and what a volume is made of.

use dyno_config::server::ServerSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that shapes loaded data, by name.
pub type VolumeKey = BTreeMap<String, String>;

/// The record of loaded data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// Tells one load from the next.
    pub id: String,
    /// Key of the data.
    pub key: VolumeKey,
    /// Keys or documents that the servers had after the load.
    pub count: u64,
    /// When the load ended, RFC 3339.
    pub loaded: String,
    /// Duration of the load, seconds.
    pub seconds: f64,
    /// The run that has loaded them: its directory.
    pub run: String,
    /// Measured phases that have worked on these very data since, where runs do not get a copy.
    #[serde(default)]
    pub used: u32,
}

/// A volume, as a run finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundVolume {
    /// The record, if there is one.
    pub record: Option<Loaded>,
    /// True if anything is there.
    pub there: bool,
}

/// Returns whether a server writes to its disk only when it is told to, or at its end.
pub fn is_still(server: &ServerSpec) -> bool {
    !server.kind.server_rules().writes_while_serving(server)
}

/// A part of a volume: the data of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumePart {
    /// The folder or the claim.
    pub name: String,
    /// Size that the claim asks for; blank if there is none.
    pub asked: String,
    /// `Bound`, `Pending`; of folders `Present`.
    pub status: String,
    /// Capacity, bytes.
    pub size: Option<u64>,
    /// Used bytes, where that is known.
    pub used: Option<u64>,
}
