//! Which values of a tree are secret.

use crate::tree::{Node, Origin, Value};
use dyno_types::secret::{MASK, conceal_these, hidden, is_secret, mask_arguments, mask_value, remember};
use std::ops::Range;

impl Node {
    /// `text`, from which this was read as the value of `key`, with every secret in it masked. Read again, it is the tree that
    /// [`Node::with_masked_secrets`] gives.
    pub fn mask_secrets(&self, key: &str, text: &str) -> String {
        let mut places: Vec<(Range<usize>, String)> = Vec::new();
        visit(&mut self.clone(), key, &mut |node, shown| {
            if let Origin::File { bytes, .. } = &node.origin {
                places.extend(bytes.iter().map(|bytes| (bytes.clone(), shown.to_owned())));
            }
        });
        places.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.start));
        places.dedup();
        let mut out = text.to_owned();
        for (bytes, shown) in places.into_iter().filter(|(bytes, _)| !bytes.is_empty()) {
            // A block ends where the next line's key begins, and needs no quotes.
            let end = bytes.start + text[bytes.clone()].trim_end().len();
            let is_sign = |c: char| "+-".contains(c) || c.is_ascii_digit();
            let is_block = text[..bytes.start].trim_end().trim_end_matches(is_sign).ends_with(['|', '>']);
            let quoted = || format!("'{}'", shown.replace('\'', "''"));
            out.replace_range(bytes.start..end, &if is_block { shown.clone() } else { quoted() });
        }
        // Of comments.
        let values = values(self, key);
        conceal_these(&out, &values.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The value of `key` with its secrets masked.
    pub fn with_masked_secrets(&self, key: &str) -> Node {
        let mut shown = self.clone();
        visit(&mut shown, key, &mut |node, shown| node.value = Value::Text(shown.to_owned()));
        shown
    }

    /// Has every secret in it hidden from now on, whatever dyno prints or writes.
    pub fn remember_secrets(&self) {
        values(self, "").iter().for_each(|secret| remember(secret));
    }
}

/// Calls `found` for every value that is a secret or has one in it, with what may be shown of it.
fn visit(tree: &mut Node, key: &str, found: &mut dyn FnMut(&mut Node, &str)) {
    let inside = variables(tree, key);
    walk(tree, key, &inside, found);
}

/// The secrets themselves.
fn values(tree: &Node, key: &str) -> Vec<String> {
    let mut values = secrets(tree, key);
    if let Some(all) = tree.get("variables").and_then(Node::entries) {
        let inside = variables(tree, key);
        values.extend(all.iter().filter(|(name, _)| inside.contains(name)).map(|(_, node)| node.to_label()));
    }
    values
}

fn secrets(tree: &Node, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    walk(&mut tree.clone(), key, &[], &mut |node, shown| {
        let value = node.to_label();
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
    let value = node.to_label();
    match &mut node.value {
        Value::Map(all) => {
            // A factor names its key beside its values.
            let path = all.iter().find(|(own, _)| own == "path").map(|(_, node)| node.to_label());
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
            let words: Vec<String> = all.iter().map(Node::to_label).collect();
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
