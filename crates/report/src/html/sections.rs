//! The sections of a run's page, in their order.

use crate::html::analysis_sections;
use crate::html::analysis_sections::StabilityAnalysis;
use crate::html::charts::PageData;
use crate::html::document::{TOOLS, percentile_figure, render_bar, render_chip, render_figure};
use crate::html::text::{
    escape_html, format_bytes, format_percent, format_rate, format_timestamp, format_us, format_whole,
    render_table, table_heads, table_of_markup,
};
use crate::html::timeline::Mark;
use crate::html::workload;
use crate::summary::{describe_connected, format_interval, in_unit};
use crate::{faults, worth};
use dyno_analysis::diagnose::Diagnosis;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{Decision, Grade, Latency, Metric, Phase, Status, Summary, Trust};
use dyno_rundir::{RunDir, adds_up, unit_name};
use dyno_types::metric::CLEANUP;
use dyno_types::shell::{again, quoted};
use dyno_types::units::counted;
use std::cmp::Reverse;
use std::fmt::Write as _;

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

/// Events that are listed at most.
const LISTED: usize = 200;

/// Everything between `<body>` and the data.
pub fn render_body(report: &Report<'_>, made: &PageParts<'_>, steady: Option<&StabilityAnalysis>) -> String {
    let links: Vec<(String, String)> =
        SECTIONS.iter().map(|(id, _, short)| ((*id).to_owned(), (*short).to_owned())).collect();
    let (class, word) = mark(report.summary);
    let words = workload::describe_workload(&report.dir.run.settings, report.summary.measured_phase());
    let words = if words.is_empty() { report.summary.title.clone() } else { words };
    let chips = render_chip(class, word) + &kept(report.summary);
    let mut out = format!(
        "{}<header>\n{}</header>\n<main id=\"main\" tabindex=\"-1\">\n",
        render_bar(&chips, &words, &links),
        headline(report, made, steady)
    );
    for (id, title, _) in SECTIONS {
        let text = match id {
            "time" => over_time(made) + &faults(report.summary),
            "percentiles" => by_percentile(report, made),
            "operations" => operations(report.summary),
            "resources" => resources(report, made),
            "stability" => analysis_sections::render_stability(steady),
            "laws" => analysis_sections::render_laws(report.dir),
            "diagnosis" => analysis_sections::render_diagnosis(report.diagnosis, report.recording.is_some()),
            "environment" => environment(report),
            _ => repeat(report),
        };
        let _ = write!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>\n{text}</section>\n"
        );
    }
    out.push_str("</main>\n");
    out
}

/// Section of the faults that the experiment asked for.
fn faults(summary: &Summary) -> String {
    if summary.faults.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = summary.faults.iter().map(faults::format_fault_row).collect();
    let table = render_table("Faults that the experiment asked for", &table_heads(&faults::HEADS), &rows, 1);
    format!("<div class=\"dense\">{table}</div>\n<p class=\"dim\">{}</p>\n", escape_html(faults::MEANING))
}

/// Where a dashboard shows the exact time of each phase.
fn links(summary: &Summary) -> String {
    let one = |phase: &Phase| {
        let link = phase.link.as_deref()?;
        let (name, address) = (escape_html(&phase.name), escape_html(link));
        // Nothing but the web's own schemes: the address comes from a file.
        Some(match crate::markdown::is_web(link) {
            true => format!("<a href=\"{address}\">{name}</a>"),
            false => format!("{name} {address}"),
        })
    };
    let all: Vec<String> = summary.phases.iter().filter_map(one).collect();
    if all.is_empty() {
        return String::new();
    }
    format!("<p class=\"dashboard\">The exact time of each phase on the dashboard: {}</p>\n", all.join(", "))
}

fn tile(out: &mut String, name: &str, value: &str, more: &str) {
    let more = if more.is_empty() { String::new() } else { format!("<small>{}</small>", escape_html(more)) };
    let _ = write!(out, "<div><dt>{}</dt><dd>{}{more}</dd></div>", escape_html(name), escape_html(value));
}

