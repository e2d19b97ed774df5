//! From the text of an experiment to its matrix of cells, and the runs to be made of them.

use crate::experiment::cell::MatrixCell;
use crate::experiment::factors::{self, Factor, Filter, Override};
use crate::experiment::order::{PlannedRun, order};
use crate::experiment::spec::Experiment;
use crate::experiment::strategy_check::check_strategy;
use crate::tree::{Node, TreeError, Value, masked_option};
use dyno_types::limits::RUNS;

/// An experiment, resolved.
#[derive(Clone, Debug)]
pub struct ExperimentPlan {
    /// Part of the directory's name.
    pub name: String,
    /// Values that hold for the whole experiment (the first cell's values where a factor varies them).
    pub base: Experiment,
    /// Factors that are varied.
    pub factors: Vec<Factor>,
    /// Factors that vary nothing, because the target that `--set` names runs already.
    pub left_out: Vec<String>,
    /// The matrix.
    pub cells: Vec<MatrixCell>,
    /// Runs in their order.
    pub runs: Vec<PlannedRun>,
}

/// Reads an experiment; `path` is what messages call the text, `sets` are `--set`'s `KEY=VALUE`.
pub fn read_plan(text: &str, path: &str, sets: &[String]) -> Result<ExperimentPlan, TreeError> {
    let mut tree = Node::parse(text, path)?;
    if tree.entries().is_none() {
        return Err(tree.error_at("", "expected a mapping such as `target: redis://127.0.0.1:6379`"));
    }
    let mut given = SetChanges {
        last: Vec::new(),
        written: tree.get("factors").map(factors::labels).unwrap_or_default(),
        takes_server: false,
    };
    for set in sets {
        given.last.extend(apply(&mut tree, set)?);
    }
    given.takes_server = replace_other_place(&mut tree, sets);
    tree.remember_secrets();
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".yaml").trim_end_matches(".yml");
    plan_of(tree, stem, &given)
}

/// An experiment's text with every secret in it masked; text that is no YAML is left out.
pub fn mask_text(text: &str) -> String {
    Node::as_written(text, "").map_or_else(|_| String::new(), |tree| tree.mask_secrets("", text))
}

/// `KEY=VALUE` with a secret in it masked.
pub fn masked_set(set: &str) -> String {
    masked_option(set)
}

/// `--set KEY=VALUE`: replaces the factor that varies the key, else the value; then the key and the value, which have the
/// last word over levels that set the key beside others.
fn apply(tree: &mut Node, set: &str) -> Result<Option<(String, Node)>, TreeError> {
    let node = Node::from_option(set, "--set");
    let Some((key, message)) = set.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err(node.error_at("", "expected KEY=VALUE, such as --set phases.measure.users=8"));
    };
    if let Some(mut all) = tree.take_key("factors") {
        let replaced = factors::replace(&mut all, key, message, &node);
        tree.set_path("factors", all);
        if replaced? {
            return Ok(None);
        }
    }
    let whole = factors::full_path(key).to_owned();
    factors::known("", &whole, &node)?;
    tree.set_path(&whole, node.clone());
    Ok(Some((whole, node)))
}

/// A target that `--set` names takes the place of the file's server with all that is said of it, and the other way round: a
/// file has one of both. Returns whether a target was named.
fn replace_other_place(tree: &mut Node, sets: &[String]) -> bool {
    let is_set = |key: &str| sets.iter().any(|set| set.split(['=', '.']).next() == Some(key));
    let given = |key: &str| is_set(key) && tree.get(key).is_some_and(|node| node.value != Value::Null);
    let (target, server) = (given("target"), given("server"));
    if target && !is_set("server") {
        for key in ["server", "server_lifetime"].into_iter().filter(|key| !is_set(key)) {
            tree.take_key(key);
        }
        return true;
    }
    if server && !is_set("target") {
        tree.take_key("target");
    }
    false
}

/// A list without the items that speak of factors that are left out, in themselves or below the key `within`.
fn without_factors(mut list: Node, within: Option<&str>, left_out: &[String]) -> Node {
    if let Value::List(all) = &mut list.value {
        all.retain(|one| {
            let said = within.map_or(Some(one), |key| one.get(key));
            !left_out.iter().any(|factor| said.is_some_and(|said| said.get(factor).is_some()))
        });
    }
    list
}

/// Changes that `--set` has made to factors.
struct SetChanges {
    /// Keys and values that replace what levels of several keys say.
    last: Vec<(String, Node)>,
    /// Labels of the levels before.
    written: Vec<(String, Vec<String>)>,
    /// A target took the place of the server.
    takes_server: bool,
}

fn plan_of(mut tree: Node, stem: &str, given: &SetChanges) -> Result<ExperimentPlan, TreeError> {
    let mut factors = match tree.take_key("factors") {
        Some(node) => factors::read(&node)?,
        None => Vec::new(),
    };
    let left_out =
        if given.takes_server { factors::leave_out_server(&mut factors, &tree) } else { Vec::new() };
    for factor in &mut factors {
        factor.levels.iter_mut().for_each(|level| level.give(&given.last));
        let before = given.written.iter().find(|(name, _)| *name == factor.name);
        factor.gone = before.map_or(Vec::new(), |(_, labels)| labels.clone());
    }
    let excluded = tree.take_key("exclude").map(|node| without_factors(node, None, &left_out));
    let exclude = excluded.as_ref().map_or(Ok(Vec::new()), |node| Filter::read_all(node, &factors))?;
    let overrides = tree.take_key("overrides").map(|node| without_factors(node, Some("when"), &left_out));
    let overrides = overrides.map_or(Ok(Vec::new()), |node| Override::read_all(&node, &factors))?;
    let mut cells = Vec::new();
    let combinations = factors::product(&factors, RUNS);
    for levels in combinations.ok_or_else(|| tree.error_at("factors", format!("more than {RUNS} cells")))? {
        let names: Vec<(String, String)> =
            factors.iter().zip(&levels).map(|(f, level)| (f.name.clone(), level.label.clone())).collect();
        if exclude.iter().any(|filter| filter.matches(&names)) {
            continue;
        }
        let mut own = tree.clone();
        for (path, value) in levels.iter().flat_map(|level| &level.set) {
            own.set_path(path, value.clone());
        }
        for change in overrides.iter().filter(|change| change.when.matches(&names)) {
            for (path, value) in &change.set {
                own.set_path(path, value.clone());
            }
        }
        let unfilled = own.clone();
        factors::fill_in(&mut own)?;
        let spec = Experiment::from_tree(&own)?;
        let shown = names
            .into_iter()
            .zip(&levels)
            .map(|((name, label), level)| (name, label + &level.changed))
            .collect();
        let cell = MatrixCell { number: cells.len() + 1, levels: shown, tree: own, spec, unfilled };
        if let Some(strategy) = &cell.spec.strategy {
            check_strategy(&cell, strategy, &factors)?;
        }
        cells.push(cell);
    }
    let Some(base) = cells.first().map(|cell| cell.spec.clone()) else {
        return Err(excluded.as_ref().unwrap_or(&tree).error_at("exclude", "leaves no cell of the matrix"));
    };
    // Before there is a list of them.
    let count = (cells.len() as u64).saturating_mul(base.repetitions.into());
    if count > RUNS as u64 {
        return Err(tree.error_at("repetitions", format!("{count} runs: expected at most {RUNS}")));
    }
    let runs = order(cells.len(), base.repetitions, base.order, base.seed);
    Ok(ExperimentPlan {
        name: base.name.clone().unwrap_or_else(|| stem.to_owned()),
        base,
        factors,
        left_out,
        cells,
        runs,
    })
}
