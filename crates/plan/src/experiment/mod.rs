//! Experiment files: from YAML to a plan of runs. Pure: nothing is started, opened or asked.
//!
//! `spec`, `strategies`, `traces` and `fault` are what can be said, `faults` when they come,
//! `factors` what is varied, `order` in which order runs are made,
//! `estimate` how long that takes.
//!
//! ```text
//! text -> tree -- --set --> tree -- factors, overrides --> a tree for each cell --> Experiment for each cell
//!                                                          cells x repetitions, ordered --> runs
//! ```

mod estimate;
mod factors;
mod fault;
mod faults;
mod kubernetes;
mod order;
mod spec;
mod ssh;
mod strategies;
mod traces;

pub use estimate::{Estimate, estimate};
pub use factors::{ALIASES, Factor, Level, full_path};
pub use fault::{Fault, FaultKind, Moment, On};
pub use faults::{MOST_FAULTS, Planned as PlannedFault, schedule as schedule_faults};
pub use kubernetes::{Kubernetes, Pods, Pull, Quantity, Storage};
pub use spec::*;
pub use ssh::Ssh;
pub use strategies::*;
pub use traces::{Trace, TracedPhase};

use crate::server::Topology;
use crate::settings::mask_secret;
use crate::tree::{Node, TreeError};
use factors::{Filter, Override};

/// Most runs of one experiment: what a year of ten-minute runs comes to, so that a slip of a digit is caught.
pub const RUNS: usize = 50_000;

/// One cell of the matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// From 1.
    pub number: usize,
    /// The level of each factor: (factor, label).
    pub levels: Vec<(String, String)>,
    /// Everything that is said about it, with its origin; `{NAME}`s of `variables` are filled in.
    pub tree: Node,
    /// The same, typed.
    pub spec: Experiment,
    /// The tree before `{NAME}`s were filled in: a point of a search may set variables.
    unfilled: Node,
}

impl Cell {
    /// The cell with keys set to the values of a search's point: variables are filled in, and everything is checked, as
    /// if the file said so.
    pub fn at(&self, sets: &[(String, String)]) -> Result<(Experiment, Node), TreeError> {
        if sets.is_empty() {
            return Ok((self.spec.clone(), self.tree.clone()));
        }
        let mut tree = self.unfilled.clone();
        for (key, value) in sets {
            tree.set(factors::full_path(key), Node::from_option(&format!("{key}={value}"), "strategy"));
        }
        factors::fill_in(&mut tree)?;
        let spec: Experiment = tree.read()?;
        check(&tree, &spec)?;
        Ok((spec, tree))
    }

    /// Its levels in words: `users=4 workload=a`; `all` where nothing is varied.
    pub fn label(&self) -> String {
        let words: Vec<String> = self.levels.iter().map(|(name, label)| format!("{name}={label}")).collect();
        if words.is_empty() { "all".into() } else { words.join(" ") }
    }
}

/// One run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its place in the order, from 1.
    pub number: usize,
    /// Index of its cell.
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
}

/// An experiment, resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Part of the directory's name.
    pub name: String,
    /// What holds for the whole experiment (the first cell's values where a factor varies them).
    pub base: Experiment,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// The matrix.
    pub cells: Vec<Cell>,
    /// Runs in their order.
    pub runs: Vec<PlannedRun>,
}

/// Reads an experiment; `path` is what messages call the text, `sets` are `--set`'s `KEY=VALUE`.
pub fn plan(text: &str, path: &str, sets: &[String]) -> Result<Plan, TreeError> {
    let mut tree = Node::parse(text, path)?;
    if tree.entries().is_none() {
        return Err(tree.error("", "expected a mapping such as `target: redis://127.0.0.1:6379`"));
    }
    let mut given =
        Given { last: Vec::new(), written: tree.get("factors").map(factors::labels).unwrap_or_default() };
    for set in sets {
        given.last.extend(apply(&mut tree, set)?);
    }
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".yaml").trim_end_matches(".yml");
    plan_of(tree, stem, &given)
}

