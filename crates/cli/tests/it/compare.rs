//! `dyno compare` and `dyno history` on runs whose truth is known: a simulated server in virtual time.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;

/// Makes runs of a simulated server with exponential service times of this mean; each has draws of its own.
fn runs(dyno: &Dyno, folder: &str, service_us: u32, seeds: std::ops::Range<u32>) {
    for seed in seeds {
        let target = format!("sim:?service={service_us}us&distribution=exponential&seed={seed}");
        let (seed, out) = (seed.to_string(), format!("{folder}/{seed:03}"));
        let run =
            ["run", &target, "--users", "1", "--ops", "20000", "--seed", &seed, "--out", &out, "--quiet"];
        assert_exit(&dyno.run(&run), &[0]);
    }
}

fn conclusion(found: &Value, name: &str) -> Value {
    let figures = found[0]["figures"].as_array().unwrap();
    figures
        .iter()
        .find(|figure| figure["name"] == name)
        .map_or(Value::Null, |figure| figure["conclusion"].clone())
}

#[test]
fn a_slower_server_is_found_and_the_same_is_the_same() {
    let dyno = Dyno::new();
    runs(&dyno, "a", 100, 1..7);
    runs(&dyno, "again", 100, 11..17);
    runs(&dyno, "b", 110, 21..27);
    let same = dyno.run(&["compare", "a", "again", "--json", "--fail-on", "different"]);
    assert_exit(&same, &[0]);
    let found: Value = serde_json::from_str(&stdout(&same)).unwrap();
    assert_eq!(conclusion(&found, "throughput"), "same", "{found}");
    let worse = dyno.run(&["compare", "a", "b", "--fail-on", "worse"]);
    assert_exit(&worse, &[4]);
    assert!(stdout(&worse).contains("worse by 9."), "{}", stdout(&worse));
    assert_exit(&dyno.run(&["compare", "a", "b"]), &[0]);
    // Runs of one second have an order all the same: six and six in a row widen the interval by sqrt(1 + 36 / (35 x 1 / 3)).
    for run in (1..7).map(|n| format!("a/{n:03}")).chain((21..27).map(|n| format!("b/{n:03}"))) {
        let path = dyno.path(&format!("{run}/run.json"));
        let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        text["started"] = "2026-01-01T00:00:00Z".into();
        std::fs::write(&path, text.to_string()).unwrap();
    }
    let found: Value = serde_json::from_str(&stdout(&dyno.run(&["compare", "a", "b", "--json"]))).unwrap();
    let wider = found[0]["figures"][0]["drift"]["wider"].as_f64().unwrap();
    assert!((wider - (1.0f64 + 36.0 / (35.0 / 3.0)).sqrt()).abs() < 1e-9, "{wider}");
    assert_eq!(conclusion(&found, "throughput"), "worse", "{found}");
    // A price an hour: dearer by as much as it is slower.
    let priced = dyno.run(&["compare", "a", "b", "--json", "--price", "server=0.5,client=0.5"]);
    let found: Value = serde_json::from_str(&stdout(&priced)).unwrap();
    assert_eq!(conclusion(&found, "throughput per price"), "worse", "{found}");
    // More than two sides: each against the first.
    let three = dyno.run(&["compare", "a", "again", "b", "--json"]);
    let found: Value = serde_json::from_str(&stdout(&three)).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
    // One run a side says nothing of noise.
    let one = dyno.run(&["compare", "a/001", "b/021"]);
    assert_exit(&one, &[0]);
    let told = stdout(&one);
    assert!(
        told.contains("not enough data: ")
            && told.contains(" between these two runs; 3 more runs a side at least"),
        "{told}"
    );
    assert!(told.contains("one run of each says how far these two are apart"), "{told}");
    let head = told.lines().find(|line| line.contains("verdict")).unwrap();
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), ["first", "second", "unit", "verdict"], "{told}");
    assert!(told.contains("there is no interval, no p") && !told.contains("Cliff"), "{told}");
    let sentence = stdout(&dyno.run(&["compare", "a/001", "b/021", "--format", "md"]));
    assert!(sentence.contains("one run of each: throughput "), "{sentence}");
    assert!(sentence.contains("differ is not known"), "{sentence}");
    // An interval whose ends are its value would be one of certainty.
    let found: Value =
        serde_json::from_str(&stdout(&dyno.run(&["compare", "a/001", "b/021", "--json"]))).unwrap();
    for figure in found[0]["figures"].as_array().unwrap() {
        assert!(
            figure["ratio"]["value"].is_number() && figure["difference"]["value"].is_number(),
            "{figure}"
        );
        for (part, end) in
            [("ratio", "low"), ("ratio", "high"), ("difference", "low"), ("difference", "high")]
        {
            assert_eq!(figure[part].get(end), Some(&Value::Null), "{part}.{end}: {figure}");
        }
        for name in ["p", "rank_p", "delta"] {
            assert_eq!(figure.get(name), Some(&Value::Null), "{name}: {figure}");
        }
    }
    assert_exit(&dyno.run(&["compare", "a/001", "b/021", "--fail-on", "unclear"]), &[4]);
}

