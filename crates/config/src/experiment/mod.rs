//! Experiment files: from YAML to a plan of runs. Pure: nothing is started, opened or asked.
//!
//! `spec`, `strategies`, `traces` and `fault` are what can be said, `faults` when they come,
//! `check` what the types cannot say, `factors` what is varied, `order` in which order runs are made,
//! `estimate` how long that takes.
//!
//! ```text
//! text -> tree -- --set --> tree -- factors, overrides --> a tree for each cell --> Experiment for each cell
//!                                                          cells x repetitions, ordered --> runs
//! ```

pub mod check;
pub mod estimate;
pub mod factors;
pub mod fault;
pub mod faults;
pub mod kubernetes;
pub mod order;
pub mod spec;
pub mod ssh;
pub mod strategies;
pub mod traces;

use crate::experiment::check::{check, check_strategy};
use crate::experiment::factors::Factor;

pub use crate::experiment::spec::*;

pub use crate::experiment::strategies::*;

use crate::experiment::factors::{Filter, Override};
use crate::tree::{Node, TreeError, masked_option};

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
    /// if the file said so. The tree's secrets are masked.
    pub fn at(&self, sets: &[(String, String)]) -> Result<(Experiment, Node), TreeError> {
        if sets.is_empty() {
            return Ok((self.spec.clone(), self.shown()?));
        }
        let mut tree = self.unfilled.clone();
        for (key, value) in sets {
            tree.set(factors::full_path(key), Node::from_option(&format!("{key}={value}"), "strategy"));
        }
        let shown = shown(&tree)?;
        factors::fill_in(&mut tree)?;
        let spec: Experiment = tree.read()?;
        check(&tree, &spec)?;
        Ok((spec, shown))
    }

    /// Tree with secrets masked, those that `{NAME}`s put anywhere included.
    pub fn shown(&self) -> Result<Node, TreeError> {
        shown(&self.unfilled)
    }

    /// Levels in words: `users=4 workload=a`; `all` where nothing is varied.
    pub fn label(&self) -> String {
        let words: Vec<String> = self.levels.iter().map(|(name, label)| format!("{name}={label}")).collect();
        if words.is_empty() { "all".into() } else { words.join(" ") }
    }
}

fn shown(unfilled: &Node) -> Result<Node, TreeError> {
    let mut shown = unfilled.shown("");
    factors::fill_in(&mut shown)?;
    Ok(shown)
}

/// One run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Place in the order, from 1.
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
    tree.remember_secrets();
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".yaml").trim_end_matches(".yml");
    plan_of(tree, stem, &given)
}

/// An experiment's text with every secret in it masked; text that is no YAML is left out.
pub fn masked(text: &str) -> String {
    Node::as_written(text, "").map_or_else(|_| String::new(), |tree| tree.masked("", text))
}

/// `KEY=VALUE` with a secret in it masked.
pub fn masked_set(set: &str) -> String {
    masked_option(set)
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
    let combinations = factors::product(&factors, RUNS);
    for levels in combinations.ok_or_else(|| tree.error("factors", format!("more than {RUNS} cells")))? {
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
    // Before there is a list of them.
    let count = (cells.len() as u64).saturating_mul(base.repetitions.into());
    if count > RUNS as u64 {
        return Err(tree.error("repetitions", format!("{count} runs: expected at most {RUNS}")));
    }
    let runs = order::order(cells.len(), base.repetitions, base.order, base.seed);
    Ok(Plan { name: base.name.clone().unwrap_or_else(|| stem.to_owned()), base, factors, cells, runs })
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
