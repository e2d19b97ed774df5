//! The page of a comparison: the verdict in words, then the figures it comes from, quantile by quantile, and what else differs.

use crate::comparison::text::words;
use crate::comparison::{FOOT, Figure, Pairing, Responses, number};
use crate::html::charts::{Data, distribution};
use crate::html::document::{document, percentile_figure};
use crate::html::plot::{Across, Plot, points};
use crate::html::text::{esc, heads, percent, table, table_of_markup, us};
use dyno_analysis::compare::{Conclusion, rank};
use dyno_analysis::interval::mean_interval;
use dyno_types::stats::mean;
use std::fmt::Write as _;

/// The class of a conclusion, and its sign for those who see no colours.
fn class(conclusion: Conclusion) -> (&'static str, &'static str) {
    match conclusion {
        Conclusion::Better => ("valid", "BETTER"),
        Conclusion::Worse => ("invalid", "WORSE"),
        Conclusion::Same => ("valid", "SAME"),
        Conclusion::Unclear(_) => ("suspect", "UNCLEAR"),
    }
}

/// The page. `left_out` says what of the sides could not be used.
pub fn comparison_page(all: &[Pairing], left_out: &[String]) -> String {
    let mut data = Data::default();
    let title = match all {
        [one] => one.title(),
        _ => "Comparison".to_owned(),
    };
    let mut out = format!("<header>\n<h1>{}</h1>\n", esc(&title));
    verdicts(&mut out, all);
    for note in left_out {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(note));
    }
    if all.len() > 1 {
        out.push_str("<nav aria-label=\"Sections\"><ul>");
        for (number, one) in all.iter().enumerate() {
            let _ = write!(out, "<li><a href=\"#p{number}\">{}</a></li>", esc(&one.title()));
        }
        out.push_str("</ul></nav>\n");
    }
    out.push_str("</header>\n<main id=\"main\" tabindex=\"-1\">\n");
    for (number, one) in all.iter().enumerate() {
        let heading = if all.len() > 1 { one.title() } else { "Figures".into() };
        // Tables of several pairs have names of their own.
        let of = if all.len() > 1 { format!(", {}", one.title()) } else { String::new() };
        let _ = write!(
            out,
            "<section id=\"p{number}\" aria-labelledby=\"h-p{number}\">\n<h2 id=\"h-p{number}\">{}</h2>\n{}</section>\n",
            esc(&heading),
            pairing(one, &of, &mut data)
        );
    }
    let _ = writeln!(out, "<p class=\"dim\">{FOOT}</p>\n</main>");
    document(&title, &out, &data)
}

/// Writes the conclusions, one line for each pair.
fn verdicts(out: &mut String, all: &[Pairing]) {
    if all.is_empty() {
        out.push_str(
            "<p class=\"note\">Nothing stands beside each other: there is nothing to compare.</p>\n",
        );
    }
    for one in all {
        let main = one.figures.first();
        let (class, word) = main.map_or(("suspect", "NOTHING"), |figure| class(figure.found.conclusion));
        let figure = main.map_or(String::new(), |figure| format!(" {} {}.", figure.name, words(figure)));
        let _ = writeln!(
            out,
            "<p><strong class=\"trust {class}\">{word}</strong>{} <span>{}</span></p>",
            esc(&figure),
            esc(&one.verdict())
        );
    }
}

fn pairing(one: &Pairing, of: &str, data: &mut Data) -> String {
    let mut out = String::new();
    for warning in &one.warnings {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(warning));
    }
    out.push_str(&figures(one, of));
    out.push_str("<div class=\"grid2\">\n");
    one.figures.iter().for_each(|figure| out.push_str(&runs(one, figure)));
    one.responses.iter().for_each(|responses| out.push_str(&shift(one, responses, of)));
    out.push_str("</div>\n");
    if one.responses.is_empty() {
        out.push_str(
            "<p>Quantiles are not compared: no operation has enough successful samples on both sides.</p>\n",
        );
    } else {
        out.push_str(
            "<p class=\"dim\">Quantile by quantile (shift function): above 0 the second is slower. Bars are 95 % intervals over \
             runs, each for its quantile alone; with one run a side there is none.</p>\n",
        );
    }
    let from = data.distributions.len();
    for responses in &one.responses {
        for (side, times) in [(&one.first, &responses.merged.0), (&one.second, &responses.merged.1)] {
            data.distributions.extend(distribution(&format!("{side}: {}", responses.metric), times));
        }
    }
    if data.distributions.len() > from {
        out.push_str(&percentile_figure(from, data.distributions.len()));
    }
    differences(&mut out, "Settings", of, &one.settings);
    differences(&mut out, "Environment", of, &one.environment);
    out
}

