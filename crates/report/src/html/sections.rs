//! The sections of a run's page, in their order.

use crate::html::analysis_sections;
use crate::html::analysis_sections::StabilityAnalysis;
use crate::html::charts::PageData;
use crate::html::document::{
    percentile_figure, render_bar, render_chip, render_figure, render_section, render_tile, render_tools,
};
use crate::html::facts::{answer_of_run, facts_of_run, render_facts, slowest_operation};
use crate::html::replay::render_replay;
use crate::html::text::{
    format_bytes, format_percent, format_rate, format_us, format_whole, join_markup, render_table,
};
use crate::html::timeline::Mark;
use crate::html::workload;
use crate::summary::{NOT_WATCHED, describe_connected, format_interval, in_unit};
use crate::{cost_efficiency, faults};
use dyno_analysis::diagnose::Diagnosis;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{Decision, Grade, Latency, Metric, Phase, Status, Summary, Trust};
use dyno_rundir::{RunDir, unit_name};
use dyno_types::metric::is_request;
use dyno_types::shell::{again, quoted};
use dyno_types::units::counted;
use maud::{Markup, Render, html};
use std::cmp::Reverse;

/// Content of a report.
pub struct Report<'a> {
    /// The run.
    pub dir: &'a RunDir,
    /// Summary; of a run that was cut off what can be said of it.
    pub summary: &'a Summary,
    /// Samples of monitors, if there are any.
    pub recording: Option<&'a Recording>,
    /// What changed in the run, and what limits it.
    pub diagnosis: &'a Diagnosis,
    /// Describes what could not be read.
    pub notes: &'a [String],
    /// Price of an hour of everything that took part, if it is known.
    pub price: Option<f64>,
}

/// Parts of a page, with notes from making them.
pub struct PageParts<'a> {
    /// For the script.
    pub data: &'a PageData,
    /// Number of charts of the load; the others are of monitors.
    pub load: usize,
    /// Events.
    pub marks: &'a [Mark],
    /// Series that never changed.
    pub constant: &'a [(String, f64)],
    /// Notes on what is missing.
    pub notes: &'a [String],
}

/// Identifiers, titles, and what the bar at the top calls them.
const SECTIONS: [(&str, &str, &str); 9] = [
    ("time", "Throughput and latency over time", "Over time"),
    ("percentiles", "Latency by percentile", "Percentiles"),
    ("operations", "Operations and outcomes", "Operations"),
    ("resources", "Resources and database", "Resources"),
    ("stability", "Stability", "Stability"),
    ("laws", "Laws", "Laws"),
    ("diagnosis", "Diagnosis", "Diagnosis"),
    ("environment", "Environment and settings", "Settings"),
    ("repeat", "Repeat this run", "Repeat"),
];

/// Charts that stand before the sections: throughput and response time.
const FIRST: usize = 2;

/// Events that are listed at most.
const LISTED: usize = 200;

/// Everything between `<body>` and the data.
pub fn render_body(report: &Report<'_>, made: &PageParts<'_>, steady: Option<&StabilityAnalysis>) -> Markup {
    let (class, word) = mark(report.summary);
    let message = workload::describe_workload(&report.dir.run.settings, report.summary.measured_phase());
    let message = if message.is_empty() { report.summary.title.clone() } else { message };
    let under_way = report.summary.status == Status::Running;
    let unwatched = if under_way || report.summary.is_watched() { "" } else { NOT_WATCHED };
    let chips = html! { (render_chip(class, &format!("{word}{unwatched}"))) (kept(report.summary)) };
    let content = |id: &str| match id {
        "time" => html! { (over_time(made)) (faults(report.summary)) },
        "percentiles" => by_percentile(report, made),
        "operations" => operations(report.summary),
        "resources" => resources(report, made),
        "stability" => analysis_sections::render_stability(steady),
        "laws" => analysis_sections::render_laws(report.dir),
        "diagnosis" => analysis_sections::render_diagnosis(report.diagnosis, report.recording.is_some()),
        "environment" => environment(report),
        _ => repeat(report),
    };
    html! {
        (render_bar(&chips, &message, &SECTIONS.map(|(id, _, short)| (id, short))))
        header { (headline(report, made, steady, &message)) }
        main id="main" tabindex="-1" {
            @for (id, title, _) in SECTIONS { (render_section(id, title, &content(id))) }
        }
    }
}

