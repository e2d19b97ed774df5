//! Where servers and workers ran, and what they were given there. What is not known is left out.

use dyno_rundir::RunDir;
use dyno_rundir::files;
use dyno_rundir::monitor::{ELSEWHERE, Recording, WATCHED, WATCHED_BETWEEN};
use dyno_rundir::schema::{Environment, PhaseHost, Summary};
use dyno_types::host_facts::{CPUS, CPUS_ALLOWED, KERNEL_RELEASE, NODE_DISK_USED, PROCESS_CPUS, ROOT_USED};
use std::collections::BTreeMap;

/// Names and values.
pub(super) type HostFacts = Vec<(String, String)>;

/// Facts of the hosts of a run, by what runs there.
#[derive(Default)]
pub(super) struct HostSections {
    /// Image of the servers' pods, if all have the same.
    pub image: Option<String>,
    /// Facts of the only server's host.
    pub server: HostFacts,
    /// Facts of each of several servers' hosts.
    pub servers: Vec<HostFacts>,
    /// Facts of the pods or hosts that apply load, where these are others than this host, by their titles.
    pub clients: Vec<(String, HostFacts)>,
}

impl HostSections {
    fn of_servers(servers: Vec<HostFacts>) -> Self {
        match <[HostFacts; 1]>::try_from(servers) {
            Ok([server]) => HostSections { server, ..HostSections::default() },
            Err(servers) => HostSections { servers, ..HostSections::default() },
        }
    }
}

/// What is known of a host.
#[derive(Default)]
struct KnownHost {
    memory_bytes: Option<u64>,
    cpu: Option<String>,
    cores: Option<u64>,
    kernel: Option<String>,
    node: Option<String>,
    disk_bytes: Option<u64>,
    cpu_list: Option<String>,
}

impl From<&Environment> for KnownHost {
    fn from(host: &Environment) -> Self {
        let volatile = host.system.as_ref().map(|system| &system.volatile);
        let used = volatile.and_then(|volatile| volatile.get(ROOT_USED.0)?.get(ROOT_USED.1));
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty() && text != "unknown");
        let cores =
            recorded_fact(host, CPUS).and_then(|cpus| cpus.parse().ok()).unwrap_or(host.cores.len() as u64);
        KnownHost {
            memory_bytes: Some(host.memory_bytes).filter(|bytes| *bytes > 0),
            cpu: text(&host.cpu),
            cores: Some(cores).filter(|cores| *cores > 0),
            kernel: recorded_fact(host, KERNEL_RELEASE).or_else(|| text(&host.kernel)),
            node: text(&host.host),
            disk_bytes: used.and_then(|used| used.split(' ').next()?.parse().ok()),
            cpu_list: None,
        }
    }
}