/// The table of figures.
fn figures(one: &Pairing, of: &str) -> String {
    if one.figures.is_empty() {
        return "<p>There is no figure that both have.</p>\n".into();
    }
    let rows: Vec<Vec<String>> = one
        .figures
        .iter()
        .map(|figure| {
            let found = &figure.found;
            let (class, word) = class(found.conclusion);
            let enough = found.runs.0.min(found.runs.1) > 1;
            let difference = &found.difference;
            let interval = match enough {
                true => format!("{} to {}", number(difference.low), number(difference.high)),
                false => "one run: none".into(),
            };
            let noise = if figure.noise > 0.0 { percent(figure.noise) } else { "-".into() };
            vec![
                format!("{} <small class=\"dim\">{}</small>", esc(&figure.name), esc(figure.shown_unit())),
                format!("<strong class=\"{class}\">{word}</strong> {}", esc(&words(figure))),
                number(found.means.0),
                number(found.means.1),
                number(difference.value),
                interval,
                format!("{} / {}", found.runs.0, found.runs.1),
                format!("{:.3}", found.p),
                rank::size(found.delta).to_owned(),
                noise,
            ]
        })
        .collect();
    let names = heads(&[
        "figure",
        "verdict",
        "first",
        "second",
        "difference",
        "95 % interval",
        "runs",
        "p",
        "effect",
        "noise floor",
    ]);
    table_of_markup(&format!("Figures of both sides{of}"), &names, &rows, 2)
}

/// The value of every run, with means and intervals.
fn runs(one: &Pairing, figure: &Figure) -> String {
    let sides = [&figure.each.0, &figure.each.1];
    let mut dots = Vec::new();
    let mut faint = Vec::new();
    for (at, side) in sides.into_iter().enumerate() {
        let Some(mean) = mean(side) else { return String::new() };
        dots.push((at as f64, mean, mean_interval(side).map(|found| found.half_width)));
        faint.extend(side.iter().map(|value| (at as f64 + 0.12, *value)));
    }
    let words = vec![one.first.clone(), one.second.clone()];
    points(
        format!("{}, {}", figure.name, figure.shown_unit()),
        "mean, and every run".into(),
        words,
        dots,
        faint,
        0.0,
    )
    .draw()
}

/// The shift function of an operation.
fn shift(one: &Pairing, responses: &Responses, of: &str) -> String {
    let change = |ratio: f64| (ratio - 1.0) * 100.0;
    let places = responses.shifts.iter().enumerate();
    let lows = responses.shifts.iter().map(|s| change(s.interval.map_or(s.ratio, |found| found.0)));
    let highs = responses.shifts.iter().map(|s| change(s.interval.map_or(s.ratio, |found| found.1)));
    let (bottom, top) = (lows.fold(-1.0, f64::min), highs.fold(1.0, f64::max));
    // Half of an interval that lies unevenly is drawn from its middle, the estimate as a point of its own.
    let dots = places.clone().filter_map(|(at, s)| {
        let (low, high) = s.interval?;
        Some((at as f64, change(low).midpoint(change(high)), Some((high - low) * 50.0)))
    });
    let plot = Plot {
        title: format!(
            "{} response time, quantile by quantile: {} against {}",
            responses.metric, one.second, one.first
        ),
        across: "percentile".into(),
        axis: Across::Thinned(responses.shifts.iter().map(|s| format!("{}", s.percentile)).collect()),
        dots: dots.collect(),
        faint: Vec::new(),
        lines: vec![crate::html::plot::Line {
            name: "difference, % of the first".into(),
            style: 1,
            points: places.map(|(at, s)| (at as f64, change(s.ratio))).collect(),
        }],
        top,
        bottom,
        show: |value| format!("{value:+.0} %"),
    };
    let rows: Vec<Vec<String>> = responses
        .shifts
        .iter()
        .map(|s| {
            let interval = s.interval.map_or("one run: none".into(), |(low, high)| {
                format!("{:+.1} to {:+.1} %", change(low), change(high))
            });
            let values = [s.values.0, s.values.1].map(|ns| us(ns / 1e3));
            let [first, second] = values;
            vec![format!("p{}", s.percentile), first, second, format!("{:+.1} %", change(s.ratio)), interval]
        })
        .collect();
    let list = table(
        &format!("{}: quantiles{of}", responses.metric),
        &heads(&["quantile", "first", "second", "difference", "95 % interval"]),
        &rows,
        1,
    );
    format!("<div>{}<details><summary>Quantiles as figures</summary>{list}</details></div>\n", plot.draw())
}

fn differences(out: &mut String, title: &str, of: &str, rows: &[(String, String, String)]) {
    if rows.is_empty() {
        let _ = writeln!(out, "<p class=\"dim\">{title}: no difference is recorded.</p>");
        return;
    }
    let rows: Vec<Vec<String>> =
        rows.iter().map(|(key, one, other)| vec![key.clone(), one.clone(), other.clone()]).collect();
    let list = table(&format!("{title} that differ{of}"), &heads(&["what", "first", "second"]), &rows, 3);
    let _ = write!(out, "<div class=\"long\">{list}</div>");
}