/// Section of the faults that the experiment asked for.
fn faults(summary: &Summary) -> Markup {
    html! {
        @if !summary.faults.is_empty() {
            (render_faults(&faults::HEADS, summary.faults.iter().map(faults::format_fault_row), 1))
        }
    }
}

/// Effects of faults: heads, rows, and how many of the first columns are words.
pub(super) fn render_faults(
    heads: &[impl Render],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = impl Render>>,
    words: usize,
) -> Markup {
    html! {
        div.dense { (render_table("Faults that the experiment asked for", heads, rows, words)) }
        p.dim { (faults::MEANING) }
    }
}

/// Where a dashboard shows the exact time of each phase.
fn links(summary: &Summary) -> Markup {
    let one = |phase: &Phase| {
        let link = phase.link.as_deref()?;
        // Nothing but the web's own schemes: the address comes from a file.
        Some(match crate::markdown::is_web(link) {
            true => html! { a href=(link) { (phase.name) } },
            false => html! { (phase.name) " " (link) },
        })
    };
    let all: Vec<Markup> = summary.phases.iter().filter_map(one).collect();
    html! {
        @if !all.is_empty() {
            p.dashboard { "The exact time of each phase on the dashboard: " (join_markup(all, ", ")) }
        }
    }
}

/// Class and word of the verdict.
fn mark(summary: &Summary) -> (&'static str, &'static str) {
    match summary.verdict.trust {
        _ if crate::recompute_summary::is_under_way(summary) => ("running", "RUNNING"),
        Trust::Valid => ("valid", "VALID"),
        Trust::Suspect => ("suspect", "SUSPECT"),
        Trust::Invalid => ("invalid", "INVALID"),
    }
}

/// How many thresholds held, as a chip: a run may be valid and miss one.
fn kept(summary: &Summary) -> Markup {
    let all = summary.thresholds.len();
    let count = |decision| summary.thresholds.iter().filter(|one| one.threshold_answer() == decision).count();
    match (all, count(Decision::Fail), count(Decision::TooClose)) {
        (0, _, _) => html! {},
        (_, 0, 0) => render_chip("valid", &format!("PASS {all} of {all}")),
        (_, 0, close) => render_chip("suspect", &format!("TOO CLOSE {close} of {all}")),
        (_, missed, _) => render_chip("invalid", &format!("FAIL {missed} of {all}")),
    }
}

/// The answer, what was measured, the figures that stand for the run, and their course.
fn headline(
    report: &Report<'_>,
    made: &PageParts<'_>,
    steady: Option<&StabilityAnalysis>,
    workload: &str,
) -> Markup {
    let summary = report.summary;
    let under_way = crate::recompute_summary::is_under_way(summary);
    let words = match summary.status {
        Status::Complete => None,
        Status::Running if under_way => {
            Some("The run is under way: this is what it has recorded so far. It is judged when it has ended.")
        }
        Status::Running => Some("INCOMPLETE: the run was killed; this is what it recorded."),
        Status::Interrupted => Some("INTERRUPTED: this is what was measured until then."),
        Status::Failed => Some("FAILED: the run ended by an error."),
    };
    let is_invalid = !under_way && summary.verdict.trust == Trust::Invalid;
    html! {
        h1 { (summary.title) " on " (summary.database) }
        p.answer { strong { (answer_of_run(summary)) } }
        (render_facts(&facts_of_run(&report.dir.run, &report.dir.environment, summary, workload)))
        @if let Some(message) = words { p.note { (message) } }
        @match summary.measured_phase() {
            Some(phase) => (figures(phase, steady, report.price, is_invalid)),
            None => p.note { "Nothing was measured: there is no figure for this run." },
        }
        div.grid2 {
            @for (number, chart) in made.data.charts[..made.load].iter().take(FIRST).enumerate() {
                (render_figure(number, chart, made.data))
            }
        }
        (reasons(summary))
        (thresholds(summary))
        @if let Some(phase) = summary.measured_phase() { (by_operation(phase)) (failures(phase)) }
        (links(summary))
        @for note in made.notes { p.note { (note) } }
    }
}

