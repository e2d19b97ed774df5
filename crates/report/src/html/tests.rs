use crate::html::page::run_page;
use crate::html::sections::Report;
use crate::html::*;
use dyno_analysis::diagnose::{Diagnosis, diagnose_run};
use dyno_record::{Scale, ThreadInterval, Totals};
use dyno_rundir::monitor::{Kind, MonitorWriter, Recording};
use dyno_rundir::schema::{
    Client, Environment, Grade, Reason, Run, Setting, Status, Summary, Threshold, Trust, VERSION, Verdict,
};
use dyno_rundir::{IntervalFacts, RunDir, RunWriter};
use dyno_types::Outcome;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>'\"&";

/// A run of `seconds`, with an operation name for each of `names` and `series` gauges.
pub(crate) fn write_run(path: &Path, names: &[String], seconds: u64, series: usize, fail: bool) {
    let run = Run {
        version: VERSION,
        dyno: "1.2.3".into(),
        command: ["dyno", "run", HOSTILE].map(str::to_owned).to_vec(),
        started: "2026-01-01T00:00:00Z".into(),
        status: Status::Running,
        target: "redis://h".into(),
        database: format!("Redis {HOSTILE}"),
        facts: [("version".to_owned(), HOSTILE.to_owned())].into(),
        settings: vec![Setting { key: "k".into(), value: HOSTILE.into(), source: "option".into() }],
        metrics: [("measure".to_owned(), names.to_vec())].into(),
        unit_ns: 64,
        plans: Default::default(),
    };
    let mut writer = RunWriter::create_run(path, run, &Environment::default(), Scale::Ns64).unwrap();
    let begin = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    writer.event_at(begin, "begin", "measure");
    writer.event_at(begin + Duration::from_secs(2), "monitor", HOSTILE);
    let mut all = Totals::new(names.len(), Scale::Ns64);
    for second in 0..seconds {
        let mut interval = ThreadInterval::new(names.len(), Scale::Ns64);
        for metric in 0..names.len() {
            for sample in 0..200 {
                let ns = 50_000 + (sample * 7_919 + second * 104_729 + metric as u64 * 31) % 900_000;
                let outcome = if fail { Outcome::TimedOut } else { Outcome::Ok };
                interval.record_ended(metric as u16, outcome, ns, ns + 1_000);
                interval.arrivals += 1;
                interval.ended[outcome as usize] += 1;
            }
        }
        let mut totals = Totals::new(names.len(), Scale::Ns64);
        totals.add_interval(&interval);
        all.add_interval(&interval);
        writer.write_interval("measure", Duration::from_secs(second), 1.0, &totals, IntervalFacts::default());
    }
    let end: SystemTime = begin + Duration::from_secs(seconds);
    writer.event_at(end, "end", "measure");
    let facts = dyno_analysis::PhaseFacts {
        name: "measure".into(),
        seconds: seconds as f64,
        client: Client { users: 8, pipeline: 1, batch: 1, threads: 1, ..Client::default() },
        ..Default::default()
    };
    let summary = Summary {
        version: VERSION,
        dyno: "1.2.3".into(),
        status: Status::Complete,
        target: "redis://h".into(),
        database: format!("Redis {HOSTILE}"),
        started: "2026-01-01T00:00:00Z".into(),
        title: format!("workload {HOSTILE}"),
        verdict: Verdict::nothing_judged(Trust::Valid),
        thresholds: Vec::new(),
        strict: false,
        phases: vec![dyno_analysis::summarise_phase(facts, names, &all)],
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    };
    writer.finish(&summary, Status::Complete);
    if series > 0 {
        monitored(path, seconds, series);
    }
}

