//! `dyno run` leaves reports, and `dyno report` makes them again from whatever is left of a directory.

use dyno_testkit::{Dyno, assert_exit, stdout};
use std::os::unix::fs::PermissionsExt;

/// 5 is a verdict on a noisy machine, not on the command.
#[test]
fn a_run_leaves_its_reports_and_they_can_be_made_again() {
    let dyno = Dyno::new();
    let done = dyno.run(&[
        "run",
        "sqlite:a.db",
        "--records",
        "200",
        "--duration",
        "2s",
        "--users",
        "2",
        "--out",
        "d",
    ]);
    dyno.assert_ran(&done);
    let page = dyno.path("d/report.html");
    let text = std::fs::read_to_string(&page).expect("report.html");
    assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(text.starts_with("<!DOCTYPE html>") && text.contains("<section id=\"diagnosis\""), "{text}");
    assert!(text.len() < 1_500_000);
    let summary = std::fs::read_to_string(dyno.path("d/summary.md")).expect("summary.md");
    assert!(summary.contains("* TEST passed: Workflow as planned"), "{summary}");
    // The same again, into a file and onto standard output.
    dyno.assert_ran(&dyno.run(&["report", "d", "--format", "html", "-o", "again.html"]));
    assert_eq!(std::fs::read_to_string(dyno.path("again.html")).unwrap(), text);
    let again = dyno.run(&["report", "d", "--format", "md"]);
    dyno.assert_ran(&again);
    assert_eq!(stdout(&again), summary);
    let json = dyno.run(&["report", "d", "--format", "json"]);
    let parsed: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    assert_eq!(parsed["phases"].as_array().unwrap().last().unwrap()["name"], "measure");
}

/// The run's verdict is the text's exit code; a page that was asked for and written is a success.
#[test]
fn a_page_that_is_written_is_a_success_whatever_stands_on_it() {
    let dyno = Dyno::new();
    let missed = ["--ops", "2000", "--require", "throughput > 1000000000", "--out", "r", "-q"];
    assert_exit(&dyno.run(&[&["run", "sim:?service=1ms", "-u", "1"][..], &missed].concat()), &[4]);
    assert_exit(&dyno.run(&["report", "r"]), &[4]);
    assert_exit(&dyno.run(&["report", "r", "--json"]), &[4]);
    assert_exit(&dyno.run(&["report", "r", "--format", "html", "--out", "page.html"]), &[0]);
    assert!(std::fs::read_to_string(dyno.path("page.html")).unwrap().contains("FAIL"));
}

#[test]
fn what_is_left_of_a_directory_is_reported_on() {
    let dyno = Dyno::new();
    let run =
        ["run", "sqlite:a.db", "--records", "200", "--duration", "2s", "--users", "2", "--out", "d", "-q"];
    dyno.assert_ran(&dyno.run(&run));
    for file in ["summary.json", "environment.json", "events.jsonl", "monitor/series.json"] {
        std::fs::remove_file(dyno.path("d").join(file)).expect(file);
    }
    for format in ["text", "html", "md", "json"] {
        let done = dyno.run(&["report", "d", "--format", format]);
        dyno.assert_ran(&done);
        let message = if format == "json" { "\"running\"" } else { "INCOMPLETE" };
        assert!(stdout(&done).contains(message), "{format}: {}", stdout(&done));
    }
    let page = stdout(&dyno.run(&["report", "d", "--format", "html"]));
    for message in
        ["there is no summary", "environment.json", "events.jsonl", "what monitors saw could not be read"]
    {
        assert!(page.contains(message), "{message}");
    }
    // Without run.json it is no run directory.
    std::fs::remove_file(dyno.path("d/run.json")).unwrap();
    assert_exit(&dyno.run(&["report", "d", "--format", "html"]), &[2]);
}

#[test]
fn an_experiment_leaves_a_page_that_leads_to_its_runs() {
    let dyno = Dyno::new();
    let file = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 20000}}\nfactors: {users: {from: 1, to: 8, times: 2}}\nrepetitions: 2\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "e", "-q"]));
    let page = std::fs::read_to_string(dyno.path("e/report.html")).expect("report.html");
    assert!(page.contains("Users: does Little's law hold?"), "{page}");
    let links: Vec<&str> =
        page.split("<a href=\"./").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() >= 8, "{links:?}");
    for link in links {
        assert!(dyno.path("e").join(link).is_file(), "{link}");
    }
    let summary = std::fs::read_to_string(dyno.path("e/summary.md")).expect("summary.md");
    assert!(
        summary.contains("8 runs planned") && summary.contains("* TEST passed: Workflow as planned"),
        "{summary}"
    );
    assert_exit(&dyno.run(&["report", "e", "--format", "html", "-o", "p.html"]), &[0]);
    assert_eq!(std::fs::read_to_string(dyno.path("p.html")).unwrap(), page);
}

