//! A sweep over users: the laws on the user's own data, bounds, the model the data choose.

use crate::html::gathered::{CellRuns, Gathered, mean_dots};
use crate::html::plot::{Across, Plot, PlotLine};
use crate::html::text::{format_percent, format_rate, format_us, join_markup, render_lines, render_table};
use dyno_analysis::laws::{Maximum, Observed, Sweep, analyse_sweep, factors_of_users};
use dyno_analysis::scalability::describe_parameter;
use dyno_types::units::{ends, format_error, span};
use maud::{Markup, html};

/// Errors of Little's law up to this are what measuring at the edges of a run gives.
const TOLERANCE: f64 = 0.02;

/// Seed of the bootstrap: the same page from the same directory.
const SEED: u64 = 1;

/// The section, where users vary.
pub fn render_users_section(all: &Gathered<'_>) -> Option<Markup> {
    let varying = all.factors_of(factors_of_users);
    let mut parts = Vec::new();
    for (message, rows) in all.sweep_groups(&varying) {
        let observed: Vec<Observed> =
            rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.observed.clone()).collect();
        let Some(found) = analyse_sweep(&observed, SEED) else { continue };
        let think = observed.iter().find(|run| run.users.is_some()).map_or(0.0, |run| run.think_s);
        let unit = observed[0].unit;
        // Tables of several groups have names of their own.
        let of = if message.is_empty() { String::new() } else { format!(", {message}") };
        parts.push(html! {
            @if !message.is_empty() { h3 { (message) } }
            (levels(&found, think, unit, &of))
            (render_lines(words_of(&found)))
            (plots(&found, &rows, think, unit))
            (resources(&found, unit, &of))
        });
    }
    (!parts.is_empty()).then(|| join_markup(parts, ""))
}

fn levels(found: &Sweep, think: f64, unit: &str, of: &str) -> Markup {
    let throughput = format!("X, {unit}/s");
    let heads = [
        "users N",
        "runs",
        &throughput,
        "95 % interval",
        "R",
        "X (R + Z), users",
        "error",
        "bound on X",
        "if single servers",
        "model of X",
    ];
    let rows = found.levels.iter().map(|level| {
        [
            level.users.to_string(),
            level.runs.to_string(),
            format_rate(level.throughput),
            level.half_width.map_or("one run: none".into(), |half| format!("±{}", format_rate(half))),
            format_us(level.response_s * 1e6),
            // With the client's own time between operations, as it was measured.
            level.little.map_or("-".into(), |error| format!("{:.2}", level.users * (1.0 + error))),
            level.little.map_or("-".into(), format_error),
            format_rate(level.bound),
            format!("{} to {}", format_rate(level.balanced.0), format_rate(level.balanced.1)),
            level.model.map_or("-".into(), format_rate),
        ]
    });
    let think = format_us(think * 1e6);
    let caption = format!("Little's law at each number of users; thinking time Z {think}{of}");
    render_table(&caption, &heads, rows, 0)
}

/// A 95 % interval in words, where there is one.
fn between(interval: Option<(String, String)>) -> String {
    interval.map_or(String::new(), |ends| format!(" (95 % interval {})", span(ends, "")))
}

