//! The log: on stderr where it is asked for, in the run directory always, of workers too, without secrets.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;
use std::path::Path;

const RUN: [&str; 9] =
    ["run", "sim:?service=1ms", "--workload", "c", "--duration", "2s", "--out", "o", "--quiet"];

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// Lines of a run's log on stderr: they begin with a time of day.
fn shown(dyno: &Dyno, arguments: &[&str], filter: Option<&str>) -> Vec<String> {
    let mut command = dyno.command(arguments);
    command.envs(filter.map(|filter| ("DYNO_LOG", filter)));
    let output = command.output().unwrap();
    dyno.assert_ran(&output);
    let is_logged = |line: &&str| line.get(2..3) == Some(":") && line.get(8..9) == Some(".");
    stderr(&output).lines().filter(is_logged).map(str::to_owned).collect()
}

#[test]
fn nothing_is_shown_without_being_asked_for_and_more_with_every_v() {
    let with = |more: &[&str], filter: Option<&str>| shown(&Dyno::new(), &[&RUN[..], more].concat(), filter);
    assert_eq!(with(&[], None), Vec::<String>::new());
    let (steps, details) = (with(&["-v"], None), with(&["-vv"], None));
    assert!(
        steps.iter().any(|line| line.contains("info  controller session: a phase is prepared phase=measure")),
        "{steps:#?}"
    );
    assert!(steps.iter().all(|line| !line.contains(" debug ")), "{steps:#?}");
    assert!(details.len() >= steps.len(), "{steps:#?}\n{details:#?}");
    let chosen = with(&[], Some("off,dyno_session=info"));
    assert!(!chosen.is_empty() && chosen.iter().all(|line| line.contains(" session: ")), "{chosen:#?}");
}

#[test]
fn a_wrong_filter_is_a_wrong_usage_and_says_where() {
    let dyno = Dyno::new();
    for arguments in [&RUN[..], &["ycsb", "run", "basic", "-p", "recordcount=1"]] {
        let output =
            dyno.command(arguments).env("DYNO_LOG", "info,dyno_hosts::remote=loud").output().unwrap();
        assert_exit(&output, &[2]);
        let said = stderr(&output);
        assert!(said.starts_with("error: DYNO_LOG: \"dyno_hosts::remote=loud\" (at character 6"), "{said}");
        assert!(said.contains("error, warn, info, debug"), "{said}");
    }
    assert!(!dyno.path("o").exists());
}

#[test]
fn drop_ins_keep_their_own_v() {
    let dyno = Dyno::new();
    let help = stdout(&dyno.run(&["pocdriver", "--help"]));
    assert!(!help.contains("DYNO_LOG"), "{help}");
    assert!(stdout(&dyno.run(&["run", "--help"])).contains("DYNO_LOG"));
    assert!(stdout(&dyno.run(&["prove", "ingest", "--help"])).contains("DYNO_LOG"));
}

#[test]
fn the_run_directory_has_the_phases_in_order_on_the_runs_clock() {
    let dyno = Dyno::new();
    dyno.assert_ran(&dyno.run(&[
        "run",
        "sqlite:s.db",
        "-n",
        "500",
        "--duration",
        "2s",
        "--out",
        "o",
        "--quiet",
    ]));
    let log = lines(&dyno.path("o/log.jsonl"));
    let phases: Vec<(&str, &str)> = log
        .iter()
        .filter(|line| !line["fields"]["phase"].is_null() && text(line, "level") == "info")
        .map(|line| (text(&line["fields"], "phase"), text(line, "message")))
        .collect();
    let (prepared, begins, ended) = ("a phase is prepared", "a phase begins", "a phase has ended");
    let expected = [
        ("load", prepared),
        ("load", begins),
        ("load", ended),
        ("measure", prepared),
        ("measure", begins),
        ("measure", "the warm-up is over"),
        ("measure", ended),
    ];
    assert_eq!(phases, expected);
    let times: Vec<i64> = log.iter().map(|line| line["t_ns"].as_i64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let epoch = |line: &Value| line["unix_ns"].as_i64().unwrap() - line["t_ns"].as_i64().unwrap();
    assert!(log.iter().all(|line| epoch(line) == epoch(&log[0])));
    assert_eq!(text(&log[0], "message"), "dyno begins");
    assert!(log[0]["t_ns"].as_i64().unwrap() < 0, "it begins before the run directory is there");
    let end = log.last().unwrap();
    assert_eq!((text(end, "message"), end["t_ns"].as_i64().unwrap() > 1_000_000_000), ("dyno ends", true));
    assert!(log.iter().all(|line| text(line, "source") == "controller"));
}

const EXPERIMENT: &str = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 100}}\nclient: {workers: 2}\n\
                          phases: {load: {when: never}, measure: {users: 4, duration: 1s, warmup: 0s}}\n";

