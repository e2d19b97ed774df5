//! Flags, refusals and the server's URI.

use super::super::{Output, ParsedCommandLine, Program, Reads};
use super::{read, redis, refusal, valkey};

const REDIS: Program = Program::RedisBenchmark;
const VALKEY: Program = Program::ValkeyBenchmark;

#[test]
fn defaults() {
    let plan = redis("");
    assert_eq!(
        (plan.uri.as_str(), plan.clients, plan.pipeline, plan.threads),
        ("redis://127.0.0.1:6379", 50, 1, None)
    );
    assert_eq!((plan.requests, plan.duration_s, plan.warmup_s, plan.rate), (Some(100_000), None, 0, None));
    assert!(!plan.repeats && !plan.idle && !plan.is_own && !plan.cluster && plan.keep_alive);
    assert_eq!((plan.output, plan.precision, plan.seed), (Output::Text, 3, None));
    assert_eq!(plan.tests[2].payload, 3);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    assert!(plan.settings.contains(&("-c".into(), "50".into(), false)));
    assert!(plan.settings.contains(&("--csv".into(), "false".into(), false)));
}

#[test]
fn servers() {
    for (line, expected) in [
        ("-h db -p 7000", "redis://db:7000"),
        ("-h ::1", "redis://[::1]:6379"),
        ("-h fe80::1%eth0", "redis://[fe80::1%25eth0]:6379"),
        ("-h db -s /run/r/redis.sock -p 1", "unix:///run/r/redis.sock"),
        ("-s /run/r.sock --dbnum 3 -a p", "unix://:p@/run/r.sock?db=3"),
        ("-a p@ss/:", "redis://:p%40ss%2F%3A@127.0.0.1:6379"),
        ("-a pw --user bob", "redis://bob:pw@127.0.0.1:6379"),
        ("--user bob", "redis://127.0.0.1:6379"),
        ("--dbnum 3 -3", "redis://127.0.0.1:6379?protocol=3&db=3"),
        ("-u redis://bob:p%40ss@db:7000/4", "redis://bob:p%40ss@db:7000?db=4"),
        ("-u redis://pw@db", "redis://:pw@db:6379"),
        ("-u REDISS://db", "rediss://db:6379"),
        ("-u redis://", "redis://127.0.0.1:6379"),
        ("-u redis:///2", "redis://127.0.0.1:6379?db=2"),
        ("-u redis://[::1]:7001", "redis://[::1]:7001"),
        ("-u redis://db:7000 -h other", "redis://other:7000"),
        ("--tls --cacert /c/ca.pem --insecure", "rediss://127.0.0.1:6379?ca=/c/ca.pem&insecure=true"),
        (
            "--tls --cert /c.pem --key /k.pem --sni n",
            "rediss://127.0.0.1:6379?cert=/c.pem&key=/k.pem&server-name=n",
        ),
        ("--cacert /c/ca.pem", "redis://127.0.0.1:6379"),
        ("--cluster -t set", "redis://127.0.0.1:6379?cluster=true"),
        ("--cluster --dbnum 2 -t set", "redis://127.0.0.1:6379?cluster=true"),
    ] {
        assert_eq!(redis(line).uri, expected, "{line}");
    }
    assert_eq!(valkey("-u valkeys://db").uri, "rediss://db:6379");
    assert_eq!(valkey("-u valkey://u:p@db/1").uri, "redis://u:p@db:6379?db=1");
    let replica = valkey("--cluster --rfr yes -t get");
    assert_eq!(
        (replica.uri.as_str(), replica.reads),
        ("redis://127.0.0.1:6379?cluster=true&reads=replica", Reads::Replica)
    );
    assert_eq!(valkey("--cluster --rfr all -t get").uri, "redis://127.0.0.1:6379?cluster=true&reads=any");
}

#[test]
fn every_flag_sets_something() {
    let plan = valkey(
        "-h db -p 7000 -a pw --user bob -c 7 -n 90 --warmup 2 -d 20 --dbnum 1 -3 --threads 3 -k 1 -r 5 -P 4 -q \
         --precision 2 -l -t set -I --rps 50 --seed 42 --num-functions 3",
    );
    assert_eq!((plan.clients, plan.requests, plan.warmup_s, plan.threads), (7, Some(90), 2, Some(3)));
    assert_eq!((plan.pipeline, plan.output, plan.precision, plan.rate), (4, Output::Quiet, 2, Some(50.0)));
    assert_eq!((plan.seed, plan.tests[0].payload, plan.tests[0].commands.seed), (Some(42), 20, 42));
    assert!(plan.repeats && plan.idle);
    assert_eq!(plan.uri, "redis://bob:pw@db:7000?protocol=3&db=1");
    let typed: Vec<&str> =
        plan.settings.iter().filter(|(_, _, typed)| *typed).map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(typed.len(), 22, "{typed:?}");
    assert!(plan.settings.contains(&("-a".into(), "***".into(), true)));
    let secret = redis("-u redis://bob:secret@db/1 -t set");
    assert!(secret.settings.contains(&("-u".into(), "redis://bob:***@db/1".into(), true)));
    assert!(redis("-u redis://secret@db").settings.iter().all(|(_, value, _)| !value.contains("secret")));
    assert_eq!(valkey("--duration 5").duration_s, Some(5));
    assert_eq!(valkey("--duration 5").requests, None);
    assert_eq!(redis("-q --csv").output, Output::Csv);
    assert!(redis("get k").is_own);
    // What the original corrects.
    assert_eq!(redis("-d 0 -t set").tests[0].payload, 1);
    assert_eq!(
        (redis("-P 0").pipeline, redis("--precision -1").precision, redis("--precision 9").precision),
        (1, 3, 4)
    );
    assert_eq!((redis("--threads 0").threads, redis("--threads -2").threads), (None, None));
    assert_eq!(valkey("-- --x y").tests[0].title, "--x y");
}

