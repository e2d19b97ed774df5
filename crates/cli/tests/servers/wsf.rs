//! `dyno wsf`: whole runs and what they leave, and the command lines of the workload's description.

use dyno_testkit::{Dyno, assert_exit, skip, stderr, stdout};
use std::fs;

fn has_redis() -> bool {
    dyno_databases::spawn::find_server(Some("redis")).is_some()
}

type Exports = &'static [(&'static str, &'static str)];

/// The four command lines of the description: exports and the test.
const COMMANDS: [(Exports, u32, u32); 4] = [
    (&[("CLIENT_SERVER_PAIR", "16"), ("NUMACTL_OPTION", "1")], 16, 1),
    (&[("CLIENT_SERVER_PAIR", "16"), ("NUMACTL_OPTION", "2")], 16, 2),
    (&[("CLIENT_SERVER_PAIR", "16"), ("NETWORK_RPS_TUNE_ENABLE", "true"), ("NUMACTL_OPTION", "1")], 16, 1),
    (&[("CLIENT_SERVER_PAIR", "8"), ("NUMACTL_OPTION", "2")], 8, 2),
];

#[test]
fn the_descriptions_command_lines() {
    let dyno = Dyno::new();
    for reading in ["23.3", "25"] {
        for (exports, pairs, option) in COMMANDS {
            let arguments =
                ["wsf", "-R", "test_mongodb_ycsb_90read10update", "-VV", "--dry-run", "--reading", reading];
            let mut command = dyno.command(&arguments);
            command.env("CLIENT_COUNT", "3").env("THREADS", "64").envs(exports.iter().copied());
            let output = command.output().unwrap();
            assert_exit(&output, &[0]);
            let text = stdout(&output);
            for line in [
                format!("instances: {pairs}  # CLIENT_SERVER_PAIR (environment)"),
                format!("policy: {option}  # NUMACTL_OPTION (environment)"),
                "users: 64  # THREADS (environment)".into(),
                "readproportion: \"0.90\"  # READ_PROPORTION (case)".into(),
                "records: 4000000".into(),
                "CLIENT_COUNT: \"3\"  # environment".into(),
                "testcase: \"mongodb_ycsb_90read10update_customized\"".into(),
            ] {
                assert!(text.contains(&line), "{reading}: no {line:?} in\n{text}");
            }
        }
    }
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0, "a dry run leaves nothing");
}

