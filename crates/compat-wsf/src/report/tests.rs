use crate::report::client::ClientKpis;
use crate::report::client::client_log;
use crate::report::client::read_log;
use crate::report::grammar::Kpi;
use crate::report::grammar::Kpis;
use crate::report::grammar::read_kpis;
use crate::report::kpis::CombinedKpis;
use crate::report::kpis::kpi_text;
use crate::report::list::Axes;
use crate::report::list::IterationKpis;
use crate::report::list::Listing;
use crate::report::list::csv;
use crate::report::list::list;
use crate::report::list::pivot;
use dyno_rundir::schema::{Phase, Summary};
use serde_json::json;
use std::collections::BTreeMap;

/// A phase with one operation.
fn phase(name: &str, metric: &str, seconds: f64, count: u64, p99: f64) -> Phase {
    let latency = json!({
        "count": count, "mean_us": 100.5, "min_us": 7.936, "max_us": 9_000.0,
        "percentiles_us": {"p50": 90.0, "p95": 200.0, "p99": p99},
    });
    serde_json::from_value(json!({
        "name": name, "seconds": seconds, "arrivals": count, "outcomes": {"ok": count - 1, "not_found": 1},
        "throughput": (count - 1) as f64 / seconds,
        "metrics": [{"name": metric, "outcomes": {"ok": count - 1, "not_found": 1}, "service": latency}],
        "late_replies": 0, "reconnects": 0, "redirects": 0, "backlog": 0, "drops": {},
        "client": {"threads": 1, "users": 1, "pipeline": 1, "user_cpu_s": 0.0, "system_cpu_s": 0.0,
            "cpu_us_per_op": 0.0, "busy_share": null, "peak_resident_bytes": 0, "pinned": true, "steal_share": 0.0},
        "errors": {},
    }))
    .unwrap()
}

fn summary(phases: Vec<Phase>, pairs: Vec<Vec<Phase>>) -> Summary {
    let pairs: Vec<serde_json::Value> = pairs
        .into_iter()
        .enumerate()
        .map(|(at, phases)| json!({"number": at + 1, "target": "mongodb://h", "phases": phases}))
        .collect();
    serde_json::from_value(json!({
        "version": 1, "dyno": "0", "status": "complete", "target": "mongodb://h", "database": "d", "started": "s",
        "title": "t", "verdict": {"trust": "valid", "reasons": [], "checks": []}, "thresholds": [],
        "phases": phases, "pairs": pairs,
    }))
    .unwrap()
}

#[test]
fn a_clients_log_is_ycsbs_and_is_read_again() {
    let log = client_log(&[
        phase("load", "INSERT", 2.0, 1000, 3171.9),
        phase("measure", "READ", 4.0, 20_000_000, 1672.0),
    ]);
    assert_eq!(
        log,
        "[LOAD PHASE]\n[OVERALL], RunTime(ms), 2000\n[OVERALL], Throughput(ops/sec), 500.0\n[INSERT], Operations, 1000\n\
         [INSERT], AverageLatency(us), 100.5\n[INSERT], MinLatency(us), 7\n[INSERT], MaxLatency(us), 9000\n\
         [INSERT], 95thPercentileLatency(us), 200\n[INSERT], 99thPercentileLatency(us), 3171\n[INSERT], Return=OK, 999\n\
         [INSERT], Return=NOT_FOUND, 1\n[RUN PHASE]\n[OVERALL], RunTime(ms), 4000\n[OVERALL], Throughput(ops/sec), 5000000.0\n\
         [READ], Operations, 20000000\n[READ], AverageLatency(us), 100.5\n[READ], MinLatency(us), 7\n\
         [READ], MaxLatency(us), 9000\n[READ], 95thPercentileLatency(us), 200\n[READ], 99thPercentileLatency(us), 1672\n\
         [READ], Return=OK, 19999999\n[READ], Return=NOT_FOUND, 1\nbenchmark-finish\n"
    );
    let read = read_log(&log);
    assert_eq!(read.run.as_ref().unwrap().throughput, Some(5_000_000.0));
    assert_eq!(read.load.unwrap().operation("INSERT").unwrap().p99, Some(3171.0));
    assert_eq!(read.run.unwrap().failed(), 1);
}

/// A log as YCSB leaves it, with the marker of the later version and lines whose figures no report takes.
const ORIGINAL: &str = "[LOAD_PHASE]\nDBWrapper: report latency for each error is false\n\
    [OVERALL], RunTime(ms), 4768\n[OVERALL], Throughput(ops/sec), 838.9261744966443\n[TOTAL_GCs], Count, 3\n\
    [CLEANUP], Operations, 10\n[CLEANUP], AverageLatency(us), 389.9\n[INSERT], AverageLatency(us), 7694.857\n\
    [INSERT], MinLatency(us), 741\n[INSERT], MaxLatency(us), 685055\n[INSERT], 99thPercentileLatency(us), 3171\n\
    [INSERT], Return=OK, 4000\n[RUN_PHASE]\n[OVERALL], Throughput(ops/sec), 1.234567890125E7\n\
    [READ], AverageLatency(us), 966.01960414075\n[READ], MinLatency(us), 204\n[READ], MaxLatency(us), 108799\n\
    [READ], 99thPercentileLatency(us), 1672\n[CLEANUP], AverageLatency(us), 603.7\n\
    [UPDATE], AverageLatency(us), 948.4432182985554\n[UPDATE], MinLatency(us), 221\n[UPDATE], MaxLatency(us), 106367\n\
    [UPDATE], 99thPercentileLatency(us), 1598\nbenchmark-finish\n";

