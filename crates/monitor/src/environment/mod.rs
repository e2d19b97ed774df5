//! This host and its settings: facts by group, read from procfs, sysfs, cgroupfs and `/etc`.
//!
//! `cpu`, `memory`, `storage`, `network`, `kernel`, `firmware` and `neighbours` read files, `programs` asks programs; `findings`
//! says what speaks against good measurements, and `profiles` compares with the hardware, kernel and BIOS lists of
//! known recipes. Facts that change from minute to minute stand apart in `volatile`. What cannot be read is absent.

mod cpu;
mod facts;
mod findings;
mod firmware;
mod kernel;
mod memory;
mod neighbours;
mod network;
mod profiles;
mod programs;
mod storage;
pub(crate) mod values;

#[cfg(test)]
mod tests;

use std::thread;

pub use facts::{EnvironmentFacts, HostFacts, Places};
pub use findings::{Finding, Severity, list_findings};
pub use profiles::{Checked, Match, PROFILES, RecipeProfile, find_profile};

impl EnvironmentFacts {
    /// Reads everything that can be read.
    pub fn read(places: &Places) -> Self {
        Self::gather(places, true)
    }

    /// Reads everything but the other processes, whose number nothing bounds: enough to tell what has changed.
    pub fn settings(places: &Places) -> Self {
        Self::gather(places, false)
    }

    /// Two threads read these hundreds of files of the kernel, since a run waits for them at both of its ends.
    fn gather(places: &Places, others: bool) -> Self {
        let roots = &places.roots;
        let mut all = EnvironmentFacts::default();
        let devices = || {
            let mut devices = EnvironmentFacts::default();
            storage::read(roots, &mut devices);
            network::read(roots, &mut devices);
            firmware::read(&roots.sys, &mut devices);
            programs::read(places, &mut devices);
            if others {
                neighbours::read(roots, &mut devices);
            }
            devices
        };
        let devices = thread::scope(|scope| {
            // A host that makes no more threads has facts all the same.
            let other = thread::Builder::new().spawn_scoped(scope, devices);
            cpu::read(places, &mut all);
            memory::read(roots, &mut all);
            kernel::read(places, &mut all);
            other.map_or_else(|_| Ok(devices()), thread::ScopedJoinHandle::join)
        });
        all.extend(devices.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    }

    /// Facts that matter and are not known here, and what would tell them.
    pub fn unknown(&self) -> Vec<(String, &'static str)> {
        programs::unknown(self)
    }
}
