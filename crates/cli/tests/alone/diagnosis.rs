//! The diagnosis against seeded truth on real servers: each cause is made several times, and must rank first in nine of ten.
//! Long, and in need of root, control groups and network namespaces: part of `make test-all` (`scripts/test-diagnosis.sh`).
//! `DYNO_DIAGNOSIS_RUNS` is the number of runs of each cause, 10 by default. A busy host adds causes of its own.

use dyno_testkit::behind::Behind;
use dyno_testkit::{Dyno, assert_exit, skip, stdout};
use serde_json::Value;

fn runs() -> usize {
    std::env::var("DYNO_DIAGNOSIS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

/// Makes the experiment so often and counts which rule ranks first; the first command that is proposed is run.
fn judge(text: &str, expected: Option<&str>) {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let all = runs();
    let mut firsts: Vec<String> = Vec::new();
    for number in 0..all {
        let out = format!("d{number}");
        let made = dyno.run(&["run", "e.yaml", "--out", &out, "--quiet"]);
        // A starved client makes a run invalid: it is late.
        dyno.assert_ran(&made);
        let explained = dyno.run(&["explain", &out, "--json"]);
        assert_exit(&explained, &[0]);
        let found: Value = serde_json::from_str(&stdout(&explained)).unwrap();
        let finding = &found["runs"][0]["findings"][0];
        firsts.push(finding["rule"].as_str().unwrap_or("nothing").to_owned());
        if number == 0 && finding.is_object() {
            let words = finding["command"].as_array().unwrap();
            let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
            dyno.assert_ran(&dyno.run(&words[1..]));
        }
    }
    let expected = expected.unwrap_or("nothing");
    let right = firsts.iter().filter(|first| *first == expected).count();
    assert!(right * 10 >= all * 9, "{expected} first in {right} of {all}: {firsts:?}");
}

const LOAD: &str = "workload: {ycsb: {workload: a, records: 10000}}";

#[test]
#[ignore = "long"]
fn a_cpu_quota() {
    judge(
        &format!(
            "server: {{kind: redis, limits: {{cpus: 0.3}}}}\n{LOAD}\nphases: {{measure: {{users: 16, duration: 5s}}}}\n"
        ),
        Some("cpu_quota"),
    );
}

#[test]
#[ignore = "long"]
fn a_hot_core() {
    judge(
        &format!("server: {{kind: redis}}\n{LOAD}\nphases: {{measure: {{users: 64, duration: 5s}}}}\n"),
        Some("single_core"),
    );
}

#[test]
#[ignore = "long"]
fn too_few_users() {
    judge(
        &format!("server: {{kind: redis}}\n{LOAD}\nphases: {{measure: {{users: 1, duration: 5s}}}}\n"),
        Some("few_users"),
    );
}

#[test]
#[ignore = "long"]
fn an_unloaded_control() {
    judge(
        &format!(
            "server: {{kind: redis}}\n{LOAD}\nphases: {{measure: {{rate: 300, connections: 16, duration: 5s}}}}\n"
        ),
        None,
    );
}

#[test]
#[ignore = "long"]
fn a_saturated_client() {
    let verifying = "{dataintegrity: \"true\", fieldcount: \"30\", readallfieldsbyname: \"true\"}";
    judge(
        &format!(
            "server: {{kind: redis}}\nworkload: {{ycsb: {{workload: c, records: 5000, properties: {verifying}}}}}\n\
             client: {{threads: 1}}\nphases: {{measure: {{users: 64, duration: 5s}}}}\n"
        ),
        Some("client"),
    );
}

/// Reads of records far larger than the memory that the process may use.
fn reads(limits: &str) -> String {
    format!(
        "target: \"sqlite:{{dir}}/bench.db\"\n\
         workload: {{ycsb: {{workload: c, records: 100000, properties: {{requestdistribution: uniform}}}}}}\n\
         client: {{limits: {{memory: 48MiB{limits}}}}}\n\
         phases: {{load: {{users: 1, keep: true}}, measure: {{users: 4, duration: 6s, warmup: 1s}}}}\n"
    )
}

#[test]
#[ignore = "long"]
fn a_limit_of_reads() {
    judge(&reads(", read_iops: 300"), Some("disk_reads"));
}

#[test]
#[ignore = "long"]
fn a_limit_of_memory() {
    judge(&reads(""), Some("page_cache"));
}

#[test]
#[ignore = "long"]
fn a_limit_of_bandwidth() {
    let way = "tbf rate 40mbit burst 32kbit latency 400ms";
    let Some(_behind) = Behind::start("", way) else { return skip("bandwidth: network namespaces") };
    judge(
        "target: redis://10.213.77.2:6379\nworkload: {ycsb: {workload: c, records: 1000}}\n\
         phases: {load: {users: 2}, measure: {users: 32, duration: 6s, warmup: 1s}}\n",
        Some("bandwidth"),
    );
}
