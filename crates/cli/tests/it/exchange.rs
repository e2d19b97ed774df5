//! `dyno export` and `dyno import`: what goes out can be read, what comes in can be compared, dated and explained.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file of real outputs and lab data: `tests/data/README.md`.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(dyno: &Dyno, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dyno.path(name)).unwrap()).unwrap()
}

/// Four numbers of users against a simulated server, twice.
fn experiment(dyno: &Dyno) {
    let text = "target: \"sim:?service=100us&distribution=exponential\"\nworkload: {ycsb: {workload: a, records: 100}}\n\
        phases: {load: {when: never}, measure: {operations: 20000}}\n\
        factors: {users: [1, 2, 4, 8], seed: [1, 2]}\nrepetitions: 2\n";
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "e.yaml", "--out", "e", "--quiet"]), &[0]);
}

/// Rows of a CSV text by the names of their columns; no field of these tables holds a comma.
fn rows(text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

#[test]
fn tables_hold_what_the_files_hold() {
    let dyno = Dyno::new();
    experiment(&dyno);
    let all = dyno.run(&["export", "e", "--format", "csv"]);
    assert_exit(&all, &[0]);
    let all = rows(&stdout(&all));
    let total = |name: &str| -> u64 {
        let wanted = all.iter().filter(|row| row["metric"] == name);
        wanted.map(|row| row["ok"].parse::<u64>().unwrap()).sum()
    };
    assert_eq!(total("TOTAL"), 16 * 20_000);
    assert_eq!(total("READ") + total("UPDATE"), 16 * 20_000);
    let runs = rows(&stdout(&dyno.run(&["export", "e", "--format", "csv", "--table", "runs"])));
    assert_eq!(runs.len(), 16);
    for row in &runs {
        let summary = json(&dyno, &format!("e/{}/summary.json", row["run"]));
        let phase = &summary["phases"][0];
        assert_eq!(row["throughput_per_s"].parse::<f64>().unwrap(), phase["throughput"].as_f64().unwrap());
        assert_eq!(row["users"], phase["client"]["users"].to_string());
        let p99 = phase["metrics"][0]["response"]["percentiles_us"]["p99"].as_f64().unwrap();
        assert_eq!(row["READ_response_p99_us"].parse::<f64>().unwrap(), p99);
    }
    for (name, magic, format) in [("e.parquet", b"PAR1", "parquet"), ("e.xlsx", b"PK\x03\x04", "xlsx")] {
        assert_exit(&dyno.run(&["export", "e", "--format", format, "--out", name]), &[0]);
        assert_eq!(&std::fs::read(dyno.path(name)).unwrap()[..4], magic);
    }
    let pivot = [
        "export",
        "e",
        "--format",
        "xlsx",
        "--rows",
        "users",
        "--columns",
        "seed",
        "--value",
        "p99",
        "-o",
        "p.xlsx",
    ];
    assert_exit(&dyno.run(&pivot), &[0]);
}

#[test]
fn a_run_is_told_in_the_words_of_others() {
    let dyno = Dyno::new();
    let run = [
        "run",
        "sim:?service=200us",
        "--users",
        "4",
        "--ops",
        "50000",
        "--workload",
        "a",
        "--quiet",
        "--out",
        "r",
    ];
    assert_exit(&dyno.run(&run), &[0]);
    let report = stdout(&dyno.run(&["export", "r", "--format", "ycsb"]));
    assert!(report.contains("[OVERALL], Throughput(ops/sec), 5000.0\n"), "{report}");
    assert!(report.contains("[READ], 99thPercentileLatency(us), 799\n"), "{report}");
    // What goes out as YCSB's comes back.
    std::fs::write(dyno.path("ycsb.out"), &report).unwrap();
    assert_exit(
        &dyno.run(&["import", "ycsb", "ycsb.out", "--out", "back", "--users", "4", "--closed-loop"]),
        &[0],
    );
    let (one, other) = (json(&dyno, "r/summary.json"), json(&dyno, "back/summary.json"));
    assert_eq!(one["phases"][0]["outcomes"]["ok"], other["phases"][0]["outcomes"]["ok"]);
    let kpis = stdout(&dyno.run(&["export", "r", "--format", "wsf"]));
    assert!(kpis.contains("*Sum of [run phase] Throughput(ops/sec): 5000"), "{kpis}");
    let log = stdout(&dyno.run(&["export", "r", "--format", "bexhoma"]));
    assert!(log.contains("YCSB_THREADCOUNT 4\n") && log.contains("[READ], Return=OK, "), "{log}");
    for (arguments, message) in [
        (vec!["export", "r", "--format", "sysbench"], "counts transactions"),
        (vec!["export", "r", "--format", "pocdriver"], "this run has READ, UPDATE"),
        (vec!["export", "r", "--format", "xlsx"], "--out FILE"),
        (
            vec!["export", "r", "--format", "xlsx", "--rows", "a", "--columns", "b", "-o", "x.xlsx"],
            "no factor",
        ),
        (vec!["export", "nowhere", "--format", "csv"], "nowhere"),
    ] {
        let refused = dyno.run(&arguments);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{arguments:?}: {}", stderr(&refused));
    }
}

#[test]
fn sysbench_and_pocdriver_runs_give_their_tables() {
    let dyno = Dyno::new();
    let sysbench = [
        "sysbench-mongodb",
        "--target",
        "sqlite:s.db",
        "NUM_COLLECTIONS=1",
        "NUM_DOCUMENTS_PER_COLLECTION=200",
        "NUM_DOCUMENTS_PER_INSERT=50",
        "RUN_TIME_SECONDS=2",
        "NUM_LOADER_THREADS=1",
        "NUM_WRITER_THREADS=1",
    ];
    let run = dyno.run(&[&sysbench[..], &["--out", "s"]].concat());
    dyno.assert_ran(&run);
    let folder = std::fs::read_dir(dyno.path("s")).unwrap().flatten().map(|entry| entry.path());
    let runs: Vec<PathBuf> =
        if dyno.path("s/run.json").is_file() { vec![dyno.path("s")] } else { folder.collect() };
    let mut tables = Vec::new();
    for run in runs.iter().filter(|run| run.join("run.json").is_file()) {
        let table = dyno.run(&["export", word(run), "--format", "sysbench"]);
        assert_exit(&table, &[0]);
        tables.push(stdout(&table));
    }
    let transactions = tables.iter().find(|table| table.starts_with("elap_secs\tcum_tps")).unwrap();
    std::fs::write(dyno.path("t.tsv"), transactions).unwrap();
    assert_exit(&dyno.run(&["import", "sysbench-mongodb", "t.tsv", "--out", "back", "--users", "1"]), &[0]);
    let poc = [
        "pocdriver",
        "-c",
        "fjall:p.db",
        "-b",
        "1",
        "-t",
        "1",
        "-d",
        "2",
        "-k",
        "20",
        "-q",
        "50",
        "--out",
        "p",
    ];
    let run = dyno.run(&poc);
    dyno.assert_ran(&run);
    let table = dyno.run(&["export", "p", "--format", "pocdriver"]);
    assert_exit(&table, &[0]);
    assert!(stdout(&table).starts_with("time,seconds,inserts,inserts_per_s,"), "{}", stdout(&table));
    std::fs::write(dyno.path("p.csv"), stdout(&table)).unwrap();
    assert_exit(&dyno.run(&["import", "pocdriver", "p.csv", "--out", "pback"]), &[0]);
    let (one, other) = (json(&dyno, "p/summary.json"), json(&dyno, "pback/summary.json"));
    let count = |summary: &Value, name: &str| {
        let metrics =
            summary["phases"].as_array().unwrap().last().unwrap()["metrics"].as_array().unwrap().clone();
        metrics.iter().find(|m| m["name"] == name).map_or(0, |m| m["outcomes"]["ok"].as_u64().unwrap())
    };
    for name in ["KEYQUERY", "INSERT"] {
        assert_eq!(count(&one, name), count(&other, name), "{name}");
    }
    // Commands of several documents do not tell how many.
    let bulks = ["pocdriver", "-c", "fjall:b.db", "-b", "20", "-t", "1", "-d", "2", "-u", "20", "--out", "b"];
    let run = dyno.run(&bulks);
    dyno.assert_ran(&run);
    let refused = dyno.run(&["export", "b", "--format", "pocdriver"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("several in one bulk"), "{}", stderr(&refused));
}

#[test]
fn ycsb_s_histograms_are_exact_and_comparable() {
    let names =
        ["ycsb-run-a-hdr.out", "ycsb-run-a-hdr.err", "hdr-READ.hdr", "hdr-UPDATE.hdr", "hdr-CLEANUP.hdr"];
    let files: Vec<PathBuf> = names.iter().map(|name| data(&format!("peers/{name}"))).collect();
    let dyno = Dyno::new();
    for out in ["one", "two"] {
        let files = files.iter().map(|path| word(path));
        let arguments: Vec<&str> =
            ["import", "ycsb"].into_iter().chain(files).chain(["--out", out]).collect();
        let imported = dyno.run(&arguments);
        assert_exit(&imported, &[0]);
        assert!(stdout(&imported).contains("SUSPECT"), "{}", stdout(&imported));
    }
    let summary = json(&dyno, "one/summary.json");
    let phase = &summary["phases"][0];
    assert_eq!(phase["arrivals"], 100_000);
    let read = &phase["metrics"][0];
    assert_eq!((&read["name"], &read["outcomes"]["ok"]), (&"READ".into(), &49_985.into()));
    let latency = &read["service"];
    assert!((latency["mean_us"].as_f64().unwrap() - 63.70557167150145).abs() < 1e-9, "{latency}");
    // YCSB's own percentiles from the same histogram; it shows the last value of a bucket.
    for (name, ycsb) in [("p50", 45.0), ("p95", 109.0), ("p99", 165.0)] {
        let own = latency["percentiles_us"][name].as_f64().unwrap();
        assert!((own - ycsb).abs() <= 1.0, "{name}: {own}");
    }
    assert!(latency["percentiles_us"]["p99.9"].as_f64().is_some(), "beyond what the report says");
    let compared = dyno.run(&["compare", "one", "two", "--json"]);
    assert_exit(&compared, &[0]);
    let found: Value = serde_json::from_str(&stdout(&compared)).unwrap();
    let names: Vec<&str> =
        found[0]["figures"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"throughput") && names.contains(&"READ p99"), "{names:?}");
    assert_exit(&dyno.run(&["history", "one", "two", "--figure", "p99(read)"]), &[0]);
    assert!(stdout(&dyno.run(&["report", "one"])).contains("READ"));
    assert_exit(&dyno.run(&["export", "one", "--format", "csv"]), &[0]);
}

#[test]
fn every_real_output_can_be_imported() {
    let dyno = Dyno::new();
    for (number, (program, names, ok)) in [
        ("ycsb", vec!["ycsb-run-a.out", "ycsb-run-a.err"], 200_000),
        ("ycsb", vec!["ycsb-load.out", "ycsb-load.err"], 2_000),
        ("ycsb", vec!["ycsb-run-a-target-both.out", "ycsb-run-a-target-both.err"], 20_000),
        ("ycsb", vec!["ycsb-run-a-json.out", "ycsb-run-a-json.err"], 2_000),
        ("ycsb", vec!["ycsb-run-a-jsonarray.out"], 2_000),
        ("ycsb", vec!["ycsb-run-f-histogram.out"], 5_000),
        ("ycsb", vec!["ycsb-run-a-timeseries.out"], 100_000),
        ("ycsb", vec!["ycsb-maxexec.out", "ycsb-maxexec.err"], 95_825),
        ("sysbench-mongodb", vec!["sysbench-execute.tsv"], 600),
        ("sysbench-mongodb", vec!["sysbench-load.tsv"], 10_000),
        ("pocdriver", vec!["pocdriver-run.csv"], 11_004),
    ]
    .into_iter()
    .enumerate()
    {
        let files: Vec<PathBuf> = names.iter().map(|name| data(&format!("peers/{name}"))).collect();
        let out = format!("{number:02}");
        let files = files.iter().map(|path| word(path));
        let arguments: Vec<&str> =
            ["import", program].into_iter().chain(files).chain(["--out", &out]).collect();
        let imported = dyno.run(&arguments);
        assert_exit(&imported, &[0]);
        let summary = json(&dyno, &format!("{out}/summary.json"));
        assert_eq!(summary["phases"][0]["outcomes"]["ok"], ok, "{names:?}");
        assert_eq!(summary["verdict"]["reasons"][0]["check"], "imported");
        assert_exit(&dyno.run(&["report", &out]), &[0]);
        assert_exit(&dyno.run(&["export", &out, "--format", "csv"]), &[0]);
        assert_exit(&dyno.run(&["export", &out, "--format", "ycsb"]), &[0]);
        assert_exit(&dyno.run(&arguments), &[2]);
    }
    // A target was set: response times are those of the Intended- lines.
    let read = json(&dyno, "02/summary.json")["phases"][0]["metrics"][0].clone();
    assert!(read["response"]["mean_us"].as_f64() > read["service"]["mean_us"].as_f64(), "{read}");
}

#[test]
fn the_lab_s_sheet_comes_in_and_goes_out_again() {
    let short = data("lab-short.csv");
    let dyno = Dyno::new();
    let import = [
        "import",
        "csv",
        word(&short),
        "--users",
        "n_users",
        "--throughput",
        "x_ops_s",
        "--response-us",
        "r_us",
        "--target",
        "target_ops_s",
        "--factor",
        "test",
        "--duration",
        "60s",
        "--out",
        "lab",
    ];
    assert_exit(&dyno.run(&import), &[0]);
    assert_exit(&dyno.run(&["export", "lab", "--format", "xlsx", "--out", "lab.xlsx"]), &[0]);
    let status = dyno.run(&["status", "lab"]);
    assert_exit(&status, &[0]);
    assert!(stdout(&status).contains("19 of 19"), "{}", stdout(&status));
    let runs = rows(&stdout(&dyno.run(&["export", "lab", "--format", "csv"])));
    assert!(!runs.is_empty());
    let long = data("lab-longrun.csv");
    for (column, out) in [("raid0_xfs", "raid"), ("single_burst", "burst")] {
        let import = [
            "import",
            "csv",
            word(&long),
            "--time",
            "t_s",
            "--throughput",
            column,
            "--users",
            "20",
            "--out",
            out,
        ];
        assert_exit(&dyno.run(&import), &[0]);
    }
    let phase = json(&dyno, "raid/summary.json")["phases"][0].clone();
    assert!(phase["metrics"][0].get("service").is_none(), "the file holds no latency: {phase}");
    assert_exit(&dyno.run(&["compare", "raid", "burst"]), &[0]);
    // Means over ten seconds are not ten equal seconds: no false alarm, and the collapse is dated.
    let raid: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "raid", "--json"]))).unwrap();
    assert!(raid["runs"][0]["stability"]["alarm"].is_null(), "{raid}");
    assert_eq!(raid["runs"][0]["step_s"], 10);
    let burst: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "burst", "--json"]))).unwrap();
    let segments = burst["runs"][0]["stability"]["segments"].as_array().unwrap();
    let fall = segments.last().unwrap()["range"][0].as_u64().unwrap() * 10;
    assert!((1_580..=1_680).contains(&fall), "the collapse at {fall} s");
    // What the numbers alone can say of burst credits, and no more: no monitor watched the disk.
    let finding = &burst["runs"][0]["findings"][0];
    assert_eq!(finding["rule"], "burst_credits_unseen", "{burst}");
    assert!(finding["confidence"].as_f64().unwrap() < 0.5, "{finding}");
    assert!(raid["runs"][0]["findings"].as_array().unwrap().is_empty(), "{raid}");
    // N* of the sheet is about 3.15.
    let sweep: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "lab", "--json"]))).unwrap();
    let saturation = sweep["sweeps"][0]["sweep"]["saturation"].as_f64().unwrap();
    assert!((3.0..3.5).contains(&saturation), "N* {saturation}");
    let wrong = ["import", "csv", word(&long), "--time", "t_s", "--throughput", "raid", "--out", "w"];
    let refused = dyno.run(&wrong);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("lab-longrun.csv:1: expected a column raid"), "{}", stderr(&refused));
}

