//! The page of an experiment: its cells with intervals, small multiples, users, one factor by another, and links to every run.

use crate::cost_efficiency::CostEfficiency;
use crate::faults;
use crate::html::analysis_sections::{StabilityAnalysis, render_stability};
use crate::html::charts::{Chart, ChartChoice, PageData};
use crate::html::document::{
    render_bar, render_chip, render_figure, render_section, render_standalone_page, render_tile, render_tools,
};
use crate::html::facts::{Fact, facts, read_head, read_summary, render_facts};
use crate::html::gathered::{CellRuns, Gathered, GatheredRun, gather_runs};
use crate::html::overlay::render_overlay;
use crate::html::plot::{Across, Dot, Plot, category_plot, stand_apart};
use crate::html::points::{PackedSeries, SeriesPoint, pack_series, with_gaps};
use crate::html::rates;
use crate::html::sections::render_faults;
use crate::html::text::{
    format_rate, format_timestamp, format_us, format_whole, join_markup, render_lines, render_table,
};
use crate::html::users;
use crate::html::workload::describe_workload;
use crate::style::Style;
use crate::summary::{NOT_WATCHED, SummaryExtras, render_summary};
use crate::tuning;
use dyno_rundir::schema::{Environment, Run};
use dyno_rundir::{ExperimentDir, RunDir, files};
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::shell::{again, quoted};
use dyno_types::units::counted;
use maud::{Markup, Render, html};

/// The page. `price`: of an hour of everything that took part. `found`: what searches have found, a sentence each.
pub fn experiment_page(dir: &ExperimentDir, price: Option<f64>, found: &[String]) -> String {
    let all = gather_runs(dir, price);
    let mut data = PageData::default();
    let overlay = render_overlay(&all, &mut data);
    let over_time = over_time(&all, &mut data);
    let mut sections: Vec<(&str, &str, Markup)> = Vec::new();
    // One point is no drawing.
    if all.rows.len() != 1 {
        sections.push(("multiples", "Throughput and p99 by cell", multiples(&all)));
    }
    sections.push(("cells", "Cells", cells(&all)));
    if let Some(text) = faulted(&all) {
        sections.push(("faults", "Faults", text));
    }
    if let Some(text) = users::render_users_section(&all) {
        sections.push(("users", "Users: does Little's law hold?", text));
    }
    if let Some(text) = rates::render_rates_section(&all) {
        sections.push(("rates", "Rates: what is kept", text));
    }
    if let Some(text) = courses(&all) {
        sections.push(("courses", "Long runs: how throughput goes on", text));
    }
    if let Some(text) = tunings(dir) {
        sections.push(("tuning", "Tuning", text));
    }
    if let Some(text) = over_time {
        sections.push(("time", "Throughput and p99 over time", text));
    }
    if let Some((title, text)) = &overlay {
        sections.push(("overlay", title, text.clone()));
    }
    sections.push(("runs", "Runs", runs(&all)));
    if let Some(text) = settings(dir) {
        sections.push(("settings", "Settings", text));
    }
    sections.push(("repeat", "Repeat this experiment", repeat(dir)));
    // The question stands above the name of its file.
    let (title, name) = match &dir.description {
        Some(question) => (question.as_str(), dir.name.clone()),
        None => (dir.name.as_str(), String::new()),
    };
    let links: Vec<(&str, &str)> = sections.iter().map(|(id, title, _)| (*id, *title)).collect();
    let said = if found.is_empty() { answer(&all) } else { found.join(" ") } + &recovered(&all);
    let body = html! {
        (render_bar(&chips(&all), &dir.name, &links))
        header {
            h1 { (title) }
            p.answer { strong { (said) } }
            (render_facts(&facts_of(&all, &name)))
            (headline(&all, found.is_empty()))
            @for note in &all.notes { p.note { (note) } }
        }
        main id="main" tabindex="-1" {
            @for (id, title, content) in &sections { (render_section(id, title, content)) }
        }
    };
    render_standalone_page(&dir.name, &body, &data)
}