impl KnownHost {
    /// Returns facts by bexhoma's names, in its order.
    fn into_facts(self) -> HostFacts {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let all = [
            ("RAM", number(self.memory_bytes)),
            ("CPU", self.cpu),
            ("Cores", number(self.cores)),
            ("host", self.kernel),
            ("node", self.node),
            // As `df -m` rounds.
            ("disk", number(self.disk_bytes.map(|bytes| bytes.div_ceil(1 << 20)))),
            ("cpu_list", self.cpu_list),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

/// Returns a fact of a host's setup.
fn recorded_fact(host: &Environment, (group, name): (&str, &str)) -> Option<String> {
    host.system.as_ref()?.facts.get(group)?.get(name).cloned()
}

/// Returns a key that sorts names by their words and numbers: `s2` stands before `s10`.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in name.chars() {
        if in_number && !c.is_ascii_digit() {
            parts.push((String::new(), 0));
        }
        in_number = c.is_ascii_digit();
        if let Some((word, number)) = parts.last_mut() {
            match c.to_digit(10) {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                None => word.push(c),
            }
        }
    }
    parts
}

/// Reads what is known of the hosts of servers and clients.
pub(super) fn read_host_sections(
    dir: &RunDir,
    summary: &Summary,
    recording: Option<&Recording>,
) -> HostSections {
    let pods = read_pods(dir);
    if !pods.is_empty() {
        return sections_in_pods(dir, &pods);
    }
    let mut sections = HostSections::of_servers(server_hosts(dir, recording));
    let mut hosts: Vec<&PhaseHost> = Vec::new();
    for host in summary.phases.iter().flat_map(|phase| &phase.hosts).filter(|host| host.role.is_client()) {
        if !hosts.iter().any(|known| known.name == host.name) {
            hosts.push(host);
        }
    }
    if hosts.iter().any(|host| !host.local) {
        hosts.sort_by_cached_key(|host| natural_key(&host.name));
        let facts = |host: &&PhaseHost| host_facts(dir, (!host.local).then_some(&host.name), Cpus::OfAgent);
        sections.clients = number_sections("client host", hosts.iter().map(facts));
    }
    sections
}

/// Numbers sections from 1.
fn number_sections(title: &str, all: impl Iterator<Item = HostFacts>) -> Vec<(String, HostFacts)> {
    all.enumerate().map(|(at, facts)| (format!("{title} {}", at + 1), facts)).collect()
}

/// Where the list of cores comes from.
enum Cpus {
    /// The process whose host it is, if that is known.
    Known(Option<String>),
    /// The agent there, which starts the workers.
    OfAgent,
}

/// Returns facts of a host of ssh, or of this host.
fn host_facts(dir: &RunDir, name: Option<&String>, cpus: Cpus) -> HostFacts {
    let told = name.and_then(|name| read_environment(dir, name));
    let host = if name.is_some() { told.as_ref() } else { Some(&dir.environment) };
    let mut known = host.map(KnownHost::from).unwrap_or_default();
    known.node = known.node.or_else(|| name.cloned());
    known.cpu_list = match cpus {
        Cpus::Known(cpus) => cpus,
        Cpus::OfAgent => host.and_then(|host| recorded_fact(host, CPUS_ALLOWED)),
    };
    known.into_facts()
}

/// Returns facts of the host of each server that was started or watched, else of the target's host.
fn server_hosts(dir: &RunDir, recording: Option<&Recording>) -> Vec<HostFacts> {
    let facts = &dir.run.facts;
    // Each has its command line there: `server.NAME.command` on this host, `server-HOST.NAME.command` on others.
    let started = facts.keys().filter_map(|key| key.strip_suffix(".command"));
    let mut started: Vec<&str> =
        started.filter(|key| key.starts_with("server.") || key.starts_with("server-")).collect();
    started.sort_by_cached_key(|key| natural_key(key));
    if !started.is_empty() {
        let each = started.iter().map(|key| {
            let host = key.strip_prefix("server-").and_then(|rest| rest.rsplit_once('.'));
            let host = host.map(|(host, _)| host.to_owned());
            let cpus = facts.get(&format!("{key}.{PROCESS_CPUS}")).cloned();
            host_facts(dir, host.as_ref(), Cpus::Known(cpus))
        });
        return each.collect();
    }
    if let Some(watched) = facts.get(WATCHED) {
        let hosts = watched.split(WATCHED_BETWEEN).map(str::to_owned);
        return hosts.map(|host| host_facts(dir, Some(&host), Cpus::Known(None))).collect();
    }
    let source = recording.map_or("", Recording::host_source);
    match source.strip_prefix("host-").map(str::to_owned) {
        Some(host) => vec![host_facts(dir, Some(&host), Cpus::Known(None))],
        None if facts.get(ELSEWHERE).is_some_and(|is| is == "true") => Vec::new(),
        // The server that dyno brings itself may have a core of its own.
        None => vec![host_facts(dir, None, Cpus::Known(facts.get("server.core").cloned()))],
    }
}

/// Reads an agent's description of its host.
fn read_environment(dir: &RunDir, name: &str) -> Option<Environment> {
    let text = files::read(&dir.path.join(format!("environment-{name}.json"))).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Facts of pods by their names.
type Pods<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

fn read_pods(dir: &RunDir) -> Pods<'_> {
    let mut pods = Pods::new();
    for (key, value) in &dir.run.facts {
        if let Some((name, fact)) = key.strip_prefix("pod.").and_then(|rest| rest.split_once('.')) {
            pods.entry(name).or_default().insert(fact, value);
        }
    }
    pods
}

fn sections_in_pods(dir: &RunDir, pods: &Pods) -> HostSections {
    let mut names: Vec<&str> = pods.keys().copied().collect();
    names.sort_by_cached_key(|name| natural_key(name));
    let (workers, servers): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| pods[name].get("component") == Some(&"worker"));
    let image = |name: &&str| pods[*name].get("image").copied();
    let common = servers.first().and_then(image).filter(|first| {
        let same = |name: &&str| image(name) == Some(first);
        servers.iter().all(same)
    });
    let facts = |name: &&str| pod_facts(dir, pods, name, common.filter(|_| servers.contains(name)));
    let mut sections = HostSections::of_servers(servers.iter().map(facts).collect());
    sections.image = common.map(str::to_owned);
    sections.clients = number_sections("client pod", workers.iter().map(facts));
    sections
}

