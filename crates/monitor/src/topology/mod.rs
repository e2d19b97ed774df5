//! The processors and memory of a machine, read from sysfs: packages, memory nodes, physical cores, hardware threads and
//! the groups that share a last-level cache.
//!
//! Only what is online is listed. A kernel without NUMA support has no nodes in sysfs: then there is one, number 0, with
//! all processors, and its memory is not known.

mod read;

#[cfg(any(test, feature = "trees"))]
pub mod trees;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// One logical processor (hardware thread).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Number.
    pub number: usize,
    /// Socket.
    pub package: usize,
    /// Memory node.
    pub node: usize,
    /// Logical processors of the same physical core, itself among them, ascending.
    pub siblings: Vec<usize>,
    /// Group of the last-level cache, an index into [`Topology::caches`]; absent where the system does not tell.
    pub cache: Option<usize>,
}

/// One memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number.
    pub number: usize,
    /// Logical processors, ascending; none for a node of nothing but memory.
    pub cpus: Vec<usize>,
    /// Memory, bytes; absent where the system does not tell.
    pub memory_bytes: Option<u64>,
    /// Distances to the nodes in their order; 10 is to itself.
    pub distances: Vec<u32>,
}

/// Logical processors that share a last-level cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Level, such as 3.
    pub level: u32,
    /// Size, bytes; absent where the system does not tell.
    pub size_bytes: Option<u64>,
    /// Logical processors that share it, ascending.
    pub cpus: Vec<usize>,
}

/// The whole machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Logical processors that are online, by their numbers.
    pub cpus: BTreeMap<usize, Cpu>,
    /// Memory nodes by their numbers.
    pub nodes: BTreeMap<usize, Node>,
    /// Groups of last-level caches.
    pub caches: Vec<Cache>,
    /// All memory, bytes, as `/proc/meminfo` has it, where that was read. The nodes may know of less: memory that a
    /// virtual machine was given later, or that firmware does not describe.
    pub total_bytes: Option<u64>,
}

/// Error of reading a machine's topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct TopologyError {
    /// The file.
    pub path: PathBuf,
    /// Error.
    pub why: String,
}

impl Topology {
    /// Sockets, ascending.
    pub fn packages(&self) -> Vec<usize> {
        let mut packages: Vec<usize> = self.cpus.values().map(|cpu| cpu.package).collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    }

    /// Physical cores as lists of their hardware threads, in the order of their first threads.
    pub fn cores(&self) -> Vec<&[usize]> {
        let firsts = self.cpus.values().filter(|cpu| cpu.siblings.first() == Some(&cpu.number));
        firsts.map(|cpu| cpu.siblings.as_slice()).collect()
    }

    /// Hardware threads of a core, the most there are.
    pub fn threads_per_core(&self) -> usize {
        self.cpus.values().map(|cpu| cpu.siblings.len()).max().unwrap_or(1)
    }

    /// The nodes of these processors, ascending, each once.
    pub fn nodes_of(&self, cpus: &[usize]) -> Vec<usize> {
        let mut nodes: Vec<usize> = cpus.iter().filter_map(|cpu| Some(self.cpus.get(cpu)?.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Memory of some nodes that can be had at most, bytes; `None` where that is not told. What belongs to no node may be
    /// any one's.
    pub fn memory_of(&self, nodes: &[usize]) -> Option<u64> {
        let told = |nodes: &mut dyn Iterator<Item = &usize>| -> Option<u64> {
            nodes.map(|node| self.nodes.get(node)?.memory_bytes).sum()
        };
        let all = told(&mut self.nodes.keys());
        match (told(&mut nodes.iter()), all, self.total_bytes) {
            (Some(own), Some(all), Some(total)) => Some(own + total.saturating_sub(all)),
            (None, _, total) => total,
            (own, ..) => own,
        }
    }

    /// All memory, bytes; `None` where that is not told.
    pub fn memory(&self) -> Option<u64> {
        self.memory_of(&self.nodes.keys().copied().collect::<Vec<_>>())
    }

    /// Facts for a report.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        facts.insert("packages".into(), self.packages().len().to_string());
        facts.insert("numa_nodes".into(), self.nodes.len().to_string());
        facts.insert("cores".into(), self.cores().len().to_string());
        facts.insert("cpus".into(), self.cpus.len().to_string());
        facts.insert("threads_per_core".into(), self.threads_per_core().to_string());
        facts.insert("last_level_caches".into(), self.caches.len().to_string());
        for node in self.nodes.values() {
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            let text = format!("cpus {}, distances {}", list(&node.cpus), distances.join(" "));
            facts.insert(format!("node{}", node.number), text);
            let memory = node.memory_bytes.map(|bytes| format!("{} MiB", bytes >> 20));
            facts.extend(memory.map(|memory| (format!("node{}{MEMORY}", node.number), memory)));
        }
        facts
    }
}

/// Suffix of a node's memory among the facts: the one of them that a running host may gain or lose.
pub const MEMORY: &str = "_memory";

/// Numbers as the kernel writes them, `0-3,8`; they must ascend.
pub fn list(numbers: &[usize]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end + 1] == numbers[end] + 1 {
            end += 1;
        }
        let comma = if out.is_empty() { "" } else { "," };
        match end - at {
            0 => out.push_str(&format!("{comma}{}", numbers[at])),
            _ => out.push_str(&format!("{comma}{}-{}", numbers[at], numbers[end])),
        }
        at = end + 1;
    }
    out
}

/// Reads such a list; an empty text is an empty list.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse::<usize>().ok()?, to.trim().parse::<usize>().ok()?);
        // More than any machine has: a file that is not what it should be must not fill the memory.
        if from > to || to > 1 << 20 {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}
