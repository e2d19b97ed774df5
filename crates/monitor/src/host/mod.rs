//! This host: what it is (`facts`), and what it does while the load runs.

mod clock;
mod cpu;
mod disk;
mod facts;
mod memory;
mod network;
mod pressure;

pub use facts::{CLOCK_SOURCE, HostDescription, boot_id, read_host_facts};
pub(crate) use pressure::pressure;

use crate::roots::Roots;
use crate::sample::{Sample, SampleError, Source};

/// CPU, memory, disks, network and pressure of the host.
#[derive(Clone, Debug)]
pub struct HostSource {
    roots: Roots,
    clock: clock::ClockFiles,
}

impl HostSource {
    /// Reads below `roots`.
    pub fn new(roots: Roots) -> Self {
        HostSource { clock: clock::ClockFiles::find(&roots), roots }
    }
}

impl Source for HostSource {
    fn name(&self) -> &str {
        "host"
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        let stat =
            self.roots.proc("stat").ok_or_else(|| SampleError::Unreadable(self.roots.proc.join("stat")))?;
        cpu::cpu(&stat, into);
        if let Some(load) = self.roots.proc("loadavg").and_then(|l| l.split(' ').next()?.parse().ok()) {
            into.add_gauge("load_1m", load);
        }
        self.clock.sample(into);
        memory::memory(&self.roots, into);
        disk::disks(&self.roots, into);
        network::network(&self.roots, into);
        for what in ["cpu", "memory", "io"] {
            if let Some(text) = self.roots.proc(&format!("pressure/{what}")) {
                pressure::pressure(&format!("pressure.{what}"), &text, into);
            }
        }
        Ok(())
    }
}
