//! The pages of `dyno serve`: the list, a run that is followed, and words where there is no page.

use crate::html::charts::{Chart, ChartChoice, PageData};
use crate::html::document::{PageAssets, SCRIPT, TOOLS, render_figure, render_page};
use crate::html::text::{escape_html, format_rate, format_timestamp, format_us};
use dyno_types::percent::{self, AsciiSet, RESERVED};
use std::fmt::Write as _;

const LIST: &str = include_str!("list.js");
const LIVE: &str = include_str!("live.js");

/// Kind of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedKind {
    /// A run.
    #[default]
    Run,
    /// An experiment.
    Experiment,
}

/// An entry of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Path below the served folder.
    pub name: String,
    /// Kind of the entry.
    pub kind: ListedKind,
    /// Title of the run.
    pub title: String,
    /// Begin, RFC 3339.
    pub started: String,
    /// Target.
    pub target: String,
    /// Operations per second; of an experiment the greatest of its runs.
    pub throughput: Option<f64>,
    /// p99 of the response time of the slowest operation of a run, microseconds; infinite if arrivals were dropped.
    pub p99_us: Option<f64>,
    /// The verdict, in words.
    pub verdict: String,
    /// `running`, `complete` ...
    pub state: String,
    /// Of an experiment: runs that have ended, and that are planned.
    pub runs: Option<(usize, usize)>,
    /// Files that could not be read, with the reason.
    pub words: String,
}

/// A path as part of an address of this server.
pub fn encode_path(kind: &str, name: &str) -> String {
    const SET: &AsciiSet = &RESERVED.remove(b'/');
    format!("/{kind}/{}", percent::percent_encode(name, SET))
}

fn class(verdict: &str) -> &'static str {
    match verdict {
        _ if verdict.contains("invalid") => "invalid",
        _ if verdict.contains("suspect") => "suspect",
        _ if verdict.contains("valid") => "valid",
        _ => "dim",
    }
}

fn stop_form(name: &str) -> String {
    format!(
        "<form method=\"post\" action=\"{}\"><button type=\"submit\">Stop<span class=\"away\"> {}</span></button></form>",
        escape_html(&encode_path("stop", name)),
        escape_html(name)
    )
}

/// What an entry is: `experiment, 3 of 12 runs, users`; of a run its title.
fn words_of(one: &Listed) -> String {
    let what = match (one.kind, one.runs) {
        (ListedKind::Experiment, Some((ended, planned))) => format!("experiment, {ended} of {planned} runs"),
        (ListedKind::Experiment, None) => "experiment".into(),
        (ListedKind::Run, _) => "run".into(),
    };
    match one.title.is_empty() || one.title == one.name {
        true => what,
        false => format!("{what}, {}", one.title),
    }
}

/// The rows of the list. `writes`: whether experiments may be stopped.
pub fn list_rows(all: &[Listed], writes: bool) -> String {
    let mut out = String::new();
    for one in all {
        let name = escape_html(&one.name);
        let running = one.state == "running";
        let report = match one.state == "unreadable" {
            true => name.clone(),
            false => {
                format!("<a href=\"{}/report.html\">{name}</a>", escape_html(&encode_path("dir", &one.name)))
            }
        };
        let follow = match running {
            true => {
                format!(
                    " <a href=\"{}\">follow<span class=\"away\"> {name}</span></a>",
                    escape_html(&encode_path("live", &one.name))
                )
            }
            false => String::new(),
        };
        let stop = match running && writes && one.kind == ListedKind::Experiment {
            true => stop_form(&one.name),
            false => String::new(),
        };
        let words =
            if one.words.is_empty() { String::new() } else { format!(": {}", escape_html(&one.words)) };
        let _ = writeln!(
            out,
            "<tr><td data-head=\"compare\"><input type=\"checkbox\" name=\"dir\" value=\"{name}\" form=\"choice\" \
             aria-label=\"compare {name}\"></td><td data-head=\"baseline\"><input type=\"radio\" name=\"baseline\" \
             value=\"{name}\" form=\"choice\" aria-label=\"{name} is the baseline\"></td>\
             <td class=\"word\" data-head=\"name\"><span>{report} <small class=\"dim\">{}</small></span></td>\
             <td class=\"word when\" data-head=\"started\">{}</td>\
             <td class=\"word\" data-head=\"target\">{}</td><td data-head=\"operations/s\">{}</td>\
             <td data-head=\"p99\">{}</td><td class=\"word grade\" data-head=\"verdict\"><span class=\"{}\">{}</span></td>\
             <td class=\"word{}\" data-head=\"state\">{}{words}{follow}{stop}</td></tr>",
            escape_html(&words_of(one)),
            escape_html(&format_timestamp(&one.started)),
            escape_html(&one.target),
            one.throughput.map_or("-".into(), format_rate),
            one.p99_us.map_or("-".into(), |p99| if p99.is_finite() {
                format_us(p99)
            } else {
                "dropped".into()
            }),
            class(&one.verdict),
            if one.verdict.is_empty() { "-".into() } else { escape_html(&one.verdict) },
            // Words say what is wrong, as long as they need.
            if one.words.is_empty() { " state" } else { "" },
            escape_html(&one.state),
        );
    }
    if all.is_empty() {
        out.push_str("<tr><td class=\"word\" colspan=\"9\">There is no run and no experiment in this folder.</td></tr>\n");
    }
    out
}