fn words_of(found: &Sweep) -> Vec<String> {
    let mut lines = Vec::new();
    let errors: Vec<f64> = found.levels.iter().filter_map(|level| level.little).map(f64::abs).collect();
    let worst = errors.iter().copied().fold(0.0, f64::max);
    lines.push(match errors.len() {
        0 => "Whether Little's law holds cannot be said: failed operations or unrecorded times leave Little's law \
            untestable.".into(),
        _ if worst <= TOLERANCE => format!(
            "Little's law holds on these data: X (R + Z) gives the number of users back to within {} everywhere.",
            format_percent(worst)
        ),
        _ => format!(
            "Little's law holds by definition; the measurement does not: X (R + Z) misses the number of users by up to {}. \
                Users were \
             idle in ways that were not measured, or times outside of the phase were counted.",
            format_percent(worst)
        ),
    });
    let bounded = matches!(found.maximum, Maximum::Plateau | Maximum::Peak | Maximum::Fall(..));
    let limit = format_rate(1.0 / found.bottleneck_s);
    // The interval of a peak is that of the law's throughput there.
    let sure = between(
        found
            .maximum_interval
            .filter(|_| found.peak.is_none())
            .map(|(a, b)| (format_rate(a), format_rate(b))),
    );
    lines.push(format!(
        "One operation alone takes {}; by all levels the bottleneck needs {} of it{}. The bounds cross at N* = {:.1} users{}: \
         beyond it, users only wait.",
        format_us(found.total_s * 1e6),
        format_us(found.bottleneck_s * 1e6),
        match bounded {
            true => format!(", so that no more than {limit}/s{sure} can be done"),
            false => format!(": {limit}/s, which is no bound here"),
        },
        found.saturation,
        between(found.saturation_interval.map(|(a, b)| ends(a, b, 1)))
    ));
    let above: Vec<String> =
        found.levels.iter().filter(|level| level.above).map(|level| level.users.to_string()).collect();
    if !above.is_empty() {
        lines.push(format!(
            "With {} users throughput lies above the bound by more than its interval: the bounds follow from the response \
             time of few users and from the mean of many, and these levels contradict them: trust the levels.",
            above.join(", ")
        ));
    }
    let (best, users) = (format_rate(found.best.0), found.best.1);
    lines.push(match found.maximum {
        Maximum::Plateau => {
            format!("The greatest mean is {best}/s at {users} users, and the sweep reaches a plateau.")
        }
        Maximum::Peak => format!("The greatest mean is {best}/s at {users} users."),
        Maximum::Fall(lowest, throughput) => format!(
            "The maximum is {best}/s at {users} users, as measured; beyond, throughput falls, to {}/s at {lowest} users.",
            format_rate(throughput)
        ),
        Maximum::Above => format!(
            "The greatest mean is {best}/s at {users} users, more than a law makes of all levels: take the levels."
        ),
        Maximum::Unsure(share) => format!(
            "The greatest mean is {best}/s at {users} users, but its runs differ by ±{}: where the maximum is cannot be \
             said. Make more repetitions.",
            format_percent(share)
        ),
        Maximum::Growing => format!(
            "Throughput still grows at {users} users: the maximum was not reached, and the bounds above are too low. Measure \
             with more users."
        ),
    });
    lines.push(
        "Throughput \"if single servers\" lies within the balanced job bounds, which hold where every station is one server: \
         stations of several do more than the greater of them."
            .into(),
    );
    lines.extend(model_of(found));
    lines.push(format!("No prediction goes beyond {:.0} users.", found.reach));
    lines
}

/// The chosen model, and whether there is a peak.
fn model_of(found: &Sweep) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    match found.fits.first() {
        Some(best) => {
            let described = |(at, (name, value)): (usize, &(&str, f64))| {
                let shown = |value: f64| describe_parameter(name, value).1;
                let interval = best.intervals.get(at).map(|(low, high)| (shown(*low), shown(*high)));
                format!("{} = {}{}", describe_parameter(name, *value).0, shown(*value), between(interval))
            };
            let parameters: Vec<String> = best.parameters.iter().enumerate().map(described).collect();
            lines.push(format!(
                "The data choose the model \"{}\" ({}; error {}/s root mean square) among {}.",
                best.model,
                parameters.join(", "),
                format_rate(best.rmse),
                found.fits.len()
            ));
        }
        None => lines.push("There are too few numbers of users to choose a model: that takes six.".into()),
    }
    lines.push(match (found.peak, found.peak_interval) {
        (Some((users, throughput)), _) => {
            let sure = between(found.maximum_interval.map(|(a, b)| (format_rate(a), format_rate(b))));
            format!(
                "The data support a peak at about {users:.0} users with {}/s{sure}.",
                format_rate(throughput)
            )
        }
        (None, Some((low, high))) if high.is_infinite() => {
            format!("The data support no peak: it may lie anywhere from {low:.0} users on, or nowhere.")
        }
        (None, Some((low, high))) => {
            let interval = span(ends(low, high, 0), " users");
            format!("No peak is claimed; the interval of its place is {interval}.")
        }
        (None, None) => "Nothing can be said about a peak.".into(),
    });
    lines
}

