//! The page of a comparison: the verdict in words, then the figures it comes from, quantile by quantile, and what else differs.

use crate::comparison::text::{describe_conclusion, relative_interval};
use crate::comparison::{ComparedFigure, FOOT, Pairing, ReportLink, Responses, format_number};
use crate::html::charts::{PageData, latency_distribution};
use crate::html::document::{percentile_figure, render_bar, render_chip, render_standalone_page};
use crate::html::plot::{Across, Plot, category_plot};
use crate::html::text::{escape_html, format_percent, format_us, render_table, table_heads, table_of_markup};
use dyno_analysis::compare::Conclusion;
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
    let mut data = PageData::default();
    let (pairs, within) = short(all);
    let all = pairs.as_slice();
    let title = match (all, &within) {
        ([one], None) => one.title(),
        ([one], Some(name)) => format!("{name}: {}", one.title()),
        (_, Some(name)) => format!("{name}: levels compared"),
        (_, None) => "Comparison".to_owned(),
    };
    let links: Vec<(String, String)> =
        all.iter().enumerate().map(|(number, one)| (format!("p{number}"), one.title())).collect();
    let main = |one: &NamedPairing<'_>| one.of.figures.first().map(|figure| class(figure.found.conclusion));
    let chips: String = match all {
        [one] => main(one).map_or(String::new(), |(class, word)| render_chip(class, word)),
        _ => String::new(),
    };
    let bar =
        if all.len() > 1 { render_bar(&chips, &title, &links) } else { render_bar(&chips, &title, &[]) };
    let mut out = format!("{bar}<header>\n<h1>{}</h1>\n", escape_html(&title));
    verdicts(&mut out, all);
    for note in left_out {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_html(note));
    }
    out.push_str("</header>\n<main id=\"main\" tabindex=\"-1\">\n");
    for (number, one) in all.iter().enumerate() {
        let heading = if all.len() > 1 { one.title() } else { "Figures".into() };
        // Tables of several pairs have names of their own.
        let of = if all.len() > 1 { format!(", {}", one.title()) } else { String::new() };
        let _ = write!(
            out,
            "<section id=\"p{number}\" aria-labelledby=\"h-p{number}\">\n<h2 id=\"h-p{number}\">{}</h2>\n{}</section>\n",
            escape_html(&heading),
            pairing(one, &of, &mut data)
        );
    }
    let _ = writeln!(out, "<p class=\"dim\">{FOOT}</p>\n</main>");
    render_standalone_page(&title, &out, &data)
}

/// A pair with the names that its page gives the sides.
struct NamedPairing<'a> {
    of: &'a Pairing,
    first: String,
    second: String,
}

impl NamedPairing<'_> {
    fn title(&self) -> String {
        let cell = if self.of.cell.is_empty() { String::new() } else { format!(" [{}]", self.of.cell) };
        format!("{} against {}{cell}", self.second, self.first)
    }
}

/// Pairs without the name of an experiment that is on both sides of all of them, and that name.
fn short(all: &[Pairing]) -> (Vec<NamedPairing<'_>>, Option<String>) {
    let sides = || all.iter().flat_map(|one| [&one.first, &one.second]);
    let shared = sides().next().and_then(|side| side.split_once(' ')).map(|(name, _)| name.to_owned());
    let shared = shared.filter(|name| {
        sides().all(|side| side.split_once(' ').is_some_and(|(first, _)| first == name.as_str()))
    });
    let rest = |side: &String| match (&shared, side.split_once(' ')) {
        (Some(_), Some((_, rest))) => rest.to_owned(),
        _ => side.clone(),
    };
    let pairs = all.iter().map(|of| NamedPairing { of, first: rest(&of.first), second: rest(&of.second) });
    (pairs.collect(), shared)
}

