//! `dyno serve` in a real browser: list, open, compare, follow, stop.

use crate::checks::{Axe, look};
use crate::{browser, run, sweep};
use dyno_testkit::{Dyno, signal};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server that is ended with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(dyno: &Dyno, args: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(args);
        let mut command = dyno.command(&all);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("dyno");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("an address");
        Served { child, address: line.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs a browser: make test-all"]
fn runs_are_listed_opened_and_compared_in_a_browser() {
    let dyno = Dyno::new();
    let Some(mut browser) = browser(dyno.folder.path(), "dyno serve in a browser") else { return };
    let axe = Axe::fetch(dyno.folder.path());
    std::fs::create_dir(dyno.path("all")).expect("a folder");
    for (name, service) in [("fast", "100us"), ("slow", "130us")] {
        std::fs::write(dyno.path("x.yaml"), sweep(service)).expect("a file");
        run(&dyno, &["run", "x.yaml", "--out", &format!("all/{name}"), "-q"]);
    }
    run(
        &dyno,
        &["run", "sqlite:a.db", "-n", "500", "--duration", "3s", "-u", "2", "--out", "all/a <b>&'run", "-q"],
    );
    let served = Served::start(&dyno, &["all"]);
    for (width, dark) in [(390, false), (1280, false), (390, true), (1280, true)] {
        look(&mut browser, &axe, &served.address, width, dark);
        if !dark {
            browser.whole_picture(&format!("list-{width}"));
        }
    }
    assert_eq!(browser.value("document.querySelectorAll('tbody tr').length"), 3);
    assert_eq!(browser.value("document.querySelectorAll('form[method=post]').length"), 0, "read-only");
    // Words that only one row has.
    let typed = "(w => { const e = document.getElementById('filter'); e.value = w; \
        e.dispatchEvent(new Event('input')); return [...document.querySelectorAll('tbody tr')].filter(r => !r.hidden).length; })";
    for (message, rows) in [("sqlite RUN", 1), ("nothing has this", 0), ("", 3)] {
        assert_eq!(browser.value(&format!("{typed}({message:?})")), rows, "{message}");
    }
    // A report, of a directory whose name would be markup.
    browser
        .value("[...document.querySelectorAll('tbody a')].find(a => a.textContent.includes('<b>')).click()");
    browser.await_load();
    browser.until("document.querySelector('h1').textContent.includes('SQLite')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Two experiments, the second as the baseline.
    browser.open(&served.address, 1280, false);
    browser.until("document.getElementById('compare').disabled");
    browser.value("document.querySelector('input[name=dir][value=fast]').click()");
    browser.value("document.querySelector('input[name=dir][value=slow]').click()");
    browser.value("document.querySelector('input[name=baseline][value=slow]').click()");
    // The list is asked for every two seconds; what was chosen stays chosen.
    std::thread::sleep(Duration::from_millis(2_500));
    browser.until("document.getElementById('compare').textContent === 'Compare 2'");
    browser.value("document.getElementById('compare').click()");
    browser.await_load();
    let verdict = browser.value("document.querySelector('header').textContent");
    let verdict = verdict.as_str().expect("text");
    assert!(
        verdict.contains("BETTER") && verdict.contains("users 4") | verdict.contains("users=4"),
        "{verdict}"
    );
    let address = browser.value("location.href");
    for width in [390, 1280] {
        look(&mut browser, &axe, address.as_str().expect("an address"), width, false);
        browser.whole_picture(&format!("served-compare-{width}"));
    }
}

#[test]
#[ignore = "needs a browser: make test-all"]
fn an_experiment_is_followed_and_stopped_in_a_browser() {
    let dyno = Dyno::new();
    let Some(mut browser) = browser(dyno.folder.path(), "following a run in a browser") else { return };
    let axe = Axe::fetch(dyno.folder.path());
    std::fs::create_dir(dyno.path("all")).expect("a folder");
    let file = "target: \"sqlite:{dir}/a.db\"\nworkload: {ycsb: {workload: a, records: 200}}\n\
        phases: {measure: {users: 2, duration: 120s, warmup: 2s}}\n";
    std::fs::write(dyno.path("x.yaml"), file).expect("a file");
    let served = Served::start(&dyno, &["all", "--allow-write"]);
    browser.open(&served.address, 1280, false);
    assert_eq!(browser.value("location.search"), "", "the token is not left in the address");
    let begun = Instant::now();
    let mut experiment = dyno.start(&["run", "x.yaml", "--out", "all/long", "-q"]);
    browser.until("[...document.querySelectorAll('tbody a')].some(a => a.textContent.startsWith('follow'))");
    browser.value(
        "[...document.querySelectorAll('tbody a')].find(a => a.textContent.startsWith('follow')).click()",
    );
    browser.await_load();
    browser.until("/^[0-9,.]+\\/s$/.test(document.getElementById('throughput').textContent)");
    browser.until("document.getElementById('phase').textContent === 'measure'");
    browser.until("/ms|µs/.test(document.getElementById('p99').textContent)");
    browser.until("/min|s$/.test(document.getElementById('left').textContent)");
    assert_eq!(browser.value("document.getElementById('state').textContent"), "running");
    // Seconds come as they are written.
    let points = "document.querySelector('.plot path.s').getAttribute('d').split('L').length";
    let before = browser.value(points).as_u64().expect("a number");
    browser.until(&format!("{points} >= {}", before + 3));
    let page = browser.value("location.href");
    for width in [390, 1280] {
        browser.open(page.as_str().expect("an address"), width, false);
        browser.until("document.querySelectorAll('.plot path[d^=M]').length >= 3");
        assert!(browser.value("document.documentElement.scrollWidth <= innerWidth") == true, "{width}");
        axe.check(&mut browser, "the page that follows");
        browser.whole_picture(&format!("live-{width}"));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.value("document.querySelector('form[action^=\"/stop/\"] button').click()");
    browser.await_load();
    browser.until("document.body.textContent.includes('not complete')");
    let ended = experiment.wait().expect("it ends");
    assert_eq!(ended.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(100), "it was stopped, it did not end");
    assert!(dyno.path("all/long/journal.jsonl").is_file(), "nothing is deleted");
    dyno_testkit::assert_exit(&dyno.run(&["status", "all/long"]), &[0]);
}

#[test]
#[ignore = "needs a browser: make test-all"]
fn a_page_that_follows_a_load_goes_over_to_the_operations_behind_it() {
    let dyno = Dyno::new();
    let Some(mut browser) = browser(dyno.folder.path(), "following a load in a browser") else { return };
    std::fs::create_dir(dyno.path("all")).expect("a folder");
    let served = Served::start(&dyno, &["all"]);
    // A disk that takes a millisecond for each record would load longer than a page is waited for.
    let target = format!("sqlite:{}?synchronous=off", dyno.path("a.db").display());
    let small = ["--records", "100000", "--fields", "1", "--field-length", "10", "--load-batch", "1"];
    let mut words = vec!["run", &target, "--users", "2", "--duration", "20s", "--quiet", "--out", "all/one"];
    words.extend(small);
    let mut run = dyno.start(&words);
    // Held in the midst of its load, however fast that is.
    let series = dyno.path("all/one/series.csv");
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&series).is_ok_and(|text| text.contains(",load,TOTAL,")) {
        assert!(Instant::now() < end && run.try_wait().expect("a process").is_none(), "no second of a load");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(run.id(), "STOP");
    browser.open(&format!("{}live/one", served.address), 1280, false);
    browser.until("document.getElementById('phase').textContent === 'load'");
    // The name stands before the shares, where an interval has enough operations for these.
    let metric = "document.getElementById('metric').textContent.split(';')[0]";
    browser.until(&format!("{metric} === 'INSERT'"));
    signal(run.id(), "CONT");
    browser.until("document.getElementById('phase').textContent === 'measure'");
    browser.until(&format!("['READ', 'UPDATE'].includes({metric})"));
    browser.until("/ms|µs/.test(document.getElementById('p99').textContent)");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert!(run.wait().expect("a process").success());
    // A page that has followed a run to its end gives place to the report.
    browser.until(
        "/^(VALID|SUSPECT|INVALID)/.test(document.querySelector('.bar .trust')?.textContent) && \
         document.getElementById('metric') === null",
    );
}
