//! What a page says first: the answer in a sentence, and what was measured, on what, when and how.

use crate::html::text::{format_rate, format_timestamp, format_us};
use crate::summary::in_unit;
use dyno_rundir::schema::{Decision, Environment, Phase, Run, Status, Summary, Trust};
use dyno_rundir::{adds_up, files};
use dyno_types::shell::{again, quoted};
use dyno_types::units::counted;
use maud::{Markup, Render, html};
use std::path::Path;

/// A fact: its name, and what is said of it.
pub(super) type Fact = (&'static str, Markup);

/// What a run found, in two or three sentences: throughput, tail, thresholds, and whether it can be relied on.
pub(super) fn answer_of_run(summary: &Summary) -> String {
    let Some(phase) = summary.measured_phase() else { return "Nothing was measured.".into() };
    if phase.count_successes() == 0 {
        return "No operation succeeded.".into();
    }
    let mut message = format!(
        "{} answered {} operations/s {}",
        summary.database,
        format_rate(phase.throughput),
        describe_load(phase)
    );
    if let Some((metric, us)) = slowest_operation(phase, "p99") {
        message += &match us.is_finite() {
            true => format!("; 99 % of {metric} took up to {}", format_us(us)),
            false => format!("; more than 1 % of {metric} was dropped"),
        };
    }
    message.push('.');
    let of = |wanted: Decision| {
        let all = summary.thresholds.iter().filter(move |one| one.threshold_answer() == wanted);
        all.map(|one| match one.measured {
            Some(measured) => format!("{} ({})", one.expression, in_unit(&one.expression, measured)),
            None => one.expression.clone(),
        })
        .collect::<Vec<String>>()
    };
    let (missed, close, all) = (of(Decision::Fail), of(Decision::TooClose), summary.thresholds.len());
    message += &match (all, missed.as_slice(), close.as_slice()) {
        (0, ..) => String::new(),
        (1, [], []) => " The threshold holds.".into(),
        (all, [], []) => format!(" All {all} thresholds hold."),
        (_, [], close) => format!(" Too close to call: {}.", close.join(", ")),
        (_, missed, _) => format!(" Missed: {}.", missed.join(", ")),
    };
    if summary.status != Status::Running {
        let worst = summary
            .verdict
            .reasons
            .iter()
            .find(|one| one.trust == summary.verdict.trust && summary.verdict.is_asked(one));
        let because = worst.map_or(String::new(), |one| format!(" ({})", one.check));
        message += &match summary.verdict.trust {
            Trust::Valid => String::new(),
            Trust::Suspect => format!(" Parts of it are suspect{because}."),
            Trust::Invalid => format!(" Do not rely on it: it is invalid{because}."),
        };
    }
    message
}

fn describe_load(phase: &Phase) -> String {
    let users = phase.client.users * phase.client.pipeline.max(1);
    match phase.offered {
        Some(due) => format!("of {} that were due", format_rate(due)),
        None if users > 0 => format!("to {}", counted(users, "user")),
        None => "in a closed loop".into(),
    }
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

/// The facts of a run.
pub(super) fn facts_of_run(run: &Run, host: &Environment, summary: &Summary, workload: &str) -> Vec<Fact> {
    let mut all = facts(run, host, workload);
    if !summary.thresholds.is_empty() {
        let words: Vec<&str> = summary.thresholds.iter().map(|one| one.expression.as_str()).collect();
        all.insert(3, ("Thresholds", words.join(", ").render()));
    }
    all
}

/// The facts of a run that its first two files say.
pub(super) fn facts(run: &Run, host: &Environment, workload: &str) -> Vec<Fact> {
    let durability = run.facts.get("durability").map(|message| format!("; {message}"));
    let cores = counted(host.cores.len(), "core");
    let options = run
        .settings
        .iter()
        .filter_map(|one| Some(format!("{}={}", one.key.strip_prefix("server.options.")?, one.value)));
    let options: Vec<String> = options.collect();
    vec![
        ("Database", format!("{}{}", run.database, durability.unwrap_or_default()).render()),
        ("Workload", workload.render()),
        ("Target", run.target.render()),
        ("Server's options", options.join(", ").render()),
        ("Client's host", format!("{}: {}, {cores}; {}", host.host, host.cpu, host.kernel).render()),
        ("Begun", format!("{}, dyno {}", format_timestamp(&run.started), run.dyno).render()),
        ("Command", html! { code { (quoted(&again(&run.command))) } }),
    ]
}

/// The list of facts; those that say nothing are left out.
pub(super) fn render_facts(all: &[Fact]) -> Markup {
    let known = all.iter().filter(|(_, words)| !words.0.is_empty() && words.0 != "<code></code>");
    html! {
        dl.facts { @for (name, words) in known { div { dt { (name) } dd { (words) } } } }
    }
}

/// `run.json` and `environment.json` of a run, without reading its histograms; `None` where they cannot be read.
pub(super) fn read_head(dir: &Path) -> Option<(Run, Environment)> {
    Some((read_json(&dir.join("run.json"))?, read_json(&dir.join("environment.json"))?))
}

/// The summary of a run, in the same way.
pub(super) fn read_summary(dir: &Path) -> Option<Summary> {
    read_json(&dir.join("summary.json"))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&files::read_to_string(path).ok()?).ok()
}
