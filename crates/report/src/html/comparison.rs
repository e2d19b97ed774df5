//! The page of a comparison: the verdict in words, then the figures it comes from, quantile by quantile, and what else differs.

use crate::comparison::replays::ComparedReplays;
use crate::comparison::text::{describe_conclusion, format_p, relative_interval};
use crate::comparison::{
    ComparedFigure, Pairing, ReportLink, Responses, describe_columns, format_number, title_of_all,
};
use crate::html::charts::{PageData, latency_distribution};
use crate::html::document::{
    percentile_figure, render_bar, render_chip, render_section, render_standalone_page,
};
use crate::html::plot::{Across, Plot, PlotLine, category_plot};
use crate::html::text::{format_percent, format_us, join_markup, render_lines, render_table};
use dyno_analysis::compare::Conclusion;
use dyno_analysis::interval::mean_interval;
use dyno_types::stats::mean;
use dyno_types::units::{Change, change_span, counted};
use maud::{Markup, Render, html};

/// Figures whose drawings stand before the tables.
const FIRST: usize = 2;

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
    let foot = describe_columns(all);
    let title = title_of_all(all);
    let many = all.len() > 1;
    let main = |one: &Pairing| one.figures.first().map(|figure| class(figure.found.decision.conclusion));
    let chip = if let [one] = all { main(one) } else { None };
    let chip = chip.map_or(html! {}, |(class, word)| render_chip(class, word));
    let named = names_of_pairs(&all.iter().collect::<Vec<_>>()).into_iter().enumerate().filter(|_| many);
    let links: Vec<(String, String)> = named.map(|(number, name)| (format!("p{number}"), name)).collect();
    let sections: Vec<Markup> = all
        .iter()
        .enumerate()
        .map(|(number, one)| {
            let heading = if many { one.title() } else { "Figures".into() };
            // Tables of several pairs have names of their own.
            let of = if many { format!(", {}", one.title()) } else { String::new() };
            render_section(&format!("p{number}"), &heading, &pairing(one, &of, &mut data))
        })
        .collect();
    let body = html! {
        (render_bar(&chip, &title, &links))
        header {
            h1 { (title) }
            // A drawing stands on the first screen: before a table of many pairs, after one of one.
            (answer(all))
            @if many { (overview(all)) }
            (verdicts(all))
            @if let [one] = all { (first_figures(one)) }
            (about(all))
            @for note in left_out { p.note { (note) } }
        }
        main id="main" tabindex="-1" {
            @for section in sections { (section) }
            p.dim { (foot) }
        }
    };
    render_standalone_page(&title, &body, &data)
}

/// The name of a figure with its unit.
fn name_of(figure: &ComparedFigure) -> Markup {
    html! { (figure.name) " " small.dim { (figure.shown_unit()) } }
}

/// Conclusion and figures of a pair's main figure, a row for each pair.
fn verdicts(all: &[Pairing]) -> Markup {
    let many = all.len() > 1;
    let names = names_of_pairs(&all.iter().collect::<Vec<_>>());
    let row = |(at, one): (usize, &Pairing)| -> Vec<Markup> {
        // Of one pair the title of the page says it.
        let link = many.then(|| html! { a href={ "#p" (at) } { (names[at]) } });
        let Some(figure) = one.figures.first() else {
            let nothing =
                std::iter::once(render_chip("suspect", "NOTHING")).chain(std::iter::repeat_n(html! {}, 5));
            return link.into_iter().chain(nothing).collect();
        };
        let found = &figure.found;
        let (class, word) = class(found.decision.conclusion);
        let cells = [
            render_chip(class, word),
            name_of(figure),
            format_number(found.means.0).render(),
            format_number(found.means.1).render(),
            change(figure).render(),
            interval(figure).render(),
        ];
        link.into_iter().chain(cells).collect()
    };
    let mut heads = if many { vec!["pair"] } else { Vec::new() };
    heads.extend(["verdict", "figure", "first", "second", "change", "95 % interval"]);
    html! {
        @if all.is_empty() {
            p.note { "Nothing stands beside each other: there is nothing to compare." }
        } @else {
            div.pairs[many] { (render_table("Verdict", &heads, all.iter().enumerate().map(row), 2 + usize::from(many))) }
        }
    }
}

