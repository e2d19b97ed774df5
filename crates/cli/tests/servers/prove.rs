//! Proofs on real servers: met where they must be, and not met where they must not be.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, finish, skip, skip_because, stderr, stdout};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

fn certificate(dyno: &Dyno, folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dyno.path(folder).join("proof.json")).unwrap()).unwrap()
}

/// A primary and its replica, online.
fn pair() -> Option<(RedisProcess, RedisProcess)> {
    pair_of("redis-server", &[])
}

fn pair_of(program: &'static str, options: &[&str]) -> Option<(RedisProcess, RedisProcess)> {
    let primary = RedisProcess::start_of(program, options)?;
    let port = primary.uri().rsplit(':').next().unwrap().to_owned();
    let follows = [&format!("--replicaof 127.0.0.1 {port}"), "--repl-diskless-sync-delay 0"];
    let replica = RedisProcess::start_of(program, &[&follows, options].concat())?;
    let end = Instant::now() + Duration::from_secs(30);
    while !primary.cli(&["INFO", "replication"]).contains("state=online") {
        assert!(Instant::now() < end, "the replica does not come online");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some((primary, replica))
}

/// What was there before, whose clock says what, what was sent, and how far the replica was behind.
fn more_evidence(found: &Value) {
    let checks = found["pre_checks"].as_array().unwrap();
    let named = |name: &str| -> Vec<&Value> {
        checks.iter().filter(|check| check["name"].as_str().unwrap().starts_with(name)).collect()
    };
    let empty = named("nothing is there yet")[0];
    assert_eq!((&empty["held"], &empty["found"]), (&true.into(), &"0 records or indexes".into()));
    let clocks = named("clock of ");
    let clocks: Vec<&str> = clocks.iter().map(|check| check["found"].as_str().unwrap()).collect();
    assert_eq!(clocks.len(), 2, "{checks:?}");
    assert!(clocks.iter().all(|message| message.contains(" ms from this host's, within ")), "{clocks:?}");
    let sent = &found["sent"];
    assert_eq!(
        (&sent["records"], &sent["least_bytes"], &sent["most_bytes"]),
        (&6_000.into(), &1_000.into(), &1_000.into())
    );
    assert!(sent["wire_bytes"].as_u64() > sent["record_bytes"].as_u64(), "{sent}");
    assert!(
        found["storage"]["memory_of_the_first_record"].as_f64().unwrap() > 1_000.0,
        "{}",
        found["storage"]
    );
    let lag = &found["lag"];
    assert_eq!(lag["unit"], "bytes of the replication stream");
    assert_eq!(lag["members"].as_object().unwrap().len(), 1, "{lag}");
    assert_eq!(found["program_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(found["seed"], 1);
}

#[test]
fn an_ingest_rate_with_two_copies() {
    let Some((primary, _replica)) = pair() else { return skip("a proof of ingest rate") };
    let dyno = Dyno::new();
    let uri = primary.uri();
    let key = dyno.path("key").display().to_string();
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
    let signed = made.is_ok_and(|status| status.success());
    let base = [
        "prove",
        "ingest",
        &uri,
        "-n",
        "6000",
        "--batch",
        "100",
        "--threads",
        "3",
        "--quiet",
        "--least",
        "0s",
    ];
    // Two seconds, so that dyno looks at the replica meanwhile.
    let mut words = [&base[..], &["--rate", "3000", "--require-rate", "100", "--out", "met"]].concat();
    if signed {
        words.extend(["--sign", &key]);
    }
    let output = dyno.run(&words);
    assert_exit(&output, &[0]);
    assert!(stdout(&output).starts_with("CLAIM MET"), "{}", stdout(&output));
    let found = certificate(&dyno, "met");
    assert_eq!(found["figures"]["acknowledged"], 6_000);
    let copies = found["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 2);
    for copy in copies {
        assert_eq!(
            (&copy["found"], &copy["missing"], &copy["wrong"]),
            (&6_000.into(), &0.into(), &0.into()),
            "{copy}"
        );
        assert_eq!(copy["indexed"], serde_json::json!([6_000, 6_000, 6_000]));
        assert_eq!(copy["digest"], copies[0]["digest"]);
    }
    more_evidence(&found);
    assert_eq!(primary.cli(&["DBSIZE"]).trim(), "0", "the proof's records are removed");
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(dyno.path("met"))
        .output();
    assert!(sums.unwrap().status.success());
    assert_eq!(dyno.path("met").join("SHA256SUMS.sig").is_file(), signed);
    let page = std::fs::read_to_string(dyno.path("met").join("proof.html")).unwrap();
    assert!(page.contains("CLAIM MET") && page.contains("What this does not prove"));
    // More than any machine can do: the evidence is complete, and the claim is not met.
    let output = dyno.run(&[&base[..], &["--require-rate", "1000000k", "--out", "not-met"]].concat());
    assert_exit(&output, &[4]);
    assert_eq!(certificate(&dyno, "not-met")["met"], false);
}

/// What is on both disks: `WAITAOF`, which servers have since 7.2.
#[test]
fn an_ingest_rate_on_the_disks_of_two_valkeys() {
    let to_disk = ["--appendonly yes", "--appendfsync everysec"];
    let Some((primary, _replica)) = pair_of("valkey-server", &to_disk) else {
        return skip_because("a proof on disks", "valkey-server is not on PATH");
    };
    let dyno = Dyno::new();
    let uri = primary.uri();
    let base = [
        "prove",
        "ingest",
        &uri,
        "-n",
        "400",
        "--batch",
        "100",
        "--threads",
        "2",
        "--durable",
        "--quiet",
        "--least",
        "0s",
    ];
    let output = dyno.run(&[&base[..], &["--require-rate", "1", "--out", "durable"]].concat());
    assert_exit(&output, &[0]);
    let found = certificate(&dyno, "durable");
    assert_eq!(found["figures"]["acknowledged"], 400);
    assert!(found.to_string().contains("WAITAOF"), "{found}");
    let copies = found["copies"].as_array().unwrap();
    assert_eq!((copies.len(), &copies[1]["found"]), (2, &400.into()), "{copies:?}");
}

#[test]
fn copies_that_are_not_there_are_not_claimed() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a proof without copies") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let alone = dyno.run(&["prove", "ingest", &uri, "-n", "100", "--quiet", "--out", "a"]);
    assert_exit(&alone, &[2]);
    assert!(stderr(&alone).contains("replicas online: 0"), "{}", stderr(&alone));
    let other = dyno.run(&["prove", "ingest", "null:", "-n", "100", "--out", "b"]);
    assert_exit(&other, &[2]);
    let gone = dyno.run(&["prove", "ingest", "redis://127.0.0.1:1", "-n", "100", "--out", "c"]);
    assert_exit(&gone, &[3]);
    let one = [
        "prove",
        "ingest",
        &uri,
        "-n",
        "100",
        "--copies",
        "1",
        "--require-rate",
        "1",
        "--least",
        "0s",
        "--quiet",
        "--out",
        "d",
    ];
    assert_exit(&dyno.run(&one), &[0]);
}

/// A replica that stands still: nothing is acknowledged twice, and the proof says so.
#[test]
fn a_copy_that_does_not_answer_is_no_copy() {
    let Some((primary, replica)) = pair() else { return skip("a replica that stands still") };
    let dyno = Dyno::new();
    dyno_testkit::signal(replica.pid(), "STOP");
    let uri = primary.uri();
    let words =
        ["prove", "ingest", &uri, "-n", "40", "--batch", "10", "--threads", "2", "--patience", "300ms"];
    let child = dyno.start(&[&words[..], &["--require-rate", "1", "--quiet", "--out", "p"]].concat());
    // It goes on once every record has been written, and waited for in vain.
    let end = Instant::now() + Duration::from_secs(60);
    while primary.cli(&["DBSIZE"]).trim() != "43" && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1_000));
    dyno_testkit::signal(replica.pid(), "CONT");
    assert_eq!(finish(child).status.code(), Some(4));
    let found = certificate(&dyno, "p");
    assert_eq!(found["figures"]["acknowledged"], 0, "{found}");
    assert_eq!(found["figures"]["indeterminate"], 40, "{found}");
}

/// A proof that is killed leaves its records; its folder knows where. Nothing else is touched, and nothing else is believed.
#[test]
fn what_a_killed_proof_left_is_removed() {
    let Some(server) = RedisProcess::start(&["--requirepass open-sesame"]) else {
        return skip("a proof that is killed");
    };
    let dyno = Dyno::new();
    let uri = server.uri().replace("redis://", "redis://:open-sesame@");
    let keys =
        || server.cli(&["-a", "open-sesame", "--no-auth-warning", "DBSIZE"]).trim().parse::<u64>().unwrap();
    server.cli(&["-a", "open-sesame", "--no-auth-warning", "SET", "mine", "1"]);
    let words =
        ["prove", "ingest", &uri, "--copies", "1", "-d", "60s", "--rate", "2000", "--quiet", "--out", "p"];
    let mut killed = dyno.start(&words);
    let end = Instant::now() + Duration::from_secs(60);
    while keys() < 1_500 {
        assert!(Instant::now() < end, "nothing is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let record = std::fs::read_to_string(dyno.path("p").join("records.json")).unwrap();
    assert!(!record.contains("sesame"), "{record}");
    let refused = dyno.run(&["stop", "p"]);
    assert_exit(&refused, &[3]);
    assert!(stderr(&refused).contains("NOAUTH"), "{}", stderr(&refused));
    assert!(keys() > 1_500);
    let stop = || {
        dyno.command(&["stop", "p", "--password-from", "env:PW"]).env("PW", "open-sesame").output().unwrap()
    };
    let strange = record.replace("\"run\": \"", "\"run\": \"*");
    std::fs::write(dyno.path("p").join("records.json"), &strange).unwrap();
    assert_exit(&stop(), &[2]);
    std::fs::write(dyno.path("p").join("records.json"), &record).unwrap();
    let stopped = stop();
    assert_exit(&stopped, &[0]);
    assert!(stderr(&stopped).contains("are removed from"), "{}", stderr(&stopped));
    assert_eq!(keys(), 1, "what is not the proof's stays");
    // One that runs is asked to end, and removes its records by itself.
    let running = dyno.start(&[&words[..11], &["q"]].concat());
    while keys() < 1_500 {
        assert!(Instant::now() < end, "nothing is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = dyno.run(&["stop", "q"]);
    assert_exit(&stopped, &[0]);
    assert!(stderr(&stopped).contains("nothing of the proof is in the database"), "{}", stderr(&stopped));
    assert_exit(&finish(running), &[130]);
    assert_eq!(keys(), 1);
}