/// Grades of claims, and what speaks against them.
fn reasons(summary: &Summary) -> Markup {
    let verdict = &summary.verdict;
    let grade = |grade: &Grade| {
        let name = grade.trust.name();
        html! { (grade.claim) ": " strong class=(name) { (name) } }
    };
    html! {
        // The same words as in the summary, each in its colour.
        @if crate::summary::describe_grades(verdict).is_some() {
            p.grades { (join_markup(verdict.grades.iter().map(grade), ", ")) }
        }
        @if !verdict.reasons.is_empty() {
            ul.reasons {
                @for reason in &verdict.reasons {
                    @let word = reason.trust.trust_word();
                    // What speaks against nothing has no colour.
                    @let class = if reason.trust == Trust::Valid { "plain" } else { word };
                    li class=[(!verdict.is_asked(reason)).then_some("dim")] {
                        strong class=(class) { (word) " " (reason.check) } ": " (reason.text)
                    }
                }
            }
        }
    }
}

fn thresholds(summary: &Summary) -> Markup {
    let row = |t: &dyno_rundir::schema::Threshold| {
        let unit = |value: f64| in_unit(&t.expression, value);
        let measured = t.measured.map_or("not measurable".into(), unit);
        let interval = t.interval.as_ref().map_or(String::new(), |found| format_interval(found, unit));
        let class = match t.threshold_answer() {
            Decision::Pass => "valid",
            Decision::Fail => "invalid",
            Decision::TooClose => "suspect",
        };
        let word = html! { strong class=(class) { (t.threshold_answer().name()) } };
        [word, t.expression.render(), measured.render(), interval.render()]
    };
    let heads = ["result", "threshold", "measured", "95 % interval"];
    html! {
        @if !summary.thresholds.is_empty() {
            (render_table("Thresholds", &heads, summary.thresholds.iter().map(row), 2))
        }
    }
}

/// Counts, rate and response times of each operation on one line.
fn by_operation(phase: &Phase) -> Markup {
    const SHOWN: [&str; 4] = ["p50", "p95", "p99", "p99.9"];
    // Counts are those of the phase's arrivals, rates those of what was done in its time.
    let arrived = phase.outcomes.get("ok").copied().unwrap_or(0).max(1);
    let done = phase.count_successes() as f64 / arrived as f64;
    let row = |metric: &Metric| {
        let ok = metric.outcomes.get("ok").copied().unwrap_or(0);
        let failed = metric.outcomes.values().sum::<u64>() - ok;
        let share = failed as f64 / ((ok + failed) as f64).max(1.0);
        let times = metric.arrival_response();
        let percentile = |name: &&str| match times.and_then(|times| times.percentiles_us.get(*name)) {
            Some(Some(value)) => format_us(*value),
            Some(None) => "dropped".into(),
            None => "-".into(),
        };
        let per_s =
            if phase.seconds > 0.0 { format_rate(ok as f64 * done / phase.seconds) } else { "-".into() };
        [
            metric.name.clone(),
            format_whole(ok as f64),
            format_whole(failed as f64),
            format_percent(share),
            per_s,
        ]
        .into_iter()
        .chain(SHOWN.iter().map(percentile))
        .chain([times.and_then(|times| times.max_us).map_or("-".into(), format_us)])
        .collect()
    };
    // What users do when all is over is no operation of the load.
    let rows: Vec<Vec<String>> =
        phase.metrics.iter().filter(|metric| is_request(&metric.name)).map(row).collect();
    if rows.is_empty() {
        return html! {};
    }
    let first = ["operation", "succeeded", "failed", "failed, %", "succeeded, 1/s"];
    let heads = [&first, SHOWN.as_slice(), &["max"]].concat();
    render_table("Response times and failures by operation", &heads, &rows, 1)
}