/// The answer in a sentence or two.
fn answer(all: &[Pairing]) -> Markup {
    html! {
        @match all {
            [] => {}
            [one] => p.answer {
                strong {
                    @if let Some(figure) = one.figures.first().filter(|_| !one.is_one_pair()) {
                        (figure.name) " " (describe_conclusion(figure)) ". "
                    }
                    (one.verdict_sentence())
                }
            },
            // More than a few would be a wall of words: each has its own in its section.
            many => p.answer { strong { (count_conclusions(many)) } },
        }
    }
}

/// How many pairs are better, worse, the same or unclear in their first figure, in a sentence.
fn count_conclusions(all: &[Pairing]) -> String {
    let conclusions = || all.iter().filter_map(|one| Some(one.figures.first()?.found.decision.conclusion));
    let count = |holds: &dyn Fn(Conclusion) -> bool| conclusions().filter(|one| holds(*one)).count();
    let counts = [
        (count(&|one| one == Conclusion::Worse), "worse"),
        (count(&|one| one == Conclusion::Better), "better"),
        (count(&|one| one == Conclusion::Same), "no different"),
        (count(&|one| matches!(one, Conclusion::Unclear(_))), "not decided"),
    ];
    let words: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let name = all.iter().find_map(|one| one.figures.first()).map_or("figures", |figure| &figure.name);
    // Pairs are called by what they differ in.
    let same = |of: fn(&Pairing) -> &String| all.iter().all(|one| of(one) == of(&all[0]));
    let sides = match (same(|one| &one.first), same(|one| &one.second)) {
        (true, true) => format!(" Each is {} against {}.", all[0].second, all[0].first),
        (true, false) => format!(" Each is against {}.", all[0].first),
        (false, _) => String::new(),
    };
    format!("Of {} by {name}: {}.{sides}", counted(all.len(), "pair"), words.join(", "))
}

/// What is compared, side by side: of several pairs what the first is of.
fn about(all: &[Pairing]) -> Markup {
    let rows = all.first().map_or(&[][..], |one| one.about.as_slice());
    let cells = rows.iter().map(|(what, first, second)| [what, first, second]);
    html! {
        @if !rows.is_empty() { div.long { (render_table("What is compared", &["what", "first", "second"], cells, 3)) } }
    }
}

/// Relative change of a figure from the first side to the second.
fn change(figure: &ComparedFigure) -> String {
    let found = &figure.found;
    match found.means.0 > 0.0 {
        true => Change(found.means.1 / found.means.0).to_string(),
        false => "-".into(),
    }
}

/// Interval of the change.
fn interval(figure: &ComparedFigure) -> String {
    relative_interval(&figure.found).unwrap_or_else(|| "one run: none".into())
}