fn monitored(path: &Path, seconds: u64, series: usize) {
    let mut monitor = MonitorWriter::create_in(path, 1_000.0).unwrap();
    let labels: Vec<String> = (0..series).map(|n| format!("gauge.{n}.{HOSTILE}")).collect();
    for second in 0..=seconds {
        let at = (1_700_000_000 + second) * 1_000_000_000;
        let value = |n: usize| ((second * 7_919 + n as u64 * 104_729) % 10_007) as f64 * 1.234_567;
        let row = labels.iter().enumerate().map(|(n, name)| (name.as_str(), Kind::Gauge, value(n)));
        monitor.write_row("database", at, row);
        let host = [("cpu.user_s", 0.5), ("cpu.idle_s", 1.0), ("cpu.steal_s", 0.0)];
        let row = host.iter().map(|(name, each)| (*name, Kind::Counter, second as f64 * each));
        monitor.write_row("host", at, row);
    }
    assert!(monitor.first_failure().is_none());
}

pub(super) fn render_test_page(path: &Path) -> String {
    let (mut dir, notes) = RunDir::salvage_run(path).unwrap();
    let recording = Recording::open(path).unwrap();
    let diagnosis = diagnose_run(&dir, recording.as_ref());
    let verdict = Verdict { checks: vec!["completed".to_owned()], ..Verdict::nothing_judged(Trust::Invalid) };
    let summary = dir.summary.take().unwrap_or_else(|| Summary {
        version: VERSION,
        dyno: String::new(),
        status: Status::Running,
        target: dir.run.target.clone(),
        database: dir.run.database.clone(),
        started: String::new(),
        title: "cut off".into(),
        verdict,
        thresholds: Vec::new(),
        strict: false,
        phases: Vec::new(),
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    });
    dir.summary = Some(summary.clone());
    let recording = recording.as_ref();
    run_page(&Report {
        dir: &dir,
        summary: &summary,
        recording,
        diagnosis: &diagnosis,
        notes: &notes,
        price: Some(0.5),
    })
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| if n == 0 { HOSTILE.into() } else { format!("OPERATION-{n}") }).collect()
}

#[test]
fn a_page_answers_first_and_is_whole_without_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    write_run(&path, &names(2), 20, 1, false);
    let page = render_test_page(&path);
    let header = page.split("<main").next().unwrap();
    // 200 operations of two kinds a second.
    assert!(header.contains(" answered 400 operations/s to 8 users; 99 % of "), "{header}");
    for fact in ["Database", "Workload", "Target", "Client's host", "Begun", "Command"] {
        assert!(header.contains(&format!("<dt>{fact}</dt>")), "{fact}: {header}");
    }
    assert_eq!(header.matches("<svg viewBox=\"0 0 720 250\"").count(), 2);
    let figures = page.matches("<div class=\"plot\">").count();
    assert!(figures > 3);
    assert_eq!(page.matches("<div class=\"plot\"><svg ").count(), figures, "all are drawn");
}

/// The data that the page holds.
pub(super) fn page_data(page: &str) -> serde_json::Value {
    let begin = page.find("id=\"data\">").unwrap() + 10;
    let end = begin + page[begin..].find("</script>").unwrap();
    serde_json::from_str(&page[begin..end]).unwrap()
}

