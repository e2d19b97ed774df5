//! Factors: their levels, and the cells that are left out or changed.
//!
//! A factor is a key of the experiment with several values, or a name of one's own whose levels set several keys together.

use crate::experiment::series::{SERIES, series};
use crate::tree::{Node, Origin, TreeError, Value};
use dyno_types::secret::mask_value;
use dyno_types::units::parse_number;

/// Short names of keys that are varied often.
pub const ALIASES: [(&str, &str); 10] = [
    ("users", "phases.measure.users"),
    ("connections", "phases.measure.connections"),
    ("rate", "phases.measure.rate"),
    ("duration", "phases.measure.duration"),
    ("warmup", "phases.measure.warmup"),
    ("think", "phases.measure.think"),
    ("pipeline", "phases.measure.pipeline"),
    ("operations", "phases.measure.operations"),
    ("records", "workload.ycsb.records"),
    ("ycsb", "workload.ycsb.workload"),
];

/// The key that a short name stands for, or the name itself.
pub fn full_path(name: &str) -> &str {
    ALIASES.iter().find(|(short, _)| *short == name).map_or(name, |(_, path)| path)
}

/// The short name of a key, or the key itself.
pub fn short_name(path: &str) -> &str {
    ALIASES.iter().find(|(_, known)| *known == path).map_or(path, |(short, _)| short)
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorLevel {
    /// Name of the level in tables, `exclude` and `overrides`.
    pub label: String,
    /// Keys and values that it sets.
    pub set: Vec<(String, Node)>,
    /// Changes that `--set` has made to it, in words that tables show after the label.
    pub changed: String,
}

impl FactorLevel {
    /// Replaces what it says of keys that `--set` names.
    pub(super) fn give(&mut self, last: &[(String, Node)]) {
        for (key, value) in last {
            let Some((_, own)) =
                self.set.iter_mut().find(|(known, own)| known == key && own.value != value.value)
            else {
                continue;
            };
            *own = value.clone();
            let short = short_name(key);
            self.changed.push_str(&format!(" {short}={}", mask_value(key, &value.to_label())));
        }
    }
}

/// A factor that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Name.
    pub name: String,
    /// Values.
    pub levels: Vec<FactorLevel>,
    /// Labels of levels that `--set` has taken away: `exclude` and `overrides` may name them still.
    pub gone: Vec<String>,
}

/// The labels of the levels of all factors, as they are written; nothing of what cannot be read.
pub(super) fn labels(all: &Node) -> Vec<(String, Vec<String>)> {
    let of = |(name, values): &(String, Node)| {
        let factor = factor(name, values).ok()?;
        Some((name.clone(), factor.levels.into_iter().map(|level| level.label).collect()))
    };
    all.entries().unwrap_or_default().iter().filter_map(of).collect()
}

/// A single value as a list of one; a list or a range as it is.
fn as_levels(node: Node) -> Node {
    match node.value {
        Value::List(_) | Value::Map(_) => node,
        _ => Node { origin: node.origin.clone(), value: Value::List(vec![node]) },
    }
}

/// Reads `factors:`.
pub(super) fn read(node: &Node) -> Result<Vec<Factor>, TreeError> {
    let Some(all) = node.entries() else {
        return Err(node.error_at("factors", "expected a mapping such as `users: [1, 2, 4]`"));
    };
    let mut factors: Vec<Factor> = Vec::new();
    let mut taken: Vec<(String, String)> = Vec::new();
    for (name, values) in all {
        let factor = factor(name, values)?;
        for (path, _) in &factor.levels[0].set {
            if let Some((_, other)) = taken.iter().find(|(known, _)| known == path) {
                return Err(values
                    .error_at(&format!("factors.{name}"), format!("{path} is varied by {other} already")));
            }
            taken.push((path.clone(), name.clone()));
        }
        factors.push(factor);
    }
    Ok(factors)
}

fn factor(name: &str, values: &Node) -> Result<Factor, TreeError> {
    let (key, list) = listed(name, values)?;
    levels(name, &key, &list, values.get("values").filter(|_| values.get("path").is_some()).unwrap_or(values))
}

