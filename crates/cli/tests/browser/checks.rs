//! What every page must keep, at any width.

use crate::chromium::Chromium;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Looks at a page, and tries its buttons and keys where it has charts over time.
const LOOK: &str = r#"(async () => {
  const wait = ms => new Promise(done => setTimeout(done, ms));
  await wait(300);
  const root = document.documentElement, seen = {};
  const text = id => { const e = document.getElementById(id); return e ? e.textContent : null; };
  seen.scroll = root.scrollWidth;
  seen.client = root.clientWidth;
  seen.figures = document.querySelectorAll("figure[data-chart], figure[data-percentiles], figure svg.fixed").length;
  const plots = [...document.querySelectorAll("figure .plot, figure svg.fixed")];
  seen.empty = plots.filter(plot => !plot.querySelector("path[d^=M], circle")).length;
  seen.unnamed = [...document.querySelectorAll("button, select, input, [tabindex='0']")]
    .filter(e => !(e.textContent.trim() && e.tagName === "BUTTON") && !e.getAttribute("aria-label")).length;
  seen.background = getComputedStyle(document.body).backgroundColor;
  const plot = document.querySelector("figure[data-chart] .plot"), zoomin = document.getElementById("zoomin");
  if (plot && zoomin) {
    seen.before = text("view");
    const times = [];
    for (let i = 0; i < 21; i++) {
      document.getElementById(i % 7 < 4 ? "zoomin" : "zoomout").click();
      await wait(80);
      times.push(Number(root.dataset.redrawMs));
    }
    seen.zoomed = text("view");
    seen.redraw = times.sort((a, b) => a - b)[10];
    seen.slowest = times[20];
    document.getElementById("reset").click();
    plot.focus();
    for (let i = 0; i < 5; i++) plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    await wait(150);
    seen.after = text("view");
    seen.at = text("at");
    seen.dated = Boolean(JSON.parse(document.getElementById("data").textContent).origin);
    seen.values = [...document.querySelectorAll("figure[data-chart] .legend output")].filter(e => e.textContent !== "").length;
    plot.dispatchEvent(new PointerEvent("pointerleave"));
  }
  return seen;
})()"#;

/// What rules of accessibility are broken.
const AXE: &str = r#"(async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | "));
})()"#;

/// Rules of accessibility, fetched by the name of their package for this test alone.
pub struct Axe(Option<String>);

impl Axe {
    /// Fetches them into `folder`; says so where they cannot be had.
    pub fn fetch(folder: &Path) -> Self {
        let place = folder.join("axe");
        let fetched = Command::new("timeout")
            .args(["120", "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&place)
            .arg("axe-core@4")
            .output();
        let file: PathBuf = place.join("node_modules/axe-core/axe.min.js");
        let text = fetched.ok().and_then(|_| std::fs::read_to_string(file).ok());
        if text.is_none() {
            dyno_testkit::skip_because("rules of accessibility", "npm cannot fetch axe-core");
        }
        Axe(text)
    }

    /// Asserts that the page breaks none.
    pub fn check(&self, browser: &mut Chromium, what: &str) {
        let Some(text) = &self.0 else { return };
        browser.value(&format!("{text}; true"));
        let found = browser.value(AXE);
        assert_eq!(found, serde_json::json!([]), "{what}: {found:#}");
    }
}

/// Opens a page and asserts what holds for all of them; gives what was seen.
pub fn look(browser: &mut Chromium, axe: &Axe, address: &str, width: u32, dark: bool) -> Value {
    let what = format!("{address} at {width}, {}", if dark { "dark" } else { "light" });
    browser.open(address, width, dark);
    let seen = browser.value(LOOK);
    let number = |key: &str| seen[key].as_u64().unwrap_or_else(|| panic!("{what}: {key}: {seen}"));
    assert!(number("scroll") <= number("client"), "{what} scrolls sideways: {seen}");
    assert_eq!((number("empty"), number("unnamed")), (0, 0), "{what}: {seen}");
    assert_eq!(seen["background"] == "rgb(255, 255, 255)", !dark, "{what}: {seen}");
    if seen["before"].is_string() {
        assert!(seen["zoomed"] != seen["before"] && seen["after"] == seen["before"], "{what}: {seen}");
        let at = seen["at"].as_str().is_some_and(|at| {
            at.starts_with("at ") && (at.contains("UTC") || !seen["dated"].as_bool().unwrap_or(false))
        });
        assert!(number("values") > 0 && at, "{what}: {seen}");
    }
    axe.check(browser, &what);
    assert_eq!(browser.complaints(), Vec::<String>::new(), "{what}");
    seen
}

/// Prints a page and asserts that every chart is on the paper.
pub fn printed(browser: &mut Chromium, address: &str) {
    browser.open(address, 1280, false);
    let charts = browser.value("document.querySelectorAll('figure .plot, figure svg.fixed').length").as_u64();
    let charts = charts.expect("a number") as usize;
    // In the middle of the page only some charts were on the screen.
    let bytes = browser.pdf();
    assert!(bytes.starts_with(b"%PDF"), "{address}: no PDF");
    let pages = bytes.windows(11).filter(|w| *w == b"/Type /Page").count();
    assert!(
        pages >= 1 && bytes.len() > 4_000 + charts * 300,
        "{address}: {pages} pages, {} bytes",
        bytes.len()
    );
    let all = "[...document.querySelectorAll('figure .plot, figure svg.fixed')]";
    let drawn = browser.value(&format!("{all}.filter(p => p.querySelector('path[d^=M], circle')).length"));
    assert_eq!(drawn.as_u64(), Some(charts as u64), "{address}: charts that were printed");
}