/// Nothing that was planted is markup, and nothing is loaded from elsewhere.
pub(super) fn assert_self_contained(page: &str) {
    assert!(!page.contains("<img"), "markup from data");
    assert!(!page.contains("onerror=alert(1)>'"), "an attribute from data");
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    for word in ["src=", "@import", "url(", "<link", "<iframe", "fetch(", "XMLHttpRequest", "//cdn"] {
        let found = page.match_indices(word).filter(|(at, _)| !page[*at..].starts_with("src=x onerror"));
        // A long name may be cut in the middle, where it is escaped all the same.
        let found = found.filter(|(at, _)| !page[..*at].ends_with("&lt;img "));
        // The clip of a drawing is named within the page.
        let found = found.filter(|(at, _)| !page[*at..].starts_with("url(#"));
        // The sign of the page stands in it.
        let found = found.filter(|(at, _)| !page[*at..].starts_with("<link rel=\"icon\" href=\"data:"));
        assert_eq!(found.count(), 0, "{word}");
    }
    let elsewhere = page.match_indices("http").filter(|(at, _)| {
        let rest = &page[*at..];
        !rest.starts_with("http-equiv") && !rest.starts_with("http://www.w3.org/2000/svg")
    });
    assert_eq!(elsewhere.count(), 0);
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_page_has_its_sections_and_nothing_gets_out_of_its_place() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &names(2), 30, 5, false);
    let page = render_test_page(folder.path());
    assert_self_contained(&page);
    let order = [
        "time",
        "percentiles",
        "operations",
        "resources",
        "stability",
        "laws",
        "diagnosis",
        "environment",
        "repeat",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|id| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("{id}")))
        .collect();
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
    assert!(page.find("class=\"trust valid\"").unwrap() < places[0], "the verdict comes first");
    assert!(page.contains("dyno run '&lt;/script&gt;&lt;img src=x"), "the command to repeat");
    let data = page_data(&page);
    let charts = data["charts"].as_array().unwrap();
    assert_eq!((charts[0]["id"].as_str(), charts[1]["id"].as_str()), (Some("throughput"), Some("response")));
    assert_eq!(charts[1]["choices"].as_array().unwrap().len(), 2);
    let values = charts[0]["choices"][0]["s"][0]["v"].as_array().unwrap();
    assert!(values.iter().all(|v| v.as_f64() == Some(400.0)), "{values:?}");
    // A third of the time of all cores.
    let cpu = charts.iter().find(|chart| chart["id"] == "host-cpu").unwrap();
    assert_eq!(cpu["choices"][0]["s"][0]["v"][0].as_f64(), Some(33.33));
    assert_eq!(data["marks"][0][1].as_str().unwrap(), format!("monitor: {HOSTILE}"));
    assert_eq!(data["distributions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_run_without_monitors_says_so_beside_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &names(1), 3, 0, false);
    let mut summary = RunDir::open(folder.path()).unwrap().summary.unwrap();
    let style = crate::style::Style { colour: false, columns: 80, rows: 24, details: false };
    let first = |summary: &Summary| {
        let text = crate::summary::render_summary(summary, Default::default(), style);
        text.lines().next().unwrap().to_owned()
    };
    assert!(first(&summary).starts_with("VALID, not watched  workload"), "{}", first(&summary));
    assert!(render_test_page(folder.path()).contains(">VALID, not watched<"));
    summary.phases[0].monitor = Some(Default::default());
    assert!(first(&summary).starts_with("VALID  workload"), "{}", first(&summary));
    // Under way nothing is judged yet.
    summary.phases[0].monitor = None;
    summary.status = Status::Running;
    assert!(!first(&summary).contains("not watched"), "{}", first(&summary));
}

#[test]
fn a_run_that_failed_in_many_ways_fits_a_small_screen() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &names(3), 3, 0, false);
    let mut summary = RunDir::open(folder.path()).unwrap().summary.unwrap();
    let expression = |n: usize| format!("p99.9(an-operation-with-a-long-name-{n}.service) < 5ms");
    for n in 0..9 {
        let passed = n % 2 == 0;
        let measured = Some(if passed { 4_000.0 } else { 9_000.0 });
        summary.thresholds.push(Threshold {
            expression: expression(n),
            measured,
            passed,
            too_close: false,
            interval: None,
            margin: None,
        });
        summary.verdict.grades.push(Grade {
            claim: expression(n),
            of: Vec::new(),
            trust: Trust::Suspect,
            asked: true,
            against: ["client_share", "neighbours"].map(str::to_owned).to_vec(),
        });
    }
    let phase = &mut summary.phases[0];
    for outcome in Outcome::ALL.into_iter().filter(|outcome| *outcome != Outcome::Ok) {
        phase.outcomes.insert(outcome.name().to_owned(), 3);
        phase.errors.insert(outcome.name().to_owned(), "words of a server ".repeat(12));
        phase.arrivals += 3;
    }
    let style = crate::style::Style { colour: false, columns: 80, rows: 24, details: false };
    let text = crate::summary::render_summary(&summary, Default::default(), style);
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.starts_with("VALID"), "{text}");
    // What was missed comes first, and what is left out is counted.
    assert!(text.contains(&expression(1)) && text.contains("FAIL (measured"), "{text}");
    assert!(text.contains("6 claims more with -v") && text.contains(" kinds more with -v"), "{text}");
    // A line goes on at a word; the title is a server's own.
    let long: Vec<&str> = text.lines().skip(1).filter(|line| line.chars().count() > 80).collect();
    assert_eq!(long, Vec::<&str>::new());
}