/// The key that a factor varies, and its values as they are written: a list, a range, or one of them below
/// `{path: KEY, values: ...}` where the factor's name is not its key.
fn listed(name: &str, values: &Node) -> Result<(String, Vec<Node>), TreeError> {
    let path = format!("factors.{name}");
    match (&values.value, values.items()) {
        (_, Some(all)) => Ok((full_path(name).to_owned(), all.to_vec())),
        (Value::Map(_), _) if values.get("path").is_some() => {
            let key = values.get("path").map(Node::to_label).unwrap_or_default();
            let Some(values) = values.get("values") else {
                return Err(values.error_at(&path, "key \"values\" is missing"));
            };
            let list = values.items().map_or_else(|| range(values, &path), |all| Ok(all.to_vec()))?;
            Ok((full_path(&key).to_owned(), list))
        }
        (Value::Map(_), _) => Ok((full_path(name).to_owned(), range(values, &path)?)),
        _ => Err(values.error_at(&path, "expected a list, or a range such as {from: 1, to: 64, times: 2}")),
    }
}

/// `--set KEY=WORDS`, if `all`, the mapping of factors, has one of that name or one that varies that key: levels by their
/// labels, or new values. Whether it has.
pub(super) fn replace(all: &mut Node, key: &str, message: &str, node: &Node) -> Result<bool, TreeError> {
    let Value::Map(entries) = &mut all.value else { return Ok(false) };
    let varies = |(name, values): &(String, Node)| {
        let own = values.get("path").map_or_else(|| name.clone(), Node::to_label);
        name == key || full_path(&own) == full_path(key)
    };
    // A factor of that very name comes first.
    let at = entries.iter().position(|(name, _)| name == key).or_else(|| entries.iter().position(varies));
    let Some((name, values)) = at.map(|at| &mut entries[at]) else { return Ok(false) };
    let known = listed(name, values).map(|(_, list)| list).unwrap_or_default();
    let label = |node: &Node| node.with_masked_secrets(key).to_label();
    // As tables show them, too: `LABEL KEY=VALUE`, where an earlier `--set` has changed the level. Labels of levels that set
    // keys together may look like that by themselves: the longest that fits is meant, the very label before all.
    let shown = |label: &str, wanted: &str| {
        let more = wanted.strip_prefix(label).and_then(|rest| rest.strip_prefix(' '));
        label == wanted || more.is_some_and(|more| more.split(' ').all(|word| word.contains('=')))
    };
    let one = |wanted: &str| {
        let fitting = known.iter().filter(|node| shown(&label(node), wanted));
        fitting.max_by_key(|node| label(node).len()).cloned()
    };
    let by_label =
        |wanted: &[Node]| wanted.iter().map(|node| one(&label(node))).collect::<Option<Vec<Node>>>();
    let chosen = one(message)
        .map(|one| vec![one])
        .or_else(|| by_label(node.items().unwrap_or(std::slice::from_ref(node))));
    let together = !known.is_empty() && known.iter().all(|node| node.entries().is_some());
    let is_word = |node: &Node| node.entries().is_none();
    let value = match chosen {
        Some(list) => Node { value: Value::List(list), origin: node.origin.clone() },
        None if together && node.items().map_or_else(|| is_word(node), |all| all.iter().any(is_word)) => {
            let labels: Vec<String> = known.iter().map(label).collect();
            let text = format!("{name} has no level {:?}; levels: {}", node.to_label(), labels.join(", "));
            return Err(node.error_at(&format!("factors.{name}"), text));
        }
        None if together && node.entries().is_some() => {
            Node { value: Value::List(vec![node.clone()]), origin: node.origin.clone() }
        }
        None => as_levels(node.clone()),
    };
    match values.get("path").is_some() && node.get("path").is_none() {
        true => values.set_path("values", value),
        false => *values = value,
    }
    Ok(true)
}

/// Refuses a key whose beginning is unknown: the types would say so too, but not know the short names.
pub(super) fn known(path: &str, key: &str, at: &Node) -> Result<(), TreeError> {
    let first = key.split('.').next().unwrap_or(key);
    if crate::tree::keys::keys_of::<crate::experiment::Experiment>().contains(&first) {
        return Ok(());
    }
    let short = ALIASES.iter().map(|(short, _)| *short);
    let hint = dyno_types::suggest::hint(first, short.clone());
    let names = short.collect::<Vec<_>>().join(", ");
    let text = format!(
        "{first:?} is no key of an experiment{hint}; expected a key such as phases.measure.users, or {names}"
    );
    Err(at.error_at(path, text))
}

