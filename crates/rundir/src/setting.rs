//! A setting of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting and where its value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name of the setting.
    pub key: String,
    /// Value, secrets masked.
    pub value: String,
    /// `default`, `option --users`, `file workload.properties:12`, ...
    pub source: String,
}
