//! Answer tests of analysis: what an operation is, which runs are points of a sweep, and what may be measured instead of what.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, phase, skip_because, stderr, stdout};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use serde_json::Value;
use std::process::Output;
use std::time::{Duration, Instant};

fn run(dyno: &Dyno, text: &str) -> Output {
    dyno.run(&text.split(' ').collect::<Vec<_>>())
}

fn explained(dyno: &Dyno, dir: &str) -> Value {
    serde_json::from_str(&stdout(&dyno.run(&["explain", dir, "--json"]))).unwrap()
}

/// A fast and faithful enough server of documents.
fn java(what: &str) -> Option<Mongo> {
    let server = Mongo::java();
    if server.is_none() {
        skip_because(what, "mongo-java-server is not there (see scripts/need mongo)");
    }
    server
}

/// Throughput and times are of the same thing: a transaction of nineteen commands is one operation.
#[test]
fn a_transaction_is_the_unit_of_a_sysbench_run() {
    let Some(server) = java("the unit of a transaction") else { return };
    let dyno = Dyno::new();
    let line = format!(
        "sysbench-mongodb --dialect head URI={} NUM_COLLECTIONS=1 NUM_DOCUMENTS_PER_COLLECTION=500 \
         NUM_DOCUMENTS_PER_INSERT=100 RUN_TIME_SECONDS=2 NUM_WRITER_THREADS=2 --out s",
        server.uri("")
    );
    run(&dyno, &line);
    let summary = dyno.summary("s");
    let measured = phase(&summary, "measure");
    let metrics = measured["metrics"].as_array().unwrap();
    let whole = metrics.iter().find(|one| one["name"] == "TRANSACTION").unwrap();
    let found = explained(&dyno, "s");
    let observed = &found["runs"][0]["observed"];
    assert_eq!(observed["unit"], "transactions");
    let mean_s = whole["service"]["mean_us"].as_f64().unwrap() / 1e6;
    assert!((observed["response_s"].as_f64().unwrap() / mean_s - 1.0).abs() < 1e-3, "{observed} {whole}");
    // R = N / X - Z: off by a factor of nineteen if R is that of a command.
    let laws = found["runs"][0]["laws"].as_array().unwrap();
    let law = laws.iter().find(|law| law["law"] == "interactive response time law").unwrap();
    assert!(law["error"].as_f64().unwrap().abs() < 0.5, "{law}");
    let text = stdout(&dyno.run(&["explain", "s"])) + &stdout(&dyno.run(&["report", "s"]));
    assert!(text.contains(" transactions/s") && !text.contains(" operations/s"), "{text}");
}

/// An update that reads first is one operation of two requests.
#[test]
fn a_read_modify_write_is_one_operation() {
    let dyno = Dyno::new();
    let line = "run sim:?service=1ms -n 500 --workload f -p readproportion=0 -p readmodifywriteproportion=1 --users 1 \
                --duration 10s --warmup 0s --quiet --out f";
    assert_exit(&run(&dyno, line), &[0]);
    let observed = explained(&dyno, "f")["runs"][0]["observed"].clone();
    assert!((observed["response_s"].as_f64().unwrap() - 0.002).abs() < 2e-5, "{observed}");
    assert!((observed["throughput"].as_f64().unwrap() - 500.0).abs() < 5.0, "{observed}");
}