fn levels(name: &str, key: &str, list: &[Node], at: &Node) -> Result<Factor, TreeError> {
    let path = format!("factors.{name}");
    if list.is_empty() {
        return Err(at.error_at(&path, "an empty list leaves no cell of the matrix"));
    }
    let mut levels: Vec<FactorLevel> = Vec::new();
    for value in list {
        let level = match value.entries() {
            // Keys that are set together.
            Some(pairs) => FactorLevel {
                label: value.with_masked_secrets("").to_label(),
                changed: String::new(),
                set: pairs
                    .iter()
                    .filter(|(key, _)| key != "label")
                    .map(|(key, value)| (full_path(key).to_owned(), value.clone()))
                    .collect(),
            },
            None => {
                known(&path, key, at)?;
                let set = vec![(key.to_owned(), value.clone())];
                FactorLevel { label: mask_value(key, &value.to_label()), set, changed: String::new() }
            }
        };
        if levels.iter().any(|known| known.label == level.label) {
            return Err(value.error_at(&path, format!("{} is listed twice", level.label)));
        }
        levels.push(level);
    }
    Ok(Factor { name: name.to_owned(), levels, gone: Vec::new() })
}

/// `{from, to, step}`, `{from, to, times}` or `{from, to, count}`; downwards too.
fn range(node: &Node, path: &str) -> Result<Vec<Node>, TreeError> {
    let known = ["from", "to", "step", "times", "count"];
    for (key, value) in node.entries().unwrap_or_default() {
        if !known.contains(&key.as_str()) {
            let text = format!("unknown key {key:?} of a range; known keys: {}", known.join(", "));
            return Err(value.error_at(path, text));
        }
    }
    let number = |key: &str| match node.get(key).map(|n| (&n.value, n)) {
        None => Ok(None),
        Some((Value::Int(n), _)) => Ok(Some(*n as f64)),
        Some((Value::Float(n), _)) => Ok(Some(*n)),
        Some((value, at)) => {
            let number = if let Value::Text(text) = value { parse_number(text).ok() } else { None };
            let wrong = || {
                let message = format!("{:?}: expected a number, such as 2000 or 2k", at.to_label());
                at.error_at(&format!("{path}.{key}"), message)
            };
            number.map(Some).ok_or_else(wrong)
        }
    };
    let need = |key: &str, value: Option<f64>| {
        value.ok_or_else(|| node.error_at(path, format!("a range needs {key:?}")))
    };
    let (from, to) = (need("from", number("from")?)?, need("to", number("to")?)?);
    let values = series(from, to, number("step")?, number("times")?, number("count")?);
    let Some(values) = values else { return Err(node.error_at(path, SERIES)) };
    Ok(values.into_iter().map(|n| written(n, &node.origin)).collect())
}

fn written(n: f64, origin: &Origin) -> Node {
    let rounded = (n * 1e9).round() / 1e9;
    let whole = rounded.fract() == 0.0 && rounded.abs() < 9e15;
    let value = if whole { Value::Int(rounded as i128) } else { Value::Float(rounded) };
    Node { value, origin: origin.clone() }
}

/// Every combination of levels; the last factor varies fastest. `None` where there are more than `most`.
pub(super) fn product(factors: &[Factor], most: usize) -> Option<Vec<Vec<&FactorLevel>>> {
    let count = factors.iter().try_fold(1usize, |n, factor| n.checked_mul(factor.levels.len()));
    if count.is_none_or(|n| n > most) {
        return None;
    }
    let mut rows: Vec<Vec<&FactorLevel>> = vec![Vec::new()];
    for factor in factors {
        rows = rows
            .iter()
            .flat_map(|row| {
                factor.levels.iter().map(move |level| {
                    let mut longer = row.clone();
                    longer.push(level);
                    longer
                })
            })
            .collect();
    }
    Some(rows)
}

/// Puts the values of `variables` in place of `{NAME}` in every text.
pub(super) fn fill_in(tree: &mut Node) -> Result<(), TreeError> {
    let Some(all) = tree.get("variables").and_then(Node::entries) else { return Ok(()) };
    let mut values = Vec::new();
    for (name, value) in all {
        if name == "dir" {
            return Err(value.error_at("variables.dir", "{dir} stands for a directory of the run already"));
        }
        values.push((format!("{{{name}}}"), value.to_label()));
    }
    tree.each_text(&mut |text| {
        for (name, value) in &values {
            if text.contains(name) {
                *text = text.replace(name, value);
            }
        }
    });
    Ok(())
}

/// Returns whether a text has `{NAME}` in it.
pub(super) fn is_used(tree: &Node, name: &str) -> bool {
    let (mut whole, wanted, mut found) = (tree.clone(), format!("{{{name}}}"), false);
    whole.each_text(&mut |text| found |= text.contains(&wanted));
    found
}