/// Runs whose files are read for the facts of the page.
const LOOKED_AT: usize = 50;

/// Facts of the experiment: those of its first run, with every database and host that took part.
fn facts_of(all: &Gathered<'_>, name: &str) -> Vec<Fact> {
    let runs = || all.rows.iter().flat_map(|row| row.runs.first()).take(LOOKED_AT);
    let path = |run: &GatheredRun| all.dir.path.join(&run.ended.dir);
    let heads: Vec<(Run, Environment)> = runs().filter_map(|run| read_head(&path(run))).collect();
    let Some((run, host)) = heads.first() else {
        return vec![("Begun", format_timestamp(&all.dir.started).render())];
    };
    let mut found = facts(run, host, &describe_workload(&run.settings, None));
    let mut databases: Vec<&str> = heads.iter().map(|(run, _)| run.database.as_str()).collect();
    databases.sort_unstable();
    databases.dedup();
    let mut required: Vec<String> = runs()
        .filter_map(|run| read_summary(&path(run)))
        .flat_map(|summary| summary.thresholds.into_iter().map(|one| one.expression))
        .collect();
    required.sort_unstable();
    required.dedup();
    for (of, words) in &mut found {
        match *of {
            "Database" if databases.len() > 1 => *words = databases.join(", ").render(),
            "Begun" => *words = format!("{}, dyno {}", format_timestamp(&all.dir.started), run.dyno).render(),
            "Command" => *words = html! { code { (quoted(&again(&all.dir.command))) } },
            // Each run has a server of its own, or the file names it.
            "Target" if heads.iter().any(|(other, _)| other.target != run.target) => *words = html! {},
            _ => {}
        }
    }
    let factors: Vec<String> = all
        .factor_names()
        .iter()
        .enumerate()
        .map(|(at, factor)| format!("{factor}: {}", all.factor_levels(at).join(", ")))
        .collect();
    found.insert(2, ("Varied", factors.join("; ").render()));
    found.insert(3, ("Thresholds", required.join(", ").render()));
    if !name.is_empty() {
        found.insert(0, ("Experiment", name.render()));
    }
    found
}

/// Cells whose course can be chosen.
const COURSES: usize = 60;

/// The figure of each second of a cell that is chosen, a line for each repetition; a cell of which none has three is no choice.
fn courses_of(all: &Gathered<'_>, of: impl Fn(&GatheredRun) -> Vec<SeriesPoint>) -> Vec<ChartChoice> {
    let choices = all.rows.iter().take(COURSES).filter_map(|row| {
        let runs = row.runs.iter().map(|run| (run, of(run))).filter(|(_, points)| points.len() >= 3);
        let series: Vec<PackedSeries> = runs
            .take(8)
            .map(|(run, points)| {
                pack_series(&format!("repetition {}", run.ended.repetition), &with_gaps(points), POINTS)
            })
            .collect();
        (!series.is_empty()).then(|| ChartChoice { n: row.describe_cell(), s: series })
    });
    choices.collect()
}

