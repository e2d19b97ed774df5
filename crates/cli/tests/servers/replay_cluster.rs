//! Replay across clusters: what is sent is held against the counts of all nodes.

use crate::replay_lines::{Line, count_calls, line, record_lines, replayed};
use dyno_testkit::cluster::RedisCluster;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Masters of a cluster of the tests' kind.
const MASTERS: [usize; 3] = [0, 1, 2];

/// Calls that all masters have counted.
fn calls(cluster: &RedisCluster) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for node in MASTERS {
        for (name, count) in count_calls(&cluster.ask(node, &["INFO", "commandstats"])) {
            *all.entry(name).or_default() += count;
        }
    }
    all
}

fn reset(cluster: &RedisCluster) {
    for node in MASTERS {
        cluster.ask(node, &["FLUSHALL"]);
        cluster.ask(node, &["CONFIG", "RESETSTAT"]);
    }
}

fn reasons(summary: &Value, check: &str) -> Vec<Value> {
    let all = summary["verdict"]["reasons"].as_array().unwrap();
    all.iter().filter(|reason| reason["check"] == check).cloned().collect()
}

/// The slots of these three are at three masters: 15495, 3300 and 7365.
fn shop() -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let mut push = |connection: u32, command: &str, reply: &'static str| {
        all.push(line(all.len() as u64, connection, command, reply));
    };
    push(0, "SELECT 0", "+");
    for n in 0..50 {
        push(0, &format!("SET k{n} value"), "+");
        push(1, &format!("INCR n{n}"), ":");
    }
    for n in 0..20 {
        push(0, &format!("GET k{n}"), "5");
        // Three slots, of which one key is not there.
        push(0, "MGET a b c", "*3");
        push(0, "MSET a 1 b 2 c 3", "+");
        push(1, &format!("DEL n{n} n{} n{n}x", n + 20), ":");
        push(1, "EXISTS a b c", ":");
        // Its keys have one slot, as those of the transaction behind it.
        push(2, "MSET {t}1 1 {t}2 2", "+");
        push(2, "WATCH {t}1", "+");
        push(2, "MULTI", "+");
        push(2, "INCR {t}1", "+");
        push(2, "GET {t}2", "+");
        push(2, "EXEC", "*2");
        // These are not.
        push(3, "WATCH a", "+");
        push(3, "MULTI", "+");
        push(3, "SET a 1", "+");
        push(3, "SET b 1", "+");
        push(3, "EXEC", "*2");
        push(3, "SINTERSTORE a b c", ":");
        push(3, "PING", "+");
    }
    all
}

#[test]
fn a_recording_of_a_single_server_on_a_cluster() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("replay on a cluster") };
    let dyno = Dyno::new();
    record_lines(&dyno, &shop());
    let run = |out: &str, more: &[&str]| {
        reset(&cluster);
        let output = dyno.run(&[&["replay", "t.dyno", &cluster.uri(""), "--out", out][..], more].concat());
        (output, dyno.summary(out))
    };
    let (output, summary) = run("whole", &[]);
    assert_exit(&output, &[5]);
    let replay = replayed(&summary);
    // 20 of each: MGET, MSET of three slots, DEL, EXISTS, SINTERSTORE, and the five commands of a transaction.
    let crossing = &replay["cross_slot"];
    assert_eq!(crossing["count"], 200, "{crossing}");
    for (name, count) in [("MGET", 20), ("DEL", 20), ("MULTI", 20), ("EXEC", 20), ("WATCH", 20), ("SET", 40)]
    {
        assert_eq!(crossing["commands"][name], count, "{name}: {crossing}");
    }
    // All but SELECT: 100 + 20 * 18.
    let share = crossing["share"].as_f64().unwrap();
    assert!((share - 200.0 / 460.0).abs() < 1e-9, "{share}");
    let found = reasons(&summary, "cross_slot");
    assert!(found.len() == 1 && found[0]["trust"] == "invalid", "{found:?}");
    assert!(found[0]["text"].as_str().unwrap().contains("--split"), "{found:?}");
    assert!(stdout(&output).contains("200 recorded commands (43.5 %) not sent"), "{}", stdout(&output));
    // No operation has failed for it: what is not sent is no arrival.
    let measured = phase(&summary, "measure");
    // Each of 20 transactions is one operation of four commands.
    assert_eq!(outcome(measured, "ok"), 200, "{measured}");
    assert_eq!((replay["error"].as_u64(), replay["missing"].as_u64()), (Some(0), Some(0)), "{replay}");
    let after = calls(&cluster);
    let expected = [("SET", 50), ("INCR", 70), ("MSET", 20), ("WATCH", 20), ("MULTI", 20), ("EXEC", 20)];
    for (name, count) in expected {
        assert_eq!(after.get(name), Some(&count), "{name}: {after:?}");
    }
    assert!(!after.contains_key("MGET") && !after.contains_key("DEL"), "{after:?}");
    // Every command went to its node at once.
    for node in MASTERS {
        let errors = cluster.ask(node, &["INFO", "errorstats"]);
        assert!(!errors.contains("MOVED") && !errors.contains("CROSSSLOT"), "{errors}");
    }
}