#[test]
fn both_workers_of_an_experiment_log_into_its_run() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("x.yaml"), EXPERIMENT).unwrap();
    let output = dyno.run(&["run", "x.yaml", "--out", "o", "--quiet", "-vv"]);
    dyno.assert_ran(&output);
    let log = lines(&dyno.path("o/runs/cell0001-rep01/log.jsonl"));
    for worker in ["worker-1", "worker-2"] {
        let own: Vec<&Value> = log.iter().filter(|line| text(line, "source") == worker).collect();
        let said: Vec<&str> = own.iter().map(|line| text(line, "message")).collect();
        let expected = [
            "dyno begins",
            "opens its target",
            "its target is open",
            "connects its users",
            "its users have connected",
            "its phase has ended",
        ];
        assert_eq!(said, expected, "{worker}");
        let times: Vec<i64> = own.iter().map(|line| line["t_ns"].as_i64().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(stderr(&output).contains(&format!(" info  {worker} remote: opens its target")));
    }
    assert!(log.iter().any(|line| text(line, "message") == "workers begin together"));
}

#[test]
fn a_run_that_never_had_a_directory_leaves_its_log_beside() {
    let dyno = Dyno::new();
    let text_of = "target: 'redis://127.0.0.1:1'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                   phases: {measure: {users: 1, duration: 1s}}\n";
    std::fs::write(dyno.path("x.yaml"), text_of).unwrap();
    let output = dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]);
    assert_exit(&output, &[3]);
    let log = lines(&dyno.path("o/runs/cell0001-rep01.server/log.jsonl"));
    let failed = log.iter().find(|line| text(line, "message") == "this worker cannot go on").unwrap();
    assert_eq!((text(failed, "source"), text(failed, "level")), ("worker-1", "error"));
    assert!(text(&failed["fields"], "reason").contains("127.0.0.1:1"), "{failed}");
    assert!(log.iter().any(|line| text(line, "message") == "the run has failed"));
}

/// Only the server may learn a password in a URI: it stands nowhere, however much is logged.
#[test]
fn no_line_has_a_password() {
    const SECRET: &str = "Sesame-0pen!";
    let dyno = Dyno::new();
    let uri = format!("redis://me:{SECRET}@127.0.0.1:1/0");
    let mut outputs = Vec::new();
    for arguments in [&["run", &uri, "-vv", "--out", "r"][..], &["run", "x.yaml", "--out", "o", "-vv"]] {
        std::fs::write(dyno.path("x.yaml"), EXPERIMENT.replace("null:", &uri)).unwrap();
        let output = dyno.command(arguments).env("DYNO_LOG", "trace").output().unwrap();
        assert_exit(&output, &[3]);
        outputs.push(stderr(&output) + &stdout(&output));
    }
    assert!(outputs.iter().all(|text| text.contains("redis://me:***@127.0.0.1:1")), "{outputs:#?}");
    std::fs::remove_file(dyno.path("x.yaml")).unwrap();
    let mut folders = vec![dyno.path(".")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            files += 1;
            outputs.push(String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
        }
    }
    assert!(files > 0);
    outputs.iter().for_each(|text| assert!(!text.contains(SECRET), "{text}"));
}