/// Class and word of the verdict.
fn mark(summary: &Summary) -> (&'static str, &'static str) {
    match summary.verdict.trust {
        _ if crate::rebuilt::is_under_way(summary) => ("running", "RUNNING"),
        Trust::Valid => ("valid", "VALID"),
        Trust::Suspect => ("suspect", "SUSPECT"),
        Trust::Invalid => ("invalid", "INVALID"),
    }
}

/// How many thresholds held, as a chip: a run may be valid and miss one.
fn kept(summary: &Summary) -> String {
    let all = summary.thresholds.len();
    let count = |decision| summary.thresholds.iter().filter(|one| one.threshold_answer() == decision).count();
    match (all, count(Decision::Fail), count(Decision::TooClose)) {
        (0, _, _) => String::new(),
        (_, 0, 0) => render_chip("valid", &format!("PASS {all} of {all}")),
        (_, 0, close) => render_chip("suspect", &format!("TOO CLOSE {close} of {all}")),
        (_, missed, _) => render_chip("invalid", &format!("FAIL {missed} of {all}")),
    }
}

/// Verdict and the figures that stand for the run.
fn headline(report: &Report<'_>, made: &PageParts<'_>, steady: Option<&StabilityAnalysis>) -> String {
    let summary = report.summary;
    let under_way = crate::rebuilt::is_under_way(summary);
    let mut out = format!(
        "<h1>{} on {}</h1>\n<p class=\"dim\">{}, {}</p>\n",
        escape_html(&summary.title),
        escape_html(&summary.database),
        escape_html(&summary.target),
        escape_html(&format_timestamp(&summary.started))
    );
    let words = match summary.status {
        Status::Complete => None,
        Status::Running if under_way => {
            Some("The run is under way: this is what it has recorded so far. It is judged when it has ended.")
        }
        Status::Running => Some("INCOMPLETE: the run was killed; this is what it recorded."),
        Status::Interrupted => Some("INTERRUPTED: this is what was measured until then."),
        Status::Failed => Some("FAILED: the run ended by an error."),
    };
    words.into_iter().for_each(|words| out.push_str(&format!("<p class=\"note\">{words}</p>\n")));
    // The same words as in the summary, each in its colour.
    if crate::summary::describe_grades(&summary.verdict).is_some() {
        let one = |grade: &Grade| {
            let name = grade.trust.name();
            format!("{}: <strong class=\"{name}\">{name}</strong>", escape_html(&grade.claim))
        };
        let all: Vec<String> = summary.verdict.grades.iter().map(one).collect();
        let _ = writeln!(out, "<p class=\"grades\">{}</p>", all.join(", "));
    }
    if !summary.verdict.reasons.is_empty() {
        out.push_str("<ul class=\"reasons\">");
        for reason in &summary.verdict.reasons {
            let word = reason.trust.trust_word();
            // What speaks against nothing has no colour.
            let class = if reason.trust == Trust::Valid { "plain" } else { word };
            let dim = if summary.verdict.is_asked(reason) { "" } else { " class=\"dim\"" };
            let _ = write!(
                out,
                "<li{dim}><strong class=\"{class}\">{word} {}</strong>: {}</li>",
                escape_html(&reason.check),
                escape_html(&reason.text)
            );
        }
        out.push_str("</ul>\n");
    }
    match summary.measured_phase() {
        Some(phase) => {
            let is_invalid = !under_way && summary.verdict.trust == Trust::Invalid;
            figures(&mut out, phase, steady, report.price, is_invalid);
        }
        None => {
            out.push_str("<p class=\"note\">Nothing was measured: there is no figure for this run.</p>\n")
        }
    }
    if !summary.thresholds.is_empty() {
        let row = |t: &dyno_rundir::schema::Threshold| {
            let unit = |value: f64| in_unit(&t.expression, value);
            let measured = t.measured.map_or("not measurable".into(), unit);
            let interval = t.interval.as_ref().map_or(String::new(), |found| format_interval(found, unit));
            let class = match t.threshold_answer() {
                Decision::Pass => "valid",
                Decision::Fail => "invalid",
                Decision::TooClose => "suspect",
            };
            let word = format!("<strong class=\"{class}\">{}</strong>", t.threshold_answer().name());
            vec![word, escape_html(&t.expression), escape_html(&measured), escape_html(&interval)]
        };
        let rows: Vec<Vec<String>> = summary.thresholds.iter().map(row).collect();
        out.push_str(&table_of_markup(
            "Thresholds",
            &table_heads(&["result", "threshold", "measured", "95 % interval"]),
            &rows,
            2,
        ));
    }
    summary.measured_phase().into_iter().for_each(|phase| {
        by_operation(&mut out, phase);
        failures(&mut out, phase);
    });
    out.push_str(&links(summary));
    made.notes
        .iter()
        .for_each(|note| out.push_str(&format!("<p class=\"note\">{}</p>\n", escape_html(note))));
    out
}

