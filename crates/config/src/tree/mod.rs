//! A tree of settings that remembers where each of its values was written.
//!
//! An experiment file becomes a tree; `--set`, factors and overrides change values in it; every cell's tree is then read
//! into typed plans ([`Node::read`]). An error names the place where the value that is wrong was written, wherever it
//! has been put since.
//!
//! ```text
//! text -> Node -- set("phases.measure.users", ...) --> Node -- read::<T>() --> T, or TreeError with file, line, column
//! ```

pub mod deserialize;
pub mod keys;
pub mod secrets;

use crate::yaml;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// First line of texts that dyno makes of variables and options. No user has written them: messages about a value name what
/// stands in the comment behind it instead of line and key.
pub const MADE: &str = "# Made by dyno: the comment behind a value names what set it.";

/// Text that begins such a comment.
const COMMENT: &str = "  # ";

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    File {
        /// Path as typed, or a preset's name.
        path: Arc<str>,
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// Bytes in the file: where it is used, and where an anchor names it.
        bytes: [Range<usize>; 2],
    },
    /// By an option, such as `--set`.
    Option(Arc<str>),
    /// By a variable or an option of a drop-in, such as `CACHE_SIZE_GB (--set)`, in a text that dyno made of it.
    Variable(Arc<str>),
    /// Nowhere: by dyno.
    Built,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { path, line: 0, .. } => f.write_str(path),
            Origin::File { path, line, column, .. } => write!(f, "{path}:{line}:{column}"),
            Origin::Option(words) | Origin::Variable(words) => f.write_str(words),
            Origin::Built => f.write_str("dyno"),
        }
    }
}

/// `KEY=VALUE`, or a value alone, with every secret in it masked.
pub fn masked_option(text: &str) -> String {
    let (key, message) = text.split_once('=').map_or(("", text), |(key, message)| (key, message));
    let start = &text[..text.len() - message.len()];
    match Node::parse(message, "") {
        Ok(node) if !message.is_empty() => format!("{start}{}", node.mask_secrets(key, message)),
        _ => dyno_types::secret::mask_arguments(&[text.to_owned()]).concat(),
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number: all of `i64` and of `u64`.
    Int(i128),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in their order.
    Map(Vec<(String, Node)>),
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// Problem of a value, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TreeError {
    /// Where the value was written.
    pub origin: Option<Origin>,
    /// Keys from the root, such as `phases.measure.users`; empty for the root.
    pub path: String,
    /// Words on what was found and what is accepted.
    pub text: String,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for word in [self.place_text(), self.written_key().to_owned()].iter().filter(|word| !word.is_empty())
        {
            write!(f, "{word}: ")?;
        }
        f.write_str(&self.text)
    }
}

impl TreeError {
    /// Returns where the value was written, for people; empty if that is unknown.
    pub fn place_text(&self) -> String {
        self.origin.as_ref().map_or_else(String::new, Origin::to_string)
    }

    /// Returns the key if the user has written it: not that of a value that a variable stands for.
    pub fn written_key(&self) -> &str {
        if matches!(self.origin, Some(Origin::Variable(_))) { "" } else { &self.path }
    }
}

impl Node {
    /// Reads YAML; `path` is what messages call the file.
    pub fn parse(text: &str, path: &str) -> Result<Node, TreeError> {
        let mut tree = Node::as_written(text, path)?;
        if text.starts_with(MADE) {
            tree.name_variables(&text.lines().collect::<Vec<_>>());
        }
        Ok(tree)
    }

    /// The same; in a text that dyno made, too, values are of the lines on which they stand.
    pub fn as_written(text: &str, path: &str) -> Result<Node, TreeError> {
        let name: Arc<str> = path.into();
        let parsed: Result<yaml::YamlNode, _> = serde_saphyr::from_str(text);
        match parsed {
            Ok(root) => Node::of(&root, &name),
            Err(error) => {
                let at = error.location();
                let (line, column) = at.map_or((0, 0), |at| (at.line(), at.column()));
                let origin = Some(Origin::File { path: name, line, column, bytes: Default::default() });
                // The message's first line says it; what follows is an excerpt of the file.
                let sentence = error.to_string();
                let first = sentence.lines().next().unwrap_or("no YAML");
                // Drops the YAML reader's own location and hint: ours are printed.
                let bare = first.strip_prefix("error: line ").and_then(|rest| rest.split_once(": "));
                let bare = bare.map_or(first, |(_, sentence)| sentence);
                let text = bare.split(", set DuplicateKeyPolicy").next().unwrap_or(bare).to_owned();
                Err(TreeError { origin, path: String::new(), text })
            }
        }
    }

    fn of(node: &yaml::YamlNode, path: &Arc<str>) -> Result<Node, TreeError> {
        let (line, column) = (node.line(), node.column());
        let origin = Origin::File { path: path.clone(), line, column, bytes: node.bytes() };
        let value = match node.value() {
            yaml::Yaml::Null => Value::Null,
            yaml::Yaml::Bool(b) => Value::Bool(*b),
            yaml::Yaml::Int(n) => Value::Int(*n),
            yaml::Yaml::Float(n) => Value::Float(*n),
            yaml::Yaml::Text(text) => Value::Text(text.clone()),
            yaml::Yaml::List(all) => {
                Value::List(all.iter().map(|one| Node::of(one, path)).collect::<Result<_, _>>()?)
            }
            yaml::Yaml::Map(all) => {
                let mut map: Vec<(String, Node)> = Vec::with_capacity(all.len());
                for (key, value) in all {
                    let node = Node::of(value, path)?;
                    if map.iter().any(|(known, _)| known == key) {
                        let text = "is listed twice".to_owned();
                        return Err(TreeError { origin: Some(node.origin), path: key.clone(), text });
                    }
                    map.push((key.clone(), node));
                }
                Value::Map(map)
            }
        };
        Ok(Node { value, origin })
    }