/// What operations failed by: how many of each outcome, and the first error of it.
fn failures(phase: &Phase) -> Markup {
    let mut names: Vec<&String> =
        phase.outcomes.keys().chain(phase.errors.keys()).filter(|name| *name != "ok").collect();
    names.sort_by_key(|name| (Reverse(phase.outcomes.get(*name)), *name));
    names.dedup();
    let row = |name: &&String| {
        let count = phase.outcomes.get(*name).copied().unwrap_or(0);
        let share = format_percent(count as f64 / (phase.arrivals as f64).max(1.0));
        let error = phase.errors.get(*name).cloned().unwrap_or_default();
        [(*name).clone(), format_whole(count as f64), share, error]
    };
    let heads = ["outcome", "operations", "of arrivals", "first error"];
    html! {
        @if !names.is_empty() {
            div class="long failures" { (render_table("Failures", &heads, names.iter().map(row), 1)) }
        }
    }
}

/// Name of the slowest operation, with the server's and the client's share of its percentile.
fn describe_slowest(phase: &Phase, metric: &str, percentile: &str) -> String {
    let own = phase.metrics.iter().find(|one| one.name == metric);
    let shares = own
        .and_then(|one| one.shares_us(percentile))
        .map(|(server, client)| format!("; server {}, client {}", format_us(server), format_us(client)));
    format!("{metric}, the slowest{}", shares.unwrap_or_default())
}

fn figures(
    phase: &Phase,
    steady: Option<&StabilityAnalysis>,
    price: Option<f64>,
    is_invalid: bool,
) -> Markup {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    // An interval that is wider than what it is about says nothing.
    let level = steady
        .and_then(|steady| steady.found.steady.as_ref())
        .filter(|level| level.interval.half_width <= level.interval.mean);
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let unit = unit_name(&names);
    let more = level.map_or(unit.to_owned(), |level| {
        format!("{unit}; ± {} (95 %) within this run", format_rate(level.interval.half_width))
    });
    let failed = phase.outcomes.values().sum::<u64>().saturating_sub(ok);
    let share = if phase.arrivals > 0 { failed as f64 / phase.arrivals as f64 } else { 0.0 };
    let share = format!("{} of {} arrivals", format_percent(share), format_whole(phase.arrivals as f64));
    let users = phase.client.users * phase.client.pipeline.max(1);
    let load = match phase.offered {
        Some(_) => {
            format!("open loop, {} connections{}", phase.client.users, describe_connected(&phase.client))
        }
        None if users == 0 => "closed loop".into(),
        None => format!("closed loop, {}{}", counted(users, "user"), describe_connected(&phase.client)),
    };
    html! {
        dl.figures.invalid[is_invalid] {
            (render_tile("Throughput", &format!("{}/s", format_rate(phase.throughput)), &more))
            @for (name, what, worth) in cost_efficiency::of_run(phase, level.map(|level| &level.interval), price) {
                @let half = worth.half_width.map(|half| format!(", ± {} (95 %)", format_rate(half)));
                (render_tile(name, &format_rate(worth.value), &format!("{what}{}", half.unwrap_or_default())))
            }
            @if let Some(offered) = phase.offered {
                (render_tile("Offered", &format!("{}/s", format_rate(offered)), "scheduled arrivals"))
            }
            @for name in ["p50", "p99", "p99.9"] {
                @let (value, more) = match slowest_operation(phase, name) {
                    Some((metric, value)) => (format_us(value), describe_slowest(phase, metric, name)),
                    None => ("too few".into(), String::new()),
                };
                (render_tile(&format!("{name} response"), &value, &more))
            }
            (render_tile("Failed", &format_whole(failed as f64), &share))
            (render_tile("Measured", &format!("{:.1} s", phase.seconds), &load))
        }
        @if ok == 0 {
            p.note { "No operation succeeded: there is no latency, and throughput is 0 because of that." }
        }
    }
}

