//! Answer tests of what runs record and what is made of several: merges, settings, lists, counts.

use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, phase, skip, skip_because, stderr, stdout,
};
use serde_json::Value;
use std::process::Output;

fn run(dyno: &Dyno, text: &str) -> Output {
    dyno.run(&text.split(' ').collect::<Vec<_>>())
}

/// Settings of `run.json`: key, value, source.
fn settings(dyno: &Dyno, directory: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(dyno.path(directory).join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    let word = |setting: &Value, key: &str| setting[key].as_str().unwrap().to_owned();
    let all = run["settings"].as_array().unwrap().iter();
    all.map(|s| (word(s, "key"), word(s, "value"), word(s, "source"))).collect()
}

#[test]
fn runs_side_by_side_merge_and_others_are_refused() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("merging runs") };
    let dyno = Dyno::new();
    let line = |more: &str| format!("run {} -n 500 --warmup 0s --quiet {more}", server.uri());
    dyno.assert_ran(&run(&dyno, &line("--ops 100 --no-out")));
    let start = |name: &str, own: &str| {
        let sentence = line(&format!("--rate 300 --duration 3s --out {name} {own}"));
        dyno.start(&sentence.split(' ').collect::<Vec<_>>())
    };
    // Seed and monitors are each one's own.
    let (one, two) =
        (start("one", "--seed 1"), start("two", "--seed 2 --prometheus x=http://127.0.0.1:1/metrics"));
    finish(one);
    finish(two);
    let merged = run(&dyno, "merge one two --json");
    let summary: Value =
        serde_json::from_str(&stdout(&merged)).unwrap_or_else(|_| panic!("{}", stderr(&merged)));
    let both = ["one", "two"].map(|name| dyno.summary(name));
    let sum: u64 = both.iter().map(|one| arrivals(phase(one, "measure"))).sum();
    assert_eq!(arrivals(phase(&summary, "measure")), sum);
    // Both rates were due, over the merged time, which reaches from the first beginning to the last end.
    let figure = |one: &Value, name: &str| phase(one, "measure")[name].as_f64().unwrap();
    let offered = |one: &Value| figure(one, "offered");
    let due: f64 = both.iter().map(|one| offered(one) * figure(one, "seconds")).sum();
    let mean = due / figure(&summary, "seconds");
    assert!((offered(&summary) / mean - 1.0).abs() < 0.002, "{} instead of {mean}", offered(&summary));
    let rate = phase(&summary, "measure")["throughput"].as_f64().unwrap();
    assert!(rate < offered(&summary) * 1.01 && rate > 300.0, "{rate}");
    let text = summary["verdict"]["reasons"].to_string();
    for (name, own) in ["one", "two"].iter().zip(&both) {
        for reason in own["verdict"]["reasons"].as_array().unwrap() {
            let own = format!("{name}: {}", reason["text"].as_str().unwrap());
            assert!(text.contains(&serde_json::to_string(&own).unwrap()), "{own} in {text}");
        }
    }
    // What must not be added up.
    dyno.assert_ran(&run(&dyno, &line("--rate 300 --duration 1s --out later")));
    dyno.assert_ran(&run(&dyno, &line("--rate 300 --duration 1s --out other --workload b")));
    dyno.assert_ran(&run(&dyno, &line("--users 2 --duration 1s --out closed")));
    for (dirs, sentence) in [
        ("one one", "they are the same run: its operations would count twice"),
        ("one other", "duration is 3s and 1s: runs that apply different loads"),
        ("later other", "readproportion is 0.5 and 0.95"),
        ("later closed", "loop is open and closed"),
        ("later missing", "missing"),
    ] {
        let refused = run(&dyno, &format!("merge {dirs}"));
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(sentence), "{dirs}: {}", stderr(&refused));
    }
    dyno.assert_ran(&run(&dyno, &line("--rate 300 --duration 1s --out again --seed 7")));
    let apart = run(&dyno, "merge later again");
    assert_exit(&apart, &[2]);
    assert!(
        stderr(&apart).contains("did not overlap") && stderr(&apart).contains("--sequential"),
        "{}",
        stderr(&apart)
    );
    // One after the other: the rate of both is their mean, not their sum.
    let sequential = run(&dyno, "merge later again --sequential --json");
    let summary: Value = serde_json::from_str(&stdout(&sequential)).unwrap();
    let rate = phase(&summary, "measure")["throughput"].as_f64().unwrap();
    assert!((200.0..400.0).contains(&rate), "{rate}");
    let due = phase(&summary, "measure")["offered"].as_f64().unwrap();
    assert!((rate / due - 1.0).abs() < 0.1, "{rate} of {due}");
}

