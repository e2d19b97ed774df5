//! An experiment as a list of settings, each with who has set it.

use crate::experiment::Experiment;
use crate::tree::{Node, TreeError};
use dyno_types::secret::mask_value;

/// A value of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedValue {
    /// Keys from the root with dots between them.
    pub key: String,
    /// The value, as a file would say it; secrets are masked.
    pub value: String,
    /// Who has set it: an option, or file, line and column; `None`: it is a default.
    pub source: Option<String>,
}

/// Lists every value of `experiment`, defaults included, with its secrets masked; `tree` is what was said of it.
///
/// # Errors
/// The experiment cannot be written as a file.
pub fn recorded_values(tree: &Node, experiment: &Experiment) -> Result<Vec<RecordedValue>, TreeError> {
    let text = serde_json::to_string(experiment).map_err(|e| tree.error_at("", e.to_string()))?;
    let said = tree.list_leaves();
    let recorded = |(key, value, _): (String, String, &_)| {
        let source = said.iter().find(|(known, ..)| *known == key).map(|(.., origin)| origin.to_string());
        RecordedValue { value: mask_value(&key, &value), key, source }
    };
    Ok(Node::as_written(&text, "")?.list_leaves().into_iter().map(recorded).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_what_was_said_are_told_apart() {
        let text = "phases:\n  measure:\n    users: 4\n    timeout: 2000ms\nclient:\n  pin: true\n";
        let tree = Node::parse(text, "x.yaml").unwrap();
        let all = recorded_values(&tree, &Experiment::from_tree(&tree).unwrap()).unwrap();
        let of = |key: &str| {
            let found = all.iter().find(|one| one.key == key);
            found.map(|one| (one.value.as_str(), one.source.as_deref()))
        };
        assert_eq!(of("phases.measure.users"), Some(("4", Some("x.yaml:3:12"))));
        assert_eq!(of("phases.measure.timeout"), Some(("2s", Some("x.yaml:4:14"))));
        assert_eq!(of("client.pin"), Some(("true", Some("x.yaml:6:8"))));
        assert_eq!(of("phases.measure.drain"), Some(("10s", None)));
        assert_eq!(of("phases.measure.rate"), None);
    }
}
