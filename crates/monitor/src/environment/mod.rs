//! This host and its settings: facts by group, read from procfs, sysfs, cgroupfs and `/etc`.
//!
//! `cpu`, `memory`, `storage`, `network`, `kernel` and `firmware` read files, `programs` asks programs; `findings`
//! says what speaks against good measurements, and `profiles` compares with the hardware, kernel and BIOS lists of
//! known recipes. Facts that change from minute to minute stand apart in `volatile`. What cannot be read is absent.

mod cpu;
mod facts;
mod findings;
mod firmware;
pub(crate) mod kernel;
mod memory;
mod network;
mod profiles;
mod programs;
mod storage;
pub(crate) mod values;

#[cfg(test)]
mod tests;

pub use facts::{EnvironmentFacts, Facts, Places};
pub use findings::{Finding, Severity, findings};
pub use profiles::{Checked, Match, PROFILES, Profile, profile};

impl EnvironmentFacts {
    /// Reads everything that can be read.
    pub fn read(places: &Places) -> Self {
        let mut all = EnvironmentFacts::default();
        let sys = &places.roots.sys;
        cpu::read(&places.roots, &mut all);
        memory::read(&places.roots, &mut all);
        kernel::read(places, &mut all);
        storage::read(&places.roots, &mut all);
        network::read(&places.roots, &mut all);
        firmware::read(sys, &mut all);
        programs::read(places, &mut all);
        all
    }

    /// Facts that matter and are not known here, and what would tell them.
    pub fn unknown(&self) -> Vec<(String, &'static str)> {
        programs::unknown(self)
    }
}
