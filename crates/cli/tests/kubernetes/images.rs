//! The images of an experiment's runs.

use crate::kube::Cluster;
use crate::records;
use dyno_testkit::Dyno;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Images of the pods of a run, as its objects say.
fn images(run: &Path) -> Vec<String> {
    let file = run.join("server/objects.json.gz");
    let text = Command::new("gzip").arg("-dc").arg(&file).output().unwrap().stdout;
    let objects: Value = serde_json::from_slice(&text).unwrap();
    let mut found = Vec::new();
    for object in objects["items"].as_array().unwrap_or_else(|| panic!("{objects}")) {
        let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let image = |one: &Value| one["image"].as_str().map(str::to_owned);
        found.extend(containers.into_iter().flatten().filter_map(image));
    }
    found
}

/// Runs of an experiment have what their first run has found under the tag; where an image has no digest, its tag stays.
pub fn all_runs_have_the_image_of_the_first(cluster: &Cluster) {
    let dyno = Dyno::new();
    let phases = "connections: 4, rate: 500, operations: 1000, warmup: 0s";
    let text = cluster.experiment("bench", "{kind: redis}", "  worker_pods: 2\n", phases);
    std::fs::write(dyno.path("e.yaml"), format!("{text}repetitions: 2\n")).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "images", "--quiet"]);
    dyno.assert_ran(&output);
    let all = records(&dyno, "images");
    let [(first, _), (second, _)] = all.as_slice() else { panic!("{all:?}") };
    let tags = ["localhost/dyno:test", "localhost/redis:7"].map(str::to_owned);
    assert!(images(first).iter().all(|image| tags.contains(image)), "{:?}", images(first));
    let found = images(second);
    let pinned = found.iter().find(|image| image.starts_with("localhost/dyno@sha256:"));
    let Some(pinned) = pinned else { panic!("{found:?}") };
    assert!(found.iter().all(|image| image == pinned || *image == tags[1]), "{found:?}");
    // The kubelets have found the same, and the record has one name for it.
    for run in [first, second] {
        let text = std::fs::read(run.join("run.json")).unwrap();
        let run: Value = serde_json::from_slice(&text).unwrap();
        let workers: Vec<(&Value, &Value)> = run["facts"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| key.contains("-w-") && key.ends_with(".image"))
            .map(|(key, image)| (image, &run["facts"][format!("{key}_id")]))
            .collect();
        assert_eq!(workers.len(), 2);
        assert!(workers.iter().all(|(image, id)| **image == tags[0] && *id == pinned), "{workers:?}");
    }
    cluster.assert_nothing_left(Duration::from_secs(20));
}