#[test]
fn run_json_holds_what_shaped_the_load_and_compare_says_it_first() {
    let dyno = Dyno::new();
    // In virtual time: what is invalid on a busy host is left out of comparisons.
    let base = "run sim:?service=500us -n 500 --duration 1s --quiet";
    assert_exit(&run(&dyno, &format!("{base} --users 8 --out closed")), &[0]);
    assert_exit(&run(&dyno, &format!("{base} --rate 1000 --out open")), &[0]);
    assert_exit(&run(&dyno, &format!("{base} --out more")), &[0]);
    let closed = settings(&dyno, "closed");
    let has = |all: &[(String, String, String)], key: &str, value: &str, source: &str| {
        assert!(
            all.contains(&(key.into(), value.into(), source.into())),
            "{key} {value} {source} in {all:?}"
        );
    };
    has(&closed, "loop", "closed", "default");
    has(&closed, "phases.measure.users", "8", "--users");
    has(&closed, "phases.measure.duration", "1s", "--duration");
    has(&closed, "recordcount", "500", "--records");
    has(&closed, "phases.measure.pipeline", "1", "default");
    has(&closed, "readproportion", "0.5", "built-in workloada:6");
    let other_loop = ["phases.measure.rate", "phases.measure.queue"];
    for stranger in ["threadcount", "target", "operationcount", "maxexecutiontime", "status"]
        .into_iter()
        .chain(other_loop)
    {
        assert!(closed.iter().all(|(key, ..)| key != stranger), "{stranger} shaped nothing: {closed:?}");
    }
    let open = settings(&dyno, "open");
    has(&open, "loop", "open", "--rate");
    has(&open, "phases.measure.rate", "1000", "--rate");
    has(&open, "phases.measure.connections", "64", "default");
    let of_users = ["phases.measure.users", "phases.measure.think"];
    assert!(open.iter().all(|(key, ..)| !of_users.contains(&key.as_str())), "{open:?}");
    let compared = stdout(&run(&dyno, "compare closed open"));
    assert!(compared.contains("closed and open loop answer different questions"), "{compared}");
    let listed = compared.split("settings that differ").nth(1).unwrap();
    assert!(listed.trim_start().starts_with("loop: closed -> open\n"), "{listed}");
    assert!(listed.contains("phases.measure.users: 8 -> -"), "{listed}");
    let users = stdout(&run(&dyno, "compare closed more"));
    assert!(
        users.contains("users is 8 and 16: runs under different loads answer different questions"),
        "{users}"
    );
    for (typed, instead) in
        [("threadcount=3", "--users"), ("target=5", "--rate"), ("status=true", "dyno ycsb")]
    {
        let refused = run(&dyno, &format!("{base} --no-out -p {typed}"));
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(instead), "{typed}: {}", stderr(&refused));
    }
}

#[test]
fn lists_show_runs_and_a_run_under_way_is_called_running() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a run under way") };
    let dyno = Dyno::new();
    let base = format!("run {} -n 500 --quiet --warmup 0s", server.uri());
    dyno.assert_ran(&run(&dyno, &format!("{base} --duration 1s --users 4 --out runs/first")));
    let line = format!("{base} --rate 200 --duration 600s --out runs/second");
    let under_way = dyno.start(&line.split(' ').collect::<Vec<_>>());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let seconds = || std::fs::read_to_string(dyno.path("runs/second/intervals.jsonl")).unwrap_or_default();
    while seconds().lines().count() < 2 {
        assert!(std::time::Instant::now() < until, "the run writes nothing");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let listed = stdout(&run(&dyno, "list runs"));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with("runs/first  complete, ") && lines[0].contains("workloada, 4 users on"),
        "{listed}"
    );
    assert!(lines[1].starts_with("runs/second  running, ") && lines[1].contains("200/s"), "{listed}");
    let report = run(&dyno, "report runs/second");
    assert_exit(&report, &[0]);
    let text = stdout(&report);
    assert!(
        text.starts_with("RUNNING") && !text.contains("INVALID") && !text.contains("interrupted"),
        "{text}"
    );
    let message = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("200/s were due (open loop, 64 connections)"), "{text}");
    let page = stdout(&run(&dyno, "report runs/second --format html"));
    assert!(page.contains(">RUNNING</strong>") && !page.contains("closed loop"), "the page");
    dyno_testkit::signal(under_way.id(), "INT");
    assert_exit(&finish(under_way), &[130]);
}

