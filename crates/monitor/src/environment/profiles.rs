//! Hardware, kernel and BIOS lists of known recipes, against what was read. What the system does not show is unknown.

use super::facts::EnvironmentFacts;

/// A recipe's list.
#[derive(Clone, Copy, Debug)]
pub struct RecipeProfile {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub message: &'static str,
    items: &'static [&'static [ProfileItem]],
}

/// Comparison of an item of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// As the list says.
    Same,
    /// Not as the list says.
    Different,
    /// Cannot be read here.
    Unknown,
}

/// An item of the list and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// `hardware`, `kernel` or `BIOS`.
    pub part: &'static str,
    /// The item, as the recipe calls it.
    pub item: &'static str,
    /// Value of the recipe.
    pub wanted: &'static str,
    /// Value that was found; absent if it cannot be read.
    pub found: Option<String>,
    /// Result of the comparison.
    pub result: Match,
}

#[derive(Clone, Copy, Debug)]
struct ProfileItem {
    part: &'static str,
    name: &'static str,
    wanted: &'static str,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The fact is this text.
    Is(&'static str, &'static str),
    /// The fact has this text in it.
    Has(&'static str, &'static str, &'static str),
    /// Some interface has this driver.
    NetworkDriver,
    /// Physical cores of a socket.
    CoresEach,
    /// Modules, `COUNT x SIZE SPEED` by these facts.
    Modules(&'static str, &'static str),
    Threads,
    /// Frequency driver present.
    SpeedStep,
    HardwarePStates,
    /// No idle state C6 that is on.
    NoC6,
    /// As many memory nodes as sockets.
    NoSubNumaClusters,
    /// Only the firmware knows.
    Firmware,
}

const fn item(part: &'static str, name: &'static str, wanted: &'static str, how: How) -> ProfileItem {
    ProfileItem { part, name, wanted, how }
}

const fn bios(name: &'static str, wanted: &'static str, how: How) -> ProfileItem {
    item("BIOS", name, wanted, how)
}

const XEON: [ProfileItem; 8] = [
    bios("Intel Turbo Boost Technology", "on", How::Is("frequency", "turbo")),
    bios("Energy Efficient Turbo", "on", How::Firmware),
    bios("Workload Configuration", "I/O Sensitive", How::Firmware),
    bios("Package C State", "C0/C1", How::Firmware),
    bios("C1E", "on", How::Firmware),
    bios("Enhanced Intel SpeedStep", "on", How::SpeedStep),
    bios("Hardware P-States", "off", How::HardwarePStates),
    bios("Processor C6", "off", How::NoC6),
];

const ICX: [ProfileItem; 13] = [
    item("hardware", "CPU", "Xeon Gold 6338N", How::Has("cpu", "model", "6338N")),
    item("hardware", "cores per socket", "32", How::CoresEach),
    item("hardware", "memory", "16 x 32 GB, 2666 MT/s", How::Modules("16", "32768 MiB 2666 MT/s")),
    item("kernel", "kernel", "4.19.91-23.4.an8.x86_64", How::Is("kernel", "release")),
    item("kernel", "distribution", "Anolis OS 8.4", How::Has("kernel", "distribution", "Anolis OS 8.4")),
    bios("version", "SE5C620.86B.01.01.0003.2104260124", How::Is("firmware", "bios_version")),
    bios("Hyper-Threading", "on", How::Threads),
    bios("CPU Power and Performance Policy", "Performance", How::Firmware),
    bios("MLC Streamer", "on", How::Firmware),
    bios("MLC Spatial Prefetcher", "on", How::Firmware),
    bios("DCU Data Prefetcher", "on", How::Firmware),
    bios("DCU Instruction Prefetcher", "on", How::Firmware),
    bios("LLC Prefetch", "on", How::Firmware),
];

const SPR: [ProfileItem; 14] = [
    item("hardware", "CPU", "Xeon Platinum 8480+", How::Has("cpu", "model", "8480+")),
    item("hardware", "cores per socket", "56", How::CoresEach),
    item("hardware", "memory", "32 x 32 GB, 4400 MT/s", How::Modules("32", "32768 MiB 4400 MT/s")),
    item("kernel", "kernel", "5.15.0-spr.bkc.pc.2.10.0.x86_64", How::Is("kernel", "release")),
    item("kernel", "distribution", "CentOS Stream 8", How::Has("kernel", "distribution", "CentOS Stream 8")),
    bios("version", "EGSDCRB1.86B.0078.D27.2204181335", How::Is("firmware", "bios_version")),
    bios("Enable LP", "on", How::Threads),
    bios("SNC", "off", How::NoSubNumaClusters),
    bios("Boot performance mode", "Max Performance", How::Firmware),
    bios("Hardware Prefetcher", "on", How::Firmware),
    bios("Adjacent Cache Prefetch", "on", How::Firmware),
    bios("DCU Streamer Prefetcher", "on", How::Firmware),
    bios("DCU IP Prefetcher", "on", How::Firmware),
    bios("LLC Prefetch", "on", How::Firmware),
];

const CLOUD: [ProfileItem; 1] = [item("hardware", "network driver", "ena", How::NetworkDriver)];

const M6I_32: [ProfileItem; 3] = [
    item("hardware", "instance type", "m6i.32xlarge", How::Is("virtualisation", "instance_type")),
    item("hardware", "CPUs", "128", How::Is("cpu", "cpus")),
    item("hardware", "memory nodes", "2", How::Is("numa", "numa_nodes")),
];

const M6I_16: [ProfileItem; 3] = [
    item("hardware", "instance type", "m6i.16xlarge", How::Is("virtualisation", "instance_type")),
    item("hardware", "CPUs", "64", How::Is("cpu", "cpus")),
    item("hardware", "memory nodes", "1", How::Is("numa", "numa_nodes")),
];

/// Every list that is known.
pub const PROFILES: [RecipeProfile; 4] = [
    RecipeProfile {
        name: "wsf/bkm-icx",
        message: "MongoDB with YCSB on two Ice Lake sockets",
        items: &[&ICX, &XEON],
    },
    RecipeProfile {
        name: "wsf/bkm-spr",
        message: "MongoDB with YCSB on two Sapphire Rapids sockets",
        items: &[&SPR, &XEON],
    },
    RecipeProfile {
        name: "wsf/bkm-m6i.32xlarge",
        message: "MongoDB with YCSB on AWS m6i.32xlarge",
        items: &[&M6I_32, &CLOUD],
    },
    RecipeProfile {
        name: "wsf/bkm-m6i.16xlarge",
        message: "MongoDB with YCSB on AWS m6i.16xlarge",
        items: &[&M6I_16, &CLOUD],
    },
];

/// The list of that name; `wsf/` may be left out.
pub fn find_profile(name: &str) -> Option<&'static RecipeProfile> {
    PROFILES.iter().find(|p| p.name == name || p.name.strip_prefix("wsf/") == Some(name))
}

