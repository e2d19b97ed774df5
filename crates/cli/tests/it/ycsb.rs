//! `dyno ycsb` as a process: what YCSB's users type, against a real Redis and the embedded stores, and what
//! their scripts read of it.

mod support;

use dyno_record::Scale;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use support::{Redis, command, err, exited, has, out, report, run, split_words, whole, ycsb};

const KEY_0: &str = "user6284781860667377211";

#[test]
fn load_and_run_on_redis() {
    let Some(redis) = Redis::start() else { return };
    let load = redis.ycsb("load redis -P workloads/workloada -p recordcount=2000 -threads 4 -s");
    exited(&load, 0);
    let found = report(&out(&load));
    assert_eq!(whole(&found, "INSERT", "Operations"), 2_000);
    assert_eq!(whole(&found, "INSERT", "Return=OK"), 2_000);
    assert_eq!(whole(&found, "CLEANUP", "Operations"), 4);
    assert!(!found.contains_key(&("CLEANUP".into(), "Return=OK".into())));
    for measurement in
        ["MinLatency(us)", "MaxLatency(us)", "50thPercentileLatency(us)", "99thPercentileLatency(us)"]
    {
        whole(&found, "INSERT", measurement);
    }
    whole(&found, "OVERALL", "RunTime(ms)");
    assert_eq!(whole(&found, "TOTAL_GCs", "Count"), 0);
    assert!(found[&("OVERALL".into(), "Throughput(ops/sec)".into())].contains('.'));
    assert!(out(&load).starts_with("[OVERALL], RunTime(ms), "));

    // The data are those that YCSB's Redis binding reads.
    let record = redis.ask(&["HGETALL", KEY_0]);
    let (names, values): (Vec<&String>, Vec<&String>) =
        record.chunks(2).map(|pair| (&pair[0], &pair[1])).unzip();
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, (0..10).map(|i| format!("field{i}")).collect::<Vec<_>>());
    assert!(values.iter().all(|value| value.len() == 100));
    assert_eq!(redis.ask(&["ZSCORE", "_indices", KEY_0]), ["-594971599"]);
    assert_eq!(redis.ask(&["ZCARD", "_indices"]), ["2000"]);
    assert_eq!(redis.ask(&["DBSIZE"]), ["2001"]);

    let run =
        redis.ycsb("run redis -P workloads/workloada -p recordcount=2000 -p operationcount=3000 -threads 3");
    exited(&run, 0);
    let found = report(&out(&run));
    let (reads, updates) = (whole(&found, "READ", "Return=OK"), whole(&found, "UPDATE", "Return=OK"));
    assert_eq!(reads + updates, 3_000);
    assert_eq!(
        (whole(&found, "READ", "Operations"), whole(&found, "UPDATE", "Operations")),
        (reads, updates)
    );
    assert!(!has(&found, "Intended-READ"));
    assert_eq!(redis.ask(&["DBSIZE"]), ["2001"]);
}

#[test]
fn what_goes_to_standard_error() {
    let Some(redis) = Redis::start() else { return };
    let load = redis.ycsb("load redis -P workloads/workloada -s -l one: -p maxexecutiontime=600");
    exited(&load, 0);
    let text = err(&load);
    let places: Vec<usize> = [
        "Command line: load redis -P workloads/workloada -s -l one: ",
        "YCSB Client 0.18.0-SNAPSHOT (dyno ",
        "Loading workload...",
        "Starting test.",
        "Maximum execution time specified as: 600 secs",
        "DBWrapper: report latency for each error is false",
        " 0 sec: 0 operations; est completion in 0 second ",
        "Could not wait until max specified time, TerminatorThread interrupted.",
        " sec: 1000 operations; ",
        "[INSERT: Count=1000, Max=",
    ]
    .map(|part| text.find(part).unwrap_or_else(|| panic!("{part:?} is not in\n{text}")))
    .into();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("one:20")).count(), 2, "{text}");
    // A short run is no broken run.
    assert!(!text.contains("warning:") && !text.contains("error:"), "{text}");
    let quiet = redis.ycsb("run redis -P workloads/workloada -s --quiet");
    assert_eq!(err(&quiet), "");
    assert!(has(&report(&out(&quiet)), "READ"));
}

