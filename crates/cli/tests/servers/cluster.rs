//! Redis with TLS, ACL and as a cluster: every way of logging in, redirections, and the death of a master.

use dyno_testkit::cluster::{Certificates, PASSWORD, RedisCluster, USER, launch};
use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, await_port, free_port, outcome, phase, skip, stderr, stdout,
};
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

#[test]
fn tls_with_own_ca_and_client_certificate() {
    let Some(certificates) = Certificates::make() else {
        return dyno_testkit::skip_because("TLS", "the openssl command is not installed");
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
    let not_tls = match dyno_testkit::RedisProcess::start(&[]) {
        Some(plain_server) => {
            dyno.run(&["run", &format!("rediss://127.0.0.1:{}?insecure=true", plain_server.port), "--no-out"])
        }
        None => return skip("TLS"),
    };
    let closing = closes_at_once();
    let hung_up = dyno.run(&["run", &format!("rediss://127.0.0.1:{closing}?insecure=true"), "--no-out"]);
    server.kill();
    dyno.assert_ran(&good);
    dyno.assert_ran(&insecure);
    for (output, word) in [
        (&wrong_ca, "TLS: invalid peer certificate"),
        (&without, "TLS"),
        (&wrong_password, "WRONGPASS"),
        (&plain, "TLS"),
        (&not_tls, "TLS"),
        (&hung_up, "closed the connection during the TLS handshake"),
    ] {
        assert_exit(output, &[3]);
        assert!(stderr(output).contains(word), "{word}: {}", stderr(output));
    }
    assert_exit(&no_file, &[2]);
    assert!(stderr(&no_file).contains("/nowhere/ca.pem"));
}

/// The port of something that reads what one client says first, and hangs up.
fn closes_at_once() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Unread bytes would turn the end into a reset.
        let _ = stream.read(&mut [0; 4096]);
    });
    port
}

/// Runs to the end and returns the summary.
fn summary_of(dyno: &Dyno, arguments: &[&str]) -> Value {
    let output = finish(dyno.start(&[arguments, &["--json", "--no-out"]].concat()), 60);
    dyno.assert_ran(&output);
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// A run's output; one that does not end is killed.
fn finish(run: Child, seconds: u64) -> Output {
    let pid = run.id();
    let (send, ended) = channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = ended.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout);
        if late {
            dyno_testkit::signal(pid, "KILL");
        }
        late
    });
    let output = run.wait_with_output().unwrap();
    drop(send);
    assert!(!guard.join().unwrap(), "the run did not end in {seconds} s:\n{}", stderr(&output));
    output
}

/// Every workload's operations succeed, wherever keys, index entries and scans are served.
fn all_workloads(dyno: &Dyno, cluster: &RedisCluster, ops: u64) {
    let count = ops.to_string();
    for (workload, options) in [("a", ""), ("e", ""), ("b", "&reads=replica"), ("f", "&reads=any")] {
        // A replica that is behind would not find a record.
        cluster.await_replicas();
        let uri = cluster.uri(options);
        let summary = summary_of(
            dyno,
            &["run", &uri, "-w", workload, "--records", "3000", "--users", "8", "--ops", &count],
        );
        let measured = phase(&summary, "measure");
        assert_eq!(arrivals(measured), ops);
        assert_eq!(outcome(measured, "ok"), ops, "workload {workload}: {}", measured["outcomes"]);
        assert_eq!(measured["redirects"], 0, "workload {workload}: a settled cluster redirected");
    }
    // Records, what workload e inserted, and the index.
    let sizes: Vec<u64> = (0..3).map(|node| cluster.ask(node, &["DBSIZE"]).parse().unwrap()).collect();
    assert!(sizes.iter().all(|&size| size > 600), "keys are not spread: {sizes:?}");
    let index: u64 = (0..3)
        .filter_map(|node| cluster.ask(node, &["-c", "ZCARD", "_indices"]).parse::<u64>().ok())
        .max()
        .unwrap();
    assert_eq!(sizes.iter().sum::<u64>(), index + 1, "{sizes:?}");
}

#[test]
fn a_plain_cluster_serves_every_workload_and_a_reshard_goes_unnoticed() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("cluster") };
    let dyno = Dyno::new();
    all_workloads(&dyno, &cluster, 20_000);
    // Scans touch many records, each of which may have moved.
    for (workload, rate, from, to) in [("a", "3000", 0, 1), ("e", "100", 1, 2)] {
        reshard(&dyno, &cluster, workload, rate, (from, to));
    }
}

