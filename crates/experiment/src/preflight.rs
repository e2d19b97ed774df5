//! Things that a plan asks for and this machine does not have: cores, memory, programs. Looks, touches nothing.

use crate::check::placed;
use dyno_config::experiment::traces::{Trace, TracedPhase};
use dyno_config::experiment::{Experiment, MatrixCell};
use dyno_config::server::placement::{Placement, Policy};
use dyno_config::server::{IfNotPermitted, ServerSpec};
use dyno_config::tree::TreeError;
use dyno_databases::spawn::{find_server, meant};
use dyno_hosts::servers::engine_trial::{EngineTrial, try_engine};
use dyno_hosts::servers::placement;
use dyno_hosts::servers::preflight::{find_program, find_router, version_of};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_monitor::topology::{Topology, list};
use dyno_session::work::ycsb::idle_properties;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Something that cells ask for and this machine does not have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmetRequirement {
    /// Where the file says it (`x.yaml:3:9`), or the option or variable.
    pub place: String,
    /// The key; empty where a variable stands for it.
    pub key: String,
    /// True if it cannot be carried out here; otherwise it can, and is worth a warning.
    pub refused: bool,
    /// Describes what is wrong, and what this machine has.
    pub text: String,
    /// Numbers of the cells.
    pub cells: Vec<usize>,
}

impl UnmetRequirement {
    fn of((refused, error): (bool, TreeError), cell: usize) -> Self {
        let (place, key) = (error.place_text(), error.written_key().to_owned());
        UnmetRequirement { place, key, refused, text: error.text, cells: vec![cell] }
    }

    /// In words, with the place first.
    pub fn describe_notes(&self, cells: usize) -> String {
        let of = match self.cells.len() {
            n if n == cells => String::new(),
            1 => format!(" (cell {})", self.cells[0]),
            n => format!(" (cells {} and {} more)", self.cells[0], n - 1),
        };
        let error = TreeError { origin: None, path: self.key.clone(), text: format!("{}{of}", self.text) };
        if self.place.is_empty() { error.to_string() } else { format!("{}: {error}", self.place) }
    }
}

/// A program that cells need and that is not installed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingProgram {
    /// Describes what is missing, and how to get it.
    pub text: String,
    /// Numbers of the cells.
    pub cells: Vec<usize>,
}

/// Cores and memory that cells ask for beyond this machine. One that does not tell its topology is not argued with.
pub fn unmet_requirements(cells: &[MatrixCell], machine: &Machine) -> Vec<UnmetRequirement> {
    let Ok(topology) = machine.machine_topology() else { return Vec::new() };
    let mut all: Vec<UnmetRequirement> = Vec::new();
    let mut known: Vec<(&Experiment, Vec<(bool, TreeError)>)> = Vec::new();
    for cell in cells {
        // Cells often differ in nothing that matters here.
        let same = |other: &&Experiment| {
            (&other.server, &other.client, &other.target, &other.workload)
                == (&cell.spec.server, &cell.spec.client, &cell.spec.target, &cell.spec.workload)
        };
        let before = known.iter().find(|(other, _)| same(other)).map(|(_, errors)| errors.clone());
        let errors = before.unwrap_or_else(|| {
            let errors = of_cell(cell, &topology);
            known.push((&cell.spec, errors.clone()));
            errors
        });
        for error in errors {
            let found = UnmetRequirement::of(error, cell.number);
            let alike = |one: &&mut UnmetRequirement| (&one.place, &one.text) == (&found.place, &found.text);
            match all.iter_mut().find(alike) {
                Some(one) => one.cells.push(cell.number),
                None => all.push(found),
            }
        }
    }
    all
}

