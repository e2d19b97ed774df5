//! Ladders of users and of rates whose truth is known, through the commands that a person types, to the sentence that
//! says what the maximum is.

use dyno_testkit::{Dyno, assert_exit, skip, stdout};
use serde_json::Value;

/// Imports a ladder of users (users, operations per second), with the response times that Little's law gives.
fn ladder(dyno: &Dyno, name: &str, levels: &[(f64, f64)]) {
    let mut table = "n,x,r\n".to_owned();
    levels.iter().for_each(|(users, x)| table += &format!("{users},{x},{}\n", users / x * 1e6));
    std::fs::write(dyno.path(&format!("{name}.csv")), table).unwrap();
    let file = format!("{name}.csv");
    let words =
        ["--users", "n", "--throughput", "x", "--response-us", "r", "--duration", "60s", "--out", name];
    assert_exit(&dyno.run(&[&["import", "csv", &file], &words[..]].concat()), &[0]);
}

#[test]
fn a_maximum_is_one_that_the_levels_do_not_contradict() {
    let dyno = Dyno::new();
    ladder(&dyno, "five", &[(1.0, 100.0), (4.0, 380.0), (16.0, 892.0), (64.0, 601.0), (128.0, 302.0)]);
    let output = stdout(&dyno.run(&["explain", "five"]));
    let expected = "the maximum is 892/s (one run) at 16 users, as measured; beyond, throughput falls, to 302/s at 128 users";
    assert!(output.contains(expected) && !output.contains("above the bound"), "{output}");
    assert_exit(&dyno.run(&["report", "five", "--format", "html", "--out", "five.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("five.html")).unwrap();
    assert!(
        page.contains("The maximum is 892/s at 16 users, as measured; beyond, throughput falls, to 302/s"),
        "{page}"
    );
    assert!(!page.contains("reaches a plateau"));

    let real = [
        (1.0, 210.0),
        (2.0, 395.0),
        (4.0, 640.0),
        (8.0, 850.0),
        (16.0, 930.0),
        (32.0, 947.0),
        (64.0, 720.0),
        (128.0, 587.0),
    ];
    ladder(&dyno, "real", &real);
    let output = stdout(&dyno.run(&["explain", "real"]));
    assert!(output.contains("beyond, throughput falls") && !output.contains("no fall"), "{output}");
    let found: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "real", "--json"]))).unwrap();
    let sweep = &found["sweeps"][0]["sweep"];
    // The interval is that of the value beside it.
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{sweep}"));
    let (low, high) = (number(&sweep["maximum_interval"][0]), number(&sweep["maximum_interval"][1]));
    let said = if sweep["peak"].is_null() { number(&sweep["best"][0]) } else { number(&sweep["peak"][1]) };
    assert!((900.0..1_000.0).contains(&said) && low <= said && said <= high, "{said}: {low} to {high}");
}

#[test]
fn stations_of_several_servers_are_not_held_against_a_bound_of_single_ones() {
    let dyno = Dyno::new();
    ladder(
        &dyno,
        "four",
        &[(1.0, 1_000.0), (2.0, 2_000.0), (4.0, 4_000.0), (16.0, 4_000.0), (32.0, 4_000.0)],
    );
    let output = stdout(&dyno.run(&["explain", "four"]));
    assert!(
        output.contains(
            "the maximum is 4,000/s (one run) at 4 users, as measured; the levels beyond show no fall"
        ) && output.contains("single servers/s"),
        "{output}"
    );
    assert!(output.contains("stations of several do more than"), "{output}");
    assert!(!output.contains("above the bound"), "{output}");
}

/// 1,008/s on a server of 1,000/s: nearly all of it is done within the run, and it is not kept.
const RATES: &str = "\
target: \"sim:?service=1ms&distribution=exponential\"
workload: {ycsb: {workload: c, records: 100}}
phases: {load: {when: never}, measure: {duration: 120s, warmup: 0s}}
";

#[test]
fn a_rate_whose_queue_grows_is_not_kept_and_the_capacity_has_an_interval() {
    let dyno = Dyno::new();
    let text =
        format!("{RATES}factors: {{phases.measure.rate: [200, 400, 600, 800, 900, 1012]}}\nrepetitions: 3\n");
    std::fs::write(dyno.path("rates.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "rates.yaml", "--out", "rates", "--quiet"]), &[0]);
    let output = stdout(&dyno.run(&["explain", "rates"]));
    assert!(output.contains("900/s is kept; of 1,012/s "), "{output}");
    assert!(output.contains("and its queue grows") && output.contains("/s (95 % interval "), "{output}");
    let found: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "rates", "--json"]))).unwrap();
    let fit = &found["rates"][0]["rates"]["fit"];
    let (low, high) = (fit["interval"][0].as_f64().unwrap(), fit["interval"][1].as_f64().unwrap());
    assert!(low <= 1_010.0 && high >= 990.0 && high - low < 60.0, "{fit}");
    assert_exit(&dyno.run(&["report", "rates", "--format", "html", "--out", "rates.html"]), &[0]);
    assert!(std::fs::read_to_string(dyno.path("rates.html")).unwrap().contains("/s (95 % interval "));
}

#[test]
fn a_search_for_the_highest_rate_does_not_end_above_the_capacity() {
    let dyno = Dyno::new();
    let strategy =
        "strategy: {highest_rate: {objectives: [\"errors < 1%\"], from: 800, to: 2000, precision: 0.005}}\n";
    std::fs::write(dyno.path("search.yaml"), format!("{RATES}{strategy}").replace("120s", "600s")).unwrap();
    assert_exit(&dyno.run(&["run", "search.yaml", "--out", "search", "--quiet"]), &[0]);
    let text = std::fs::read_to_string(dyno.path("search/journal.jsonl")).unwrap();
    let ended = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let runs: Vec<Value> = ended.filter(|line| line["event"] == "ended").collect();
    let above: Vec<&Value> = runs.iter().filter(|run| run["value"].as_f64().unwrap() > 1_008.0).collect();
    assert!(!above.is_empty() && above.iter().all(|run| run["overloaded"] == true), "{runs:?}");
}

/// Each pair is asked for the rate; what is kept, and what is done beside it, is of all pairs.
#[test]
fn the_rate_of_several_pairs_is_that_of_all() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("rates of several pairs");
    }
    let dyno = Dyno::new();
    let text = "server: {kind: redis, instances: 2}\nworkload: {ycsb: {workload: c, records: 200}}\n\
                phases: {measure: {duration: 2s}}\nfactors:\n  phases.measure.rate: [100, 200]\n";
    std::fs::write(dyno.path("pairs.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "pairs.yaml", "--out", "pairs", "--quiet"]));
    let output = stdout(&dyno.run(&["explain", "pairs"]));
    let rates: Vec<&str> = output
        .lines()
        .skip_while(|line| !line.contains("rate/s"))
        .skip(1)
        .map_while(|line| line.split_whitespace().next().filter(|first| first.parse::<f64>().is_ok()))
        .collect();
    assert_eq!(rates, ["200", "400"], "{output}");
}
