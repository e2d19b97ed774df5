//! Bad input: a clear message and a distinct exit code, before any load is sent; and secrets that stay secret.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, stderr, stdout};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn wrong_usage_is_explained() {
    let dyno = Dyno::new();
    std::fs::create_dir(dyno.path("full")).unwrap();
    std::fs::write(dyno.path("full/file"), "x").unwrap();
    std::fs::write(dyno.path("bad.properties"), "recordcount=100\nrequestdistribution=zipfain\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["run", "--rekords", "5"], "--records"),
        (&["runn"], "run"),
        (&["run", "rediss"], "target"),
        (&["run", "rdis://h"], "redis"),
        (&["run", "plan.yaml"], "plan.yaml: No such file"),
        (&["run", "lab/operational-lawz"], "lab/operational-laws"),
        (&["run", "lab/nothing"], "is no preset; `dyno presets` lists them"),
        (&["run", "null:", "--set", "users=3"], "goes with an experiment"),
        (&["plan", "lab/operational-laws", "--scale", "7"], "has no scale"),
        (&["run", "null:", "-w", "nosuch"], "a to f"),
        (&["run", "null:", "-w", "bad.properties"], "bad.properties:2"),
        (&["run", "null:", "-p", "fieldcoutn=3"], "fieldcount"),
        (&["run", "null:", "-p", "readproportion=0", "-p", "updateproportion=0"], "weight above 0"),
        (
            &["run", "null:", "--distribution", "hotspot", "-p", "hotspotdatafraction=0"],
            "hotspotdatafraction",
        ),
        (&["run", "null:", "-p", "insertstart=200000"], "insertstart"),
        (&["run", "null:", "--threads", "0"], "--threads"),
        (&["run", "null:", "--users", "0"], "users"),
        (&["run", "null:", "--rate", "fast"], "--rate"),
        (&["run", "null:", "--duration", "5 parsecs"], "--duration"),
        (&["run", "null:", "--require", "p98(read) < 1ms"], "no statistic"),
        (&["run", "null:", "--require", "p99(scan) < 1ms"], "records read"),
        (&["run", "null:", "--out", "full"], "not empty"),
        (&["run", "null:", "--out", "/proc/nowhere/x"], "/proc/nowhere"),
        (&["run", "redis://h?clutser=true"], "cluster"),
        (&["run", "redis://h?reads=all"], "primary, replica"),
        (&["run", "sqlite:x.db?jurnal=wal"], "journal"),
        (&["report", "nowhere"], "nowhere"),
        (&["wsf"], "-N lists them"),
        (&["wsf", "gatd"], "gated"),
        (&["wsf", "gated", "--set", "THREDS=1"], "THREADS"),
        (&["wsf", "gated", "--set", "THREADS=1 2 ...9"], "3 or more"),
        (&["wsf", "gated", "--backend", "swarm"], "swarm"),
        (&["wsf", "-R", "nothing", "--dry-run"], "no test matches"),
        (&["wsf", "-R", "(", "--dry-run"], "regular expression"),
        (&["wsf", "wsf-25/30write60read10insert", "--dry-run"], "sum to 1.1"),
        (&["wsf", "read", "--target", "null:", "--noenv"], "CLIENT_SERVER_PAIR=1"),
        (&["wsf", "list-kpi", "full"], "itr-"),
    ];
    for (arguments, word) in cases {
        let output = dyno.run(arguments);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(word), "{arguments:?} does not say {word:?}:\n{}", stderr(&output));
    }
}

#[test]
fn a_target_that_will_not_have_us() {
    let dyno = Dyno::new();
    let free = dyno_testkit::free_port();
    let refused = dyno.run(&["run", &format!("redis://127.0.0.1:{free}"), "--out", "d"]);
    assert_exit(&refused, &[3]);
    assert!(stderr(&refused).contains("connection refused"), "{}", stderr(&refused));
    assert!(!dyno.path("d").exists(), "a run directory was made before the target was known");
    let missing = dyno.run(&["wsf", "gated", "--program", "nowhere"]);
    assert_exit(&missing, &[2]);
    assert!(stderr(&missing).contains("--target URI"), "{}", stderr(&missing));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let web = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        let _ = stream.read(&mut request);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let wrong = dyno.run(&["run", &format!("redis://127.0.0.1:{port}"), "--no-out"]);
    web.join().unwrap();
    assert_exit(&wrong, &[3]);
    assert!(stderr(&wrong).contains("not a Redis server"), "{}", stderr(&wrong));
}