fn plots(found: &Sweep, rows: &[&CellRuns], think: f64, unit: &str) -> Markup {
    let bound = |of: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        let (first, last) = (found.levels[0].users, found.levels[found.levels.len() - 1].users);
        (0..=60)
            .map(|n| first * (last / first).powf(f64::from(n) / 60.0))
            .map(|users| (users, of(users)))
            .collect()
    };
    let cycle = found.saturation * found.bottleneck_s;
    let mut lines = vec![PlotLine {
        name: "bound".into(),
        style: 1,
        points: bound(&|users| (users / cycle).min(1.0 / found.bottleneck_s)),
    }];
    let model: Vec<(f64, f64)> =
        found.levels.iter().filter_map(|level| Some((level.users, level.model?))).collect();
    if let Some(best) = found.fits.first().filter(|_| model.len() > 1) {
        lines.push(PlotLine { name: best.model.to_owned(), style: 2, points: model });
    }
    let throughput = Plot {
        title: format!("Throughput against users, {unit}/s"),
        across: "users".into(),
        axis: Across::Numbers,
        dots: mean_dots(rows, |run| run.users, |run| Some(run.throughput)),
        faint: Vec::new(),
        lines,
        top: 0.0,
        bottom: 0.0,
        log: false,
        show: format_rate,
    };
    let response = Plot {
        title: "Response time against users".into(),
        across: "users".into(),
        axis: Across::Numbers,
        dots: mean_dots(rows, |run| run.users, |run| Some(run.response_s * 1e6)),
        faint: Vec::new(),
        lines: vec![PlotLine {
            name: "bound".into(),
            style: 1,
            points: bound(&|users| (users * found.bottleneck_s - think).max(found.total_s) * 1e6),
        }],
        top: 0.0,
        bottom: 0.0,
        log: false,
        show: format_us,
    };
    let words: Vec<String> =
        rows.iter().filter(|row| row.figures.throughput.is_none()).map(|row| row.describe_cell()).collect();
    html! {
        div.grid2 { (throughput.render_figure()) (response.render_figure()) }
        @if !words.is_empty() { p.note { "Without a figure: " (words.join("; ")) } }
    }
}

fn resources(found: &Sweep, unit: &str, of: &str) -> Markup {
    let demands = found.demands.iter().map(|demand| {
        [
            demand.name.clone(),
            format_us(demand.demand_s * 1e6),
            format!("{:.2}", demand.background),
            format_percent(demand.variation),
            demand.utilisation.map_or("unknown".into(), format_percent),
        ]
    });
    let heads_of_demands = ["resource", "demand", "busy without load", "variation", "greatest utilisation"];
    let others =
        found.what_if.iter().map(|one| [one.change.clone(), one.bottleneck.clone(), format_rate(one.limit)]);
    let limit = format!("limit, {unit}/s");
    let heads_of_others = ["what if", "then the limit is set by", &limit];
    let caption = format!("Service demand of an operation, by regression{of}");
    let caption_of_others = format!("Other resources, by demands that do not depend on load{of}");
    html! {
        @if !found.demands.is_empty() {
            (render_table(&caption, &heads_of_demands, demands, 1))
        }
        @if !found.what_if.is_empty() { (render_table(&caption_of_others, &heads_of_others, others, 2)) }
    }
}
