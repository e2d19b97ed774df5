//! A replica set of three real `mongod`s, where `mongod` is on PATH: elections, sessions, transactions.

use crate::mongod_failover::{admin, form, primary};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, arrivals, assert_exit, finish, outcome, phase, skip_because};
use dyno_types::bson::{self, kind};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Three members with a primary, and the URI that names them all.
fn replica_set() -> Option<(Vec<Mongo>, String)> {
    let members: Vec<Mongo> = (0..3).map(|_| Mongo::member()).collect::<Option<_>>()?;
    let uri = format!("mongodb://{}/t?replicaSet=dyno&w=majority", form(&members));
    Some((members, uri))
}

/// Transactions came with wire version 7 (4.0).
fn has_transactions(uri: &str) -> bool {
    let hello = admin(uri).unwrap().run_on("admin", &|out| bson::put_int32(out, "isMaster", 1)).unwrap();
    bson::find_element(&hello, "maxWireVersion").and_then(|e| e.as_i64()).unwrap() >= 7
}

fn transactions_commit(dyno: &Dyno, uri: &str) {
    let file = "
collections:
  a: { count: 500, document: { n: 1 } }
operations:
  pair:
    transaction:
      - { name: take, update: a, filter: { _id: { $key: a } }, change: { $inc: { n: -1 } } }
      - { name: note, insert: a }
";
    std::fs::write(dyno.path("pair.yaml"), file).unwrap();
    let ran =
        dyno.run(&["run", uri, "--workload", "pair.yaml", "--ops", "500", "--users", "1", "--out", "p"]);
    dyno.assert_ran(&ran);
    assert_eq!(outcome(phase(&dyno.summary("p"), "measure"), "ok"), 500);
    assert_eq!(admin(uri).unwrap().count("a").unwrap(), 1_000);
}