#[test]
fn a_noise_floor_is_kept_and_held_against_claims() {
    let dyno = Dyno::new();
    // Two "same" sides that differ by a tenth: such an environment can tell nothing below that.
    runs(&dyno, "a", 100, 1..5);
    runs(&dyno, "b", 110, 11..15);
    let state = dyno.path("state");
    let with = |arguments: &[&str]| dyno.command(arguments).env("DYNO_STATE", &state).output().unwrap();
    assert!(stdout(&with(&["compare", "a", "b"])).contains("worse by"));
    let kept = with(&["compare", "a", "b", "--noise-floor"]);
    assert!(stderr(&kept).contains("noise.json"), "{}", stderr(&kept));
    let text = stdout(&with(&["compare", "a", "b"]));
    assert!(text.contains("noise floor") && !text.contains("throughput  worse"), "{text}");
    let line = text.lines().find(|line| line.trim_start().starts_with("throughput ")).unwrap();
    assert!(line.contains("within the noise floor"), "{line}");
}

#[test]
fn experiments_are_compared_cell_by_cell_and_level_by_level() {
    let dyno = Dyno::new();
    for (name, service) in [("one", "100us"), ("two", "130us")] {
        let text = format!(
            "target: \"sim:?service={service}&distribution=exponential\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
             phases: {{load: {{when: never}}, measure: {{operations: 5000}}}}\nfactors: {{users: [1, 2]}}\nrepetitions: 4\n"
        );
        std::fs::write(dyno.path(&format!("{name}.yaml")), text).unwrap();
        assert_exit(&dyno.run(&["run", &format!("{name}.yaml"), "--out", name, "--quiet"]), &[0]);
    }
    let found = dyno.run(&["compare", "one", "two", "--json"]);
    assert_exit(&found, &[0]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let cells: Vec<&str> = found.as_array().unwrap().iter().map(|p| p["cell"].as_str().unwrap()).collect();
    assert_eq!(cells, ["users=1", "users=2"]);
    assert_eq!(conclusion(&found, "throughput"), "worse");
    let levels = dyno.run(&["compare", "one", "--by", "users"]);
    // The page does not repeat the experiment that both sides are of.
    let page = stdout(&dyno.run(&["compare", "one", "--by", "users", "--format", "html"]));
    let title = page.split("<h1>").nth(1).and_then(|rest| rest.split("</h1>").next()).expect("a title");
    assert_eq!(title, "one: users=2 against users=1", "{page}");
    assert_exit(&levels, &[0]);
    assert!(stdout(&levels).contains("users=2  against  users=1\n"), "{}", stdout(&levels));
    let unknown = dyno.run(&["compare", "one", "--by", "user"]);
    assert_exit(&unknown, &[2]);
    assert!(stderr(&unknown).contains("did you mean users?"), "{}", stderr(&unknown));
}

#[test]
fn sides_are_named_by_their_level_and_the_rest_is_said_once() {
    let dyno = Dyno::new();
    // The levels begin with the same word, and one has no word after it.
    let text = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 500}}\nname: nightly run\nfactors:\n  \
                server: [{label: redis 7, seed: 1}, {label: redis 8, seed: 2}, {label: redis, seed: 3}]\n  users: [1, 2]\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "x", "--quiet"]), &[0]);
    let by = |form: &str| stdout(&dyno.run(&["compare", "x", "--by", "server", "--format", form]));
    let heads = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains("  against  ")).map(str::to_owned).collect()
    };
    let expected: Vec<String> = ["redis 8|1", "redis 8|2", "redis|1", "redis|2"]
        .iter()
        .filter_map(|pair| pair.split_once('|'))
        .map(|(second, users)| format!("server={second}  against  server=redis 7  [users={users}]"))
        .collect();
    assert_eq!(heads(&by("text")), expected);
    let markdown = by("md");
    assert!(
        markdown.starts_with("# nightly run: levels compared\n\n## server=redis 8 against server=redis 7 ")
    );
    let page = by("html");
    assert!(page.contains("<h1>nightly run: levels compared</h1>"), "{page}");
    assert!(page.contains(" Each is against server=redis 7.<"), "{page}");
    // Two levels are compared with the first in each cell: the cell alone would name two pairs.
    for name in ["redis 8, users=1", "redis, users=2"] {
        assert!(page.contains(&format!(">{name}</a>")), "{name}: {page}");
    }
    let found: Value = serde_json::from_str(&by("json")).unwrap();
    let first = &found[0];
    let names = ["experiment", "first", "second", "cell"].map(|name| first[name].as_str().unwrap());
    assert_eq!(names, ["nightly run", "server=redis 7", "server=redis 8", "users=1"]);
    let junit = ["compare", "x", "--by", "server", "--junit", "x.xml"];
    assert_exit(&dyno.run(&junit), &[0]);
    let xml = std::fs::read_to_string(dyno.path("x.xml")).unwrap();
    assert!(xml.contains("\"nightly run: server=redis 8 against server=redis 7 [users=1]\""), "{xml}");
}

