//! `--junit`: results as CI systems read them, beside the exit code.

use dyno_testkit::{Dyno, assert_exit, stderr};

/// Class, name and end of each case.
fn cases(dyno: &Dyno, file: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(dyno.path(file)).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(document.root_element().has_tag_name("testsuites"));
    let found = document.descendants().filter(|node| node.has_tag_name("testcase"));
    found
        .map(|case| {
            let end = case.children().find(|node| node.is_element() && !node.has_tag_name("system-out"));
            let of = |name: &str| case.attribute(name).unwrap().to_owned();
            (of("classname"), of("name"), end.map_or("passed", |node| node.tag_name().name()).to_owned())
        })
        .collect()
}

fn ends<'a>(cases: &'a [(String, String, String)], end: &str) -> Vec<&'a str> {
    cases.iter().filter(|case| case.2 == end).map(|case| case.1.as_str()).collect()
}

const SIM: [&str; 6] = ["run", "sim:?service=100us", "-u", "2", "--ops", "20000"];

#[test]
fn a_run_has_a_case_for_each_threshold_and_claim() {
    let dyno = Dyno::new();
    let missed = ["--require", "p99(read) < 5ms", "--require", "throughput > 1000000", "--no-out"];
    let run = dyno.run(&[&SIM[..], &missed, &["-q", "--junit", "j.xml"]].concat());
    assert_exit(&run, &[4]);
    let found = cases(&dyno, "j.xml");
    let names: Vec<&str> = found.iter().map(|case| case.1.as_str()).collect();
    let expected = [
        "run",
        "threshold p99(read) < 5ms",
        "threshold throughput > 1000000",
        "claim throughput",
        "claim median",
        "claim tail",
    ];
    // Of a simulation no resource is watched.
    assert_eq!(names, expected);
    assert_eq!(ends(&found, "failure"), ["threshold throughput > 1000000"]);
    assert_eq!(ends(&found, "passed").len(), 5);
    // The same without what it missed.
    let run = dyno.run(&[&SIM[..], &missed[..2], &["--no-out", "-q", "--junit", "j.xml"]].concat());
    assert_exit(&run, &[0]);
    let found = cases(&dyno, "j.xml");
    assert_eq!(ends(&found, "passed").len(), found.len());
    // Invalid: half of what is due does not fit the queue.
    let overload =
        ["run", "sim:?service=1ms", "--rate", "5000", "-c", "1", "--queue", "10", "--duration", "2s"];
    let run = dyno.run(&[&overload[..], &["--no-out", "-q", "--junit", "j.xml"]].concat());
    assert_exit(&run, &[0, 5]);
    let found = cases(&dyno, "j.xml");
    assert_eq!(!ends(&found, "failure").is_empty(), run.status.code() == Some(5), "{found:?}");
}

#[test]
fn a_command_that_fails_leaves_an_error() {
    let dyno = Dyno::new();
    for (words, code) in [
        (&["run", "redis://127.0.0.1:1", "--ops", "10", "--no-out"][..], 3),
        (&["run", "null:", "--ops", "many", "--no-out"], 2),
        (&["run", "none.yaml"], 2),
        (&["resume", "none"], 2),
    ] {
        // The result of an earlier run does not stay.
        std::fs::write(dyno.path("j.xml"), "<testsuites/>").unwrap();
        let run = dyno.run(&[words, &["--junit", "j.xml"]].concat());
        assert_exit(&run, &[code]);
        let found = cases(&dyno, "j.xml");
        assert_eq!((found.len(), ends(&found, "error")), (1, vec!["run"]), "{words:?}");
        let text = std::fs::read_to_string(dyno.path("j.xml")).unwrap();
        let said = stderr(&run);
        let said = said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();
        assert!(
            roxmltree::Document::parse(&text)
                .unwrap()
                .descendants()
                .any(|node| { node.attribute("message").is_some_and(|message| message == said) }),
            "{said}: {text}"
        );
    }
    // It is found out before anything is done.
    let run = dyno.run(&[&SIM[..], &["--out", "r", "--junit", "nowhere/j.xml"]].concat());
    assert_exit(&run, &[2]);
    assert!(stderr(&run).contains("--junit") && !dyno.path("r").exists(), "{}", stderr(&run));
}

#[test]
fn an_experiment_has_a_suite_for_each_run() {
    let dyno = Dyno::new();
    let text = "target: 'sim:?service=100us'\nworkload: {ycsb: {records: 1000}}\nfactors: {users: [1, 2]}\n\
                phases: {measure: {operations: 20000}}\norder: file\nrequire: ['throughput > 15000']\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let run = dyno.run(&["run", "x.yaml", "--out", "e", "-q", "--junit", "j.xml"]);
    assert_exit(&run, &[4]);
    let found = cases(&dyno, "j.xml");
    let classes: Vec<&str> =
        found.iter().filter(|case| case.1 == "run").map(|case| case.0.as_str()).collect();
    assert_eq!(classes, ["x: users=1, repetition 1", "x: users=2, repetition 1"]);
    let failed: Vec<&str> =
        found.iter().filter(|case| case.2 == "failure").map(|case| case.0.as_str()).collect();
    let summary = |cell: u32| dyno.summary(&format!("e/runs/cell000{cell}-rep01"));
    let missed: Vec<bool> = [1, 2].map(|cell| summary(cell)["thresholds"][0]["passed"] == false).to_vec();
    let expected: Vec<&str> =
        classes.iter().zip(&missed).filter(|(_, missed)| **missed).map(|(class, _)| *class).collect();
    assert_eq!(failed, expected);
    assert!(!failed.is_empty());
    // One that has ended is told of again.
    std::fs::remove_file(dyno.path("j.xml")).unwrap();
    let again = dyno.run(&["resume", "e", "-q", "--junit", "j.xml"]);
    assert_exit(&again, &[4]);
    assert_eq!(cases(&dyno, "j.xml"), found);
}

#[test]
fn a_comparison_fails_as_it_is_told_to() {
    let dyno = Dyno::new();
    for (out, service) in [("a", 100), ("b", 200)] {
        for seed in 1..=4 {
            let target = format!("sim:?service={service}us&distribution=exponential&seed={seed}");
            let (seed, out) = (seed.to_string(), format!("{out}/{seed}"));
            let run = ["run", &target, "-u", "1", "--ops", "20000", "--seed", &seed, "--out", &out, "-q"];
            assert_exit(&dyno.run(&run), &[0]);
        }
    }
    assert_exit(&dyno.run(&["compare", "a", "b", "--junit", "j.xml"]), &[0]);
    let found = cases(&dyno, "j.xml");
    assert!(ends(&found, "passed").contains(&"throughput") && ends(&found, "failure").is_empty());
    assert!(found.iter().all(|case| case.0 == "b against a"), "{found:?}");
    assert_exit(&dyno.run(&["compare", "a", "b", "--fail-on", "worse", "--junit", "j.xml"]), &[4]);
    let found = cases(&dyno, "j.xml");
    assert!(ends(&found, "failure").contains(&"throughput"), "{found:?}");
    assert_exit(&dyno.run(&["compare", "b", "a", "--fail-on", "worse", "--junit", "j.xml"]), &[0]);
    assert!(ends(&cases(&dyno, "j.xml"), "failure").is_empty());
}
