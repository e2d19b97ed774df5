//! Known truth in, the command that a person types, the sentence that comes out: is a run steady, which figure stands for it,
//! and what became of those who were not served.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, stdout};
use serde_json::Value;
use std::time::Duration;

/// Reasons against a run of `words`: trust, check, text.
fn judged(dyno: &Dyno, out: &str, words: &[&str]) -> Vec<(String, String, String)> {
    let output = dyno.run(&[&["run"], words, &["--out", out, "--quiet"]].concat());
    let summary = dyno.summary(out);
    // The exit code says what the verdict says.
    assert_exit(&output, if summary["verdict"]["trust"] == "invalid" { &[5] } else { &[0] });
    let word = |reason: &Value, key: &str| reason[key].as_str().unwrap().to_owned();
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().map(|one| (word(one, "trust"), word(one, "check"), word(one, "text"))).collect()
}

fn text_of<'a>(reasons: &'a [(String, String, String)], check: &str) -> &'a str {
    let found = reasons.iter().find(|(trust, name, _)| trust != "valid" && name == check);
    &found.unwrap_or_else(|| panic!("{check}: {reasons:?}")).2
}

#[test]
fn a_stall_is_named_with_its_time_wherever_it_is() {
    let dyno = Dyno::new();
    for (out, stall, length, message) in [
        ("default", "4s@4s", "10s", "4 to 8 s"),
        ("short", "2s@1s", "5s", "1 to 3 s"),
        ("early", "5s@8s", "60s", "8 to 13 s"),
        ("late", "5s@40s", "60s", "40 to 45 s"),
        ("first", "2s@0s", "20s", "0 to 2 s"),
        ("last", "3s@17s", "20s", "17 to 20 s"),
    ] {
        let target = format!("sim:?service=1ms&stall={stall}");
        let load = ["--users", "1", "--duration", length, "--warmup", "0s"];
        let reasons = judged(&dyno, out, &[&[target.as_str()], &load[..]].concat());
        assert!(text_of(&reasons, "gone").contains(message), "{out}: {reasons:?}");
        let told = stdout(&dyno.run(&["explain", out]));
        assert!(!told.contains("±"), "a mean over a stall has no interval: {told}");
    }
}

/// What waits is looked at, not whether anything failed: nothing does here.
#[test]
fn a_server_without_answers_is_told_in_any_load() {
    let dyno = Dyno::new();
    for (out, load, trust, message) in [
        ("closed", &["--users", "8"][..], "invalid", "for 8 of 15 s measured (4 to 12 s)"),
        ("open", &["--rate", "200"], "invalid", "for 8 of 15 s measured (4 to 12 s)"),
        ("varied", &["--rate", "ramp:100-300:15s"], "invalid", "for 8 of 15 s measured (4 to 12 s)"),
    ] {
        let common = ["sim:?service=1ms&stall=8s@4s", "--duration", "15s", "--warmup", "0s"];
        let bound = ["--require", "p50(read) < 50ms", "--require", "throughput > 10"];
        let reasons = judged(&dyno, out, &[&common, load, &bound[..]].concat());
        let found =
            reasons.iter().find(|(_, check, _)| check == "gone").unwrap_or_else(|| panic!("{reasons:?}"));
        assert!(found.0 == trust && found.2.contains(message), "{out}: {found:?}");
        let silences = dyno.summary(out)["phases"].as_array().unwrap().last().unwrap()["silences"].clone();
        let length_s = silences[0]["length_s"].as_f64().unwrap();
        // A user waits within a hundredth of a second.
        assert!(silences.as_array().unwrap().len() == 1 && (7.95..8.05).contains(&length_s), "{silences}");
    }
    // A second of eight: no whole second need be empty.
    let short = ["sim:?service=1ms&stall=1s@3500ms", "--users", "4", "--duration", "8s", "--warmup", "0s"];
    let reasons = judged(&dyno, "short", &short);
    assert!(text_of(&reasons, "gone").contains("for 1 of 8 s measured (3.5 to 4.5 s)"), "{reasons:?}");
    // No user waits while none asks: one operation in two seconds, each of a millisecond.
    let idle = [
        "sim:?service=1ms",
        "--rate",
        "0.5",
        "--arrivals",
        "constant",
        "--duration",
        "20s",
        "--warmup",
        "0s",
    ];
    let reasons = judged(&dyno, "idle", &idle);
    assert!(reasons.iter().all(|(_, check, _)| check != "gone"), "{reasons:?}");
    // Nor is an operation of two seconds a silence.
    let slow = ["sim:?service=2s", "--users", "1", "--duration", "30s", "--warmup", "0s"];
    let reasons = judged(&dyno, "slow", &slow);
    assert!(reasons.iter().all(|(_, check, _)| check != "gone"), "{reasons:?}");
}

