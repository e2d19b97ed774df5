//! Where a process runs and how much it may use.

use crate::server::invalid::InvalidSetting;
use crate::values::{Bytes, Cores};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Spread of processes over cores and memory nodes; a name or the number that stands for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// 0: any core, memory interleaved over all nodes.
    Interleave,
    /// 1: cores and memory of node (port modulo number of nodes).
    BindByPort,
    /// 2: all on `node`, or on `cores` with memory of `node`.
    Node,
    /// 3: `cores_each` physical cores for each process, one hardware thread of each, memory local.
    CoresEach,
    /// 4: the same with the cores' other hardware threads.
    CoresEachSmt,
    /// 5: no policy.
    #[default]
    None,
}

/// In the order of their numbers.
const POLICIES: [(&str, Policy); 6] = [
    ("interleave", Policy::Interleave),
    ("bind_by_port", Policy::BindByPort),
    ("node", Policy::Node),
    ("cores_each", Policy::CoresEach),
    ("cores_each_smt", Policy::CoresEachSmt),
    ("none", Policy::None),
];

const EXPECTED: &str =
    "interleave (0), bind_by_port (1), node (2), cores_each (3), cores_each_smt (4) or none (5)";

impl Policy {
    /// Name.
    pub fn name(self) -> &'static str {
        POLICIES.iter().find(|(_, policy)| *policy == self).map_or("none", |(name, _)| name)
    }
}

struct PolicyWord;

impl Visitor<'_> for PolicyWord {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Policy, E> {
        let found = usize::try_from(n).ok().and_then(|n| POLICIES.get(n));
        found.map(|(_, policy)| *policy).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(n), &self))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Policy, E> {
        u64::try_from(n)
            .map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            .and_then(|n| self.visit_u64(n))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Policy, E> {
        match text.parse::<u64>() {
            Ok(n) => self.visit_u64(n),
            Err(_) => POLICIES
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, policy)| *policy)
                .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    // YAML's null is written as one could write `none`.
    fn visit_unit<E: Error>(self) -> Result<Policy, E> {
        Ok(Policy::None)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyWord)
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for Policy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut words: Vec<serde_json::Value> = POLICIES.iter().map(|(name, _)| (*name).into()).collect();
        words.extend((0..POLICIES.len()).map(serde_json::Value::from));
        json_schema!({ "enum": words, "description": format!("Expected {EXPECTED}.") })
    }
}

/// Which cores and memory nodes a process gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Policy by which processes are spread. Default: none.
    #[serde(default)]
    pub policy: Policy,
    /// The memory node of policy `node` (default: 0), or the only one whose cores `cores_each` deals out (default: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// The cores: with policy `none` or `node` shared by all processes, with `cores_each` those that are dealt out.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// Physical cores of each process with the policies `cores_each` and `cores_each_smt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_each: Option<usize>,
    /// Options of numactl, such as `--cpunodebind=1 --membind=1`, instead of a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numactl: Option<String>,
}

impl Placement {
    /// Returns whether nothing is asked for.
    pub fn is_nothing(&self) -> bool {
        self.policy == Policy::None && self.cores.is_none() && self.numactl.is_none()
    }

    /// Refuses an invalid configuration, by its key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let each = matches!(self.policy, Policy::CoresEach | Policy::CoresEachSmt);
        match (each, self.cores_each) {
            (true, None) => {
                return Err(InvalidSetting::new(
                    "cores_each",
                    format!("policy {} needs it", self.policy.name()),
                ));
            }
            (_, Some(0)) => return Err(InvalidSetting::new("cores_each", "expected a whole number from 1")),
            (false, Some(_)) => {
                return Err(InvalidSetting::new(
                    "cores_each",
                    format!("policy {} has no use for it", self.policy.name()),
                ));
            }
            _ => {}
        }
        if self.node.is_some() && !each && self.policy != Policy::Node {
            return Err(InvalidSetting::new(
                "node",
                format!("policy {} has no use for it", self.policy.name()),
            ));
        }
        if let Some(cores) = &self.cores {
            if matches!(self.policy, Policy::Interleave | Policy::BindByPort) {
                return Err(InvalidSetting::new(
                    "cores",
                    format!("policy {} has no use for them", self.policy.name()),
                ));
            }
            let mut seen = cores.0.clone();
            seen.sort_unstable();
            if seen.is_empty() {
                return Err(InvalidSetting::new("cores", "the list is empty"));
            }
            if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(InvalidSetting::new("cores", format!("{} is listed twice", twice[0])));
            }
        }
        if self.numactl.is_some() && (self.policy != Policy::None || self.cores.is_some()) {
            return Err(InvalidSetting::new(
                "numactl",
                "stands instead of policy and cores, not beside them",
            ));
        }
        Ok(())
    }
}

/// Limits of a process, by a cgroup in which it is started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory with page cache, bytes. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Swap beside that memory, bytes; only with `memory`. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Bytes>,
    /// Processor time, cores (0.5 is half of one). Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Reads of the data's devices, bytes per second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_s: Option<Bytes>,
    /// Writes to the data's devices, bytes per second; cgroup v1 holds this for direct I/O only. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_s: Option<Bytes>,
    /// Reads of the data's devices, operations per second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<u64>,
    /// Writes to the data's devices, operations per second; cgroup v1 holds this for direct I/O only. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<u64>,
}

impl Limits {
    /// Returns whether there is no limit at all.
    pub fn is_nothing(&self) -> bool {
        *self == Limits::default()
    }

    /// Returns whether input or output is limited.
    pub fn has_io(&self) -> bool {
        self.read_bytes_per_s.is_some()
            || self.write_bytes_per_s.is_some()
            || self.read_iops.is_some()
            || self.write_iops.is_some()
    }

    /// Refuses an invalid configuration, by its key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if self.swap.is_some() && self.memory.is_none() {
            return Err(InvalidSetting::new("swap", "only beside memory"));
        }
        if let Some(cpus) = self.cpus
            && !(0.01..=65_536.0).contains(&cpus)
        {
            return Err(InvalidSetting::new("cpus", format!("{cpus}: expected a number of cores from 0.01")));
        }
        let rates = [
            ("memory", self.memory.as_ref().map(|b| b.0)),
            ("read_bytes_per_s", self.read_bytes_per_s.as_ref().map(|b| b.0)),
            ("write_bytes_per_s", self.write_bytes_per_s.as_ref().map(|b| b.0)),
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
        ];
        match rates.iter().find(|(_, rate)| *rate == Some(0)) {
            Some((key, _)) => {
                Err(InvalidSetting::new(key, "0 would stop everything; leave it out for no limit"))
            }
            None => Ok(()),
        }
    }
}
