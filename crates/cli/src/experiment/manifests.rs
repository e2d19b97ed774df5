//! `dyno plan --manifests`: what Kubernetes is given, as files.

use crate::exit::Failure;
use crate::terminal;
use dyno_plan::experiment::Plan;
use dyno_rig::kubernetes::{RUN, manifests, role, yaml};
use std::path::Path;

/// Writes `rbac.yaml` and a file for each cell. Names of runs, and passwords that dyno makes, are new in each run.
pub fn write(plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let Some(first) = &plan.base.kubernetes else {
        return Err(Failure::Usage("--manifests: the experiment has no section kubernetes".into()));
    };
    let put = |name: &str, objects: &[serde_json::Value]| -> Result<(), Failure> {
        let path = folder.join(name);
        let text = yaml(objects).map_err(Failure::Internal)?;
        std::fs::write(&path, text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
    };
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::Usage(format!("--manifests {}: {e}", folder.display())))?;
    put("rbac.yaml", &role(first.namespace.as_deref()))?;
    for cell in &plan.cells {
        let Some(asked) = &cell.spec.kubernetes else { continue };
        let made = manifests(&cell.spec, asked, RUN).map_err(|e| Failure::Usage(e.to_string()))?;
        let objects: Vec<serde_json::Value> = std::iter::once(made.job).chain(made.others).collect();
        put(&format!("cell{:04}.yaml", cell.number), &objects)?;
    }
    terminal::note(&format!("{} manifests in {}", plan.cells.len() + 1, folder.display()));
    Ok(())
}