#[test]
fn a_primary_that_dies_is_replaced_and_transactions_commit() {
    let Some((mut members, uri)) = replica_set() else {
        return skip_because("a replica set of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    match has_transactions(&uri) {
        true => transactions_commit(&dyno, &uri),
        false => skip_because("transactions of mongod", "mongod is older than 4.0"),
    }

    let arguments =
        ["--records", "2000", "--rate", "500", "--duration", "20s", "--warmup", "0", "--out", "d"];
    let run = dyno.start(&[&["run", &uri][..], &arguments].concat());
    std::thread::sleep(Duration::from_secs(8));
    let first = primary(&members);
    members[first].kill();
    dyno.assert_ran_but(&finish(run), dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let sum: u64 = measured["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, arrivals(measured));
    assert!(outcome(measured, "ok") > 2_000, "{measured}");
}

/// Two copies by a majority, looked up on every member.
#[test]
fn an_ingest_rate_is_proven() {
    let Some((_members, uri)) = replica_set() else {
        return skip_because("a proof on a replica set of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let words = [
        "-n",
        "3000",
        "--batch",
        "100",
        "--rate",
        "1500",
        "--require-rate",
        "1",
        "--least",
        "0s",
        "--durable",
        "--quiet",
        "--out",
        "p",
    ];
    assert_exit(&dyno.run(&[&["prove", "ingest", &uri][..], &words].concat()), &[0]);
    let text = std::fs::read(dyno.path("p").join("proof.json")).unwrap();
    let found: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let copies = found["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 3, "{found}");
    assert!(copies.iter().all(|copy| copy["found"] == 3_000), "{found}");
    // What was sent is what mongod has: documents of the same mean size.
    let figure = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{found:#}"));
    let sent = figure(&found["sent"]["record_bytes"]) / figure(&found["sent"]["records"]);
    let stored = &found["storage"];
    assert!((sent - figure(&stored["avgObjSize"])).abs() < 1.0, "{sent} sent, {stored}");
    assert_eq!((figure(&stored["count"]), figure(&stored["nindexes"])), (3_000.0, 4.0), "{stored}");
    assert_eq!(
        (&found["lag"]["unit"], found["lag"]["members"].as_object().unwrap().len()),
        (&"s of the oplog".into(), 2)
    );
    let clocks = found["pre_checks"].as_array().unwrap().iter();
    let clocks = clocks.filter(|check| check["name"].as_str().unwrap().starts_with("clock of "));
    assert_eq!(clocks.filter(|check| check["found"].as_str().unwrap().contains("within")).count(), 3);
}

fn proven(dyno: &Dyno, folder: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dyno.path(folder).join("proof.json")).unwrap()).unwrap()
}

/// Waits until the proof's records are being written.
fn until_written(uri: &str) {
    let begun = Instant::now();
    let count = || {
        let lists = admin(uri)?
            .run_on("t", &|out| bson::put_int32(out, "listCollections", 1))
            .map_err(|e| e.to_string())?;
        let first = bson::element_at_path(&lists, "cursor.firstBatch")
            .and_then(|e| e.as_document())
            .unwrap_or_default();
        let all = bson::read_elements(first).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let names = all.filter_map(|one| bson::find_element(one, "name")?.as_str().map(str::to_owned));
        let name = names.into_iter().find(|name| name.starts_with("proof")).ok_or("nothing yet")?;
        let counted = admin(uri)?
            .run_on("t", &|out| bson::put_string(out, "count", &name))
            .map_err(|e| e.to_string())?;
        Ok::<i64, String>(bson::find_element(&counted, "n").and_then(|n| n.as_i64()).unwrap_or(0))
    };
    while count().unwrap_or(0) < 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A majority is journaled, because the set's default says so; all three members can be waited for; a record's rate is not
/// proven by a moment.
#[test]
fn a_paper_says_what_the_members_do() {
    let Some((_members, uri)) = replica_set() else {
        return skip_because("papers of a replica set of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    // Idle time before the load is no lag of it.
    std::thread::sleep(Duration::from_secs(4));
    let base =
        ["prove", "ingest", uri.as_str(), "-n", "1000", "--batch", "50", "--require-rate", "1", "--quiet"];
    let run = |out: &str, more: &[&str]| dyno.run(&[&base[..], &["--out", out], more].concat());
    assert_exit(&run("p", &["--least", "0s", "--rate", "400"]), &[0]);
    let found = proven(&dyno, "p");
    let durability = found["claim"]["durability"].as_str().unwrap();
    assert_eq!(durability, "in a journal on disk (writeConcernMajorityJournalDefault)", "{found}");
    assert!(!found["limits"].to_string().contains("A copy is in memory"), "{found}");
    let lags = found["lag"]["members"].as_object().unwrap().values();
    let most =
        lags.flat_map(|all| all.as_array().unwrap()).filter_map(|one| one[1].as_f64()).fold(0.0, f64::max);
    assert!(most <= found["figures"]["seconds"].as_f64().unwrap() + 1.0, "behind by {most} s: {found}");
    assert_exit(&run("three", &["--least", "0s", "--copies", "3"]), &[0]);
    let found = proven(&dyno, "three");
    let check = found["pre_checks"].as_array().unwrap().iter().find(|check| check["name"] == "w: 3").unwrap();
    assert_eq!(check["found"], "3 of 3 members with data and a vote");
    assert_eq!(found["claim"]["durability"], "in memory", "w: 3 asks for no journal");
    assert_exit(&run("four", &["--least", "0s", "--copies", "4"]), &[2]);
    let short = run("short", &[]);
    assert_exit(&short, &[4]);
    let message = dyno_testkit::stdout(&short);
    assert!(
        message.contains("- long enough for a rate: 1,000 records in ") && message.contains(" s, 10 s and "),
        "{message}"
    );
}

/// The primary at the end is one copy, and a member that is gone is none: the claim is judged by the others.
#[test]
fn copies_are_members() {
    for gone in ["secondary", "primary"] {
        let Some((mut members, uri)) = replica_set() else {
            return skip_because("members that go during a proof", "mongod is not on PATH");
        };
        let dyno = Dyno::new();
        let words = [
            "-n",
            "3000",
            "--batch",
            "20",
            "--rate",
            "600",
            "--require-rate",
            "1",
            "--least",
            "0s",
            "--quiet",
        ];
        let run = dyno.start(&[&["prove", "ingest", &uri][..], &words, &["--out", "p"]].concat());
        until_written(&uri);
        let hello = admin(&uri).unwrap().run_on("admin", &|out| bson::put_int32(out, "isMaster", 1)).unwrap();
        let primary = bson::find_element(&hello, "primary").and_then(|e| e.as_str()).unwrap().to_owned();
        let is_primary = |member: &Mongo| primary.ends_with(&format!(":{}", member.port));
        let at = members.iter().position(|member| is_primary(member) == (gone == "primary")).unwrap();
        let name = format!("127.0.0.1:{}", members[at].port);
        members[at].kill();
        let output = finish(run);
        let found = proven(&dyno, "p");
        let copies = found["copies"].as_array().unwrap();
        let mut names: Vec<&str> = copies.iter().map(|copy| copy["member"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), copies.len()), (3, 3), "each member once: {found}");
        let of = |name: &str| copies.iter().find(|copy| copy["member"] == name).unwrap();
        assert!(of(&name)["trouble"].is_string(), "{found}");
        let message = dyno_testkit::stdout(&output);
        assert!(message.contains(&format!("2 whole copies of 3; {name} is no copy: ")), "{message}");
        assert!(message.contains("+ all copies are alike: 2 digests compared"), "{message}");
        if gone == "secondary" {
            assert_exit(&output, &[0]);
            assert!(message.starts_with("CLAIM MET"), "{message}");
        } else {
            assert_ne!(of(&name)["primary"], true, "the primary of now is another one: {found}");
        }
    }
}

/// The proof of the published command lines: POCDriver's documents, under POCDriver's indexes, the same as `dyno pocdriver -p`
/// shows. What a killed proof leaves is removed by `dyno stop`.
#[test]
fn documents_of_pocdriver_are_proven() {
    let Some((_members, uri)) = replica_set() else {
        return skip_because("a proof with POCDriver's documents", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let base = ["prove", "ingest", uri.as_str(), "--document", "pocdriver", "--quiet", "--require-rate", "1"];
    let run = |more: &[&str]| dyno.run(&[&base[..], more].concat());
    for (size, flags, fields, leaf, indexes) in [
        ("small", "-f 25 -a 5:5 --depth 2 -x 3", 25, "node0.node0.fld0_1", 3),
        ("medium", "-f 234 -a 20:20 --depth 2 -x 6", 234, "node0.node0.fld0_1", 6),
        ("large", "-f 1692 -a 10:10 --depth 2 -x 8", 1_692, "node0.node0.fld0_1", 8),
    ] {
        let more =
            ["--size", size, "-n", "600", "--batch", "50", "--threads", "2", "--least", "0s", "--keep"];
        assert_exit(&run(&[&more[..], &["--out", size]].concat()), &[0]);
        let found = proven(&dyno, size);
        let message = found["claim"]["words"].as_str().unwrap();
        assert!(message.contains(&format!("1 documents of POCDriver ({flags}; ")), "{message}");
        for copy in found["copies"].as_array().unwrap() {
            assert_eq!((&copy["found"], &copy["wrong"]), (&600.into(), &0.into()), "{copy}");
            assert_eq!(copy["indexed"], serde_json::json!(vec![600; indexes]), "{copy}");
        }
        let collection = format!("proof_{}", found["run"].as_str().unwrap());
        let stored = admin(&uri).unwrap().find_one(&collection, &|_| {}).unwrap().unwrap();
        let leaves =
            |document: &[u8]| leaves_of(document).into_iter().filter(|name| name.starts_with("fld")).count();
        assert_eq!(leaves(&stored), fields, "{size}");
        // Dates and places aside it is the document that `-p` prints.
        let printed = dyno.run(&[&["pocdriver", "-p"], &flags.split(' ').collect::<Vec<_>>()[..]].concat());
        let shape = |name: &str| dyno_testkit::stdout(&printed).matches(name).count();
        assert_eq!((shape("\"fld"), shape("\"arr\"")), (fields, 1), "{}", dyno_testkit::stdout(&printed));
        let listed = admin(&uri)
            .unwrap()
            .run_on("t", &|out| bson::put_string(out, "listIndexes", &collection))
            .unwrap();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        assert!(listed.contains(leaf), "{listed}");
        assert_exit(&dyno.run(&["stop", size]), &[0]);
        assert_eq!(admin(&uri).unwrap().count(&collection).unwrap(), 0);
        assert!(!dyno.path(size).join("records.json").exists());
    }
    assert_exit(&run(&["--record-bytes", "100"]), &[2]);
    let mut killed = dyno.start(&[&base[..], &["-d", "60s", "--out", "killed"]].concat());
    until_written(&uri);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let lists = || {
        let told =
            admin(&uri).unwrap().run_on("t", &|out| bson::put_int32(out, "listCollections", 1)).unwrap();
        String::from_utf8_lossy(&told).contains("proof_")
    };
    assert!(lists());
    let stopped = dyno.run(&["stop", "killed"]);
    assert_exit(&stopped, &[0]);
    assert!(
        dyno_testkit::stderr(&stopped).contains("are removed from 127.0.0.1:"),
        "{}",
        dyno_testkit::stderr(&stopped)
    );
    assert!(!lists());
    let again = dyno.run(&["stop", "killed"]);
    assert_exit(&again, &[2]);
    // POCDriver's own command says what its figures stand for.
    let poc =
        |uri: &str| dyno_testkit::stderr(&dyno.run(&["pocdriver", "-c", uri, "-d", "1", "-t", "1", "-e"]));
    let said = poc(&uri);
    assert!(said.contains("write concern w: majority") && !said.contains("w=majority into"), "{said}");
    let said = poc(&uri.replace("&w=majority", ""));
    assert!(said.contains("warning: write concern w: 1: a write counts when one member has it"), "{said}");
}

/// Dotted names' last parts of all elements of a document that are no documents.
fn leaves_of(document: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for element in bson::read_elements(document).unwrap().flatten() {
        match (element.kind, element.as_document()) {
            (kind::DOCUMENT, Some(inner)) => all.extend(leaves_of(inner)),
            _ => all.push(String::from_utf8_lossy(element.name).into_owned()),
        }
    }
    all
}

/// Moments at which a member was asked what it is, on each connection of clients of this name, by its log.
fn asked(member: &Mongo, name: &str) -> Vec<Vec<Timestamp>> {
    let mut connections = BTreeMap::<String, Vec<Timestamp>>::new();
    let name = format!("appName: \"{name}\"");
    for line in member.log().lines().filter(|line| line.contains(&name) && line.contains("isMaster")) {
        // Until 4.4: time, severity, component, connection.
        let words: Vec<&str> = line.split_whitespace().collect();
        connections.entry(words[3].to_owned()).or_default().push(words[0].parse().unwrap());
    }
    connections.into_values().collect()
}

/// Three periods of heartbeats by default: every ten seconds each member is asked what it is, and no operation fails.
#[test]
fn members_are_checked_every_ten_seconds() {
    let Some((members, uri)) = replica_set() else {
        return skip_because("heartbeats to a replica set of mongod", "mongod is not on PATH");
    };
    // Commands are logged.
    for member in &members {
        let direct = admin(&format!("mongodb://{}/t?directConnection=true", member.host())).unwrap();
        let logged = direct.run_on("admin", &|out| {
            bson::put_int32(out, "setParameter", 1);
            bson::put_int32(out, "logLevel", 1);
        });
        logged.unwrap();
    }
    let start = |mode: &str| {
        let dyno = Dyno::new();
        let uri = uri.replace("/t?", &format!("/{mode}?")).replace("w=majority", "w=3");
        let uri = format!("{uri}&appName={mode}&readPreference={mode}");
        let pace = ["--rate", "40", "--connections", "2", "--warmup", "0", "--duration", "32s"];
        let common = ["run", &uri, "--records", "100", "--quiet", "--out", "d"];
        let child = dyno.start(&[&common[..], &pace].concat());
        (mode.to_owned(), dyno, child)
    };
    for (mode, dyno, child) in ["secondary", "nearest"].map(start) {
        dyno.assert_ran(&finish(child));
        let measured = phase(&dyno.summary("d"), "measure").clone();
        assert_eq!(outcome(&measured, "ok"), arrivals(&measured), "{mode}: {measured}");
        for member in &members {
            let connections = asked(member, &mode);
            let checks = connections.iter().max_by_key(|asked| asked.len()).unwrap();
            // Greeted and checked at the beginning; more often than every ten seconds only while a busy host answers late.
            let begun = checks[0] + Duration::from_secs(5);
            let later = checks.iter().filter(|at| **at > begun).count();
            assert!((3..12).contains(&later), "{mode}: {} was asked {checks:?}", member.host());
        }
    }
}
