//! A data set of a snapshot: what comes back is held against the server that wrote it.

use crate::mongod_failover::admin;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, phase, skip, skip_because, stderr, stdout};
use dyno_types::bson;

/// The server's own digest of all its data, and the encoding of each key of its first database.
fn contents(server: &RedisProcess) -> (String, String) {
    let script = "local all = redis.call('KEYS', '*') table.sort(all) local s = {} for _, k in ipairs(all) do \
                  s[#s + 1] = k .. ' ' .. redis.call('OBJECT', 'ENCODING', k) end return table.concat(s, '\\n')";
    let digest = server.cli(&["DEBUG", "DIGEST"]);
    assert_eq!(digest.len(), 40, "{digest}");
    (digest, server.cli(&["EVAL", script, "0"]))
}

/// A server that tells the digest of its data.
fn start(program: &'static str) -> Option<RedisProcess> {
    RedisProcess::start_of(program, &["--enable-debug-command", "yes"])
}

/// Fills a server with values of every type, small and large.
fn fill(server: &RedisProcess) {
    let script = "local r = redis.call \
        for n = 1, 400 do r('SET', 's' .. n, string.rep('ab' .. n, n)) r('SET', 'i' .. n, n * n * n - 9000) end \
        r('SET', 'big', string.rep('x', 200000)) r('SET', 'bin', '\\0\\255\\r\\n') r('SET', 'empty', '') \
        for n = 1, 40 do r('RPUSH', 'list', n, 'e' .. n) r('SADD', 'ints', n) r('SADD', 'words', 'w' .. n) \
          r('HSET', 'hash', 'f' .. n, n) r('ZADD', 'z', n / 3, 'm' .. n) end \
        for n = 1, 2000 do r('RPUSH', 'longlist', string.rep('e', n % 300)) r('SADD', 'bigset', 'w' .. n) \
          r('HSET', 'bighash', 'f' .. n, string.rep('v', n % 90)) r('ZADD', 'bigz', n / 7, 'm' .. n) end \
        r('ZADD', 'infinite', '-inf', 'a', 'inf', 'b') for n = 1, 3000 do r('PFADD', 'hll', n) end \
        r('SETBIT', 'bits', 70000, 1) r('GEOADD', 'geo', 13.4, 52.5, 'berlin')";
    server.cli(&["EVAL", script, "0"]);
    for n in 1..300 {
        server.cli(&["XADD", "stream", &format!("{n}-1"), "field", &format!("value{n}")]);
    }
    server.cli(&["XDEL", "stream", "17-1"]);
    server.cli(&["XGROUP", "CREATE", "stream", "g", "0"]);
    server.cli(&["XREADGROUP", "GROUP", "g", "c1", "COUNT", "20", "STREAMS", "stream", ">"]);
    server.cli(&["XREADGROUP", "GROUP", "g", "c2", "COUNT", "5", "STREAMS", "stream", ">"]);
    server.cli(&["XACK", "stream", "g", "3-1"]);
    server.cli(&["-n", "5", "SET", "other", "database"]);
    server.cli(&["-n", "5", "SET", "brief", "v", "EX", "5000"]);
    server.cli(&[
        "FUNCTION",
        "LOAD",
        "#!lua name=lib\nredis.register_function('f', function() return 7 end)",
    ]);
}

/// A recording of a snapshot of a filled server.
fn recorded(dyno: &Dyno, server: &RedisProcess, options: &[&str]) -> String {
    fill(server);
    assert_eq!(server.cli(&["SAVE"]), "OK");
    std::fs::copy(server.folder().join("dump.rdb"), dyno.path("dump.rdb")).unwrap();
    let output = dyno.run(&[&["record", "dump.rdb", "-o", "data.dyno"], options].concat());
    assert_exit(&output, &[0]);
    stdout(&output) + &stderr(&output)
}