#[test]
fn values_are_verified() {
    let Some(redis) = Redis::start() else { return };
    let integrity = "-P workloads/workloadf -p dataintegrity=true -threads 2";
    exited(&redis.ycsb(&format!("load redis {integrity}")), 0);
    let expected = "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10";
    assert_eq!(redis.ask(&["HGET", KEY_0, "field0"]), [expected]);
    let run = redis.ycsb(&format!("run redis {integrity}"));
    exited(&run, 0);
    let found = report(&out(&run));
    assert!(out(&run).starts_with("Data integrity is enabled.\n[OVERALL]"));
    assert_eq!(whole(&found, "VERIFY", "Return=OK"), whole(&found, "READ", "Return=OK"));
    assert_eq!(whole(&found, "READ", "Return=OK"), 1_000);
    let (scripts, updates) =
        (whole(&found, "READ-MODIFY-WRITE", "Operations"), whole(&found, "UPDATE", "Return=OK"));
    assert_eq!(scripts, updates);
    assert!(!found.keys().any(|(_, measurement)| measurement == "Return=UNEXPECTED_STATE"));
    // Bytes that another program wrote are noticed, and said.
    redis.ask(&["HSET", KEY_0, "field3", "spoilt"]);
    let run = redis
        .ycsb("run redis -P workloads/workloadc -p dataintegrity=true -p requestdistribution=sequential");
    assert_eq!(whole(&report(&out(&run)), "VERIFY", "Return=UNEXPECTED_STATE"), 1);
    exited(&run, 5);
    assert!(
        err(&run).contains("the run is invalid (data): 1 operations of 1000 read records that do not hold"),
        "{}",
        err(&run)
    );
}

/// A string holds all values of a record end to end: each is verified, and nothing more or less may stand there.
#[test]
fn values_in_strings_are_verified() {
    let Some(redis) = Redis::start() else { return };
    let integrity = "-P workloads/workloadc -p dataintegrity=true -p redis.layout=string -p requestdistribution=sequential";
    exited(&redis.ycsb(&format!("load redis {integrity}")), 0);
    let wrong = |code: i32| {
        let run = redis.ycsb(&format!("run redis {integrity}"));
        exited(&run, code);
        let found = report(&out(&run));
        assert_eq!(whole(&found, "VERIFY", "Operations"), 1_000, "{}", out(&run));
        found
            .get(&("VERIFY".into(), "Return=UNEXPECTED_STATE".into()))
            .map(|_| whole(&found, "VERIFY", "Return=UNEXPECTED_STATE"))
    };
    assert_eq!(wrong(0), None);
    let own = redis.ask(&["GET", KEY_0]).remove(0);
    assert_eq!(own.len(), 1_000);
    let (first, last) = own.split_at(999);
    for spoilt in
        ["short", first, &format!("{own}x"), &format!("{first}{}", if last == "0" { "1" } else { "0" })]
    {
        redis.ask(&["SET", KEY_0, spoilt]);
        assert_eq!(wrong(5), Some(1), "{spoilt}");
    }
    redis.ask(&["SET", KEY_0, &own]);
    assert_eq!(wrong(0), None);
}

#[test]
fn a_target_is_an_open_loop_with_intended_latencies() {
    let Some(redis) = Redis::start() else { return };
    exited(&redis.ycsb("load redis -P workloads/workloadb"), 0);
    let line = "run redis -P workloads/workloadb -target 20000 -threads 8 -p operationcount=2000";
    let run = redis.ycsb(line);
    exited(&run, 0);
    let found = report(&out(&run));
    let reads = whole(&found, "READ", "Return=OK");
    assert_eq!(whole(&found, "Intended-READ", "Operations"), reads);
    assert!(!found.contains_key(&("Intended-READ".into(), "Return=OK".into())));
    assert_eq!(reads + whole(&found, "UPDATE", "Return=OK"), 2_000);
    // As YCSB does it, only when asked for.
    let compat = report(&out(&redis.ycsb(&format!("{line} --compat-exit"))));
    assert!(!has(&compat, "Intended-READ") && has(&compat, "READ"));
    assert!(!compat.contains_key(&("OVERALL".into(), "RunTimeWithoutConnect(ms)".into())));
    let poisson = redis.ycsb(&format!("{line} -p dyno.arrivals=poisson -p measurement.interval=op"));
    exited(&poisson, 0);
    assert!(!has(&report(&out(&poisson)), "Intended-READ"));
}

