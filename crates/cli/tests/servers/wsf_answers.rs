//! `dyno wsf` as a user of the framework types it: what it refuses, what it says, and the answer that comes out.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, skip, skip_because, stderr, stdout};
use std::fs;
use std::process::Output;

fn run(dyno: &Dyno, words: &[&str]) -> Output {
    dyno.run(&[&["wsf"], words, &["--noenv"]].concat())
}

fn has_redis(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("redis")).is_some();
    if !there {
        skip(what);
    }
    there
}

#[test]
fn every_case_is_accepted_with_its_own_defaults() {
    let dyno = Dyno::new();
    for case in ["gated", "pkm", "90read10update", "30write70read", "write", "read"] {
        let output = run(&dyno, &[case, "--dry-run"]);
        assert_exit(&output, &[0]);
        let (text, notes) = (stdout(&output), stderr(&output));
        assert!(text.contains(&format!("case: \"wsf-23.3/{case}\"")), "the published reading: {text}");
        assert!(!notes.contains("server.cache"), "a key of a file that was never written: {notes}");
        if case != "gated" {
            // Three mongods of half the memory each are more than any host has, and are started all the same.
            let warned =
                notes.contains("warning: CACHE_SIZE_GB (default): the caches of the servers may grow to ");
            assert!(warned && notes.contains(" together, this host has "), "{notes}");
        }
        let pods =
            run(&dyno, &[case, "--backend", "kubernetes", "--kubernetes", "image=x", "--manifests", case]);
        assert_exit(&pods, &[0]);
        assert!(stderr(&pods).contains("note: pods have addresses of their own"), "{}", stderr(&pods));
        let written = fs::read_to_string(dyno.path(case).join("kubernetes-config.yaml")).unwrap();
        assert!(written.contains("kind: StatefulSet"), "{written}");
    }
    let write = stdout(&run(&dyno, &["write", "--dry-run"]));
    for line in ["insertproportion: \"1.0\"", "operations: 4000000", "duration: \"180s\"", "journal: false"] {
        assert!(write.contains(line), "no {line} in {write}");
    }
    let new = run(&dyno, &["write", "--reading", "25", "--dry-run"]);
    assert!(stdout(&new).contains("updateproportion: \"1.0\""), "{}", stdout(&new));
    assert!(
        stderr(&new).contains("JOURNAL_ENABLED=false (default): reading 25 leaves it to mongod"),
        "{}",
        stderr(&new)
    );
    let modern = ["write", "--dry-run", "--backend", "kubernetes", "--kubernetes", "server_image=mongo:7.0"];
    let modern = run(&dyno, &modern);
    assert!(!stdout(&modern).contains("journal: false"), "{}", stdout(&modern));
    assert!(
        stderr(&modern).contains("JOURNAL_ENABLED=false (default): 7.0 always keeps its journal"),
        "{}",
        stderr(&modern)
    );
}

#[test]
fn a_variable_is_named_as_it_was_given() {
    let dyno = Dyno::new();
    let cache = run(&dyno, &["read", "--dry-run", "--set", "CACHE_SIZE_GB=100000"]);
    assert_exit(&cache, &[0]);
    let output = stderr(&cache);
    assert!(
        output.contains("CACHE_SIZE_GB (--set): the caches of the servers may grow to 293.0 TiB"),
        "{output}"
    );
    // What the run refuses, the dry run refuses in the same words.
    let cores = ["gated", "--reading", "25", "--set", "NUMACTL_OPTION=3/CORE_NUMS_EACH_INSTANCE=9999"];
    let cores = [&cores[..], &["--server", "redis"]].concat();
    let dry = run(&dyno, &[&cores[..], &["--dry-run"]].concat());
    assert_exit(&dry, &[2]);
    let refused = stderr(&dry).lines().last().unwrap().to_owned();
    assert!(
        refused.starts_with(
            "error: CORE_NUMS_EACH_INSTANCE (--set): 1 processes of 9999 physical cores each need 9999"
        ),
        "{refused}"
    );
    if has_redis("a run that is refused") {
        let made = run(&dyno, &cores);
        assert_exit(&made, &[2]);
        assert_eq!(stderr(&made).lines().last().unwrap(), refused);
        assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0, "nothing is left behind");
    }
    for (words, said) in [
        (
            &["gated", "--set", "THREDS=4"][..],
            "\"THREDS\" is no variable of this workload; did you mean THREADS?",
        ),
        (&["gated", "--set", "REPLICA_SET=true"], "a variable of reading 25 (--reading 25), not of 23.3"),
        (&["gated", "--set", "NUMACTL_OPTION=4"], "reading 23.3 has 0 to 2; --reading 25 has 0 to 5"),
        (&["50read50update"], "reading 23.3 has no such case, --reading 25 has"),
    ] {
        let refused = run(&dyno, words);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(said), "{words:?}: {}", stderr(&refused));
    }
}