#[test]
fn the_first_level_is_the_baseline_whatever_was_run_first() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 500}}\nfactors: {rate: [1000, 2000, 4000]}\n\
                repetitions: 3\nseed: 3\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "x", "--quiet"]), &[0]);
    let journal = std::fs::read_to_string(dyno.path("x/journal.jsonl")).unwrap();
    let first = journal.lines().find(|line| line.contains("\"ended\"")).unwrap();
    assert!(!first.contains("\"cell\":1,"), "the seed must let another cell be first: {first}");
    let found = dyno.run(&["compare", "x", "--by", "rate", "--json"]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let pairs: Vec<String> =
        found.as_array().unwrap().iter().map(|p| format!("{}, {}", p["first"], p["second"])).collect();
    assert_eq!(pairs, ["\"rate=1000\", \"rate=2000\"", "\"rate=1000\", \"rate=4000\""]);
    let explained = dyno.run(&["explain", "x", "--all", "--json"]);
    let explained: Value = serde_json::from_str(&stdout(&explained)).unwrap();
    let dirs: Vec<&str> =
        explained["runs"].as_array().unwrap().iter().map(|run| run["dir"].as_str().unwrap()).collect();
    assert_eq!(dirs.len(), 9);
    assert!(dirs.is_sorted(), "{dirs:?}");
}

