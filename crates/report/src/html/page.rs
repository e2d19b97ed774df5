//! The page of a run.

use super::charts::{Chart, Data, distributions, of_load};
use super::sections::Made;
use super::text::{esc, json};
use super::timeline::{Mark, Timeline};
use super::watched::watched;
use super::{judged, sections};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_analysis::diagnose::Finding;
use dyno_analysis::series::{Stability, stability};
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::Summary;
use dyno_rundir::{RunDir, series};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Events that are marked at most.
const MARKS: usize = 200;

/// What a report is made of.
pub struct Report<'a> {
    /// The run.
    pub dir: &'a RunDir,
    /// Its summary; of a run that was cut off what can be said of it.
    pub summary: &'a Summary,
    /// What monitors saw, if anything did.
    pub recording: Option<&'a Recording>,
    /// What limits the run.
    pub findings: &'a [Finding],
    /// What could not be read, in words.
    pub notes: &'a [String],
}

/// The source of a style or script in a security policy.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// A whole document: title, body, data for the script.
pub(super) fn document(title: &str, body: &str, data: &Data) -> String {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(STYLE),
        source(SCRIPT)
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n{body}\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        esc(title),
        json(data)
    )
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

/// The page of one run.
pub fn run_page(report: &Report<'_>) -> String {
    let mut notes: Vec<String> = report.notes.to_vec();
    let rows = match std::fs::read_to_string(report.dir.path.join("series.csv")) {
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
    if let Some((seconds, steady)) = &steady {
        marked(&mut axis, seconds, steady);
    }
    let steady = steady.map(|(_, steady)| steady);
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
    let made = Made { data: &data, load: first, marks: &axis.marks, constant: &constant, notes: &notes };
    let body = sections::body(report, &made, steady.as_ref());
    document(&format!("{}: {}", report.summary.title, report.summary.database), &body, &data)
}

/// How steady the throughput was, and which second each of its values is.
fn judge(report: &Report<'_>, notes: &mut Vec<String>) -> Option<(Vec<u64>, Stability)> {
    match report.dir.succeeded() {
        Ok(seconds) => {
            // A second without a line is one without an operation only if its neighbours were recorded.
            let expected = seconds.keys().last().map_or(0, |last| last + 1);
            if (seconds.len() as u64) < expected {
                notes.push(format!(
                    "{} of {expected} seconds of the measured phase were not recorded: they are gaps, not zeros",
                    expected - seconds.len() as u64
                ));
            }
            let (seconds, values) = judged::whole_seconds(report.summary, &seconds);
            Some((seconds, stability(&values)?))
        }
        Err(error) => {
            notes.push(format!("stability cannot be judged: {error}"));
            None
        }
    }
}

/// Change points and stalls beside the events.
fn marked(axis: &mut Timeline, seconds: &[u64], steady: &Stability) {
    let Some(begin) = axis.span("measure").map(|span| span.from) else { return };
    let at = |index: usize| begin + seconds.get(index).map_or(0.0, |second| *second as f64);
    for pair in steady.segments.windows(2) {
        let text = format!("throughput changes from {:.0} to {:.0}/s", pair[0].median, pair[1].median);
        axis.marks.push(Mark { at: at(pair[1].range.0), text });
    }
    for stall in steady.stalls.iter().take(MARKS / 2) {
        let text = format!("stall of {} s, down to {:.0}/s", stall.intervals, stall.least);
        axis.marks.push(Mark { at: at(stall.at), text });
    }
    axis.marks.sort_by(|a, b| a.at.total_cmp(&b.at));
}