/// What a wide or a tall screen has room for is told, and what is told is told in full.
#[test]
fn reasons_use_the_screen_and_lose_no_word() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &names(1), 3, 0, false);
    let mut summary = RunDir::open(folder.path()).unwrap().summary.unwrap();
    let check = |n: usize| format!("check-{n}");
    let reason = |n: usize| (0..40).map(|word| format!("word{n}x{word}")).collect::<Vec<_>>().join(" ");
    summary.verdict.reasons = (0..5).map(|n| Reason::of_all(&check(n), Trust::Suspect, reason(n))).collect();
    let told = |columns: usize, rows: usize| {
        let style = crate::style::Style { colour: false, columns, rows, details: false };
        crate::summary::render_summary(&summary, Default::default(), style)
    };
    for (columns, rows) in [(80, 24), (120, 24), (120, 60), (80, 60)] {
        let text = told(columns, rows);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let whole =
            (0..5).filter(|n| flat.contains(&format!("suspect {}: {}", check(*n), reason(*n)))).count();
        let begun = (0..5).filter(|n| flat.contains(&check(*n))).count();
        assert!(whole == begun && whole > 0 && !text.contains('…'), "{columns} x {rows}: {text}");
        let left = format!("{} reason", 5 - whole);
        assert!(
            whole == 5 || text.contains(&left) && text.contains("more with -v"),
            "{columns} x {rows}: {text}"
        );
        assert!(rows < 60 || whole == 5, "{columns} x {rows}: {text}");
        assert!(text.lines().count() < rows, "{columns} x {rows}: {text}");
        let widest = text.lines().skip(2).map(|line| line.chars().count()).max().unwrap();
        assert!((columns - 12..=columns).contains(&widest), "{columns} x {rows}: {widest}: {text}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "size and time are for the reader, nothing asserts the time")]
fn an_hour_with_many_series_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    // Eight workers make one run: their seconds are added up before they are written.
    write_run(folder.path(), &names(5), 3_600, 200, false);
    let begin = Instant::now();
    let page = render_test_page(folder.path());
    println!("an hour, 5 operations, 200 series: {} bytes in {:?}", page.len(), begin.elapsed());
    assert!(page.len() < 1_500_000, "{}", page.len());
    assert_self_contained(&page);
    let data = page_data(&page);
    let most = data["charts"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|chart| chart["choices"].as_array().unwrap().iter());
    let most = most.flat_map(|choice| choice["s"].as_array().unwrap().iter());
    assert!(most.map(|s| s["t"].as_array().unwrap().len()).max().unwrap() <= points::MOST);
}

#[test]
fn what_is_damaged_is_reported_with_what_is_known() {
    // All errors, no monitors.
    let failed = tempfile::tempdir().unwrap();
    write_run(failed.path(), &names(1), 12, 0, true);
    let all = render_test_page(failed.path());
    assert_self_contained(&all);
    assert!(all.contains("No operation succeeded"));
    assert!(
        all.contains("<caption>Failures</caption>") && all.contains("<td class=\"word\">timed_out</td>"),
        "{all}"
    );
    assert!(all.contains("were not watched") && all.contains("No successful operation was measured"));
    // A damaged histogram, no events, no environment, an unreadable summary.
    let torn = tempfile::tempdir().unwrap();
    write_run(torn.path(), &names(1), 12, 3, false);
    let log = torn.path().join("latency.hlog");
    let text = std::fs::read_to_string(&log).unwrap();
    let cut = text.lines().take(10).collect::<Vec<_>>().join("\n");
    std::fs::write(&log, format!("{cut}\nTag=measure.x.ok.service,9,1,1,@@@\n")).unwrap();
    // The sums beside the log would make it good: they are lost as well.
    std::fs::remove_file(torn.path().join("totals.hlog")).unwrap();
    std::fs::remove_file(torn.path().join("events.jsonl")).unwrap();
    std::fs::remove_file(torn.path().join("environment.json")).unwrap();
    std::fs::write(torn.path().join("summary.json"), "{\"version\":").unwrap();
    let all = render_test_page(torn.path());
    assert_self_contained(&all);
    for message in
        ["later lines are left out", "events.jsonl", "environment.json", "summary.json", "INCOMPLETE"]
    {
        assert!(all.contains(message), "{message}");
    }
    assert!(all.contains("monitors cannot be put beside them"));
    // Seconds that are missing.
    let gaps = tempfile::tempdir().unwrap();
    write_run(gaps.path(), &names(1), 40, 0, false);
    for file in ["intervals.jsonl", "series.csv"] {
        let path = gaps.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let second = |line: &str| {
            let of = line.split("\"second\":").nth(1).unwrap_or(line);
            of.split(',').next().and_then(|n| n.parse::<u64>().ok())
        };
        let kept: Vec<&str> =
            text.lines().filter(|line| second(line).is_none_or(|s| !(10..20).contains(&s))).collect();
        std::fs::write(&path, format!("{}\n", kept.join("\n"))).unwrap();
    }
    let all = render_test_page(gaps.path());
    assert!(all.contains("10 seconds, the first at 10 s: "));
    let values = page_data(&all)["charts"][0]["choices"][0]["s"][0]["v"].to_string();
    assert!(values.contains("null"), "a gap is drawn as one: {values}");
    // Nothing at all.
    let empty = tempfile::tempdir().unwrap();
    write_run(empty.path(), &names(1), 0, 0, false);
    let all = render_test_page(empty.path());
    assert_self_contained(&all);
    assert!(all.contains("there is nothing to draw"));
    // The same of a run that was killed before its first second had ended is judged: it is not under way.
    std::fs::remove_file(empty.path().join("summary.json")).unwrap();
    let (mut dir, _) = RunDir::salvage_run(empty.path()).unwrap();
    dir.phases.clear();
    let killed = crate::recompute_summary::rebuild_summary(&dir, None, false);
    assert!(!crate::recompute_summary::is_under_way(&killed) && killed.verdict.trust == Trust::Invalid);
    assert!(crate::recompute_summary::is_under_way(&crate::recompute_summary::rebuild_summary(
        &dir, None, true
    )));
}

#[test]
fn phases_link_to_their_time_on_a_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &["READ".into()], 3, 0, false);
    let dir = RunDir::open(folder.path()).unwrap();
    let with = |address: &str| {
        let mut summary = dir.summary.clone().unwrap();
        summary.phases[0].link = Some(address.to_owned());
        let diagnosis = Diagnosis::default();
        let report = Report {
            dir: &dir,
            summary: &summary,
            recording: None,
            diagnosis: &diagnosis,
            notes: &[],
            price: None,
        };
        (run_page(&report), crate::markdown::of_run(&dir, &summary, None, &[]))
    };
    let (page, text) = with("https://g.example/d/x?from=1&to=2");
    assert!(page.contains("<a href=\"https://g.example/d/x?from=1&amp;to=2\">measure</a>"), "{page}");
    assert!(text.contains("on the dashboard: [measure](<https://g.example/d/x?from=1&to=2>)"), "{text}");
    // Only the web's own schemes are links, and nothing gets out of one.
    let (page, text) = with("javascript:alert(1)");
    assert!(!page.contains("href=\"javascript") && !text.contains("](<javascript"), "{text}");
    let (page, text) = with("https://g/\"><script>x</script>)[a](b");
    assert!(!page.contains("<script>x") && !text.contains("<script>x") && !text.contains("[a](b"), "{text}");
}
