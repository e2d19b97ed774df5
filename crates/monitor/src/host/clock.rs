//! Clock rates, thermal throttling and memory of other nodes, from `/sys/devices/system`.

use crate::roots::{Roots, number, pairs};
use crate::sample::Sample;
use dyno_types::stats::mean;
use std::path::PathBuf;

/// Cores that are asked: a file each costs microseconds, and hosts have hundreds of cores.
const ASKED: usize = 16;

/// Files of the figures on this host; looked up once.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockFiles {
    frequencies: Vec<PathBuf>,
    throttles: Vec<PathBuf>,
    nominal_hz: Option<f64>,
    nodes: Vec<PathBuf>,
}

impl ClockFiles {
    pub fn find(roots: &Roots) -> Self {
        let system = roots.sys.join("devices/system");
        let numbered = |folder: &str, start: &str| {
            let number =
                |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(start)?.parse::<u32>().ok();
            let entries = std::fs::read_dir(system.join(folder)).into_iter().flatten().flatten();
            let mut found: Vec<(u32, PathBuf)> =
                entries.filter_map(|entry| Some((number(&entry.path())?, entry.path()))).collect();
            found.sort_unstable();
            found.into_iter().map(|(_, path)| path).collect::<Vec<_>>()
        };
        let cores = numbered("cpu", "cpu");
        let step = cores.len().div_ceil(ASKED).max(1);
        let asked = |file: &str| -> Vec<PathBuf> {
            cores.iter().step_by(step).map(|core| core.join(file)).filter(|path| path.exists()).collect()
        };
        let nominal = cores.first().and_then(|core| {
            let khz = number(&core.join("cpufreq/base_frequency")).map(|khz| khz * 1e3);
            khz.or_else(|| number(&core.join("acpi_cppc/nominal_freq")).map(|mhz| mhz * 1e6))
        });
        let nodes = numbered("node", "node");
        ClockFiles {
            frequencies: asked("cpufreq/scaling_cur_freq"),
            throttles: asked("thermal_throttle/core_throttle_count"),
            nominal_hz: nominal.filter(|hz| *hz > 0.0),
            // One node has no others.
            nodes: if nodes.len() > 1 { nodes } else { Vec::new() },
        }
    }

    pub fn sample(&self, into: &mut Sample) {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| number(path)).collect::<Option<Vec<f64>>>();
        if let Some(khz) = all(&self.frequencies).and_then(mean) {
            into.add_gauge("cpu.frequency_hz", khz * 1e3);
            if let Some(nominal) = self.nominal_hz {
                into.add_gauge("cpu.nominal_hz", nominal);
            }
        }
        if let Some(counts) = all(&self.throttles).filter(|all| !all.is_empty()) {
            into.add_counter("cpu.thermal_throttles", counts.iter().sum());
        }
        let texts = self.nodes.iter().map(|node| std::fs::read_to_string(node.join("numastat")).ok());
        if let Some(texts) = texts.collect::<Option<Vec<String>>>().filter(|all| !all.is_empty()) {
            for (theirs, ours) in [("local_node", "numa.local_pages"), ("other_node", "numa.other_pages")] {
                let of =
                    |text: &String| pairs(text).find(|(name, _)| *name == theirs).map(|(_, count)| count);
                if let Some(counts) = texts.iter().map(of).collect::<Option<Vec<f64>>>() {
                    into.add_counter(ours, counts.iter().sum());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn two_nodes_with_clocks() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join("devices/system").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (core, khz) in [(0, 2_000_000), (1, 1_000_000), (10, 3_000_000)] {
            put(&format!("cpu/cpu{core}/cpufreq/scaling_cur_freq"), &format!("{khz}\n"));
            put(&format!("cpu/cpu{core}/thermal_throttle/core_throttle_count"), "2\n");
        }
        put("cpu/cpu0/cpufreq/base_frequency", "2500000\n");
        put("cpu/cpufreq/boost", "1\n");
        for node in 0..2 {
            put(&format!("node/node{node}/numastat"), "numa_hit 100\nlocal_node 90\nother_node 10\n");
        }
        let roots = Roots { sys: folder.path().into(), ..Roots::default() };
        let mut sample = Sample::default();
        ClockFiles::find(&roots).sample(&mut sample);
        for (name, value) in [
            ("cpu.frequency_hz", 2e9),
            ("cpu.nominal_hz", 2.5e9),
            ("cpu.thermal_throttles", 6.0),
            ("numa.local_pages", 180.0),
            ("numa.other_pages", 20.0),
        ] {
            assert_eq!(sample.get(name), Some(value), "{name}");
        }
        fs::remove_dir_all(folder.path().join("devices/system/node/node1")).unwrap();
        let mut sample = Sample::default();
        ClockFiles::find(&roots).sample(&mut sample);
        assert_eq!(sample.get("numa.local_pages"), None, "one node has no others");
    }
}