/// Returns each problem of a cell, and whether it refuses the cell.
fn of_cell(cell: &MatrixCell, topology: &Topology) -> Vec<(bool, TreeError)> {
    let spec = &cell.spec;
    let told = |path: &str, text: String| (true, placed(&cell.tree, path, text));
    let mut errors = Vec::new();
    let (mut of_server, mut of_client) = (None, None);
    // A server on other hosts is compared with them when it is started.
    let server = spec.server.as_ref().filter(|_| spec.ssh.servers.is_empty() && spec.kubernetes.is_none());
    if let Some(server) = server {
        let ports: Vec<u16> = (0..server.processes() as u16).map(|n| server.port.unwrap_or(0) + n).collect();
        match placement::plan_placement(&server.placement, topology, &ports) {
            Ok(plans) => {
                if let Some(beyond) = placement::beyond_memory(server, &plans, topology) {
                    let (key, refused) =
                        if beyond.limits { ("server.limits.memory", true) } else { ("server.cache", false) };
                    errors.push((refused, placed(&cell.tree, key, beyond.text)));
                }
                of_server = listed(&server.placement, &plans);
            }
            Err(error) => errors.push(told(&key("server.placement", &server.placement), bare(&error))),
        }
    }
    let pairs = spec.server.as_ref().map_or(1, |server| server.instances as usize);
    let workers = vec![0; pairs * spec.client.workers as usize];
    // Workers in pods have the cores of their nodes.
    let placement =
        Some(&spec.client.placement).filter(|_| spec.kubernetes.is_none()).cloned().unwrap_or_default();
    match placement::plan_placement(&placement, topology, &workers) {
        Ok(plans) => of_client = listed(&placement, &plans),
        Err(error) => errors.push(told(&key("client.placement", &spec.client.placement), bare(&error))),
    }
    if let Some(cores) = &spec.client.cores {
        match cores.0.iter().find(|core| !topology.cpus.contains_key(core)) {
            Some(beyond) => {
                let there: Vec<usize> = topology.cpus.keys().copied().collect();
                let text = format!("core {beyond} is not there; this machine has {}", list(&there));
                errors.push(told("client.cores", text));
            }
            None => of_client = of_client.or(Some(cores.0.clone())),
        }
    }
    if let (Some(server), Some(client)) = (of_server, of_client) {
        let parties = [("server".to_owned(), server), ("client".to_owned(), client)];
        if let Err(error) = placement::check_apart(&parties) {
            errors.push(told("client", bare(&error)));
        }
    }
    errors.extend(of_store(spec).map(|text| told("client.limits.memory", text)));
    let ycsb = spec.workload.ycsb.iter();
    errors.extend(ycsb.flat_map(|ycsb| idle_properties(&ycsb.workload)).map(|idle| {
        let instead = idle.instead.map_or("`dyno ycsb` has it".into(), |key| format!("use {key}"));
        let text = format!("{}: {} has no effect on an experiment: {instead}", idle.source, idle.name);
        (false, placed(&cell.tree, "workload.ycsb.workload", text))
    }));
    errors
}

/// Cores that the file names or has dealt out; no party owns those of a whole node.
fn listed(asked: &Placement, plans: &[placement::Plan]) -> Option<Vec<usize>> {
    let own = asked.cores.is_some() || matches!(asked.policy, Policy::CoresEach | Policy::CoresEachSmt);
    own.then(|| plans.iter().flat_map(|plan| plan.cpus.clone().unwrap_or_default()).collect())
}

/// The key that a complaint about a placement is about.
fn key(path: &str, asked: &Placement) -> String {
    let last = match () {
        () if asked.numactl.is_some() => "numactl",
        () if asked.cores_each.is_some() => "cores_each",
        () if asked.cores.is_some() => "cores",
        () if asked.node.is_some() => "node",
        () => "policy",
    };
    format!("{path}.{last}")
}

fn bare(error: &LocalError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("placement: ").unwrap_or(&text);
    text.strip_prefix("numactl: ").unwrap_or(text).to_owned()
}

/// An embedded store lives in its worker: a limit below its cache ends the worker.
fn of_store(spec: &Experiment) -> Option<String> {
    let limit = spec.client.limits.memory.as_ref()?;
    let target = spec.target.as_ref()?;
    let (_, options) = target.split_once('?')?;
    let cache = options.split('&').find_map(|option| option.strip_prefix("cache="))?;
    let cache = dyno_types::units::parse_bytes(cache).ok()?;
    (limit.0 < cache)
        .then(|| format!("{limit} is less than the cache of the store in the worker ({} MiB)", cache >> 20))
}

/// Programs that cells need and that are not there, or in a version that lacks what the cells ask for.
pub fn missing_programs(cells: &[MatrixCell], machine: &Machine) -> Vec<MissingProgram> {
    let mut versions = BTreeMap::new();
    each(cells, |spec| {
        let absent = lacks(spec, machine).or_else(|| absent_in_version(spec, machine, &mut versions));
        absent.or_else(|| lacks_beside_server(spec, machine))
    })
}

/// Versions of programs that have been asked for theirs.
type Versions = BTreeMap<PathBuf, String>;

/// The server of a cell, if it is started on this host.
fn server_here(spec: &Experiment) -> Option<&ServerSpec> {
    spec.server.as_ref().filter(|_| spec.ssh.servers.is_empty() && spec.kubernetes.is_none())
}

/// What the version of a cell's program does not have. Asks the program for its version, once.
fn absent_in_version(spec: &Experiment, machine: &Machine, known: &mut Versions) -> Option<String> {
    let server = server_here(spec).filter(|server| server.kind.server_rules().has_engines())?;
    let program = find_program(server, machine).ok()?;
    let version = match known.get(&program) {
        Some(version) => version.clone(),
        None => {
            let version = version_of(server, machine).ok()?;
            known.insert(program.clone(), version.clone());
            version
        }
    };
    let absences = server.kind.server_rules().absences(server, &version);
    let all: Vec<String> = absences.iter().map(|absence| format!("server.{absence}")).collect();
    (!all.is_empty())
        .then(|| format!("{}: {}; server.program names another", program.display(), all.join("; ")))
}

