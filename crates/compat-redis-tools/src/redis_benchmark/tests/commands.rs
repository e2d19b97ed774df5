//! Commands, against MONITOR.

use super::super::{BenchmarkPlan, Program, Test};
use super::{plan_of, recorded, redis, refusal, valkey};
use dyno_workload::commands::{ArgumentPart, CommandRun};
use dyno_workload::{Frontier, Workload};
use std::fmt::Write;

/// An argument as MONITOR quotes it.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b'\n' => out.push_str("\\n"),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => write!(out, "\\x{byte:02x}").unwrap(),
        }
    }
    out.push('"');
    out
}

/// The commands of the operation of an index, as MONITOR shows them.
fn sent(test: &Test, index: u64) -> Vec<String> {
    let run = CommandRun::new(&test.commands).unwrap();
    let content = run.content();
    let request = run.request(index, &Frontier::new(0));
    let line = |(number, arguments): (u32, &Vec<Vec<ArgumentPart>>)| {
        let argument = |(at, parts): (u16, &Vec<ArgumentPart>)| {
            let mut bytes = Vec::new();
            match parts.as_slice() {
                [ArgumentPart::Literal(literal)] => bytes.clone_from(literal),
                _ => content.argument(&request, number, at, &mut bytes),
            }
            quoted(&bytes)
        };
        (0..).zip(arguments).map(argument).collect::<Vec<_>>().join(" ")
    };
    (0..).zip(&test.commands.operations[0].commands).map(line).collect()
}

fn first_commands(plan: &BenchmarkPlan) -> Vec<String> {
    plan.tests.iter().flat_map(|test| sent(test, 0)).collect()
}

/// Numbers of 12 digits as `N`, numbers of `LRANGE` as 99, tags as `{T}`: what recorded examples leave open.
fn shape(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.strip_prefix("\"LRANGE\" ").map_or(line, |_| "\"LRANGE\" \"mylist\" \"0\" \"99\"");
    while let Some(next) = rest.chars().next() {
        let is_number = rest.len() >= 12 && rest.bytes().take(12).all(|byte| byte.is_ascii_digit());
        let is_tag = next == '{' && rest.as_bytes().get(4) == Some(&b'}');
        let (shown, length) = match (is_number, is_tag) {
            (true, _) => ("N".to_owned(), 12),
            (_, true) => ("{T}".to_owned(), 5),
            _ => (next.to_string(), next.len_utf8()),
        };
        out.push_str(&shown);
        rest = &rest[length..];
    }
    out
}

fn shapes(lines: &[String]) -> Vec<String> {
    let mut all: Vec<String> = lines.iter().map(|line| shape(line)).collect();
    all.sort();
    all.dedup();
    all
}

/// Compares shapes with recorded ones, which end behind 300 characters.
fn shapes_are_equal(plan: &BenchmarkPlan, name: &str) {
    let own = |line: &&str| !line.starts_with("\"CLUSTER\"");
    let recorded: Vec<String> = recorded(name).lines().filter(own).map(str::to_owned).collect();
    let longest = recorded.iter().map(String::len).max().unwrap();
    let (expected, found) = (shapes(&recorded), shapes(&first_commands(plan)));
    assert_eq!(expected.len(), found.len(), "{name}: {found:?}");
    for (expected, found) in expected.iter().zip(&found) {
        let is_cut = longest >= 300 && expected.starts_with("\"MSET\"");
        assert!(expected == found || is_cut && found.starts_with(expected), "{name}:\n{expected}\n{found}");
    }
}

