//! The pages in a real browser: `make test-all` runs this where there is one.

mod checks;
mod chromium;
mod documentation;
mod served;

use checks::{Axe, look, printed};
use chromium::Chromium;
use dyno_testkit::Dyno;
use std::path::Path;

/// A browser, or `None` with the test named as skipped.
fn browser(folder: &Path, what: &str) -> Option<Chromium> {
    let program = chromium::program();
    if program.is_none() {
        dyno_testkit::skip_because(what, "no chromium on PATH (Debian: apt-get install chromium)");
    }
    program.map(|program| Chromium::start(&program, folder))
}

/// Runs to the end.
fn run(dyno: &Dyno, args: &[&str]) {
    dyno.assert_ran(&dyno.run(args));
}

/// An experiment of two engines that takes long enough for two tens of seconds.
const ENGINES: &str = "workload: {ycsb: {workload: a, records: 200}}\n\
    phases: {measure: {users: 2, duration: 21s, warmup: 0s}}\nfactors:\n  \
    engine: [{label: one, target: \"sqlite:{dir}/a.db\"}, {label: two, target: \"redb:{dir}/a.redb\"}]\n  \
    memory: [{label: 1g, seed: 1}]\n";

/// A simulated server at several numbers of users.
fn sweep(service: &str) -> String {
    format!(
        "target: \"sim:?service={service}&distribution=exponential\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
         phases: {{measure: {{operations: 20000}}}}\nfactors: {{users: {{from: 1, to: 8, times: 2}}}}\nrepetitions: 4\n"
    )
}

/// An experiment whose names have no blank where a line could end.
const LONG: &str = "name: storage-engines-with-and-without-compression-and-an-append-only-file\n\
    target: \"sim:?service=100us&distribution=exponential\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
    phases: {measure: {operations: 5000}}\nfactors:\n  \
    configuration:\n    - {label: io-threads-1-appendonly-yes-everysec-maxmemory-policy-allkeys-lru, seed: 1}\n    \
    - {label: \"mongodb+srv://a-long-name.of-a-region-1.cloud.example.com:27017/base?readPreference=secondary\", seed: 2}\n    \
    - {label: underscores_which_are_no_place_where_a_line_of_text_may_end_in_a_browser, seed: 3}\nrepetitions: 2\n";

#[test]
#[ignore = "needs a browser: make test-all"]
fn reports_work_in_a_browser() {
    let dyno = Dyno::new();
    let Some(mut browser) = browser(dyno.folder.path(), "the reports in a browser") else { return };
    let axe = Axe::fetch(dyno.folder.path());
    run(
        &dyno,
        &["run", "sqlite:a.db", "--records", "500", "--duration", "4s", "--users", "2", "--out", "run", "-q"],
    );
    for (name, service) in [("sweep", "100us"), ("slower", "130us")] {
        std::fs::write(dyno.path("x.yaml"), sweep(service)).expect("a file");
        run(&dyno, &["run", "x.yaml", "--out", name, "-q"]);
    }
    std::fs::write(dyno.path("y.yaml"), ENGINES).expect("a file");
    run(&dyno, &["run", "y.yaml", "--out", "engines", "-q"]);
    std::fs::write(dyno.path("z.yaml"), LONG).expect("a file");
    run(&dyno, &["run", "z.yaml", "--out", "long", "-q"]);
    run(&dyno, &["compare", "long", "--by", "configuration", "--html", "long.html"]);
    run(&dyno, &["compare", "sweep", "slower", "--html", "cells.html"]);
    run(&dyno, &["compare", "sweep", "--by", "users", "--html", "levels.html"]);
    run(&dyno, &["compare", "run", "engines/runs", "--html", "one.html"]);
    run(&dyno, &["report", "run", "--price", "server=0.5", "--format", "html", "-o", "priced.html"]);
    for (page, figures) in [
        ("run/report.html", 8),
        ("priced.html", 8),
        ("sweep/report.html", 1),
        ("engines/report.html", 2),
        ("cells.html", 8),
        ("levels.html", 6),
        ("long/report.html", 1),
        ("long.html", 1),
    ] {
        let address = format!("file://{}", dyno.path(page).display());
        for (width, dark) in [(390, false), (1280, false), (390, true), (1280, true)] {
            let seen = look(&mut browser, &axe, &address, width, dark);
            assert!(seen["figures"].as_u64() >= Some(figures), "{page}: {seen}");
            if !dark {
                browser.whole_picture(&format!("{}-{width}", page.replace(['/', '.'], "-")));
            }
        }
        printed(&mut browser, &address);
    }
    // A burst of the load that is a thousand times the measured phase flattens nothing, and is told.
    browser.open(&format!("file://{}", dyno.path("run/report.html").display()), 1280, false);
    let drawn = browser.value(BURST);
    let (height, told) = (drawn[0].as_f64().expect("a number"), drawn[1].as_str().expect("text"));
    assert!(height > 60.0 && told.contains("\u{2191} 100,000"), "{drawn}");
}

/// Gives the page a load of 100,000/s before a phase of 50 to 100/s: the height of the phase on the chart, and its words.
const BURST: &str = r#"(async () => {
  const t = [1, 2, 3, 4, 6, 7, 8, 9], v = [100000, 100000, 100000, 100000, 100, 50, 100, 50];
  const s = [{ n: "succeeded", t, v, x: Float64Array.from(t) }];
  const detail = { span: [0, 10], bands: [[0, 5, "load"], [5, 10, "measure"]], charts: [s] };
  document.dispatchEvent(new CustomEvent("dyno:more", { detail }));
  await new Promise(done => setTimeout(done, 300));
  const plot = document.querySelector("figure[data-chart='0'] .plot");
  const y = plot.querySelector("path.s").getAttribute("d").split(/[ML]/).slice(-4).map(p => Number(p.split(" ")[1]));
  return [Math.max(...y) - Math.min(...y), plot.textContent];
})()"#;

/// Pages that are there already, such as those of `dyno-bench reports FOLDER`: `DYNO_PAGES` names their folder.
#[test]
#[ignore = "needs a browser: make test-all"]
#[expect(clippy::print_stderr, reason = "how long a zoom takes is for the reader; no test asserts a speed")]
fn pages_of_long_runs_are_looked_at_where_some_are_given() {
    let Some(folder) = std::env::var_os("DYNO_PAGES") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let Some(mut browser) = browser(home.path(), "pages of long runs") else { return };
    let axe = Axe::fetch(home.path());
    let mut pages: Vec<_> =
        std::fs::read_dir(folder).expect("DYNO_PAGES").flatten().map(|e| e.path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "html"));
    pages.sort();
    for path in pages {
        let address = format!("file://{}", path.canonicalize().expect("a path").display());
        for width in [390, 1280] {
            let seen = look(&mut browser, &axe, &address, width, false);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            eprintln!(
                "{name} at {width}: zoom redraws in {} ms (median of 21), {} at most",
                seen["redraw"], seen["slowest"]
            );
        }
        printed(&mut browser, &address);
    }
}