/// An experiment's text with every secret in it masked; text that is no YAML is left out.
pub fn masked(text: &str) -> String {
    Node::parse(text, "").map_or_else(|_| String::new(), |tree| tree.masked(text))
}

/// `KEY=VALUE` with a secret in it masked.
pub fn masked_set(set: &str) -> String {
    match set.split_once('=') {
        Some((key, value)) => format!("{key}={}", mask_secret(key, value)),
        None => set.to_owned(),
    }
}

/// `--set KEY=VALUE`: replaces the factor that varies the key, else the value; then the key and the value, which have the
/// last word over levels that set the key beside others.
fn apply(tree: &mut Node, set: &str) -> Result<Option<(String, Node)>, TreeError> {
    let node = Node::from_option(set, "--set");
    let Some((key, words)) = set.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err(node.error("", "expected KEY=VALUE, such as --set phases.measure.users=8"));
    };
    if let Some(mut all) = tree.take("factors") {
        let replaced = factors::replace(&mut all, key, words, &node);
        tree.set("factors", all);
        if replaced? {
            return Ok(None);
        }
    }
    let whole = factors::full_path(key).to_owned();
    tree.set(&whole, node.clone());
    Ok(Some((whole, node)))
}

/// What `--set` has done to factors.
struct Given {
    /// Keys and values that replace what levels of several keys say.
    last: Vec<(String, Node)>,
    /// Labels of the levels before.
    written: Vec<(String, Vec<String>)>,
}

fn plan_of(mut tree: Node, stem: &str, given: &Given) -> Result<Plan, TreeError> {
    let mut factors = match tree.take("factors") {
        Some(node) => factors::read(&node)?,
        None => Vec::new(),
    };
    for factor in &mut factors {
        factor.levels.iter_mut().for_each(|level| level.give(&given.last));
        let before = given.written.iter().find(|(name, _)| *name == factor.name);
        factor.gone = before.map_or(Vec::new(), |(_, labels)| labels.clone());
    }
    let excluded = tree.take("exclude");
    let exclude = excluded.as_ref().map_or(Ok(Vec::new()), |node| Filter::read_all(node, &factors))?;
    let overrides =
        tree.take("overrides").map_or(Ok(Vec::new()), |node| Override::read_all(&node, &factors))?;
    let mut cells = Vec::new();
    for levels in factors::product(&factors, RUNS).map_err(|text| tree.error("factors", text))? {
        let names: Vec<(String, String)> =
            factors.iter().zip(&levels).map(|(f, level)| (f.name.clone(), level.label.clone())).collect();
        if exclude.iter().any(|filter| filter.matches(&names)) {
            continue;
        }
        let mut own = tree.clone();
        for (path, value) in levels.iter().flat_map(|level| &level.set) {
            own.set(path, value.clone());
        }
        for change in overrides.iter().filter(|change| change.when.matches(&names)) {
            for (path, value) in &change.set {
                own.set(path, value.clone());
            }
        }
        let unfilled = own.clone();
        factors::fill_in(&mut own)?;
        let spec: Experiment = own.read()?;
        check(&own, &spec)?;
        let shown = names
            .into_iter()
            .zip(&levels)
            .map(|((name, label), level)| (name, label + &level.changed))
            .collect();
        let cell = Cell { number: cells.len() + 1, levels: shown, tree: own, spec, unfilled };
        if let Some(strategy) = &cell.spec.strategy {
            check_strategy(&cell, strategy, &factors)?;
        }
        cells.push(cell);
    }
    let Some(base) = cells.first().map(|cell| cell.spec.clone()) else {
        return Err(excluded.as_ref().unwrap_or(&tree).error("exclude", "leaves no cell of the matrix"));
    };
    let runs = order::order(cells.len(), base.repetitions, base.order, base.seed);
    if runs.len() > RUNS {
        return Err(tree.error("repetitions", format!("{} runs: expected at most {RUNS}", runs.len())));
    }
    Ok(Plan { name: base.name.clone().unwrap_or_else(|| stem.to_owned()), base, factors, cells, runs })
}

