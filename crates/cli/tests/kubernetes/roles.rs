//! Pods by what they are for, and what the kubelet says of those of servers.

use crate::kube::Cluster;
use crate::record;
use dyno_testkit::{self, Dyno, assert_exit, stdout};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The sum of counters of a source at each row that has them: milliseconds of the run, and the sum. A source that says more
/// than before goes on in a file of its own, `SOURCE.2.csv`.
fn counted(monitor: &Path, source: &str, columns: &[&str]) -> Vec<(f64, f64)> {
    let file = |number: usize| match number {
        1 => monitor.join(format!("{source}.csv")),
        _ => monitor.join(format!("{source}.{number}.csv")),
    };
    let files = (1..100).map(file).take_while(|file| file.exists());
    files.flat_map(|file| rows(&std::fs::read_to_string(file).unwrap(), columns)).collect()
}

fn rows(text: &str, columns: &[&str]) -> Vec<(f64, f64)> {
    let mut rows = text.lines();
    let head: Vec<&str> = rows.next().unwrap().split(',').collect();
    let at =
        |name: &&str| head.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name}: {head:?}"));
    let columns: Vec<usize> = columns.iter().map(at).collect();
    let sum = |row: &str| -> Option<(f64, f64)> {
        let cells: Vec<Option<f64>> = row.split(',').map(|cell| cell.parse().ok()).collect();
        let values = columns.iter().map(|at| cells[*at]);
        Some((cells[0]?, values.sum::<Option<f64>>()?))
    };
    rows.filter_map(sum).collect()
}

/// A counter at a time between two of its rows.
fn between(rows: &[(f64, f64)], at: f64) -> Option<f64> {
    let pair = rows.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&at))?;
    let ((from, low), (to, high)) = (pair[0], pair[1]);
    Some(low + (high - low) * (at - from) / (to - from).max(f64::MIN_POSITIVE))
}

/// What the pods have used is what the next run requests: of the server what Redis itself says, and a quarter more. The greatest
/// ten seconds may be busier than the whole.
fn requests_of_the_next_run(cluster: &Cluster, dyno: &Dyno, cores: f64) {
    let output = dyno.run(&["requests", "roles"]);
    assert_exit(&output, &[0]);
    let found: Value = serde_saphyr::from_str(&stdout(&output)).unwrap();
    let requests = |pods: &str, what: &str, unit: &str| -> f64 {
        let quantity = &found["kubernetes"][pods]["requests"][what];
        quantity.as_str().unwrap().strip_suffix(unit).unwrap().parse().unwrap()
    };
    let share = requests("servers", "cpu", "m") / (cores * 1_250.0);
    assert!((0.8..2.0).contains(&share), "{found}: {cores} cores by Redis itself");
    for pods in ["workers", "loaders", "servers"] {
        assert!(requests(pods, "memory", "Mi") >= 1.0, "{found}");
    }
    let options = stdout(&dyno.run(&["requests", "roles", "--options"]));
    let options: Vec<&str> = options.split_whitespace().collect();
    let plan = dyno.run(&[&["plan", "e.yaml", "--manifests", "m"][..], &options].concat());
    assert_exit(&plan, &[0]);
    let path = dyno.path("m/cell0001.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let cpu = found["kubernetes"]["servers"]["requests"]["cpu"].as_str().unwrap();
    assert!(text.contains(&format!("cpu: {cpu}")), "{cpu}: {text}");
    let (valid, said) =
        cluster.k(&["-n", "bench", "apply", "--dry-run=server", "-f", &path.display().to_string()]);
    assert!(valid, "{said}");
}

/// Two pods load, one measures; the server's processor time is what it says itself.
pub fn pods_that_load_others_that_measure_and_a_server_that_is_watched(cluster: &Cluster) {
    let dyno = Dyno::new();
    let more = "  worker_pods: 1\n  load_pods: 2\n  loaders: {node_selector: {kubernetes.io/os: linux}}\n";
    let phases = "connections: 4, rate: 4000, operations: 160000, warmup: 0s";
    let text = cluster.experiment("bench", "{kind: redis}", more, phases);
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "roles", "--quiet"]);
    dyno.assert_ran(&output);
    let (dir, record) = record(&dyno, "roles");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(dyno_testkit::outcome(dyno_testkit::phase(&summary, "load"), "ok"), 1_000, "by two pods");
    let measured = dyno_testkit::phase(&summary, "measure");
    assert_eq!(dyno_testkit::arrivals(measured), 160_000, "by the third");
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    let facts = run["facts"].as_object().unwrap();
    let pods: Vec<&String> =
        facts.keys().filter(|key| key.starts_with("pod.") && key.ends_with(".node")).collect();
    assert_eq!(pods.iter().filter(|key| key.contains("-l-")).count(), 2, "{pods:?}");
    assert_eq!((pods.len(), pods.iter().filter(|key| key.contains("-w-")).count()), (4, 1), "{pods:?}");
    let server = &measured["monitor"]["server"];
    assert_eq!(server["in_pods"], true, "{measured}");
    assert!(server["resident_bytes"].as_f64().unwrap() > 1e6, "{server}");
    let monitor = dir.join("monitor");
    let files = std::fs::read_dir(&monitor).unwrap().flatten();
    let sources: BTreeSet<String> = files
        .filter_map(|entry| Some(entry.file_name().to_str()?.split('.').next()?.to_owned()))
        .filter(|source| source.starts_with("server-"))
        .collect();
    let [kubelet] = Vec::from_iter(&sources)[..] else { panic!("{sources:?}") };
    // The kubelet looks at times of its own: at the first and the last of them that Redis was asked around, both are compared.
    let itself = counted(&monitor, "database", &["cpu.user_s", "cpu.system_s"]);
    let by_kubelet = counted(&monitor, kubelet, &["cgroup.cpu_s"]);
    let both: Vec<(f64, f64, f64)> =
        by_kubelet.iter().filter_map(|(at, told)| Some((*at, *told, between(&itself, *at)?))).collect();
    let [first, .., last] = both.as_slice() else { panic!("kubelet: {by_kubelet:?}, Redis: {itself:?}") };
    let seconds = (last.0 - first.0) / 1e3;
    let (told, itself) = ((last.1 - first.1) / seconds, (last.2 - first.2) / seconds);
    crate::say(&format!("server pod: {told:.3} cores by the kubelet, {itself:.3} by Redis itself"));
    assert!((told / itself - 1.0).abs() < 0.35, "{told} by the kubelet, {itself} by Redis");
    requests_of_the_next_run(cluster, &dyno, itself);
    cluster.assert_nothing_left(Duration::from_secs(20));
}