/// Counts, rate and response times of each operation on one line.
fn by_operation(out: &mut String, phase: &Phase) {
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
        phase.metrics.iter().filter(|metric| metric.name != CLEANUP).map(row).collect();
    if rows.is_empty() {
        return;
    }
    let mut names = table_heads(&["operation", "succeeded", "failed", "failed, %", "succeeded, 1/s"]);
    names.extend(SHOWN.iter().map(|name| (*name).to_owned()));
    names.push("max".into());
    out.push_str(&render_table("Response times and failures by operation", &names, &rows, 1));
}

/// What operations failed by: how many of each outcome, and the first error of it.
fn failures(out: &mut String, phase: &Phase) {
    let mut names: Vec<&String> =
        phase.outcomes.keys().chain(phase.errors.keys()).filter(|name| *name != "ok").collect();
    names.sort_by_key(|name| (Reverse(phase.outcomes.get(*name)), *name));
    names.dedup();
    let row = |name: &&String| {
        let count = phase.outcomes.get(*name).copied().unwrap_or(0);
        let share = format_percent(count as f64 / (phase.arrivals as f64).max(1.0));
        let error = phase.errors.get(*name).cloned().unwrap_or_default();
        vec![(*name).clone(), format_whole(count as f64), share, error]
    };
    let rows: Vec<Vec<String>> = names.iter().map(row).collect();
    if rows.is_empty() {
        return;
    }
    let list = render_table(
        "Failures",
        &table_heads(&["outcome", "operations", "of arrivals", "first error"]),
        &rows,
        1,
    );
    let _ = writeln!(out, "<div class=\"long failures\">{list}</div>");
}

