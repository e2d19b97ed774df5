//! Fault of an experiment file. The doc comments are the descriptions of the published JSON Schema.

use crate::values::{Bytes, Shift, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The process is killed (SIGKILL) and stays away.
    Kill,
    /// The process is stopped (SIGSTOP) for a time and then goes on.
    Pause,
    /// The server's process is killed, stays away for a time and is started again on its data.
    Restart,
    /// The processor time of the server's control group is limited to `cpus`.
    CpuPressure,
    /// The memory of the server's control group is limited to `memory`.
    MemoryPressure,
    /// Reads and writes of the data's devices are limited to `bytes_per_s` each.
    IoLimit,
    /// The filesystem image that dyno made for the data is filled.
    DiskFull,
    /// Traffic to the server comes later by `delay`.
    Delay,
    /// Traffic to the server, and traffic that comes back, is limited to `bytes_per_s` each.
    Bandwidth,
    /// Nothing comes through between workers and server; connections stay.
    Partition,
    /// Of the packets to and from the server's ports, `percent` are dropped at random by nftables.
    Loss,
    /// The clock that the process sees is set ahead or back by `step` (libfaketime); the machine's own stays.
    ClockStep,
}

/// The least `bytes_per_s` that the kernel's buckets hold well: below it they are more than a tenth of a second of traffic.
pub const LEAST_SHAPED_BYTES_PER_S: u64 = 1_600_000;

impl FaultKind {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Kill => "kill",
            FaultKind::Pause => "pause",
            FaultKind::Restart => "restart",
            FaultKind::CpuPressure => "cpu_pressure",
            FaultKind::MemoryPressure => "memory_pressure",
            FaultKind::IoLimit => "io_limit",
            FaultKind::DiskFull => "disk_full",
            FaultKind::Delay => "delay",
            FaultKind::Bandwidth => "bandwidth",
            FaultKind::Partition => "partition",
            FaultKind::Loss => "loss",
            FaultKind::ClockStep => "clock_step",
        }
    }

    /// Returns whether it is of the way between workers and server.
    pub fn is_of_link(self) -> bool {
        matches!(self, FaultKind::Delay | FaultKind::Bandwidth | FaultKind::Partition | FaultKind::Loss)
    }

    /// Returns whether packets have to wait for it.
    pub fn shapes_packets(self) -> bool {
        matches!(self, FaultKind::Delay | FaultKind::Bandwidth)
    }
}

/// Whom a fault is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// All processes of the server.
    #[default]
    Server,
    /// One of them, from 1.
    One(u32),
    /// One of the workers, from 1.
    Worker(u32),
}

impl On {
    /// Returns whether two of them have a process in common.
    pub fn shares_process(self, other: On) -> bool {
        match (self, other) {
            (On::Worker(a), On::Worker(b)) | (On::One(a), On::One(b)) => a == b,
            (On::Worker(_), _) | (_, On::Worker(_)) => false,
            _ => true,
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            On::Server => f.write_str("server"),
            On::One(number) => write!(f, "server {number}"),
            On::Worker(number) => write!(f, "worker {number}"),
        }
    }
}

impl Serialize for On {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for On {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error, Unexpected};
        let text = String::deserialize(deserializer)?;
        let number = |rest: &str| rest.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let found = match text.trim() {
            "server" => Some(On::Server),
            other => match (other.strip_prefix("server "), other.strip_prefix("worker ")) {
                (Some(rest), _) => number(rest).map(On::One),
                (_, Some(rest)) => number(rest).map(On::Worker),
                _ => None,
            },
        };
        let expected = &"server, server N or worker N, with N from 1";
        found.ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), expected))
    }
}

impl JsonSchema for On {
    fn schema_name() -> Cow<'static, str> {
        "On".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(server|server [1-9][0-9]*|worker [1-9][0-9]*)$",
            "description": "Expected server (all its processes), server N or worker N, with N from 1.",
        })
    }
}

/// When a fault begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment {
    /// So long after the begin of the measured phase.
    After(Span),
    /// At a time that is drawn.
    Random,
}

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Moment::After(span) => span.serialize(serializer),
            Moment::Random => serializer.serialize_str("random"),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MomentVisitor;
        impl serde::de::Visitor<'_> for MomentVisitor {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 500ms or 30s, or random")
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Moment, E> {
                self.visit_str(&seconds.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Moment, E> {
                self.visit_str(&seconds.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Moment, E> {
                let read = || dyno_types::units::parse_duration_ns(text, 1_000_000_000).ok();
                match text.trim() {
                    "random" => Ok(Moment::Random),
                    _ => read()
                        .map(|ns| Moment::After(Span(ns)))
                        .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(MomentVisitor)
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "description": "Expected a duration such as 500ms or 30s, or random.",
            "x-unit": "duration; a bare number counts seconds",
        })
    }
}

/// Something that is done to the server, to a worker or to the way between them in the measured phase, and undone again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Whom it is on: `server` (all its processes), `server N` or `worker N`, from 1. Default: server.
    #[serde(default)]
    pub on: On,
    /// When it begins, from the begin of the measured phase, or `random`. Unit: duration.
    pub at: Moment,
    /// Of `random`: begin of the window it is drawn in. Default: 0s. Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// Of `random`: end of that window, by which the fault is over. Default: the end of the phase. Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
    /// Length. Needed by all but `kill`; of `restart` the time until the start. Default: of `restart` 0s. Unit: duration.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub length: Option<Span>,
    /// Number of times that the fault comes. Default: 1.
    #[serde(default = "once")]
    pub times: u32,
    /// From one begin to the next, where it comes more often and not at random. Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// Of `cpu_pressure`: processor time that is left to each process. Unit: cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Of `memory_pressure`: memory that is left to each process. Unit: bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Of `io_limit` and `bandwidth`: what is left in each direction. Unit: bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<Bytes>,
    /// Of `delay`: by how much later what goes to the server comes. Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Of `loss`: share of the packets that is dropped in each direction, 0.001 to 100. Unit: percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Of `clock_step`: by how much the clock is set ahead, or back (`-1h`). Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Shift>,
}

fn once() -> u32 {
    1
}