/// For a target that runs already: takes what levels say of a server out of them, and factors that then vary nothing. Returns the
/// names of these.
pub(super) fn leave_out_server(factors: &mut Vec<Factor>, tree: &Node) -> Vec<String> {
    let texts: Vec<Node> = factors
        .iter()
        .flat_map(|factor| {
            factor.levels.iter().flat_map(|level| level.set.iter().map(|(_, node)| node.clone()))
        })
        .collect();
    let is_used = |name: &str| texts.iter().chain([tree]).any(|node| is_used(node, name));
    let says_nothing = |key: &str| {
        let unused = key.strip_prefix("variables.").is_some_and(|name| !is_used(name));
        unused || key == "server" || key.starts_with("server.")
    };
    for level in factors.iter_mut().flat_map(|factor| &mut factor.levels) {
        level.set.retain(|(key, _)| !says_nothing(key));
    }
    let varies = |factor: &Factor| factor.levels.iter().any(|level| !level.set.is_empty());
    let gone = factors.iter().filter(|factor| !varies(factor)).map(|factor| factor.name.clone()).collect();
    factors.retain(varies);
    gone
}

/// Levels that a cell must have.
#[derive(Clone, Debug)]
pub(super) struct Filter(Vec<(String, Vec<String>)>);

impl Filter {
    pub(super) fn read_all(node: &Node, factors: &[Factor]) -> Result<Vec<Filter>, TreeError> {
        let Some(all) = node.items() else {
            return Err(node.error_at("exclude", "expected a list such as [{users: 1, ycsb: e}]"));
        };
        all.iter().map(|one| Filter::read(one, "exclude", factors)).collect()
    }

    fn read(node: &Node, path: &str, factors: &[Factor]) -> Result<Filter, TreeError> {
        let Some(all) = node.entries().filter(|all| !all.is_empty()) else {
            return Err(node.error_at(path, "expected a mapping of factors to levels"));
        };
        let mut wanted = Vec::new();
        for (name, value) in all {
            let Some(factor) = factors.iter().find(|factor| factor.name == *name) else {
                let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
                let hint = dyno_types::suggest::hint(name, names.iter().copied());
                let known = if names.is_empty() {
                    "there is none".into()
                } else {
                    format!("factors: {}", names.join(", "))
                };
                let text = format!("{name:?} is no factor{hint}; {known}");
                return Err(value.error_at(path, text));
            };
            let labels: Vec<String> = match value.items() {
                Some(all) => all.iter().map(|one| mask_value(name, &one.to_label())).collect(),
                None => vec![mask_value(name, &value.to_label())],
            };
            let is_known =
                |l: &String| factor.gone.contains(l) || factor.levels.iter().any(|level| level.label == *l);
            if let Some(label) = labels.iter().find(|label| !is_known(label)) {
                let known: Vec<&str> = factor.levels.iter().map(|l| l.label.as_str()).collect();
                let text = format!("{name} has no level {label:?}; levels: {}", known.join(", "));
                return Err(value.error_at(path, text));
            }
            wanted.push((name.clone(), labels));
        }
        Ok(Filter(wanted))
    }

    pub(super) fn matches(&self, levels: &[(String, String)]) -> bool {
        let holds = |(name, labels): &(String, Vec<String>)| {
            levels.iter().any(|(factor, label)| factor == name && labels.contains(label))
        };
        self.0.iter().all(holds)
    }
}

/// Values for some cells.
#[derive(Clone, Debug)]
pub(super) struct Override {
    pub when: Filter,
    pub set: Vec<(String, Node)>,
}

impl Override {
    pub(super) fn read_all(node: &Node, factors: &[Factor]) -> Result<Vec<Override>, TreeError> {
        let bad = |at: &Node| {
            at.error_at("overrides", "expected a list of {when: {FACTOR: LEVEL}, set: {KEY: VALUE}}")
        };
        let Some(all) = node.items() else { return Err(bad(node)) };
        all.iter()
            .map(|one| {
                let (Some(when), Some(set)) = (one.get("when"), one.get("set")) else { return Err(bad(one)) };
                let Some(pairs) = set.entries() else { return Err(bad(set)) };
                let set =
                    pairs.iter().map(|(key, value)| (full_path(key).to_owned(), value.clone())).collect();
                Ok(Override { when: Filter::read(when, "overrides.when", factors)?, set })
            })
            .collect()
    }
}