#[test]
fn suites_send_what_monitor_showed() {
    // 7.0.15 has no XADD yet.
    let without_xadd = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    for (line, name) in [
        (format!("-n 1000 -t {without_xadd}"), "redis-default-n1000.commands"),
        (format!("-n 300 -c 5 -r 100 -q -t {without_xadd}"), "redis-r-all.commands"),
        ("-n 100 -c 1 -d 20 -t set,lpush,mset,hset".into(), "redis-d20.commands"),
        ("-n 200 -q".into(), "valkey-default-n200-q.commands"),
        ("--cluster -n 400 -c 4 -t set,mset -q".into(), "redis-cluster.commands"),
        ("-n 1000 set foo:__rand_int__ bar".into(), "redis-own-command.commands"),
        ("-n 1000 -r 50 -d 7 lpush mylist __rand_int__ __rand_int__".into(), "redis-own-command-r.commands"),
        ("-n 10 -c 1 set k __data__".into(), "redis-own-command-data.commands"),
        (r#"-n 10 -c 1 set k "a\x41\n""#.into(), "redis-own-command-quoted.commands"),
        ("-n 5 -c 1 -q -x set k".into(), "redis-unixsock-x.commands"),
    ] {
        shapes_are_equal(&redis(&line), name);
    }
}

#[test]
fn commands_without_placeholders_are_equal_byte_for_byte() {
    let expected = recorded("valkey-default-n200-q.commands");
    let found = first_commands(&redis(""));
    for line in expected.lines() {
        assert!(found.iter().any(|own| own == line), "{line}");
    }
    let lrange: Vec<&str> =
        found.iter().filter_map(|line| line.strip_prefix("\"LRANGE\" \"mylist\" ")).collect();
    assert_eq!(lrange, ["\"0\" \"99\"", "\"0\" \"299\"", "\"0\" \"499\"", "\"0\" \"599\""]);
}

#[test]
fn titles_follow_each_other_as_recorded() {
    let titles = |plan: &BenchmarkPlan| plan.tests.iter().map(|test| test.title.clone()).collect::<Vec<_>>();
    let csv = recorded("redis-default-n1000-csv.stdout");
    let quiet = recorded("valkey-default-n200-q.stdout");
    let seven: Vec<&str> = csv.lines().skip(1).map(|line| line[1..].split('"').next().unwrap()).collect();
    let eight: Vec<&str> = quiet
        .lines()
        .filter_map(|line| line.rsplit('\r').next()?.split_once(": "))
        .map(|(title, _)| title)
        .collect();
    assert_eq!((seven.len(), eight.len()), (20, 21));
    assert_eq!(titles(&redis("")), eight);
    assert_eq!(titles(&redis(""))[..20], seven);
    let newest: Vec<String> =
        titles(&valkey("")).into_iter().filter(|title| title != "MGET (10 keys)").collect();
    assert_eq!(newest, eight);
    for (names, expected) in [
        ("lrange_300", "LPUSH (needed to benchmark LRANGE)|LRANGE_300 (first 300 elements)"),
        ("GET,set", "SET|GET"),
        ("ping", "PING_INLINE|PING_MBULK"),
        ("mset,nosuch", "MSET (10 keys)"),
        ("nosuch", ""),
    ] {
        assert_eq!(titles(&redis(&format!("-t {names}"))).join("|"), expected, "{names}");
    }
    assert_eq!(titles(&valkey("-t function_load,mget")), ["MGET (10 keys)", "FUNCTION LOAD"]);
    assert_eq!(titles(&redis("-t set ping")), ["ping"]);
}

#[test]
fn numbers_stay_in_their_range_and_differ() {
    let plan = redis("-r 100 -t mset");
    let numbers = |index: u64| -> Vec<u64> {
        let line = sent(&plan.tests[0], index).remove(0);
        line.split('"').filter_map(|word| word.strip_prefix("key:")?.parse().ok()).collect()
    };
    let all: Vec<u64> = (0..200).flat_map(numbers).collect();
    assert_eq!(all.len(), 2_000);
    assert!(all.iter().all(|number| *number < 100));
    assert!((0..100).all(|number| all.contains(&number)));
    // A key space of nothing has one number, and no key space leaves the placeholder.
    assert_eq!(sent(&redis("-r 0 get k__rand_int__").tests[0], 5), [r#""get" "k000000000000""#]);
    assert_eq!(sent(&redis("-r -5 get k__rand_int__").tests[0], 5), [r#""get" "k000000000000""#]);
    assert_eq!(sent(&valkey("get k__rand_1st__").tests[0], 5), [r#""get" "k__rand_1st__""#]);
    // SET and GET draw numbers of their own.
    let both = redis("-r 1000000 -t set,get");
    assert_ne!(sent(&both.tests[0], 0)[0].split('"').nth(3), sent(&both.tests[1], 0)[0].split('"').nth(3));
}

#[test]
fn equal_numbers_of_valkey() {
    let plan = valkey("-r 1000000 mset a:__rand_1st__ __rand_2nd__ b:__rand_1st__ __rand_int__");
    let line = sent(&plan.tests[0], 3).remove(0);
    let words: Vec<&str> = line.split('"').filter(|word| !word.trim().is_empty()).collect();
    assert_eq!(words[1][2..], words[3][2..], "{line}");
    assert!(words[1][2..] != *words[2] && words[2] != words[4], "{line}");
    // Redis has no such placeholders.
    assert_eq!(sent(&redis("-r 9 get __rand_1st__").tests[0], 0), [r#""get" "__rand_1st__""#]);
    let zadd = &valkey("-r 100 -t zadd").tests[0];
    let line = sent(zadd, 0).remove(0);
    assert!(
        line.starts_with(r#""ZADD" "myzset" "0000000000"#) && line.contains("element:0000000000"),
        "{line}"
    );
    assert_eq!(sent(&valkey("-t zadd").tests[0], 0), [r#""ZADD" "myzset" "0" "element:__rand_1st__""#]);
}

#[test]
fn counted_numbers() {
    let keys = |line: &str, index: u64| sent(&valkey(line).tests[0], index);
    assert_eq!(keys("-r 1000 --sequential -t get", 7), [r#""GET" "key:000000000007""#]);
    assert_eq!(keys("-r 5 --sequential -t get", 7), [r#""GET" "key:000000000002""#]);
    assert_eq!(
        keys("-r 1000 --sequential mget __rand_int__ __rand_int__", 3),
        [r#""mget" "000000000006" "000000000007""#]
    );
    assert_eq!(keys("-r 1000 --sequential get __rand_3rd__", 3), [r#""get" "000000000003""#]);
    let zadd = keys("-r 1000 --sequential -t zadd", 3).remove(0);
    assert!(zadd.ends_with(r#" "element:000000000003""#), "{zadd}");
    let line = "-r 10 --sequential mget __rand_1st__ __rand_2nd__";
    assert!(refusal(Program::ValkeyBenchmark, line).contains("one counter"));
    assert_eq!(valkey("-r 10 --sequential -t get").notes.len(), 1);
}

#[test]
fn sequences_of_valkey() {
    let lines = |line: &str| {
        let plan = valkey(line);
        (sent(&plan.tests[0], 0), plan.requests.unwrap(), plan.tests[0].payload)
    };
    let (commands, requests, payload) = lines("-n 100 2 set a 1 ; get a");
    assert_eq!(commands, [r#""set" "a" "1""#, r#""set" "a" "1""#, r#""get" "a""#]);
    // 27 and 20 bytes on the wire; 100 requests are 34 sequences of three.
    assert_eq!((requests, payload), (34, 27 + 27 + 20));
    assert_eq!(valkey("2 set a 1 ; get a").tests[0].title, "2 set a 1 ; get a");
    // A separator where a command begins is its first argument.
    assert_eq!(lines("ping ; ; x").0, [r#""ping""#, r#"";" "x""#]);
    assert_eq!(lines("-d 20 set k a__data__b").0, [r#""set" "k" "aVXKeHogKgJ=[5V9_X^b?b""#]);
    assert_eq!(lines("-d 10 set __data__ __data__").0, [r#""set" "VXKeHogKgJ" "=[5V9_X^b?""#]);
    // In Redis all of it is one command.
    assert_eq!(first_commands(&redis("set a 1 ; get a")), [r#""set" "a" "1" ";" "get" "a""#]);
    let refused = |line: &str| refusal(Program::ValkeyBenchmark, line);
    assert!(refused("5").contains("none to repeat"));
    assert!(refused("99999 ping").contains("10,000 commands"));
    assert!(refused("--cluster set {tag} 1 ; get {tag}").contains("not to a cluster"));
    // Equal ones are equal in the whole sequence.
    let both = sent(&valkey("-r 1000000 set __rand_1st__ 1 ; get __rand_1st__").tests[0], 3);
    assert_eq!(both[0].split('"').nth(3), both[1].split('"').nth(3), "{both:?}");
}

#[test]
fn keys_and_what_is_written() {
    let of = |line: &str| {
        let operation = redis(line).tests.remove(0).commands.operations.remove(0);
        (operation.keys[0], operation.writes, operation.misses)
    };
    for (line, expected) in [
        ("-t ping_mbulk", (None, false, false)),
        ("-t get", (Some(1), false, true)),
        ("-t set", (Some(1), true, false)),
        ("-t lrange_100", (Some(1), true, false)),
        ("ping", (None, false, false)),
        ("hget h f", (Some(1), false, true)),
        ("eval script 1 k{tag}", (Some(1), true, false)),
        ("--cluster eval script 1 k{tag}", (Some(3), true, false)),
    ] {
        assert_eq!(of(line), expected, "{line}");
    }
    // The tags of a command are equal, and those of commands are spread.
    let plan = redis("--cluster -t mset");
    let tags = |index: u64| -> Vec<String> {
        let line = sent(&plan.tests[0], index).remove(0);
        line.split('{').skip(1).map(|rest| rest[..3].to_owned()).collect()
    };
    let all: Vec<Vec<String>> = (0..50).map(tags).collect();
    assert!(all.iter().all(|tags| tags.len() == 10 && tags.iter().all(|tag| *tag == tags[0])), "{all:?}");
    assert!(all.iter().any(|tags| tags[0] != all[0][0]));
}

#[test]
fn the_last_argument_comes_from_standard_input() {
    let line = ["-x", "-c", "1", "set", "k"];
    let plan = plan_of(Program::RedisBenchmark, &line, b"v\n\x00\xff");
    assert_eq!(first_commands(&plan), [r#""set" "k" "v\n\x00\xff""#]);
    assert_eq!((plan.tests[0].title.as_str(), plan.tests[0].payload), ("set k", 30));
    // Without a command nothing is read.
    assert_eq!(redis("-x -t set").tests.len(), 1);
}
