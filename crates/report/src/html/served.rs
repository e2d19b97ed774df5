//! The pages of `dyno serve`: the list, a run that is followed, and words where there is no page.

use crate::html::charts::{Chart, ChartChoice, PageData};
use crate::html::document::{PageAssets, SCRIPT, render_figure, render_page, render_tools};
use crate::html::text::{format_rate, format_timestamp, format_us, without_controls};
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::system_error::without_numbers;
use maud::{Markup, Render, html};

const LIST: &str = include_str!("list.js");
const LIVE: &str = include_str!("live.js");

/// Head of the column of throughput: an experiment has one of each of its runs.
const THROUGHPUT: &str = "operations/s (best run)";

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
    /// Operations per second; of an experiment those of its best run that is not invalid.
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
    pub message: String,
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

fn stop_form(name: &str) -> Markup {
    html! {
        form method="post" action=(encode_path("stop", name)) {
            button type="submit" { "Stop" span.away { " " (name) } }
        }
    }
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

/// The rows of the list, as they are sent. `writes`: whether experiments may be stopped.
pub fn list_rows(all: &[Listed], writes: bool) -> String {
    without_controls(&render_rows(all, writes).0)
}

fn render_rows(all: &[Listed], writes: bool) -> Markup {
    html! {
        @for one in all { (render_row(one, writes)) }
        @if all.is_empty() {
            tr { td.word colspan="9" { "There is no run and no experiment in this folder." } }
        }
    }
}

fn render_row(one: &Listed, writes: bool) -> Markup {
    let name = &one.name;
    let running = one.state == "running";
    let report = match one.state == "unreadable" {
        true => name.render(),
        false => html! { a href={ (encode_path("dir", name)) "/report.html" } { (name) } },
    };
    let p99 = one.p99_us.map_or("-".into(), format_us);
    let verdict = if one.verdict.is_empty() { "-" } else { &one.verdict };
    // Words say what is wrong, as long as they need.
    let has_words = !one.message.is_empty();
    html! {
        tr {
            td data-head="compare" {
                input type="checkbox" name="dir" value=(name) form="choice" aria-label={ "compare " (name) };
            }
            td data-head="baseline" {
                input type="radio" name="baseline" value=(name) form="choice"
                    aria-label={ (name) " is the baseline" };
            }
            td.word data-head="name" { span { (report) " " small.dim { (words_of(one)) } } }
            td class="word when" data-head="started" { (format_timestamp(&one.started)) }
            td.word data-head="target" { (one.target) }
            td data-head=(THROUGHPUT) { (one.throughput.map_or("-".into(), format_rate)) }
            td data-head="p99" { (p99) }
            td class="word grade" data-head="verdict" {
                span class=(class(&one.verdict)) { (verdict) }
            }
            td.word.state[!has_words] data-head="state" {
                (one.state)
                @if has_words { ": " (without_numbers(&one.message)) }
                @if running { " " a href=(encode_path("live", name)) { "follow" span.away { " " (name) } } }
                @if running && writes && one.kind == ListedKind::Experiment { (stop_form(name)) }
            }
        }
    }
}

/// The list of a folder. `left_out` older entries are not shown.
pub fn list_page(folder: &str, all: &[Listed], left_out: usize, writes: bool) -> String {
    let heads = ["compare", "baseline", "name", "started", "target", THROUGHPUT, "p99", "verdict", "state"];
    let class = |at: usize| matches!(at, 2..=4 | 7..=8).then_some("word");
    let body = html! {
        header {
            h1 { "Runs and experiments" }
            p.dim {
                (folder) ", the latest first. "
                @if writes {
                    "Experiments that run can be stopped here; nothing is ever deleted."
                } @else {
                    "Read-only: nothing can be changed from here."
                }
                " The best run of an experiment is never an invalid one."
            }
            p id="lost" class="note" role="status" hidden {
                "The server does not answer: this list is as it was."
            }
            @if left_out > 0 { p.note { (left_out) " older ones are not shown." } }
        }
        main id="main" tabindex="-1" {
            form id="choice" method="get" action="/compare" {
                div.tools {
                    button type="submit" id="compare" { "Compare" }
                    span.dim { "No baseline chosen: the earliest run is the baseline." }
                    input type="search" id="filter" placeholder="Filter" autocomplete="off"
                        aria-label="Show only rows with these words";
                    " "
                    span id="shown" class="dim" role="status" {}
                }
            }
            div.wide tabindex="0" role="region" aria-label="Runs and experiments" {
                table.list {
                    thead {
                        tr {
                            @for (at, head) in heads.iter().enumerate() {
                                th scope="col" class=[class(at)] { (head) }
                            }
                        }
                    }
                    tbody { (render_rows(all, writes)) }
                }
            }
        }
    };
    render_page("dyno: runs and experiments", &body, &PageAssets { scripts: &[LIST], data: None, asks: true })
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
    let report = format!("{}/report.html", encode_path("dir", name));
    let mut tiles = vec![
        ("throughput", "Throughput", None),
        ("p50", "p50 response", Some("metric")),
        ("p99", "p99 response", Some("metric99")),
        ("phase", "Phase", None),
        ("left", "Left of the phase", None),
    ];
    if kind == ListedKind::Experiment {
        tiles.push(("runs", "Runs that have ended", None));
    }
    let body = html! {
        header {
            h1 { (name) }
            p { span id="state" role="status" { "asking" } " " span id="which" class="dim" {} }
            p id="over" class="note" hidden { "It is over: " a href=(report) { "the report" } "." }
            p id="errors" class="note" hidden { "Failed in the last interval: " span id="failing" {} }
            p id="lost" class="note" hidden {
                "The server does not answer: what is shown is as it was. " span id="why" {}
            }
            nav aria-label="Pages" {
                ul {
                    li { a href="/" { "All runs and experiments" } }
                    li { a href=(report) { "Report of what there is" } }
                }
            }
            dl.figures {
                @for (id, title, more) in tiles {
                    div {
                        dt { (title) }
                        dd { span id=(id) { "-" } @if let Some(more) = more { small id=(more) {} } }
                    }
                }
            }
            @if kind == ListedKind::Experiment && writes { (stop_form(name)) }
        }
        main id="main" tabindex="-1" data-follow=(encode_path("tail", name)) data-name=(name) {
            (render_tools())
            @for (number, chart) in data.charts.iter().enumerate() { (render_figure(number, chart, &data)) }
            p.dim { "The last hour of seconds at most; the report has everything." }
        }
    };
    render_page(
        &format!("{name}, live"),
        &body,
        &PageAssets { scripts: &[SCRIPT, LIVE], data: Some(&data), asks: true },
    )
}

/// Words where there is no page.
pub fn message_page(title: &str, message: &str) -> String {
    let body = html! {
        header { h1 { (title) } }
        main id="main" tabindex="-1" {
            p.note { (without_numbers(message)) }
            p { a href="/" { "All runs and experiments" } }
        }
    };
    render_page(title, &body, &PageAssets { scripts: &[], data: None, asks: false })
}