#[test]
fn passwords_are_checked_and_never_written() {
    let secret = "s3cret-hunter2";
    let Some(server) = RedisProcess::start(&["--requirepass", secret]) else { return skip("passwords") };
    let dyno = Dyno::new();
    let without = dyno.run(&["run", &server.uri(), "--no-out"]);
    assert_exit(&without, &[3]);
    assert!(stderr(&without).contains("NOAUTH"), "{}", stderr(&without));
    let wrong = dyno.run(&["run", &format!("redis://:wrong-{secret}@127.0.0.1:{}", server.port), "--no-out"]);
    assert_exit(&wrong, &[3]);
    assert!(stderr(&wrong).contains("WRONGPASS"), "{}", stderr(&wrong));
    assert!(!stderr(&wrong).contains(secret));
    let target = format!("redis://default:{secret}@127.0.0.1:{}", server.port);
    let output = dyno.run(&["run", &target, "--records", "100", "--ops", "1000", "--out", "d"]);
    dyno.assert_ran(&output);
    assert!(stderr(&output).contains("can be seen by every user"));
    assert!(!stdout(&output).contains(secret) && !stderr(&output).contains(secret));
    let files = ["d", "d/monitor"].map(|folder| std::fs::read_dir(dyno.path(folder)).unwrap());
    for file in files.into_iter().flatten() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(!found, "the password is in {}", path.display());
    }
}

#[test]
fn a_uri_of_another_protocol_is_told_so_within_a_second() {
    let dyno = Dyno::new();
    let told = |uri: String, message: &str| {
        let begun = std::time::Instant::now();
        let refused = dyno.run(&["run", &uri, "--no-out"]);
        assert_exit(&refused, &[3]);
        assert!(stderr(&refused).contains(message), "{}", stderr(&refused));
        assert!(!stderr(&refused).contains("TLS"), "{}", stderr(&refused));
        // The patience for a silent server is five seconds.
        assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
    };
    match dyno_testkit::RedisProcess::start(&[]) {
        None => dyno_testkit::skip("mongodb:// on Redis"),
        Some(redis) => told(
            format!("mongodb://127.0.0.1:{}/x", redis.port),
            &format!("speaks Redis' protocol, not MongoDB's: write redis://127.0.0.1:{}", redis.port),
        ),
    }
    match dyno_testkit::mongo::Mongo::java() {
        None => dyno_testkit::skip_because("redis:// on MongoDB", "mongo-java-server is not there"),
        Some(mongo) => told(
            format!("redis://127.0.0.1:{}", mongo.port),
            &format!("speaks MongoDB's protocol, not Redis': write mongodb://127.0.0.1:{}", mongo.port),
        ),
    }
}

#[test]
fn results_that_cannot_be_written_are_no_success() {
    let dyno = Dyno::new();
    for words in
        [&["presets"][..], &["schema", "summary"], &["ycsb", "--help"], &["--help"], &["run", "--help"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = dyno.command(words).stdout(full).output().unwrap();
        assert_exit(&ended, &[1]);
        let said = stderr(&ended);
        let own = words.last() != Some(&"--help") || words[0] == "ycsb";
        assert!(!own || said.contains("stdout: No space left on device"), "{words:?}: {said}");
    }
}

/// `dyno top` ends when its reader has gone, or its lines cannot be written.
#[test]
fn top_ends_with_its_reader() {
    let Some(server) = RedisProcess::start(&[]) else { return dyno_testkit::skip("usage") };
    let dyno = Dyno::new();
    let uri = server.uri();
    // An hour to the next line: the closed pipe is seen all the same.
    for interval in ["100ms", "1h"] {
        let mut top = dyno.command(&["top", &uri, "--interval", interval]);
        let mut top = top.stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(top.stdout.take());
        assert_eq!(top.wait().unwrap().code(), Some(0), "{interval}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = dyno.command(&["top", &uri, "--interval", "100ms"]).stdout(full).output().unwrap();
    assert_exit(&ended, &[1]);
}
