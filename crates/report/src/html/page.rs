//! The page of a run.

use crate::html::analysis_sections::OverTime;
use crate::html::charts::{Chart, Data, distributions, of_load};
use crate::html::sections;
use crate::html::sections::PageParts;
use crate::html::text::{esc, json, rate};
use crate::html::timeline::{Mark, Timeline};
use crate::html::watched::watched;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_analysis::diagnose::Finding;
use dyno_analysis::series::stability;
use dyno_rundir::files;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::Summary;
use dyno_rundir::{RunDir, series};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");

/// Events that are marked at most.
const MARKS: usize = 200;

/// Content of a report.
pub struct Report<'a> {
    /// The run.
    pub dir: &'a RunDir,
    /// Summary; of a run that was cut off what can be said of it.
    pub summary: &'a Summary,
    /// Samples of monitors, if there are any.
    pub recording: Option<&'a Recording>,
    /// Findings about what limits the run.
    pub findings: &'a [Finding],
    /// Describes what could not be read.
    pub notes: &'a [String],
    /// Price of an hour of everything that took part, if it is known.
    pub price: Option<f64>,
}

/// The source of a style or script in a security policy.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Scripts, data and rights of a document.
pub(super) struct PageAssets<'a> {
    /// Scripts, in order.
    pub scripts: &'a [&'a str],
    /// Data that they draw.
    pub data: Option<&'a Data>,
    /// True if it may ask the server that it came from, and send forms there.
    pub asks: bool,
}

/// A whole document that needs nothing else: title, body, data for the script.
pub(super) fn document(title: &str, body: &str, data: &Data) -> String {
    page(title, body, &PageAssets { scripts: &[SCRIPT], data: Some(data), asks: false })
}

/// A whole document.
pub(super) fn page(title: &str, body: &str, assets: &PageAssets<'_>) -> String {
    let sources: Vec<String> = assets.scripts.iter().map(|script| source(script)).collect();
    let scripts = if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") };
    let asks = if assets.asks { "connect-src 'self'; form-action 'self'" } else { "form-action 'none'" };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {scripts}; base-uri 'none'; {asks}",
        source(STYLE)
    );
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n{body}",
        esc(title)
    );
    if let Some(data) = assets.data {
        let _ = writeln!(out, "<script type=\"application/json\" id=\"data\">{}</script>", json(data));
    }
    assets.scripts.iter().for_each(|script| {
        let _ = writeln!(out, "<script>{script}</script>");
    });
    out.push_str("</body>\n</html>\n");
    out
}

/// A figure whose lines the script draws.
pub(super) fn figure(number: usize, chart: &Chart) -> String {
    let unit = if chart.unit == "us" { "us to s, logarithmic" } else { &chart.unit };
    format!(
        "<figure data-chart=\"{number}\"><figcaption>{} <small>{}</small></figcaption>\
         <div class=\"plot\"></div><div class=\"legend\"></div></figure>\n",
        esc(&chart.title),
        esc(unit)
    )
}

/// Buttons above charts over time.
pub(super) const TOOLS: &str = "<div class=\"tools\"><button type=\"button\" id=\"zoomin\">Zoom in</button>\
    <button type=\"button\" id=\"zoomout\">Zoom out</button><button type=\"button\" id=\"reset\">Whole run</button>\
    <span id=\"phases\"></span><span id=\"view\"></span><span id=\"at\" class=\"dim\"></span></div>\n";

/// A figure of latency by percentile: which of the page's distributions it shows.
pub(super) fn percentile_figure(from: usize, to: usize) -> String {
    format!(
        "<figure data-percentiles=\"{from}-{to}\"><figcaption>Response time by percentile <small></small></figcaption>\
         <div class=\"plot\"></div><div class=\"legend\"></div></figure>\n<p class=\"dim\">The axis is log2(1 / (1 - p)): every \
         step halves what lies beyond. A line ends where its last sample lies, or where dropped arrivals begin.</p>\n"
    )
}

/// The page of one run.
pub fn run_page(report: &Report<'_>) -> String {
    let mut notes: Vec<String> = report.notes.to_vec();
    let rows = match files::read_to_string(&report.dir.path.join("series.csv")) {
        Ok(text) => {
            let (rows, bad) = series::read(&text);
            if bad > 0 {
                notes.push(format!("series.csv: {bad} lines could not be read and are left out"));
            }
            rows
        }
        Err(error) => {
            notes.push(format!("series.csv: {error}: there is nothing to draw over time"));
            Vec::new()
        }
    };
    let mut axis = Timeline::of(report.dir, &rows);
    notes.append(&mut axis.notes);
    let measured = report.summary.measured();
    let open = measured.is_some_and(|phase| phase.offered.is_some());
    let steady = judge(report, &mut notes);
    if let Some(steady) = &steady {
        marked(&mut axis, steady);
    }
    let load = of_load(&rows, &axis, open);
    let seen = report.recording.map(|recording| watched(recording, &axis));
    let (first, constant) = (load.len(), seen.as_ref().map_or(Vec::new(), |seen| seen.constant.clone()));
    let mut data = Data { span: axis.reach(), ..Data::default() };
    data.bands = axis.spans.iter().map(|span| (span.from, span.to, span.name.clone())).collect();
    let (from, to) = data.span;
    let inside = axis.marks.iter().filter(|mark| (from..=to).contains(&mark.at));
    data.marks = inside.take(MARKS).map(|mark| (mark.at, mark.text.clone())).collect();
    data.charts = load.into_iter().chain(seen.into_iter().flat_map(|seen| seen.charts)).collect();
    data.distributions = measured.map_or(Vec::new(), |phase| distributions(report.dir, &phase.name, open));
    let made = PageParts { data: &data, load: first, marks: &axis.marks, constant: &constant, notes: &notes };
    let body = sections::body(report, &made, steady.as_ref());
    document(&format!("{}: {}", report.summary.title, report.summary.database), &body, &data)
}

/// Judges how steady the throughput was.
fn judge(report: &Report<'_>, notes: &mut Vec<String>) -> Option<OverTime> {
    match report.dir.interval_history() {
        Ok(history) => {
            notes.extend(history.missing());
            let found = stability(&history.values)?;
            Some(OverTime { history, found })
        }
        Err(error) => {
            notes.push(format!("stability cannot be judged: {error}"));
            None
        }
    }
}

/// Change points and stalls beside the events.
fn marked(axis: &mut Timeline, over_time: &OverTime) {
    let Some(begin) = axis.span("measure").map(|span| span.from) else { return };
    let at = |interval: usize| begin + over_time.second(interval) as f64;
    let steady = &over_time.found;
    for pair in steady.segments.windows(2) {
        let text = format!("throughput changes from {} to {}/s", rate(pair[0].median), rate(pair[1].median));
        axis.marks.push(Mark { at: at(pair[1].range.0), text });
    }
    for stall in steady.stalls.iter().take(MARKS / 2) {
        let text = format!(
            "stall of {} s, down to {}/s",
            stall.intervals as u64 * over_time.history.step_s,
            rate(stall.least)
        );
        axis.marks.push(Mark { at: at(stall.at), text });
    }
    axis.marks.sort_by(|a, b| a.at.total_cmp(&b.at));
}