fn pairing(one: &Pairing, of: &str, data: &mut PageData) -> Markup {
    let from = data.distributions.len();
    for responses in &one.responses {
        for (side, times) in [(&one.first, &responses.merged.0), (&one.second, &responses.merged.1)] {
            data.distributions.extend(latency_distribution(&format!("{side}: {}", responses.metric), times));
        }
    }
    html! {
        @if !of.is_empty() { p { (one.verdict_sentence()) } }
        @for warning in &one.warnings { p.note { (warning) } }
        // Of one pair they stand on the first screen.
        @if !of.is_empty() { (first_figures(one)) }
        (reports(one))
        (figures(one, of))
        div.grid2 {
            @for figure in one.figures.iter().skip(FIRST) { (runs(one, figure)) }
            @for responses in &one.responses { (shift(one, responses, of)) }
        }
        @if one.responses.is_empty() {
            p { "Quantiles are not compared: no operation has enough successful samples on both sides." }
        } @else {
            p.dim {
                "Quantile by quantile (shift function): above the thick line the second is slower. "
                @if one.is_one_pair() {
                    "With one run of each there is no interval: what of it is chance is not known."
                } @else {
                    "Bars are 95 % intervals over runs, each for its quantile alone; with one run a side there is none."
                }
            }
        }
        @if data.distributions.len() > from { (percentile_figure(from, data.distributions.len(), data)) }
        @if let Some(replays) = &one.replays { (compared_replays(replays, of)) }
        (differences("Settings", of, &one.settings))
        (differences("Facts of the environment", of, &one.environment))
    }
}

/// Two replays of a recording: how alike their work was, and times then and on both sides.
fn compared_replays(replays: &ComparedReplays, of: &str) -> Markup {
    let shares = replays.shares().into_iter().map(|(name, one, other)| [name.to_owned(), one, other]);
    html! {
        (render_table(&format!("Of the recorded traffic{of}"), &["share", "first", "second"], shares, 1))
        @if !replays.times.is_empty() {
            @let title = replays.title();
            (render_table(&format!("{title}{of}"), &ComparedReplays::HEADS, replays.rows(), 1))
        }
    }
}

/// The main figures of a pair, drawn.
fn first_figures(pair: &Pairing) -> Markup {
    html! { div.grid2 { @for figure in pair.figures.iter().take(FIRST) { (runs(pair, figure)) } } }
}

/// Pairs that are drawn beside each other.
const DRAWN: usize = 24;

/// The main figure of several pairs: how many times that of the first it is on the second side, with intervals.
fn overview(all: &[Pairing]) -> Markup {
    let known = all.iter().filter_map(|one| {
        let figure = one.figures.first().filter(|figure| figure.found.means.0 > 0.0)?;
        let (found, ratio) = (&figure.found, &figure.found.decision.ratio);
        let ends = found.has_intervals().then_some((ratio.low, ratio.high));
        Some((one, figure, ratio.value, ends))
    });
    let known: Vec<_> = known.take(DRAWN).collect();
    let Some((_, figure, ..)) = known.first() else { return html! {} };
    let words = names_of_pairs(&known.iter().map(|(one, ..)| *one).collect::<Vec<_>>());
    let changes: Vec<RatioOf> =
        known.iter().enumerate().map(|(at, (_, _, ratio, ends))| (at as f64, *ratio, *ends)).collect();
    let title = format!("{}: the second against the first", figure.name);
    let plot = plot_ratios(title, "pairs".into(), Across::Words(words), &changes, false);
    html! {
        (plot.render_figure())
        @if all.len() > DRAWN { p.dim { "The first " (DRAWN) " pairs are drawn." } }
    }
}

/// Names that tell pairs apart in little room: their cells; of an experiment with more levels than two the level that is
/// compared with the first, too.
fn names_of_pairs(all: &[&Pairing]) -> Vec<String> {
    let has_own_cell = |one: &&Pairing| {
        !one.cell.is_empty() && all.iter().filter(|other| other.cell == one.cell).count() == 1
    };
    if all.iter().all(has_own_cell) {
        return all.iter().map(|one| one.cell.clone()).collect();
    }
    let name = |one: &&Pairing| match (&one.experiment, one.cell.as_str()) {
        (None, _) => one.title(),
        (Some(_), "") => names_of_sides(one)[1].to_owned(),
        (Some(_), cell) => format!("{}, {cell}", names_of_sides(one)[1]),
    };
    all.iter().map(name).collect()
}