/// Storage engines that cells need and that the mongod of this host does not have. Starts each of them for a moment.
pub fn missing_engines(cells: &[MatrixCell], machine: &Machine) -> Vec<MissingProgram> {
    let mut known: BTreeMap<(PathBuf, String), EngineTrial> = BTreeMap::new();
    let mut versions = BTreeMap::new();
    each(cells, |spec| {
        let server = server_here(spec).filter(|server| server.kind.server_rules().has_engines())?;
        let (engine, program) = (server.engine.as_ref()?, find_program(server, machine).ok()?);
        // It is reported already, and need not be started for that.
        if absent_in_version(spec, machine, &mut versions).is_some()
            || lacks_beside_server(spec, machine).is_some()
        {
            return None;
        }
        let trial =
            known.entry((program.clone(), engine.clone())).or_insert_with(|| try_engine(&program, engine));
        let name = program.display();
        match trial {
            EngineTrial::Listens | EngineTrial::Untried => None,
            EngineTrial::Unknown => {
                Some(format!("{name} has no storage engine {engine}: server.program names another"))
            }
            EngineTrial::Ended(why) => Some(format!("{name} ends with storage engine {engine}: {why}")),
            EngineTrial::Late => {
                Some(format!("{name} did not listen with storage engine {engine} within 30 s"))
            }
        }
    })
}

/// A program beside the server that a cell needs and that is not there: one that places processes, or one that traces them.
fn lacks_beside_server(spec: &Experiment, machine: &Machine) -> Option<String> {
    let placed = |key: &str, placement: &Placement, leave: IfNotPermitted| {
        let topology = machine.machine_topology().ok().filter(|_| leave == IfNotPermitted::Fail)?;
        let plan = placement::plan_placement(placement, &topology, &[0]).ok()?.into_iter().next()?;
        let program = plan.missing_program(&topology, machine)?;
        Some(format!("{program} is not installed: {key} needs it, or if_not_permitted: continue"))
    };
    let server = server_here(spec)
        .and_then(|server| placed("server.placement", &server.placement, server.if_not_permitted));
    let client = || {
        let own = spec.ssh.clients.is_empty() && spec.kubernetes.is_none();
        own.then(|| placed("client.placement", &spec.client.placement, spec.client.if_not_permitted))
            .flatten()
    };
    let tracer = || {
        let program = |trace: &Trace| trace.command.first().cloned();
        let is_absent = |program: &String| !program.contains('/') && machine.find_program(program).is_none();
        // Whether there is anything to load is not known here.
        let traces = spec.traces.iter().filter(|trace| trace.phase != TracedPhase::Load);
        let program = traces.filter_map(program).find(is_absent)?;
        Some(format!("{program} is not installed: traces need it"))
    };
    server.or_else(client).or_else(tracer)
}

fn each(cells: &[MatrixCell], mut of: impl FnMut(&Experiment) -> Option<String>) -> Vec<MissingProgram> {
    let mut all: Vec<MissingProgram> = Vec::new();
    for cell in cells {
        let Some(text) = of(&cell.spec) else { continue };
        match all.iter_mut().find(|one| one.text == text) {
            Some(one) => one.cells.push(cell.number),
            None => all.push(MissingProgram { text, cells: vec![cell.number] }),
        }
    }
    all
}

fn lacks(spec: &Experiment, machine: &Machine) -> Option<String> {
    if spec.server.is_some() && (!spec.ssh.servers.is_empty() || spec.kubernetes.is_some()) {
        return None;
    }
    if let Some(server) = &spec.server {
        let missing = find_program(server, machine).and(find_router(server, machine)).err()?.to_string();
        return Some(format!(
            "{}: {}; --set server.program=PATH names a program, --set server.kind=KIND another server",
            missing.trim_end_matches(" (program: names one)"),
            server.kind.server_rules().remedy()
        ));
    }
    let uri = spec.target.as_deref().unwrap_or("spawn:");
    if let Some(kind) = uri.strip_prefix("spawn:") {
        let wanted = Some(kind).filter(|kind| !kind.is_empty());
        if find_server(wanted).is_some() {
            return None;
        }
        let programs: Vec<&str> = meant(wanted).map(|kind| kind.program_name()).collect();
        let named = if programs.is_empty() { kind.to_owned() } else { programs.join(", ") };
        return Some(format!("no server on PATH ({named}); --set target=URI names one that runs"));
    }
    let scheme = uri.split(':').next().unwrap_or_default();
    dyno_db_embedded::KINDS.iter().find(|kind| kind.scheme == scheme)?.describe_missing()
}