/// The list of a folder. `left_out` older entries are not shown.
pub fn list_page(folder: &str, all: &[Listed], left_out: usize, writes: bool) -> String {
    let mut out = format!(
        "<header>\n<h1>Runs and experiments</h1>\n<p class=\"dim\">{}, the latest first. {}</p>\n\
         <p id=\"lost\" class=\"note\" role=\"status\" hidden>The server does not answer: this list is as it was.</p>\n",
        escape_html(folder),
        match writes {
            true => "Experiments that run can be stopped here; nothing is ever deleted.",
            false => "Read-only: nothing can be changed from here.",
        }
    );
    if left_out > 0 {
        let _ = writeln!(out, "<p class=\"note\">{left_out} older ones are not shown.</p>");
    }
    out.push_str(
        "</header>\n<main id=\"main\" tabindex=\"-1\">\n<form id=\"choice\" method=\"get\" action=\"/compare\">\
         <div class=\"tools\"><button type=\"submit\" id=\"compare\">Compare</button>\
         <span class=\"dim\">No baseline chosen: the earliest run is the baseline.</span>\
         <input type=\"search\" id=\"filter\" placeholder=\"Filter\" autocomplete=\"off\" \
         aria-label=\"Show only rows with these words\"> <span id=\"shown\" class=\"dim\" role=\"status\"></span></div></form>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Runs and experiments\">\
         <table class=\"list\"><thead><tr>",
    );
    for (at, head) in
        ["compare", "baseline", "name", "started", "target", "operations/s", "p99", "verdict", "state"]
            .iter()
            .enumerate()
    {
        let class = if matches!(at, 2..=4 | 7..=8) { " class=\"word\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{head}</th>");
    }
    let _ = write!(out, "</tr></thead><tbody>\n{}</tbody></table></div>\n</main>\n", list_rows(all, writes));
    render_page("dyno: runs and experiments", &out, &PageAssets { scripts: &[LIST], data: None, asks: true })
}

fn empty(id: &str, title: &str, unit: &str, log: bool) -> Chart {
    let choices = vec![ChartChoice::default()];
    Chart { id: id.into(), title: title.into(), unit: unit.into(), log, choices }
}

/// A run or an experiment under way.
pub fn live_page(name: &str, kind: ListedKind, writes: bool) -> String {
    let charts = vec![
        empty("throughput", "Throughput", "operations/s", false),
        empty("response", "Response time", "us", true),
    ];
    let data = PageData { span: (0.0, 1.0), charts, ..PageData::default() };
    let mut out = format!(
        "<header>\n<h1>{0}</h1>\n<p><span id=\"state\" role=\"status\">asking</span> \
         <span id=\"which\" class=\"dim\"></span></p>\n\
         <p id=\"over\" class=\"note\" hidden>It is over: <a href=\"{1}/report.html\">the report</a>.</p>\n\
         <p id=\"lost\" class=\"note\" hidden>The server does not answer: what is shown is as it was. \
         <span id=\"why\"></span></p>\n\
         <nav aria-label=\"Pages\"><ul><li><a href=\"/\">All runs and experiments</a></li>\
         <li><a href=\"{1}/report.html\">Report of what there is</a></li></ul></nav>\n<dl class=\"figures\">",
        escape_html(name),
        escape_html(&encode_path("dir", name))
    );
    let mut tiles = vec![
        ("throughput", "Throughput", ""),
        ("p50", "p50 response", "metric"),
        ("p99", "p99 response", "metric99"),
        ("phase", "Phase", ""),
        ("left", "Left of the phase", ""),
    ];
    if kind == ListedKind::Experiment {
        tiles.push(("runs", "Runs that have ended", ""));
    }
    for (id, title, more) in tiles {
        let more = if more.is_empty() { String::new() } else { format!("<small id=\"{more}\"></small>") };
        let _ = write!(out, "<div><dt>{title}</dt><dd><span id=\"{id}\">-</span>{more}</dd></div>");
    }
    out.push_str("</dl>\n");
    if kind == ListedKind::Experiment && writes {
        let _ = writeln!(out, "{}", stop_form(name));
    }
    let _ = write!(
        out,
        "</header>\n<main id=\"main\" tabindex=\"-1\" data-follow=\"{}\" data-name=\"{}\">\n{TOOLS}",
        escape_html(&encode_path("tail", name)),
        escape_html(name)
    );
    data.charts.iter().enumerate().for_each(|(number, chart)| out.push_str(&render_figure(number, chart)));
    out.push_str(
        "<p class=\"dim\">The last hour of seconds at most; the report has everything.</p>\n</main>\n",
    );
    render_page(
        &format!("{name}, live"),
        &out,
        &PageAssets { scripts: &[SCRIPT, LIVE], data: Some(&data), asks: true },
    )
}

/// Words where there is no page.
pub fn message_page(title: &str, words: &str) -> String {
    let body = format!(
        "<header>\n<h1>{}</h1>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n<p class=\"note\">{}</p>\n\
         <p><a href=\"/\">All runs and experiments</a></p>\n</main>\n",
        escape_html(title),
        escape_html(words)
    );
    render_page(title, &body, &PageAssets { scripts: &[], data: None, asks: false })
}