/// What the types cannot say.
fn check(tree: &Node, spec: &Experiment) -> Result<(), TreeError> {
    let refuse = |path: &str, text: &str| {
        let node = tree.find(path).unwrap_or(tree);
        Err(node.error(path, text))
    };
    let work = &spec.workload;
    let kinds =
        [work.ycsb.is_some(), work.documents.is_some(), work.sysbench.is_some(), work.pocdriver.is_some()];
    if kinds.iter().filter(|there| **there).count() > 1 {
        return refuse("workload", "expected one of ycsb, documents, sysbench, pocdriver");
    }
    if spec.target.is_some() && spec.server.is_some() {
        return refuse("server", "a target that exists is named too: remove target or server");
    }
    if let Some(Err(why)) = spec.server.as_ref().map(crate::server::ServerSpec::check) {
        return at(tree, "server", &why);
    }
    if let Err((path, why)) =
        check_ssh(spec).and_then(|()| check_kubernetes(spec)).and_then(|()| check_volume(spec))
    {
        return refuse(path, why);
    }
    if let Err(why) = spec.host.check() {
        return at(tree, "host", &why);
    }
    if let Err(why) = spec.client.placement.check() {
        return at(tree, "client.placement", &why);
    }
    if let Err(why) = spec.client.limits.check() {
        return at(tree, "client.limits", &why);
    }
    if spec.repetitions == 0 {
        return refuse("repetitions", "0: expected 1 or more");
    }
    if spec.client.workers == 0 {
        return refuse("client.workers", "0: expected 1 or more");
    }
    let (load, measure) = (&spec.phases.load, &spec.phases.measure);
    // Hosts of ssh are not counted here: a group may be of any size.
    let pods = spec.kubernetes.as_ref().map_or(1, |asked| asked.worker_pods);
    let most = if spec.ssh.clients.is_empty() { spec.client.workers.saturating_mul(pods) } else { u32::MAX };
    for (path, asked) in [("phases.load.workers", load.workers), ("phases.measure.workers", measure.workers)]
    {
        if asked.is_some_and(|workers| workers == 0 || workers > most) {
            return refuse(path, "expected 1 or more, and no more than there are workers");
        }
    }
    if measure.rate.is_some() && measure.think.is_some() {
        return refuse("phases.measure.think", "users think in a closed loop only: remove think or rate");
    }
    if let Err((path, text)) = check_warmup(spec) {
        return refuse(path, text);
    }
    if spec.monitors.interval.0 < 10_000_000 {
        return refuse("monitors.interval", "expected 10ms or more");
    }
    if let (Some(from), Some(to)) = (&spec.window.from, &spec.window.to)
        && from >= to
    {
        return refuse("window.to", "expected a time after window.from");
    }
    check_window(spec).or_else(|why| refuse("window.to", &why))?;
    if measure.users == Some(0) {
        return refuse("phases.measure.users", "0: expected 1 or more");
    }
    faults::check(tree, spec)
}

/// A window lies within the phase: beyond its end there is nothing to be counted.
fn check_warmup(spec: &Experiment) -> Result<(), (&'static str, &'static str)> {
    let Some(warmup) = &spec.phases.warmup else { return Ok(()) };
    let measure = &spec.phases.measure;
    if measure.warmup.is_some() {
        return Err((
            "phases.measure.warmup",
            "phases.warmup says how long the warm-up is: remove one of the two",
        ));
    }
    if warmup.users == Some(0) {
        return Err(("phases.warmup.users", "0: expected 1 or more"));
    }
    if warmup.users.is_some() && measure.rate.is_some() {
        return Err(("phases.warmup.users", "with phases.measure.rate the schedule decides: expected rate"));
    }
    if warmup.rate.is_some() && measure.rate.is_none() {
        return Err((
            "phases.warmup.rate",
            "the measured phase is a closed loop: expected users, or phases.measure.rate too",
        ));
    }
    Ok(())
}