#[test]
fn a_report_hands_over_to_the_exports_under_the_same_names() {
    let dyno = Dyno::new();
    let run = ["run", "sim:?service=100us", "--users", "1", "--ops", "5000", "--out", "d", "-q"];
    dyno.assert_ran(&dyno.run(&run));
    for form in ["csv", "ycsb", "wsf", "bexhoma"] {
        let (one, other) =
            (dyno.run(&["report", "d", "--format", form]), dyno.run(&["export", "d", "--format", form]));
        assert_exit(&one, &[0]);
        assert!(!stdout(&one).is_empty());
        assert_eq!(stdout(&one), stdout(&other), "{form}");
    }
    for form in ["parquet", "xlsx"] {
        assert_exit(&dyno.run(&["report", "d", "--format", form, "-o", form]), &[0]);
        assert!(std::fs::metadata(dyno.path(form)).unwrap().len() > 100);
        assert_exit(&dyno.run(&["report", "d", "--format", form]), &[2]);
    }
    // There is no .ods; what there is instead stands in the error.
    let refused = dyno.run(&["report", "d", "--format", "ods"]);
    assert_exit(&refused, &[2]);
    let message = dyno_testkit::stderr(&refused);
    assert!(message.contains("xlsx") && message.contains("parquet") && message.contains("html"), "{message}");
}

#[test]
fn a_price_adds_what_throughput_is_worth() {
    let dyno = Dyno::new();
    let run = ["run", "sim:?service=100us", "--users", "1", "--ops", "5000", "--out", "d", "-q"];
    dyno.assert_ran(&dyno.run(&run));
    let text = stdout(&dyno.run(&["report", "d", "--price", "server=0.5,client=0.5"]));
    // 10,000/s are 36 million an hour.
    assert!(text.contains("per currency unit: 3") && text.contains("per core-second: not known"), "{text}");
    let page = stdout(&dyno.run(&["report", "d", "--price", "server=0.5", "--format", "html"]));
    assert!(page.contains("Per currency unit"), "{page}");
    assert!(!stdout(&dyno.run(&["report", "d", "--format", "html"])).contains("Per currency unit"));
    for refused in [
        ["--price", "x", "--format", "html"],
        ["--price", "a=1", "--format", "md"],
        ["--price", "a=1", "--format", "csv"],
    ] {
        let refused = dyno.run(&[["report", "d"].as_slice(), &refused].concat());
        assert_exit(&refused, &[2]);
    }
    let file = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 5000}}\nfactors: {users: [1, 2]}\nrepetitions: 3\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "e", "-q"]));
    let text = stdout(&dyno.run(&["report", "e", "--price", "server=1"]));
    assert!(text.contains("ops/currency unit") && text.contains(" ± "), "{text}");
    let page = stdout(&dyno.run(&["report", "e", "--price", "server=1", "--format", "html"]));
    assert!(page.contains("per currency unit"), "{page}");
}

/// What may hold or not whatever the host does: a threshold that none misses, and one that all do.
#[test]
fn the_bar_of_a_page_has_verdict_thresholds_and_workload() {
    let dyno = Dyno::new();
    let mut args = vec!["run", "sim:?service=100us", "--users", "2", "--ops", "5000", "--out", "d", "-q"];
    args.extend(["--require", "throughput > 1", "--require", "max(read) < 1us"]);
    dyno.run(&args);
    let page = std::fs::read_to_string(dyno.path("d/report.html")).expect("report.html");
    let bar = page.split("<div class=\"bar\"").nth(1).and_then(|rest| rest.split("</div>").next()).unwrap();
    for message in ["FAIL 1 of 2", "2 users", "href=\"#time\"", "class=\"trust "] {
        assert!(bar.contains(message), "{message}: {bar}");
    }
    let result = |word: &str, class: &str| format!("<strong class=\"{class}\">{word}</strong>");
    assert!(page.contains(&result("PASS", "valid")) && page.contains(&result("FAIL", "invalid")), "{page}");
}