fn over_time(made: &PageParts<'_>) -> Markup {
    let rows = made.marks.iter().take(LISTED).map(|mark| [format!("{:.1} s", mark.at), mark.text.clone()]);
    html! {
        (render_tools())
        @if made.load == 0 {
            p { "No interval was recorded: there is nothing to draw." }
        } @else {
            p.dim {
                "Shaded: loading and warm-up. Dashed: events. Time counts from the first phase. Drag over a chart to \
                 zoom; a chart with the focus takes arrow keys, +, - and 0. Long runs: each pixel shows minimum and \
                 maximum. p99 is drawn for intervals with 1,000 operations or more, p99.9 for those with 10,000."
            }
        }
        @for (number, chart) in made.data.charts[..made.load].iter().enumerate().skip(FIRST) {
            (render_figure(number, chart, made.data))
        }
        @if !made.marks.is_empty() {
            details open class="long" {
                summary { (counted(made.marks.len(), "event")) }
                (render_table("Events", &["time", "event"], rows, 2))
            }
            @if made.marks.len() > LISTED {
                p { "The first " (LISTED) " are listed; events.jsonl has all of them." }
            }
        }
    }
}

fn by_percentile(report: &Report<'_>, made: &PageParts<'_>) -> Markup {
    let measured = report.summary.measured_phase();
    html! {
        @if !made.data.distributions.is_empty() {
            (percentile_figure(0, made.data.distributions.len(), made.data))
        // Many tools print percentiles and keep no distribution.
        } @else if measured.is_some_and(|phase| phase.count_successes() > 0) {
            p {
                "No distribution of latencies was recorded: the tables of operations have the percentiles that are \
                 known."
            }
        } @else {
            p { "No successful operation was measured: there is no latency to show." }
        }
    }
}

const COLUMNS: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "p99.99"];

fn latencies<'a>(title: &str, rows: impl Iterator<Item = (&'a str, Option<&'a Latency>)>) -> Markup {
    let all: Vec<(&str, &Latency)> = rows.filter_map(|(name, latency)| Some((name, latency?))).collect();
    // One that no operation has enough samples for is left out.
    let is_known =
        |column: &&&str| all.iter().any(|(_, latency)| latency.percentiles_us.contains_key(**column));
    let columns: Vec<&str> = COLUMNS.iter().filter(is_known).copied().collect();
    let row = |(name, latency): &(&str, &Latency)| -> Vec<String> {
        let first = [
            format_whole(latency.count as f64),
            format_us(latency.mean_us),
            latency.min_us.map_or("-".into(), format_us),
        ];
        let percentiles = columns.iter().map(|column| match latency.percentiles_us.get(*column) {
            Some(Some(value)) => format_us(*value),
            Some(None) => "dropped".into(),
            None => "-".into(),
        });
        let max = latency.max_us.map_or("-".into(), format_us);
        std::iter::once((*name).to_owned()).chain(first).chain(percentiles).chain([max]).collect()
    };
    let interval = |(name, latency): &(&str, &Latency)| -> Option<Vec<String>> {
        let cell = |column: &&str| {
            latency.intervals_us.get(*column).map_or("-".into(), |one| format_interval(one, format_us))
        };
        let first = [format!("{name}, 95 % interval"), "-".into(), "-".into(), "-".into()];
        let own = || first.into_iter().chain(columns.iter().map(cell)).chain(["-".to_owned()]).collect();
        (!latency.intervals_us.is_empty()).then(own)
    };
    let rows: Vec<Vec<String>> =
        all.iter().flat_map(|one| std::iter::once(row(one)).chain(interval(one))).collect();
    let heads = [&["operation", "count", "mean", "min"], columns.as_slice(), &["max"]].concat();
    html! { @if !rows.is_empty() { (render_table(title, &heads, &rows, 1)) } }
}