/// The operation whose response time is the greatest at a percentile such as `p99`, and that, microseconds; infinite where
/// arrivals were dropped.
pub fn slowest_operation<'a>(phase: &'a Phase, percentile: &str) -> Option<(&'a str, f64)> {
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let of = phase.metrics.iter().filter(|m| adds_up(&names, &m.name));
    // An arrival that was never served took longer than any that was.
    let known = of.filter_map(|m| {
        let us = (*m.arrival_response()?.percentiles_us.get(percentile)?).unwrap_or(f64::INFINITY);
        Some((m.name.as_str(), us))
    });
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn figures(
    out: &mut String,
    phase: &Phase,
    steady: Option<&StabilityAnalysis>,
    price: Option<f64>,
    is_invalid: bool,
) {
    out.push_str(if is_invalid { "<dl class=\"figures invalid\">" } else { "<dl class=\"figures\">" });
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let level = steady.and_then(|steady| steady.found.steady.as_ref());
    let more = level.map_or(String::new(), |level| {
        format!("± {} (95 %) within this run", format_rate(level.interval.half_width))
    });
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let unit = unit_name(&names);
    let more = if more.is_empty() { unit.to_owned() } else { format!("{unit}; {more}") };
    tile(out, "Throughput", &format!("{}/s", format_rate(phase.throughput)), &more);
    for (name, what, worth) in worth::of_run(phase, level.map(|level| &level.interval), price) {
        let half = worth.half_width.map_or(String::new(), |half| format!(", ± {} (95 %)", format_rate(half)));
        tile(out, name, &format_rate(worth.value), &format!("{what}{half}"));
    }
    if let Some(offered) = phase.offered {
        tile(out, "Offered", &format!("{}/s", format_rate(offered)), "scheduled arrivals");
    }
    for name in ["p50", "p99", "p99.9"] {
        match slowest_operation(phase, name) {
            Some((metric, value)) => {
                tile(out, &format!("{name} response"), &format_us(value), &format!("{metric}, the slowest"));
            }
            None => tile(out, &format!("{name} response"), "too few", ""),
        }
    }
    let failed = phase.outcomes.values().sum::<u64>().saturating_sub(ok);
    let share = if phase.arrivals > 0 { failed as f64 / phase.arrivals as f64 } else { 0.0 };
    tile(
        out,
        "Failed",
        &format_whole(failed as f64),
        &format!("{} of {} arrivals", format_percent(share), format_whole(phase.arrivals as f64)),
    );
    let users = phase.client.users * phase.client.pipeline.max(1);
    let load = match phase.offered {
        Some(_) => {
            format!("open loop, {} connections{}", phase.client.users, describe_connected(&phase.client))
        }
        None if users == 0 => "closed loop".into(),
        None => format!("closed loop, {}{}", counted(users, "user"), describe_connected(&phase.client)),
    };
    tile(out, "Measured", &format!("{:.1} s", phase.seconds), &load);
    out.push_str("</dl>\n");
    if ok == 0 {
        out.push_str("<p class=\"note\">No operation succeeded: there is no latency, and throughput is 0 because of that.</p>\n");
    }
}

fn over_time(made: &PageParts<'_>) -> String {
    let mut out = String::from(TOOLS);
    if made.load == 0 {
        out.push_str("<p>No interval was recorded: there is nothing to draw.</p>\n");
    } else {
        out.push_str(
            "<p class=\"dim\">Shaded: loading and warm-up. Dashed: events. Time counts from the first phase. Drag over a \
                chart to zoom; \
             a chart with the focus takes arrow keys, +, - and 0. Long runs: each pixel shows minimum and maximum.</p>\n",
        );
    }
    made.data.charts[..made.load]
        .iter()
        .enumerate()
        .for_each(|(n, chart)| out.push_str(&render_figure(n, chart)));
    if !made.marks.is_empty() {
        let rows: Vec<Vec<String>> = made
            .marks
            .iter()
            .take(LISTED)
            .map(|mark| vec![format!("{:.1} s", mark.at), mark.text.clone()])
            .collect();
        let list = render_table("Events", &table_heads(&["time", "event"]), &rows, 2);
        let _ = writeln!(
            out,
            "<details open class=\"long\"><summary>{}</summary>{list}</details>",
            counted(made.marks.len(), "event")
        );
        if made.marks.len() > LISTED {
            let _ = writeln!(out, "<p>The first {LISTED} are listed; events.jsonl has all of them.</p>");
        }
    }
    out
}

fn by_percentile(report: &Report<'_>, made: &PageParts<'_>) -> String {
    if made.data.distributions.is_empty() {
        // Many tools print percentiles and keep no distribution.
        if report.summary.measured_phase().is_some_and(|phase| phase.count_successes() > 0) {
            return "<p>No distribution of latencies was recorded: the tables of operations have the percentiles that are \
                    known.</p>\n"
                .into();
        }
        return "<p>No successful operation was measured: there is no latency to show.</p>\n".into();
    }
    percentile_figure(0, made.data.distributions.len())
}

const COLUMNS: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "p99.99"];

fn latencies<'a>(out: &mut String, title: &str, rows: impl Iterator<Item = (&'a str, Option<&'a Latency>)>) {
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
    if !rows.is_empty() {
        let mut names = table_heads(&["operation", "count", "mean", "min"]);
        names.extend(columns.iter().map(|name| (*name).to_owned()));
        names.push("max".into());
        out.push_str(&render_table(title, &names, &rows, 1));
    }
}