#[test]
fn the_text_of_one_client() {
    let text = kpi_text(&[read_log(ORIGINAL)], None);
    assert_eq!(
        text,
        "Counter of [LOAD PHASE]: 0\n[OVERALL] Throughput(ops/sec):  838.9261744966443\n\
         [CLEANUP], AverageLatency(us):  389.9\n[INSERT] AverageLatency(us):  7694.857\n[INSERT] MinLatency(us):  741\n\
         [INSERT] MaxLatency(us):  685055\n[INSERT] 99thPercentileLatency(us):  3171\nCounter of [RUN PHASE]: 0\n\
         [OVERALL] Throughput(ops/sec):  12345678.90125\n[READ] AverageLatency(us):  966.01960414075\n\
         [READ], MinLatency(us): 204\n[READ], MaxLatency(us): 108799\n[READ], 99thPercentileLatency(us): 1672\n\
         [CLEANUP], AverageLatency(us):  603.7\n[UPDATE] AverageLatency(us):  948.4432182985554\n\
         [UPDATE], MinLatency(us):  221\n[UPDATE], MaxLatency(us):  106367\n[UPDATE], 99thPercentileLatency(us):  1598\n\
         Summary:\n\
         # Mean of [RUN PHASE] P99 insert latency(us): no insert in the mix\n\
         *Mean of [RUN PHASE] P99 read latency(us): 1672\n*Mean of [RUN PHASE] P99 update latency(us): 1598\n\
         Mean of [run phase] Throughput(ops/sec): 12345678.90125\n\
         *Sum of [run phase] Throughput(ops/sec): 12345678.90125\nOperations of [RUN PHASE] that failed: 0\n"
    );
    let read = read_kpis(&text);
    let starred: Vec<(&str, f64)> =
        read.kpis.iter().filter(|kpi| kpi.primary).map(|kpi| (kpi.name.as_str(), kpi.value)).collect();
    // Above a million the original's reading loses the exponent.
    assert_eq!(starred[2], ("Sum of [run phase] Throughput(ops/sec)", 12_345_678.901_25));
    assert_eq!(starred.len(), 3);
}

#[test]
fn sums_are_over_the_common_window_and_percentiles_are_merged() {
    // One client needs 2 s, the other 4 s, for 1,000 operations each: 750/s are added up, 700/s were done while both worked.
    let pairs = vec![
        vec![phase("measure", "READ", 2.0, 1000, 100.0)],
        vec![phase("measure", "READ", 4.0, 1000, 300.0)],
    ];
    let whole = phase("measure", "READ", 4.0, 2000, 290.0);
    let summary = summary(vec![whole], pairs);
    let seconds = BTreeMap::from([(0, 900), (1, 500), (2, 300), (3, 298)]);
    let together = CombinedKpis::of(&summary, &seconds);
    assert_eq!((together.throughput, together.window_s, together.whole), (Some(700.0), 2.0, false));
    let clients: Vec<ClientKpis> =
        summary.pairs.iter().map(|pair| read_log(&client_log(&pair.phases))).collect();
    let text = kpi_text(&clients, Some(&together));
    let summary = text.split("Summary:\n").nth(1).unwrap();
    assert_eq!(
        summary,
        "# Mean of [RUN PHASE] P99 insert latency(us): no insert in the mix\n\
         *Mean of [RUN PHASE] P99 read latency(us): 200\n\
         *P99 of [RUN PHASE] read latency of all clients(us): 290 # of all latencies; a mean of percentiles is none\n\
         # Mean of [RUN PHASE] P99 update latency(us): no update in the mix\n\
         Mean of [run phase] Throughput(ops/sec): 350\n\
         *Sum of [run phase] Throughput(ops/sec): 700 # over the 2 s in which all clients were at work\n\
         Mean of [run phase] Throughput, clients by themselves(ops/sec): 375\n\
         Sum of [run phase] Throughput, clients by themselves(ops/sec): 750 # as the original adds it up\n\
         Operations of [RUN PHASE] that failed: 1\n"
    );
}

#[test]
fn the_grammar_of_kpis() {
    let read = read_kpis(
        "# comment: 5\n## THREADS: 64\nplain (s): 1.5\n*star (ops/s): 1.23457e+06 # why: 3\nno number: x\nnothing\n",
    );
    assert_eq!(read.tunables, [("THREADS".to_owned(), "64".to_owned())]);
    let kpi = |name: &str, value, primary| Kpi { name: name.into(), value, primary };
    assert_eq!(read.kpis, [kpi("plain (s)", 1.5, false), kpi("star (ops/s)", 1_234_570.0, true)]);
}

