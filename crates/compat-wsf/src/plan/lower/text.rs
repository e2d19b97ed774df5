//! YAML with a comment behind each value that says where it comes from.

use dyno_config::tree::MADE;
use serde_json::Value;
use std::fmt::Write as _;

/// Keys in the order in which they were put.
#[derive(Debug, Default)]
pub struct Tree(Vec<(String, Branch)>);

#[derive(Debug)]
enum Branch {
    Leaf(Value, String),
    Tree(Tree),
}

impl Tree {
    /// Puts a value at a path of keys with dots between them.
    pub fn put(&mut self, path: &str, value: Value, comment: &str) {
        let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let at = self.0.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            self.0.push((key.to_owned(), Branch::Tree(Tree::default())));
            self.0.len() - 1
        });
        let branch = &mut self.0[at].1;
        match (rest, branch) {
            (Some(rest), Branch::Tree(tree)) => tree.put(rest, value, comment),
            (_, branch) => *branch = Branch::Leaf(value, comment.to_owned()),
        }
    }

    /// Writes a file whose errors name what is in the comments.
    pub fn text(&self) -> String {
        let mut out = format!("{MADE}\n");
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        for (key, branch) in &self.0 {
            match branch {
                Branch::Tree(tree) => {
                    let _ = writeln!(out, "{indent}{key}:");
                    tree.write(depth + 1, out);
                }
                // JSON is YAML.
                Branch::Leaf(value, comment) if comment.is_empty() => {
                    let _ = writeln!(out, "{indent}{key}: {value}");
                }
                Branch::Leaf(value, comment) => {
                    let line = comment.replace(['\n', '\r'], " ");
                    let _ = writeln!(out, "{indent}{key}: {value}  # {line}");
                }
            }
        }
    }
}