fn operations(summary: &Summary) -> String {
    let mut out = String::new();
    let rows: Vec<Vec<String>> = summary
        .phases
        .iter()
        .map(|phase| {
            let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
            let documents =
                phase.documents.map(|count| format!(" ({} documents)", format_whole(count as f64)));
            vec![
                phase.name.clone(),
                format!("{:.1} s", phase.seconds),
                format_whole(phase.arrivals as f64),
                format!("{}{}", format_whole(ok as f64), documents.unwrap_or_default()),
                format_whole(phase.outcomes.values().sum::<u64>().saturating_sub(ok) as f64),
                format_rate(phase.written_per_s()),
            ]
        })
        .collect();
    let names = table_heads(&["phase", "length", "arrivals", "succeeded", "failed", "succeeded, 1/s"]);
    out.push_str(&render_table("Phases", &names, &rows, 1));
    let Some(phase) = summary.measured_phase() else { return out };
    let mut outcomes: Vec<&str> =
        phase.metrics.iter().flat_map(|metric| metric.outcomes.keys().map(String::as_str)).collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    let count = |metric: &Metric, name: &str| metric.outcomes.get(name).copied().unwrap_or(0);
    let rows: Vec<Vec<String>> = phase
        .metrics
        .iter()
        .map(|metric| {
            let figures = outcomes.iter().map(|name| format_whole(count(metric, name) as f64));
            std::iter::once(metric.name.clone()).chain(figures).collect()
        })
        .collect();
    let mut names = table_heads(&["operation"]);
    names.extend(outcomes.iter().map(|name| (*name).to_owned()));
    out.push_str(&render_table("Requests by outcome", &names, &rows, 1));
    let of =
        |pick: fn(&Metric) -> Option<&Latency>| phase.metrics.iter().map(move |m| (m.name.as_str(), pick(m)));
    let response = "Response time from the intended start";
    latencies(
        &mut out,
        &format!("{response}, failures with at least their time"),
        of(|m| m.all_response.as_ref()),
    );
    let ideal = [(crate::latency_table::IDEAL, phase.ideal_response.as_ref())];
    latencies(&mut out, &format!("{response} (succeeded)"), of(|m| m.response.as_ref()).chain(ideal));
    let clock = crate::details::whose_clock(phase).map_or(String::new(), |words| format!("; {words}"));
    latencies(&mut out, &format!("Service time from sending (succeeded{clock})"), of(|m| m.service.as_ref()));
    latencies(&mut out, "Service time (failed)", of(|m| m.failed_service.as_ref()));
    if !phase.drops.is_empty() {
        let rows: Vec<Vec<String>> = phase
            .drops
            .iter()
            .take(LISTED)
            .map(|(at, n)| vec![format!("{at} s"), format_whole(*n as f64)])
            .collect();
        let list = render_table(
            "Dropped arrivals by intended second",
            &table_heads(&["second", "dropped"]),
            &rows,
            0,
        );
        let _ = writeln!(out, "<details><summary>Dropped arrivals</summary>{list}</details>");
    }
    out
}

fn resources(report: &Report<'_>, made: &PageParts<'_>) -> String {
    let charts = &made.data.charts[made.load..];
    if charts.is_empty() {
        return "<p>Host, server and database were not watched, or nothing of it can be put on the run's axis of time: \
            nothing can \
                be said about resources.</p>\n"
            .into();
    }
    let mut out = String::new();
    let measured = report.summary.measured_phase();
    if let Some((phase, seen)) = measured.and_then(|phase| Some((phase, phase.monitor.as_ref()?))) {
        let mut text = String::new();
        crate::monitored::append_monitored(&mut text, seen, &phase.hosts, "Measured phase, means");
        let _ = writeln!(out, "<pre>{}</pre>", escape_html(text.trim()));
    }
    out.push_str("<div class=\"grid2\">\n");
    for (number, chart) in charts.iter().enumerate() {
        out.push_str(&render_figure(made.load + number, chart));
    }
    out.push_str("</div>\n");
    if !made.constant.is_empty() {
        let rows: Vec<Vec<String>> =
            made.constant.iter().map(|(name, value)| vec![name.clone(), format!("{value}")]).collect();
        let list = render_table(
            "Series that did not change",
            &table_heads(&["series", "value (counters: per second)"]),
            &rows,
            1,
        );
        let _ = writeln!(
            out,
            "<details><summary>{} series did not change</summary>{list}</details>",
            made.constant.len()
        );
    }
    out
}

