//! bexhoma's five presets in pods, at small scale: with Redis in Dragonfly's place, and with Dragonfly where it is on PATH.

use crate::kube::Cluster;
use crate::{records, say};
use dyno_testkit::{self, Dyno};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Volumes that were made beforehand, as clusters without a provisioner have them: folders of the node, of the class `shelf`.
pub fn shelf(cluster: &Cluster, dyno: &Dyno, count: u32) {
    let mut all = String::new();
    for number in 1..=count {
        let folder = dyno.path(&format!("shelf-{number}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        all += &format!(
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: shelf-{number}, labels: {{shelf: own}}}}\nspec:\n  \
             capacity: {{storage: 1Gi}}\n  accessModes: [ReadWriteOnce]\n  storageClassName: shelf\n  hostPath: {{path: {}}}\n",
            folder.display()
        );
    }
    std::fs::write(dyno.path("shelf.yaml"), all).unwrap();
    let (made, message) = cluster.k(&["apply", "-f", &dyno.path("shelf.yaml").display().to_string()]);
    assert!(made, "{message}");
}

/// Removes them, and the claims on them.
pub fn clear_shelf(cluster: &Cluster) {
    let of_dyno = "app.kubernetes.io/part-of=dyno";
    for words in [
        &["-n", "bench", "delete", "persistentvolumeclaim", "-l", of_dyno][..],
        &["delete", "persistentvolume", "-l", "shelf=own", "--timeout=60s"],
    ] {
        let (gone, said) = cluster.k(words);
        assert!(gone, "{words:?}: {said}");
    }
}

/// The single server, the cluster of three, the primary with two copies (which are read from), and the first two once more on
/// volumes that the second run finds full.
pub fn all_five(cluster: &Cluster, kind: &str) {
    for number in [1, 2] {
        assert_eq!(one(cluster, &Dyno::new(), kind, number, &[]).len(), 1);
    }
    one(cluster, &Dyno::new(), kind, 3, &["server.reads=any"]);
    for (number, volumes) in [(4, 1), (5, 3)] {
        let dyno = Dyno::new();
        shelf(cluster, &dyno, volumes);
        let runs = one(cluster, &dyno, kind, number, &["kubernetes.storage={class: shelf, size: 1GiB}"]);
        let data: Vec<&str> = runs.iter().map(|run| run["facts"]["volume.data"].as_str().unwrap()).collect();
        assert_eq!(data, ["loaded", "reused"], "preset {number}");
        let end = Instant::now() + Duration::from_secs(30);
        while cluster.left().lines().count() > volumes as usize && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(500));
        }
        let claims = cluster.left().lines().filter(|line| line.contains("persistentvolumeclaim/")).count();
        assert_eq!(
            (claims, cluster.left().lines().count()),
            (volumes as usize, volumes as usize),
            "they stay"
        );
        clear_shelf(cluster);
        cluster.assert_nothing_left(Duration::from_secs(30));
    }
}

/// Ten thousand records, loaded by eight pods, and ten thousand operations by one of them; what `run.json` says of every run.
fn one(cluster: &Cluster, dyno: &Dyno, kind: &str, number: u32, more: &[&str]) -> Vec<Value> {
    let server = match kind {
        "redis" => ["server.kind=redis", "kubernetes.server_image=localhost/redis:7"],
        _ => ["server.options={proactor_threads: 1}", "kubernetes.server_image=localhost/dragonfly:test"],
    };
    let preset = format!("bexhoma/dragonfly-{number}");
    let kubectl = format!("kubernetes.kubectl={}", cluster.lab.join("k").display());
    let mut words = vec!["run", &preset, "--out", "preset", "--quiet", "--set", &kubectl];
    let usual = [
        "kubernetes.namespace=bench",
        "kubernetes.image=localhost/dyno:test",
        "kubernetes.pull=Never",
        "kubernetes.servers={}",
        "kubernetes.workers={}",
        "workload.ycsb.records=10000",
        "phases.load.rate=10000",
        "phases.measure.operations=10000",
        "phases.measure.rate=5000",
    ];
    usual.iter().chain(&server).chain(more).for_each(|set| words.extend(["--set", set]));
    let begun = Instant::now();
    dyno.assert_ran(&dyno.run(&words));
    let seconds = begun.elapsed().as_secs();
    let all = records(dyno, "preset").into_iter().map(|(dir, record)| {
        assert_eq!(record["status"], "complete", "{record}");
        let summary = dyno.summary(dir.to_str().unwrap());
        let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
        let facts = run["facts"].as_object().unwrap();
        if facts.get("volume.data").is_none_or(|data| data == "loaded") {
            assert_eq!(
                dyno_testkit::outcome(dyno_testkit::phase(&summary, "load"), "ok"),
                10_000,
                "{preset}: by eight pods"
            );
        }
        assert_eq!(
            dyno_testkit::outcome(dyno_testkit::phase(&summary, "measure"), "ok"),
            10_000,
            "{preset}: by one of them"
        );
        let database = run["database"].as_str().unwrap().to_lowercase();
        assert!(database.starts_with(kind), "{preset}: {database}");
        let nodes = dyno_testkit::phase(&summary, "measure")["monitor"]["database"]["nodes"].as_u64();
        assert_eq!(
            nodes,
            Some(if [1, 4].contains(&number) { 1 } else { 3 }),
            "{preset}: nodes that are watched"
        );
        let pods = facts.keys().filter(|key| key.starts_with("pod.") && key.ends_with(".node")).count();
        assert_eq!(pods, if [1, 4].contains(&number) { 9 } else { 11 }, "{preset}: {facts:?}");
        let phases = summary["phases"].as_array().unwrap().iter();
        let rates: Vec<String> = phases
            .map(|phase| format!("{} {:.0}/s", phase["name"], phase["throughput"].as_f64().unwrap()))
            .collect();
        say(&format!("preset {number} in pods, {kind}: {}; {seconds} s for all runs", rates.join(", ")));
        run
    });
    let all: Vec<Value> = all.collect();
    if [1, 2, 3].contains(&number) {
        cluster.assert_nothing_left(Duration::from_secs(20));
    }
    all
}
