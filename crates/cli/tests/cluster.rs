//! Redis with TLS, ACL and as a cluster: every way of logging in, redirections, and the death of a master.

mod common;

use common::cluster::{Certificates, Cluster, PASSWORD, USER, launch};
use common::{Dyno, arrivals, assert_exit, await_port, free_port, outcome, phase, skip, stderr, stdout};
use std::time::Duration;

/// 5 is a verdict on a noisy machine (or on a killed master), not on the command.
const RAN: &[i32] = &[0, 5];

#[test]
fn tls_with_own_ca_and_client_certificate() {
    let Some(certificates) = Certificates::make() else {
        return common::skip_because("TLS", "the openssl command is not installed");
    };
    let dyno = Dyno::new();
    let port = free_port();
    let configuration = format!(
        "bind 127.0.0.1\n{}save \"\"\ndir {}\nuser {USER} on >{PASSWORD} ~* &* +@all\nuser default off\n",
        certificates.settings(port, "yes"),
        dyno.folder.path().display()
    );
    let Some(mut server) = launch(dyno.folder.path(), &configuration) else { return skip("TLS") };
    await_port(port);
    let pem = |name: &str| certificates.path(name).display().to_string();
    let identity = format!("&cert={}&key={}", pem("client.pem"), pem("client.key"));
    let run = |login: &str, options: &str| {
        let target = format!("rediss://{login}@127.0.0.1:{port}?{options}");
        dyno.run(&["run", &target, "--records", "200", "--ops", "1000", "--no-out"])
    };
    let login = format!("{USER}:{PASSWORD}");
    let good = run(&login, &format!("ca={}{identity}", pem("ca.pem")));
    let insecure = run(&login, &format!("insecure=true{identity}"));
    let wrong_ca = run(&login, &format!("ca={}{identity}", pem("other.pem")));
    let without = run(&login, &format!("ca={}", pem("ca.pem")));
    let wrong_password = run(&format!("{USER}:wrong"), &format!("ca={}{identity}", pem("ca.pem")));
    let no_file = run(&login, "ca=/nowhere/ca.pem");
    let plain = dyno.run(&["run", &format!("redis://127.0.0.1:{port}"), "--no-out"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_exit(&good, &[0]);
    assert_exit(&insecure, &[0]);
    for (output, word) in [
        (&wrong_ca, "certificate"),
        (&without, "127.0.0.1"),
        (&wrong_password, "WRONGPASS"),
        (&plain, "127.0.0.1"),
    ] {
        assert_exit(output, &[3]);
        assert!(stderr(output).contains(word), "{word}: {}", stderr(output));
    }
    assert_exit(&no_file, &[2]);
    assert!(stderr(&no_file).contains("/nowhere/ca.pem"));
}

#[test]
fn a_cluster_with_tls_and_acl_survives_the_death_of_a_master() {
    if !std::path::Path::new("/usr/bin/redis-server").exists() && common::Server::start(&[]).is_none() {
        return skip("cluster");
    }
    let Some(mut cluster) = Cluster::start() else {
        return common::skip_because("cluster", "the openssl command is not installed");
    };
    let dyno = Dyno::new();
    // Keys, index entries and scans go to the nodes that serve them.
    for (workload, options) in [("a", ""), ("e", ""), ("b", "&reads=replica"), ("f", "&reads=any")] {
        let output = dyno.run(&[
            "run",
            &cluster.uri(options),
            "-w",
            workload,
            "--records",
            "2000",
            "--users",
            "6",
            "--ops",
            "3000",
            "--json",
            "--no-out",
        ]);
        assert_exit(&output, RAN);
        let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let measured = phase(&summary, "measure");
        let ok = outcome(measured, "ok") + outcome(measured, "not_found");
        // A replica may be behind: what it has not got yet is not found.
        assert_eq!(ok, 3_000, "workload {workload}: {}", measured["outcomes"]);
    }
    for node in 0..3 {
        let size = String::from_utf8_lossy(&cluster.cli(node, &["DBSIZE"]).stdout).trim().to_owned();
        assert!(size.parse::<u64>().unwrap() > 400, "node {node} holds {size} keys");
    }
    kill_a_master(&dyno, &mut cluster);
}

fn kill_a_master(dyno: &Dyno, cluster: &mut Cluster) {
    let run = dyno.start(&[
        "run",
        &cluster.uri(""),
        "--records",
        "2000",
        "--rate",
        "5000",
        "--arrivals",
        "constant",
        "--duration",
        "14s",
        "--warmup",
        "0",
        "--timeout",
        "1s",
        "--out",
        "d",
    ]);
    std::thread::sleep(Duration::from_secs(4));
    cluster.kill(1);
    let output = run.wait_with_output().unwrap();
    assert_exit(&output, RAN);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 70_000);
    assert!(outcome(measured, "ok") < 70_000, "killing node {} had no effect", cluster.port(1));
    // The node time-out is 2 s and a replica needs up to 2 s more; the last seconds are whole again.
    let series = std::fs::read_to_string(dyno.path("d/series.csv")).unwrap();
    let by_second: Vec<(u64, u64)> = series
        .lines()
        .filter(|l| l.contains(",measure,TOTAL,"))
        .map(|l| {
            let columns: Vec<&str> = l.split(',').collect();
            (columns[3].parse().unwrap(), columns[4].parse().unwrap())
        })
        .collect();
    let last = &by_second[by_second.len().min(14) - 3..by_second.len().min(14)];
    assert!(
        last.iter().all(|(ok, failed)| *ok > 4_500 && *failed == 0),
        "load did not resume: {by_second:?}"
    );
}