/// Throughput and p99 over time: one cell at a time.
fn over_time(all: &Gathered<'_>, data: &mut PageData) -> Option<Markup> {
    let middle = |second: u64| second as f64 + 0.5;
    let rates = courses_of(all, |run| {
        run.seconds.iter().map(|(second, n)| (middle(*second), Some(*n as f64))).collect()
    });
    let tails =
        courses_of(all, |run| run.tails.iter().map(|(second, us)| (middle(*second), Some(*us))).collect());
    if rates.is_empty() {
        return None;
    }
    let last = all.rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.seconds.keys().last()).max();
    data.span = (0.0, last.map_or(1.0, |last| (*last + 1) as f64));
    let has_tools = !data.charts.is_empty();
    let chart = |id: &str, title: &str, unit: &str, choices: Vec<ChartChoice>| {
        (!choices.is_empty()).then(|| Chart {
            id: id.into(),
            title: title.into(),
            unit: unit.into(),
            log: unit == "us",
            choices,
        })
    };
    let charts = [
        chart("course", "Operations of each second after the warm-up", "operations/s", rates),
        chart("tails", "p99 of each second, of the slowest operation", "us", tails),
    ];
    let mut drawn = Vec::new();
    for chart in charts.into_iter().flatten() {
        drawn.push(render_figure(data.charts.len(), &chart, data));
        data.charts.push(chart);
    }
    Some(html! {
        // An overlay has the buttons for all of them.
        @if !has_tools { (render_tools()) }
        @for figure in &drawn { (figure) }
        @if all.rows.len() > COURSES { p.dim { "The first " (COURSES) " cells can be chosen." } }
    })
}

/// Points of a line: the page has many of them.
const POINTS: usize = 600;

/// The experiment's file, secrets masked.
fn settings(dir: &ExperimentDir) -> Option<Markup> {
    let text = files::read_to_string(&dir.path.join("experiment.yaml")).ok()?;
    Some(html! {
        details class="printed" {
            summary { "experiment.yaml" }
            pre { (text) }
        }
        @if !dir.sets.is_empty() { p { "Changed by --set: " (dir.sets.join(", ")) } }
    })
}

/// The worst verdict of the runs as a chip, with how many have it.
fn chips(all: &Gathered<'_>) -> Markup {
    let count = |of: &dyn Fn(&CellRuns) -> usize| all.rows.iter().map(of).sum::<usize>();
    let ended = all.rows.iter().map(|row| row.runs.len()).sum::<usize>();
    let worst = [
        (count(&|row| row.figures.failed), "invalid", "FAILED"),
        (count(&|row| row.figures.invalid), "invalid", "INVALID"),
        (count(&|row| row.figures.suspect), "suspect", "SUSPECT"),
        (count(&|row| row.figures.runs), "valid", "VALID"),
    ];
    let (class, message) = match worst.into_iter().find(|(runs, ..)| *runs > 0) {
        Some((runs, class, word)) => {
            let watched = all.rows.iter().flat_map(|row| &row.runs).any(|run| run.watched);
            (class, format!("{word} {runs} of {ended}{}", if watched { "" } else { NOT_WATCHED }))
        }
        None => ("running", "NO RUN".into()),
    };
    let missed = count(&|row| row.figures.missed);
    html! {
        (render_chip(class, &message))
        @if missed > 0 { (render_chip("invalid", &format!("FAIL {missed} of {ended}"))) }
    }
}

/// What faults did, a table of all runs.
fn faulted(all: &Gathered<'_>) -> Option<Markup> {
    let mut rows: Vec<Vec<Markup>> = Vec::new();
    let some = || all.rows.iter().flat_map(|row| &row.runs).filter(|run| !run.faults.is_empty());
    let many = some().count() > 1;
    for row in &all.rows {
        for run in row.runs.iter().filter(|run| !run.faults.is_empty()) {
            let whose = match all.rows.len() {
                1 => format!("repetition {}", run.ended.repetition),
                _ => format!("{}, repetition {}", row.describe_cell(), run.ended.repetition),
            };
            for fault in &run.faults {
                let cells = faults::format_fault_row(fault).into_iter().map(|cell| cell.render());
                rows.push(many.then(|| link(all, run, &whose)).into_iter().chain(cells).collect());
            }
        }
    }
    let mut heads = if many { vec!["run"] } else { Vec::new() };
    heads.extend(faults::HEADS);
    (!rows.is_empty()).then(|| render_faults(&heads, &rows, 1 + usize::from(many)))
}

