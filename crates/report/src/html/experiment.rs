//! The page of an experiment: its cells with intervals, small multiples, users, one factor by another, and links to every run.

use crate::faults;
use crate::html::analysis_sections::{StabilityAnalysis, render_stability};
use crate::html::charts::PageData;
use crate::html::document::{render_bar, render_chip, render_standalone_page};
use crate::html::gathered::{CellRuns, Gathered, GatheredRun, gather_runs};
use crate::html::overlay::render_overlay;
use crate::html::plot::{Dot, Plot, category_plot};
use crate::html::rates;
use crate::html::text::{
    escape_html, format_rate, format_timestamp, format_us, format_whole, table_heads, table_of_markup,
};
use crate::html::users;
use crate::tuning;
use crate::worth::Worth;
use dyno_rundir::{ExperimentDir, RunDir};
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::shell::{again, quoted};
use dyno_types::units::counted;
use std::fmt::Write as _;

/// The page. `price`: of an hour of everything that took part. `found`: what searches have found, a sentence each.
pub fn experiment_page(dir: &ExperimentDir, price: Option<f64>, found: &[String]) -> String {
    let all = gather_runs(dir, price);
    let mut data = PageData::default();
    let overlay = render_overlay(&all, &mut data);
    let mut sections: Vec<(&str, &str, String)> = Vec::new();
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
    if let Some((title, text)) = &overlay {
        sections.push(("overlay", title, text.clone()));
    }
    sections.push(("runs", "Runs", runs(&all)));
    sections.push(("repeat", "Repeat this experiment", repeat(dir)));
    // The question stands above the name of its file.
    let (title, name) = match &dir.description {
        Some(question) => (question.as_str(), format!("{}, ", dir.name)),
        None => (dir.name.as_str(), String::new()),
    };
    let links: Vec<(String, String)> =
        sections.iter().map(|(id, title, _)| ((*id).to_owned(), (*title).to_owned())).collect();
    let said = if found.is_empty() { answer(&all) } else { found.join(" ") } + &recovered(&all);
    let mut out = format!(
        "{}<header>\n<h1>{}</h1>\n<p><strong>{}</strong></p>\n<p class=\"dim\">{}{}</p>\n",
        render_bar(&chips(&all), &dir.name, &links),
        escape_html(title),
        escape_html(&said),
        escape_html(&name),
        escape_html(&format_timestamp(&dir.started))
    );
    headline(&mut out, &all);
    for note in &all.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_html(note));
    }
    out.push_str("</header>\n<main id=\"main\" tabindex=\"-1\">\n");
    for (id, title, text) in &sections {
        let _ = write!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{}</h2>\n{text}</section>\n",
            escape_html(title)
        );
    }
    out.push_str("</main>\n");
    render_standalone_page(&dir.name, &out, &data)
}

/// The worst verdict of the runs as a chip, with how many have it.
fn chips(all: &Gathered<'_>) -> String {
    let count = |of: &dyn Fn(&CellRuns) -> usize| all.rows.iter().map(of).sum::<usize>();
    let ended = all.rows.iter().map(|row| row.runs.len()).sum::<usize>();
    let worst = [
        (count(&|row| row.figures.failed), "invalid", "FAILED"),
        (count(&|row| row.figures.invalid), "invalid", "INVALID"),
        (count(&|row| row.figures.suspect), "suspect", "SUSPECT"),
        (count(&|row| row.figures.runs), "valid", "VALID"),
    ];
    let (class, words) = match worst.into_iter().find(|(runs, ..)| *runs > 0) {
        Some((runs, class, word)) => (class, format!("{word} {runs} of {ended}")),
        None => ("running", "NO RUN".into()),
    };
    let missed = match count(&|row| row.figures.missed) {
        0 => String::new(),
        runs => render_chip("invalid", &format!("FAIL {runs} of {ended}")),
    };
    render_chip(class, &words) + &missed
}