/// Conclusion and figures of a pair's main figure, a row for each pair.
fn verdicts(out: &mut String, all: &[NamedPairing<'_>]) {
    if all.is_empty() {
        out.push_str(
            "<p class=\"note\">Nothing stands beside each other: there is nothing to compare.</p>\n",
        );
        return;
    }
    let many = all.len() > 1;
    let row = |(at, one): (usize, &NamedPairing<'_>)| {
        // Of one pair the title of the page says it.
        let link = many.then(|| format!("<a href=\"#p{at}\">{}</a>", escape_html(&one.title())));
        let Some(figure) = one.of.figures.first() else {
            let nothing = ["<strong class=\"trust suspect\">NOTHING</strong>", "", "", "", "", ""];
            return link.into_iter().chain(nothing.map(str::to_owned)).collect();
        };
        let found = &figure.found;
        let (class, word) = class(found.conclusion);
        let cells = [
            format!("<strong class=\"trust {class}\">{word}</strong>"),
            format!(
                "{} <small class=\"dim\">{}</small>",
                escape_html(&figure.name),
                escape_html(figure.shown_unit())
            ),
            format_number(found.means.0),
            format_number(found.means.1),
            change(figure),
            interval(figure),
        ];
        link.into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = all.iter().enumerate().map(row).collect();
    let mut names = if many { table_heads(&["pair"]) } else { Vec::new() };
    names.extend(table_heads(&["verdict", "figure", "first", "second", "change", "95 % interval"]));
    out.push_str(&table_of_markup("Verdict", &names, &rows, 2 + usize::from(many)));
    // More than a few would be a wall of words: each has its own in its section.
    if let [one] = all {
        let figure = one.of.figures.first();
        let figure = figure
            .map_or(String::new(), |figure| format!("{} {}. ", figure.name, describe_conclusion(figure)));
        let verdict = one.of.verdict_between(&one.first, &one.second);
        let _ = writeln!(out, "<p>{}</p>", escape_html(&(figure + &verdict)));
    }
}

/// Relative change of a figure from the first side to the second.
fn change(figure: &ComparedFigure) -> String {
    let found = &figure.found;
    match found.means.0 > 0.0 {
        true => format!("{:+.1} %", (found.means.1 / found.means.0 - 1.0) * 100.0),
        false => "-".into(),
    }
}

/// Interval of the change.
fn interval(figure: &ComparedFigure) -> String {
    relative_interval(&figure.found).unwrap_or_else(|| "one run: none".into())
}

fn pairing(pair: &NamedPairing<'_>, of: &str, data: &mut PageData) -> String {
    let one = pair.of;
    let mut out = String::new();
    if !of.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", escape_html(&one.verdict_between(&pair.first, &pair.second)));
    }
    for warning in &one.warnings {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_html(warning));
    }
    out.push_str(&reports(pair));
    out.push_str(&figures(one, of));
    out.push_str("<div class=\"grid2\">\n");
    one.figures.iter().for_each(|figure| out.push_str(&runs(pair, figure)));
    one.responses.iter().for_each(|responses| out.push_str(&shift(pair, responses, of)));
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
        for (side, times) in [(&pair.first, &responses.merged.0), (&pair.second, &responses.merged.1)] {
            data.distributions.extend(latency_distribution(&format!("{side}: {}", responses.metric), times));
        }
    }
    if data.distributions.len() > from {
        out.push_str(&percentile_figure(from, data.distributions.len()));
    }
    differences(&mut out, "Settings", of, &one.settings);
    differences(&mut out, "Environment", of, &one.environment);
    out
}

/// Links to the reports of both sides' runs.
fn reports(pair: &NamedPairing<'_>) -> String {
    let (first, second) = &pair.of.reports;
    let side = |name: &str, reports: &[ReportLink]| {
        let link = |one: &ReportLink| {
            format!("<a href=\"{}\">{}</a>", escape_html(&one.address), escape_html(&one.name))
        };
        let links: Vec<String> = reports.iter().map(link).collect();
        (!links.is_empty()).then(|| format!("{}: {}", escape_html(name), links.join(", ")))
    };
    let sides: Vec<String> =
        [side(&pair.first, first), side(&pair.second, second)].into_iter().flatten().collect();
    match sides.as_slice() {
        [] => String::new(),
        all => format!("<p>Reports of {}.</p>\n", all.join("; of ")),
    }
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
            let difference = &found.difference;
            let noise = if figure.noise > 0.0 { format_percent(figure.noise) } else { "-".into() };
            vec![
                format!(
                    "{} <small class=\"dim\">{}</small>",
                    escape_html(&figure.name),
                    escape_html(figure.shown_unit())
                ),
                format!("<strong class=\"{class}\">{word}</strong>"),
                format_number(found.means.0),
                format_number(found.means.1),
                format_number(difference.value),
                change(figure),
                interval(figure),
                format!("{} / {}", found.runs.0, found.runs.1),
                format!("{:.3}", found.p),
                figure.describe_effect_size().to_owned(),
                noise,
            ]
        })
        .collect();
    let names = table_heads(&[
        "figure",
        "verdict",
        "first",
        "second",
        "difference",
        "change",
        "95 % interval",
        "runs",
        "p",
        "effect",
        "noise floor",
    ]);
    let table = table_of_markup(&format!("Figures of both sides{of}"), &names, &rows, 2);
    let said = |figure: &ComparedFigure| {
        let (class, word) = class(figure.found.conclusion);
        let name = escape_html(&figure.name);
        format!(
            "<li>{name}: <strong class=\"{class}\">{word}</strong> {}</li>",
            escape_html(&describe_conclusion(figure))
        )
    };
    let items: String = one.figures.iter().map(said).collect();
    format!(
        "{table}<details><summary>Figures in words</summary><ul class=\"reasons\">{items}</ul></details>\n"
    )
}