/// What became of faults, in a sentence; nothing where there was none.
fn recovered(all: &Gathered<'_>) -> String {
    let faults = || all.rows.iter().flat_map(|row| &row.runs).flat_map(|run| &run.faults);
    let (count, times) = (faults().count(), faults().filter_map(|fault| fault.recover_s));
    let (recovered, longest) = times.fold((0, 0.0_f64), |(n, most), s| (n + 1, most.max(s)));
    match (count, recovered) {
        (0, _) => String::new(),
        (count, 0) => format!(" {}: throughput is not seen to recover.", counted(count, "fault")),
        (count, all) if all == count => {
            format!(" {}: throughput recovers, at the latest after {longest:.2} s.", counted(count, "fault"))
        }
        (count, some) => format!(
            " {}: throughput is seen to recover from {some}, at the latest after {longest:.2} s.",
            counted(count, "fault")
        ),
    }
}

/// Cells that may be called the greatest: an invalid run is in no mean of theirs.
fn sound<'a>(all: &'a Gathered<'_>) -> impl Iterator<Item = &'a CellRuns> {
    all.rows.iter().filter(|row| row.figures.invalid == 0)
}

/// Answer of the experiment, in a sentence or two: the greatest mean throughput, and whether its interval keeps clear of the
/// others'. Cells with invalid runs are left out, which the answer says.
fn answer(all: &Gathered<'_>) -> String {
    let left_out = all.rows.len() - sound(all).count();
    match (all.rows.len(), left_out) {
        (cells, 0) => answer_of(&all.rows.iter().collect::<Vec<_>>(), cells > 1),
        (1, _) => {
            let answer = answer_of(&all.rows.iter().collect::<Vec<_>>(), false);
            format!("{answer} {} invalid.", are(all.rows[0].figures.invalid, "run"))
        }
        (cells, left_out) if cells == left_out => {
            "Every cell has invalid runs: none is called the greatest.".into()
        }
        (_, left_out) => {
            let answer = answer_of(&sound(all).collect::<Vec<_>>(), true);
            format!("{answer} {} left out: invalid runs.", are(left_out, "cell"))
        }
    }
}

/// A count with its verb: `1 run is`, `2 runs are`.
fn are(count: usize, what: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { "is" } else { "are" })
}

/// The answer of cells that can be used; `many` where the experiment has several, so that each has to be named.
fn answer_of(rows: &[&CellRuns], many: bool) -> String {
    let known =
        |row: &&CellRuns| Some((row.figures.throughput?, row.figures.half_width, row.describe_cell()));
    let mut means: Vec<(f64, Option<f64>, String)> = rows.iter().filter_map(known).collect();
    means.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said = |(mean, half, label): &(f64, Option<f64>, String)| {
        let half = half.map_or(String::new(), |share| format!(" ± {}", format_rate(share * mean)));
        format!("{}/s{half} with {label}", format_rate(*mean))
    };
    match means.as_slice() {
        [] => "No run has completed.".into(),
        // The label of the only cell says nothing.
        [(mean, half, label)] => {
            let half = half.map_or(" in one run".into(), |share| format!(" ± {}", format_rate(share * mean)));
            let label = if many { format!(" with {label}") } else { String::new() };
            format!("Throughput is {}/s{half}{label}.", format_rate(*mean))
        }
        [best, others @ ..] => {
            let low = best.1.map(|share| best.0 * (1.0 - share));
            let clear = |other: &(f64, Option<f64>, String)| {
                let high = other.1.map(|share| other.0 * (1.0 + share));
                high.zip(low).is_some_and(|(high, low)| high < low)
            };
            let first = format!("Throughput is greatest at {}", said(best));
            match others.iter().find(|other| !clear(other)) {
                None => format!("{first}; next is {}.", said(&others[0])),
                Some(near) if near.1.is_some() && best.1.is_some() => {
                    format!("{first}, but not shown to differ from {}: their intervals overlap.", said(near))
                }
                Some(_) => {
                    format!("{first}. One run a cell has no interval: whether cells differ is not shown.")
                }
            }
        }
    }
}