#[test]
fn exporters_and_files() {
    let Some(redis) = Redis::start() else { return };
    exited(&redis.ycsb("load redis -P workloads/workloada"), 0);
    let package = "site.ycsb.measurements.exporter";
    let json = redis
        .ycsb(&format!("run redis -P workloads/workloada -p exporter={package}.JSONMeasurementsExporter"));
    let objects: Vec<serde_json::Value> =
        serde_json::Deserializer::from_slice(&json.stdout).into_iter().map(|v| v.expect("JSON")).collect();
    assert_eq!(objects[0]["metric"], "OVERALL");
    assert_eq!(objects[0]["measurement"], "RunTime(ms)");
    let array = redis.ycsb(&format!(
        "run redis -P workloads/workloada -p exporter={package}.JSONArrayMeasurementsExporter"
    ));
    let list: Vec<serde_json::Value> = serde_json::from_slice(&array.stdout).expect("one array");
    let of = |metric: &str, measurement: &str| {
        let found = list.iter().find(|v| v["metric"] == metric && v["measurement"] == measurement);
        found.and_then(|v| v["value"].as_u64()).unwrap_or_else(|| panic!("{metric} {measurement}"))
    };
    assert_eq!(of("READ", "Return=OK") + of("UPDATE", "Return=OK"), 1_000);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display();
    let files = format!(
        "-p hdrhistogram.fileoutput=true -p hdrhistogram.output.path={path}/a- -p exportfile={path}/out"
    );
    let run = redis.ycsb(&format!("run redis -P workloads/workloada -s --out {path}/run {files}"));
    exited(&run, 0);
    assert_eq!(out(&run), "");
    let found = report(&std::fs::read_to_string(folder.path().join("out")).expect("exportfile"));
    for metric in ["READ", "UPDATE", "CLEANUP"] {
        let text = std::fs::read_to_string(format!("{path}/a-{metric}.hdr")).expect("a log");
        assert!(
            text.starts_with(&format!("#[Logging for: {metric}]\n#[Histogram log format version 1.3]\n"))
        );
        let read = dyno_rundir::hlog::read(&text, Scale::Micros).expect("a histogram log");
        assert_eq!(read[""].count(), whole(&found, metric, "Operations"));
    }
    let shown = Command::new(env!("CARGO_BIN_EXE_dyno")).args(["report", &format!("{path}/run")]).output();
    assert!(out(&shown.expect("dyno report")).contains("ycsb run redis on Redis "));
    let json = redis.ycsb("run redis -P workloads/workloada --json");
    let summary: serde_json::Value = serde_json::from_slice(&json.stdout).expect("summary.json alone");
    assert_eq!(summary["phases"][0]["outcomes"]["ok"], 1_000);
}

#[test]
fn every_measurement_type_reports() {
    let Some(redis) = Redis::start() else { return };
    exited(&redis.ycsb("load redis -P workloads/workloade -p dataintegrity=true"), 0);
    for (name, prefix, count) in [
        ("hdrhistogram", "", "Operations"),
        ("histogram", "", "Operations"),
        ("timeseries", "", "Operations"),
        ("raw", "", "Total Operations"),
        ("hdrhistogram+histogram", "Bucket", "Operations"),
        ("hdrhistogram+raw", "Raw", "Total Operations"),
    ] {
        let integrity = if name == "raw" { "-p dataintegrity=true -p readproportion=1" } else { "" };
        let line = format!(
            "run redis -P workloads/workloade -p operationcount=200 -p measurementtype={name} {integrity}"
        );
        let run = redis.ycsb(&format!("{line} -p maxscanlength=5"));
        exited(&run, 0);
        let found = report(&out(&run));
        assert!(whole(&found, &format!("{prefix}SCAN"), count) > 50, "{name}");
        assert!(has(&found, &format!("{prefix}CLEANUP")), "{name}");
        let lines =
            out(&run).lines().filter(|line| line.starts_with(&format!("{prefix}SCAN,"))).count() as u64;
        let raw = if name.contains("raw") { whole(&found, &format!("{prefix}SCAN"), count) } else { 0 };
        assert_eq!(lines, raw, "{name}");
    }
}

