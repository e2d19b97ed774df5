//! `deploy/compose` and `deploy/kubernetes` with the programs that read them: Prometheus, promtool, kubectl.

use crate::grafana::{Ended, await_ready, encoded, get, program};
use dyno_testkit::{Dyno, free_port, skip_because};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

fn deploy(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// The configuration of `deploy/compose` in a real Prometheus, with another port for dyno.
#[test]
fn prometheus_of_compose_scrapes_a_run() {
    let what = "Prometheus of deploy/compose";
    let dyno = Dyno::new();
    let text = std::fs::read_to_string(deploy("compose/prometheus/prometheus.yml")).unwrap();
    assert_eq!(text.matches("127.0.0.1:9464").count(), 1);
    let (metrics, port) = (free_port(), free_port());
    std::fs::write(dyno.path("prometheus.yml"), text.replace(":9464", &format!(":{metrics}"))).unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--web.enable-remote-write-receiver".to_owned(),
    ];
    let Some(_prometheus) = program("prometheus", &arguments, dyno.folder.path()) else {
        return skip_because(what, "Prometheus is not installed");
    };
    await_ready(port);
    let place = metrics.to_string();
    let load = ["run", "null:", "--rate", "1000", "--duration", "60s", "--no-out", "-q", "--metrics", &place];
    let _load = Ended(dyno.start(&load));
    let end = Instant::now() + Duration::from_secs(40);
    let query =
        format!("/api/v1/query?query={}", encoded("sum(rate(dyno_operations_total{job=\"dyno\"}[5s])) > 0"));
    while get(port, &query)["data"]["result"].as_array().is_none_or(Vec::is_empty) {
        assert!(Instant::now() < end, "Prometheus has nothing of the run");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn promtool_accepts_the_configuration() {
    let config = deploy("compose/prometheus/prometheus.yml");
    let Ok(told) = Command::new("promtool").args(["check", "config"]).arg(config).output() else {
        return skip_because("promtool on deploy/compose", "promtool is not installed");
    };
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

#[test]
fn kubectl_renders_the_manifests() {
    let Ok(told) = Command::new("kubectl").arg("kustomize").arg(deploy("kubernetes")).output() else {
        return skip_because("kubectl on deploy/kubernetes", "kubectl is not installed");
    };
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let mut kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    kinds.sort_unstable();
    let expected = [
        "ConfigMap",
        "Job",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ];
    assert_eq!(kinds, expected);
}
