//! One cell of an experiment's matrix.

use crate::experiment::factors;
use crate::experiment::spec::Experiment;
use crate::tree::{Node, TreeError};

/// Begins the origin of a value that a strategy has set.
pub(super) const SET_BY_STRATEGY: &str = "strategy ";

/// One cell of the matrix.
#[derive(Clone, Debug)]
pub struct MatrixCell {
    /// From 1.
    pub number: usize,
    /// The level of each factor: (factor, label).
    pub levels: Vec<(String, String)>,
    /// Everything that is said about it, with its origin; `{NAME}`s of `variables` are filled in.
    pub tree: Node,
    /// The same, typed.
    pub spec: Experiment,
    /// The tree before `{NAME}`s were filled in: a point of a search may set variables.
    pub(super) unfilled: Node,
}

impl MatrixCell {
    /// The cell with keys set to the values of a search's point: variables are filled in, and everything is checked, as
    /// if the file said so. The tree's secrets are masked.
    pub fn at_point(&self, sets: &[(String, String)]) -> Result<(Experiment, Node), TreeError> {
        if sets.is_empty() {
            return Ok((self.spec.clone(), self.masked_tree()?));
        }
        let mut tree = self.unfilled.clone();
        for (key, value) in sets {
            tree.set_path(
                factors::full_path(key),
                Node::from_option(&format!("{key}={value}"), SET_BY_STRATEGY.trim_end()),
            );
        }
        let shown = shown(&tree)?;
        factors::fill_in(&mut tree)?;
        Ok((Experiment::from_tree(&tree)?, shown))
    }

    /// Tree with secrets masked, those that `{NAME}`s put anywhere included.
    pub fn masked_tree(&self) -> Result<Node, TreeError> {
        shown(&self.unfilled)
    }

    /// Levels in words: `users=4 workload=a`; `all` where nothing is varied.
    pub fn levels_label(&self) -> String {
        let words: Vec<String> = self.levels.iter().map(|(name, label)| format!("{name}={label}")).collect();
        if words.is_empty() { "all".into() } else { words.join(" ") }
    }
}

fn shown(unfilled: &Node) -> Result<Node, TreeError> {
    let mut shown = unfilled.with_masked_secrets("");
    factors::fill_in(&mut shown)?;
    Ok(shown)
}