#[test]
fn a_snapshot_comes_back_as_it_was() {
    let programs = ["redis-server", "valkey-server"];
    for program in programs {
        let (Some(then), Some(now)) = (start(program), start(program)) else {
            skip("data sets");
            continue;
        };
        let dyno = Dyno::new();
        let said = recorded(&dyno, &then, &[]);
        let output = dyno.run(&[
            "run",
            &now.uri(),
            "--load-from",
            "data.dyno",
            "--command",
            "GET s%{int:1-400}",
            "--ops",
            "2000",
            "--warmup",
            "0s",
            "--out",
            "run",
        ]);
        dyno.assert_ran(&output);
        assert_eq!(contents(&now), contents(&then), "{program}");
        assert_eq!(now.cli(&["-n", "5", "GET", "other"]), "database");
        let left: i64 = now.cli(&["-n", "5", "TTL", "brief"]).parse().unwrap();
        let left_then: i64 = then.cli(&["-n", "5", "TTL", "brief"]).parse().unwrap();
        // It has left what it had when the snapshot was made, whose time is in whole seconds.
        assert!((left_then..=5_001).contains(&left), "{left} {left_then}");
        assert_eq!(now.cli(&["FCALL", "f", "0"]), "7");
        for group in [&["XINFO", "GROUPS", "stream"][..], &["XPENDING", "stream", "g"]] {
            assert_eq!(now.cli(group), then.cli(group), "{program}");
        }
        // Every key was found: what is loaded is read.
        let summary = dyno.summary("run");
        let keys: u64 =
            ["0", "5"].iter().map(|n| then.cli(&["-n", n, "DBSIZE"]).parse::<u64>().unwrap()).sum();
        let load = phase(&summary, "load");
        let restored = load["metrics"].as_array().unwrap().iter().find(|m| m["name"] == "RESTORE").unwrap();
        assert_eq!(restored["outcomes"]["ok"].as_u64(), Some(keys), "{said}");
        let measured = phase(&summary, "measure");
        let get = measured["metrics"].as_array().unwrap().iter().find(|m| m["name"] == "GET").unwrap();
        assert_eq!(get["outcomes"]["ok"].as_u64(), Some(2_000), "{get}");
        // They are there: nothing is loaded again.
        let again = dyno.run(&[
            "run",
            &now.uri(),
            "--load-from",
            "data.dyno",
            "--command",
            "GET s1",
            "--ops",
            "100",
            "--warmup",
            "0s",
            "--out",
            "again",
        ]);
        dyno.assert_ran(&again);
        assert!(stderr(&again).contains("are there already"), "{}", stderr(&again));
        assert!(
            dyno.summary("again")["phases"].as_array().unwrap().iter().all(|phase| phase["name"] != "load")
        );
    }
}

#[test]
fn a_data_set_is_not_mixed_with_other_data() {
    let (Some(then), Some(now)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("data sets");
    };
    let dyno = Dyno::new();
    recorded(&dyno, &then, &[]);
    now.cli(&["SET", "own", "data"]);
    let run = |options: &[&str]| {
        let words = [
            "run",
            &now.uri(),
            "--load-from",
            "data.dyno",
            "--command",
            "GET s1",
            "--ops",
            "10",
            "--warmup",
            "0s",
        ];
        dyno.run(&[&words[..], options].concat())
    };
    let refused = run(&[]);
    assert_exit(&refused, &[2]);
    let output = stderr(&refused);
    assert!(output.contains("holds 1 keys, and 0 of") && output.contains("--reload"), "{output}");
    assert_eq!(now.cli(&["DBSIZE"]), "1");
    let reloaded = run(&["--reload", "--out", "run"]);
    dyno.assert_ran(&reloaded);
    let keys = |server: &RedisProcess| server.cli(&["DBSIZE"]).parse::<u64>().unwrap();
    assert_eq!(keys(&now), keys(&then) + 1);
    // Recorded traffic is no data set.
    std::fs::write(dyno.path("monitor.txt"), "OK\n1000.000000 [0 127.0.0.1:1] \"SET\" \"a\" \"b\"\n")
        .unwrap();
    assert_exit(&dyno.run(&["record", "monitor.txt", "-o", "traffic.dyno"]), &[0]);
    let other = dyno.run(&["run", &now.uri(), "--load-from", "traffic.dyno", "--ops", "10"]);
    assert_exit(&other, &[2]);
    assert!(stderr(&other).contains("recorded traffic (monitor), and no data set"), "{}", stderr(&other));
}

