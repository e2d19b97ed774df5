//! The manifests of `deploy` by kustomize and by helm: the server accepts what they make, in a namespace that admits nothing but
//! what the restricted policy allows.

use crate::kube::{Cluster, deploy};
use std::process::Command;

fn assert_accepted(cluster: &Cluster, words: &[&str], objects: usize) {
    let all = [&["--namespace", "bench", "apply", "--dry-run=server"], words].concat();
    let (accepted, said) = cluster.k(&all);
    assert!(accepted && !said.contains("Warning"), "{words:?}: {said}");
    assert_eq!(said.matches("created (server dry run)").count(), objects, "{said}");
}

pub fn what_is_deployed_is_accepted(cluster: &Cluster) {
    let folder = deploy();
    assert_accepted(cluster, &["--kustomize", folder.to_str().unwrap()], 7);
    let chart = folder.join("../helm/dyno");
    let mut helm = Command::new("helm");
    helm.args(["template", "night", "--namespace", "bench", "--kube-version", "1.30.0"]).arg(chart);
    let Ok(made) = helm.args(["--set", "networkPolicy=true"]).output() else {
        return dyno_testkit::skip_because("the Helm chart in a cluster", "helm is not on PATH");
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.stdout).unwrap();
    assert_accepted(cluster, &["--filename", file.path().to_str().unwrap()], 7);
}