#[test]
fn a_published_table_of_engines_and_memory_is_imported_and_reported() {
    let dyno = Dyno::new();
    let table = "size,mmap,wiredTiger,RocksDB\n8/16,26,53,81\n16/32,31,61,91\n32/48,35,67,\n";
    std::fs::write(dyno.path("percona.csv"), table).unwrap();
    let base = ["import", "csv", "percona.csv", "--factor", "size", "--users", "64", "--duration", "1h"];
    let columns = ["--throughput", "mmap", "--throughput", "wiredTiger", "--throughput", "RocksDB"];
    let refused = dyno.run(&[&base[..], &columns, &["--out", "no"]].concat());
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("--across NAME names it"), "{}", stderr(&refused));
    assert_exit(&dyno.run(&[&base[..], &columns, &["--across", "engine", "--out", "seed"]].concat()), &[0]);
    let told = stdout(&dyno.run(&["report", "seed"]));
    // The cell that the table does not have is no run of 0/s.
    assert_eq!(
        told.lines()
            .filter(|line| line.contains("/16 ") || line.contains("/32 ") || line.contains("/48 "))
            .count(),
        8,
        "{told}"
    );
    let row = |engine: &str, size: &str| {
        let line = told.lines().find(|line| line.contains(engine) && line.contains(size));
        line.unwrap_or_else(|| panic!("no {engine} {size} in {told}")).to_owned()
    };
    assert!(row("RocksDB", "8/16").contains(" 81 ") && row("mmap", "32/48").contains(" 35 "), "{told}");
    assert_exit(&dyno.run(&["report", "seed", "--format", "html", "--out", "seed.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("seed.html")).unwrap();
    assert!(page.contains("RocksDB") && !page.contains("could not be read"));
}