fn check_window(spec: &Experiment) -> Result<(), String> {
    let measure = &spec.phases.measure;
    let length = match (&measure.duration, &measure.operations) {
        (Some(span), _) => span.clone(),
        (None, None) => crate::values::Span(10_000_000_000),
        (None, Some(_)) => return Ok(()),
    };
    match [&spec.window.to, &spec.window.from].into_iter().flatten().find(|time| **time > length) {
        Some(time) => Err(format!("{time}: expected a time within the measured phase, which lasts {length}")),
        None => Ok(()),
    }
}

fn check_kubernetes(spec: &Experiment) -> Result<(), (&'static str, &'static str)> {
    let Some(kubernetes) = &spec.kubernetes else { return Ok(()) };
    if !spec.ssh.is_nothing() {
        return Err(("kubernetes", "hosts of ssh are named too: remove one of the two"));
    }
    if kubernetes.worker_pods == 0 {
        return Err(("kubernetes.worker_pods", "0: expected 1 or more"));
    }
    if [&kubernetes.workers, &kubernetes.servers].iter().any(|pods| pods.max_skew == Some(0)) {
        return Err(("kubernetes", "max_skew: 0: expected 1 or more"));
    }
    let target = spec.target.as_deref().unwrap_or("spawn:");
    if spec.server.is_none() && (target.starts_with("spawn:") || target.contains("{dir}")) {
        return Err(("target", "workers run in pods: expected a server, or a target that they can reach"));
    }
    if spec.server_lifetime == Lifetime::Shared {
        return Err(("server_lifetime", "servers in pods live for a run: expected run"));
    }
    if let Some(server) = &spec.server {
        if !server.placement.is_nothing() || !server.limits.is_nothing() {
            return Err((
                "server",
                "placement and limits are for this host: expected kubernetes.servers instead",
            ));
        }
        if server.data.snapshot || server.data.path.is_some() || server.data.image.is_some() {
            return Err(("server.data", "is for this host: expected kubernetes.storage instead"));
        }
    }
    if !spec.client.placement.is_nothing() || !spec.client.limits.is_nothing() {
        return Err((
            "client",
            "placement and limits are for this host: expected kubernetes.workers instead",
        ));
    }
    Ok(())
}

/// A volume needs somewhere to be, and a server that begins with it.
fn check_volume(spec: &Experiment) -> Result<(), (&'static str, &'static str)> {
    let Some(data) = spec.server.as_ref().map(|server| &server.data).filter(|data| data.volume.is_some())
    else {
        return Ok(());
    };
    let key = "server.data.volume";
    if !spec.ssh.servers.is_empty() {
        return Err((key, "volumes are of this host or of Kubernetes, not of hosts of ssh"));
    }
    if spec.server_lifetime == Lifetime::Shared {
        return Err((key, "every run begins with the volume's data: expected server_lifetime: run"));
    }
    let set = spec.server.as_ref().filter(|server| server.topology == Topology::ReplicaSet);
    if set.is_some_and(|server| spec.kubernetes.is_some() || server.port.is_none()) {
        return Err((
            key,
            "members of a replica set stand in its data by address: expected server.port, on this host",
        ));
    }
    match &spec.kubernetes {
        Some(asked) if asked.storage.is_none() => {
            Err((key, "expected kubernetes.storage, too: its claims are the volume"))
        }
        None if data.path.is_none() => {
            Err((key, "expected server.data.path, too: a folder that outlives the run"))
        }
        _ => Ok(()),
    }
}