/// A run that is there for its course is no point of the ladder of users, and is explained by itself.
#[test]
fn a_long_run_is_judged_for_its_course() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=1ms&capacity=4\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {duration: 5s, warmup: 0s}}\nfactors:\n  test: [{label: x-max, rate: \
                900}, {label: users-1, users: 1}, {label: users-2, users: 2}, {label: users-4, users: 4}, {label: long-run, \
                users: 4}]\noverrides:\n  - {when: {test: long-run}, set: {duration: 60s}}\n";
    std::fs::write(dyno.path("lab.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "lab.yaml", "--out", "lab", "--quiet"]));
    let found = explained(&dyno, "lab");
    let levels = found["sweeps"][0]["sweep"]["levels"].as_array().unwrap();
    let seen: Vec<(f64, u64)> = levels
        .iter()
        .map(|level| (level["users"].as_f64().unwrap(), level["runs"].as_u64().unwrap()))
        .collect();
    assert_eq!(seen, [(1.0, 1), (2.0, 1), (4.0, 1)], "{found}");
    assert!((levels[2]["throughput"].as_f64().unwrap() - 4_000.0).abs() < 40.0, "{found}");
    let runs = found["runs"].as_array().unwrap();
    assert!(runs.len() == 1 && runs[0]["title"].as_str().unwrap().contains("long-run"), "{found}");
    let alone = found["alone"].as_array().unwrap();
    assert!(alone.len() == 1 && alone[0]["what"] == "test=x-max", "{found}");
    let told = stdout(&dyno.run(&["explain", "lab"]));
    assert!(told.contains("in no sweep\n  test=x-max: ") && told.contains("Little's law holds"), "{told}");
    assert!(told.contains("test=long-run") && told.contains("over time"), "the long run by itself: {told}");
    assert_exit(&dyno.run(&["report", "lab", "--format", "html", "-o", "lab.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("lab.html")).unwrap();
    assert!(page.contains("Long runs: how throughput goes on"), "the page has the course");
}

/// Each rate is judged by itself: one that something disturbed does not end the analysis.
#[test]
fn a_rate_that_was_not_kept_hides_none_that_were() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=1ms\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {duration: 10s, warmup: 0s, connections: 1, arrivals: constant}}\n\
                factors:\n  test: [{label: t-100, rate: 100}, {label: t-200, rate: 200, target: \"sim:?service=10ms\"}, \
                {label: t-300, rate: 300}, {label: t-500, rate: 500}]\n";
    std::fs::write(dyno.path("r.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "r.yaml", "--out", "r", "--quiet"]));
    let told = stdout(&dyno.run(&["explain", "r"]));
    assert!(told.contains("500/s is kept"), "{told}");
    assert!(told.contains("of 200/s only ") && told.contains("although higher rates are kept"), "{told}");
}

/// Rows of a target sweep that was imported are analysed, and those in no sweep are named.
#[test]
fn every_row_of_an_imported_lab_is_told() {
    let dyno = Dyno::new();
    let table = "test,target,users,x,r\nxmax,,16,4016.7,3965\ntarget,100,16,99.3,1640\ntarget,1000,16,997.3,1180\n\
                 target,5000,16,4308.9,3695\nusers,,1,1434.7,688\nusers,,10,4507.8,2204\nusers,,100,4898.7,20307\n";
    std::fs::write(dyno.path("lab.csv"), table).unwrap();
    let line = "import csv lab.csv --out lab --throughput x --response-us r --users users --target target --factor test \
                --duration 30s";
    assert_exit(&run(&dyno, line), &[0]);
    let told = stdout(&dyno.run(&["explain", "lab"]));
    assert!(told.contains("1,000/s is kept; of 5,000/s 4,309/s are done"), "{told}");
    assert!(told.contains("test=xmax users=16 target=-: 4,017/s"), "{told}");
    let found = explained(&dyno, "lab");
    assert_eq!(found["sweeps"][0]["sweep"]["levels"].as_array().unwrap().len(), 3, "{found}");
}

/// Documents that look otherwise than those of the run are not measured in their place.
#[test]
fn documents_of_another_shape_are_refused() {
    let Some(server) = java("documents of another shape") else { return };
    let dyno = Dyno::new();
    let shop = |field: &str, length: u32| {
        format!(
            "collections:\n  sbtest1: {{ count: 300, document: {{ {field}: {{ $string: {length} }} }} }}\n\
             operations:\n  one: {{ weight: 1, findOne: sbtest1, filter: {{ _id: {{ $key: sbtest1 }} }} }}\n"
        )
    };
    for (name, field, length) in [("a", "pad", 100), ("b", "pad", 10), ("c", "other", 100)] {
        std::fs::write(dyno.path(&format!("{name}.yaml")), shop(field, length)).unwrap();
    }
    let uri = server.uri("shapes");
    let line =
        |file: &str, more: &str| format!("run {uri} --workload {file}.yaml --ops 50 --no-out --quiet{more}");
    dyno.assert_ran(&run(&dyno, &line("a", "")));
    dyno.assert_ran(&run(&dyno, &line("a", "")));
    for (file, message) in [
        ("b", "whose field pad is text of 100 bytes, in those of this run it is text of 10 bytes: --reload"),
        ("c", "with the fields _id, pad, those of this run have _id, other: --reload"),
    ] {
        let refused = run(&dyno, &line(file, ""));
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{file}: {}", stderr(&refused));
        dyno.assert_ran(&run(&dyno, &line(file, " --no-load")));
    }
    let file = format!(
        "target: {uri}\nworkload: {{sysbench: {{DB_NAME: shapes, NUM_COLLECTIONS: '1', NUM_DOCUMENTS_PER_COLLECTION: '300', \
         NUM_DOCUMENTS_PER_INSERT: '100', URI: '{uri}'}}}}\nphases: {{measure: {{users: 1, duration: 1s}}}}\n"
    );
    std::fs::write(dyno.path("s.yaml"), file).unwrap();
    let refused = run(&dyno, "run s.yaml --out s --quiet");
    let output = stderr(&refused);
    assert!(
        output.contains("sbtest1 holds documents with the fields _id, pad") && output.contains("`always`"),
        "{output}"
    );
    // Nor by the command, whether it would load beside them or not.
    for load in ["yes", "no"] {
        let line = format!(
            "sysbench-mongodb --dialect head URI={} DB_NAME=shapes NUM_COLLECTIONS=1 NUM_DOCUMENTS_PER_COLLECTION=300 \
             RUN_TIME_SECONDS=1 NUM_WRITER_THREADS=1 DOLOAD={load}",
            server.uri("")
        );
        let refused = run(&dyno, &line);
        assert_exit(&refused, &[2]);
        let output = stderr(&refused);
        let shapes =
            "sbtest1 holds documents with the fields _id, pad, those of this run have _id, c, k, pad:";
        assert!(output.contains(shapes) && output.contains("DB_NAME"), "{load}: {output}");
    }
    // POCDriver may add to what is there, but not query it for its own.
    let poc =
        |more: &str| run(&dyno, &format!("pocdriver -c {uri} -n shapes.sbtest1 -d 1 -t 1 -q 50 -b 10{more}"));
    let refused = poc(" -k 50");
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("--empty drops them first"), "{}", stderr(&refused));
    dyno.assert_ran(&poc(""));
    dyno.assert_ran(&poc(" -k 50 -e"));
    dyno.assert_ran(&poc(" -k 50"));
}

/// Embedded stores show what they hold as servers do.
#[test]
fn embedded_records_of_another_shape_are_refused() {
    let dyno = Dyno::new();
    for scheme in ["sqlite", "redb", "fjall"] {
        let base = format!("run {scheme}:{scheme}.db -n 200 --ops 50 --no-out --quiet");
        dyno.assert_ran(&run(&dyno, &base));
        for (more, message) in [
            (" --field-length 10", "of 100 bytes, those of this run 10 fields (field0 ...) of 10 bytes"),
            (" --fields 2", "field9"),
            (" -p insertorder=ordered", "have hashed keys (insertorder), this run asks for ordered ones"),
        ] {
            let refused = run(&dyno, &format!("{base}{more}"));
            assert_exit(&refused, &[2]);
            let told = stderr(&refused);
            // SQLite has columns, the others count fields.
            assert!(told.contains(message) || told.contains("this run 2 fields"), "{scheme}{more}: {told}");
        }
        dyno.assert_ran(&run(&dyno, &format!("{base} --reload --field-length 10")));
        dyno.assert_ran(&run(&dyno, &format!("{base} --field-length 10")));
    }
}

/// So do their documents, which are not loaded over others and not measured for others.
#[test]
fn embedded_documents_of_another_shape_are_refused() {
    let dyno = Dyno::new();
    let shop = |field: &str, length: u32| {
        format!(
            "collections:\n  sbtest1: {{ count: 300, document: {{ {field}: {{ $string: {length} }}, live: true, \
             since: {{ $date: [2024-01-01, 2025-01-01] }} }} }}\n\
             operations:\n  one: {{ weight: 1, findOne: sbtest1, filter: {{ _id: {{ $key: sbtest1 }} }} }}\n"
        )
    };
    for (name, field, length) in [("a", "pad", 100), ("b", "pad", 10), ("c", "other", 100)] {
        std::fs::write(dyno.path(&format!("{name}.yaml")), shop(field, length)).unwrap();
    }
    for scheme in ["sqlite", "redb", "fjall"] {
        let target = format!("{scheme}:{scheme}.db");
        let line = |file: &str, more: &str| {
            run(&dyno, &format!("run {target} --workload {file}.yaml --ops 50 --no-out --quiet{more}"))
        };
        dyno.assert_ran(&line("a", ""));
        let again = line("a", "");
        assert!(!stderr(&again).contains("holds documents"), "{scheme}: {}", stderr(&again));
        let short = "whose field pad is text of 100 bytes, in those of this run it is text of 10 bytes";
        let others = "with the fields _id, live, pad, since, those of this run have _id, live, other, since";
        for (file, message) in [("b", short), ("c", others)] {
            let refused = line(file, "");
            assert_exit(&refused, &[2]);
            let told = stderr(&refused);
            assert!(told.contains(message) && told.contains("--reload drops it"), "{scheme} {file}: {told}");
            dyno.assert_ran(&line(file, " --no-load"));
            let text = format!(
                "target: '{target}'\nworkload: {{documents: {file}.yaml}}\nphases: {{measure: {{operations: 50}}}}\n"
            );
            std::fs::write(dyno.path("x.yaml"), text).unwrap();
            let refused = run(&dyno, &format!("run x.yaml --out {scheme}-{file} --quiet"));
            assert!(stderr(&refused).contains(message), "{scheme} {file}: {}", stderr(&refused));
        }
        let sizes =
            "NUM_COLLECTIONS=1 NUM_DOCUMENTS_PER_COLLECTION=300 RUN_TIME_SECONDS=1 NUM_WRITER_THREADS=1";
        for load in ["yes", "no"] {
            let refused = run(&dyno, &format!("sysbench-mongodb --target {target} {sizes} DOLOAD={load}"));
            assert_exit(&refused, &[2]);
            let message = "sbtest1 holds documents with the fields _id, live, pad, since, those of this run have _id, c, k, pad";
            assert!(stderr(&refused).contains(message), "{scheme}: {}", stderr(&refused));
        }
    }
}

/// Documents that are there are measured, not loaded a second time over themselves; `--reload` and `--empty` drop them first.
#[test]
fn embedded_documents_are_loaded_once() {
    let dyno = Dyno::new();
    let shop = |length: u32| {
        let text = format!(
            "collections:\n  things: {{ count: 300, document: {{ name: {{ $string: {length} }} }} }}\noperations:\n  \
             get: {{ findOne: things, filter: {{ _id: {{ $key: things }} }} }}\n  put: {{ insert: things }}\n"
        );
        std::fs::write(dyno.path("w.yaml"), text).unwrap();
    };
    for scheme in ["sqlite", "redb", "fjall"] {
        let line = |more: &str| {
            run(
                &dyno,
                &format!(
                    "run {scheme}:{scheme}.db --workload w.yaml --ops 100 --users 2 --json --no-out{more}"
                ),
            )
        };
        // `run` without `--out` is told what was loaded; a phase that did not happen has no count.
        let loaded = |output: &std::process::Output| {
            let summary: Value = serde_json::from_str(&stdout(output)).unwrap();
            let all = summary["phases"].as_array().unwrap().clone();
            assert!(
                all.iter().all(|phase| phase["errors"].as_object().is_none_or(|words| words.is_empty())),
                "{all:?}"
            );
            all.iter().any(|phase| phase["name"] == "load")
        };
        shop(20);
        for (more, expected) in
            [("", true), ("", false), (" --reload", true), ("", false), (" --no-load", false)]
        {
            let output = line(more);
            dyno.assert_ran(&output);
            assert_eq!(loaded(&output), expected, "{scheme}{more}: {}", stderr(&output));
        }
        shop(30);
        assert_exit(&line(""), &[2]);
        assert!(loaded(&line(" --reload")), "{scheme}");
    }
    // POCDriver's documents have no table. Its workers go on where they ended; --empty begins anew.
    for scheme in ["redb", "fjall"] {
        let total = |more: &str| {
            let output = run(&dyno, &format!("pocdriver -c {scheme}:poc.{scheme} -t 1 -d 1{more}"));
            assert_exit(&output, &[0]);
            let told = stdout(&output);
            let figure = |after: &str| -> u64 {
                let at = told.rfind(after).unwrap_or_else(|| panic!("{told}")) + after.len();
                told[at..].trim_start().split(' ').next().unwrap().parse().unwrap()
            };
            let inserted = figure("After 1 seconds,");
            (inserted, figure("collection has"))
        };
        let first = total("");
        assert_eq!(first.0, first.1);
        let second = total("");
        assert_eq!(second.1, first.1 + second.0);
        let third = total(" -e");
        assert_eq!(third.0, third.1);
        assert_exit(&run(&dyno, &format!("pocdriver -c {scheme}:poc.{scheme} -t 1 -d 1 --fulltext")), &[2]);
    }
}

/// A server that was killed has not hidden behind TLS.
#[test]
fn a_killed_mongod_is_not_asked_whether_it_expects_tls() {
    let Some(mut server) = Mongo::mongod() else {
        return skip_because("a killed mongod", "mongod is not on PATH (see scripts/servers.sh)");
    };
    let dyno = Dyno::new();
    let line = format!("run {} -n 1000 --duration 6s --users 4 --out d --quiet", server.uri("x"));
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&dyno, &line));
        let measuring = || {
            let told = std::fs::read_to_string(dyno.path("d/intervals.jsonl")).unwrap_or_default();
            told.contains("\"measure\"")
        };
        let end = Instant::now() + Duration::from_secs(60);
        while !measuring() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        server.kill();
        running.join().unwrap()
    });
    dyno.assert_ran_but(&ended, dyno_testkit::OF_A_LOST_SERVER);
    let told = stdout(&ended) + &stderr(&ended);
    assert!(told.contains("refused") && !told.contains("TLS"), "{told}");
    let before = run(&dyno, &format!("run {} -n 1000 --duration 1s --no-out --quiet", server.uri("x")));
    assert_exit(&before, &[3]);
    let told = stderr(&before);
    assert!(told.contains("nothing listens there") && !told.contains("TLS"), "{told}");
}

/// A command that the server has refused is no target that cannot be reached.
#[test]
fn an_index_that_cannot_be_is_no_unreachable_target() {
    let Some(server) = Mongo::mongod() else {
        return skip_because("an index that differs", "mongod is not on PATH (see scripts/servers.sh)");
    };
    let dyno = Dyno::new();
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = registry::parse(&server.uri("x")).unwrap().open(content, &|| false).unwrap();
    let admin = MongoAdmin::from_target(opened.as_ref()).unwrap();
    admin.create_compound_index("sbtest1", "k_1", &[("k".into(), -1)]).unwrap();
    let line = format!(
        "sysbench-mongodb --dialect head URI={} DB_NAME=x NUM_COLLECTIONS=1 NUM_DOCUMENTS_PER_COLLECTION=100 \
         NUM_DOCUMENTS_PER_INSERT=100 RUN_TIME_SECONDS=1 NUM_WRITER_THREADS=1",
        server.uri("")
    );
    let refused = run(&dyno, &line);
    assert_exit(&refused, &[2]);
    assert!(!stderr(&refused).contains("unreachable"), "{}", stderr(&refused));
}