#[test]
fn variables_without_effect_have_a_note() {
    let dyno = Dyno::new();
    for (words, note) in [
        (&["--set", "SELECT_NUMA_NODE=1"][..], "SELECT_NUMA_NODE: has no effect unless NUMACTL_OPTION=2"),
        (&["--set", "CORES=0"], "CORES: has no effect unless NUMACTL_OPTION=2"),
        (
            &["--set", "YCSB_CORES=0"],
            "YCSB_CORES: has no effect unless NUMACTL_OPTION=2 or RUN_SINGLE_NODE=true",
        ),
        (
            &["--set", "PROCESS_MANAGEMENT_FORK=false"],
            "PROCESS_MANAGEMENT_FORK: recorded, without effect here",
        ),
        (
            &["--set", "NETWORK_RPS_TUNE_ENABLE=true"],
            "NETWORK_RPS_TUNE_ENABLE: a local run uses no network device",
        ),
        (
            &["--reading", "25", "--set", "CORE_NUMS_EACH_INSTANCE=2"],
            "CORE_NUMS_EACH_INSTANCE: has no effect unless NUMACTL_OPTION is 3 or 4",
        ),
        (
            &["--reading", "25", "--set", "KUBERNETES_RESOURCE_LIMITS_CPU=2"],
            "KUBERNETES_RESOURCE_LIMITS_CPU: has no effect unless KUBERNETES_RESOURCE_LIMITS=true",
        ),
        (
            &["--reading", "25", "--set", "KUBERNETES_RESOURCE_LIMITS=true"],
            "KUBERNETES_RESOURCE_LIMITS: has no effect without KUBERNETES_RESOURCE_LIMITS_CPU",
        ),
        (
            &["--set", "CUSTOMER_NUMAOPT_SERVER=--localalloc", "--set", "NUMACTL_OPTION=1"],
            "NUMACTL_OPTION: has no effect beside CUSTOMER_NUMAOPT_SERVER",
        ),
    ] {
        let shown = run(&dyno, &[&["gated", "--dry-run"], words].concat());
        assert_exit(&shown, &[0]);
        assert!(stderr(&shown).contains(&format!("note: {note}")), "{words:?}: {}", stderr(&shown));
    }
}

#[test]
fn clients_share_the_cores_of_servers_that_have_all_of_them() {
    if !has_redis("servers on all cores") {
        return;
    }
    let dyno = Dyno::new();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cores = format!(
        "NUMACTL_OPTION=2/CORES={allowed}/CLIENT_SERVER_PAIR=2/RECORD_COUNT=200/OPERATION_COUNT=2000"
    );
    let made = run(&dyno, &["90read10update", "--server", "redis", "--set", &cores, "-q", "--out", "l"]);
    // A host that is busy with other things makes a run of a moment invalid; it is made all the same.
    dyno.assert_ran(&made);
    let told = stdout(&dyno.run(&[
        "report",
        "-v",
        "l/logs-mongodb_ycsb_90read10update/experiment/runs/cell0001-rep01",
    ]));
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("shared_cores: servers and load share the core"), "{told}");
    assert!(told.contains("each slows the other"), "{told}");
}

#[test]
fn targets_are_points_of_one_curve() {
    if !has_redis("a sweep of TARGET") {
        return;
    }
    let dyno = Dyno::new();
    let sets = "RECORD_COUNT=500/CLIENT_SERVER_PAIR=1/OPERATION_COUNT=300/TARGET=200 400 800";
    let made = run(&dyno, &["90read10update", "--server", "redis", "--set", sets, "-q"]);
    dyno.assert_ran(&made);
    let home = dyno.path("logs-mongodb_ycsb_90read10update");
    for rate in ["200", "400", "800"] {
        let own = home.join(format!("TARGET-{rate}"));
        let config = fs::read_to_string(own.join("workload-config.yaml")).unwrap();
        assert!(config.contains(&format!("TARGET: \"{rate}\"  # --set")), "{config}");
        let kpis = fs::read_to_string(own.join("itr-1/kpi.txt")).unwrap();
        assert!(kpis.contains("[RUN PHASE] P99 read latency(us): "), "{kpis}");
        let line = kpis.lines().find(|line| line.starts_with("P99 of [RUN PHASE] read response time(us): "));
        if kpis.contains("*Mean of [RUN PHASE] P99 read latency") {
            assert!(
                line.unwrap().ends_with("# from when each operation was due (TARGET), all clients"),
                "{kpis}"
            );
            assert!(kpis.contains(" # service time: from sending to the reply"), "{kpis}");
        }
        let log = fs::read_to_string(own.join("itr-1/benchmark-0/output.logs")).unwrap();
        assert!(log.contains("[RUN PHASE]"), "{log}");
    }
    let listed = stdout(&dyno.run(&["wsf", "list-kpi", "logs-mongodb_ycsb_90read10update"]));
    let places = ["TARGET-200:", "TARGET-400:", "TARGET-800:"].map(|name| listed.find(name).unwrap());
    assert!(places[0] < places[1] && places[1] < places[2], "{listed}");
    let told = stdout(&dyno.run(&["explain", "logs-mongodb_ycsb_90read10update/experiment"]));
    assert!(told.starts_with("rates") && told.contains("R counts from when an operation was due"), "{told}");
    // What differs in more than the rate is as many experiments; so is what does not limit it.
    let plain = run(&dyno, &["read", "--dry-run", "--set", "TARGET=0 400"]);
    assert_eq!(stdout(&plain).matches("# experiment.yaml").count(), 2);
    let pairs = run(&dyno, &["read", "--dry-run", "--set", "TARGET=200 400", "--set", "THREADS=1 2"]);
    assert_eq!(stdout(&pairs).matches("# experiment.yaml").count(), 2);
}

#[test]
fn a_second_load_of_a_server_that_exists_says_what_to_do() {
    let Some(server) = Mongo::java() else {
        return skip_because(
            "a second --target run",
            "mongo-java-server is not there (see scripts/need mongo)",
        );
    };
    let dyno = Dyno::new();
    let uri = server.uri("ycsb");
    let line = ["gated", "--target", uri.as_str(), "--set", "OPERATION_COUNT=200", "-q"];
    dyno.assert_ran(&run(&dyno, &line));
    let again = run(&dyno, &line);
    assert_exit(&again, &[5]);
    let output = stderr(&again);
    assert!(
        output.contains("the target holds records of this load already: drop them first, and it loads anew"),
        "{output}"
    );
}