#[test]
fn a_queue_that_grows_is_an_overload_and_a_full_server_is_none() {
    let dyno = Dyno::new();
    let at = |out: &str, rate: &str| {
        let words = ["sim:?service=1ms", "--rate", rate, "--connections", "1", "--duration", "120s"];
        judged(&dyno, out, &words)
    };
    let over = at("over", "1008");
    let message = text_of(&over, "overload");
    assert!(message.contains("the queue grows") && message.contains("backlog"), "{message}");
    let near = at("near", "900");
    assert!(near.iter().all(|(_, check, _)| check != "overload"), "{near:?}");
    // What a caller waits comes first; the server's own part is an eighth of it or less.
    let told = stdout(&dyno.run(&["explain", "near"]));
    assert!(told.contains("mean response time ") && told.contains("service time 1.00 ms"), "{told}");
}

#[test]
fn who_was_timed_out_has_waited_at_least_that_long() {
    let dyno = Dyno::new();
    let words = [
        "run",
        "sim:?service=100us&stall=300ms@2s&stall=300ms@4s",
        "--rate",
        "2000",
        "--connections",
        "200",
        "--timeout",
        "50ms",
        "--duration",
        "8s",
        "--warmup",
        "0s",
        "--require",
        "p99(all) < 20ms",
        "--out",
        "timed",
    ];
    let shown = dyno.run(&words);
    let phase = dyno.summary("timed")["phases"][0].clone();
    let failed = phase["outcomes"]["timed_out"].as_u64().unwrap();
    assert!(failed * 100 > phase["arrivals"].as_u64().unwrap(), "{phase}");
    let metric = &phase["metrics"][0];
    let p99 = |kind: &str| metric[kind]["percentiles_us"]["p99"].as_f64();
    assert!(p99("all_response").is_none_or(|us| us >= 50_000.0), "{metric}");
    assert!(p99("response").is_some(), "what succeeded is shown, too: {metric}");
    assert_eq!(dyno.summary("timed")["thresholds"][0]["passed"], false);
    let text = stdout(&shown);
    assert!(text.contains("response time, failures included") && text.contains("timed_out "), "{text}");
    // The same without stalls keeps the threshold, of all operations, too.
    let steady = words.map(|word| match word {
        word if word.starts_with("sim:") => "sim:?service=100us",
        "timed" => "steady",
        word => word,
    });
    assert_exit(&dyno.run(&steady), &[0]);
    assert_eq!(dyno.summary("steady")["thresholds"][0]["passed"], true);
}