/// Returns facts of a pod: of its node, as the cluster tells or as an agent there has found it, and of what it was given. An
/// image that was named before is left out.
fn pod_facts(dir: &RunDir, pods: &Pods, name: &str, named: Option<&str>) -> HostFacts {
    let own = &pods[name];
    let node = own.get("node").copied().unwrap_or_default();
    let agent = read_environment(dir, name);
    let mut neighbours = pods.iter().filter(|(_, facts)| facts.get("node") == Some(&node));
    let beside =
        if agent.is_some() { None } else { neighbours.find_map(|(name, _)| read_environment(dir, name)) };
    let found = agent.as_ref().or(beside.as_ref());
    let seen = found.map(KnownHost::from).unwrap_or_default();
    let told = |key: &str| dir.run.facts.get(&format!("node.{node}.{key}")).cloned();
    let memory =
        told("memory").and_then(|text| text.strip_suffix("Ki")?.parse::<u64>().ok()).map(|kib| kib << 10);
    let cores: Option<u64> =
        told("cores").or_else(|| recorded_fact(found?, CPUS)).and_then(|cores| cores.parse().ok());
    let given = own.get(PROCESS_CPUS).map(|cpus| (*cpus).to_owned());
    let mut facts = KnownHost {
        memory_bytes: memory.or(seen.memory_bytes),
        cpu: seen.cpu,
        cores: cores.or(seen.cores),
        kernel: told("kernel").or(seen.kernel),
        node: Some(node.to_owned()).filter(|node| !node.is_empty()),
        disk_bytes: seen.disk_bytes.or_else(|| told(NODE_DISK_USED)?.parse().ok()),
        cpu_list: given
            .or_else(|| recorded_fact(agent.as_ref()?, CPUS_ALLOWED))
            .or_else(|| all_cpus(cores?).filter(|_| !may_have_own_cores(own))),
    }
    .into_facts();
    let mut add = |wanted: &dyn Fn(&str) -> bool| {
        let found = own.iter().filter(|(key, _)| wanted(key));
        facts.extend(found.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    };
    add(&|key| key.starts_with("requests_"));
    add(&|key| key.starts_with("limits_"));
    add(&|key| key == "image_id" || key == "image" && named.is_none());
    facts
}

/// Returns the list of all cores of a node.
fn all_cpus(cores: u64) -> Option<String> {
    match cores {
        0 => None,
        1 => Some("0".to_owned()),
        cores => Some(format!("0-{}", cores - 1)),
    }
}

/// Returns whether a kubelet may have given a pod cores of its own: those of its class that ask for whole ones.
fn may_have_own_cores(own: &BTreeMap<&str, &str>) -> bool {
    let whole = own.get("requests_cpu").is_some_and(|cpus| cpus.parse::<u64>().is_ok());
    own.get("quality_of_service") == Some(&"Guaranteed") && whole
}