#[test]
fn notes_are_the_originals_warnings() {
    for (line, expected) in [
        ("-t set ping", "WARNING: Option -t is ignored."),
        (
            "-t set -e",
            "WARNING: -e option has no effect. We now immediately exit on error to avoid false results.",
        ),
        ("-t set --threads 501", "WARNING: Too many threads, limiting threads to 500."),
        ("-t set,nosuch", "WARNING: -t has no test nosuch."),
        ("-t set --user bob", "WARNING: --user has no effect without -a."),
        ("-t set --cacert f", "WARNING: --cacert has no effect without --tls."),
        ("-t ping_inline", "PING_INLINE: PING is sent as an array of RESP, not as an inline command."),
    ] {
        assert_eq!(redis(line).notes, [expected], "{line}");
    }
    assert_eq!(redis("--threads 501").threads, Some(500));
}

#[test]
fn refusals_in_the_originals_words() {
    let missing = |word: &str| format!("Invalid option \"{word}\" or option argument missing");
    for (line, word) in [
        ("--bogus", "--bogus"),
        ("-n100", "-n100"),
        ("-n", "-n"),
        ("-u", "-u"),
        ("-r -x", "-x"),
        ("--", "--"),
        ("--rps 5", "--rps"),
        ("--duration 5", "--duration"),
        ("--dataset f", "--dataset"),
        ("-t set -", "-"),
    ] {
        assert_eq!(refusal(REDIS, line), missing(word), "{line}");
    }
    assert_eq!(refusal(VALKEY, "--cluster --rfr maybe"), missing("maybe"));
    for (line, expected) in [
        ("-p 65536", "Invalid server port."),
        ("-p 0", "Invalid server port."),
        ("-p -1", "Invalid server port."),
        ("-u redis://h:x", "Invalid server port."),
        ("-u http://h", "Invalid URI scheme"),
        ("-u h:6379", "Invalid URI scheme"),
        ("-u valkey://h", "Invalid URI scheme"),
        ("-u redis://a%4@h", "Incomplete URI encoding"),
        ("-u redis://a%zz@h", "Illegal character in URI encoding"),
    ] {
        assert_eq!(refusal(REDIS, line), expected, "{line}");
    }
    for line in ["-n 5 --duration 3", "--duration 3 -n 5"] {
        assert_eq!(refusal(VALKEY, line), "Options -n and --duration are mutually exclusive.", "{line}");
    }
}

#[test]
fn refusals_of_dyno() {
    for (line, expected) in [
        ("-n 0", "-n 0: expected a number of requests from 1"),
        ("-n 10k", "-n 10k: expected a whole number"),
        ("-c 0", "-c 0: expected a number of connections from 1"),
        ("-c -1", "-c -1: expected a number of connections from 1"),
        ("--precision 0", "--precision 0: expected 1 to 4 significant digits"),
        ("-r 1000000000001", "-r 1000000000001: expected at most 1000000000000, the numbers of 12 digits"),
        ("--dbnum -1", "--dbnum -1: expected a database's number from 0"),
        ("-k 0", "-k 0 is not available in dyno: it keeps its connections open"),
        ("-k 2", "-k 2: expected 1"),
        (
            "--enable-tracking",
            "--enable-tracking is not available in dyno: its connections cannot turn on CLIENT TRACKING",
        ),
        ("--tls-ciphers x", "--tls-ciphers is not available in dyno: its TLS chooses ciphers itself"),
        (
            "--tls-ciphersuites x",
            "--tls-ciphersuites is not available in dyno: its TLS chooses ciphers itself",
        ),
        (
            "--cacertdir d",
            "--cacertdir is not available in dyno: it reads certificates to trust from one file; use --cacert",
        ),
        ("--tls --cert c", "--cert needs --key"),
        ("--tls -s /run/r.sock", "--tls with -s is not available in dyno: it speaks TLS over TCP only"),
    ] {
        assert_eq!(refusal(REDIS, line), expected, "{line}");
    }
    for line in [
        "--dataset f",
        "--maxdocs 5",
        "--mptcp",
        "--rdma",
        "--fuzz",
        "--fuzz-mode x",
        "--fuzz-loglevel x",
        "-t fcall",
        "--num-keys-in-fcall 2",
        "--cluster --dbnum 1",
    ] {
        assert!(refusal(VALKEY, line).contains(" is not available in dyno: "), "{line}");
    }
    assert_eq!(refusal(VALKEY, "--rfr yes"), "--rfr needs --cluster");
    assert!(refusal(VALKEY, "--num-functions 0").starts_with("--num-functions 0: expected "));
    assert!(refusal(VALKEY, "--duration 0").starts_with("--duration 0: expected "));
}

#[test]
fn help_names_every_flag_and_version_is_a_line() {
    for program in [REDIS, VALKEY] {
        let Ok(ParsedCommandLine::Print { text, exit: 0 }) = read(program, &["-q", "--help", "--bogus"], b"")
        else {
            panic!()
        };
        for flag in super::super::flags::FLAGS.iter().filter(|flag| flag.is_of(program)) {
            assert!(
                text.lines().any(|line| line.split_whitespace().next() == Some(flag.name)),
                "{}",
                flag.name
            );
        }
        assert!(text.lines().all(|line| line.len() <= 130));
        for flag in ["-v", "--version"] {
            let Ok(ParsedCommandLine::Print { text, exit: 0 }) = read(program, &[flag], b"") else {
                panic!()
            };
            assert!(text.starts_with(&format!("{} ", program.name())) && text.lines().count() == 1, "{text}");
        }
    }
}
