//! From a policy to the very cores and memory nodes of each process; checked against the machine before anything starts,
//! and against the kernel afterwards.

use crate::servers::preflight::budgets;
use dyno_config::server::ServerSpec;
use dyno_config::server::placement::{Placement, Policy};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_monitor::topology::{Topology, list, parse_list};
use dyno_types::units::BinaryBytes;
use std::collections::BTreeMap;

/// Where a process' memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// The kernel's default: the node of the core that touches a page first.
    #[default]
    Local,
    /// Page by page from these nodes.
    Interleave(Vec<usize>),
    /// From these nodes alone.
    Bind(Vec<usize>),
}

/// Where one process runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Logical processors, ascending; absent if any will do.
    pub cpus: Option<Vec<usize>>,
    /// Where its memory comes from.
    pub memory: Memory,
    /// Options of numactl in their place, verbatim.
    pub numactl: Option<Vec<String>>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

fn refused(text: String) -> LocalError {
    LocalError::refuse("placement", format!("placement: {text}"))
}

/// The plan of each process; process i listens on `ports[i]`.
pub fn plan_placement(
    placement: &Placement,
    topology: &Topology,
    ports: &[u16],
) -> Result<Vec<Plan>, LocalError> {
    placement.check().map_err(|why| LocalError::refuse("placement", format!("placement.{why}")))?;
    if let Some(options) = &placement.numactl {
        let plan = custom(options, topology)?;
        return Ok(vec![plan; ports.len()]);
    }
    let cores = placement.cores.as_ref().map(|cores| sorted(&cores.0));
    if let Some(beyond) = cores.iter().flatten().find(|cpu| !topology.cpus.contains_key(cpu)) {
        let all: Vec<usize> = topology.cpus.keys().copied().collect();
        return Err(refused(format!("core {beyond} is not there; this machine has {}", list(&all))));
    }
    let node = placement.node.map(|node| known_node(topology, node)).transpose()?;
    match placement.policy {
        Policy::None => Ok(vec![Plan { cpus: cores, ..Plan::default() }; ports.len()]),
        Policy::Interleave => {
            let nodes =
                topology.nodes.values().filter(|node| node.memory_bytes != Some(0)).map(|node| node.number);
            let plan = Plan { memory: Memory::Interleave(nodes.collect()), ..Plan::default() };
            Ok(vec![plan; ports.len()])
        }
        Policy::BindByPort => {
            let nodes: Vec<usize> = with_cpus(topology);
            Ok(ports.iter().map(|port| on_node(topology, nodes[usize::from(*port) % nodes.len()])).collect())
        }
        Policy::Node => {
            let node = node.unwrap_or(with_cpus(topology)[0]);
            let mut plan = on_node(topology, node);
            if let Some(cores) = cores {
                let away: Vec<usize> =
                    cores.iter().copied().filter(|cpu| topology.cpus[cpu].node != node).collect();
                if !away.is_empty() {
                    plan.notes
                        .push(format!("cores {} are not of node {node}, whose memory is used", list(&away)));
                }
                plan.cpus = Some(cores);
            }
            if ports.len() > 1 {
                plan.notes.push(format!("all {} processes share these cores", ports.len()));
            }
            Ok(vec![plan; ports.len()])
        }
        Policy::CoresEach | Policy::CoresEachSmt => {
            let each = placement.cores_each.unwrap_or(1);
            let smt = placement.policy == Policy::CoresEachSmt;
            deal(topology, ports.len(), each, smt, node, cores.as_deref())
        }
    }
}

fn sorted(cpus: &[usize]) -> Vec<usize> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

fn with_cpus(topology: &Topology) -> Vec<usize> {
    topology.nodes.values().filter(|node| !node.cpus.is_empty()).map(|node| node.number).collect()
}

fn known_node(topology: &Topology, node: usize) -> Result<usize, LocalError> {
    match topology.nodes.get(&node) {
        Some(found) if !found.cpus.is_empty() => Ok(node),
        Some(_) => Err(refused(format!("node {node} has memory but no cores"))),
        None => {
            let nodes: Vec<usize> = topology.nodes.keys().copied().collect();
            Err(refused(format!("node {node} is not there; this machine has {}", list(&nodes))))
        }
    }
}

fn on_node(topology: &Topology, node: usize) -> Plan {
    Plan {
        cpus: Some(topology.nodes[&node].cpus.clone()),
        memory: Memory::Bind(vec![node]),
        ..Plan::default()
    }
}

