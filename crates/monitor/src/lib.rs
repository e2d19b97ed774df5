//! What this host and this process did while the load ran.
//!
//! Files under /proc and /sys are read on the control thread; nothing here touches the load path. What a system does
//! not offer is absent, never zero.

mod cpu;
mod host;
pub mod topology;

pub use cpu::{CpuTimes, HostCpu, ProcessCpu, peak_resident_bytes};
pub use host::{Host, host};
