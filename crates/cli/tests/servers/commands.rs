//! Commands of one's own: `dyno run --workload FILE.yaml`, `--command`, `dyno sample`. Counts are held against the server's own.

use crate::memcached::Memcached;
use dyno_testkit::cluster::RedisCluster;
use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout,
};
use serde_json::Value;

/// Calls of a command that the server has counted.
fn calls(server: &RedisProcess, command: &str) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Requests of a metric that ended as `outcome`.
fn ended(summary: &Value, metric: &str, outcome: &str) -> u64 {
    let metrics = phase(summary, "measure")["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|one| one["name"] == metric).unwrap_or_else(|| panic!("no {metric}"));
    found["outcomes"][outcome].as_u64().unwrap_or(0)
}

fn example(dyno: &Dyno, name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    std::fs::copy(format!("{folder}/{name}"), dyno.path(name)).unwrap();
    name.to_owned()
}

const COMMON: [&str; 8] = ["--users", "4", "--ops", "2048", "--warmup", "0s", "--out", "d"];

#[test]
fn shares_and_counts_are_those_of_the_server() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let file = "
keys: { players: { count: 500, format: 'player:%{n}', distribution: zipfian:0.9 } }
load:
  - { for: players, command: [ZADD, board, { $int: [1, 1000] }, { $key: players }] }
  - { for: players, command: [SET, { $key: players }, '%{string:20}'] }
commands:
  top: { weight: 2, command: [ZREVRANGE, board, 0, 9], expect: { type: array, length: 10 } }
  score: { weight: 1, command: 'ZADD board %{int:1-1000} %{key:players}', expect: { type: integer } }
  some: { weight: 1, command: [MGET, { $array: { length: 2, of: { $key: players } } }] }
";
    std::fs::write(dyno.path("board.yaml"), file).unwrap();
    let run =
        |more: &[&str]| dyno.run(&[&["run", &uri, "--workload", "board.yaml"][..], &COMMON, more].concat());
    dyno.assert_ran(&run(&[]));
    let summary = dyno.summary("d");
    assert_eq!((server.cli(&["ZCARD", "board"]), server.cli(&["DBSIZE"])), ("500".into(), "501".into()));
    assert_eq!(outcome(phase(&summary, "load"), "ok"), 1_000);
    assert_eq!(arrivals(phase(&summary, "measure")), 2_048);
    // Two blocks of 1,024 operations hold their exact shares.
    assert_eq!(ended(&summary, "top", "ok"), 1_024);
    assert_eq!((ended(&summary, "score", "ok"), ended(&summary, "some", "ok")), (512, 512));
    assert_eq!(
        (calls(&server, "zrevrange"), calls(&server, "mget"), calls(&server, "zadd")),
        (1_024, 512, 1_012)
    );
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    // The data are there; what a part of them would mean is not guessed.
    let again = run(&[]);
    dyno.assert_ran(&again);
    assert!(
        stderr(&again).contains("the data are there already (--reload loads them again)"),
        "{}",
        stderr(&again)
    );
    server.cli(&["DEL", "player:0"]);
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    let part = run(&[]);
    assert_exit(&part, &[2]);
    assert!(stderr(&part).contains("players: 127 of 128 keys"), "{}", stderr(&part));
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    dyno.assert_ran(&run(&["--reload"]));
    assert_eq!(server.cli(&["DBSIZE"]), "501");
    assert_eq!(outcome(phase(&dyno.summary("d"), "load"), "ok"), 1_000);
}

#[test]
fn misses_and_mismatches_are_outcomes_of_their_own() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    server.cli(&["MSET", "there", "1", "half", "x", "n", "5"]);
    let file = "
commands:
  hit: GET there
  miss: GET nothing
  accepted: { command: GET nothing, miss: ok }
  half: MGET half nothing
  none: MGET nothing nothing2
  not_set: SET there 2 NX
  taken: { command: LPOP nothing, miss: not_found }
  wrong: { command: GET there, expect: '2' }
";
    std::fs::write(dyno.path("m.yaml"), file).unwrap();
    let ran = dyno.run(&[&["run", &uri, "--workload", "m.yaml"][..], &COMMON].concat());
    assert_exit(&ran, &[0, 5]);
    let summary = dyno.summary("d");
    for (metric, expected) in [
        ("hit", "ok"),
        ("miss", "not_found"),
        ("accepted", "not_found"),
        ("half", "ok"),
        ("none", "not_found"),
        ("not_set", "ok"),
        ("taken", "not_found"),
        ("wrong", "mismatch"),
    ] {
        assert_eq!(ended(&summary, metric, expected), 256, "{metric}");
    }
    // Element by element, also where the command as a whole has found nothing.
    for (metric, hits, misses) in [("half", 256, 256), ("none", 0, 512)] {
        let counted =
            [("hits", hits), ("misses", misses)].map(|(part, count)| (format!("{metric}.{part}"), count));
        for (name, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
            assert_eq!(ended(&summary, &name, "ok"), count, "{name}");
        }
    }
    let stats = server.cli(&["INFO", "stats"]);
    let counter = |name: &str| -> u64 {
        stats.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))?.trim().parse().ok()).unwrap()
    };
    // The server counts elements, too, of commands that only read.
    assert_eq!((counter("keyspace_hits"), counter("keyspace_misses")), (256 * 3, 256 * 5), "{stats}");
    let measured = phase(&summary, "measure");
    // What is accepted is counted under its name, and fails no operation.
    assert_eq!((outcome(measured, "not_found"), outcome(measured, "mismatch")), (768, 256));
    let errors = measured["errors"].to_string();
    assert!(
        errors.contains(r#"GET: expected \"2\", got string \"1\""#) || errors.contains("GET: expected"),
        "{errors}"
    );
}