/// Keys that each slot of these has, where the slots are those that a node says.
fn keys_in_slots(cluster: &RedisCluster, keys: &[String]) -> BTreeMap<String, u64> {
    let slots = keys.iter().map(|key| cluster.ask(0, &["CLUSTER", "KEYSLOT", key]).trim().to_owned());
    let count = |slot: &str| {
        let of_node = |node: usize| cluster.ask(node, &["CLUSTER", "COUNTKEYSINSLOT", slot]);
        MASTERS.iter().map(|node| of_node(*node).trim().parse::<u64>().unwrap()).sum()
    };
    slots.map(|slot| (slot.clone(), count(&slot))).collect()
}

/// Anonymised, keys are others in the same slots: every node gets the commands that it got.
#[test]
fn keys_that_are_anonymised_stay_in_their_slots_where_that_is_asked() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("anonymised keys on a cluster") };
    let dyno = Dyno::new();
    let keys: Vec<String> = (0..30)
        .flat_map(|n| [format!("user:{n}"), format!("{{cart:{n}}}:items"), format!("s\u{e9}ance-{n}")])
        .collect();
    let mut text = String::new();
    for (n, key) in keys.iter().enumerate() {
        let key: String = key.replace('\u{e9}', "\\xc3\\xa9");
        for command in [r#""SET" "KEY" "a value of it""#, r#""GET" "KEY""#] {
            let command = command.replace("KEY", &key);
            text.push_str(&format!("1700000000.{:06} [0 127.0.0.1:{}] {command}\n", n * 100, 5000 + n % 3));
        }
    }
    std::fs::write(dyno.path("monitor.txt"), text).unwrap();
    let each_node = || MASTERS.map(|node| count_calls(&cluster.ask(node, &["INFO", "commandstats"])));
    let mut found = Vec::new();
    for (name, more) in [
        ("plain", &[][..]),
        ("kept", &["--anonymise", "key", "--keep-slots"]),
        ("moved", &["--anonymise", "key"]),
    ] {
        let file = format!("{name}.dyno");
        assert_exit(&dyno.run(&[&["record", "monitor.txt", "-o", &file][..], more].concat()), &[0]);
        reset(&cluster);
        dyno.assert_ran(&dyno.run(&["replay", &file, &cluster.uri(""), "--out", name]));
        let calls: Vec<_> = each_node()
            .iter()
            .map(|calls| ["SET", "GET"].map(|name| calls.get(name).copied().unwrap_or_default()))
            .collect();
        let named = MASTERS.iter().any(|node| cluster.ask(*node, &["KEYS", "user:*"]).contains("user"));
        assert_eq!(named, name == "plain");
        found.push((calls, keys_in_slots(&cluster, &keys)));
    }
    let [plain, kept, moved] = &found[..] else { panic!() };
    assert_eq!(plain.0.iter().map(|calls| calls[0]).sum::<u64>(), 90, "{plain:?}");
    assert_eq!((&plain.0, &plain.1), (&kept.0, &kept.1));
    assert_ne!(plain.1, moved.1);
    let refused = dyno.run(&["record", "monitor.txt", "-o", "no.dyno", "--keep-slots"]);
    assert_exit(&refused, &[2]);
}