#[test]
fn refusals_and_their_codes() {
    let refused = |line: &str, code: i32, message: &str, compat_code: i32| {
        let output = ycsb(line);
        exited(&output, code);
        assert!(err(&output).contains(message) && out(&output).is_empty(), "{line}: {}", err(&output));
        exited(&ycsb(&format!("{line} --compat-exit")), compat_code);
    };
    refused("run reddis -P workloada", 2, "did you mean redis?", 2);
    refused("run basic -P workloada -treads 4", 2, "did you mean -threads?", 0);
    refused("run basic", 2, "workload is not set", 0);
    refused("run basic -P nowhere", 2, "no such file", 0);
    refused("run redis -P workloada", 2, "redis.host is not set", 0);
    refused("run basic -P workloada -p insertstart=2000", 2, "insertstart=2000: expected at most", 255);
    refused("run basic -P workloada -p measurementtype=x", 2, "measurementtype=x: expected one of", 0);
    refused(
        "run basic -P workloada -p exportfile=/nowhere/x",
        2,
        "exportfile=/nowhere/x: expected a file",
        255,
    );
    refused(
        "run basic -P workloada -p hdrhistogram.fileoutput=true -p hdrhistogram.output.path=/nowhere/x",
        2,
        "folder",
        1,
    );
    refused("run sqlite -P workloada -p sqlite.path=/nowhere/x/y.db", 2, "/nowhere/x/y.db", 1);
    let output = ycsb("run basic --compat-exit");
    assert_eq!(out(&output), "Missing property: workload\nFailed check required properties.\n");
    let help = ycsb("run redis -h");
    exited(&help, 0);
    assert!(out(&help).contains("redis.scan.window=1") && out(&help).contains("-threads N"));
}

#[test]
fn targets_that_do_not_answer() {
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let closed = port(&TcpListener::bind("127.0.0.1:0").expect("a port"));
    let line = |port| format!("run redis -P workloada -p redis.host=127.0.0.1 -p redis.port={port}");
    let output = ycsb(&line(closed));
    exited(&output, 3);
    assert!(err(&output).contains("connection refused") && !err(&output).contains("Starting test."));
    exited(&ycsb(&format!("{} --compat-exit", line(closed))), 0);

    let web = TcpListener::bind("127.0.0.1:0").expect("a port");
    let talks_http = line(port(&web));
    std::thread::spawn(move || {
        for mut stream in web.incoming().flatten() {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    exited(&ycsb(&talks_http), 3);
}

#[test]
fn passwords() {
    let Some(redis) = Redis::start() else { return };
    redis.ask(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("run");
    let none = redis.ycsb("load redis -P workloada");
    exited(&none, 3);
    assert!(err(&none).contains("NOAUTH"), "{}", err(&none));
    let wrong = redis.ycsb("load redis -P workloada -p redis.password=hunter3");
    exited(&wrong, 3);
    assert!(err(&wrong).contains("redis.password=***") && err(&wrong).contains("Command line: load"));
    let right =
        redis.ycsb(&format!("load redis -P workloada -p redis.password=hunter2 --out {}", place.display()));
    exited(&right, 0);
    let mut seen = vec![err(&wrong), err(&right), out(&right)];
    let mut folders = vec![place];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a run directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => seen.push(std::fs::read_to_string(path).expect("text")),
            }
        }
    }
    assert!(seen.len() > 6 && !seen.concat().contains("hunter"), "{seen:#?}");
    assert!(err(&right).contains("every user of this machine can see it"));
    // Neither typed nor in a file.
    let mut arguments = split_words("load redis -P workloada");
    arguments.extend(redis.properties());
    let output = command(&arguments).env("DYNO_REDIS_PASSWORD", "hunter2").output().expect("dyno runs");
    exited(&output, 0);
    assert!(!err(&output).contains("warning"), "{}", err(&output));
}

#[test]
fn files_lose_to_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let one = file(
        "one",
        "workload=com.yahoo.ycsb.workloads.CoreWorkload\nrecordcount=7\nfieldcount=1\ntable=one\n",
    );
    let two = file("two", "fieldcount=2\nbasicdb.verbose=true\noperations=9\n");
    let load = run(&split_words(&format!("load basic -p recordcount=3 -P {one} -P {two} -p fieldlength=4")));
    exited(&load, 0);
    let text = out(&load);
    let begin = text.lines().skip_while(|line| !line.starts_with("******")).skip(1);
    let (block, rest): (Vec<&str>, Vec<&str>) = begin.partition(|line| line.starts_with('"'));
    // The mock begins with its properties, among them unknown ones of files.
    assert!(block.contains(&"\"recordcount\"=\"3\"") && block.contains(&"\"operations\"=\"9\""), "{text}");
    let lines: Vec<&str> = rest.into_iter().skip(1).take_while(|line| !line.starts_with('[')).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines
            .iter()
            .all(|l| l.starts_with("INSERT one user") && l.contains("field1=") && !l.contains("field2="))
    );
    assert!(err(&load).contains(&format!("warning: {two}:3: unknown property \"operations\"")));
    assert!(err(&load).contains("did you mean operationcount?"));
    let back = run(&split_words(&format!("load basic -P {two} -P {one}")));
    assert!(!out(&back).contains("field1=") && out(&back).contains("[INSERT], Return=OK, 7"));
}

