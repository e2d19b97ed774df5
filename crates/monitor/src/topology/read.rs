//! Reads a topology from the files of sysfs.

use super::{Cache, Cpu, Node, Topology, TopologyError, parse_list};
use crate::roots::read;
use std::collections::BTreeMap;
use std::path::Path;

fn error(path: &Path, why: impl std::fmt::Display) -> TopologyError {
    TopologyError { path: path.to_owned(), why: why.to_string() }
}

/// The file's numbers; `None` if there is no such file.
fn numbers(path: &Path) -> Result<Option<Vec<usize>>, TopologyError> {
    match read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(error(path, e)),
        Ok(text) => match parse_list(&text) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(error(path, format!("{:?} is no list of numbers", text.trim()))),
        },
    }
}

fn word(path: &Path) -> Option<String> {
    read(path).ok().map(|text| text.trim().to_owned())
}

impl Topology {
    /// Reads it from a sysfs root, such as `/sys`.
    pub fn read(sys: &Path) -> Result<Self, TopologyError> {
        let folder = sys.join("devices/system/cpu");
        let online = folder.join("online");
        let online = match numbers(&online)? {
            Some(cpus) if !cpus.is_empty() => cpus,
            _ => return Err(error(&online, "no processor is online there")),
        };
        let nodes = nodes(sys, &online)?;
        let home: BTreeMap<usize, usize> =
            nodes.values().flat_map(|node| node.cpus.iter().map(|cpu| (*cpu, node.number))).collect();
        let mut caches: Vec<Cache> = Vec::new();
        let mut cpus = BTreeMap::new();
        for &number in &online {
            let own = folder.join(format!("cpu{number}"));
            // The package is -1 where the platform does not tell.
            let package = word(&own.join("topology/physical_package_id")).and_then(|text| text.parse().ok());
            let siblings = match numbers(&own.join("topology/core_cpus_list"))? {
                Some(found) => Some(found),
                // The name before Linux 5.4.
                None => numbers(&own.join("topology/thread_siblings_list"))?,
            };
            let mut siblings = siblings.unwrap_or_else(|| vec![number]);
            siblings.retain(|cpu| online.contains(cpu));
            let node = *home.get(&number).ok_or_else(|| {
                error(&sys.join("devices/system/node"), format!("processor {number} belongs to no node"))
            })?;
            let cache = last_level(&own.join("cache"), &online)?.map(|cache| {
                caches.iter().position(|known| known.cpus == cache.cpus).unwrap_or_else(|| {
                    caches.push(cache);
                    caches.len() - 1
                })
            });
            cpus.insert(number, Cpu { number, package: package.unwrap_or(0), node, siblings, cache });
        }
        Ok(Topology { cpus, nodes, caches, total_bytes: None })
    }
}

fn nodes(sys: &Path, online: &[usize]) -> Result<BTreeMap<usize, Node>, TopologyError> {
    let folder = sys.join("devices/system/node");
    let Some(listed) = numbers(&folder.join("online"))? else {
        let all = Node { number: 0, cpus: online.to_vec(), memory_bytes: None, distances: vec![10] };
        return Ok([(0, all)].into());
    };
    let mut nodes = BTreeMap::new();
    for number in listed {
        let own = folder.join(format!("node{number}"));
        let mut cpus = numbers(&own.join("cpulist"))?
            .ok_or_else(|| error(&own.join("cpulist"), "the node has no list of processors"))?;
        cpus.retain(|cpu| online.contains(cpu));
        let meminfo = word(&own.join("meminfo")).unwrap_or_default();
        let total = meminfo.lines().find_map(|line| line.split_once("MemTotal:"));
        let kib = total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
        let distances = word(&own.join("distance")).unwrap_or_default();
        let distances = distances.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        nodes.insert(number, Node { number, cpus, memory_bytes: kib.map(|kib| kib << 10), distances });
    }
    Ok(nodes)
}

/// The cache of the highest level that holds data.
fn last_level(folder: &Path, online: &[usize]) -> Result<Option<Cache>, TopologyError> {
    let mut found: Option<Cache> = None;
    for index in 0..16 {
        let own = folder.join(format!("index{index}"));
        // They are counted without gaps.
        let Some(level) = word(&own.join("level")) else { break };
        let Ok(level) = level.parse::<u32>() else { continue };
        let data = word(&own.join("type")).is_none_or(|kind| kind != "Instruction");
        if !data || found.as_ref().is_some_and(|best| best.level >= level) {
            continue;
        }
        let Some(mut cpus) = numbers(&own.join("shared_cpu_list"))? else { continue };
        cpus.retain(|cpu| online.contains(cpu));
        let size_bytes = word(&own.join("size")).and_then(|text| size(&text));
        found = Some(Cache { level, size_bytes, cpus });
    }
    Ok(found)
}

/// `36864K`
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_shl(shift)
}
