//! A replay on a run's page: replies beside those of then, and times then and now.

use crate::html::text::{format_percent, format_us, format_whole, render_table};
use dyno_rundir::schema::{Phase, ReplayFigures};
use maud::{Markup, html};

/// The section's part of a phase; nothing where it was no replay.
pub(super) fn render_replay(phase: &Phase) -> Markup {
    let Some(replay) = &phase.replay else { return html! {} };
    html! {
        (replies(replay))
        (then_and_now(phase, replay))
        @if !replay.examples.is_empty() {
            @let row = |one: &dyno_rundir::schema::ReplayExample| [one.command.clone(), one.then.clone(), one.now.clone()];
            (render_table("The first replies that differ", &["command", "then", "now"], replay.examples.iter().map(row), 3))
        }
        @if let Some(against) = &replay.against {
            @let title = format!(
                "Replies beside those of the other server: {} of {} differ",
                format_whole(against.count_differing() as f64),
                format_whole(against.compared as f64)
            );
            @let row = |one: &dyno_rundir::schema::ReplayExample| [one.command.clone(), one.then.clone(), one.now.clone()];
            (render_table(&title, &["command", "there", "here"], against.examples.iter().map(row), 3))
        }
        @if let Some(crossing) = &replay.cross_slot {
            @let title = format!("Not sent: keys in several slots of the cluster ({})", format_percent(crossing.share));
            @let row = |(name, count): (&String, &u64)| [name.clone(), format_whole(*count as f64)];
            (render_table(&title, &["operation", "commands"], crossing.commands.iter().map(row), 1))
        }
        @if !replay.left_out.is_empty() {
            @let row = |(reason, count): (&String, &u64)| [reason.clone(), format_whole(*count as f64)];
            (render_table("Not sent", &["reason", "commands"], replay.left_out.iter().map(row), 1))
        }
    }
}

fn replies(replay: &ReplayFigures) -> Markup {
    let share = |count: u64| format_percent(count as f64 / replay.compared.max(1) as f64);
    let rows = [
        ("compared", replay.compared),
        ("no reply now", replay.missing),
        ("an error now or then", replay.error),
        ("another kind", replay.kind),
        ("another size", replay.size),
    ];
    let row = |(name, count): (&str, u64)| [name.to_owned(), format_whole(count as f64), share(count)];
    render_table(
        "Replies beside those that were recorded",
        &["replies", "number", "of those compared"],
        rows.into_iter().map(row),
        1,
    )
}

fn then_and_now(phase: &Phase, replay: &ReplayFigures) -> Markup {
    let row = |metric: &dyno_rundir::schema::Metric| {
        let (then, now) = (replay.then.get(&metric.name)?, metric.service.as_ref()?);
        let percentile =
            |name: &str| now.percentiles_us.get(name).copied().flatten().map_or("-".into(), format_us);
        Some([
            metric.name.clone(),
            format_whole(then.count as f64),
            format_us(then.p50_us),
            percentile("p50"),
            format_us(then.p99_us),
            percentile("p99"),
        ])
    };
    let rows: Vec<[String; 6]> = phase.metrics.iter().filter_map(row).collect();
    if rows.is_empty() {
        return html! {};
    }
    let title = format!("From command to reply: then ({}) and now", replay.describe_point());
    let heads = ["operation", "replies then", "p50 then", "p50 now", "p99 then", "p99 now"];
    render_table(&title, &heads, rows, 1)
}