#[test]
fn loads_in_batches_count_documents() {
    let Some(server) = dyno_testkit::mongo::Mongo::java() else {
        return skip_because(
            "documents of a load",
            "mongo-java-server is not there (see scripts/need mongo)",
        );
    };
    let dyno = Dyno::new();
    let shop = "collections:\n  c: { count: 1000, document: { n: { $int: [1, 10] } } }\n\
                operations:\n  one: { weight: 1, findOne: c, filter: { _id: { $key: c } } }\n";
    std::fs::write(dyno.path("shop.yaml"), shop).unwrap();
    let uri = server.uri("batches");
    let loaded = run(&dyno, &format!("run {uri} --workload shop.yaml --duration 1s --out d"));
    let (text, progress) = (stdout(&loaded), stderr(&loaded));
    assert!(text.contains("load     1,000 documents in "), "{text}{progress}");
    assert!(progress.contains("load: 1,000 documents ok, 0 failed"), "{progress}");
    assert_eq!(phase(&dyno.summary("d"), "load")["documents"], 1_000);
    let uri = server.uri("");
    let line = format!(
        "sysbench-mongodb URI={uri} NUM_COLLECTIONS=2 NUM_DOCUMENTS_PER_COLLECTION=400 NUM_DOCUMENTS_PER_INSERT=100 \
         RUN_TIME_SECONDS=1 NUM_WRITER_THREADS=2 --out s"
    );
    let text = stdout(&run(&dyno, &line));
    assert!(text.contains("load     800 documents in "), "{text}");
    let page = stdout(&run(&dyno, "report s --format html"));
    assert!(page.contains("8 (800 documents)"), "the page counts documents");
    let loaded = phase(&dyno.summary("s"), "load").clone();
    let per_s = 800.0 / loaded["seconds"].as_f64().unwrap();
    let markdown = stdout(&run(&dyno, "report s --format md"));
    assert!(markdown.contains(&format!("{per_s:.2}")), "documents a second, not inserts: {markdown}");
    // As the original prints them, for each collection.
    for line in [
        "Thread[Thread-1,5,main]Writer thread 0 : creating collection sbtest1\n",
        "Thread[Thread-2,5,main]Writer thread 1 : creating collection sbtest2 secondary index\n",
        "Thread[Thread-2,5,main]Writer thread 1 : started to load collection sbtest2\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn repetitions_have_seeds_of_their_own() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("seeds of repetitions") };
    let dyno = Dyno::new();
    let file = format!(
        "name: seeds\ntarget: {}\nworkload: {{ycsb: {{workload: c, records: 300}}}}\nrepetitions: 3\n\
         factors: {{users: [1, 2]}}\n\
         phases: {{measure: {{operations: 200}}}}\n",
        server.uri()
    );
    std::fs::write(dyno.path("seeds.yaml"), file).unwrap();
    let made = run(&dyno, "run seeds.yaml --out made --quiet");
    dyno.assert_ran(&made);
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(dyno.path("made/runs")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("run.json").is_file() {
            let all = settings(&dyno, &format!("made/runs/{name}"));
            let of = |key: &str| all.iter().find(|(k, ..)| k == key).unwrap().1.clone();
            seeds.push((of("repetition"), of("dyno.seed")));
        }
    }
    seeds.sort();
    let expected = [("1", "1"), ("2", "1000004"), ("3", "2000007")];
    let expected: Vec<(String, String)> =
        expected.iter().flat_map(|(r, s)| [(); 2].map(|()| ((*r).to_owned(), (*s).to_owned()))).collect();
    assert_eq!(seeds, expected, "the cells of a repetition have the same seed");
}

#[test]
fn a_server_that_refuses_its_options_is_a_configuration_error_with_its_own_words() {
    if RedisProcess::start(&[]).is_none() {
        return skip("a server with a wrong option");
    }
    let dyno = Dyno::new();
    let file = "server: {kind: redis, options: {no-such-option: 5}}\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 100}}\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    let refused = run(&dyno, "run x.yaml --out o --quiet");
    assert_exit(&refused, &[2]);
    let output = stderr(&refused);
    assert!(output.contains("no-such-option") && !output.contains("unreachable"), "{output}");
}

#[test]
fn records_of_another_shape_are_not_measured_instead() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("records of another shape") };
    let dyno = Dyno::new();
    let base = format!("run {} -n 300 --ops 200 --no-out --quiet", server.uri());
    dyno.assert_ran(&run(&dyno, &base));
    let refused = run(&dyno, &format!("{base} --fields 2 --field-length 10"));
    assert_exit(&refused, &[2]);
    let output = stderr(&refused);
    assert!(
        output.contains(
            "the records that are there have 10 fields (field0 ...) of 100 bytes, those of this run 2 fields \
             (field0 ...) of 10 bytes: --reload loads them again, --no-load measures those that are there"
        ),
        "{output}"
    );
    let ordered = run(&dyno, &format!("{base} -p insertorder=ordered"));
    assert_exit(&ordered, &[2]);
    assert!(
        stderr(&ordered).contains("have hashed keys (insertorder), this run asks for ordered ones"),
        "{}",
        stderr(&ordered)
    );
    // Nothing is written to them, for that would be of the other length.
    dyno.assert_ran(&run(&dyno, &format!("{base} --fields 2 --field-length 10 --no-load --workload c")));
    dyno.assert_ran(&run(&dyno, &base));
    let file = format!(
        "target: {}\nworkload: {{ycsb: {{workload: c, records: 300, properties: {{fieldlength: \"50\"}}}}}}\n\
         phases: {{measure: {{operations: 100}}}}\n",
        server.uri()
    );
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    let refused = run(&dyno, "run x.yaml --out o --quiet");
    assert!(stderr(&refused).contains("`always` loads them again"), "{}", stderr(&refused));
    // Loading them again leaves nothing of the old ones.
    dyno.assert_ran(&run(&dyno, &format!("{base} --fields 2 --field-length 10 --reload")));
    dyno.assert_ran(&run(&dyno, &format!("{base} --fields 2 --field-length 10")));
}