    /// An empty mapping.
    pub fn empty_mapping() -> Node {
        Node { value: Value::Map(Vec::new()), origin: Origin::Built }
    }

    /// A value as an option gives it: a number, true or false, a list or mapping in YAML's flow form, else a text.
    pub fn from_option(text: &str, option: &str) -> Node {
        let message = text.split_once('=').map_or(text, |(_, message)| message);
        let origin = Origin::Option(format!("{option} {}", masked_option(text)).into());
        let parsed = Node::parse(message, option).ok().filter(|_| !message.is_empty());
        let value = parsed.map_or_else(|| Value::Text(message.to_owned()), |node| node.value);
        let mut node = Node { value, origin: origin.clone() };
        node.replace_origin(&origin);
        node
    }

    /// In a text that dyno made: values are of what the comment on their line names.
    fn name_variables(&mut self, lines: &[&str]) {
        if let (Origin::File { line, .. }, false) = (&self.origin, matches!(self.value, Value::Map(_)))
            && let Some(line) = lines.get((*line as usize).saturating_sub(1))
            && let Some((_, message)) = line.rsplit_once(COMMENT)
        {
            self.origin = Origin::Variable(message.into());
        }
        match &mut self.value {
            Value::List(all) => all.iter_mut().for_each(|one| one.name_variables(lines)),
            Value::Map(all) => all.iter_mut().for_each(|(_, one)| one.name_variables(lines)),
            _ => {}
        }
    }

    fn replace_origin(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::List(all) => all.iter_mut().for_each(|one| one.replace_origin(origin)),
            Value::Map(all) => all.iter_mut().for_each(|(_, one)| one.replace_origin(origin)),
            _ => {}
        }
    }

    /// The entries, if this is a mapping.
    pub fn entries(&self) -> Option<&[(String, Node)]> {
        match &self.value {
            Value::Map(all) => Some(all),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(all) => Some(all),
            _ => None,
        }
    }

    /// The value of `key`, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(known, _)| known == key).map(|(_, node)| node)
    }

    /// The value at a path of keys with dots between them.
    pub fn find_path(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Returns where the value at a path was written, or the nearest mapping around it. Keys may have dots in them.
    pub fn origin_at(&self, path: &str) -> &Origin {
        for (key, node) in self.entries().into_iter().flatten() {
            match path.strip_prefix(key.as_str()) {
                Some("") => return &node.origin,
                Some(rest) if rest.starts_with('.') => return node.origin_at(&rest[1..]),
                _ => {}
            }
        }
        &self.origin
    }

    /// Takes the value of `key` out of a mapping.
    pub fn take_key(&mut self, key: &str) -> Option<Node> {
        let Value::Map(all) = &mut self.value else { return None };
        let at = all.iter().position(|(known, _)| known == key)?;
        Some(all.remove(at).1)
    }

    /// Puts a value at a path of keys with dots between them; mappings on the way are made. The items of a list are keys
    /// too, from 0. Another value on the way is replaced by a mapping.
    pub fn set_path(&mut self, path: &str, value: Node) {
        let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        if let (Value::List(all), Ok(at)) = (&mut self.value, key.parse::<usize>())
            && at < all.len()
        {
            return match rest {
                Some(rest) => all[at].set_path(rest, value),
                None => all[at] = value,
            };
        }
        if !matches!(self.value, Value::Map(_)) {
            self.value = Value::Map(Vec::new());
        }
        let Value::Map(all) = &mut self.value else { return };
        let at = all.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            all.push((key.to_owned(), Node { value: Value::Null, origin: value.origin.clone() }));
            all.len() - 1
        });
        match rest {
            Some(rest) => all[at].1.set_path(rest, value),
            None => all[at].1 = value,
        }
    }

    /// Lets every text be changed.
    pub fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match &mut self.value {
            Value::Text(text) => change(text),
            Value::List(all) => all.iter_mut().for_each(|one| one.each_text(change)),
            Value::Map(all) => all.iter_mut().for_each(|(_, one)| one.each_text(change)),
            _ => {}
        }
    }

    /// The value in words, as a label of a factor's level.
    pub fn to_label(&self) -> String {
        match &self.value {
            Value::Null => "none".into(),
            Value::Bool(b) => b.to_string(),
            Value::Int(n) => n.to_string(),
            Value::Float(n) => n.to_string(),
            Value::Text(text) => text.clone(),
            Value::List(all) => all.iter().map(Node::to_label).collect::<Vec<_>>().join(","),
            Value::Map(all) => {
                if let Some(label) = self.get("label") {
                    return label.to_label();
                }
                let pairs: Vec<String> =
                    all.iter().map(|(key, value)| format!("{key}={}", value.to_label())).collect();
                pairs.join(" ")
            }
        }
    }

    /// Every value that is no mapping, with its path and where it was written; secrets are not masked.
    pub fn list_leaves(&self) -> Vec<(String, String, &Origin)> {
        let mut out = Vec::new();
        self.gather("", &mut out);
        out
    }

    fn gather<'a>(&'a self, path: &str, out: &mut Vec<(String, String, &'a Origin)>) {
        match &self.value {
            Value::Map(all) if !all.is_empty() => {
                for (key, node) in all {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    node.gather(&path, out);
                }
            }
            _ => out.push((path.to_owned(), self.to_label(), &self.origin)),
        }
    }

    /// An error about this value.
    pub fn error_at(&self, path: &str, text: impl Into<String>) -> TreeError {
        TreeError { origin: Some(self.origin.clone()), path: path.to_owned(), text: text.into() }
    }
}

#[cfg(test)]
mod tests;