/// What awk makes 1.23457e+06 of, and what its reader then takes for 1.23457.
#[test]
fn figures_above_a_million_keep_their_digits() {
    let text = list(&listing(&[1_234_568.3]), false, false, None);
    assert!(text.contains("*rate (ops/s): 1234568.3\n"), "{text}");
    assert!(csv(&[listing(&[1_234_568.3])], true, false).contains("1234568.3"));
    let read = read_kpis("*a: 1234568.3\nb: 1.23457e+06\nc: 1.5E-3\n").kpis;
    assert_eq!(read.iter().map(|kpi| kpi.value).collect::<Vec<_>>(), [1_234_568.3, 1_234_570.0, 0.0015]);
    let mut phases =
        vec![phase("load", "INSERT", 2.0, 10, 1.0), phase("measure", "READ", 3.0, 3_703_705, 1.0)];
    phases[1].throughput = 1_234_568.3;
    let clients = [read_log(&client_log(&phases))];
    let text = kpi_text(&clients, None);
    assert!(text.contains("123456") && !text.contains("e+06"), "{text}");
}

fn listing(values: &[f64]) -> Listing {
    let iterations = values
        .iter()
        .enumerate()
        .map(|(at, value)| IterationKpis {
            name: format!("itr-{}", at + 1),
            kpis: read_kpis(&format!("*rate (ops/s): {value}\nother: 3\n")),
            passed: *value > 0.0,
        })
        .collect();
    Listing {
        name: "logs-x".into(),
        parameters: vec![("THREADS".into(), "1,2".into())],
        host: Vec::new(),
        iterations,
    }
}

#[test]
fn statistics_over_iterations() {
    let text = list(&listing(&[1.0, 4.0, 16.0, 64.0, -1.0]), false, true, None);
    assert!(text.starts_with("logs-x:\n## THREADS: 1,2\n#itr-1\n*rate (ops/s): 1\n#itr-2\n"), "{text}");
    assert!(text.contains("#itr-5 (failed: not part of the statistics)"), "{text}");
    assert!(text.contains("avg rate (ops/s): 21.25\n"), "{text}");
    assert!(text.contains("med rate (ops/s): 10 # the original's, the upper one: 16\n"), "{text}");
    assert!(text.contains("geo rate (ops/s): 8.0") || text.contains("geo rate (ops/s): 7.99"), "{text}");
    let deviation = text.lines().find(|line| line.starts_with("std")).unwrap();
    assert!(deviation.contains("29.2") && deviation.contains("correction: 25.3"), "{deviation}");
    let far = list(&listing(&[10.0, 11.0, 10.0, 9.0, 10.0, 10.0, 10.0, 99.0]), false, false, Some(2.0));
    assert!(far.contains("# 1 of 8 beyond 2 sigma\navg without outliers, rate (ops/s): 10\n"), "{far}");
    assert!(!list(&listing(&[1.0]), false, false, None).contains("std"));
    assert!(list(&listing(&[1.0]), true, false, None).contains("\nother: 3\n"));
}

#[test]
fn a_table_of_iterations() {
    let table = csv(&[listing(&[1.5, 2.0])], true, true);
    assert_eq!(
        table,
        "testcase,logs-x,logs-x\niteration,itr-1,itr-2\nstatus,passed,passed\nTHREADS,\"1,2\",\"1,2\"\n\
         *rate (ops/s),1.5,2\nother,3,3\n"
    );
}

#[test]
fn a_table_by_two_parameters() {
    let of = |threads: &str, pairs: &str, value: f64| {
        let kpi = Kpi { name: "Throughput".into(), value, primary: true };
        let one = |passed| IterationKpis {
            name: "itr-1".into(),
            kpis: Kpis { kpis: vec![kpi.clone()], ..Kpis::default() },
            passed,
        };
        let parameters = vec![("THREADS".into(), threads.into()), ("PAIRS".into(), pairs.into())];
        let failed = IterationKpis { kpis: Kpis::default(), ..one(false) };
        Listing { name: "x".into(), parameters, host: Vec::new(), iterations: vec![one(true), failed] }
    };
    let all = [of("16", "1", 5.0), of("2", "1", 3.0), of("2", "2", 4.0), of("2", "2", 6.0)];
    let axes = Axes { row: "THREADS", column: "PAIRS", tables: &[] };
    let table = pivot(&all, axes, false).unwrap();
    assert_eq!(table, "Throughput\nTHREADS / PAIRS,1,2\n2,3,5\n16,5,\n\n");
    let apart = pivot(&all, Axes { tables: &["PAIRS"], ..axes }, false).unwrap();
    assert!(apart.contains("\"Throughput, PAIRS=1\"\nTHREADS / PAIRS,1\n2,3\n16,5\n"), "{apart}");
    assert_eq!(
        pivot(&all, Axes { row: "CORES", ..axes }, false).unwrap_err().to_string(),
        "CORES: expected PAIRS, THREADS"
    );
}