#[test]
fn what_the_server_lacks_is_refused_before_the_load() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    for (command, message) in [
        ("FOO bar", "FOO: the server has no command FOO: ERR unknown command 'FOO'"),
        ("GET a b", "GET: GET takes 1 arguments, not 2"),
        ("ZADD a", "ZADD: ZADD takes at least 3 arguments, not 1"),
        ("SUBSCRIBE a", "SUBSCRIBE: SUBSCRIBE changes how its connection answers"),
        ("XGROUP MAKE a", "XGROUP: the server has no command XGROUP MAKE; XGROUP has"),
        ("GET %{kye}", "--command: \"GET %{kye}\": %{kye}: unknown name \"kye\"; did you mean key?"),
        ("GET 'a", "a quote ' is not closed"),
    ] {
        let refused = dyno.run(&["run", &uri, "--command", command, "--no-out"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{command}: {}", stderr(&refused));
    }
    assert_eq!(server.cli(&["DBSIZE"]), "0");
    let uri = "redis://127.0.0.1:1";
    let gone = dyno.run(&["run", uri, "--command", "GET a", "--no-out"]);
    assert_exit(&gone, &[3]);
    for (more, message) in [
        (&["--workload", "a"][..], "--workload"),
        (&["--records", "5"], "--records"),
        (&["--command-ratio", "1", "--command-ratio", "2"], "2 ratios"),
        (&["--command-data", "none.csv"], "none.csv"),
        (&["--command", "MULTI ; EXEC", "--pipeline", "2"], "use mode: multi"),
    ] {
        let refused = dyno.run(&[&["run", uri, "--command", "GET a"][..], more].concat());
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{more:?}: {}", stderr(&refused));
    }
}

#[test]
fn commands_of_a_command_line() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    std::fs::write(dyno.path("p.csv"), "sku\nred\nblue\n").unwrap();
    let ran = dyno.run(
        &[
            &["run", &uri][..],
            &["--command", "SET user:%{key} __data__", "--command", "SADD skus __field:sku__"],
            &[
                "--command",
                "MULTI ; INCR \"\\x00\\xff\" ; EXEC",
                "--command",
                "HSET __key__ __rand_1st__ __rand_1st__",
            ],
            &["--command-ratio", "2", "--command-keys", "50", "--command-data", "p.csv"],
            &["--users", "2", "--ops", "1024", "--warmup", "0s", "--pipeline", "1", "--out", "d"],
        ]
        .concat(),
    );
    dyno.assert_ran(&ran);
    let summary = dyno.summary("d");
    for (metric, count) in [("SET", 410), ("SADD", 205), ("MULTI_INCR_EXEC", 205), ("HSET", 205)] {
        let found = ended(&summary, metric, "ok");
        assert!(found.abs_diff(count) <= 1, "{metric}: {found}");
    }
    assert_eq!(server.cli(&["SCARD", "skus"]), "2");
    assert_eq!(
        server.cli(&["EVAL", "return redis.call('GET', '\\0\\255')", "0"]),
        calls(&server, "incr").to_string()
    );
    let keys: u64 = server.cli(&["EVAL", "return #redis.call('KEYS', 'user:*')", "0"]).parse().unwrap();
    assert!((1..=50).contains(&keys), "{keys}");
    assert_eq!(server.cli(&["STRLEN", "user:1"]), "32");
    let field =
        server.cli(&["EVAL", "return redis.call('HGETALL', redis.call('KEYS', 'memtier-*')[1])", "0"]);
    let mut field = field.lines();
    let (name, value) = (field.next().unwrap(), field.next().unwrap());
    assert_eq!((name, name.len()), (value, 12));
}

#[test]
fn steps_use_earlier_replies_and_transactions_are_whole() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let file = "
keys: { carts: 20 }
commands:
  copy:
    let: { c: { $key: carts } }
    steps:
      - { command: [INCR, 'n:%{c}'], as: number }
      - { command: [SET, 'copy:%{c}:%{number}', '%{number}'], expect: OK }
  both: { mode: multi, steps: [INCR a, INCR b, GET a] }
  all: { mode: pipelined, steps: [INCR c, INCR c] }