/// The same in experiments and comparisons: a table, a page, an export, and which of two is slower.
#[test]
fn who_was_timed_out_is_in_the_percentiles_of_experiments_and_comparisons() {
    let dyno = Dyno::new();
    for (name, stalls) in [("steady", ""), ("stalls", "&stall=300ms@2s&stall=300ms@4s")] {
        let text = format!(
            "target: \"sim:?service=100us{stalls}\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\nrepetitions: 4\n\
             phases: {{load: {{when: never}}, measure: {{duration: 8s, rate: 2000, timeout: 50ms, warmup: 0s}}}}\n"
        );
        std::fs::write(dyno.path(&format!("{name}.yaml")), text).unwrap();
        assert_exit(&dyno.run(&["run", &format!("{name}.yaml"), "--out", name, "--quiet"]), &[0]);
    }
    let rows: Value = serde_json::from_str(&stdout(&dyno.run(&["status", "stalls", "--json"]))).unwrap();
    let rows = rows.as_array().cloned().unwrap_or_else(|| rows["cells"].as_array().unwrap().clone());
    let us: Vec<f64> =
        rows[0]["response_us"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
    assert!(us[0] < 1_000.0 && us[1] >= 50_000.0, "{us:?}");
    let text = stdout(&dyno.run(&["compare", "steady", "stalls"]));
    let p99 = text.lines().find(|line| line.contains("READ p99 ")).unwrap_or_else(|| panic!("{text}"));
    assert!(p99.contains("worse: ") && p99.contains(" times as much"), "{text}");
    let table = stdout(&dyno.run(&["export", "stalls", "--table", "runs", "--format", "csv"]));
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = lines.next().unwrap().iter().position(|name| *name == "response_p99_us").unwrap();
    let reasons = lines.clone().next().unwrap().len();
    assert!(reasons > at, "{table}");
}

/// A server that stands still for its first second has its first operation under way: no law is broken by that.
#[test]
fn a_stall_from_the_very_beginning_breaks_no_law() {
    let dyno = Dyno::new();
    let words = ["sim:?service=1ms&stall=1s@0s", "--users", "1", "--duration", "10s", "--warmup", "0s"];
    let reasons = judged(&dyno, "first", &words);
    assert!(text_of(&reasons, "gone").contains("0 to 1 s"), "{reasons:?}");
    assert!(reasons.iter().all(|(_, check, _)| check != "littles_law"), "{reasons:?}");
    let metric = dyno.summary("first")["phases"][0]["metrics"][0].clone();
    assert!(metric["service"]["max_us"].as_f64().unwrap() > 1_000_000.0, "{metric}");
}

/// `DEBUG SLEEP 3` in a run of the default length, on a host that may be busy with anything.
#[test]
fn a_real_server_that_sleeps_is_said_to_have_stood_still() {
    let Some(server) = RedisProcess::start(&["--enable-debug-command", "yes"]) else {
        return skip("a server that sleeps");
    };
    let dyno = Dyno::new();
    let target = format!("redis://127.0.0.1:{}", server.port);
    let sleeper = std::thread::spawn(move || {
        // Somewhere in the middle; the run takes ten seconds after a second of warm-up.
        std::thread::sleep(Duration::from_secs(5));
        server.cli(&["DEBUG", "SLEEP", "3"]);
        server
    });
    let reasons = judged(&dyno, "sleeps", &[&target, "-n", "1000", "--users", "2"]);
    drop(sleeper.join().unwrap());
    let told = |check: &str| reasons.iter().any(|(trust, name, _)| trust != "valid" && name == check);
    assert!(told("stalls") || told("gone"), "{reasons:?}");
    let output = stdout(&dyno.run(&["explain", "sleeps"]));
    assert!(output.contains("below half of the median for") && !output.contains("±"), "{output}");
}

#[test]
fn small_rates_keep_their_digits() {
    let dyno = Dyno::new();
    let words = ["run", "sim:?service=18536us", "--users", "1", "--duration", "20s", "--warmup", "0s"];
    let shown = stdout(&dyno.run(&words));
    assert!(shown.contains("measure  53.95 operations/s") || shown.contains("measure  53.9"), "{shown}");
    assert!(!shown.contains("measure  54 "), "{shown}");
}

#[test]
fn the_second_hour_of_a_table_can_be_imported_alone() {
    let dyno = Dyno::new();
    let mut table = "tot_trans\telap_secs\tcum_tps\tint_tps\tlat_ms\n".to_owned();
    for line in 1..=720u64 {
        let rate = if line <= 360 { 100.0 } else { 53.95 };
        table += &format!("{}\t{}\t0\t{rate}\t1\n", line, line * 10);
    }
    std::fs::write(dyno.path("t.tsv"), table).unwrap();
    let import = ["import", "sysbench-mongodb", "t.tsv", "--users", "16", "--out"];
    assert_exit(&dyno.run(&[&import[..], &["whole"]].concat()), &[0]);
    assert_exit(&dyno.run(&[&import[..], &["second", "--window", "3600-7200"]].concat()), &[0]);
    let phase = dyno.summary("second")["phases"][0].clone();
    assert_eq!(phase["seconds"], 3_600.0);
    let rate = phase["throughput"].as_f64().unwrap();
    assert!((rate - 54.0).abs() <= 0.05, "{rate}");
    assert_exit(&dyno.run(&[&import[..], &["none", "--window", "7200-3600"]].concat()), &[2]);
    assert_exit(&dyno.run(&[&import[..], &["none", "--window", "9000-9100"]].concat()), &[2]);
    // Page and command look at the same intervals: two levels, and a chart.
    let told: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", "whole", "--json"]))).unwrap();
    assert_eq!(told["runs"][0]["stability"]["segments"].as_array().unwrap().len(), 2);
    assert_exit(&dyno.run(&["report", "whole", "--format", "html", "--out", "page.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("page.html")).unwrap();
    assert!(!page.contains("could not be read"), "rows of imported results are read");
    assert!(page.contains("The level changed 1 time."), "levels as `dyno explain` has them");
    assert!(page.contains("data-chart=\"0\"") && !page.contains("No operation succeeded"));
}

#[test]
fn programs_that_take_the_processor_are_named() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("neighbours of a run") };
    let dyno = Dyno::new();
    let mut busy: Vec<_> = (0..2)
        .map(|_| std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        .collect();
    let target = format!("redis://127.0.0.1:{}", server.port);
    let reasons = judged(&dyno, "noisy", &[&target, "-n", "1000", "--users", "1", "--duration", "4s"]);
    for one in &mut busy {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    let message = text_of(&reasons, "neighbours");
    assert!(message.contains("other programs took") && message.contains(" cores"), "{message}");
    let others =
        dyno.summary("noisy")["phases"].as_array().unwrap().last().unwrap()["monitor"]["others"].clone();
    assert!(others["cpu_cores"].as_f64().unwrap() > 0.04, "{others}");
    // One user cannot be fewer.
    let told = stdout(&dyno.run(&["explain", "noisy"]));
    assert!(!told.contains("fewer users") && !told.contains("half the users"), "{told}");
}

#[test]
fn a_server_that_was_gone_is_said_to_have_been() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a server that is gone") };
    let dyno = Dyno::new();
    let target = format!("redis://127.0.0.1:{}", server.port);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(5));
        drop(server);
    });
    let words = [&target, "-n", "1000", "--users", "4", "--duration", "10s", "--warmup", "0s"];
    let reasons = judged(&dyno, "gone", &words);
    killer.join().unwrap();
    let found = reasons.iter().find(|(_, check, _)| check == "gone").unwrap_or_else(|| panic!("{reasons:?}"));
    assert!(found.0 == "invalid" && found.2.contains("nothing succeeded for"), "{found:?}");
}