#[test]
fn a_program_that_is_missing_is_exit_code_2_as_for_any_experiment() {
    let dyno = Dyno::new();
    let output = dyno.run(&["wsf", "mongodb_ycsb_read", "--noenv", "--program", "/no/such/mongod"]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("/no/such/mongod is not there"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0);
}

#[test]
fn gated_and_its_logs() {
    if !has_redis() {
        return skip("gated_and_its_logs");
    }
    let dyno = Dyno::new();
    let output =
        dyno.run(&["wsf", "test_mongodb_ycsb_gated", "--server", "redis", "--noenv", "--run", "2", "-q"]);
    // A host that is busy with other things makes a run of a second invalid; all that follows holds none the less.
    dyno.assert_ran(&output);
    assert!(stderr(&output).contains("stands in for mongod"), "{}", stderr(&output));
    let read = |path: &str| fs::read_to_string(dyno.path("logs-mongodb_ycsb_gated").join(path)).unwrap();
    assert!(read("workload-config.yaml").contains("testcase: \"mongodb_ycsb_gated_customized\""));
    for run in ["itr-1", "itr-2"] {
        let status = read(&format!("{run}/benchmark-0/status"));
        // One that is invalid has not passed.
        assert!(status == "0\n" || (status == "1\n" && output.status.code() == Some(5)), "{status}");
        let log = read(&format!("{run}/benchmark-0/output.logs"));
        assert!(log.starts_with("[LOAD PHASE]\n[OVERALL], RunTime(ms), "), "{log}");
        assert!(log.contains("[INSERT], Return=OK, 1000\n[") && log.ends_with("benchmark-finish\n"), "{log}");
        let count = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(&format!("[{name}], Return=OK, ")));
            line.unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(count("READ") + count("UPDATE"), 10_000);
        assert!((8_800..9_200).contains(&count("READ")), "{log}");
        let kpis = read(&format!("{run}/kpi.txt"));
        assert!(kpis.contains("Counter of [RUN PHASE]: 0\n[OVERALL] Throughput(ops/sec):  "), "{kpis}");
        assert!(kpis.contains("\n*Sum of [run phase] Throughput(ops/sec): "), "{kpis}");
    }
    let listed = dyno.run(&["wsf", "list-kpi", "--params"]);
    assert_exit(&listed, &[0]);
    let text = stdout(&listed);
    assert!(text.starts_with("logs-mongodb_ycsb_gated:\n## CLIENT_SERVER_PAIR: 1\n"), "{text}");
    assert!(
        text.contains("\n#itr-2\n") && text.contains("\navg Sum of [run phase] Throughput(ops/sec): "),
        "{text}"
    );
    // A failed iteration has no part in the statistics; logs without KPIs are read.
    fs::write(dyno.path("logs-mongodb_ycsb_gated/itr-1/benchmark-0/status"), "1\n").unwrap();
    let kept = read("itr-2/kpi.txt");
    fs::remove_file(dyno.path("logs-mongodb_ycsb_gated/itr-2/kpi.txt")).unwrap();
    let table = stdout(&dyno.run(&["wsf", "list-kpi", "--format", "xls-list", "logs-mongodb_ycsb_gated"]));
    assert!(table.contains("\nstatus,failed,passed\n"), "{table}");
    let rate =
        kept.lines().find_map(|line| line.strip_prefix("*Sum of [run phase] Throughput(ops/sec): ")).unwrap();
    let whole = rate.split('.').next().unwrap();
    let of_logs = table.lines().find(|line| line.starts_with("*Sum")).unwrap();
    assert!(of_logs.rsplit(',').next().unwrap().starts_with(&whole[..2]), "{of_logs} {rate}");
    let status = stdout(&dyno.run(&["wsf", "--status"]));
    assert!(status.contains("complete, 2 of 2 runs ended"), "{status}");
    // Logs are not overwritten.
    let again =
        dyno.run(&["wsf", "gated", "--server", "redis", "--noenv", "--faithful", "--pause", "0", "-q"]);
    dyno.assert_ran(&again);
    assert!(stderr(&again).contains("meets the same one key"), "{}", stderr(&again));
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 2);
}

#[test]
fn pairs_and_iterations() {
    if !has_redis() {
        return skip("pairs_and_iterations");
    }
    let dyno = Dyno::new();
    let output = dyno.run(&[
        "wsf",
        "wsf-23.3/30write70read",
        "--server",
        "redis",
        "--noenv",
        "-q",
        "--if-not-permitted",
        "continue",
        "--set",
        "THREADS=1 2",
        "--set",
        "CLIENT_SERVER_PAIR=2/RECORD_COUNT=500/OPERATION_COUNT=20000",
    ]);
    dyno.assert_ran(&output);
    let mut names: Vec<String> = fs::read_dir(dyno.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].ends_with("-l1-logs-mongodb_ycsb_30write70read"), "{names:?}");
    for (name, threads) in names.iter().zip(["1", "2"]) {
        let home = dyno.path(name);
        let config = fs::read_to_string(home.join("workload-config.yaml")).unwrap();
        assert!(config.contains(&format!("THREADS: \"{threads}\"  # --set")), "{config}");
        let kpis = fs::read_to_string(home.join("itr-1/kpi.txt")).unwrap();
        for line in ["Counter of [RUN PHASE]: 1\n", "*P99 of [RUN PHASE] insert latency of all clients(us): "]
        {
            assert!(kpis.contains(line), "{kpis}");
        }
        let inserted = |client: u32| {
            let log = fs::read_to_string(home.join(format!("itr-1/benchmark-{client}/output.logs"))).unwrap();
            let run = log.split("[RUN PHASE]").nth(1).unwrap().to_owned();
            let line = run.lines().find_map(|line| line.strip_prefix("[INSERT], Return=OK, ")).unwrap();
            line.parse::<u64>().unwrap()
        };
        assert!((5_500..6_500).contains(&inserted(0)) && (5_500..6_500).contains(&inserted(1)));
    }
}