";
    std::fs::write(dyno.path("s.yaml"), file).unwrap();
    let run = [&["run", &uri, "--workload", "s.yaml"][..], &COMMON].concat();
    dyno.assert_ran(&dyno.run(&run));
    let summary = dyno.summary("d");
    let copies = ended(&summary, "copy", "ok");
    assert_eq!((ended(&summary, "copy.incr", "ok"), ended(&summary, "copy.set", "ok")), (copies, copies));
    // Every reply was used once: as many keys as there were replies, each with its own number.
    let script = "local n = 0; for _, k in ipairs(redis.call('KEYS', 'copy:*')) do \
                  if k:match('[^:]*$') == redis.call('GET', k) then n = n + 1 end end; return n";
    assert_eq!(server.cli(&["EVAL", script, "0"]), copies.to_string());
    let both = ended(&summary, "both", "ok").to_string();
    assert_eq!((server.cli(&["GET", "a"]), server.cli(&["GET", "b"])), (both.clone(), both.clone()));
    assert_eq!(
        (calls(&server, "multi"), calls(&server, "exec")),
        (both.parse().unwrap(), both.parse().unwrap())
    );
    assert_eq!(server.cli(&["GET", "c"]), (2 * ended(&summary, "all", "ok")).to_string());
}

#[test]
fn scripts_are_sent_again_to_a_server_that_has_lost_them() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let library = "#!lua name=lib\\nredis.register_function('twice', function(keys, args) \
                   return redis.call('INCRBY', keys[1], 2) end)";
    let file = format!(
        "
keys: {{ users: 10 }}
scripts:
  count: {{ file: count.lua }}
  lib: {{ type: function, text: \"{library}\" }}
commands:
  allow: {{ script: count, keys: [total], args: [1], expect: {{ type: integer }} }}
  twice: {{ script: lib, function: twice, keys: [two], expect: {{ type: integer }} }}
  both: {{ weight: 0.1, mode: multi, steps: [{{ script: count, keys: [multi], args: [1] }}, {{ command: INCR beside }}] }}
  lose: {{ weight: 0.05, command: SCRIPT FLUSH }}
"
    );
    std::fs::write(dyno.path("count.lua"), "return redis.call('INCRBY', KEYS[1], ARGV[1])").unwrap();
    std::fs::write(dyno.path("e.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&[&["run", &uri, "--workload", "e.yaml"][..], &COMMON].concat()));
    let summary = dyno.summary("d");
    assert_eq!(outcome(phase(&summary, "measure"), "ok"), 2_048);
    assert_eq!(server.cli(&["GET", "total"]), ended(&summary, "allow", "ok").to_string());
    assert_eq!(server.cli(&["GET", "two"]), (2 * ended(&summary, "twice", "ok")).to_string());
    for key in ["multi", "beside"] {
        assert_eq!(server.cli(&["GET", key]), ended(&summary, "both", "ok").to_string());
    }
    assert!(calls(&server, "eval") > 0 && calls(&server, "evalsha") > 900);
}

#[test]
fn a_stream_is_taken_by_a_group_and_all_examples_run() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    for name in ["leaderboard", "rate-limiter", "sessions", "queue", "cache-aside", "messages"] {
        server.cli(&["FLUSHALL"]);
        server.cli(&["CONFIG", "RESETSTAT"]);
        let file = example(&dyno, &format!("{name}.yaml"));
        let sampled = dyno.run(&["sample", &file, "-n", "2"]);
        assert_exit(&sampled, &[0]);
        // The time of sending is no function of the seed.
        if name != "messages" {
            assert_eq!(stdout(&sampled), stdout(&dyno.run(&["sample", &file, "-n", "2"])));
        }
        dyno.assert_ran(&dyno.run(&[&["run", &uri, "--workload", &file][..], &COMMON].concat()));
        let summary = dyno.summary("d");
        assert_eq!(outcome(phase(&summary, "measure"), "ok"), 2_048, "{name}");
        if name == "queue" {
            let added = ended(&summary, "add", "ok");
            assert_eq!(server.cli(&["XLEN", "jobs"]), added.to_string());
            let (acknowledged, read) =
                (ended(&summary, "take.ack", "ok"), ended(&summary, "take.read", "ok"));
            assert_eq!((acknowledged, calls(&server, "xack")), (read, read));
            assert!(server.cli(&["XPENDING", "jobs", "workers"]).starts_with('0'));
            // Each user is a member of the group.
            assert_eq!(server.cli(&["XINFO", "CONSUMERS", "jobs", "workers"]).matches("worker").count(), 4);
        }
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
}

/// This server has no vectors: what is sent is looked at.
#[test]
fn vectors_are_numbers_of_32_bits() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let file = example(&dyno, "vector-search.yaml");
    let sampled = dyno.run(&["sample", &file, "-n", "5"]);
    assert_exit(&sampled, &[0]);
    assert!(stdout(&sampled).contains("VSIM items FP32 "), "{}", stdout(&sampled));
    let text = std::fs::read_to_string(dyno.path(&file)).unwrap();
    std::fs::write(dyno.path("sets.yaml"), text.replace("VADD, items, FP32,", "HSET, items,")).unwrap();
    let lacks = dyno.run(&["run", &uri, "--workload", &file, "--no-out"]);
    assert_exit(&lacks, &[2]);
    assert!(stderr(&lacks).contains("the server has no command VSIM"), "{}", stderr(&lacks));
    let common = ["--ops", "64", "--warmup", "0s", "--no-out", "-q"];
    assert_exit(
        &dyno.run(&[&["run", &uri, "--command", "SET v %{vector:100}"][..], &common].concat()),
        &[0, 5],
    );
    assert_eq!(server.cli(&["STRLEN", "v"]), "400");
    // The exponent of a number from -1 to 1 is at most 127: the last byte is 0x3f or less, beside the sign.
    let least = "local v = redis.call('GET', 'v') for i = 4, 400, 4 do if v:byte(i) % 128 > 63 then return 0 end end return 1";
    assert_eq!(server.cli(&["EVAL", least, "0"]), "1");
    let wrong = dyno.run(&["run", &uri, "--command", "SET v %{vector:0}", "--no-out"]);
    assert_exit(&wrong, &[2]);
    assert!(stderr(&wrong).contains("%{vector:0}"), "{}", stderr(&wrong));
}

/// Every message of a subscription is counted once, also of many that come together; those with a stamp have a delivery time.
#[test]
fn messages_are_counted_and_timed() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let dyno = Dyno::new();
    let file = "
commands:
  ping: PING
  news: { users: 2, command: [SUBSCRIBE, news, other], delivery: true }
  all: { users: 1, command: [PSUBSCRIBE, 'n*'] }
  shard: { users: 1, command: [SSUBSCRIBE, news], delivery: true }
";
    std::fs::write(dyno.path("n.yaml"), file).unwrap();
    for protocol in ["2", "3"] {
        let uri = format!("{}?protocol={protocol}", server.uri());
        let common = ["--users", "1", "--think", "50ms", "--duration", "4s", "--warmup", "0s", "--out", "d"];
        let child = dyno.start(&[&["run", &uri, "--workload", "n.yaml"][..], &common].concat());
        dyno.await_phase("d", "measure");
        while !server.cli(&["PUBSUB", "NUMSUB", "news"]).ends_with('2') {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        for _ in 0..10 {
            server.cli(&["PUBLISH", "news", &format!("{} text", now())]);
            server.cli(&["SPUBLISH", "news", &now().to_string()]);
            server.cli(&["PUBLISH", "other", "no stamp"]);
        }
        server.cli(&["EVAL", "for i = 1, 500 do redis.call('PUBLISH', 'news', 'x') end", "0"]);
        let output = finish(child);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary("d");
        assert_eq!(ended(&summary, "news.wait", "ok"), 2 * (10 + 10 + 500), "{}", stderr(&output));
        assert_eq!(ended(&summary, "news.delivery", "ok"), 2 * 10);
        assert_eq!((ended(&summary, "all.wait", "ok"), ended(&summary, "shard.delivery", "ok")), (510, 10));
        let metrics = phase(&summary, "measure")["metrics"].as_array().unwrap();
        let delivery = metrics.iter().find(|one| one["name"] == "news.delivery").unwrap();
        let most = delivery["response"]["max_us"].as_f64().unwrap();
        // From the stamp over a process and the server to here.
        assert!((1.0..2e6).contains(&most), "{delivery}");
        assert!(!metrics.iter().any(|one| one["name"] == "all.delivery"), "no stamp is looked for");
        // The subscriptions are in no total, and their end is no failure.
        assert_eq!(arrivals(phase(&summary, "measure")), ended(&summary, "ping", "ok"));
        assert!(!stderr(&output).contains("beside the mix"), "{}", stderr(&output));
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
}

#[test]
fn messages_of_streams_and_lists_have_a_delivery_time_where_they_have_a_stamp() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let file = "
load: [{ once: true, command: [XGROUP, CREATE, jobs, g, $, MKSTREAM] }]
commands:
  add: { weight: 2, command: [XADD, jobs, '*', task, { $string: 20 }, t, { $sent: }] }
  push: { weight: 1, command: 'LPUSH queue %{sent}' }
  plain: { weight: 1, command: 'LPUSH other text' }
  work: { users: 2, blocking: true, delivery: t,
          command: [XREADGROUP, GROUP, g, 'w%{user}', COUNT, 10, BLOCK, 200, STREAMS, jobs, '>'] }
  pop: { users: 1, blocking: true, delivery: true, miss: ok, command: [BLPOP, queue, 1] }
  take: { users: 1, blocking: true, delivery: true, miss: ok, command: [BLPOP, other, 1] }
";
    std::fs::write(dyno.path("q.yaml"), file).unwrap();
    let common = ["--rate", "400", "--duration", "3s", "--warmup", "0s", "--out", "d"];
    assert_exit(&dyno.run(&[&["run", &uri, "--workload", "q.yaml"][..], &common].concat()), &[0, 5]);
    let summary = dyno.summary("d");
    let groups = server.cli(&["XINFO", "GROUPS", "jobs"]);
    let read: u64 =
        groups.lines().skip_while(|line| *line != "entries-read").nth(1).unwrap().parse().unwrap();
    assert_eq!(ended(&summary, "work.delivery", "ok"), read, "{groups}");
    assert!(read > ended(&summary, "add", "ok") / 2);
    let popped = ended(&summary, "push", "ok") - server.cli(&["LLEN", "queue"]).parse::<u64>().unwrap();
    assert_eq!(ended(&summary, "pop.delivery", "ok"), popped);
    let metrics = phase(&summary, "measure")["metrics"].as_array().unwrap();
    let times = |name: &str| metrics.iter().find(|one| one["name"] == name);
    // Nothing had a stamp: no times, and no zeros.
    assert!(
        times("take.delivery").is_none_or(|one| one["outcomes"].as_object().unwrap().is_empty()),
        "{metrics:?}"
    );
    assert!(ended(&summary, "take.wait", "ok") > 0);
    let p50 = times("work.delivery").unwrap()["response"]["percentiles_us"]["p50"].as_f64().unwrap();
    assert!((1.0..1e6).contains(&p50), "{p50}");
    for (text, message) in [
        ("commands: { a: { command: GET a, delivery: true } }", "delivery: expected `users: N` too"),
        (
            "commands: { a: { users: 1, command: GET a, delivery: [1] } }",
            "expected true, or the name of the field",
        ),
        ("commands: { p: PING, a: { command: SUBSCRIBE x } }", "a subscription needs `users: N`"),
        ("commands: { p: PING, a: { rate: 5, command: SUBSCRIBE x } }", "a subscription needs `users: N`"),
        ("commands: { p: PING, a: { users: 1, steps: [PING, SUBSCRIBE x] } }", "an operation by itself"),
    ] {
        std::fs::write(dyno.path("wrong.yaml"), text).unwrap();
        let refused = dyno.run(&["run", &uri, "--workload", "wrong.yaml", "--no-out"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{text}: {}", stderr(&refused));
    }
}

#[test]
fn commands_go_to_their_slots_and_crossings_are_refused() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("commands in a cluster") };
    let (dyno, uri) = (Dyno::new(), cluster.uri(""));
    let file = "
keys: { carts: { count: 300, format: 'cart:{%{n}}' } }
load: [{ for: carts, command: [SET, { $key: carts }, x] }]
commands:
  one: { weight: 3, command: [GET, { $key: carts }] }
  move: { let: { c: { $key: carts } }, steps: [[GET, '%{c}'], [SET, '%{c}:new', z]], mode: multi }
  same: { command: [MGET, a, a] }
";
    std::fs::write(dyno.path("c.yaml"), file.replace("same:", "same_slot:")).unwrap();
    let run = |more: &[&str]| dyno.run(&[&["run", &uri][..], more, &COMMON].concat());
    server_keys_are_empty(&cluster);
    let ran = run(&["--workload", "c.yaml", "--require", "errors < 30%"]);
    assert_exit(&ran, &[0, 5]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(phase(&summary, "load"), "ok"), 300);
    assert_eq!(
        outcome(measured, "ok") + ended(&summary, "same_slot", "not_found"),
        2_048,
        "{}",
        measured["errors"]
    );
    assert_eq!(phase(&summary, "measure")["redirects"].as_u64().unwrap_or(0), 0);
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    // The file says that one argument is a key; the server says otherwise when it comes to it.
    let late = "
keys: { k: { count: 2000, format: 'a{%{n}}' } }
commands: { two: { let: { k: { $key: k } }, command: [EVAL, 'return 1', 2, '%{k}', b], keys: [3] } }
";
    std::fs::write(dyno.path("late.yaml"), late).unwrap();
    let crossed = run(&["--workload", "late.yaml"]);
    assert_exit(&crossed, &[0, 5]);
    assert!(outcome(phase(&dyno.summary("d"), "measure"), "cross_slot") > 2_000);
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    for (command, message) in [
        ("MGET a b", "MGET: the keys \"a\" and \"b\" go together, but are in the slots 15495 and 3300"),
        ("MGET x{t} y{t} %{key}", "MGET: the keys \"x{t}\""),
        ("MULTI ; INCR a ; EXEC", "use mode: multi"),
    ] {
        let refused = run(&["--command", command]);
        let _ = std::fs::remove_dir_all(dyno.path("d"));
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{command}: {}", stderr(&refused));
    }
}

fn server_keys_are_empty(cluster: &RedisCluster) {
    assert_eq!(cluster.ask(0, &["DBSIZE"]), "0");
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let child = dyno.start(&[
        "run",
        &uri,
        "--command",
        "INCR n",
        "--users",
        "2",
        "--duration",
        "60s",
        "--warmup",
        "0s",
        "--out",
        "d",
    ]);
    dyno.await_phase("d", "measure");
    while server.cli(&["GET", "n"]).parse::<u64>().unwrap_or(0) < 100 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(child.id(), "INT");
    assert_exit(&finish(child), &[130]);
    let counted: u64 = server.cli(&["GET", "n"]).parse().unwrap();
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(measured, "ok") + outcome(measured, "aborted"), arrivals(measured));
    // What was under way when the run was ended may have been done.
    assert!(counted.abs_diff(outcome(measured, "ok")) <= 2, "{counted}");
}

#[test]
fn an_experiment_has_workers_that_share_the_work() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let queue = example(&dyno, "queue.yaml");
    let text = format!(
        "target: {uri}
workload: {{ commands: {{ file: {queue} }} }}
client: {{ workers: 2 }}
phases: {{ measure: {{ users: 4, operations: 2048, warmup: 0s }} }}
"
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let ran = dyno.run(&["run", "x.yaml", "--out", "x"]);
    assert_exit(&ran, &[0, 5]);
    // Users are numbered over both workers.
    assert_eq!(server.cli(&["XINFO", "CONSUMERS", "jobs", "workers"]).matches("worker").count(), 4);
    assert_eq!(server.cli(&["XLEN", "jobs"]), "1024");
    let inline = format!(
        "target: {uri}
workload: {{ commands: {{ list: ['INCR n', 'INCR m'], ratio: [3] }} }}
phases: {{ measure: {{ users: 2, operations: 1024, warmup: 0s }} }}
"
    );
    std::fs::write(dyno.path("y.yaml"), inline).unwrap();
    assert_exit(&dyno.run(&["run", "y.yaml", "--out", "y"]), &[0, 5]);
    assert_eq!((server.cli(&["GET", "n"]), server.cli(&["GET", "m"])), ("768".into(), "256".into()));
}

#[test]
fn a_file_has_a_command_a_line() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let mut lines = String::from(
        "# a corpus\n6 INCR a\n\n2 INCR b\nSET c:%{key} '%{string:10}'\n1 LPUSH l x ; LTRIM l 0 9\n",
    );
    // More names than are recorded: the rest is `other`.
    for number in 0..70 {
        lines.push_str(&format!("0.{:03} ECHO e{number} ; {}GET c:1\n", 1, "PING ; ".repeat(number)));
    }
    std::fs::write(dyno.path("lines.txt"), &lines).unwrap();
    let common = ["--users", "4", "--ops", "10240", "--warmup", "0s", "--out", "d", "--command-keys", "50"];
    let run = |file: &str| dyno.run(&[&["run", &uri, "--command-file", file][..], &common].concat());
    assert_exit(&run("lines.txt"), &[0, 5]);
    let summary = dyno.summary("d");
    let (a, b): (u64, u64) =
        (server.cli(&["GET", "a"]).parse().unwrap(), server.cli(&["GET", "b"]).parse().unwrap());
    assert_eq!(a + b, ended(&summary, "INCR", "ok"), "lines of one command have one name");
    // 8 of 10.07 in all, three of four to the heavier line.
    assert!((a + b).abs_diff(8_135) < 20, "{a} and {b}");
    assert!(a.abs_diff(3 * b) < 400, "{a} and {b}");
    assert_eq!(ended(&summary, "LPUSH_LTRIM", "ok"), calls(&server, "ltrim"));
    let other = ended(&summary, "other", "ok") + ended(&summary, "other", "not_found");
    assert!(other > 0, "{summary}");
    assert!(server.cli(&["DBSIZE"]).parse::<u64>().unwrap() <= 53);
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    for (file, text, message) in [
        ("none.txt", "# nothing\n", "--command-file: none.txt: no command in it"),
        ("weight.txt", "GET a\n0 GET b\n", "--command-file: weight.txt: line 2: the weight \"0\""),
        ("name.txt", "GET a\n2 GET %{kye}\n", "line 2: \"GET %{kye}\": %{kye}: unknown name"),
        ("server.txt", "GET a\nFOO b\n", "FOO: the server has no command FOO"),
    ] {
        std::fs::write(dyno.path(file), text).unwrap();
        let refused = run(file);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{file}: {}", stderr(&refused));
    }
    let missing = run("missing.txt");
    assert_exit(&missing, &[2]);
    assert!(stderr(&missing).contains("--command-file: missing.txt: "), "{}", stderr(&missing));
    let alone = dyno.run(&["run", &uri, "--command-keys", "5", "--no-out"]);
    assert_exit(&alone, &[2]);
    assert!(
        stderr(&alone).contains("--command-keys: goes with --command or --command-file"),
        "{}",
        stderr(&alone)
    );
}