/// Deals out physical cores, node by node.
fn deal(
    topology: &Topology,
    processes: usize,
    each: usize,
    smt: bool,
    node: Option<usize>,
    cores: Option<&[usize]>,
) -> Result<Vec<Plan>, LocalError> {
    let listed = |cpu: &usize| cores.is_none_or(|cores| cores.contains(cpu));
    // The thread that stands for the core, and all its threads.
    let mut pool: Vec<(usize, usize, &[usize])> = Vec::new();
    for threads in topology.cores() {
        let Some(&first) = threads.iter().find(|cpu| listed(cpu)) else { continue };
        let home = topology.cpus[&first].node;
        if node.is_none_or(|node| node == home) {
            pool.push((home, first, threads));
        }
    }
    // Some firmware numbers cores in turn over the sockets; a process should have its cores on one node all the same.
    pool.sort_by_key(|(home, first, _)| (*home, *first));
    if processes.saturating_mul(each) > pool.len() {
        return Err(refused(format!(
            "{processes} processes of {each} physical cores each need {}, there are {}",
            processes.saturating_mul(each),
            pool.len()
        )));
    }
    let plans = pool.chunks(each).take(processes).map(|own| {
        let threads = own.iter().flat_map(|(_, first, all)| if smt { all.to_vec() } else { vec![*first] });
        let cpus = sorted(&threads.collect::<Vec<_>>());
        let nodes = topology.nodes_of(&cpus);
        let straddles = (nodes.len() > 1).then(|| format!("its cores are of the nodes {}", list(&nodes)));
        Plan { cpus: Some(cpus), notes: straddles.into_iter().collect(), ..Plan::default() }
    });
    Ok(plans.collect())
}

/// Reads numactl's options, with or without the word itself.
fn custom(options: &str, topology: &Topology) -> Result<Plan, LocalError> {
    let bad = |text: String| refused(format!("numactl: {text}"));
    let mut words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    if words.first().is_some_and(|word| word == "numactl" || word.ends_with("/numactl")) {
        words.remove(0);
    }
    let mut plan = Plan { numactl: Some(words.clone()), ..Plan::default() };
    let mut rest = words.iter();
    let all_cpus: Vec<usize> = topology.cpus.keys().copied().collect();
    let all_nodes: Vec<usize> = topology.nodes.keys().copied().collect();
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        if matches!(name, "--localalloc" | "-l" | "--all" | "-a" | "--balancing" | "-b") {
            continue;
        }
        let known = ["--cpunodebind", "-N", "--physcpubind", "-C", "--membind", "-m", "--interleave", "-i"];
        if !known.contains(&name) && !["--preferred", "-p"].contains(&name) {
            return Err(bad(format!(
                "{word:?} is not understood; known: --cpunodebind, --physcpubind, --membind, --interleave, --preferred, \
                 --localalloc, --all, --balancing"
            )));
        }
        let value = value.or_else(|| rest.next().map(String::as_str));
        let value = value.ok_or_else(|| bad(format!("{name} needs a list of numbers")))?;
        let range = if matches!(name, "--physcpubind" | "-C") { &all_cpus } else { &all_nodes };
        let numbers = match value {
            "all" => range.clone(),
            _ => parse_list(value)
                .filter(|numbers| !numbers.is_empty())
                .ok_or_else(|| bad(format!("{name} {value:?}: expected a list such as 0-3,8, or all")))?,
        };
        if let Some(beyond) = numbers.iter().find(|n| !range.contains(n)) {
            return Err(bad(format!("{name}: {beyond} is not there; this machine has {}", list(range))));
        }
        match name {
            "--physcpubind" | "-C" => plan.cpus = Some(sorted(&numbers)),
            "--cpunodebind" | "-N" => {
                let cpus: Vec<usize> =
                    numbers.iter().flat_map(|node| topology.nodes[node].cpus.iter().copied()).collect();
                plan.cpus = Some(sorted(&cpus));
            }
            "--membind" | "-m" => plan.memory = Memory::Bind(sorted(&numbers)),
            "--interleave" | "-i" => plan.memory = Memory::Interleave(sorted(&numbers)),
            _ => {}
        }
    }
    Ok(plan)
}

impl Plan {
    /// Returns the words before a program on its command line; and what is lost, where something that is needed is not
    /// installed.
    pub(crate) fn prefix(&self, topology: &Topology, machine: &Machine) -> Result<Vec<String>, LocalError> {
        let words = self.words(topology);
        match words.first().map(String::as_str) {
            Some("numactl") => {
                let program = machine.find_program("numactl").ok_or_else(|| LocalError::NotPermitted {
                    what: "placement".into(),
                    why: "numactl is not installed".into(),
                    lost: "memory comes from wherever the kernel takes it".into(),
                })?;
                Ok([vec![program.display().to_string()], words[1..].to_vec()].concat())
            }
            Some(_) => self.cores_only(machine),
            None => Ok(words),
        }
    }

    /// The program that the plan needs and that is not there: numactl or taskset.
    pub fn missing_program(&self, topology: &Topology, machine: &Machine) -> Option<String> {
        self.words(topology).into_iter().next().filter(|program| machine.find_program(program).is_none())
    }