/// The value of every run, with means and intervals.
fn runs(one: &NamedPairing<'_>, figure: &ComparedFigure) -> String {
    let sides = [&figure.each.0, &figure.each.1];
    let mut dots = Vec::new();
    let mut faint = Vec::new();
    for (at, side) in sides.into_iter().enumerate() {
        let Some(mean) = mean(side) else { return String::new() };
        dots.push((at as f64, mean, mean_interval(side).map(|found| (found.half_width, found.half_width))));
        faint.extend(side.iter().map(|value| (at as f64 + 0.12, *value)));
    }
    let words = vec![one.first.clone(), one.second.clone()];
    category_plot(
        format!("{}, {}", figure.name, figure.shown_unit()),
        "mean, and every run".into(),
        words,
        dots,
        faint,
        0.0,
    )
    .render_figure()
}

/// The shift function of an operation.
fn shift(one: &NamedPairing<'_>, responses: &Responses, of: &str) -> String {
    let change = |ratio: f64| (ratio - 1.0) * 100.0;
    let places = responses.shifts.iter().enumerate();
    let lows = responses.shifts.iter().map(|s| change(s.interval.map_or(s.ratio, |found| found.0)));
    let highs = responses.shifts.iter().map(|s| change(s.interval.map_or(s.ratio, |found| found.1)));
    let (bottom, top) = (lows.fold(-1.0, f64::min), highs.fold(1.0, f64::max));
    let dots = places.clone().map(|(at, s)| {
        let interval = s.interval.map(|(low, high)| ((s.ratio - low) * 100.0, (high - s.ratio) * 100.0));
        (at as f64, change(s.ratio), interval)
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
        lines: vec![crate::html::plot::PlotLine {
            name: match responses.shifts.iter().any(|s| s.interval.is_some()) {
                true => "difference, % of the first, with 95 % intervals".into(),
                false => "difference, % of the first".into(),
            },
            style: 1,
            points: places.map(|(at, s)| (at as f64, change(s.ratio))).collect(),
        }],
        top,
        bottom,
        show: |value| if value.abs() < 0.5 { "0 %".into() } else { format!("{value:+.0} %") },
    };
    let rows: Vec<Vec<String>> = responses
        .shifts
        .iter()
        .map(|s| {
            let interval = s.interval.map_or("one run: none".into(), |(low, high)| {
                format!("{:+.1} to {:+.1} %", change(low), change(high))
            });
            let values = [s.values.0, s.values.1].map(|ns| format_us(ns / 1e3));
            let [first, second] = values;
            vec![format!("p{}", s.percentile), first, second, format!("{:+.1} %", change(s.ratio)), interval]
        })
        .collect();
    let list = render_table(
        &format!("{}: quantiles{of}", responses.metric),
        &table_heads(&["quantile", "first", "second", "difference", "95 % interval"]),
        &rows,
        1,
    );
    format!(
        "<div>{}<details><summary>Quantiles as figures</summary>{list}</details></div>\n",
        plot.render_figure()
    )
}

fn differences(out: &mut String, title: &str, of: &str, rows: &[(String, String, String)]) {
    if rows.is_empty() {
        let _ = writeln!(out, "<p class=\"dim\">{title}: no difference is recorded.</p>");
        return;
    }
    let rows: Vec<Vec<String>> =
        rows.iter().map(|(key, one, other)| vec![key.clone(), one.clone(), other.clone()]).collect();
    let list = render_table(
        &format!("{title} that differ{of}"),
        &table_heads(&["what", "first", "second"]),
        &rows,
        3,
    );
    let _ = write!(out, "<div class=\"long\">{list}</div>");
}