/// The figures. Where a search has its answer, `greatest` is false: the greatest mean of its points is none.
fn headline(all: &Gathered<'_>, greatest: bool) -> Markup {
    let count = |of: &dyn Fn(&CellRuns) -> usize| all.rows.iter().map(of).sum::<usize>();
    let completed = match all.dir.searches {
        true => count(&|r| r.figures.runs).to_string(),
        false => format!("{} of {}", count(&|r| r.figures.runs), all.dir.planned),
    };
    let bad = [
        ("Failed", "invalid", count(&|r| r.figures.failed)),
        ("Suspect", "suspect", count(&|r| r.figures.suspect)),
        ("Invalid", "invalid", count(&|r| r.figures.invalid)),
    ];
    let best = sound(all).filter(|_| greatest).filter_map(|row| Some((row.figures.throughput?, row)));
    html! {
        dl.figures {
            (render_tile("Cells", &format_whole(all.dir.cells.len() as f64), ""))
            (render_tile("Completed runs", &completed, ""))
            @for (name, class, runs) in bad {
                div { dt { (name) } dd class=[(runs > 0).then_some(class)] { (runs) } }
            }
            @if let Some((throughput, row)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) {
                @let cell = if all.rows.len() > 1 { row.describe_cell() } else { String::new() };
                (render_tile("Greatest mean throughput", &format!("{}/s", format_rate(throughput)), &cell))
            }
        }
    }
}

/// Runs that were meant to last much longer than the others: no points of a sweep, each with its course.
fn courses(all: &Gathered<'_>) -> Option<Markup> {
    let mut courses = Vec::new();
    for row in all.rows.iter().filter(|row| row.for_its_course) {
        for run in &row.runs {
            let Ok(found) = RunDir::open(&all.dir.path.join(&run.ended.dir)) else { continue };
            let over_time = found.interval_history().ok().and_then(StabilityAnalysis::from_history);
            courses.push(html! {
                h3 { (row.describe_cell()) ": " (run.ended.dir) }
                (render_stability(over_time.as_ref()))
            });
        }
    }
    (!courses.is_empty()).then(|| join_markup(courses, ""))
}

/// `mean ± half` of operations per second.
fn with_interval(row: &CellRuns) -> (String, String) {
    let Some(mean) = row.figures.throughput else { return ("-".into(), "-".into()) };
    let half = row.figures.half_width.map(|share| share * mean);
    (format_rate(mean), half.map_or("one run: none".into(), |half| format!("±{}", format_rate(half))))
}

/// The same with its colours, as markup.
fn remarks(row: &CellRuns) -> Option<Markup> {
    let figures = &row.figures;
    let counts = [
        (figures.failed, "invalid", "failed"),
        (figures.invalid, "invalid", "invalid"),
        (figures.suspect, "suspect", "suspect"),
        (figures.missed, "invalid", "missed a threshold"),
    ];
    let some = counts.iter().filter(|(runs, ..)| *runs > 0);
    let words: Vec<Markup> =
        some.map(|(runs, class, what)| html! { span class=(class) { (runs) " " (what) } }).collect();
    (!words.is_empty()).then(|| join_markup(words, ", "))
}

/// The address of a run's page: a path below this one, whatever the journal says.
fn address(dir: &str) -> String {
    const SET: &AsciiSet = &RESERVED.remove(b'/').remove(b'=').remove(b',').remove(b'+');
    format!("./{}/report.html", percent::percent_encode(dir, SET))
}

/// Runs whose summaries stand in the page.
const SUMMARIES: usize = 100;

/// The number by which a run's summary is found in the page, if it has one.
fn number_of(all: &Gathered<'_>, run: &GatheredRun) -> Option<usize> {
    let mut runs = all.rows.iter().flat_map(|row| &row.runs).take(SUMMARIES);
    runs.position(|one| std::ptr::eq(one, run))
}