#[test]
fn memcached_takes_sets_and_gets() {
    let Some(server) = Memcached::start("commands", &[]) else { return };
    let (dyno, uri) = (Dyno::new(), format!("memcached://127.0.0.1:{}", server.port));
    let file = "
keys: { items: { count: 300, format: 'item:%{n}' }, others: { count: 300, format: 'other:%{n}' } }
load: [{ for: items, command: [set, { $key: items }, 0, 0, { $string: 30 }] }]
commands:
  hit: { weight: 2, command: [get, { $key: items }] }
  miss: [get, { $key: others }]
  write: 'set %{key:items} 0 0 %{string:10-50}'
";
    std::fs::write(dyno.path("m.yaml"), file).unwrap();
    let run = || dyno.run(&[&["run", &uri, "--workload", "m.yaml"][..], &COMMON].concat());
    assert_exit(&run(), &[0, 5]);
    let summary = dyno.summary("d");
    assert_eq!((server.stat("curr_items"), outcome(phase(&summary, "load"), "ok")), (300, 300));
    // 128 keys of the load were looked for first.
    assert_eq!((server.stat("get_hits"), server.stat("get_misses")), (1_024, 512 + 128));
    assert_eq!((ended(&summary, "hit", "ok"), ended(&summary, "miss", "not_found")), (1_024, 512));
    assert_eq!((ended(&summary, "write", "ok"), server.stat("cmd_set")), (512, 812));
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    let again = run();
    assert!(stderr(&again).contains("the data are there already"), "{}", stderr(&again));
    let counts = ["run", &uri, "--command", "incr none 1", "--users", "1", "--ops", "100", "--out", "n"];
    assert_exit(&dyno.run(&counts), &[0, 5]);
    assert_eq!(ended(&dyno.summary("n"), "INCR", "not_found"), 100);
    for (command, expected) in [
        ("inkr a 1", "the command \"inkr\" is not sent; did you mean incr?"),
        ("delete a noreply", "expected no noreply and no q"),
        ("set a 0", "set: 3 words: expected 5; the value is the last one"),
        ("quit", "the command \"quit\" is not sent: expected one of"),
        ("flush_all", "the command \"flush_all\" is not sent: expected one of"),
    ] {
        let refused = dyno.run(&["run", &uri, "--command", command, "--no-out"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}

#[test]
fn memcached_takes_all_its_commands_with_steps_and_demands() {
    let Some(server) = Memcached::start("commands", &[]) else { return };
    let (dyno, uri) = (Dyno::new(), format!("memcached://127.0.0.1:{}", server.port));
    let file = "
keys:
  items: { count: 200, format: 'item:%{n}' }
  none: { count: 100, format: 'none:%{n}' }
  fresh: { count: 50, format: 'fresh:%{n}' }
load:
  - { for: items, command: [ms, { $key: items }, T600, { $string: 30 }] }
  - { once: true, command: [set, counter, 0, 0, '1000'] }
commands:
  count: { command: [incr, counter, '1'], expect: { type: integer } }
  there: { command: [add, { $key: items }, '0', '0', x], miss: not_found }
  gone: { command: [delete, { $key: none }], miss: ok }
  read: { command: [mg, { $key: items }, v, t], expect: { length: 30 } }
  wrong: { command: [get, counter], expect: { value: 'no number' } }
  copy:
    steps:
      - { name: take, command: [get, { $key: items }], as: found }
      - { name: put, command: [set, copy, '0', '0', 'of %{found}'] }
  empty:
    steps:
      - { name: take, command: [get, { $key: none }], as: nothing, miss: ok }
      - { name: touch, command: [touch, '%{nothing}', '0'] }
  made: { command: [mg, { $key: fresh }, N60, v] }
  seen: { command: [mg, { $key: items }, t, N60] }
  other: { command: [ma, counter, 'C1', D1] }
  both:
    mode: pipelined
    steps:
      - { name: first, command: [touch, counter, '0'] }
      - { name: second, command: [mn] }
";
    std::fs::write(dyno.path("m.yaml"), file).unwrap();
    let run = dyno.run(&[&["run", &uri, "--workload", "m.yaml"][..], &COMMON].concat());
    assert_exit(&run, &[0, 5]);
    let summary = dyno.summary("d");
    let all = |name: &str, outcome: &str| ended(&summary, name, outcome);
    assert!(all("count", "ok") >= 100, "{}", stdout(&run));
    // The server has counted the same, and its counter is one more for each.
    assert_eq!(server.stat("incr_hits"), all("count", "ok"));
    assert_eq!((server.stat("delete_misses"), server.stat("delete_hits")), (all("gone", "not_found"), 0));
    assert_eq!((all("there", "ok"), all("wrong", "ok"), all("read", "mismatch")), (0, 0, 0));
    assert!(all("wrong", "mismatch") > 0 && all("read", "ok") > 0 && all("there", "not_found") > 0);
    assert!(stdout(&run).contains("expected \"no number\""), "{}", stdout(&run));
    // An item that the server makes because none was there is no hit, and a version that does not fit no miss.
    assert!(all("made", "not_found") > 0 && all("made", "ok") == 0, "{}", stdout(&run));
    assert!(all("seen", "ok") > 0 && all("seen", "not_found") == 0, "{}", stdout(&run));
    assert!(all("other", "ok") > 0 && all("other", "not_found") == 0, "{}", stdout(&run));
    // What cannot be sent is no fault of the server's.
    assert!(all("empty", "bad_request") > 0 && all("empty", "ok") == 0, "{}", stdout(&run));
    assert!(stdout(&run).contains("cannot have the word"), "{}", stdout(&run));
    assert_eq!(server.stat("touch_hits"), all("both", "ok"));
    assert!(all("copy", "ok") > 0 && all("both", "ok") > 0, "{}", stdout(&run));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    std::io::Write::write_all(&mut stream, b"get copy counter\r\n").unwrap();
    let mut heard = String::new();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
    while !heard.ends_with("END\n") {
        heard += &format!("{}\n", lines.next().unwrap().unwrap());
    }
    // `of ` and the 30 bytes of a value.
    assert!(heard.contains("VALUE copy 0 33\nof "), "{heard}");
    assert!(heard.contains(&format!("\n{}\n", 1_000 + all("count", "ok"))), "{heard}");
}

#[test]
fn operations_beside_the_mix_are_in_no_total() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("commands") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let file = "
load: [{ once: true, command: [XGROUP, CREATE, jobs, g, $, MKSTREAM] }]
commands:
  add: { weight: 1, command: [XADD, jobs, '*', task, { $string: 20 }] }
  read: { weight: 3, command: [XLEN, jobs] }
  work:
    users: 2
    blocking: true
    steps:
      - command: [XREADGROUP, GROUP, g, 'w%{user}', COUNT, 1, BLOCK, 200, STREAMS, jobs, '>']
        name: take
        miss: ok
        as: { id: [0, 1, 0, 0] }
      - { when: hit, name: ack, command: [XACK, jobs, g, '%{id}'], expect: 1 }
  poll: { rate: 20, command: [GET, nothing], miss: ok }
";
    std::fs::write(dyno.path("q.yaml"), file).unwrap();
    let common = ["--rate", "400", "--duration", "3s", "--warmup", "0s", "--out", "d"];
    let run = dyno.run(&[&["run", &uri, "--workload", "q.yaml"][..], &common].concat());
    assert_exit(&run, &[0, 5]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    // The mix alone: every fourth arrival adds, and the totals know no other.
    let (added, read) = (ended(&summary, "add", "ok"), ended(&summary, "read", "ok"));
    assert_eq!((added + read, calls(&server, "xadd")), (outcome(measured, "ok"), added));
    assert_eq!(arrivals(measured), outcome(measured, "ok"));
    // About 1,200 arrivals: a whole block of 1,024 and a part of the next one.
    assert!(added >= 256 && read >= 768 && added + read < 1_500, "{added} {read}");
    // Jobs that were taken were acknowledged; what is left waits in the stream.
    let (taken, acknowledged) =
        (ended(&summary, "work.wait.take", "ok"), ended(&summary, "work.wait.ack", "ok"));
    assert_eq!((acknowledged, calls(&server, "xack")), (taken, taken));
    assert!(taken > added / 2, "{taken} of {added}");
    assert!(server.cli(&["XPENDING", "jobs", "g"]).starts_with('0'));
    let polled = ended(&summary, "poll.own", "not_found");
    assert!((55..=61).contains(&polled), "{polled}");
    // The same in worker processes.
    std::fs::remove_dir_all(dyno.path("d")).unwrap();
    server.cli(&["FLUSHALL"]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let text = format!(
        "target: {uri}
workload: {{ commands: {{ file: q.yaml }} }}
client: {{ workers: 2 }}
phases: {{ measure: {{ users: 2, operations: 2048, warmup: 0s }} }}
"
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "x"]), &[0, 5]);
    assert_eq!((calls(&server, "xadd"), calls(&server, "xlen")), (512, 1_536));
    assert!(calls(&server, "xack") > 0 && calls(&server, "xack") <= 512);
    // Two users, of the first worker alone.
    assert_eq!(server.cli(&["XINFO", "CONSUMERS", "jobs", "g"]).matches("name").count(), 2);
    for (command, message) in
        [("BLPOP a 0", "`users: N` and `blocking: true`"), ("XREAD BLOCK 5 STREAMS a 0", "may wait")]
    {
        let refused = dyno.run(&["run", &uri, "--command", command, "--no-out"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{command}: {}", stderr(&refused));
    }
}
