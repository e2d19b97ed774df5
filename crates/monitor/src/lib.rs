//! Readings of this host, its processes and the database while the load runs.
//!
//! A [`Source`] is asked again and again and says what it sees as named counters and gauges; [`Monitor`] asks all of them,
//! tick by tick, on threads of its own: nothing here touches the load path. `host`, `process` and `cgroup` read files
//! below /proc and /sys, `queues` asks the kernel what holds packets back, `environment` says what the host is,
//! `prometheus` reads exporters and is one.
//! What a system does not offer is absent, never zero.

mod cgroup;
mod cpu;
pub mod environment;
mod host;
mod monitor;
mod neighbours;
mod process;
pub mod prometheus;
mod queues;
mod roots;
mod sample;
pub mod topology;

pub use cgroup::Cgroup;
pub use cpu::{CpuTimes, HostCpu, ProcessCpu, host_cores, peak_resident_bytes};
pub use host::{CLOCK_SOURCE, HostDescription, HostSource, boot_id, read_host_facts};
pub use monitor::{Cost, Marker, Monitor, OWN, SampleSink, unix_ns};
pub use neighbours::Neighbours;
pub use process::{Pid, ProcessSource};
pub use queues::Queues;
pub use roots::{Roots, read};
pub use sample::{QueryError, Reading, Sample, SampleError, SeriesKind, Source};
