//! Flags, loads and reports beside what memtier_benchmark printed (tests/data/memtier).

use super::args::{Parsed, Settings, parse};
use super::report::{MemtierRun, RequestSecond, RequestTotals, report};
use super::{json, load, records, rows, verification, words};
use dyno_record::{Buckets, Scale};
use dyno_workload::commands::{ArgumentPart, CommandRun, Commands};
use dyno_workload::{Frontier, Workload};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const COMMANDS: &str = include_str!("../../tests/data/memtier/commands.txt");

fn typed(line: &str) -> Vec<String> {
    let words = words::split(line).unwrap().into_iter();
    words.map(|word| String::from_utf8(word).unwrap()).collect()
}

fn settings(line: &str) -> Settings {
    match parse(&typed(line)) {
        Ok(Parsed::Run(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    parse(&typed(line)).map(|_| String::new()).unwrap_or_else(|refusal| refusal.to_string())
}

/// The first commands of a user as MONITOR shows them.
fn sent(commands: &Commands, user: u64, count: u64) -> Vec<String> {
    let run = CommandRun::new(commands).unwrap();
    let content = run.content();
    let line = |turn: u64| {
        let request = run.request(turn * commands.users + user, &Frontier::new(0));
        let arguments = &commands.operations[usize::from(request.shape)].commands[0];
        let argument = |(number, parts): (u16, &Vec<ArgumentPart>)| {
            let mut out = Vec::new();
            match parts.as_slice() {
                [ArgumentPart::Literal(bytes)] => out.extend_from_slice(bytes),
                _ => content.argument(&request, 0, number, &mut out),
            }
            format!("\"{}\"", String::from_utf8(out).unwrap())
        };
        (0..).zip(arguments).map(argument).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(line).collect()
}

/// Numbers of keys as `N`, runs of x as `x` with their length if `exact`.
fn shape(line: &str, exact: bool) -> String {
    if exact {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut digits = false;
    for letter in line.chars() {
        if letter.is_ascii_digit() && (digits || out.ends_with("memtier-")) {
            digits = true;
            continue;
        }
        if digits {
            out.push('N');
        }
        digits = false;
        out.push(letter);
    }
    out
}

#[test]
fn commands_are_those_that_monitor_saw() {
    let mut compared = 0;
    for block in COMMANDS.split("$ ").filter(|block| !block.is_empty()) {
        let (line, connections) = block.split_once('\n').unwrap();
        let settings = settings(line);
        let commands = load(&settings, 1, &Arc::default());
        // Draws are dyno's own; what counts through keys is not.
        let counts = line.contains("S:S")
            || line.contains("P:P")
            || line.contains("pattern P")
            || line.contains("MSET");
        for (number, connection) in connections.split("connection\n").skip(1).enumerate() {
            let expected: Vec<&str> = connection.lines().collect();
            let users = 0..settings.users();
            let all = users.map(|user| sent(&commands, user, expected.len() as u64));
            // Connections are in the order in which they came first.
            let same = |own: &Vec<String>| {
                expected.iter().zip(own).all(|(theirs, ours)| {
                    let fixed = !line.contains("data-size-range 4-12") && !line.contains("expiry");
                    let (theirs, ours) = (shape(theirs, counts), shape(ours, counts));
                    if fixed { theirs == ours } else { theirs.split(' ').count() == ours.split(' ').count() }
                })
            };
            let all: Vec<Vec<String>> = all.collect();
            assert!(all.iter().any(same), "{line}: connection {number}: {:?}\n{expected:?}", all[0]);
            compared += expected.len();
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn refusals_are_memtiers() {
    for (line, expected) in [
        ("--bogus", "unrecognized option '--bogus'"),
        ("-n 0", "requests must be greater than zero."),
        ("-n x", "requests must be greater than zero."),
        ("-n 5 --test-time 2", "--test-time and --requests are mutually exclusive."),
        ("-p 0", "port must be a number in the range [1-65535]."),
        ("--ratio 1", "ratio must be expressed as [0-n]:[0-n]."),
        ("--ratio 0:0", "ratio must be expressed as [0-n]:[0-n]."),
        ("--key-pattern X:R", "key-pattern must be in the format of [S/R/G/P/Z]:[S/R/G/P/Z]."),
        ("--key-pattern R:P", "parallel key-pattern must be configured for both SET and GET commands."),
        ("--data-size-range 0-5", "data-size-range must be expressed as [1-n]-[1-n]."),
        ("-d 0", "data-size must be greater than zero."),
        ("-d 5 --data-size-list 1:1", "data-size cannot be used with data-size-list or data-size-range."),
        ("--key-minimum 0", "key-minimum must be greater than zero."),
        ("--key-stddev 5", "key-stddev and key-median are only allowed together with key-pattern set to G."),
        (
            "--key-stddev 5 --key-pattern G:G --key-median 0.5 --key-minimum 10",
            "key-median must be between key-minimum and key-maximum.",
        ),
        ("--key-zipf-exp 5", "key-zipf-exp must be within interval (0, 5)."),
        ("-x 0", "run count must be greater than zero."),
        ("-t 0", "threads must be greater than zero."),
        ("--command-ratio 2", "no arbitrary command found."),
        (
            "--command 'GET __key__' --ratio 1:1",
            "when using arbitrary command, ratio is configured with --command-ratio option.",
        ),
        ("--command 'SET a x__data__'", "data placeholder can't combined with other data"),
        (
            "--command 'SET __key__ 1' --command-key-pattern P --command 'GET __key__'",
            "parallel key-pattern must be configured to all commands.",
        ),
        (
            "-P http",
            "supported protocols are 'memcache_text', 'memcache_binary', 'redis', 'resp2' and resp3'.",
        ),
        ("--wait-ratio 0:0", "wait-ratio must be expressed as [0-n]:[0-n]."),
        ("--wait-ratio x", "wait-ratio must be expressed as [0-n]:[0-n]."),
        ("--num-slaves 0-0", "num-slaves must be expressed as [0-n]-[1-n]."),
        ("--wait-timeout 5", "wait-timeout must be expressed as [0-n]-[1-n]."),
        ("--reconnect-interval 0", "reconnect-interval must be greater than zero."),
        ("-P memcache_text --multi-key-get 0", "multi-key-get must be greater than zero."),
        ("-P memcache_text --wait-ratio 1:1", "WAIT command not implemented for memcache!"),
        ("-P memcache_text --cluster-mode", "cluster mode supported only in redis protocol."),
        ("-P memcache_text -a x", "authenticate can only be used with redis or memcache_binary."),
        ("-P memcache_text --select-db 3", "select-db can only be used with redis protocol."),
        (
            "-P memcache_text --data-offset 3",
            "data-offset can only be used with redis protocol, and cannot be used with expiry",
        ),
        ("--cluster-mode --multi-key-get 3", "cluster mode dose not support multi-key-get option."),
        ("--cluster-mode --reconnect-interval 3", "cluster mode dose not support reconnect-interval option."),
        ("--cluster-mode --wait-ratio 3:1", "cluster mode dose not support wait-ratio option."),
        ("--data-verify", "use data-verify only with data-import"),
        ("--verify-only", "use data-verify only with data-import"),
        ("--no-expiry", "use no-expiry only with data-import"),
        (
            "--data-import f --verify-only --hdr-file-prefix p",
            "--verify-only applies no load: files, packets and runs of one do not go with it",
        ),
        (
            "--client-stats c --pipeline 4",
            "--client-stats: of requests in a pipeline bytes are not known of each; use --pipeline 1",
        ),
        ("--data-import f -d 3", "data size cannot be specified when importing."),
        ("--data-import f -R", "random-data cannot be specified when importing."),
        (
            "--data-import f --key-prefix x",
            "use key-minimum, key-maximum and key-prefix only with generate-keys.",
        ),
        ("--data-import f --cluster-mode", "Cluster mode cannot be specified when importing."),
        (
            "--data-import f --data-verify --test-time 3",
            "--data-verify needs --requests: of a time it is not known what was written",
        ),
        (
            "--data-import f --key-pattern P:P",
            "--key-pattern P:P needs --generate-keys with --data-import: each client writes all records",
        ),
        ("--clients-start 0", "clients-start must be greater than zero."),
        (
            "--clients-start 3",
            "--clients-start, --clients-step, and --step-duration must all be specified together.",
        ),
        (
            "--clients-start 1 --clients-step 1 --step-duration 1 -n 5",
            "--requests cannot be used with client staircase mode. Use --test-time instead.",
        ),
        (
            "--clients-start 3 --clients-step 1 --step-duration 1 -c 3 --test-time 5",
            "--clients-start (3) must be less than --clients (3).",
        ),
        (
            "--clients-start 3 --clients-step 1 --step-duration 1",
            "--test-time is required when using client staircase mode.",
        ),
        (
            "--scan-incremental-iteration",
            "--scan-incremental-iteration requires --command with a SCAN command.",
        ),
        (
            "--scan-incremental-iteration --command x",
            "--scan-incremental-iteration requires the command to be a SCAN command.",
        ),
        (
            "--scan-incremental-iteration --command SCAN",
            "SCAN command must have at least a cursor argument (e.g., 'SCAN 0').",
        ),
        (
            "--scan-incremental-iteration --command SCAN --command SCAN",
            "--scan-incremental-iteration requires exactly one --command (a SCAN command).",
        ),
        ("--scan-incremental-iteration --pipeline 2", "--scan-incremental-iteration requires --pipeline 1."),
        (
            "--scan-incremental-iteration --scan-incremental-max-iterations x",
            "scan-incremental-max-iterations must be a positive number.",
        ),
        (
            "--scan-incremental-max-iterations 3",
            "--scan-incremental-max-iterations needs --scan-incremental-iteration",
        ),
        ("--num-slaves 1-1", "--num-slaves needs --wait-ratio"),
        ("-u foo://h", "unsupported URI scheme 'foo'. Use 'redis' or 'rediss'."),
        ("-S /s -p 1", "UNIX domain socket and TCP cannot be used together."),
        ("--print-percentiles a", "quantiles must be expressed as [0.0-100.0],[0.0-100.0](,...) ."),
        ("-n", "option '-n' requires an argument"),
        ("--key", ""),
        ("--tls=1", "option '--tls' doesn't allow an argument"),
        ("-S r.sock", "--unix-socket r.sock: expected an absolute path"),
        ("-S /r.sock --tls", "--unix-socket: neither --tls nor --uri goes with it"),
        ("--cacert c.pem", "--cacert needs --tls"),
        ("-n allkeys --key-minimum 5 --key-maximum 5", "requests must be greater than zero."),
        ("--ratio 18446744073709551615:1", "ratio must be expressed as [0-n]:[0-n]."),
        (
            "--data-size-list 3:18446744073709551615,5:10",
            "data-size-list must be expressed as [size1:weight1],...[sizeN:weightN].",
        ),
        ("--expiry-range 0-18446744073709551615", "expiry-range must be expressed as [0-n]-[1-n]."),
        (
            "-c 18446744073709551615 -t 2",
            "18446744073709551615 clients of 2 threads: expected 1000000 in all at most",
        ),
        (
            "--key-maximum 18446744073709551615",
            "keys from 0 to 18446744073709551615: expected a range up to 9223372036854775807",
        ),
    ] {
        let found = refusal(line);
        match expected {
            "" => assert!(!found.is_empty(), "{line}"),
            expected => assert_eq!(found, expected, "{line}"),
        }
    }
    // What dyno does not have is refused by name, with a way on.
    for line in ["--monitor-input f", "-D", "-4"] {
        assert!(refusal(line).contains("dyno memtier does not have it"), "{line}: {}", refusal(line));
    }
}

#[test]
fn memcacheds_commands_are_those_that_it_saw() {
    let trace = include_str!("../../tests/data/memtier/memcache_text.txt");
    let mut lines = trace.lines();
    let line = lines.next().and_then(|line| line.split_once("2.3.0: ")).unwrap().1.trim_end_matches('.');
    let own = settings(line);
    assert_eq!(own.uri, "memcached://localhost:6379?protocol=text");
    let expected: Vec<&str> = lines.collect();
    let mut found = sent(&load(&own, 1, &Arc::default()), 0, expected.len() as u64);
    for line in &mut found {
        // The driver has the length in the value's place.
        *line = line.replace('"', "").replace(&"x".repeat(32), "32");
    }
    assert_eq!(found, expected);
    let names = |line: &str| -> Vec<(String, Vec<usize>)> {
        rows(&settings(line)).into_iter().map(|row| (row.name, row.metrics)).collect()
    };
    let row = |name: &str, metrics: &[usize]| (name.to_owned(), metrics.to_vec());
    let all = "-P memcache_text --multi-key-get 4";
    assert_eq!(names(all), [row("Sets", &[0]), row("Gets", &[1, 2]), row("Waits", &[])]);
    let even = format!("{all} --ratio 0:8");
    assert_eq!(names(&even), [row("Sets", &[]), row("Gets", &[0]), row("Waits", &[])]);
    let few = format!("{all} --ratio 1:3");
    assert_eq!(names(&few), [row("Sets", &[0]), row("Gets", &[1]), row("Waits", &[])]);
    assert_eq!(names("--wait-ratio 1:1"), [row("Sets", &[0]), row("Gets", &[1]), row("Waits", &[2])]);
    // A ratio without WAITs has none.
    assert_eq!(names("--wait-ratio 1:0"), [row("Sets", &[0]), row("Gets", &[1]), row("Waits", &[])]);
}

#[test]
fn records_of_a_file_are_sent_as_monitor_saw_them() {
    let trace = include_str!("../../tests/data/memtier/import.txt");
    let mut lines = trace.lines();
    let line = lines.next().and_then(|line| line.split_once("2.3.0: ")).unwrap().1;
    let line = line.split_once(';').unwrap().0;
    let file: Arc<[_]> =
        records("f", include_bytes!("../../tests/data/memtier/import.csv"), false).unwrap().into();
    let own = settings(line);
    let expected: Vec<&str> = lines.collect();
    let (written, verified) = expected.split_at(24);
    let commands = load(&own, 1, &file);
    // MONITOR escapes.
    let escaped = |lines: Vec<String>| -> Vec<String> {
        let one = |line: &String| line.replace("\r\n", "\\r\\n").replace("say \"x\"", "say \\\"x\\\"");
        lines.iter().map(one).collect()
    };
    assert_eq!(escaped(sent(&commands, 0, 24)), written);
    let (gets, count) = verification(&own, &commands).unwrap();
    assert_eq!(count, verified.len() as u64);
    assert_eq!(escaped(sent(&gets, 0, count)), verified);
    // What is read must be what was written.
    let run = CommandRun::new(&gets).unwrap();
    let content = run.content();
    let value = |turn: u64| content.expected(&run.request(turn, &Frontier::new(0))).map(<[u8]>::to_vec);
    assert_eq!((value(1), value(6)), (Some(b"green".to_vec()), Some(b"say \"x\", y".to_vec())));
    let rows = rows(&own);
    assert_eq!((&rows[0].metrics[..], &rows[1].metrics[..]), (&[0, 2][..], &[1][..]));
    // One that lives for ever, one in its range, made keys, memcached's form.
    let first = |line: &str, turn: usize| {
        let own = settings(&format!("{line} --data-import f --ratio 1:0 --key-pattern S:S"));
        sent(&load(&own, 1, &file), 0, 4).remove(turn)
    };
    assert_eq!(first("--no-expiry", 1), r#""SET" "pear" "green""#);
    assert_eq!(first("--expiry-range 3-3", 0), r#""SETEX" "apple" "3" "red""#);
    assert_eq!(first("--generate-keys --key-prefix k", 1), r#""SETEX" "k1" "7" "green""#);
    assert_eq!(first("-P memcache_text", 1), r#""set" "pear" "0" "7" "green""#);
    assert_eq!(first("-P memcache_text --no-expiry", 1), r#""set" "pear" "0" "0" "green""#);
}

#[test]
fn verification_follows_the_first_client() {
    let file: Arc<[_]> =
        records("f", include_bytes!("../../tests/data/memtier/import.csv"), false).unwrap().into();
    let base = "--data-import f --data-verify --generate-keys --key-maximum 5000 -c 3 -t 1 --ratio 3:2 -n 52";
    for more in ["", "--key-pattern P:P", "--wait-ratio 1:1", "--distinct-client-seed", "--key-pattern S:R"] {
        let own = settings(&format!("{base} {more}"));
        let commands = load(&own, 9, &file);
        let all = sent(&commands, 0, 52);
        let keys = |lines: &[String]| -> Vec<String> {
            lines.iter().filter_map(|line| line.split('"').nth(3).map(str::to_owned)).collect()
        };
        let written: Vec<String> = all.into_iter().filter(|line| line.starts_with("\"SET")).collect();
        let (gets, count) = verification(&own, &commands).unwrap();
        assert_eq!(count as usize, written.len(), "{more}");
        assert_eq!(keys(&sent(&gets, 0, count)), keys(&written), "{more}");
    }
    let none = settings("--data-import f --data-verify --ratio 0:1");
    assert!(verification(&none, &load(&none, 1, &file)).is_none());
}

#[test]
fn a_scan_follows_its_cursor_as_monitor_saw_it() {
    let trace = include_str!("../../tests/data/memtier/scan.txt");
    let mut lines = trace.lines();
    let line = lines.next().and_then(|line| line.split_once("2.3.0: ")).unwrap().1.trim_end_matches('.');
    let own = settings(line);
    let commands = load(&own, 1, &Arc::default());
    let run = CommandRun::new(&commands).unwrap();
    let content = run.content();
    let expected: Vec<&str> = lines.collect();
    // Each reply ends where the next one begins; the last of a round would go on, but may not.
    let cursor = |line: &str| line.split('"').nth(3).unwrap().parse::<u64>().unwrap();
    for (turn, theirs) in expected.iter().enumerate() {
        let request = run.request(turn as u64, &Frontier::new(0));
        let arguments = &commands.operations[usize::from(request.shape)].commands[0];
        let words = (0..).zip(arguments).map(|(number, parts)| {
            let mut out = Vec::new();
            match parts.as_slice() {
                [ArgumentPart::Literal(bytes)] => out.extend_from_slice(bytes),
                _ => content.argument(&request, 0, number, &mut out),
            }
            format!("\"{}\"", String::from_utf8(out).unwrap())
        });
        assert_eq!(words.collect::<Vec<_>>().join(" "), *theirs, "{turn}");
        let ends = expected.get(turn + 1).map_or(0, |next| cursor(next));
        content.ends_at(&request, Some(if ends == 0 { 99 } else { ends }));
    }
    // An error begins anew.
    content.ends_at(&run.request(0, &Frontier::new(0)), Some(7));
    assert_eq!(run.request(1, &Frontier::new(0)).shape, 1);
    content.ends_at(&run.request(1, &Frontier::new(0)), None);
    assert_eq!(run.request(2, &Frontier::new(0)).shape, 0);
    let names: Vec<String> = rows(&own).into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["Scan 0s", "Scan <cursor>s"]);
}

#[test]
fn every_form_of_a_flag() {
    for line in ["-n100", "-n 100", "--requests=100", "--requests 100", "--req 100"] {
        assert_eq!(settings(line).requests, Some(100), "{line}");
    }
    assert_eq!(settings("-Rn7").requests, Some(7));
    assert_eq!(settings("").requests, Some(10_000));
    assert_eq!((settings("").users(), settings("-c 3 -t 5").users()), (200, 15));
    assert_eq!(settings("-n allkeys --key-maximum 20 --key-minimum 1 --key-pattern S:S").requests, Some(19));
    assert_eq!(settings("-n allkeys -c 2 -t 2 --key-maximum 400 --key-pattern P:P").requests, Some(101));
    for (line, expected) in [
        ("", "redis://localhost:6379?protocol=2&layout=string"),
        ("-h a -p 7", "redis://a:7?protocol=2&layout=string"),
        ("-s ::1 --select-db 3", "redis://[::1]:6379/3?protocol=2&layout=string"),
        ("-a p@w", "redis://:p%40w@localhost:6379?protocol=2&layout=string"),
        ("-a me:pw -P resp3", "redis://me:pw@localhost:6379?protocol=3&layout=string"),
        ("-S /run/r.sock", "unix:///run/r.sock?protocol=2&layout=string"),
        ("-S /run/r.sock --select-db 3", "unix:///run/r.sock?protocol=2&layout=string&db=3"),
        ("-s a -h b", "redis://b:6379?protocol=2&layout=string"),
        ("-u redis://me:pw@h:7/2", "redis://me:pw@h:7/2?protocol=2&layout=string"),
        (
            "--tls --cacert c.pem --sni n",
            "rediss://localhost:6379?protocol=2&layout=string&ca=c.pem&server-name=n",
        ),
        ("--cluster-mode", "redis://localhost:6379?protocol=2&layout=string&cluster=true"),
    ] {
        assert_eq!(settings(line).uri, expected, "{line}");
    }
    // A URI counts, and it is said what does not.
    let both = settings("-u redis://h:7/2 --tls --select-db 4 -h x");
    assert_eq!((both.uri.as_str(), both.notes.len()), ("redis://h:7/2?protocol=2&layout=string", 3));
    let listed = settings("-a secret -n 5").listed();
    assert!(!listed.iter().any(|(_, value)| value.contains("secret")), "{listed:?}");
}

/// A run whose latencies are 1 to `count` tenths of a millisecond.
fn run(settings: &Settings, count: u64) -> MemtierRun {
    let kind = |row: super::TableRow| {
        let mut latencies = Buckets::new(Scale::Ns64);
        let own = if row.metrics.is_empty() { 0 } else { count };
        (1..=own).for_each(|tenth| latencies.record(tenth * 100_000));
        let second = RequestSecond { number: 0, count: own, bytes: (10, 20), latencies: latencies.clone() };
        RequestTotals {
            name: row.name,
            count: own,
            hits: (own - own / 2, own / 2),
            connection_errors: 0,
            bytes: (2_048 * own, 1_024 * own),
            latencies,
            seconds: vec![second],
        }
    };
    MemtierRun {
        times_ms: (1_000, 3_000),
        seconds: 2.0,
        interrupted: false,
        kinds: rows(settings).into_iter().map(kind).collect(),
    }
}

/// A line whose numbers, and the blanks before them, are `#`.
fn skeleton(line: &str) -> String {
    line.split_whitespace()
        .map(|word| if word.parse::<f64>().is_ok() { "#" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn reports_have_memtiers_form() {
    let data = |name: &str| match name {
        "default-small" => include_str!("../../tests/data/memtier/default-small.stdout"),
        "command-x2" => include_str!("../../tests/data/memtier/command-x2.stdout"),
        "x2" => include_str!("../../tests/data/memtier/x2-print-all-runs.stdout"),
        "breakdown" => include_str!("../../tests/data/memtier/command-line-breakdown.stdout"),
        _ => include_str!("../../tests/data/memtier/print-percentiles.stdout"),
    };
    for (name, line, runs) in [
        ("default-small", "-n 100 -c 2 -t 2", 1),
        (
            "command-x2",
            "-n 100 -c 2 -t 2 --command 'SET __key__ __data__' --command 'GET __key__' --command-ratio 3",
            1,
        ),
        ("x2", "-n 100 -c 2 -t 2 -x 2 --print-all-runs --hide-histogram", 2),
        (
            "breakdown",
            "-n 60 -c 1 -t 1 --command 'SET a:__key__:z __data__' --command 'set fixed 1' --command 'HSET h __key__ 1' \
             --command-stats-breakdown line --hide-histogram",
            1,
        ),
        (
            "percentiles",
            "-n 100 -c 2 -t 2 --print-percentiles 50,90,95,99,99.9,99.99,100 --hide-histogram",
            1,
        ),
    ] {
        let settings = settings(line);
        let runs: Vec<MemtierRun> = (0..runs).map(|_| run(&settings, 40)).collect();
        let found = report(&settings, &runs);
        // Steps of a distribution depend on the latencies: theirs and ours are one form.
        let form = |text: &str| {
            let mut all: Vec<(String, usize)> =
                text.lines().map(|line| (skeleton(line), line.len())).collect();
            all.dedup_by(|a, b| a.0 == b.0 && a.0.ends_with("# #"));
            all
        };
        assert_eq!(form(&found), form(data(name)), "{name}:\n{found}");
    }
}

#[test]
fn figures_follow_from_what_was_counted() {
    let settings = settings("-n 100 -c 2 -t 2 --print-percentiles 50,99");
    let found = report(&settings, &[run(&settings, 40)]);
    let row = |name: &str| {
        let line = found.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    // 40 in 2 s; the half of the gets has missed; 0.1 to 4.0 ms; 3 KiB each.
    let gets: Vec<f64> = row("Gets").iter().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!((&gets[..3], gets[6]), (&[20.0, 10.0, 10.0][..], 60.0), "{gets:?}");
    assert!(
        (gets[3] - 2.05).abs() < 0.01 && (gets[4] - 2.0).abs() < 0.01 && (gets[5] - 4.0).abs() < 0.01,
        "{gets:?}"
    );
    assert_eq!(row("Sets")[1..3], ["---", "---"]);
    assert_eq!(row("Totals")[..3], ["40.00", "10.00", "10.00"]);
    assert_eq!(row("Waits")[3..], ["---"; 4]);
}

/// Paths of the keys of a document; members of lists and seconds are one.
fn paths(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| {
            let key = if key.parse::<u64>().is_ok() { "N" } else { key };
            paths(value, &format!("{at}/{key}"), out);
        }),
        Value::Array(all) => all.iter().for_each(|value| paths(value, at, out)),
        _ => drop(out.insert(at.to_owned())),
    }
}

#[test]
fn the_json_file_has_memtiers_keys() {
    let settings = settings("-n 100 -c 2 -t 2 --json-out-file o");
    let ours: Value = serde_json::from_str(&json(&settings, &[run(&settings, 40)], None)).unwrap();
    let theirs: Value = serde_json::from_str(include_str!("../../tests/data/memtier/json.json")).unwrap();
    let (mut found, mut expected) = (BTreeSet::new(), BTreeSet::new());
    paths(&ours, "", &mut found);
    paths(&theirs, "", &mut expected);
    let lacking: Vec<&String> = expected.difference(&found).collect();
    // HdrHistogram's own form lies in the run directory.
    assert!(lacking.iter().all(|path| path.ends_with("Compressed Histogram")), "{lacking:?}");
    assert!(found.difference(&expected).next().is_none(), "{:?}", found.difference(&expected));
    assert_eq!(ours["run information"], theirs["run information"]);
    assert_eq!(ours["ALL STATS"]["Gets"]["Count"], 40);
    assert_eq!(ours["configuration"]["ratio"], theirs["configuration"]["ratio"]);
}
