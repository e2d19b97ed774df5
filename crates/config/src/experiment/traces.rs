//! Commands that look on for a part of a phase, typed.

use crate::values::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TracedPhase {
    /// Records are put in.
    Load,
    /// Before the measurement.
    Warmup,
    /// The measured phase.
    #[default]
    Measure,
}

impl TracedPhase {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            TracedPhase::Load => "load",
            TracedPhase::Warmup => "warmup",
            TracedPhase::Measure => "measure",
        }
    }
}

/// A command that runs for a window of a phase, such as `perf stat -a`: ended by SIGINT, five seconds later by SIGKILL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Program and arguments (nothing is put through a shell).
    pub command: Vec<String>,
    /// In which phase. Default: measure.
    #[serde(default)]
    pub phase: TracedPhase,
    /// Begin, from the begin of the phase. Default: 0s. Unit: duration.
    #[serde(default = "zero")]
    pub from: Span,
    /// Length. Default: until the phase ends, which ends it in any case. Unit: duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Span>,
}

fn zero() -> Span {
    Span(0)
}
