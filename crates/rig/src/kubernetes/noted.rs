//! What an experiment's directory says of its objects in a cluster: where they are and their label.

use crate::own::{self, Untrusted};
use dyno_plan::experiment::Kubernetes;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// `kubernetes-NAME.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    /// The context of the kubeconfig, where the experiment names one.
    pub context: Option<String>,
    /// The namespace, where the experiment names one.
    pub namespace: Option<String>,
    /// The label of the run.
    pub selector: String,
}

impl Noted {
    /// Writes it before anything is made.
    pub fn write(path: &Path, asked: &Kubernetes, selector: &str) -> Result<(), String> {
        let (context, namespace) = (asked.context.clone(), asked.namespace.clone());
        let noted = Noted { context, namespace, selector: selector.to_owned() };
        let text = serde_json::to_string(&noted).map_err(|e| e.to_string())?;
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads it where it is the caller's own; its label must be one of dyno's.
    pub fn read(path: &Path) -> Result<Noted, Untrusted> {
        let refused = |words: String| Untrusted::Refused(format!("{}: {words}", path.display()));
        let noted: Noted = serde_json::from_str(&own::read(path)?).map_err(|e| refused(e.to_string()))?;
        let label = noted.selector.strip_prefix("dyno.run=");
        let plain = |label: &str| label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        match label.is_some_and(|label| !label.is_empty() && plain(label)) {
            true => Ok(noted),
            false => Err(refused("no label of dyno's".into())),
        }
    }
}
