//! Mappings taken apart, key by key.

use crate::yaml::{Yaml, YamlNode};
use dyno_types::suggest::hint;
use dyno_types::units::parse_count;

/// Line and words.
pub(super) type Bad = (u64, String);

/// Reports a problem at a value.
pub(super) fn bad<T>(node: &YamlNode, text: impl Into<String>) -> Result<T, Bad> {
    Err((node.line(), text.into()))
}

/// The keys of a mapping that its reader has not taken yet.
pub(super) struct Fields<'a> {
    node: &'a YamlNode,
    left: Vec<(&'a str, &'a YamlNode)>,
}

impl<'a> Fields<'a> {
    /// Of a mapping that is called `what` in messages.
    pub fn of_mapping(node: &'a YamlNode, what: &str) -> Result<Self, Bad> {
        match node.value() {
            Yaml::Map(all) => Ok(Fields { node, left: all.iter().map(|(k, v)| (k.as_str(), v)).collect() }),
            _ => bad(node, format!("{what}: {}: expected a mapping", node.word())),
        }
    }

    /// The value of a key, if it is there.
    pub fn take_value(&mut self, key: &str) -> Option<&'a YamlNode> {
        let at = self.left.iter().position(|(name, _)| *name == key)?;
        Some(self.left.remove(at).1)
    }

    /// The value of a key that must be there.
    pub fn need_value(&mut self, key: &str, what: &str) -> Result<&'a YamlNode, Bad> {
        let line = self.node.line();
        self.take_value(key).ok_or_else(|| (line, format!("{key} is missing: {what}")))
    }

    /// Refuses what is left; `known` are all keys that are understood.
    pub fn end(self, known: &[&str]) -> Result<(), Bad> {
        match self.left.first() {
            None => Ok(()),
            Some((key, node)) => {
                let near = hint(key, known.iter().copied());
                bad(node, format!("unknown key {key:?}{near}; accepted: {}", known.join(", ")))
            }
        }
    }
}

/// A whole number within bounds.
pub(super) fn whole(node: &YamlNode, least: i64, most: i64) -> Result<i64, Bad> {
    let read = match node.value() {
        Yaml::Int(n) => i64::try_from(*n).ok(),
        _ => None,
    };
    match read.filter(|n| (least..=most).contains(n)) {
        Some(n) => Ok(n),
        None => bad(node, format!("{}: expected a whole number, {least} to {most}", node.word())),
    }
}

/// A number of things, such as 1000 or 10k.
pub(super) fn count(node: &YamlNode) -> Result<u64, Bad> {
    let read = match node.value() {
        Yaml::Int(n) => u64::try_from(*n).ok(),
        Yaml::Text(text) => parse_count(text).ok(),
        _ => None,
    };
    match read.filter(|n| *n < 1 << 40) {
        Some(n) => Ok(n),
        None => bad(node, format!("{}: expected a number such as 1000 or 10k", node.word())),
    }
}

/// Any number.
pub(super) fn number(node: &YamlNode) -> Result<f64, Bad> {
    match node.value() {
        Yaml::Int(n) => Ok(*n as f64),
        Yaml::Float(n) if n.is_finite() => Ok(*n),
        _ => bad(node, format!("{}: expected a number", node.word())),
    }
}

/// Text.
pub(super) fn text(node: &YamlNode) -> Result<&str, Bad> {
    match node.value() {
        Yaml::Text(text) => Ok(text),
        _ => bad(node, format!("{}: expected text", node.word())),
    }
}

/// True or false.
pub(super) fn flag(node: &YamlNode) -> Result<bool, Bad> {
    match node.value() {
        Yaml::Bool(flag) => Ok(*flag),
        _ => bad(node, format!("{}: expected true or false", node.word())),
    }
}

/// One value, or the least and the greatest.
pub(super) fn range<T: Copy>(
    node: &YamlNode,
    read: impl Fn(&YamlNode) -> Result<T, Bad>,
) -> Result<(T, T), Bad> {
    match node.value() {
        Yaml::List(two) => match &two[..] {
            [from, to] => Ok((read(from)?, read(to)?)),
            _ => bad(node, "expected one value or two, [LEAST, GREATEST]"),
        },
        _ => read(node).map(|one| (one, one)),
    }
}