/// A link to a run: to its summary in this page, which goes where the page goes, or else to its own page.
fn link(all: &Gathered<'_>, run: &GatheredRun, message: &str) -> Markup {
    let path = all.dir.path.join(&run.ended.dir);
    match number_of(all, run).filter(|_| path.join("summary.json").is_file()) {
        Some(number) => html! { a href={ "#run-" (number) } { (message) } },
        None if path.join("report.html").is_file() => {
            html! { a href=(address(&run.ended.dir)) { (message) } }
        }
        None => message.render(),
    }
}

/// The summaries of the runs, as `dyno report` prints them, with a link to each run's own page.
fn summaries(all: &Gathered<'_>) -> Markup {
    let style = Style { colour: false, columns: 100, rows: Style::SMALL_ROWS, details: false };
    let runs = all.rows.iter().flat_map(|row| &row.runs).take(SUMMARIES).enumerate();
    let known = runs.filter_map(|(number, run)| {
        let path = all.dir.path.join(&run.ended.dir);
        let summary = read_summary(&path)?;
        let text = render_summary(&summary, SummaryExtras::default(), style);
        Some((number, run, text, path.join("report.html").is_file()))
    });
    html! {
        @for (number, run, text, has_page) in known {
            details {
                summary { (run.ended.dir) }
                div id={ "run-" (number) } {
                    pre { (text.trim_end()) }
                    @if has_page {
                        p { a href=(address(&run.ended.dir)) { "Its own page" } ", where the experiment's directory is" }
                    }
                }
            }
        }
    }
}

fn cells(all: &Gathered<'_>) -> Markup {
    let mut heads = all.factor_names();
    let points = all.rows.iter().any(|row| !row.figures.point.is_empty());
    heads.extend(points.then_some("point"));
    let words = heads.len();
    heads.extend(["runs", "operations/s", "95 % interval", "p50", "p99", "p99.9"]);
    // Worth of throughput: where the server was watched, where a price is given.
    let worth =
        |of: &dyn Fn(&CellRuns) -> Option<CostEfficiency>| all.rows.iter().any(|row| of(row).is_some());
    let per_core = worth(&|row| row.figures.per_core);
    let per_price = worth(&|row| row.figures.per_price);
    for (shown, head) in [(per_core, "per core-second"), (per_price, "per currency unit")] {
        heads.extend(shown.then_some(head));
    }
    let remarked = all.rows.iter().any(|row| remarks(row).is_some());
    heads.extend(remarked.then_some("remarks"));
    heads.push("reports");
    let row = |row: &CellRuns| {
        let mut line: Vec<Markup> = row.figures.levels.iter().map(|(_, label)| label.render()).collect();
        line.extend(points.then(|| row.figures.point.render()));
        let (mean, half) = with_interval(row);
        line.extend([row.figures.runs.to_string(), mean, half].map(|cell| cell.render()));
        line.extend(match row.figures.response_us {
            Some(three) => three.map(|v| if v.is_nan() { "-".render() } else { format_us(v).render() }),
            None => ["-"; 3].map(|cell| cell.render()),
        });
        for (shown, one) in [(per_core, row.figures.per_core), (per_price, row.figures.per_price)] {
            let worth = || one.map_or("-".render(), |one| one.format_with_interval().render());
            line.extend(shown.then(worth));
        }
        line.extend(remarked.then(|| remarks(row).unwrap_or_default()));
        let links = row.runs.iter().map(|run| link(all, run, &run.ended.repetition.to_string()));
        // Numbers are small: each gets room for a finger.
        line.push(html! { span.numbers { (join_markup(links, " ")) } });
        line
    };
    let caption = "Mean over repetitions; response times from the merged histograms of all runs";
    html! {
        div.cells { (render_table(caption, &heads, all.rows.iter().map(row), words)) }
        p.dim { "95 % intervals (Student's t, over runs). If two overlap, this table shows no difference." }
    }
}