/// Stalls of 400 ms in each of these seconds: their throughput is 60 %.
fn slow(seconds: &[(u32, u32)]) -> String {
    let all =
        seconds.iter().flat_map(|(from, to)| *from..*to).map(|second| format!("&stall=400ms@{second}s"));
    all.collect()
}

/// Judges eight users on a server of which these seconds are at 60 %.
fn dips(dyno: &Dyno, out: &str, length: &str, seconds: &[(u32, u32)]) -> Vec<(String, String, String)> {
    let target = format!("sim:?service=1ms&distribution=exponential{}", slow(seconds));
    judged(dyno, out, &[&target, "--users", "8", "--duration", length, "--warmup", "0s"])
}

#[test]
fn several_dips_are_told_with_their_edges() {
    let dyno = Dyno::new();
    for (out, length, parts, words) in [
        ("two", "60s", vec![(10, 20), (35, 45)], vec!["from 10 to 20 s", "from 35 to 45 s"]),
        ("short", "60s", vec![(10, 16), (30, 36)], vec!["from 10 to 16 s", "from 30 to 36 s"]),
        (
            "three",
            "60s",
            vec![(8, 14), (24, 30), (44, 50)],
            vec!["from 8 to 14 s", "from 24 to 30 s", "from 44 to 50 s"],
        ),
        (
            "long",
            "120s",
            vec![(20, 30), (55, 65), (95, 105)],
            vec!["from 20 to 30 s", "from 55 to 65 s", "from 95 to 105 s"],
        ),
        ("edges", "75s", vec![(33, 42)], vec!["from 33 to 42 s"]),
    ] {
        let reasons = dips(&dyno, out, length, &parts);
        let text = text_of(&reasons, "level");
        assert!(words.iter().all(|message| text.contains(message)), "{out}: {text}");
        // The verdict and its explanation are one judge's.
        let told: Value = serde_json::from_str(&stdout(&dyno.run(&["explain", out, "--json"]))).unwrap();
        let segments = told["runs"][0]["stability"]["segments"].as_array().unwrap();
        // Noise may cut a level once more, by less than an alarm; the parts have their edges all the same.
        assert!(segments.len() <= 2 * parts.len() + 2, "{out}: {segments:?}");
        for (from, to) in &parts {
            let own = serde_json::json!([from, to]);
            assert!(segments.iter().any(|segment| segment["range"] == own), "{out}: {segments:?}");
        }
    }
    // As long at the one level as at the other.
    let halves = dips(&dyno, "halves", "120s", &[(20, 40), (60, 80), (100, 120)]);
    assert!(text_of(&halves, "level").contains("the mean of the run describes none of them"), "{halves:?}");
    let told = stdout(&dyno.run(&["explain", "halves"]));
    assert!(told.contains("throughput: not steady: ") && !told.contains("one level"), "{told}");
}