#[test]
fn the_mock_writes_its_lines_before_the_report() {
    let run =
        ycsb("run basic -P workloads/workloade -p operationcount=300 -p updateproportion=0.5 -threads 3");
    exited(&run, 0);
    let text = out(&run);
    let report_at = text.find("[OVERALL]").expect("a report");
    let (block, lines): (Vec<&str>, Vec<&str>) =
        text[..report_at].lines().partition(|line| line.starts_with(['*', '"']));
    assert_eq!(lines.len(), 300);
    // Each thread says which properties it has.
    assert_eq!(block.iter().filter(|line| line.contains(" properties ")).count(), 3);
    let scan = lines.iter().find(|l| l.starts_with("SCAN usertable user")).expect("a scan");
    assert!(scan.ends_with(" [ <all fields>]"), "{scan}");
    let update = lines.iter().find(|l| l.starts_with("UPDATE usertable user")).expect("an update");
    assert_eq!(update.matches("field").count(), 1, "{update}");
    let silent = ycsb("run basic -P workloads/workloadc -p basicdb.verbose=false");
    assert!(out(&silent).starts_with("[OVERALL]"));
    let null = ycsb("run null -P workloads/workloada -threads 2");
    exited(&null, 0);
    let found = report(&out(&null));
    assert_eq!(whole(&found, "READ", "Return=OK") + whole(&found, "UPDATE", "Return=OK"), 1_000);
}

