//! Where servers and workers ran, and what they were given there. What is not known is left out.

use dyno_rundir::RunDir;
use dyno_rundir::files;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::Environment;
use std::collections::BTreeMap;

/// Names and values.
pub(super) type HostFacts = Vec<(String, String)>;

/// Facts of the host of the only server; and those of each of several servers, and of workers in pods, by their names.
pub(super) fn read_host_facts(
    dir: &RunDir,
    recording: Option<&Recording>,
) -> (HostFacts, Vec<(String, HostFacts)>) {
    let pods = pods(dir);
    if !pods.is_empty() {
        return in_pods(dir, &pods);
    }
    let elsewhere = dir.run.facts.get("target.elsewhere").is_some_and(|is| is == "true");
    // Servers on another host of ssh, or one that was only watched there.
    let name = recording.map_or("", Recording::host_source);
    let facts = match name.strip_prefix("host-") {
        Some(name) => environment(dir, name).as_ref().map_or(HostFacts::new(), host),
        None if elsewhere => HostFacts::new(),
        None => host(&dir.environment),
    };
    (facts, Vec::new())
}

fn host(host: &Environment) -> HostFacts {
    let mut facts = HostFacts::new();
    let mut put = |key: &str, value: String| {
        if !value.is_empty() && value != "0" {
            facts.push((key.to_owned(), value));
        }
    };
    put("RAM", host.memory_bytes.to_string());
    put("CPU", host.cpu.clone());
    put("Cores", host.cores.len().to_string());
    put("host", host.kernel.clone());
    put("node", host.host.clone());
    facts
}

/// Reads an agent's description of its host.
fn environment(dir: &RunDir, name: &str) -> Option<Environment> {
    let text = files::read(&dir.path.join(format!("environment-{name}.json"))).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Facts of pods by their names.
fn pods(dir: &RunDir) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let mut pods: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (key, value) in &dir.run.facts {
        if let Some((name, fact)) = key.strip_prefix("pod.").and_then(|rest| rest.split_once('.')) {
            pods.entry(name).or_default().insert(fact, value);
        }
    }
    pods
}

fn in_pods(
    dir: &RunDir,
    pods: &BTreeMap<&str, BTreeMap<&str, &str>>,
) -> (HostFacts, Vec<(String, HostFacts)>) {
    let each = |is_worker: bool| {
        let of = move |facts: &BTreeMap<&str, &str>| (facts.get("component") == Some(&"worker")) == is_worker;
        pods.iter().filter(move |(_, facts)| of(facts)).map(|(_, own)| pod(dir, pods, own))
    };
    let servers: Vec<HostFacts> = each(false).collect();
    let workers = each(true).enumerate().map(|(at, facts)| (format!("client pod {}", at + 1), facts));
    // bexhoma's name of the members of a cluster.
    match <[HostFacts; 1]>::try_from(servers) {
        Ok([only]) => (only, workers.collect()),
        Err(servers) => {
            let members = servers.into_iter().enumerate().map(|(at, facts)| (format!("worker {at}"), facts));
            (HostFacts::new(), members.chain(workers).collect())
        }
    }
}

/// Facts of a pod: of its node, as the cluster tells or as a worker there has found it, and of what it was given.
fn pod(dir: &RunDir, pods: &BTreeMap<&str, BTreeMap<&str, &str>>, own: &BTreeMap<&str, &str>) -> HostFacts {
    let node = own.get("node").copied().unwrap_or_default();
    let mut neighbours = pods.iter().filter(|(_, facts)| facts.get("node") == Some(&node));
    let seen = neighbours.find_map(|(name, _)| environment(dir, name));
    let told = |key: &str| dir.run.facts.get(&format!("node.{node}.{key}")).cloned();
    let bytes =
        told("memory").and_then(|text| text.strip_suffix("Ki")?.parse::<u64>().ok()).map(|kib| kib << 10);
    let seen_memory = seen.as_ref().map(|host| host.memory_bytes).filter(|bytes| *bytes > 0);
    let mut facts = HostFacts::new();
    let mut put = |key: &str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (key.to_owned(), value)));
    };
    put("RAM", bytes.or(seen_memory).map(|bytes| bytes.to_string()));
    put("CPU", seen.as_ref().map(|host| host.cpu.clone()));
    put("Cores", told("cores"));
    put("host", told("kernel").or(seen.map(|host| host.kernel)));
    put("node", Some(node.to_owned()));
    for (key, value) in own {
        if key.starts_with("requests_") || key.starts_with("limits_") || ["image", "image_id"].contains(key) {
            put(key, Some((*value).to_owned()));
        }
    }
    facts
}