    /// The same, of numactl or taskset by their names.
    pub(crate) fn words(&self, topology: &Topology) -> Vec<String> {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if let Some(options) = &self.numactl {
            return [words(&["numactl"]), options.clone()].concat();
        }
        // With one node there is nothing to choose.
        let memory = match &self.memory {
            _ if topology.nodes.len() < 2 => None,
            Memory::Local => None,
            Memory::Interleave(nodes) => Some(format!("--interleave={}", list(nodes))),
            Memory::Bind(nodes) => Some(format!("--membind={}", list(nodes))),
        };
        match (memory, &self.cpus) {
            (None, None) => Vec::new(),
            (None, Some(cpus)) => words(&["taskset", "-c", &list(cpus)]),
            (Some(memory), None) => words(&["numactl", &memory]),
            (Some(memory), Some(cpus)) => {
                words(&["numactl", &format!("--physcpubind={}", list(cpus)), &memory])
            }
        }
    }

    /// The cores without a policy for memory.
    pub(crate) fn cores_only(&self, machine: &Machine) -> Result<Vec<String>, LocalError> {
        let Some(cpus) = &self.cpus else { return Ok(Vec::new()) };
        let taskset = machine.find_program("taskset").ok_or_else(|| LocalError::NotPermitted {
            what: "placement".into(),
            why: "taskset (util-linux) is not installed".into(),
            lost: "processes run on any core".into(),
        })?;
        Ok(vec![taskset.display().to_string(), "--cpu-list".into(), list(cpus)])
    }

    /// Checks that a process runs where it should, by what the kernel says of it.
    pub(crate) fn confirm(&self, effective: &BTreeMap<String, String>) -> Result<(), LocalError> {
        let Some(cpus) = &self.cpus else { return Ok(()) };
        let said = effective.get("cpus_allowed").map_or("", String::as_str);
        if parse_list(said).as_ref() == Some(cpus) {
            return Ok(());
        }
        let asked = list(cpus);
        Err(LocalError::Failed(format!(
            "asked for the cores {asked}, but the kernel lets it run on {said:?}"
        )))
    }

    /// In words, for a report.
    pub fn describe_plan(&self) -> String {
        let cpus = self.cpus.as_ref().map_or("any core".to_owned(), |cpus| format!("cores {}", list(cpus)));
        let memory = match (&self.numactl, &self.memory) {
            (Some(options), _) => format!("numactl {}", options.join(" ")),
            (None, Memory::Local) => "memory local".to_owned(),
            (None, Memory::Interleave(nodes)) => format!("memory interleaved over {}", list(nodes)),
            (None, Memory::Bind(nodes)) => format!("memory of node {}", list(nodes)),
        };
        [vec![cpus, memory], self.notes.clone()].concat().join(", ")
    }
}

/// Refuses parties that should not share cores but do; each is a name and its cores.
pub fn check_apart(parties: &[(String, Vec<usize>)]) -> Result<(), LocalError> {
    for (i, (name, cores)) in parties.iter().enumerate() {
        for (other, theirs) in &parties[i + 1..] {
            let shared: Vec<usize> = cores.iter().copied().filter(|core| theirs.contains(core)).collect();
            if !shared.is_empty() {
                return Err(refused(format!(
                    "{name} and {other} share the cores {}",
                    list(&sorted(&shared))
                )));
            }
        }
    }
    Ok(())
}

/// Servers that may take more memory than there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondMemory {
    /// True if limits say so, which cannot hold then; caches are ceilings that a server may never come near.
    pub limits: bool,
    /// In words.
    pub text: String,
}

/// Returns whether limits or caches of the servers exceed the memory of the machine, or of the nodes that they are bound to. A
/// machine that does not tell its memory is not argued with.
pub fn beyond_memory(spec: &ServerSpec, plans: &[Plan], topology: &Topology) -> Option<BeyondMemory> {
    let budgets = budgets(spec, topology);
    let mut bound: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    for (plan, budget) in plans.iter().zip(&budgets) {
        if let Memory::Bind(nodes) = &plan.memory {
            *bound.entry(nodes.clone()).or_default() += budget;
        }
    }
    let everything: Vec<usize> = topology.nodes.keys().copied().collect();
    let all = bound.into_iter().chain([(everything.clone(), budgets.iter().sum())]);
    let (nodes, asked, there) = all.into_iter().find_map(|(nodes, asked)| {
        let there = topology.memory_of(&nodes).filter(|there| asked > *there)?;
        Some((nodes, asked, there))
    })?;
    let (asked, there) = (BinaryBytes(asked as f64), BinaryBytes(there as f64));
    let holder = if nodes == everything { "this host".into() } else { format!("node {}", list(&nodes)) };
    let limits = spec.limits.memory.is_some();
    let text = match limits {
        true => format!("the limits of the servers add up to {asked}, {holder} has {there}"),
        false if spec.cache.is_none() && spec.kind.server_rules().own_cache(0) > 0 => format!(
            "the caches of the servers may grow to {asked} together, {holder} has {there}: unless a size is given, each \
             {} may take half of the memory",
            spec.kind
        ),
        false => format!("the caches of the servers may grow to {asked} together, {holder} has {there}"),
    };
    Some(BeyondMemory { limits, text })
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