#[test]
fn embedded_stores() {
    let folder = tempfile::tempdir().expect("a folder");
    for store in ["sqlite", "redb", "fjall"] {
        let path = folder.path().join(store);
        let place = format!("-p {store}.path={} -p recordcount=300 -p operationcount=300", path.display());
        let load = ycsb(&format!("load {store} -P workloads/workloadd {place} -threads 2"));
        exited(&load, 0);
        assert_eq!(whole(&report(&out(&load)), "INSERT", "Return=OK"), 300, "{store}");
        let run = ycsb(&format!("run {store} -P workloads/workloadd {place} -s -threads 2"));
        exited(&run, 0);
        let found = report(&out(&run));
        assert_eq!(whole(&found, "READ", "Return=OK") + whole(&found, "INSERT", "Return=OK"), 300, "{store}");
        assert_eq!(whole(&found, "CLEANUP", "Operations"), 2);
    }
}

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let Some(redis) = Redis::start() else { return };
    exited(&redis.ycsb("load redis -P workloads/workloadc"), 0);
    let mut arguments =
        split_words("run redis -P workloads/workloadc -p operationcount=0 -s -p status.interval=1");
    arguments.extend(redis.properties());
    let mut child =
        command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("dyno runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("current ops/sec; ")));
    let killed = Command::new("/bin/sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(killed.expect("kill").success());
    // The rest is read so that the child is not held up.
    let rest: Vec<String> = lines.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(whole(&report(&out(&output)), "READ", "Return=OK") > 0);
}

/// What the shell answers to `input`, without the times.
fn shell(arguments: &[String], input: &str) -> String {
    let mut command = command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("dyno runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("sent");
    let output = child.wait_with_output().expect("it ends");
    exited(&output, 0);
    let text = out(&output);
    let timed = |line: &&str| line.ends_with(" ms") && line.split(' ').count() == 2;
    text.lines().filter(|line| !timed(line)).map(|line| format!("{line}\n")).collect()
}

const SHELL: &str = "insert user1 field0=1=2 field1=\ninsert user2 field0=x\nread user1\nread user1 field1\n\
                     scan user1 9 field0\nupdate user1 field1=new\nread user1 field1\n\
                     delete user2\nread user2\n\
                     frob\ninsert user3\n";

const ANSWERS: &str = "YCSB Command Line client\nType \"help\" for command line help\n\
                       Start with \"-help\" for usage info\nConnected.\n\
                       > Result: OK\n> Result: OK\n> Return code: OK\nfield0=1=2\nfield1=\n\
                       > Return code: OK\nfield1=\n\
                       > Result: OK\n--------------------------------\nRecord 0\nfield0=1=2\n\
                       --------------------------------\nRecord 1\nfield0=x\n\
                       --------------------------------\n\
                       > Result: OK\n> Return code: OK\nfield1=new\n> Return result: OK\n\
                       > Return code: NOT_FOUND\n> Error: unknown command \"frob\"; \"help\" lists them\n\
                       > Error: syntax is \"insert keyname name1=value1 [name2=value2 ...]\"\n";

#[test]
fn the_shell_talks_to_redis() {
    let Some(redis) = Redis::start() else { return };
    let mut arguments = split_words("shell redis");
    arguments.extend(redis.properties());
    // The end of the input ends the shell, as quit does.
    assert_eq!(shell(&arguments, SHELL), format!("{ANSWERS}> \n"));
    assert_eq!(shell(&arguments, &format!("{SHELL}quit\nread user1\n")), format!("{ANSWERS}> ") + "\n");
    assert_eq!(redis.ask(&["HGETALL", "user1"]), ["field0", "1=2", "field1", "new"]);
    assert_eq!(redis.ask(&["ZRANGE", "_indices", "0", "-1"]), ["user1"]);
}

#[test]
fn the_shell_talks_to_stores() {
    let folder = tempfile::tempdir().expect("a folder");
    for store in ["sqlite", "redb", "fjall"] {
        let path = folder.path().join(store);
        let arguments = split_words(&format!("shell {store} -p {store}.path={}", path.display()));
        assert_eq!(shell(&arguments, SHELL), format!("{ANSWERS}> \n"), "{store}");
        // What was written is there again, in its own table.
        let text = shell(
            &arguments,
            "read user1 field1\ntable other\nread user1\ntable\ntable usertable\nread user1\n",
        );
        let seen: Vec<&str> = text.lines().skip(4).collect();
        let expected = [
            "> Return code: OK",
            "field1=new",
            "> Using table \"other\"",
            "> Return code: NOT_FOUND",
            "> Using table \"other\"",
            "> Using table \"usertable\"",
            "> Return code: OK",
            "field0=1=2",
            "field1=new",
            "> ",
        ];
        assert_eq!(seen, expected, "{store}");
    }
    let basic = shell(&split_words("shell basic -table t"), "read k\nscan k 2 f\n");
    assert!(basic.contains(
        "> READ t k [ <all fields>]\nReturn code: OK\n> SCAN t k 2 [ f ]\nResult: OK\n0 records\n"
    ));
}

#[test]
fn the_closed_economy_keeps_its_money_where_one_user_works_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("economy.db").display().to_string();
    let redis = Redis::start();
    let economy = "-p workload=site.ycsb.workloads.ClosedEconomyWorkload -p recordcount=50 -p totalcash=5000";
    let mix = "-p operationcount=2000 -p readproportion=1 -p updateproportion=1 -p insertproportion=0.2 \
               -p readmodifywriteproportion=2";
    let check = |load: std::process::Output, run: std::process::Output| {
        exited(&load, 0);
        assert_eq!(whole(&report(&out(&load)), "INSERT", "Operations"), 50);
        exited(&run, 0);
        let text = out(&run);
        assert!(text.contains("[VALIDATE], STATUS, PASSED"), "{text}");
        assert!(text.contains("[VALIDATE], ANOMALY SCORE, 0.0"), "{text}");
        let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("[VALIDATE]")).collect();
        assert!(lines.contains(&"[VALIDATE], TOTAL CASH, 5000"), "{lines:?}");
        assert!(lines.contains(&"[VALIDATE], COUNTED CASH, 5000"), "{lines:?}");
        assert!(text.contains("[TX-READMODIFYWRITE], Return=OK, "), "{text}");
    };
    let sqlite = format!("-p sqlite.path={file}");
    check(
        ycsb(&format!("load sqlite {economy} {sqlite}")),
        ycsb(&format!("run sqlite {economy} {mix} {sqlite}")),
    );
    if let Some(redis) = redis {
        check(
            redis.ycsb(&format!("load redis {economy}")),
            redis.ycsb(&format!("run redis {economy} {mix}")),
        );
    }
}