impl RecipeProfile {
    /// Every item against what was read.
    pub fn check(&self, all: &EnvironmentFacts) -> Vec<Checked> {
        let checked = self.items.iter().copied().flatten().map(|item| {
            let found = item.found(all);
            let result = match &found {
                None => Match::Unknown,
                Some((_, true)) => Match::Same,
                Some((_, false)) => Match::Different,
            };
            let found = found.map(|(found, _)| found);
            Checked { part: item.part, item: item.name, wanted: item.wanted, found, result }
        });
        checked.collect()
    }
}

impl ProfileItem {
    /// Returns what was found, and whether it is as wanted; none if it cannot be read.
    fn found(&self, all: &EnvironmentFacts) -> Option<(String, bool)> {
        // A guest sees what its hypervisor makes up, not the firmware of the machine.
        if self.part == "BIOS" && all.get("virtualisation", "hypervisor") == Some("yes") {
            return None;
        }
        let is = |found: String| Some((found.clone(), found == self.wanted));
        let switch = |on: bool| is(if on { "on" } else { "off" }.to_owned());
        let count = |group: &str, name: &str| all.get(group, name)?.parse::<usize>().ok();
        match self.how {
            How::Is(group, name) => is(all.get(group, name)?.to_owned()),
            How::Has(group, name, text) => {
                let found = all.get(group, name)?;
                Some((found.to_owned(), found.contains(text)))
            }
            How::NetworkDriver => {
                let network = all.facts.get("network")?;
                let drivers = network.iter().filter(|(name, _)| name.ends_with(".driver"));
                let drivers: Vec<&str> = drivers.map(|(_, value)| value.as_str()).collect();
                let found = !drivers.is_empty();
                found.then(|| (drivers.join(" "), drivers.contains(&self.wanted)))
            }
            How::CoresEach => is((count("cpu", "cores")? / count("cpu", "packages")?.max(1)).to_string()),
            How::Modules(number, kind) => {
                let (found, modules) = (all.get("memory", "module_count")?, all.get("memory", "modules")?);
                Some((format!("{found} x {modules}"), found == number && modules == kind))
            }
            How::Threads => switch(count("cpu", "threads_per_core")? > 1),
            // A guest sees no scaling although its host may scale.
            How::SpeedStep => all.get("frequency", "driver").and_then(|_| switch(true)),
            How::HardwarePStates => {
                all.get("frequency", "driver")?;
                let flags = all.get("cpu", "flags")?;
                switch(flags.split(' ').any(|flag| flag == "hwp"))
            }
            How::NoC6 => {
                let mut states = all.get("idle", "states")?.split(", ");
                switch(states.any(|state| state.starts_with("C6") && !state.ends_with(" off")))
            }
            How::NoSubNumaClusters => switch(count("numa", "numa_nodes")? > count("cpu", "packages")?),
            How::Firmware => None,
        }
    }
}
