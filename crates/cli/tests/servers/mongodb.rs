//! MongoDB's protocol against real servers: FerretDB, mongo-java-server, and `mongod` where it is installed.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, arrivals, assert_exit, finish, outcome, phase, skip_because, stderr, stdout};

/// 5 is a verdict on a short or noisy run, not on the command.
fn missing(what: &str) {
    skip_because(what, "no server that speaks MongoDB's protocol is there (see scripts/need mongo)");
}

/// Every server there is, by name.
fn servers() -> Vec<(&'static str, Mongo)> {
    let all = [
        ("FerretDB", Mongo::ferretdb(&[])),
        ("mongo-java-server", Mongo::java()),
        ("mongod", Mongo::mongod()),
    ];
    all.into_iter().filter_map(|(name, server)| Some((name, server?))).collect()
}

#[test]
fn run_loads_measures_and_names_the_server() {
    let servers = servers();
    if servers.is_empty() {
        return missing("dyno run on MongoDB");
    }
    for (name, server) in &servers {
        let dyno = Dyno::new();
        let uri = server.uri("t1");
        let arguments =
            ["run", &uri, "--records", "200", "--load-batch", "30", "--ops", "400", "--users", "4"];
        let run = dyno.run(&[&arguments[..], &["--out", "d"]].concat());
        dyno.assert_ran(&run);
        let summary = dyno.summary("d");
        let loaded = phase(&summary, "load");
        assert_eq!((arrivals(loaded), outcome(loaded, "ok")), (200, 200), "{name}");
        let measured = phase(&summary, "measure");
        assert_eq!(outcome(measured, "ok"), 400, "{name}: {}", measured["outcomes"]);
        // What a server says of the collection; what it does not say is not there, and no zero.
        let said = &summary["collections"]["usertable"];
        assert_eq!(said["count"], 200.0, "{name}: {}", summary["collections"]);
        assert!(
            said["size"].as_f64() > Some(200_000.0)
                && said.get("freeStorageSize").is_none_or(|v| v.is_number()),
            "{said}"
        );
        // Before and after every phase.
        let edges = |phase_name: &str| phase(&summary, phase_name)["collections"].clone();
        assert_ne!(edges("load")["before"]["usertable"]["count"], 200.0, "{name}: {}", edges("load"));
        for figures in [&edges("load")["after"], &edges("measure")["before"], &edges("measure")["after"]] {
            assert_eq!(figures["usertable"]["count"], 200.0, "{name}: {figures}");
        }
        if *name == "FerretDB" {
            assert!(said["indexSizes._id_"].is_number(), "{said}");
            assert!(
                summary["database"].as_str().unwrap().starts_with("FerretDB 1."),
                "{}",
                summary["database"]
            );
        }
        // The records are found, not loaded again.
        let again = dyno.run(&["run", &uri, "--records", "200", "--ops", "10", "--no-out"]);
        dyno.assert_ran(&again);
        assert!(stderr(&again).contains("are there already"), "{}", stderr(&again));
    }
}

#[test]
fn an_experiment_has_the_collections_figures_before_and_after_every_phase() {
    let servers = servers();
    if servers.is_empty() {
        return missing("an experiment on MongoDB");
    }
    for (name, server) in &servers {
        let dyno = Dyno::new();
        let text = format!(
            "target: {}\nworkload: {{ycsb: {{workload: d, records: 200}}}}\n\
             phases: {{load: {{when: always}}, measure: {{operations: 400, warmup: 0s}}}}\n",
            server.uri("t9")
        );
        std::fs::write(dyno.path("x.yaml"), text).unwrap();
        dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "o"]));
        let summary = dyno.summary("o/runs/cell0001-rep01");
        let edges = |phase_name: &str, edge: &str| {
            phase(&summary, phase_name)["collections"][edge]["usertable"]["count"].as_f64()
        };
        assert_ne!(edges("load", "before"), Some(200.0), "{name}");
        assert_eq!(
            (edges("load", "after"), edges("measure", "before")),
            (Some(200.0), Some(200.0)),
            "{name}"
        );
        // D inserts.
        let inserted = phase(&summary, "measure")["metrics"].as_array().unwrap().iter();
        let inserted = inserted.filter(|metric| metric["name"] == "INSERT");
        let inserted: f64 = inserted.map(|metric| metric["outcomes"]["ok"].as_f64().unwrap()).sum();
        assert_eq!(edges("measure", "after"), Some(200.0 + inserted), "{name}");
        assert_eq!(summary["collections"]["usertable"]["count"], 200.0 + inserted, "{name}");
    }
}