/// Throughput by cell: the factor with the most levels across, a drawing for each combination of the others.
fn multiples(all: &Gathered<'_>) -> Markup {
    let top = all
        .rows
        .iter()
        .filter_map(|row| Some(row.figures.throughput? * (1.0 + row.figures.half_width.unwrap_or(0.0))))
        .fold(0.0, f64::max);
    if top <= 0.0 {
        return html! { p { "No run has completed: there is nothing to draw." } };
    }
    let across =
        (0..all.factor_names().len()).max_by_key(|at| (all.factor_levels(*at).len(), std::cmp::Reverse(*at)));
    let groups = all.group_rows(&across.map_or(Vec::new(), |at| vec![at]));
    let tail = |row: &CellRuns| row.figures.response_us.map(|three| three[1]).filter(|p99| p99.is_finite());
    let worst = all.rows.iter().filter_map(tail).fold(0.0, f64::max);
    let best = all.rows.iter().filter_map(tail).fold(f64::INFINITY, f64::min);
    // Where the greatest is many times the least, all others would lie on the ground of an even axis.
    let log = best > 0.0 && worst / best >= 10.0;
    let many = groups.len() > 1;
    let mut drawings = Vec::new();
    for (message, mut rows) in groups {
        // A search has several points in a cell: each stands by itself.
        let searched = rows.iter().any(|row| !row.figures.point.is_empty());
        let one = if searched { one_searched(&mut rows) } else { None };
        let (across_name, labels) = match (across.filter(|_| !searched), one) {
            (Some(at), _) => (
                all.factor_names()[at].to_owned(),
                all.factor_levels(at).iter().map(|level| (*level).to_owned()).collect(),
            ),
            (None, Some((name, values))) => (name, values),
            (None, None) => {
                let labels: Vec<String> = rows.iter().map(|row| row.describe_cell()).collect();
                (across.map_or("cell", |at| all.factor_names()[at]).to_owned(), labels)
            }
        };
        // Levels that are numbers stand at their distances, unless those would lay them over each other.
        let values: Option<Vec<f64>> = labels.iter().map(|label| level_number(label)).collect();
        let values = values.filter(|values| stand_apart(values));
        let place = |number: usize, row: &CellRuns| -> Option<f64> {
            let number = match across.filter(|_| !searched) {
                Some(at) => labels.iter().position(|level| *level == row.figures.levels[at].1)?,
                None => number,
            };
            Some(values.as_ref().map_or(number as f64, |values| values[number]))
        };
        let dots = rows.iter().enumerate().filter_map(|(number, row)| {
            let mean = row.figures.throughput?;
            let half = row.figures.half_width.map(|share| (share * mean, share * mean));
            Some((place(number, row)?, mean, half))
        });
        let dots = dots.collect();
        let title = if message.is_empty() {
            "Throughput, operations/s".into()
        } else {
            format!("{message}: operations/s")
        };
        let tails =
            rows.iter().enumerate().filter_map(|(number, row)| Some((place(number, row)?, tail(row)?, None)));
        let tails: Vec<Dot> = tails.collect();
        let title_of_tails = if message.is_empty() {
            "p99 of the response time".into()
        } else {
            format!("{message}: p99 of the response time")
        };
        let title_of_tails = title_of_tails + if log { ", logarithmic" } else { "" };
        let axis = || match &values {
            Some(values) => Across::Levels(values.iter().copied().zip(labels.iter().cloned()).collect()),
            None => Across::Words(labels.clone()),
        };
        let plot = category_plot(title, across_name.clone(), axis(), dots, Vec::new(), top);
        drawings.push(plot.render_figure());
        if !tails.is_empty() {
            let plot = category_plot(title_of_tails, across_name, axis(), tails, Vec::new(), worst);
            let bottom = if log { best } else { 0.0 };
            drawings.push(Plot { show: format_us, log, bottom, ..plot }.render_figure());
        }
    }
    html! {
        div.grid2 { @for drawing in drawings { (drawing) } }
        p.dim {
            "Points are means over repetitions, bars their 95 % intervals; one run has none."
            @if many { " All drawings of a figure have the same scale." }
        }
    }
}

