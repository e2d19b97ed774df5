//! Preparation of a server before it starts, so that faults can be done to it later.

use dyno_config::experiment::fault::{Fault, FaultKind};
use dyno_config::server::placement::Limits;
use dyno_config::values::Bytes;
use serde::{Deserialize, Serialize};

/// Faults that a server is prepared for before it starts, so that faults can be done to it later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultPreparation {
    /// Limits that limit nothing: with them a process gets a control group whose limits can be lowered.
    pub limits: Limits,
    /// Packets will be dropped.
    pub loss: bool,
    /// The way will be made narrow, by the kernel.
    pub narrow: bool,
    /// It will be made slow, by the kernel.
    pub slow: bool,
    /// The clock will be stepped.
    pub clock: bool,
}

impl FaultPreparation {
    /// For these faults, of which some kinds are done by proxies.
    pub fn for_faults(faults: &[Fault], proxied: &[FaultKind]) -> FaultPreparation {
        let has = |kind: FaultKind| !proxied.contains(&kind) && faults.iter().any(|fault| fault.kind == kind);
        let bytes = |kind: FaultKind| Some(Bytes(1 << 42)).filter(|_| has(kind));
        let limits = Limits {
            cpus: Some(1024.0).filter(|_| has(FaultKind::CpuPressure)),
            memory: bytes(FaultKind::MemoryPressure),
            read_bytes_per_s: bytes(FaultKind::IoLimit),
            write_bytes_per_s: bytes(FaultKind::IoLimit),
            ..Limits::default()
        };
        FaultPreparation {
            limits,
            loss: has(FaultKind::Loss) || has(FaultKind::Partition),
            narrow: has(FaultKind::Bandwidth),
            slow: has(FaultKind::Delay),
            clock: has(FaultKind::ClockStep),
        }
    }
}