#[test]
fn commands_are_split_over_slots_and_their_replies_joined() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("replay on a cluster") };
    let dyno = Dyno::new();
    record_lines(&dyno, &shop());
    reset(&cluster);
    let output = dyno.run(&["replay", "t.dyno", &cluster.uri(""), "--split", "--out", "split"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("split");
    let replay = replayed(&summary);
    // SINTERSTORE and the transactions are left.
    assert_eq!(replay["cross_slot"]["count"], 120, "{replay}");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(measured, "ok"), 280, "{measured}");
    // Each is one operation and one reply, as then.
    assert_eq!((replay["compared"].as_u64(), replay["size"].as_u64()), (Some(340), Some(0)), "{replay}");
    assert_eq!((replay["kind"].as_u64(), replay["error"].as_u64()), (Some(0), Some(0)), "{replay}");
    // `a`, `b` and `c` are at three slots.
    let after = calls(&cluster);
    for (name, count) in [("MGET", 60), ("MSET", 80), ("EXISTS", 60)] {
        assert_eq!(after.get(name), Some(&count), "{name}: {after:?}");
    }
    for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
        let got = cluster.ask(0, &["-c", "GET", key]);
        assert_eq!(got, value, "{key}");
    }
    // The counters that DEL names are gone.
    let left: u64 = MASTERS
        .iter()
        .map(|node| {
            cluster.ask(*node, &["KEYS", "n*"]).lines().filter(|line| !line.is_empty()).count() as u64
        })
        .sum();
    assert_eq!(left, 10);
}

#[test]
fn a_slot_that_moves_is_followed() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("replay on a cluster") };
    let dyno = Dyno::new();
    let lines: Vec<Line> =
        (0..3_000).map(|n| line(n, n as u32 % 4, format!("INCR {{a}}{}", n % 10), ":")).collect();
    record_lines(&dyno, &lines);
    reset(&cluster);
    let run = dyno.start(&["replay", "t.dyno", &cluster.uri(""), "--out", "moved", "--quiet"]);
    dyno.await_phase("moved", "measure");
    let sum = || -> u64 {
        let values = (0..10).map(|n| cluster.ask(0, &["-c", "GET", &format!("{{a}}{n}")]));
        values.filter_map(|value| value.parse::<u64>().ok()).sum()
    };
    let many = |_: &u32| {
        std::thread::sleep(Duration::from_millis(20));
        sum() > 100
    };
    assert!((0..500).any(|n| many(&n)));
    // The slot of `a` goes from its node to another, key by key: meanwhile it asks for some of them there.
    let slot = cluster.ask(0, &["CLUSTER", "KEYSLOT", "{a}"]);
    let id = |node: usize| cluster.ask(node, &["CLUSTER", "MYID"]);
    let has = |node: usize| cluster.ask(node, &["CLUSTER", "COUNTKEYSINSLOT", &slot]) != "0";
    let from = MASTERS.into_iter().find(|node| has(*node)).unwrap();
    let to = MASTERS.into_iter().find(|node| *node != from).unwrap();
    assert_eq!(cluster.ask(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]), "OK");
    assert_eq!(cluster.ask(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]), "OK");
    let port = cluster.port(to).to_string();
    for n in 0..10 {
        cluster.ask(from, &["MIGRATE", "127.0.0.1", &port, &format!("{{a}}{n}"), "0", "5000"]);
        std::thread::sleep(Duration::from_millis(20));
    }
    for node in [to, from] {
        assert_eq!(cluster.ask(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &id(to)]), "OK");
    }
    let output = finish(run);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("moved");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(measured, "ok"), 3_000, "{measured}");
    assert_eq!(sum(), 3_000);
    assert_eq!(replayed(&summary)["error"], 0);
    let errors = cluster.ask(from, &["INFO", "errorstats"]);
    assert!(errors.contains("MOVED") || errors.contains("ASK"), "{errors}");
}

