//! Folders of logs, as the framework leaves them.

use std::path::Path;

/// The file of what was asked for, with the source of every value.
pub const CONFIG: &str = "workload-config.yaml";

/// The experiment's directory, with everything measured.
pub const EXPERIMENT: &str = "experiment";

/// The command that goes on with an experiment, if it is one of these folders'.
pub fn continues(experiment: &Path) -> Option<String> {
    let logs_dir = experiment.parent().filter(|logs_dir| logs_dir.join(CONFIG).is_file())?;
    let out = logs_dir.parent()?.display().to_string();
    Some(if ["", "."].contains(&out.as_str()) {
        "dyno wsf --continue".into()
    } else {
        format!("dyno wsf --continue --out {out}")
    })
}
