//! The YAML form: groups with hosts, vars and children.

use crate::inventory::ini::hosts;
use crate::inventory::{Inventory, InventoryError, InventoryLineError, VAULT, Variables};
use crate::yaml::{Yaml, YamlNode};

pub(super) fn parse(text: &str, path: &str) -> Result<Inventory, InventoryError> {
    let root: YamlNode = serde_saphyr::from_str(text)
        .map_err(|error| InventoryError::Yaml { path: path.to_owned(), source: Box::new(error) })?;
    let mut inventory = Inventory::default();
    let wrong = |(node, problem): InventoryProblem<'_>| InventoryError::Line {
        path: path.to_owned(),
        line: node.line(),
        problem,
    };
    let Yaml::Map(groups) = root.value() else {
        return Err(wrong((&root, InventoryLineError::Groups)));
    };
    for (name, node) in groups {
        group(&mut inventory, name, node, 0).map_err(wrong)?;
    }
    Ok(inventory)
}

type InventoryProblem<'a> = (&'a YamlNode, InventoryLineError);

fn group<'a>(
    inventory: &mut Inventory,
    name: &str,
    node: &'a YamlNode,
    depth: usize,
) -> Result<(), InventoryProblem<'a>> {
    inventory.group(name);
    if depth > dyno_types::limits::GROUP_DEPTH {
        return Err((node, InventoryLineError::TooDeep(name.to_owned())));
    }
    let no_mapping = |key| InventoryLineError::NoMapping { group: name.to_owned(), key };
    let parts = map(node).ok_or_else(|| (node, no_mapping(None)))?;
    for (key, value) in parts {
        let entries = || map(value).ok_or_else(|| (value, no_mapping(Some(key.clone()))));
        match key.as_str() {
            "hosts" => {
                for (host, own) in entries()? {
                    let variables = variables(own)?;
                    hosts(inventory, name, host, variables).map_err(|problem| (own, problem))?;
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
                return Err((
                    value,
                    InventoryLineError::UnknownKey { group: name.to_owned(), key: key.clone() },
                ));
            }
        }
    }
    Ok(())
}

/// A mapping; nothing is an empty one.
fn map(node: &YamlNode) -> Option<&[(String, YamlNode)]> {
    match node.value() {
        Yaml::Map(entries) => Some(entries),
        Yaml::Null => Some(&[]),
        _ => None,
    }
}

fn variables<'a>(node: &'a YamlNode) -> Result<Variables, InventoryProblem<'a>> {
    let entries = map(node).ok_or((node, InventoryLineError::Variables))?;
    let text = |value: &'a YamlNode| match value.value() {
        Yaml::Text(text) if text.starts_with(VAULT) => Err((value, InventoryLineError::Vaulted)),
        Yaml::Text(text) => Ok(text.clone()),
        _ => Ok(value.word()),
    };
    entries.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
}