#[test]
fn the_page_of_a_fault_experiment_has_its_faults() {
    let dyno = Dyno::new();
    let file = "description: Does it come back?\ntarget: \"sim:?service=100us\"\n\
                workload: {ycsb: {workload: c, records: 100}}\nphases: {measure: {operations: 20000, users: 2}}\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "e", "-q"]));
    let page = || stdout(&dyno.run(&["report", "e", "--format", "html"]));
    assert!(
        page().contains("<h1>Does it come back?</h1>") && !page().contains("id=\"faults\""),
        "{}",
        page()
    );
    // A simulated server has no faults: those of another are put into its summary.
    let run = std::fs::read_dir(dyno.path("e/runs")).unwrap().flatten().next().unwrap().path();
    let path = run.join("summary.json");
    let mut summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    summary["faults"] = serde_json::json!([
        {"number": 1, "fault": "pause on server", "means": "SIGSTOP", "begin_s": 3.0, "end_s": 4.0, "recover_s": 1.25},
        {"number": 2, "fault": "kill <on> server", "means": "SIGKILL", "begin_s": 9.0},
    ]);
    std::fs::write(&path, summary.to_string()).unwrap();
    let page = page();
    assert!(
        page.contains("2 faults: throughput is seen to recover from 1, at the latest after 1.25 s."),
        "{page}"
    );
    let section =
        page.split("<section id=\"faults\"").nth(1).and_then(|rest| rest.split("</section>").next());
    let section = section.unwrap_or_else(|| panic!("{page}"));
    assert!(
        section.contains("1 pause on server") && section.contains("2 kill &lt;on&gt; server"),
        "{section}"
    );
}

/// Names of the regions of a page, and whether a head of a table is empty.
fn regions(page: &str) -> (Vec<&str>, bool) {
    let named = page.split("role=\"region\" aria-label=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let empty = page
        .split("<th ")
        .skip(1)
        .any(|rest| rest.split_once('>').is_some_and(|(_, rest)| rest.starts_with("</th>")));
    (named.collect(), empty)
}

/// Who cannot see a page goes by the names of its tables and of their columns.
#[test]
fn tables_of_a_page_have_names_of_their_own_and_their_columns_too() {
    let dyno = Dyno::new();
    let file = "target: \"sim:?service=1ms\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 5000}}\n\
                factors: {users: [1, 2, 4], target: [\"sim:?service=1ms\", \"sim:?service=500us\"]}\nrepetitions: 2\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "e", "-q"]));
    let experiment = std::fs::read_to_string(dyno.path("e/report.html")).expect("report.html");
    let by = stdout(&dyno.run(&["compare", "e", "--by", "target", "--format", "html"]));
    let runs: Vec<_> =
        std::fs::read_dir(dyno.path("e/runs")).unwrap().flatten().map(|run| run.path()).collect();
    let pair = ["compare", runs[0].to_str().unwrap(), runs[1].to_str().unwrap(), "--format", "html"];
    let pair = stdout(&dyno.run(&pair));
    for (what, page) in [("experiment", &experiment), ("levels", &by), ("pair", &pair)] {
        let (mut names, empty) = regions(page);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(all > 2 && names.len() == all && !empty, "{what}: {empty}, {names:?}");
    }
}

#[test]
fn a_part_of_a_second_is_not_drawn_as_a_whole_one() {
    // In the second half of a second it leaves one that its end cuts.
    ["400ms", "600ms"].iter().for_each(|warmup| each_second_has_as_many(warmup));
}

/// One user of a server that takes 1 ms: 1,000 in each second, of which the warm-up has a part of the first.
fn each_second_has_as_many(warmup: &str) {
    let dyno = Dyno::new();
    let file = format!(
        "target: \"sim:?service=1ms\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
         phases: {{measure: {{users: 1, duration: 4s, warmup: {warmup}}}}}\nrepetitions: 2\n"
    );
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "e", "-q"]));
    let page = std::fs::read_to_string(dyno.path("e/report.html")).expect("report.html");
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let charts = data["charts"].as_array().unwrap();
    let chart =
        charts.iter().find(|chart| chart["unit"] == "operations/s").unwrap_or_else(|| panic!("{data}"));
    let series = chart["choices"][0]["s"].as_array().unwrap();
    let values: Vec<f64> =
        series.iter().flat_map(|one| one["v"].as_array().unwrap()).map(|v| v.as_f64().unwrap()).collect();
    assert!(!values.is_empty() && values.iter().all(|v| (v - 1_000.0).abs() < 50.0), "{values:?}");
}
