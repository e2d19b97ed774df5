//! The reports in a real browser: `make test-all` runs this where there is one. A page is opened in a frame of a given width by a
//! page of the test, which looks at it and tries its buttons and keys; what it saw is read from the browser's dump.

mod common;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's and others' names of the program.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|dir| BROWSERS.map(|name| dir.join(name)));
    found.into_iter().find(|program| program.is_file())
}

fn dyno(folder: &Path, args: &[&str]) {
    let done =
        Command::new(env!("CARGO_BIN_EXE_dyno")).args(args).current_dir(folder).output().expect("dyno");
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    // 5: a verdict that such a short run deserves.
    assert!(matches!(done.status.code(), Some(0 | 5)), "{args:?}: {words}");
}

/// Looks at the page in the frame, and says what it saw.
const LOOK: &str = r#"<!DOCTYPE html><meta charset="utf-8"><body><pre id="result"></pre>
<iframe id="frame" src="PAGE" width="WIDTH" height="900"></iframe><script>
const wait = ms => new Promise(done => setTimeout(done, ms));
frame.addEventListener("load", async () => {
  const page = frame.contentDocument, win = frame.contentWindow, seen = { violations: 0 };
  page.addEventListener("securitypolicyviolation", () => { seen.violations += 1; });
  await wait(300);
  const root = page.documentElement, text = id => { const e = page.getElementById(id); return e ? e.textContent : null; };
  seen.scroll = root.scrollWidth;
  seen.client = root.clientWidth;
  seen.figures = page.querySelectorAll("figure[data-chart], figure[data-percentiles]").length;
  seen.drawn = page.querySelectorAll("figure .plot svg path[d^=M]").length;
  seen.empty = [...page.querySelectorAll("figure .plot")].filter(plot => !plot.querySelector("path[d^=M]")).length;
  seen.unnamed = [...page.querySelectorAll("button, select, [tabindex='0']")]
    .filter(e => !(e.textContent.trim() && e.tagName === "BUTTON") && !e.getAttribute("aria-label")).length;
  seen.background = win.getComputedStyle(page.body).backgroundColor;
  const plot = page.querySelector("figure[data-chart] .plot");
  if (plot) {
    seen.before = text("view");
    const times = [];
    for (const id of ["zoomin", "zoomin", "zoomout", "zoomin"]) {
      page.getElementById(id).click();
      await wait(150);
      times.push(Number(root.dataset.redrawMs));
    }
    seen.zoomed = text("view");
    seen.redraw = times.sort((a, b) => a - b)[2];
    page.getElementById("reset").click();
    plot.focus();
    for (let i = 0; i < 5; i++) plot.dispatchEvent(new win.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    await wait(150);
    seen.after = text("view");
    seen.at = text("at");
    seen.values = [...page.querySelectorAll("figure[data-chart] .legend output")].filter(e => e.textContent !== "").length;
  }
  result.textContent = JSON.stringify(seen);
});
</script>"#;

fn look(program: &Path, folder: &Path, page: &Path, width: u32, dark: bool) -> Value {
    let harness = folder.join(format!("look-{width}-{dark}.html"));
    let address = format!("file://{}", page.display());
    std::fs::write(&harness, LOOK.replace("PAGE", &address).replace("WIDTH", &width.to_string()))
        .expect("a file");
    let done = Command::new("timeout")
        .arg("120")
        .arg(program)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--window-size=1400,1000",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("file://{}", harness.display()))
        .output()
        .expect("the browser");
    let dump = String::from_utf8_lossy(&done.stdout).into_owned();
    let result = dump.split("<pre id=\"result\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let result = result.unwrap_or_else(|| panic!("{dump} {}", String::from_utf8_lossy(&done.stderr)));
    serde_json::from_str(&result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .expect(result)
}

#[test]
#[ignore = "needs a browser: make test-all"]
fn reports_work_in_a_browser() {
    let Some(program) = browser() else {
        return common::skip_because(
            "the reports in a browser",
            "no chromium on PATH (Debian: apt-get install chromium)",
        );
    };
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    dyno(
        folder,
        &["run", "sqlite:a.db", "--records", "500", "--duration", "4s", "--users", "2", "--out", "run", "-q"],
    );
    let file = "target: \"sim:?service=100us\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 20000}}\nfactors: {users: {from: 1, to: 32, times: 2}}\nrepetitions: 2\n";
    std::fs::write(folder.join("x.yaml"), file).expect("a file");
    dyno(folder, &["run", "x.yaml", "--out", "sweep", "-q"]);
    let file = "workload: {ycsb: {workload: a, records: 200}}\nphases: {measure: {users: 2, duration: 21s, warmup: \
        0s}}\nfactors:\n  \
                engine: [{label: one, target: \"sqlite:{dir}/a.db\"}, {label: two, target: \"redb:{dir}/a.redb\"}]\n  \
                memory: [{label: 1g, seed: 1}]\n";
    std::fs::write(folder.join("y.yaml"), file).expect("a file");
    dyno(folder, &["run", "y.yaml", "--out", "engines", "-q"]);
    for (place, figures) in [("run", 8), ("sweep", 0), ("engines", 1)] {
        let page = folder.join(place).join("report.html");
        for (width, dark) in [(390, false), (1280, false), (390, true), (1280, true)] {
            let seen = look(&program, folder, &page, width, dark);
            let number = |key: &str| seen[key].as_u64().unwrap_or_else(|| panic!("{key}: {seen}"));
            assert!(number("scroll") <= number("client"), "{place} scrolls sideways at {width}: {seen}");
            assert_eq!((number("violations"), number("empty"), number("unnamed")), (0, 0, 0), "{seen}");
            assert!(number("figures") >= figures && number("drawn") >= figures, "{seen}");
            let bright = seen["background"] == "rgb(255, 255, 255)";
            assert_eq!(bright, !dark, "{seen}");
            if figures > 0 {
                assert!(seen["zoomed"] != seen["before"] && seen["after"] == seen["before"], "{seen}");
                assert!(
                    number("values") > 0 && seen["at"].as_str().is_some_and(|at| at.starts_with("at ")),
                    "{seen}"
                );
            }
        }
    }
}
