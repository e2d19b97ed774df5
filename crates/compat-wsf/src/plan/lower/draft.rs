//! The experiment file that is being made, and the case that it is made from.

use crate::plan::Resolved;
use crate::plan::lower::options::{Deployment, LowerOptions, PRIVILEGED};
use crate::plan::lower::text::Tree;
use serde_json::Value;

/// An experiment file in the making.
pub(super) struct Draft<'a> {
    pub from: &'a Resolved,
    pub means: &'a LowerOptions,
    pub tree: Tree,
    pub notes: Vec<String>,
}

impl Draft<'_> {
    /// Puts a value that comes from a variable.
    pub fn put(&mut self, path: &str, value: Value, variable: &str) {
        let words = self.from.given(variable).map(|given| format!("{variable} ({})", given.source));
        self.tree.put(path, value, &words.unwrap_or_default());
    }

    pub fn own(&mut self, path: &str, value: Value) {
        self.tree.put(path, value, "");
    }

    pub fn note(&mut self, message: impl Into<String>) {
        self.notes.push(message.into());
    }

    pub fn in_pods(&self) -> bool {
        matches!(self.means.deployment, Deployment::Kubernetes(_))
    }

    /// Returns whether cores and folders of the servers' nodes are chosen here, as on this host.
    pub fn places(&self) -> bool {
        match &self.means.deployment {
            Deployment::Kubernetes(keys) => {
                keys.iter().rfind(|(key, _)| key == PRIVILEGED).is_some_and(|(_, on)| on == true)
            }
            _ => true,
        }
    }

    /// Returns whether clients are beside the servers, and all rules of placement gone.
    pub fn single_node(&self) -> bool {
        self.from.on("RUN_SINGLE_NODE") || self.from.number("CLIENT_COUNT") == Some(0)
    }
}
