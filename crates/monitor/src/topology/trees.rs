//! Trees of files like those of real machines, for tests.

use super::list;
use std::fs;
use std::io;
use std::path::Path;

/// A machine to be written as a tree.
#[derive(Clone, Copy, Debug)]
pub struct MachineTree {
    /// Sockets.
    pub packages: usize,
    /// Memory nodes of each socket.
    pub nodes_each: usize,
    /// Physical cores of each node.
    pub cores_each: usize,
    /// Hardware threads of each core.
    pub threads: usize,
    /// Physical cores that share a last-level cache.
    pub cores_per_cache: usize,
    /// True if the kernel numbers the threads of a core one after the other (`0-1`), not all first threads first.
    pub adjacent: bool,
    /// Memory of each node, KiB.
    pub node_kib: u64,
    /// Distances: within the node's socket, to another socket.
    pub distances: (u32, u32),
}

/// Two Xeon sockets of 28 cores with two threads each, one node each.
pub const TWO_SOCKETS: MachineTree = MachineTree {
    packages: 2,
    nodes_each: 1,
    cores_each: 28,
    threads: 2,
    cores_per_cache: 28,
    adjacent: false,
    node_kib: 131_072_000,
    distances: (10, 21),
};

/// Two Sapphire Rapids sockets of 56 cores in SNC-4: four nodes each, one last-level cache in a socket.
pub const SNC4: MachineTree = MachineTree {
    packages: 2,
    nodes_each: 4,
    cores_each: 14,
    threads: 2,
    cores_per_cache: 56,
    adjacent: false,
    node_kib: 65_536_000,
    distances: (12, 21),
};

/// One EPYC socket of 64 cores in NPS4, eight cores to a last-level cache.
pub const EPYC: MachineTree = MachineTree {
    packages: 1,
    nodes_each: 4,
    cores_each: 16,
    threads: 2,
    cores_per_cache: 8,
    adjacent: false,
    node_kib: 65_536_000,
    distances: (12, 32),
};

/// A cloud guest: one node, threads of a core side by side, no word about caches beyond the second level.
pub const GUEST: MachineTree = MachineTree {
    packages: 1,
    nodes_each: 1,
    cores_each: 4,
    threads: 2,
    cores_per_cache: 4,
    adjacent: true,
    node_kib: 16_384_000,
    distances: (10, 20),
};

impl MachineTree {
    fn cores(&self) -> usize {
        self.packages * self.nodes_each * self.cores_each
    }

    /// Numbers of the threads of a core.
    fn threads_of(&self, core: usize) -> Vec<usize> {
        match self.adjacent {
            true => (0..self.threads).map(|t| core * self.threads + t).collect(),
            false => (0..self.threads).map(|t| core + t * self.cores()).collect(),
        }
    }

    fn cpus_of(&self, cores: std::ops::Range<usize>) -> Vec<usize> {
        let mut cpus: Vec<usize> = cores.flat_map(|core| self.threads_of(core)).collect();
        cpus.sort_unstable();
        cpus
    }

    /// Writes the tree below `sys`.
    pub fn write(&self, sys: &Path) -> io::Result<()> {
        let cpus = sys.join("devices/system/cpu");
        let all = list(&self.cpus_of(0..self.cores()));
        put_line(&cpus.join("online"), &all)?;
        put_line(&cpus.join("possible"), &all)?;
        for core in 0..self.cores() {
            let package = core / (self.nodes_each * self.cores_each);
            let siblings = list(&self.threads_of(core));
            let begin = core / self.cores_per_cache * self.cores_per_cache;
            let sharing = list(&self.cpus_of(begin..begin + self.cores_per_cache));
            for cpu in self.threads_of(core) {
                let own = cpus.join(format!("cpu{cpu}"));
                put_line(&own.join("topology/physical_package_id"), &package.to_string())?;
                put_line(&own.join("topology/core_id"), &core.to_string())?;
                put_line(&own.join("topology/core_cpus_list"), &siblings)?;
                put_line(&own.join("topology/thread_siblings_list"), &siblings)?;
                let caches = [
                    ("Data", 1, &siblings, "48K"),
                    ("Instruction", 1, &siblings, "32K"),
                    ("Unified", 2, &siblings, "2048K"),
                    ("Unified", 3, &sharing, "32768K"),
                ];
                for (index, (kind, level, shared, size)) in caches.iter().enumerate() {
                    let cache = own.join(format!("cache/index{index}"));
                    put_line(&cache.join("type"), kind)?;
                    put_line(&cache.join("level"), &level.to_string())?;
                    put_line(&cache.join("shared_cpu_list"), shared)?;
                    put_line(&cache.join("size"), size)?;
                }
            }
        }
        self.write_nodes(&sys.join("devices/system/node"))
    }

    fn write_nodes(&self, folder: &Path) -> io::Result<()> {
        let count = self.packages * self.nodes_each;
        put_line(&folder.join("online"), &list(&(0..count).collect::<Vec<_>>()))?;
        for node in 0..count {
            let own = folder.join(format!("node{node}"));
            let begin = node * self.cores_each;
            put_line(&own.join("cpulist"), &list(&self.cpus_of(begin..begin + self.cores_each)))?;
            let distance = |other: usize| match other {
                _ if other == node => 10,
                _ if other / self.nodes_each == node / self.nodes_each => self.distances.0,
                _ => self.distances.1,
            };
            let distances: Vec<String> = (0..count).map(|other| distance(other).to_string()).collect();
            put_line(&own.join("distance"), &distances.join(" "))?;
            let (kib, free) = (self.node_kib, self.node_kib / 2);
            let meminfo =
                format!("Node {node} MemTotal:       {kib} kB\nNode {node} MemFree:        {free} kB");
            put_line(&own.join("meminfo"), &meminfo)?;
        }
        Ok(())
    }
}

/// Writes a file of one line and the folders above it.
pub fn put_line(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, format!("{text}\n"))
}
