//! Which values of a tree are secret.

use crate::tree::{Node, Value};
use dyno_types::secret::{MASK, hidden, is_secret, mask_arguments, mask_value};

/// Calls `found` for every value that is a secret or has one in it, with what may be shown of it.
pub(super) fn visit(tree: &mut Node, key: &str, found: &mut dyn FnMut(&mut Node, &str)) {
    let inside = variables(tree, key);
    walk(tree, key, &inside, found);
}

/// The secrets themselves.
pub(super) fn values(tree: &Node, key: &str) -> Vec<String> {
    let mut values = secrets(tree, key);
    if let Some(all) = tree.get("variables").and_then(Node::entries) {
        let inside = variables(tree, key);
        values.extend(all.iter().filter(|(name, _)| inside.contains(name)).map(|(_, node)| node.label()));
    }
    values
}

fn secrets(tree: &Node, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    walk(&mut tree.clone(), key, &[], &mut |node, shown| {
        let value = node.label();
        values.extend(hidden(&value, shown).into_iter().map(str::to_owned));
    });
    values
}

/// Names of `variables` whose values are secrets: those that stand in a secret as `{NAME}`.
fn variables(tree: &Node, key: &str) -> Vec<String> {
    let Some(all) = tree.get("variables").and_then(Node::entries) else { return Vec::new() };
    let secrets = secrets(tree, key);
    let is_one =
        |(name, _): &&(String, Node)| secrets.iter().any(|secret| secret.contains(&format!("{{{name}}}")));
    all.iter().filter(is_one).map(|(name, _)| name.clone()).collect()
}

fn walk(node: &mut Node, key: &str, inside: &[String], found: &mut dyn FnMut(&mut Node, &str)) {
    let value = node.label();
    match &mut node.value {
        Value::Map(all) => {
            // A factor names its key beside its values.
            let path = all.iter().find(|(own, _)| own == "path").map(|(_, node)| node.label());
            for (own, node) in all {
                let below = match &path {
                    Some(path) if own == "values" => path.clone(),
                    _ if key == "variables" => format!("variables.{own}"),
                    _ => own.clone(),
                };
                walk(node, &below, inside, found);
            }
        }
        Value::List(all) if all.iter().all(|one| matches!(one.value, Value::Text(_))) && !is_secret(key) => {
            // Words of a command, or texts that have nothing to do with each other.
            let words: Vec<String> = all.iter().map(Node::label).collect();
            for ((node, shown), word) in all.iter_mut().zip(mask_arguments(&words)).zip(&words) {
                match shown == *word {
                    true => walk(node, key, inside, found),
                    false => found(node, &shown),
                }
            }
        }
        Value::List(all) => all.iter_mut().for_each(|one| walk(one, key, inside, found)),
        Value::Null => {}
        _ => {
            let variable =
                key.strip_prefix("variables.").is_some_and(|name| inside.iter().any(|n| n == name));
            let shown = if variable { MASK.to_owned() } else { mask_value(key, &value) };
            if shown != value {
                found(node, &shown);
            }
        }
    }
}