/// 500 slots move while the load goes on: redirections are followed, and nothing fails.
fn reshard(dyno: &Dyno, cluster: &RedisCluster, workload: &str, rate: &str, (from, to): (usize, usize)) {
    let uri = cluster.uri("");
    let arguments = [
        "run",
        &uri,
        "-w",
        workload,
        "--records",
        "3000",
        "--rate",
        rate,
        "--arrivals",
        "constant",
        "--connections",
        "8",
        "--duration",
        "10s",
        "--warmup",
        "0",
        "--json",
        "--no-out",
    ];
    let run = dyno.start(&arguments);
    std::thread::sleep(Duration::from_secs(2));
    let (from, to) = (cluster.ask(from, &["CLUSTER", "MYID"]), cluster.ask(to, &["CLUSTER", "MYID"]));
    let place = format!("127.0.0.1:{}", cluster.port(0));
    let moved = cluster.cli(
        0,
        &[
            "--cluster",
            "reshard",
            &place,
            "--cluster-from",
            &from,
            "--cluster-to",
            &to,
            "--cluster-slots",
            "500",
            "--cluster-yes",
        ],
    );
    let output = finish(run, 60);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stdout));
    dyno.assert_ran(&output);
    let summary: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), rate.parse::<u64>().unwrap() * 10);
    assert_eq!(outcome(measured, "ok"), arrivals(measured), "workload {workload}: {}", measured["outcomes"]);
    assert!(measured["redirects"].as_u64().unwrap() > 0, "workload {workload}: nothing was redirected");
}

#[test]
fn a_cluster_with_tls_and_acl_survives_the_death_of_a_master() {
    let Some(certificates) = Certificates::make() else {
        return dyno_testkit::skip_because("cluster with TLS", "the openssl command is not installed");
    };
    let Some(mut cluster) = RedisCluster::start(Some(certificates)) else { return skip("cluster with TLS") };
    let dyno = Dyno::new();
    all_workloads(&dyno, &cluster, 3_000);
    kill_a_master(&dyno, &mut cluster);
}

fn kill_a_master(dyno: &Dyno, cluster: &mut RedisCluster) {
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
    let output = finish(run, 90);
    dyno.assert_ran_but(&output, dyno_testkit::OF_A_LOST_SERVER);
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

/// A seed that was taken out of its cluster is no reason to give up the others.
#[test]
fn a_seed_outside_of_the_cluster_is_passed_over() {
    let (Some(lone), Some(good)) =
        (RedisProcess::start(&[]), RedisProcess::start(&["--cluster-enabled", "yes"]))
    else {
        return skip("seeds of a cluster");
    };
    good.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let is_whole = |_: &u32| {
        std::thread::sleep(Duration::from_millis(50));
        good.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    };
    (0..400).find(is_whole).expect("a cluster of one");
    let dyno = Dyno::new();
    let run = |seeds: &str| {
        let target = format!("redis://{seeds}?cluster=true");
        dyno.run(&["run", &target, "--records", "100", "--ops", "1000", "--no-out"])
    };
    let [lone, good] = [&lone, &good].map(|server| format!("127.0.0.1:{}", server.port));
    dyno.assert_ran(&run(&format!("{lone},{good}")));
    let alone = run(&lone);
    assert_exit(&alone, &[3]);
    assert!(stderr(&alone).contains("cluster support disabled"), "{}", stderr(&alone));
}

/// `nopass`: whatever password is told, none among them.
#[test]
fn a_user_without_a_password_logs_in() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("users without a password") };
    server.cli(&["ACL", "SETUSER", "open", "on", "nopass", "~*", "&*", "+@all"]);
    server.cli(&["ACL", "SETUSER", "shut", "on", ">secret", "~*", "&*", "+@all"]);
    server.cli(&["ACL", "SETUSER", "default", "off"]);
    let dyno = Dyno::new();
    for protocol in ["2", "3"] {
        let run = |login: &str| {
            let target = format!("redis://{login}127.0.0.1:{}?protocol={protocol}", server.port);
            dyno.run(&["run", &target, "--records", "100", "--ops", "1000", "--no-out"])
        };
        dyno.assert_ran(&run("open@"));
        let shut = run("shut@");
        assert_exit(&shut, &[3]);
        assert!(stderr(&shut).contains("WRONGPASS"), "{}", stderr(&shut));
        assert_exit(&run(""), &[3]);
    }
}