fn operations(summary: &Summary) -> Markup {
    let row = |phase: &Phase| {
        let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
        let documents = phase.documents.map(|count| format!(" ({} documents)", format_whole(count as f64)));
        [
            phase.name.clone(),
            format!("{:.1} s", phase.seconds),
            format_whole(phase.arrivals as f64),
            format!("{}{}", format_whole(ok as f64), documents.unwrap_or_default()),
            format_whole(phase.outcomes.values().sum::<u64>().saturating_sub(ok) as f64),
            format_rate(phase.written_per_s()),
        ]
    };
    let heads = ["phase", "length", "arrivals", "succeeded", "failed", "succeeded, 1/s"];
    html! {
        (render_table("Phases", &heads, summary.phases.iter().map(row), 1))
        @if let Some(phase) = summary.measured_phase() { (requests(phase)) (render_replay(phase)) }
    }
}

/// Outcomes and latencies of the requests of a phase.
fn requests(phase: &Phase) -> Markup {
    let mut outcomes: Vec<&str> =
        phase.metrics.iter().flat_map(|metric| metric.outcomes.keys().map(String::as_str)).collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    let count = |metric: &Metric, name: &str| metric.outcomes.get(name).copied().unwrap_or(0);
    let row = |metric: &Metric| {
        let figures = outcomes.iter().map(|name| format_whole(count(metric, name) as f64));
        std::iter::once(metric.name.clone()).chain(figures).collect::<Vec<_>>()
    };
    let heads = [&["operation"], outcomes.as_slice()].concat();
    let of =
        |pick: fn(&Metric) -> Option<&Latency>| phase.metrics.iter().map(move |m| (m.name.as_str(), pick(m)));
    let response = "Response time from the intended start";
    let of_all = format!("{response}, failures with at least their time");
    let ideal = [(crate::latency_table::IDEAL, phase.ideal_response.as_ref())];
    let clock = crate::details::whose_clock(phase).map_or(String::new(), |message| format!("; {message}"));
    let drops = phase.drops.iter().take(LISTED).map(|(at, n)| [format!("{at} s"), format_whole(*n as f64)]);
    html! {
        (render_table("Requests by outcome", &heads, phase.metrics.iter().map(row), 1))
        (latencies(&of_all, of(|m| m.all_response.as_ref())))
        (latencies(&format!("{response} (succeeded)"), of(|m| m.response.as_ref()).chain(ideal)))
        (latencies("Server's share of the response time (succeeded)", of(|m| m.server.as_ref())))
        (client_shares(phase))
        (latencies(&format!("Service time from sending (succeeded{clock})"), of(|m| m.service.as_ref())))
        (latencies("Service time (failed)", of(|m| m.failed_service.as_ref())))
        @if !phase.drops.is_empty() {
            details {
                summary { "Dropped arrivals" }
                (render_table("Dropped arrivals by intended second", &["second", "dropped"], drops, 0))
            }
        }
    }
}

/// The client's share of each percentile of the response time.
fn client_shares(phase: &Phase) -> Markup {
    let cell = |metric: &Metric, name: &str| {
        metric.client_us.get(name).map_or("-".into(), |us| us.map_or("unknown".into(), format_us))
    };
    let known: Vec<&Metric> = phase.metrics.iter().filter(|metric| !metric.client_us.is_empty()).collect();
    let row = |metric: &&Metric| {
        std::iter::once(metric.name.clone()).chain(COLUMNS.map(|name| cell(metric, name))).collect::<Vec<_>>()
    };
    let heads = [&["operation"], COLUMNS.as_slice()].concat();
    let title = "Client's share of the response time (succeeded)";
    html! { @if !known.is_empty() { (render_table(title, &heads, known.iter().map(row), 1)) } }
}