/// Both sides without the factor that both are levels of: an axis has little room.
fn names_of_sides(one: &Pairing) -> [&str; 2] {
    let sides = [one.first.as_str(), one.second.as_str()];
    match (&one.experiment, sides.map(|side| side.split_once('='))) {
        (Some(_), [Some((factor, first)), Some((other, second))]) if factor == other => [first, second],
        _ => sides,
    }
}

/// Links to the reports of both sides' runs.
fn reports(pair: &Pairing) -> Markup {
    let (first, second) = &pair.reports;
    let side = |(name, reports): (&String, &Vec<ReportLink>)| {
        let links = reports.iter().map(|one| html! { a href=(one.address) { (one.name) } });
        (!reports.is_empty()).then(|| html! { (name) ": " (join_markup(links, ", ")) })
    };
    let sides: Vec<Markup> =
        [(&pair.first, first), (&pair.second, second)].into_iter().filter_map(side).collect();
    html! { @if !sides.is_empty() { p { "Reports of " (join_markup(sides, "; of ")) "." } } }
}

/// The table of figures.
fn figures(one: &Pairing, of: &str) -> Markup {
    if one.figures.is_empty() {
        return html! { p { "There is no figure that both have." } };
    }
    let one_pair = one.is_one_pair();
    let verdict = |figure: &ComparedFigure| {
        let (class, word) = class(figure.found.decision.conclusion);
        html! { strong class=(class) { (word) } }
    };
    let row = |figure: &ComparedFigure| {
        let found = &figure.found;
        let noise = if figure.noise > 0.0 { format_percent(figure.noise) } else { "-".into() };
        let tested = [format_p(found).render(), figure.describe_effect_size().render()];
        let cells = [
            name_of(figure),
            verdict(figure),
            format_number(found.means.0).render(),
            format_number(found.means.1).render(),
            change(figure).render(),
            interval(figure).render(),
            html! { (found.runs.0) " / " (found.runs.1) },
        ];
        let tested = tested.into_iter().filter(|_| !one_pair);
        cells.into_iter().chain(tested).chain([noise.render()]).collect::<Vec<Markup>>()
    };
    let mut heads = vec!["figure", "verdict", "first", "second", "change", "95 % interval", "runs"];
    // One run of each has neither.
    heads.extend(["p", "effect"].into_iter().filter(|_| !one_pair));
    heads.push("noise floor");
    let words = one.figures.iter().map(|figure| {
        html! { (figure.name) ": " (verdict(figure)) " " (describe_conclusion(figure)) }
    });
    html! {
        (render_table(&format!("Figures of both sides{of}"), &heads, one.figures.iter().map(row), 2))
        details { summary { "Figures in words" } (render_lines(words)) }
    }
}

/// The value of every run, with means and intervals.
fn runs(one: &Pairing, figure: &ComparedFigure) -> Markup {
    let sides = [&figure.each.0, &figure.each.1];
    let mut dots = Vec::new();
    let mut faint = Vec::new();
    for (at, side) in sides.into_iter().enumerate() {
        let Some(mean) = mean(side) else { return html! {} };
        dots.push((at as f64, mean, mean_interval(side).map(|found| (found.half_width, found.half_width))));
        faint.extend(side.iter().map(|value| (at as f64 + 0.12, *value)));
    }
    let words = names_of_sides(one).map(str::to_owned).to_vec();
    category_plot(
        format!("{}, {}", figure.name, figure.shown_unit()),
        if figure.found.is_one_pair() { "one run of each".into() } else { "mean, and every run".into() },
        Across::Words(words),
        dots,
        faint,
        0.0,
    )
    .render_figure()
}

/// What a shift is called on its axis.
fn difference(factors: bool) -> &'static str {
    if factors { "times the first, logarithmic" } else { "difference, % of the first" }
}

fn show_percent(value: f64) -> String {
    if value.abs() < 0.5 { "0 %".into() } else { format!("{value:+.0} %") }
}