/// What faults did, a table of all runs.
fn faulted(all: &Gathered<'_>) -> Option<String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let some = || all.rows.iter().flat_map(|row| &row.runs).filter(|run| !run.faults.is_empty());
    let many = some().count() > 1;
    for row in &all.rows {
        for run in row.runs.iter().filter(|run| !run.faults.is_empty()) {
            let whose = match all.rows.len() {
                1 => format!("repetition {}", run.ended.repetition),
                _ => format!("{}, repetition {}", row.describe_cell(), run.ended.repetition),
            };
            for fault in &run.faults {
                let cells = faults::format_fault_row(fault).into_iter().map(|cell| escape_html(&cell));
                rows.push(many.then(|| link(all, run, &whose)).into_iter().chain(cells).collect());
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut names = if many { table_heads(&["run"]) } else { Vec::new() };
    names.extend(table_heads(&faults::HEADS));
    let words = 1 + usize::from(many);
    let table = table_of_markup("Faults that the experiment asked for", &names, &rows, words);
    Some(format!(
        "<div class=\"dense\">{table}</div>\n<p class=\"dim\">{}</p>\n",
        escape_html(faults::MEANING)
    ))
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

/// Answer of the experiment, in a sentence or two: the greatest mean throughput, and whether its interval keeps clear of the
/// others'.
fn answer(all: &Gathered<'_>) -> String {
    let known =
        |row: &'_ CellRuns| Some((row.figures.throughput?, row.figures.half_width, row.describe_cell()));
    let mut means: Vec<(f64, Option<f64>, String)> = all.rows.iter().filter_map(known).collect();
    means.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said = |(mean, half, label): &(f64, Option<f64>, String)| {
        let half = half.map_or(String::new(), |share| format!(" ± {}", format_rate(share * mean)));
        format!("{}/s{half} with {label}", format_rate(*mean))
    };
    match means.as_slice() {
        [] => "No run has completed.".into(),
        // The label of the only cell says nothing.
        [(mean, half, _)] => {
            let half = half.map_or(" in one run".into(), |share| format!(" ± {}", format_rate(share * mean)));
            format!("Throughput is {}/s{half}.", format_rate(*mean))
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

fn headline(out: &mut String, all: &Gathered<'_>) {
    let count = |of: &dyn Fn(&CellRuns) -> usize| all.rows.iter().map(of).sum::<usize>();
    let tile =
        |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape_html(&value));
    out.push_str("<dl class=\"figures\">");
    out.push_str(&tile("Cells", format_whole(all.dir.cells.len() as f64)));
    out.push_str(&tile(
        "Completed runs",
        match all.dir.searches {
            true => count(&|r| r.figures.runs).to_string(),
            false => format!("{} of {}", count(&|r| r.figures.runs), all.dir.planned),
        },
    ));
    for (name, class, runs) in [
        ("Failed", "invalid", count(&|r| r.figures.failed)),
        ("Suspect", "suspect", count(&|r| r.figures.suspect)),
        ("Invalid", "invalid", count(&|r| r.figures.invalid)),
    ] {
        let class = if runs > 0 { format!(" class=\"{class}\"") } else { String::new() };
        let _ = write!(out, "<div><dt>{name}</dt><dd{class}>{runs}</dd></div>");
    }
    let best = all.rows.iter().filter_map(|row| Some((row.figures.throughput?, row)));
    if let Some((throughput, row)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let _ = write!(
            out,
            "<div><dt>Greatest mean throughput</dt><dd>{}/s<small>{}</small></dd></div>",
            format_rate(throughput),
            escape_html(&if all.rows.len() > 1 { row.describe_cell() } else { String::new() })
        );
    }
    out.push_str("</dl>\n");
}

/// Runs that were meant to last much longer than the others: no points of a sweep, each with its course.
fn courses(all: &Gathered<'_>) -> Option<String> {
    let mut out = String::new();
    for row in all.rows.iter().filter(|row| row.for_its_course) {
        for run in &row.runs {
            let Ok(found) = RunDir::open(&all.dir.path.join(&run.ended.dir)) else { continue };
            let _ = writeln!(
                out,
                "<h3>{}</h3>",
                escape_html(&format!("{}: {}", row.describe_cell(), run.ended.dir))
            );
            let over_time = found.interval_history().ok().and_then(StabilityAnalysis::from_history);
            out.push_str(&render_stability(over_time.as_ref()));
        }
    }
    (!out.is_empty()).then_some(out)
}

/// `mean ± half` of operations per second.
fn with_interval(row: &CellRuns) -> (String, String) {
    let Some(mean) = row.figures.throughput else { return ("-".into(), "-".into()) };
    let half = row.figures.half_width.map(|share| share * mean);
    (format_rate(mean), half.map_or("one run: none".into(), |half| format!("±{}", format_rate(half))))
}

/// The same with its colours, as markup.
fn remarks(row: &CellRuns) -> String {
    let figures = &row.figures;
    let counts = [
        (figures.failed, "invalid", "failed"),
        (figures.invalid, "invalid", "invalid"),
        (figures.suspect, "suspect", "suspect"),
        (figures.missed, "invalid", "missed a threshold"),
    ];
    let some = counts.iter().filter(|(runs, ..)| *runs > 0);
    let words: Vec<String> =
        some.map(|(runs, class, what)| format!("<span class=\"{class}\">{runs} {what}</span>")).collect();
    words.join(", ")
}

/// The address of a run's page: a path below this one, whatever the journal says.
fn address(dir: &str) -> String {
    const SET: &AsciiSet = &RESERVED.remove(b'/').remove(b'=').remove(b',').remove(b'+');
    format!("./{}/report.html", percent::percent_encode(dir, SET))
}

fn link(all: &Gathered<'_>, run: &GatheredRun, words: &str) -> String {
    match all.dir.path.join(&run.ended.dir).join("report.html").is_file() {
        true => format!("<a href=\"{}\">{}</a>", escape_html(&address(&run.ended.dir)), escape_html(words)),
        false => escape_html(words),
    }
}

fn cells(all: &Gathered<'_>) -> String {
    let factors = all.factor_names();
    let mut names: Vec<String> = factors.iter().map(|name| (*name).to_owned()).collect();
    let points = all.rows.iter().any(|row| !row.figures.point.is_empty());
    if points {
        names.push("point".into());
    }
    let words = names.len();
    names.extend(table_heads(&["runs", "operations/s", "95 % interval", "p50", "p99", "p99.9"]));
    // Worth of throughput: where the server was watched, where a price is given.
    let worth = |of: &dyn Fn(&CellRuns) -> Option<Worth>| all.rows.iter().any(|row| of(row).is_some());
    let per_core = worth(&|row| row.figures.per_core);
    let per_price = worth(&|row| row.figures.per_price);
    for (shown, head) in [(per_core, "per core-second"), (per_price, "per currency unit")] {
        names.extend(shown.then(|| head.to_owned()));
    }
    let remarked = all.rows.iter().any(|row| !remarks(row).is_empty());
    names.extend(remarked.then(|| "remarks".to_owned()));
    names.push("reports".into());
    let rows: Vec<Vec<String>> = all
        .rows
        .iter()
        .map(|row| {
            let mut line: Vec<String> =
                row.figures.levels.iter().map(|(_, label)| escape_html(label)).collect();
            if words > factors.len() {
                line.push(escape_html(&row.figures.point));
            }
            let (mean, half) = with_interval(row);
            line.extend([row.figures.runs.to_string(), mean, half]);
            match row.figures.response_us {
                Some(three) => line.extend(three.map(|v| if v.is_nan() { "-".into() } else { format_us(v) })),
                None => line.extend(["-"; 3].map(str::to_owned)),
            }
            for (shown, one) in [(per_core, row.figures.per_core), (per_price, row.figures.per_price)] {
                line.extend(shown.then(|| one.map_or("-".into(), |one| one.format_with_interval())));
            }
            line.extend(remarked.then(|| remarks(row)));
            let links: Vec<String> =
                row.runs.iter().map(|run| link(all, run, &run.ended.repetition.to_string())).collect();
            // Numbers are small: each gets room for a finger.
            line.push(format!("<span class=\"numbers\">{}</span>", links.join(" ")));
            line
        })
        .collect();
    let text = table_of_markup(
        "Mean over repetitions; response times from the merged histograms of all runs",
        &names,
        &rows,
        words,
    );
    format!(
        "{text}<p class=\"dim\">95 % intervals (Student's t, over runs). If two overlap, this table shows no difference.</p>\n"
    )
}

/// Throughput by cell: the factor with the most levels across, a drawing for each combination of the others.
fn multiples(all: &Gathered<'_>) -> String {
    let top = all
        .rows
        .iter()
        .filter_map(|row| Some(row.figures.throughput? * (1.0 + row.figures.half_width.unwrap_or(0.0))))
        .fold(0.0, f64::max);
    if top <= 0.0 {
        return "<p>No run has completed: there is nothing to draw.</p>\n".into();
    }
    let across =
        (0..all.factor_names().len()).max_by_key(|at| (all.factor_levels(*at).len(), std::cmp::Reverse(*at)));
    let mut out = String::from("<div class=\"grid2\">\n");
    let groups = all.group_rows(&across.map_or(Vec::new(), |at| vec![at]));
    let tail = |row: &CellRuns| row.figures.response_us.map(|three| three[1]).filter(|p99| p99.is_finite());
    let worst = all.rows.iter().filter_map(tail).fold(0.0, f64::max);
    let many = groups.len() > 1;
    for (words, mut rows) in groups {
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
        let dots = rows.iter().enumerate().filter_map(|(number, row)| {
            let mean = row.figures.throughput?;
            let place = match across.filter(|_| !searched) {
                Some(at) => labels.iter().position(|level| *level == row.figures.levels[at].1)?,
                None => number,
            };
            Some((place as f64, mean, row.figures.half_width.map(|share| (share * mean, share * mean))))
        });
        let dots = dots.collect();
        let title = if words.is_empty() {
            "Throughput, operations/s".into()
        } else {
            format!("{words}: operations/s")
        };
        let tails = rows.iter().enumerate().filter_map(|(number, row)| {
            let p99 = tail(row)?;
            let place = match across.filter(|_| !searched) {
                Some(at) => labels.iter().position(|level| *level == row.figures.levels[at].1)?,
                None => number,
            };
            Some((place as f64, p99, None))
        });
        let tails: Vec<Dot> = tails.collect();
        let title_of_tails = if words.is_empty() {
            "p99 of the response time".into()
        } else {
            format!("{words}: p99 of the response time")
        };
        out.push_str(
            &category_plot(title, across_name.clone(), labels.clone(), dots, Vec::new(), top).render_figure(),
        );
        if !tails.is_empty() {
            let plot = category_plot(title_of_tails, across_name, labels, tails, Vec::new(), worst * 1.05);
            out.push_str(&Plot { show: format_us, ..plot }.render_figure());
        }
    }
    let scale = if many { " All drawings of a figure have the same scale." } else { "" };
    let _ = write!(
        out,
        "</div>\n<p class=\"dim\">Points are means over repetitions, bars their 95 % intervals; one run has none.{scale}</p>\n"
    );
    out
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
fn tunings(dir: &ExperimentDir) -> Option<String> {
    let all = match dyno_rundir::tuning::read(&dir.path) {
        Ok(all) if all.is_empty() => return None,
        Ok(all) => all,
        Err(error) => return Some(format!("<p class=\"note\">{}</p>\n", escape_html(&error.to_string()))),
    };
    let mut out = String::new();
    for cell in &all {
        let items: String = tuning::describe_effects(cell)
            .iter()
            .map(|words| format!("<li>{}</li>", escape_html(words)))
            .collect();
        let _ = writeln!(
            out,
            "<p>{}</p>\n<ul class=\"reasons\">{items}</ul>",
            escape_html(&tuning::cell_headline(cell))
        );
    }
    for words in tuning::describe_interactions(&all) {
        let _ = writeln!(out, "<p>{}</p>", escape_html(&words));
    }
    Some(out)
}

fn runs(all: &Gathered<'_>) -> String {
    let (mut rows, mut words) = (Vec::new(), Vec::new());
    for row in &all.rows {
        for run in &row.runs {
            rows.push(vec![
                link(all, run, &run.ended.dir),
                escape_html(&row.describe_cell()),
                run.ended.repetition.to_string(),
                escape_html(&run.ended.status),
                format!("<span class=\"{}\">{0}</span>", escape_html(&run.ended.trust)),
                run.ended.throughput.map_or("-".into(), format_rate),
                run.p99_us.map_or("-".into(), format_us),
            ]);
            words.push(escape_html(&run.ended.words));
        }
    }
    let mut names = table_heads(&["run", "cell", "repetition", "status", "verdict", "operations/s", "p99"]);
    if words.iter().any(|one| !one.is_empty()) {
        names.push("remarks".into());
        rows.iter_mut().zip(words).for_each(|(row, one)| row.push(one));
    }
    format!(
        "<div class=\"long runs\">{}</div>\n",
        table_of_markup("Every run that has ended", &names, &rows, 2)
    )
}

fn repeat(dir: &ExperimentDir) -> String {
    let mut out = String::new();
    if !dir.command.is_empty() {
        let _ = write!(
            out,
            "<p>The same experiment again; secrets are masked:</p>\n<pre>{}</pre>\n",
            escape_html(&quoted(&again(&dir.command)))
        );
    }
    let place = dir.path.display().to_string();
    let file = dir.path.join("experiment.yaml").display().to_string();
    for words in [vec!["dyno", "run", &file], vec!["dyno", "report", &place, "--format", "html"]] {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let _ = writeln!(out, "<pre>{}</pre>", escape_html(&quoted(&words)));
    }
    out
}
