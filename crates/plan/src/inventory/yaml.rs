//! The YAML form: groups with hosts, vars and children.

use super::{Inventory, Variables};
use crate::yaml::{Node, Yaml};

pub(super) fn parse(text: &str, path: &str) -> Result<Inventory, String> {
    let root: Node = serde_saphyr::from_str(text).map_err(|error| format!("{path}: {error}"))?;
    let mut inventory = Inventory::default();
    let wrong = |node: &Node, why: &str| format!("{path}:{}: {why}", node.line());
    let Yaml::Map(groups) = root.value() else {
        return Err(wrong(&root, "expected groups with their hosts"));
    };
    for (name, node) in groups {
        group(&mut inventory, name, node, 0).map_err(|(node, why)| wrong(node, &why))?;
    }
    Ok(inventory)
}

type Wrong<'a> = (&'a Node, String);

fn group<'a>(inventory: &mut Inventory, name: &str, node: &'a Node, depth: usize) -> Result<(), Wrong<'a>> {
    inventory.group(name);
    if depth > super::DEPTH {
        return Err((node, format!("group {name}: groups are nested too deeply")));
    }
    let parts = map(node).ok_or_else(|| (node, format!("group {name}: expected a mapping")))?;
    for (key, value) in parts {
        let entries =
            || map(value).ok_or_else(|| (value, format!("group {name}: {key}: expected a mapping")));
        match key.as_str() {
            "hosts" => {
                for (host, own) in entries()? {
                    let variables = variables(own)?;
                    inventory.host(host).extend(variables);
                    inventory.group(name).hosts.insert(host.clone());
                }
            }
            "vars" => {
                let variables = variables(value)?;
                inventory.group(name).variables.extend(variables);
            }
            "children" => {
                for (child, own) in entries()? {
                    inventory.group(name).children.insert(child.clone());
                    group(inventory, child, own, depth + 1)?;
                }
            }
            _ => {
                let why = format!("group {name}: unknown key {key}: expected hosts, vars, children");
                return Err((value, why));
            }
        }
    }
    Ok(())
}

/// A mapping; nothing is an empty one.
fn map(node: &Node) -> Option<&[(String, Node)]> {
    match node.value() {
        Yaml::Map(entries) => Some(entries),
        Yaml::Null => Some(&[]),
        _ => None,
    }
}

fn variables(node: &Node) -> Result<Variables, Wrong<'_>> {
    let entries = map(node).ok_or_else(|| (node, "expected variables and their values".to_owned()))?;
    let text = |value: &Node| match value.value() {
        Yaml::Text(text) => text.clone(),
        _ => value.word(),
    };
    Ok(entries.iter().map(|(name, value)| (name.clone(), text(value))).collect())
}