/// A factor by its binary logarithm; those between have no label.
fn show_factor(log: f64) -> String {
    match log {
        log if log.fract() != 0.0 => String::new(),
        log if log < 0.0 => format!("1/{}", (-log).exp2()),
        log => format!("{} times", log.exp2()),
    }
}

/// A ratio at its place across, with its interval.
type RatioOf = (f64, f64, Option<(f64, f64)>);

/// Changes in per cent, or as factors where they are great; `joined` by a line.
fn plot_ratios(title: String, across: String, axis: Across, all: &[RatioOf], joined: bool) -> Plot {
    // Beyond four times the axis is one of factors, where half and double are as far from 1.
    let ends = all.iter().flat_map(|(_, ratio, ends)| [*ratio, ends.map_or(*ratio, |ends| ends.1)]);
    let factors = ends.fold(1.0_f64, |most, ratio| most.max(ratio).max(1.0 / ratio.max(1e-9))) >= 4.0;
    let change = |ratio: f64| if factors { ratio.max(1e-9).log2() } else { (ratio - 1.0) * 100.0 };
    let lows = all.iter().map(|(_, ratio, ends)| change(ends.map_or(*ratio, |ends| ends.0)));
    let highs = all.iter().map(|(_, ratio, ends)| change(ends.map_or(*ratio, |ends| ends.1)));
    let (bottom, top) = (lows.fold(-1.0, f64::min), highs.fold(1.0, f64::max));
    let dots = all.iter().map(|(at, ratio, ends)| {
        let place = change(*ratio);
        (*at, place, ends.map(|(low, high)| (place - change(low), change(high) - place)))
    });
    let named = match all.iter().any(|(.., ends)| ends.is_some()) {
        true => format!("{}, with 95 % intervals", difference(factors)),
        false => difference(factors).to_owned(),
    };
    let points = all.iter().map(|(at, ratio, _)| (*at, change(*ratio))).collect();
    let (across, lines) = match joined {
        true => (across, vec![PlotLine { name: named, style: 1, points }]),
        false => (format!("{across}: {named}"), Vec::new()),
    };
    Plot {
        title,
        across,
        axis,
        dots: dots.collect(),
        faint: Vec::new(),
        lines,
        top,
        bottom,
        log: false,
        show: if factors { show_factor } else { show_percent },
    }
}

/// The shift function of an operation.
fn shift(one: &Pairing, responses: &Responses, of: &str) -> Markup {
    let title = format!(
        "{} response time, quantile by quantile: {} against {}",
        responses.metric, one.second, one.first
    );
    let axis = Across::Thinned(responses.shifts.iter().map(|s| format!("{}", s.percentile)).collect());
    let shifts = responses.shifts.iter().enumerate();
    let all: Vec<RatioOf> = shifts.map(|(at, s)| (at as f64, s.ratio, s.interval)).collect();
    let plot = plot_ratios(title, "percentile".into(), axis, &all, true);
    let rows = responses.shifts.iter().map(|s| {
        let interval = s.interval.map_or("one run: none".into(), |ends| change_span(s.ratio, ends));
        let [first, second] = [s.values.0, s.values.1].map(|ns| format_us(ns / 1e3));
        [format!("p{}", s.percentile), first, second, Change(s.ratio).to_string(), interval]
    });
    let heads = ["quantile", "first", "second", "difference", "95 % interval"];
    html! {
        div {
            (plot.render_figure())
            details {
                summary { "Quantiles as figures" }
                (render_table(&format!("{}: quantiles{of}", responses.metric), &heads, rows, 1))
            }
        }
    }
}

fn differences(title: &str, of: &str, rows: &[(String, String, String)]) -> Markup {
    let cells = rows.iter().map(|(key, one, other)| [key, one, other]);
    html! {
        @if rows.is_empty() {
            p.dim { (title) ": no difference is recorded." }
        } @else {
            div.long {
                (render_table(&format!("{title} that differ{of}"), &["what", "first", "second"], cells, 3))
            }
        }
    }
}
