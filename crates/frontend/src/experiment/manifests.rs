//! `dyno plan --manifests`: what Kubernetes is given, as files.

use crate::exit::Failure;
use crate::terminal;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_config::experiment::{Experiment, ExperimentPlan};
use dyno_hosts::kubernetes::manifests::{preview_manifests, to_yaml};
use dyno_hosts::kubernetes::rights::{required_role, role_for_kubelets};
use dyno_rundir::files;
use serde_json::Value;
use std::path::Path;

/// Writes `rbac.yaml`, where the namespace is known `rbac-kubelet.yaml`, too, and a file for each cell. Names of runs, and
/// passwords that dyno makes, are new in each run.
pub fn write(plan: &ExperimentPlan, folder: &Path) -> Result<(), Failure> {
    let Some(first) = &plan.base.kubernetes else {
        return Err(Failure::usage("--manifests: the experiment has no section kubernetes"));
    };
    let put = |name: &str, objects: &[Value]| put(&folder.join(name), objects);
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::usage(format!("--manifests {}: {e}", folder.display())))?;
    put("rbac.yaml", &required_role(first.namespace.as_deref()))?;
    match &first.namespace {
        Some(namespace) => put("rbac-kubelet.yaml", &role_for_kubelets(namespace))?,
        // It would be granted to another account.
        None => {
            terminal::note("no rbac-kubelet.yaml: expected kubernetes.namespace to name whose right it is")
        }
    }
    for cell in &plan.cells {
        let Some(asked) = &cell.spec.kubernetes else { continue };
        let objects = of_cell(&cell.spec, asked)?;
        put(&format!("cell{:04}.yaml", cell.number), &objects)?;
    }
    terminal::note(&format!(
        "{} manifests in {}",
        plan.cells.len() + 1 + usize::from(first.namespace.is_some()),
        folder.display()
    ));
    Ok(())
}

/// Everything that a run would make.
pub fn of_cell(spec: &Experiment, asked: &Kubernetes) -> Result<Vec<Value>, Failure> {
    let made = preview_manifests(spec, asked).map_err(Failure::usage)?;
    Ok(std::iter::once(made.job).chain(made.others).collect())
}

/// Writes objects as YAML.
pub fn put(path: &Path, objects: &[Value]) -> Result<(), Failure> {
    let text = to_yaml(objects).map_err(Failure::internal)?;
    // Secrets are among them.
    let written = files::put_private(path, text.as_bytes());
    written.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}
