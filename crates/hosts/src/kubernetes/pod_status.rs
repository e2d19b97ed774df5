//! What of an experiment's pods runs now, for people who ask.

use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::run_pods::is_selector;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_rundir::files;
use serde_json::Value;
use std::path::Path;

/// Pods of servers and of workers that run, of whatever the journals in an experiment's directory name.
pub fn running_pods(asked: &Kubernetes, directory: &Path) -> (usize, usize) {
    let kubectl = Kubectl::new(asked);
    let (mut servers, mut workers) = (0, 0);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !dyno_localhost::trusted::is_of_pods(&name) {
            continue;
        }
        let noted =
            files::read(&entry.path()).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let Some(selector) = noted.as_ref().and_then(|noted| noted["selector"].as_str()) else { continue };
        if !is_selector(selector) {
            continue;
        }
        // A cluster that does not answer has nothing that could be shown.
        let Ok(pods) = kubectl.run_json(&["get", "pods", "-l", selector, "-o", "json"]) else { continue };
        for pod in pods["items"].as_array().map_or(&[][..], Vec::as_slice) {
            let component = &pod["metadata"]["labels"]["app.kubernetes.io/component"];
            match (pod["status"]["phase"] == "Running", component == "worker") {
                (true, true) => workers += 1,
                (true, false) => servers += 1,
                _ => {}
            }
        }
    }
    (servers, workers)
}