#[test]
fn a_history_dates_a_regression() {
    let dyno = Dyno::new();
    runs(&dyno, "h", 100, 1..9);
    runs(&dyno, "h", 115, 9..17);
    let found = dyno.run(&["history", "h", "--json", "--fail-on-worse"]);
    assert_exit(&found, &[4]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!(found[0]["points"].as_array().unwrap().len(), 16);
    let steps = found[0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{found}");
    assert!(steps[0]["first_run"].as_str().unwrap().ends_with("009"), "{found}");
    assert!(stdout(&dyno.run(&["history", "h", "--figure", "p99(read)"])).contains("16 runs"));
    assert_exit(&dyno.run(&["history", "h", "--figure", "p99("]), &[2]);
    let errors = stdout(&dyno.run(&["history", "h", "--figure", "errors"]));
    assert!(
        errors.contains("errors of 16 runs") && errors.contains("  0 %  ") && errors.contains("no change"),
        "{errors}"
    );
    // A run that cannot be used is left out where it is named as where it lies in a folder.
    let folder = dyno.path("h");
    std::fs::create_dir(folder.join("cut")).unwrap();
    std::fs::copy(folder.join("001/run.json"), folder.join("cut/run.json")).unwrap();
    let (used, cut) = ("h/001", "h/cut");
    let one = dyno.run(&["history", used, cut]);
    assert_exit(&one, &[0]);
    assert!(
        stdout(&one).contains("throughput of 1 run\n") && stderr(&one).contains("is left out"),
        "{one:?}"
    );
    assert_exit(&dyno.run(&["history", cut]), &[2]);
    // A figure that no run has is a mistake, not a history without changes.
    let unknown = dyno.run(&["history", "h", "--figure", "p99(nope)", "--fail-on-worse"]);
    assert_exit(&unknown, &[2]);
    assert!(
        stderr(&unknown).contains("no run has this figure; operations that were recorded: cleanup, read"),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let dyno = Dyno::new();
    runs(&dyno, "a", 100, 1..3);
    std::fs::create_dir(dyno.path("empty")).unwrap();
    for (arguments, message) in [
        (vec!["compare", "a"], "nothing to compare with"),
        (vec!["compare", "a", "missing"], "missing"),
        (vec!["compare", "a", "empty"], "no run with a result"),
        (vec!["compare", "a", "a", "--margin=-1"], "per cent"),
        (vec!["compare", "a", "a", "--price", "server"], "ROLE=PRICE"),
    ] {
        let refused = dyno.run(&arguments);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{arguments:?}: {}", stderr(&refused));
    }
    // A run that was cut off has no summary: it is left out, and said so.
    std::fs::remove_file(dyno.path("a/001/summary.json")).unwrap();
    let run = std::fs::read_to_string(dyno.path("a/001/run.json")).unwrap();
    assert!(run.contains("\"status\": \"complete\""), "{run}");
    std::fs::write(dyno.path("a/001/run.json"), run.replace("\"complete\"", "\"running\"")).unwrap();
    let rest = dyno.run(&["compare", "a", "a/002"]);
    assert_exit(&rest, &[0]);
    assert!(stderr(&rest).contains("a/001 is left out"), "{}", stderr(&rest));
}

#[test]
fn one_damaged_run_does_not_take_the_others_with_it() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {duration: 3s}}\nfactors: {users: [1, 2]}\nrepetitions: 2\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "x", "--quiet"]), &[0]);
    // A summary that was cut off is computed again; a run whose recording is gone is left out.
    let (one, two) = ("x/runs/cell0001-rep01", "x/runs/cell0002-rep02");
    let whole = std::fs::read_to_string(dyno.path(&format!("{one}/summary.json"))).unwrap();
    std::fs::write(dyno.path(&format!("{one}/summary.json")), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(dyno.path(&format!("{two}/run.json")), "no JSON\n").unwrap();
    for arguments in [
        vec!["explain", "x"],
        vec!["history", "x"],
        vec!["compare", "x", "--by", "users"],
        vec!["export", "x", "--format", "csv", "--table", "runs"],
    ] {
        let made = dyno.run(&arguments);
        assert_exit(&made, &[0]);
        let output = stderr(&made);
        assert!(
            output.contains("summary.json:") && output.contains("were computed from what was recorded"),
            "{output}"
        );
        assert!(
            output.contains("cell0002-rep02 is left out") && output.contains("run.json:1: is no JSON"),
            "{output}"
        );
    }
    let explained = dyno.run(&["explain", one, "--json"]);
    assert_exit(&explained, &[0]);
    let found: Value = serde_json::from_str(&stdout(&explained)).unwrap();
    let throughput = found["runs"][0]["observed"]["throughput"].as_f64().unwrap();
    assert!((throughput / 10_000.0 - 1.0).abs() < 0.03, "{found}");
    // The same directory on both sides is no comparison.
    let same = dyno.run(&["compare", "x", "x/../x"]);
    assert!(stderr(&same).contains("is compared with itself"), "{}", stderr(&same));
    let none = dyno.run(&["report", "x/runs"]);
    assert_exit(&none, &[2]);
    assert!(stderr(&none).contains("neither run.json nor experiment.json"), "{}", stderr(&none));
}

