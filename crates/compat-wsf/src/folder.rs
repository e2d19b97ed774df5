//! Folders of logs, as the framework leaves them.

use std::path::Path;

/// What was asked for, with the source of every value.
pub const CONFIG: &str = "workload-config.yaml";

/// The command that goes on with an experiment, if it is one of these folders'.
pub fn continues(experiment: &Path) -> Option<String> {
    let home = experiment.parent().filter(|home| home.join(CONFIG).is_file())?;
    let out = home.parent()?.display().to_string();
    Some(if ["", "."].contains(&out.as_str()) {
        "dyno wsf --continue".into()
    } else {
        format!("dyno wsf --continue --out {out}")
    })
}