#[test]
fn ycsb_reads_back_what_it_has_written() {
    let servers = servers();
    if servers.is_empty() {
        return missing("YCSB on MongoDB");
    }
    for (name, server) in &servers {
        let dyno = Dyno::new();
        let url = format!("mongodb.url={}", server.uri("t2"));
        let ycsb = |mode: &str, binding: &str, extra: &[&str]| {
            let common =
                ["-P", "workloads/workloada", "-p", &url, "-p", "recordcount=150", "-p", "dyno.timeout=60s"];
            let threads = if extra.contains(&"-threads") { &[][..] } else { &["-threads", "4"] };
            let check = ["-p", "dataintegrity=true", "-p", "operationcount=300"];
            dyno.run(&[&["ycsb", mode, binding][..], &common, threads, &check, extra].concat())
        };
        // 150 is no multiple of 40: the last batch is a partial one.
        let load = ycsb("load", "mongodb", &["-p", "mongodb.batchsize=40"]);
        dyno.assert_ran(&load);
        assert!(stdout(&load).contains("[INSERT], Return=OK, 150"), "{name}: {}", stdout(&load));
        let mix = "readproportion=0.3 updateproportion=0.2 scanproportion=0.2 insertproportion=0.1 \
                   readmodifywriteproportion=0.2 maxscanlength=120";
        let mix: Vec<&str> = mix.split_whitespace().flat_map(|pair| ["-p", pair]).collect();
        let run = ycsb("run", "mongodb-async", &mix);
        dyno.assert_ran(&run);
        let text = stdout(&run);
        for metric in ["READ", "UPDATE", "SCAN", "INSERT", "VERIFY"] {
            assert!(text.contains(&format!("[{metric}], Return=OK, ")), "{name}: {metric}: {text}");
        }
        for failed in ["UNEXPECTED_STATE", "NOT_FOUND", "ERROR"] {
            assert!(!text.contains(failed), "{name}: {text}\n{}", stderr(&run));
        }
        // Loading again meets records that are there: counted, neither fatal nor silent.
        let again = ycsb("load", "mongodb", &["-p", "batchsize=50"]);
        assert_exit(&again, &[5]);
        assert!(stdout(&again).contains("[INSERT-FAILED], Operations, 150"), "{name}: {}", stdout(&again));
        let upsert = ycsb("load", "mongodb", &["-p", "mongodb.upsert=true"]);
        dyno.assert_ran(&upsert);
        // In bulks, too; 150 is no multiple of 40. FerretDB stands still for ever where several such bulks come at once.
        let one = ["-p", "mongodb.upsert=true", "-p", "batchsize=40", "-threads", "1"];
        let bulks = ycsb("load", "mongodb", &one);
        dyno.assert_ran(&bulks);
        assert!(stdout(&bulks).contains("[INSERT], Return=OK, 150"), "{name}: {}", stdout(&bulks));
        let read = ycsb("run", "mongodb", &["-p", "readproportion=1", "-p", "updateproportion=0"]);
        assert!(stdout(&read).contains("[VERIFY], Return=OK, "), "{name}: {}", stdout(&read));
    }
}