#[test]
fn a_recording_of_a_cluster_on_a_single_server() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    let mut lines: Vec<Line> = Vec::new();
    let mut push = |connection: u32, command: String, reply: &'static str| {
        lines.push(line(lines.len() as u64, connection, command, reply));
    };
    for n in 0..20 {
        push(0, "CLUSTER SLOTS".into(), "*3");
        // The node of then had not this key: its client has asked the other one.
        push(0, format!("INCR k{n}"), "-MOVED");
        push(1, format!("INCR k{n}"), ":");
        push(1, "READONLY".into(), "+");
        push(1, format!("GET k{n}"), "1");
    }
    record_lines(&dyno, &lines);
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--out", "single"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("single");
    let replay = replayed(&summary);
    assert_eq!(replay["compared"], 40, "{replay}");
    for way in ["missing", "error", "kind", "size"] {
        assert_eq!(replay[way], 0, "{replay}");
    }
    let after = count_calls(&server.cli(&["INFO", "commandstats"]));
    assert_eq!((after.get("INCR"), after.get("GET"), after.get("READONLY")), (Some(&20), Some(&20), None));
    assert_eq!(server.cli(&["MGET", "k0", "k19"]), "1\n1");
    let left = &replay["left_out"];
    assert_eq!(left["commands about a cluster: the target is none"], 40, "{left}");
    assert_eq!(left["commands that the cluster of then had sent again: those are sent"], 20, "{left}");
}

#[test]
fn databases_that_a_cluster_lacks_and_nodes_that_die() {
    let Some(mut cluster) = RedisCluster::start(None) else { return skip("replay on a cluster") };
    let dyno = Dyno::new();
    let mut lines: Vec<Line> = vec![line(0, 1, "SELECT 3", "+")];
    for n in 0..2_000 {
        lines.push(line(n, 0, format!("SET k{n} v"), "+"));
        if n % 10 == 0 {
            lines.push(line(n, 1, "INCR n", ":"));
        }
    }
    record_lines(&dyno, &lines);
    reset(&cluster);
    // A plain address of a node is refused: it would answer most commands by saying who has the slot.
    let plain = format!("redis://127.0.0.1:{}", cluster.port(0));
    let refused = dyno.run(&["replay", "t.dyno", &plain, "--no-out"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("cluster=true"), "{}", stderr(&refused));
    let run = dyno.start(&["replay", "t.dyno", &cluster.uri(""), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let sets = || calls(&cluster).get("SET").copied().unwrap_or(0);
    let many = |_: &u32| {
        std::thread::sleep(Duration::from_millis(20));
        sets() > 200
    };
    assert!((0..500).any(|n| many(&n)));
    signal(run.id(), "INT");
    let output = finish(run);
    assert_exit(&output, &[130]);
    let summary = dyno.summary("r");
    let left = &replayed(&summary)["left_out"];
    assert_eq!(left["commands of databases other than 0, which a cluster does not have"], 200, "{left}");
    assert_eq!(outcome(phase(&summary, "measure"), "ok"), sets());
    // A master dies in the run: every command has an outcome, and those of the others go on.
    reset(&cluster);
    let run = dyno.start(&["replay", "t.dyno", &cluster.uri(""), "--out", "dies", "--quiet"]);
    dyno.await_phase("dies", "measure");
    assert!((0..500).any(|n| many(&n)));
    cluster.kill(1);
    let output = finish(run);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("dies");
    let measured = phase(&summary, "measure");
    let total: u64 = measured["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert!(total >= 1_999 && outcome(measured, "ok") > 200, "{measured}");
}