#[test]
fn a_steady_run_is_called_steady_and_one_too_short_is_not() {
    let dyno = Dyno::new();
    let of = |out: &str, length: &str| {
        let target = "sim:?service=1ms&distribution=exponential";
        let reasons = judged(&dyno, out, &[target, "--users", "8", "--duration", length, "--warmup", "0s"]);
        assert!(
            reasons.iter().all(|(trust, check, _)| trust == "valid" || check == "samples"),
            "{reasons:?}"
        );
        (reasons, stdout(&dyno.run(&["explain", out])))
    };
    let (_, told) = of("long", "60s");
    assert!(
        told.contains("throughput: steady: one level") && told.contains("mean response time: steady"),
        "{told}"
    );
    let (reasons, told) = of("short", "6s");
    assert!(
        told.contains("throughput: whether it is steady cannot be told") && !told.contains("one level"),
        "{told}"
    );
    let (_, _, message) = reasons.iter().find(|(_, check, _)| check == "steadiness").unwrap();
    assert!(message.contains("cannot be told") && message.contains("run longer"), "{message}");
}

#[test]
fn response_times_that_grow_in_an_open_loop_are_told() {
    let dyno = Dyno::new();
    let target = "sim:?service=1ms&distribution=exponential&capacity=64&growth=0.05";
    let reasons = judged(&dyno, "grows", &[target, "--rate", "500", "--duration", "60s", "--warmup", "0s"]);
    let text = text_of(&reasons, "response_level");
    assert!(text.contains("the mean response time") && text.contains("drifts by +"), "{text}");
    assert!(reasons.iter().all(|(_, check, _)| check != "level" && check != "drift"), "{reasons:?}");
    let told = stdout(&dyno.run(&["explain", "grows"]));
    assert!(told.contains("response times: not steady: the mean response time"), "{told}");
    assert_exit(&dyno.run(&["report", "grows", "--format", "html", "--out", "page.html"]), &[0]);
    let page = std::fs::read_to_string(dyno.path("page.html")).unwrap();
    assert!(page.contains("Response times are not steady: the mean response time"));
}