fn environment(report: &Report<'_>) -> String {
    let (run, host) = (&report.dir.run, &report.dir.environment);
    let mut rows = vec![
        ("dyno".to_owned(), run.dyno.clone()),
        ("host".into(), host.host.clone()),
        ("system".into(), host.kernel.clone()),
        ("processor".into(), format!("{}, {} cores for dyno", host.cpu, host.cores.len())),
        ("memory".into(), format_bytes(host.memory_bytes as f64)),
        ("reading the clock".into(), format!("{} ns", host.clock_ns)),
        (
            "load average at the start".into(),
            host.load_average.map_or("unknown".into(), |load| format!("{load:.2}")),
        ),
    ];
    rows.extend(host.tuning.iter().map(|(key, value)| (key.clone(), value.clone())));
    let two =
        |rows: &[(String, String)]| rows.iter().map(|(a, b)| vec![a.clone(), b.clone()]).collect::<Vec<_>>();
    let mut out = String::from(
        "<details><summary>Host, load generator, database and settings</summary><div class=\"long\">",
    );
    out.push_str(&render_table(
        "Host of the load generator",
        &table_heads(&["what", "value"]),
        &two(&rows),
        2,
    ));
    if let Some(client) = report.summary.measured_phase().map(|phase| &phase.client) {
        let cpu = client.cpu_us_per_op;
        let cpu_of_one = if cpu > 0.0 { format!("{cpu:.2} µs") } else { "unknown".into() };
        let rows = [
            ("threads".to_owned(), client.threads.to_string()),
            ("CPU".into(), format!("{:.2} s user, {:.2} s system", client.user_cpu_s, client.system_cpu_s)),
            ("CPU of an operation".into(), cpu_of_one),
            ("load threads busy".into(), client.busy_share.map_or("unknown".into(), format_percent)),
            ("peak memory".into(), format_bytes(client.peak_resident_bytes as f64)),
            ("pinned to cores".into(), (if client.pinned { "yes" } else { "no" }).into()),
            ("taken by the hypervisor".into(), format_percent(client.steal_share)),
        ];
        out.push_str(&render_table("Load generator", &table_heads(&["what", "value"]), &two(&rows), 2));
    }
    let facts: Vec<(String, String)> =
        run.facts.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    if !facts.is_empty() {
        let list = render_table("Database", &table_heads(&["fact", "value"]), &two(&facts), 2);
        let _ =
            write!(out, "<details open><summary>What the database says of itself</summary>{list}</details>");
    }
    let (defaults, chosen): (Vec<_>, Vec<_>) = run.settings.iter().partition(|s| s.source == "default");
    for (open, title, some) in
        [(" open", "Settings", chosen), ("", "Settings left at their defaults", defaults)]
    {
        let row = |s: &&dyno_rundir::schema::Setting| vec![s.key.clone(), s.value.clone(), s.source.clone()];
        let rows: Vec<Vec<String>> = some.iter().map(row).collect();
        let list = render_table(title, &table_heads(&["setting", "value", "source"]), &rows, 3);
        let _ = writeln!(out, "<details{open}><summary>{title}: {}</summary>{list}</details>", rows.len());
    }
    out.push_str("</div></details>\n");
    out
}

fn repeat(report: &Report<'_>) -> String {
    let mut out = String::new();
    match report.dir.run.command.is_empty() {
        true => out.push_str("<p>The command line of this run was not recorded.</p>\n"),
        false => {
            let words = again(&report.dir.run.command);
            let _ = writeln!(
                out,
                "<p>The same run again, with dyno {}; secrets are masked:</p>",
                escape_html(&report.dir.run.dyno)
            );
            let _ = writeln!(out, "<pre>{}</pre>", escape_html(&quoted(&words)));
        }
    }
    out.push_str("<p>This page again, and as text, from the run's directory:</p>\n");
    let place = report.dir.path.display().to_string();
    for format in ["html", "text", "md", "json"] {
        let words = ["dyno", "report", place.as_str(), "--format", format].map(str::to_owned);
        let _ = writeln!(out, "<pre>{}</pre>", escape_html(&quoted(&words)));
    }
    out
}