/// Hosts that are elsewhere must have something to do there, and be able to do it.
fn check_ssh(spec: &Experiment) -> Result<(), (&'static str, &'static str)> {
    let ssh = &spec.ssh;
    if !ssh.servers.is_empty() && spec.server.is_none() {
        return Err(("ssh.servers", "expected a server, too, which says what is started there"));
    }
    if !ssh.servers.is_empty() && spec.server_lifetime == Lifetime::Shared {
        return Err(("server_lifetime", "servers on other hosts live for a run: expected run"));
    }
    if ssh.clients.is_empty() {
        return Ok(());
    }
    let here = spec.server.is_some() && ssh.servers.is_empty();
    if here && spec.server.as_ref().is_some_and(|server| server.address.is_none()) {
        return Err((
            "server",
            "its clients are on other hosts: expected server.address, an address of this host",
        ));
    }
    let target = spec.target.as_deref().unwrap_or("spawn:");
    if spec.server.is_none() && (target.starts_with("spawn:") || target.contains("{dir}")) {
        return Err((
            "target",
            "workers run on other hosts (ssh.clients): expected a target that they can reach",
        ));
    }
    if !spec.client.placement.is_nothing() || !spec.client.limits.is_nothing() {
        return Err((
            "client",
            "placement and limits are for workers of this host: remove them or ssh.clients",
        ));
    }
    Ok(())
}

/// What is searched is not varied by a factor, too: its levels would all make the same search.
fn check_strategy(cell: &Cell, strategy: &Strategy, factors: &[Factor]) -> Result<(), TreeError> {
    let (name, keys): (&str, Vec<&str>) = match strategy {
        Strategy::Ladder(_) => ("ladder", vec!["phases.measure.users"]),
        Strategy::HighestRate(_) => ("highest_rate", vec!["phases.measure.rate"]),
        Strategy::RepeatUntil(_) => ("repeat_until", Vec::new()),
        Strategy::Tune(tune) => ("tune", tune.parameters.keys().map(|key| factors::full_path(key)).collect()),
    };
    for factor in factors {
        let set = factor.levels.iter().flat_map(|level| &level.set);
        if let Some((key, at)) = set.into_iter().find(|(key, _)| keys.contains(&key.as_str())) {
            let text = format!("{key} is what strategy.{name} searches: remove one of the two");
            return Err(at.error(&format!("factors.{}", factor.name), text));
        }
    }
    match strategy {
        Strategy::Tune(tune) => check_tune(cell, tune),
        _ => Ok(()),
    }
}

/// Parameters must be there, be keys of the file, and have values, each of which makes an experiment that can be run and
/// that is not what another value makes.
fn check_tune(cell: &Cell, tune: &Tune) -> Result<(), TreeError> {
    let path = "strategy.tune.parameters";
    let place = cell.tree.find(path).unwrap_or(&cell.tree);
    let refuse = |text: String| Err(place.error(path, text));
    if tune.parameters.is_empty() {
        return refuse("expected a mapping of keys to values".into());
    }
    for (key, levels) in &tune.parameters {
        let values = match levels.values() {
            Ok(values) => values,
            Err(why) => return refuse(format!("{key}: {why}")),
        };
        for value in &values {
            cell.at(&[(key.clone(), value.clone())])?;
        }
        if let Some(name) = key.strip_prefix("variables.")
            && !factors::is_used(&cell.unfilled, name)
        {
            return refuse(format!("{key}: no text of the file has {{{name}}}, so nothing would change"));
        }
    }
    if tune.configurations < 2 {
        return Err(place.error("strategy.tune.configurations", "expected 2 or more"));
    }
    Ok(())
}

/// An error whose words begin with the key below `path`.
fn at(tree: &Node, path: &str, why: &str) -> Result<(), TreeError> {
    let (key, text) = why.split_once(": ").unwrap_or(("", why));
    let whole = if key.is_empty() { path.to_owned() } else { format!("{path}.{key}") };
    let node = tree.find(&whole).or_else(|| tree.find(path)).unwrap_or(tree);
    Err(node.error(&whole, text))
}

/// The JSON Schema of experiment files.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Experiment);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