#[test]
fn passwords_are_proved_and_never_shown() {
    let options =
        ["--test-enable-new-auth", "--setup-database=lab", "--setup-username=u", "--setup-password=p%w"];
    let Some(server) = Mongo::ferretdb(&options) else { return missing("authentication") };
    let dyno = Dyno::new();
    let run = |login: &str, query: &str| {
        let uri = format!("mongodb://{login}127.0.0.1:{}/lab{query}", server.port);
        let run = dyno.run(&["run", &uri, "--records", "20", "--ops", "50", "--no-out"]);
        let shown = stdout(&run) + &stderr(&run);
        assert!(!shown.contains("p%25w") && !shown.contains("p%w"), "{shown}");
        run
    };
    for query in ["", "?authMechanism=SCRAM-SHA-1", "?authMechanism=SCRAM-SHA-256"] {
        dyno.assert_ran(&run("u:p%25w@", query));
    }
    let wrong = run("u:wrong@", "");
    assert_exit(&wrong, &[3]);
    assert!(stderr(&wrong).contains("AuthenticationFailed"), "{}", stderr(&wrong));
    assert_exit(&run("u@", ""), &[2]);
}

#[test]
fn a_server_that_dies_in_a_bulk_leaves_exact_counts() {
    let Some(mut server) = Mongo::java() else { return missing("a server that dies") };
    let dyno = Dyno::new();
    let uri = server.uri("t3");
    let arguments = ["run", &uri, "--records", "3M", "--users", "4", "--load-batch", "500", "--ops", "10"];
    let run = dyno.start(&[&arguments[..], &["--out", "d"]].concat());
    dyno.await_phase("d", "load");
    server.kill();
    std::thread::sleep(std::time::Duration::from_millis(500));
    dyno_testkit::signal(run.id(), "INT");
    assert_exit(&finish(run), &[130]);
    let summary = dyno.summary("d");
    let loaded = phase(&summary, "load");
    let sum: u64 = loaded["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, arrivals(loaded));
    assert!(outcome(loaded, "ok") > 0 && outcome(loaded, "disconnected") > 0, "{}", loaded["outcomes"]);
}

#[test]
fn what_cannot_be_reached_or_meant_is_said_before_any_load() {
    let dyno = Dyno::new();
    for (uri, code, message) in [
        ("mongodb://127.0.0.1:1/", 3, "nothing listens there"),
        ("mongodb://127.0.0.1:1/?w=0", 2, "use w=1"),
        ("mongodb://h/?readPreference=best", 2, "nearest"),
        ("mongodb+srv://h:1/", 2, "no port"),
    ] {
        let run = dyno.run(&["run", uri, "--no-out"]);
        assert_exit(&run, &[code]);
        assert!(stderr(&run).contains(message), "{uri}: {}", stderr(&run));
    }
    let ycsb =
        dyno.run(&["ycsb", "run", "mongodb", "-P", "workloads/workloada", "-p", "mongodb.writeConcern=none"]);
    assert_exit(&ycsb, &[2]);
    assert!(stderr(&ycsb).contains("replica_acknowledged"), "{}", stderr(&ycsb));
}

#[cfg(not(feature = "official"))]
#[test]
fn a_build_without_the_official_driver_says_so() {
    let dyno = Dyno::new();
    let uri = "mongodb://127.0.0.1:1";
    let url = format!("mongodb.url={uri}");
    let ycsb = ["ycsb", "run", "mongodb", "-P", "workloads/workloada", "-p", &url];
    for arguments in [
        &["run", uri, "--client", "official"][..],
        &["pocdriver", "-c", uri, "--client", "official"],
        &["sysbench-mongodb", "--target", uri, "--client", "official"],
        &[&ycsb[..], &["--client", "official"]].concat(),
        &[&ycsb[..], &["-p", "dyno.client=official"]].concat(),
    ] {
        let refused = dyno.run(arguments);
        assert_exit(&refused, &[2]);
        let message = "this build has no official driver: build with --features official";
        assert!(stderr(&refused).contains(message), "{arguments:?}: {}", stderr(&refused));
    }
}

#[test]
fn another_database_has_no_choice_of_client() {
    let dyno = Dyno::new();
    let common = ["-P", "workloads/workloada", "-p", "redis.host=127.0.0.1", "-p", "dyno.client=official"];
    let refused = dyno.run(&[&["ycsb", "run", "redis"][..], &common].concat());
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("the official driver is MongoDB's"), "{}", stderr(&refused));
    assert_exit(&dyno.run(&["run", "--client", "official", "--no-out"]), &[2]);
}