#[test]
fn replay_begins_with_the_data_of_then() {
    let (Some(then), Some(now)) = (start("redis-server"), start("redis-server")) else {
        return skip("data sets");
    };
    let dyno = Dyno::new();
    recorded(&dyno, &then, &[]);
    let mut text = String::from("OK\n");
    for n in 1..400 {
        text += &format!("1000.{:06} [0 127.0.0.1:1] \"GET\" \"s{n}\"\n", n * 1_000);
    }
    std::fs::write(dyno.path("monitor.txt"), text).unwrap();
    assert_exit(&dyno.run(&["record", "monitor.txt", "-o", "traffic.dyno"]), &[0]);
    let output =
        dyno.run(&["replay", "traffic.dyno", &now.uri(), "--load-from", "data.dyno", "--out", "run"]);
    assert_exit(&output, &[0, 5]);
    let hits = now.cli(&["INFO", "stats"]);
    assert!(hits.contains("keyspace_hits:399"), "{hits}");
    assert_eq!(contents(&now), contents(&then));
}

/// Number of documents of a collection, as `mongod` says.
fn count(server: &Mongo, collection: &str) -> i64 {
    bson::find_element(&ask(server, "count", collection), "n").unwrap().as_i64().unwrap()
}

/// The reply to a command on a collection of `small`.
fn ask(server: &Mongo, command: &str, collection: &str) -> Vec<u8> {
    admin(&server.uri("small"))
        .unwrap()
        .run_on("small", &|out| bson::put_string(out, command, collection))
        .unwrap()
}

#[test]
fn a_dump_comes_back_as_it_was() {
    let Some(server) = Mongo::mongod() else { return skip_because("dumps", "mongod is not on PATH") };
    let dyno = Dyno::new();
    let sample = |name: &str| format!("{}/../recording/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let recorded = dyno.run(&["record", &sample("mongodump-3.6.archive"), "-o", "data.dyno"]);
    assert_exit(&recorded, &[0]);
    let work = "collections:\n  names:\n    count: 3\n    document: { _id: { $sequence: } }\n\
                operations:\n  one: { findOne: names, filter: { _id: { $int: [1, 3] } } }\n";
    std::fs::write(dyno.path("work.yaml"), work).unwrap();
    let run = |more: &[&str], out: &str| {
        let words = [
            "run",
            &server.uri("small"),
            "--load-from",
            "data.dyno",
            "--workload",
            "work.yaml",
            "--ops",
            "200",
            "--warmup",
            "0s",
            "--out",
            out,
        ];
        dyno.run(&[&words[..], more].concat())
    };
    let first = run(&[], "run");
    dyno.assert_ran(&first);
    assert_eq!(["names", "items", "log"].map(|name| count(&server, name)), [3, 2, 1]);
    let listed = ask(&server, "listIndexes", "names");
    let index = |path: &str| bson::element_at_path(&listed, path);
    assert_eq!(index("cursor.firstBatch.1.name").unwrap().as_str(), Some("name_1"));
    assert!(index("cursor.firstBatch.1.unique").unwrap().is_true());
    let stats = ask(&server, "collStats", "log");
    assert!(bson::find_element(&stats, "capped").unwrap().is_true());
    // They are there; a part of them is not the data set; loading anew drops what is there.
    let second = run(&[], "second");
    dyno.assert_ran(&second);
    assert!(stderr(&second).contains("are there already"), "{}", stderr(&second));
    ask(&server, "drop", "items");
    let refused = run(&[], "third");
    assert_exit(&refused, &[2]);
    assert!(
        stderr(&refused).contains("holds 0 documents in small.items, and data.dyno has 2"),
        "{}",
        stderr(&refused)
    );
    let reloaded = run(&["--reload"], "fourth");
    dyno.assert_ran(&reloaded);
    assert_eq!(["names", "items", "log"].map(|name| count(&server, name)), [3, 2, 1]);
    // JSON lines need the name of their collection.
    let json = sample("mongoexport-3.6.json");
    assert_exit(&dyno.run(&["record", &json, "-o", "json.dyno"]), &[2]);
    assert_exit(&dyno.run(&["record", &json, "--into", "other.items", "-o", "json.dyno"]), &[0]);
}