#[test]
fn a_comparison_is_also_a_page_markdown_and_json() {
    let dyno = Dyno::new();
    runs(&dyno, "a", 100, 1..5);
    runs(&dyno, "b<i>", 120, 11..15);
    let printed = dyno.run(&["compare", "a", "b<i>", "--html", "c.html"]);
    assert_exit(&printed, &[0]);
    assert!(stdout(&printed).contains("worse by"), "--html stands beside what is printed");
    let page = std::fs::read_to_string(dyno.path("c.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>") && !page.contains("<i>") && page.contains("b&lt;i&gt;"),
        "{page}"
    );
    let verdict = page.find("WORSE").unwrap();
    assert!(verdict < page.find("<section").unwrap(), "the verdict comes first");
    for message in ["quantile by quantile", "noise floor", "Settings that differ", "every run", "p99.5"] {
        assert!(page.contains(message), "{message}");
    }
    assert!(
        page.contains("<a href=\"./a/001/report.html\">001</a>, <a href=\"./a/002/report.html\">002</a>"),
        "{page}"
    );
    let again = dyno.run(&["compare", "a", "b<i>", "--format", "html"]);
    assert_eq!(stdout(&again), page);
    // Links from another folder; a run without a report has none.
    std::fs::create_dir(dyno.path("pages")).unwrap();
    for run in ["a/002", "a/003", "a/004", "b<i>/011", "b<i>/013", "b<i>/014"] {
        std::fs::remove_file(dyno.path(run).join("report.html")).unwrap();
    }
    assert_exit(&dyno.run(&["compare", "a", "b<i>", "--html", "pages/c.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("pages/c.html")).unwrap();
    let links = "Reports of a: <a href=\"./../a/001/report.html\">001</a>; \
                 of b&lt;i&gt;: <a href=\"./../b%3Ci%3E/012/report.html\">012</a>.";
    assert!(page.contains(links), "{page}");
    let markdown = stdout(&dyno.run(&["compare", "a", "b<i>", "--format", "md"]));
    assert!(
        markdown.contains("**b&#60;i&#62; against a: worse in throughput")
            && markdown.contains("| throughput |")
    );
    let found: Value =
        serde_json::from_str(&stdout(&dyno.run(&["compare", "a", "b<i>", "--format", "json"]))).unwrap();
    let shifts = found[0]["responses"][0]["shifts"].as_array().unwrap();
    assert!(shifts.len() >= 15, "{shifts:?}");
    // Every quantile of an exponential that is a fifth slower is a fifth greater.
    for shift in shifts.iter().filter(|s| (20.0..99.0).contains(&s["percentile"].as_f64().unwrap())) {
        let ratio = shift["ratio"].as_f64().unwrap();
        assert!((1.15..1.25).contains(&ratio), "{shift}");
        let (low, high) = (shift["interval"][0].as_f64().unwrap(), shift["interval"][1].as_f64().unwrap());
        assert!(low <= ratio && ratio <= high && low > 1.0, "{shift}");
    }
    // A run that was cut off before it measured takes nothing from the others.
    let summary = std::fs::read_to_string(dyno.path("a/001/summary.json")).unwrap();
    let mut cut: Value = serde_json::from_str(&summary).unwrap();
    cut["status"] = "interrupted".into();
    cut["phases"].as_array_mut().unwrap().retain(|phase| phase["name"] == "load");
    std::fs::write(dyno.path("a/001/summary.json"), cut.to_string()).unwrap();
    let three = dyno.run(&["compare", "a", "b<i>"]);
    assert!(
        stderr(&three).contains("a/001 is left out: it was cut off before it measured"),
        "{}",
        stderr(&three)
    );
    assert!(stdout(&three).contains("throughput"), "{}", stdout(&three));
    let merged = dyno.run(&["merge", "a/001", "a/002"]);
    assert_exit(&merged, &[2]);
    assert!(stderr(&merged).contains("a/001: the run was cut off before it measured"), "{}", stderr(&merged));
    std::fs::write(dyno.path("a/001/summary.json"), summary).unwrap();
    // One run a side: what cannot be said is said.
    let one = stdout(&dyno.run(&["compare", "a/001", "b<i>/011", "--format", "html"]));
    assert!(one.contains("UNCLEAR") && one.contains("one run: none") && one.contains("no interval"), "{one}");
}