/// The number that a level is, as `users: [1, 2k]` and answers of a search write it.
fn level_number(label: &str) -> Option<f64> {
    label.replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// Rows of a search for one value, such as `rate=2000`, put in the order of their values: its name and the values.
fn one_searched(rows: &mut [&CellRuns]) -> Option<(String, Vec<String>)> {
    let value = |row: &CellRuns| {
        let (name, value) = row.figures.point.split_once('=')?;
        Some((name.to_owned(), value.parse::<f64>().ok()?))
    };
    let all: Vec<(String, f64)> = rows.iter().map(|row| value(row)).collect::<Option<_>>()?;
    let name =
        all.first().map(|(name, _)| name.clone()).filter(|name| all.iter().all(|one| one.0 == *name))?;
    // Other factors are words beside it: without them points would look alike.
    if rows.iter().any(|row| row.figures.levels != rows[0].figures.levels) {
        return None;
    }
    let order = |row: &CellRuns| value(row).map_or(0.0, |(_, value)| value);
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    Some((name, rows.iter().map(|row| format_rate(order(row))).collect()))
}

/// Describes what tunings have found, if anything was tuned.
fn tunings(dir: &ExperimentDir) -> Option<Markup> {
    let all = match dyno_rundir::tuning::read(&dir.path) {
        Ok(all) if all.is_empty() => return None,
        Ok(all) => all,
        Err(error) => return Some(html! { p.note { (error) } }),
    };
    Some(html! {
        @for cell in &all {
            p { (tuning::cell_headline(cell)) }
            (render_lines(tuning::describe_effects(cell)))
        }
        @for message in tuning::describe_interactions(&all) { p { (message) } }
    })
}

fn runs(all: &Gathered<'_>) -> Markup {
    let runs = || all.rows.iter().flat_map(|row| row.runs.iter().map(move |run| (row, run)));
    let remarked = runs().any(|(_, run)| !run.ended.message.is_empty());
    let row = |(row, run): (&CellRuns, &GatheredRun)| {
        let ended = &run.ended;
        let cells = [
            link(all, run, &ended.dir),
            row.describe_cell().render(),
            ended.repetition.render(),
            ended.status.render(),
            html! { span class=(ended.trust) { (ended.trust) } },
            ended.throughput.map_or("-".into(), format_rate).render(),
            run.p99_us.map_or("-".into(), format_us).render(),
        ];
        cells.into_iter().chain(remarked.then(|| ended.message.render()))
    };
    let mut heads = vec!["run", "cell", "repetition", "status", "verdict", "operations/s", "p99"];
    heads.extend(remarked.then_some("remarks"));
    html! {
        div class="long runs" { (render_table("Every run that has ended", &heads, runs().map(row), 2)) }
        (summaries(all))
    }
}

fn repeat(dir: &ExperimentDir) -> Markup {
    let place = dir.path.display().to_string();
    let file = dir.path.join("experiment.yaml").display().to_string();
    // The file is as it was given: what was set beside it makes it this experiment.
    let sets = dir.sets.iter().flat_map(|set| ["--set", set.as_str()]);
    let again_from = [
        ["dyno", "run", &file].into_iter().chain(sets).collect(),
        vec!["dyno", "report", &place, "--format", "html"],
    ];
    html! {
        @if !dir.command.is_empty() {
            p { "The same experiment again; secrets are masked:" }
            pre { (quoted(&again(&dir.command))) }
        }
        @for words in again_from { pre { (quoted(&words)) } }
    }
}