fn resources(report: &Report<'_>, made: &PageParts<'_>) -> Markup {
    let charts = &made.data.charts[made.load..];
    if charts.is_empty() {
        return html! {
            p {
                "Host, server and database were not watched, or nothing of it can be put on the run's axis of time: \
                 nothing can be said about resources."
            }
        };
    }
    let measured = report.summary.measured_phase();
    let means = measured.and_then(|phase| Some((phase, phase.monitor.as_ref()?))).map(|(phase, seen)| {
        let mut text = String::new();
        crate::monitored::append_monitored(&mut text, seen, &phase.hosts, "Measured phase, means");
        text.trim().to_owned()
    });
    let heads = ["series", "value (counters: per second)"];
    let rows = made.constant.iter().map(|(name, value)| [name.clone(), value.to_string()]);
    html! {
        @if let Some(means) = means { pre { (means) } }
        div.grid2 {
            @for (number, chart) in charts.iter().enumerate() { (render_figure(made.load + number, chart, made.data)) }
        }
        @if !made.constant.is_empty() {
            details {
                summary { (made.constant.len()) " series did not change" }
                (render_table("Series that did not change", &heads, rows, 1))
            }
        }
    }
}

fn environment(report: &Report<'_>) -> Markup {
    let (run, host) = (&report.dir.run, &report.dir.environment);
    let mut rows = vec![
        ["dyno".to_owned(), run.dyno.clone()],
        ["host".into(), host.host.clone()],
        ["system".into(), host.kernel.clone()],
        ["processor".into(), format!("{}, {} cores for dyno", host.cpu, host.cores.len())],
        ["memory".into(), format_bytes(host.memory_bytes as f64)],
        ["reading the clock".into(), format!("{} ns", host.clock_ns)],
        [
            "load average at the start".into(),
            host.load_average.map_or("unknown".into(), |load| format!("{load:.2}")),
        ],
    ];
    rows.extend(host.tuning.iter().map(|(key, value)| [key.clone(), value.clone()]));
    let client = report.summary.measured_phase().map(|phase| &phase.client).map(|client| {
        let cpu = client.cpu_us_per_op;
        let cpu_of_one = if cpu > 0.0 { format!("{cpu:.2} µs") } else { "unknown".into() };
        [
            ["threads".to_owned(), client.threads.to_string()],
            ["CPU".into(), format!("{:.2} s user, {:.2} s system", client.user_cpu_s, client.system_cpu_s)],
            ["CPU of an operation".into(), cpu_of_one],
            ["load threads busy".into(), client.busy_share.map_or("unknown".into(), format_percent)],
            ["peak memory".into(), format_bytes(client.peak_resident_bytes as f64)],
            ["pinned to cores".into(), (if client.pinned { "yes" } else { "no" }).into()],
            ["taken by the hypervisor".into(), format_percent(client.steal_share)],
        ]
    });
    let (defaults, chosen): (Vec<_>, Vec<_>) = run.settings.iter().partition(|s| s.source == "default");
    let settings = [(true, "Settings", chosen), (false, "Settings left at their defaults", defaults)];
    let facts = run.facts.iter().map(|(key, value)| [key, value]);
    let what = ["what", "value"];
    html! {
        details class="printed" {
            summary { "Host, load generator, database and settings" }
            div.long {
                (render_table("Host of the load generator", &what, &rows, 2))
                @if let Some(rows) = client { (render_table("Load generator", &what, rows, 2)) }
                @if !run.facts.is_empty() {
                    details open {
                        summary { "What the database says of itself" }
                        (render_table("Database", &["fact", "value"], facts, 2))
                    }
                }
                @for (open, title, some) in settings {
                    @let rows = some.iter().map(|s| [&s.key, &s.value, &s.source]);
                    details open[open] {
                        summary { (title) ": " (some.len()) }
                        (render_table(title, &["setting", "value", "source"], rows, 3))
                    }
                }
            }
        }
    }
}

fn repeat(report: &Report<'_>) -> Markup {
    let run = &report.dir.run;
    let place = report.dir.path.display().to_string();
    let words = |format: &str| quoted(&["dyno", "report", &place, "--format", format]);
    html! {
        @if run.command.is_empty() {
            p { "The command line of this run was not recorded." }
        } @else {
            p { "The same run again, with dyno " (run.dyno) "; secrets are masked:" }
            pre { (quoted(&again(&run.command))) }
        }
        p { "This page again, and as text, from the run's directory:" }
        @for format in ["html", "text", "md", "json"] { pre { (words(format)) } }
    }
}