#[test]
fn a_period_has_its_length_and_its_levels() {
    let dyno = Dyno::new();
    // Two of every seven seconds are at 60 %.
    let parts: Vec<_> = (0..20).map(|at| (7 * at + 3, 7 * at + 5)).collect();
    let reasons = dips(&dyno, "waves", "140s", &parts);
    let text = text_of(&reasons, "period");
    assert!(text.contains("repeats itself every 7 s, between "), "{text}");
    assert!(reasons.iter().all(|(_, check, _)| check != "level"), "{reasons:?}");
    let told = stdout(&dyno.run(&["explain", "waves"]));
    assert!(
        told.contains("repeats every 7 s") && !told.contains("collapse") && !told.contains("warm-up"),
        "{told}"
    );
}

#[test]
fn imported_results_are_judged_like_runs() {
    let dyno = Dyno::new();
    let table = |name: &str, rate: &dyn Fn(u32) -> u32, latency: &dyn Fn(u32) -> u32| {
        let mut text = "second,rate,latency\n".to_owned();
        for second in 0..60 {
            let jitter = second * 37 % 23;
            text += &format!("{second},{},{}\n", rate(second) + jitter, latency(second) + jitter);
        }
        std::fs::write(dyno.path(name), text).unwrap();
        let columns = ["--time", "second", "--throughput", "rate", "--response-us", "latency"];
        assert_exit(
            &dyno.run(&[&["import", "csv", name, "--out", &format!("of-{name}")][..], &columns].concat()),
            &[0],
        );
        let summary = dyno.summary(&format!("of-{name}"));
        let reasons = summary["verdict"]["reasons"].as_array().unwrap().clone();
        reasons.iter().map(|one| one["check"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let dip = |second: u32| if (20..30).contains(&second) { 600 } else { 1_000 };
    let slow = |second: u32| if (40..50).contains(&second) { 4_000 } else { 1_000 };
    assert_eq!(table("steady.csv", &|_| 1_000, &|_| 1_000), ["imported"]);
    assert_eq!(table("dip.csv", &dip, &|_| 1_000), ["imported", "level"]);
    assert_eq!(table("slow.csv", &|_| 1_000, &slow), ["imported", "response_level"]);
    let stall = |second: u32| if (10..13).contains(&second) { 0 } else { 1_000 };
    assert_eq!(table("stall.csv", &stall, &|_| 1_000), ["imported", "stalls"]);
}

/// Three operations without a failure say nothing of one in a thousand; a limit within the interval of a figure is no answer.
#[test]
fn what_is_too_close_to_call_fails_only_where_that_is_asked_for() {
    let dyno = Dyno::new();
    let three = ["run", "sim:?service=1ms", "--records", "100", "--ops", "3", "--require", "errors < 0.1%"];
    let close = dyno.run(&[&three[..], &["--out", "close"]].concat());
    assert_exit(&close, &[0]);
    assert!(stdout(&close).contains("TOO CLOSE (measured 0.000 %, too few to decide)"), "{}", stdout(&close));
    let found = dyno.summary("close")["thresholds"][0].clone();
    assert_eq!((&found["too_close"], &found["passed"]), (&true.into(), &true.into()), "{found}");
    assert_exit(&dyno.run(&[&three[..], &["--no-out", "--strict"]].concat()), &[4]);
    let strict = dyno.run(&[&three[..], &["--out", "strict", "--strict", "--junit", "strict.xml"]].concat());
    assert_exit(&strict, &[4]);
    // A later reader of the directory gets the same answer.
    assert_exit(&dyno.run(&["report", "strict"]), &[4]);
    assert_exit(&dyno.run(&["report", "close"]), &[0]);
    let xml = std::fs::read_to_string(dyno.path("strict.xml")).unwrap();
    assert!(xml.contains("too close to call: errors &lt; 0.1%"), "{xml}");
    // The p99 of M/M/1 at 800 of 1,000/s is 23 ms.
    let queue = ["run", "sim:?service=1ms&distribution=exponential", "--records", "100", "--workload", "c"];
    let queue = [&queue[..], &["--rate", "800", "--duration", "60s", "--warmup", "2s"]].concat();
    let decide = |ms: &str, out: &str| {
        let run =
            dyno.run(&[&queue[..], &["--require", &format!("p99(read) < {ms}ms"), "--out", out]].concat());
        (run.status.code(), dyno.summary(out))
    };
    let (pass, _) = decide("50", "quick");
    let (fail, _) = decide("10", "slow");
    let (code, near) = decide("23.026", "near");
    assert_eq!((pass, fail, code), (Some(0), Some(4), Some(0)), "{near}");
    let found = &near["thresholds"][0];
    let end = |name: &str| found["interval"][name].as_f64().unwrap();
    assert!(found["too_close"] == true && end("low") < 23_026.0 && end("high") > 23_026.0, "{found}");
    // The same interval is that of the percentile.
    let latency = &near["phases"].as_array().unwrap().last().unwrap()["metrics"][0]["response"];
    assert_eq!(latency["intervals_us"]["p99"], found["interval"], "{latency}");
    let shown = stdout(&dyno.run(&["-v", "report", "near"]));
    assert!(shown.contains("95 % interval ") && shown.contains("  95 % from"), "{shown}");
    let page = std::fs::read_to_string(dyno.path("near/report.html")).unwrap();
    assert!(page.contains("TOO CLOSE") && page.contains("READ, 95 % interval"), "{page}");
}

/// An experiment says it by a key.
#[test]
fn a_strict_experiment_misses_what_is_too_close() {
    let dyno = Dyno::new();
    for (name, strict, code) in [("plain", "", 0), ("strict", "strict: true\n", 4)] {
        let text = format!(
            "target: \"sim:?service=1ms\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
             phases: {{measure: {{operations: 3}}}}\nrequire: [\"errors < 0.1%\"]\n{strict}"
        );
        std::fs::write(dyno.path(&format!("{name}.yaml")), text).unwrap();
        assert_exit(&dyno.run(&["run", &format!("{name}.yaml"), "--out", name, "-q"]), &[code]);
    }
    let refused = dyno.run(&["run", "plain.yaml", "--require", "errors < 1%", "--strict"]);
    assert_exit(&refused, &[2]);
}

#[test]
fn a_run_that_ends_within_a_second_is_told_with_its_tenths() {
    let dyno = Dyno::new();
    let words = ["run", "sim:?service=1ms", "--users", "1", "--duration", "2500ms", "--warmup", "0s"];
    let output = dyno.run(&[&words[..], &["--records", "100", "--out", "o"]].concat());
    dyno.assert_ran(&output);
    let told = dyno_testkit::stderr(&output);
    assert!(told.contains("measure: 2.5 s, 1 user"), "{told}");
    let end = told.lines().find(|line| line.contains(" ok, ")).unwrap_or_else(|| panic!("{told}"));
    // measure: 2,500 ok, 0 failed in 2.5 s, 1,000/s
    let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap();
    let count = number(end.split(' ').nth(1).unwrap());
    let rate = number(end.rsplit(' ').next().unwrap().trim_end_matches("/s"));
    assert!(end.contains(" in 2.5 s, ") && (count / 2.5 / rate - 1.0).abs() < 1e-3, "{end}");
}
