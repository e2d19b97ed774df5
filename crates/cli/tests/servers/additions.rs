//! What dyno adds to YCSB: records that expire, inserts that go on where an earlier run ended, short intervals, and a
//! bound of single samples.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, stderr, stdout};
use std::process::Output;

/// `dyno ycsb MODE redis` on workload `letter`, with further properties.
fn ycsb(dyno: &Dyno, server: &RedisProcess, mode: &str, letter: &str, properties: &[&str]) -> Output {
    let port = format!("redis.port={}", server.port);
    let workload = format!("workloads/workload{letter}");
    let mut arguments = vec!["ycsb", mode, "redis", "-P", &workload, "-threads", "4"];
    arguments.extend(["-p", "redis.host=127.0.0.1", "-p", &port]);
    properties.iter().for_each(|property| arguments.extend(["-p", property]));
    dyno.run(&arguments)
}

fn expiring(server: &RedisProcess) -> u64 {
    let keyspace = server.cli(&["INFO", "keyspace"]);
    let found = keyspace.split("expires=").nth(1).and_then(|rest| rest.split(',').next());
    found.map_or(0, |digits| digits.parse().unwrap())
}

#[test]
fn every_write_gives_a_record_its_time_to_live() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("time to live") };
    let dyno = Dyno::new();
    for layout in ["redis.layout=hash", "redis.layout=string"] {
        let fields = "fieldcount=1";
        for extra in ["batchsize=1", "batchsize=7"] {
            server.cli(&["FLUSHALL"]);
            dyno.assert_ran(&ycsb(&dyno, &server, "load", "a", &["redis.ttl=1h", layout, extra, fields]));
            assert_eq!(expiring(&server), 1000, "{layout} {extra}");
            assert!(server.cli(&["PTTL", "user6284781860667377211"]).parse::<i64>().unwrap() > 3_500_000);
        }
        // A record without a time to live gets one with its first update.
        server.cli(&["FLUSHALL"]);
        dyno.assert_ran(&ycsb(&dyno, &server, "load", "a", &[layout, fields]));
        assert_eq!(expiring(&server), 0);
        let updates = ["redis.ttl=1h", layout, fields, "updateproportion=1", "readproportion=0"];
        dyno.assert_ran(&ycsb(&dyno, &server, "run", "a", &updates));
        assert!((1..1000).contains(&expiring(&server)), "{layout}");
    }
    let refused = ycsb(&dyno, &server, "run", "a", &["redis.ttl=60"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("redis.ttl=60: expected a duration with its unit"));
}

#[test]
fn inserts_go_on_where_earlier_runs_have_ended() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("resumed inserts") };
    let dyno = Dyno::new();
    dyno.assert_ran(&ycsb(&dyno, &server, "load", "d", &[]));
    let run = |extra: &[&str]| {
        let before: u64 = server.cli(&["ZCARD", "_indices"]).parse().unwrap();
        let mut all = vec!["operationcount=5000", "dyno.insert.resume=true"];
        all.extend(extra);
        let output = ycsb(&dyno, &server, "run", "d", &all);
        dyno.assert_ran(&output);
        let text = stdout(&output);
        let inserts = text.lines().find_map(|line| line.strip_prefix("[INSERT], Return=OK, "));
        let inserts: u64 = inserts.unwrap_or_else(|| panic!("no inserts: {text}")).parse().unwrap();
        assert!(!text.contains("NOT_FOUND"), "{text}");
        let after: u64 = server.cli(&["ZCARD", "_indices"]).parse().unwrap();
        assert_eq!(after - before, inserts, "no key is inserted twice");
        (stderr(&output), inserts)
    };
    let (said, first) = run(&[]);
    assert!(said.contains("0 inserts of earlier runs"), "{said}");
    let (said, second) = run(&[]);
    assert!(said.contains(&format!("{first} inserts of earlier runs")), "{said}");
    // Gaps that a killed run has left are passed over.
    let all = server.cli(&["DBSIZE"]).parse::<u64>().unwrap() - 1 - 1000;
    assert_eq!(all, first + second);
    let (said, _) = run(&[]);
    assert!(said.contains(&format!("{all} inserts of earlier runs")), "{said}");
}

#[test]
fn clients_resume_their_own_inserts() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("resumed inserts of several clients") };
    let dyno = Dyno::new();
    dyno.assert_ran(&ycsb(&dyno, &server, "load", "d", &[]));
    let mut done = [0, 0];
    for round in 0..2 {
        for (client, id) in ["dyno.client.id=0", "dyno.client.id=1"].into_iter().enumerate() {
            let more = if client == 0 { "operationcount=4000" } else { "operationcount=2000" };
            let output = ycsb(
                &dyno,
                &server,
                "run",
                "d",
                &[more, id, "dyno.client.count=2", "dyno.insert.resume=true"],
            );
            dyno.assert_ran(&output);
            let expected = format!("{} inserts of earlier runs", done[client]);
            assert!(stderr(&output).contains(&expected), "round {round}: {}", stderr(&output));
            let text = stdout(&output);
            let inserts = text.lines().find_map(|line| line.strip_prefix("[INSERT], Return=OK, "));
            done[client] += inserts.unwrap().parse::<u64>().unwrap();
        }
    }
    assert_eq!(server.cli(&["ZCARD", "_indices"]), (1000 + done[0] + done[1]).to_string());
}

#[test]
fn intervals_may_be_shorter_than_a_second() {
    let dyno = Dyno::new();
    let run = ["run", "null:", "--duration", "1s", "--warmup", "250ms", "--interval", "50ms", "--out", "d"];
    dyno.assert_ran(&dyno.run(&run));
    let series = std::fs::read_to_string(dyno.path("d/series.csv")).unwrap();
    let rows: Vec<&str> = series.lines().filter(|line| line.contains(",measure,TOTAL,")).collect();
    assert!((18..=22).contains(&rows.len()), "{series}");
    assert!(rows.iter().any(|row| row.starts_with("0.750,")), "{series}");
    let of_rows: u64 = rows.iter().map(|row| row.split(',').nth(3).unwrap().parse::<u64>().unwrap()).sum();
    let summary = dyno.summary("d");
    assert_eq!(dyno_testkit::phase(&summary, "measure")["completed"], of_rows, "as throughput counts");
    // The report is the same from the files alone.
    dyno.assert_ran(&dyno.run(&["report", "d"]));
    for bad in ["3ms", "300ms", "2s"] {
        let refused = dyno.run(&["run", "null:", "--interval", bad]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains("10ms to 1s"), "{}", stderr(&refused));
    }
}

#[test]
fn samples_beyond_the_bound_are_told_and_the_report_stays_exact() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("bound of samples") };
    let dyno = Dyno::new();
    dyno.assert_ran(&ycsb(&dyno, &server, "load", "c", &[]));
    let output = ycsb(&dyno, &server, "run", "c", &["measurementtype=raw", "dyno.samples=100"]);
    dyno.assert_ran(&output);
    assert!(stderr(&output).contains("only the first 100 single samples were kept"), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("[READ], Operations, 1000\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("READ,")).count(), 100, "{text}");
}
