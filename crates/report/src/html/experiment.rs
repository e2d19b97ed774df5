//! The page of an experiment: its cells with intervals, small multiples, users, engines by memory, and links to every run.

use super::charts::{Chart, Data};
use super::gathered::{Gathered, OneRun, Row, gather};
use super::page::{document, figure};
use super::plot::{Across, Plot};
use super::points::{MOST, Point, packed};
use super::text::{esc, heads, own_name, rate, shell, table, table_of_markup, us, whole};
use super::users;
use dyno_analysis::interval::mean_interval;
use dyno_rundir::ExperimentDir;
use std::fmt::Write as _;

/// The page.
pub fn experiment_page(dir: &ExperimentDir) -> String {
    let all = gather(dir);
    let mut data = Data::default();
    let overlay = engines_by_memory(&all, &mut data);
    let mut sections: Vec<(&str, &str, String)> = vec![("cells", "Cells", cells(&all))];
    sections.push(("multiples", "Throughput by cell", multiples(&all)));
    if let Some(text) = users::section(&all) {
        sections.push(("users", "Users: is Lazowska right?", text));
    }
    if let Some(text) = overlay {
        sections.push(("engines", "Engines by memory", text));
    }
    sections.push(("runs", "Runs", runs(&all)));
    sections.push(("repeat", "Repeat this experiment", repeat(dir)));
    let mut out =
        format!("<header>\n<h1>{}</h1>\n<p class=\"dim\">{}</p>\n", esc(&dir.name), esc(&dir.started));
    headline(&mut out, &all);
    for note in &all.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(note));
    }
    out.push_str("<nav aria-label=\"Sections\"><ul>");
    for (id, title, _) in &sections {
        let _ = write!(out, "<li><a href=\"#{id}\">{title}</a></li>");
    }
    out.push_str("</ul></nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n");
    for (id, title, text) in &sections {
        let _ = write!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>\n{text}</section>\n"
        );
    }
    out.push_str("</main>\n");
    document(&dir.name, &out, &data)
}

fn headline(out: &mut String, all: &Gathered<'_>) {
    let count = |of: &dyn Fn(&Row) -> usize| all.rows.iter().map(of).sum::<usize>();
    let tile = |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{}</dd></div>", esc(&value));
    out.push_str("<dl class=\"figures\">");
    out.push_str(&tile("Cells", whole(all.dir.cells.len() as f64)));
    out.push_str(&tile(
        "Runs that gave a figure",
        format!("{} of {}", count(&|r| r.figures.runs), all.dir.planned),
    ));
    out.push_str(&tile("Failed", count(&|r| r.figures.failed).to_string()));
    out.push_str(&tile("Suspect", count(&|r| r.figures.suspect).to_string()));
    out.push_str(&tile("Invalid", count(&|r| r.figures.invalid).to_string()));
    let best = all.rows.iter().filter_map(|row| Some((row.figures.throughput?, row)));
    if let Some((throughput, row)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let _ = write!(
            out,
            "<div><dt>Greatest mean throughput</dt><dd>{}/s<small>{}</small></dd></div>",
            rate(throughput),
            esc(&label(row))
        );
    }
    out.push_str("</dl>\n");
}

/// A row in words.
pub(super) fn label(row: &Row) -> String {
    let mut words: Vec<String> =
        row.figures.levels.iter().map(|(name, label)| format!("{name} {label}")).collect();
    words.extend(Some(row.figures.point.clone()).filter(|point| !point.is_empty()));
    if words.is_empty() { "the only cell".into() } else { words.join(", ") }
}

/// `mean +- half` of operations per second.
fn with_interval(row: &Row) -> (String, String) {
    let Some(mean) = row.figures.throughput else { return ("-".into(), "-".into()) };
    let half = row.figures.half_width.map(|share| share * mean);
    (rate(mean), half.map_or("one run: none".into(), |half| format!("+-{}", rate(half))))
}

fn remarks(row: &Row) -> String {
    let figures = &row.figures;
    let counts = [
        (figures.failed, "failed"),
        (figures.invalid, "invalid"),
        (figures.suspect, "suspect"),
        (figures.missed, "missed a threshold"),
    ];
    let words: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    words.join(", ")
}

/// The address of a run's page: a path below this one, whatever the journal says.
fn address(dir: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/=,+".contains(&byte);
    let mut out = String::from("./");
    for byte in dir.bytes() {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out.push_str("/report.html");
    out
}

fn link(all: &Gathered<'_>, run: &OneRun, words: &str) -> String {
    match all.dir.path.join(&run.ended.dir).join("report.html").is_file() {
        true => format!("<a href=\"{}\">{}</a>", esc(&address(&run.ended.dir)), esc(words)),
        false => esc(words),
    }
}

fn cells(all: &Gathered<'_>) -> String {
    let factors = all.factors();
    let mut names: Vec<String> = factors.iter().map(|name| (*name).to_owned()).collect();
    let points = all.rows.iter().any(|row| !row.figures.point.is_empty());
    if points || names.is_empty() {
        names.push("point".into());
    }
    let words = names.len();
    names.extend(heads(&[
        "runs",
        "operations/s",
        "95 % interval",
        "p50",
        "p99",
        "p99.9",
        "remarks",
        "reports",
    ]));
    let rows: Vec<Vec<String>> = all
        .rows
        .iter()
        .map(|row| {
            let mut line: Vec<String> = row.figures.levels.iter().map(|(_, label)| esc(label)).collect();
            if words > factors.len() {
                line.push(esc(&row.figures.point));
            }
            let (mean, half) = with_interval(row);
            line.extend([row.figures.runs.to_string(), mean, half]);
            match row.figures.response_us {
                Some(three) => line.extend(three.map(|v| if v.is_nan() { "-".into() } else { us(v) })),
                None => line.extend(["-"; 3].map(str::to_owned)),
            }
            line.push(esc(&remarks(row)));
            let links: Vec<String> =
                row.runs.iter().map(|run| link(all, run, &run.ended.repetition.to_string())).collect();
            line.push(links.join(" "));
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
        "{text}<p class=\"dim\">Intervals are Student's, over runs. Where they overlap, a difference is not shown by this.</p>\n"
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
        return "<p>No run gave a figure: there is nothing to draw.</p>\n".into();
    }
    let across = (0..all.factors().len()).max_by_key(|at| (all.levels(*at).len(), std::cmp::Reverse(*at)));
    let mut out = String::from("<div class=\"grid2\">\n");
    let groups = all.groups(&across.map_or(Vec::new(), |at| vec![at]));
    for (words, rows) in groups {
        // A search has several points in a cell: each stands by itself.
        let searched = rows.iter().any(|row| !row.figures.point.is_empty());
        let labels: Vec<String> = match across.filter(|_| !searched) {
            Some(at) => all.levels(at).iter().map(|level| (*level).to_owned()).collect(),
            None => rows.iter().map(|row| label(row)).collect(),
        };
        let dots = rows.iter().enumerate().filter_map(|(number, row)| {
            let mean = row.figures.throughput?;
            let place = match across.filter(|_| !searched) {
                Some(at) => labels.iter().position(|level| *level == row.figures.levels[at].1)?,
                None => number,
            };
            Some((place as f64, mean, row.figures.half_width.map(|share| share * mean)))
        });
        let dots = dots.collect();
        let title = if words.is_empty() {
            "Throughput, operations/s".into()
        } else {
            format!("{words}: operations/s")
        };
        let across = across.map_or("cell", |at| all.factors()[at]).to_owned();
        let plot =
            Plot { title, across, axis: Across::Words(labels), dots, lines: Vec::new(), top, show: rate };
        out.push_str(&plot.draw());
    }
    out.push_str("</div>\n<p class=\"dim\">Points are means over repetitions, bars their 95 % intervals; one run has none. All \
                  drawings have the same scale.</p>\n");
    out
}

/// Throughput of ten seconds, mean over runs; of tens that were recorded in full.
fn tens(rows: &[&Row]) -> Vec<Point> {
    let runs: Vec<&OneRun> =
        rows.iter().flat_map(|row| &row.runs).filter(|run| !run.seconds.is_empty()).collect();
    let last = runs.iter().filter_map(|run| run.seconds.keys().last()).max().map_or(0, |last| last + 1);
    (0..last / 10)
        .map(|ten| {
            let whole: Vec<f64> = runs
                .iter()
                .filter(|run| run.seconds.range(ten * 10..ten * 10 + 10).count() == 10)
                .map(|run| {
                    run.seconds.range(ten * 10..ten * 10 + 10).map(|(_, n)| *n as f64).sum::<f64>() / 10.0
                })
                .collect();
            let mean = (!whole.is_empty()).then(|| whole.iter().sum::<f64>() / whole.len() as f64);
            ((ten * 10 + 5) as f64, mean)
        })
        .collect()
}

/// Percona's comparison: throughput over time of all engines for each memory, and a table of memory by engine.
fn engines_by_memory(all: &Gathered<'_>, data: &mut Data) -> Option<String> {
    let factor = |name: &str| all.factors().iter().position(|factor| *factor == name);
    let (engine, memory) = (factor("engine")?, factor("memory")?);
    let of = |size: &str, name: &str| -> Vec<&Row> {
        let level = |row: &Row, factor: usize, wanted: &str| row.figures.levels[factor].1 == wanted;
        all.rows.iter().filter(|row| level(row, engine, name) && level(row, memory, size)).collect()
    };
    let (sizes, engines) = (all.levels(memory), all.levels(engine));
    let mut out = String::from(
        "<div class=\"tools\"><button type=\"button\" id=\"zoomin\">Zoom in</button><button type=\"button\" id=\"zoomout\">Zoom \
         out</button><button type=\"button\" id=\"reset\">Whole run</button><span id=\"view\"></span><span id=\"at\" \
         class=\"dim\"></span></div>\n",
    );
    for size in &sizes {
        let series = engines.iter().map(|name| packed(name, &tens(&of(size, name)), MOST)).collect();
        let title = format!("Memory {size}: throughput of ten seconds");
        let Some(chart) = Chart::plain(&format!("memory-{size}"), &title, "operations/s", series) else {
            let _ = writeln!(out, "<p>Memory {}: no run of ten seconds or more.</p>", esc(size));
            continue;
        };
        let _ = write!(out, "{}", figure(data.charts.len(), &chart));
        data.charts.push(chart);
    }
    let last = all.rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.seconds.keys().last()).max();
    data.span = (0.0, last.map_or(1.0, |last| (*last + 1) as f64));
    let mut names = heads(&["memory"]);
    names.extend(engines.iter().map(|name| (*name).to_owned()));
    let cell = |size: &str, name: &str| -> String {
        let rows = of(size, name);
        let runs: Vec<f64> = rows.iter().flat_map(|row| row.figures.throughputs.iter().copied()).collect();
        match (mean_interval(&runs), runs.first()) {
            (Some(found), _) => format!("{} +-{}", rate(found.mean), rate(found.half_width)),
            (None, Some(one)) => format!("{} (one run)", rate(*one)),
            (None, None) => "-".into(),
        }
    };
    let rows: Vec<Vec<String>> = sizes
        .iter()
        .map(|size| {
            std::iter::once((*size).to_owned()).chain(engines.iter().map(|name| cell(size, name))).collect()
        })
        .collect();
    out.push_str(&table("Throughput by memory and engine, operations/s, 95 % intervals", &names, &rows, 1));
    Some(out)
}

fn runs(all: &Gathered<'_>) -> String {
    let mut rows = Vec::new();
    for row in &all.rows {
        for run in &row.runs {
            rows.push(vec![
                link(all, run, &run.ended.dir),
                esc(&label(row)),
                run.ended.repetition.to_string(),
                esc(&run.ended.status),
                esc(&run.ended.trust),
                run.ended.throughput.map_or("-".into(), rate),
                esc(&run.ended.words),
            ]);
        }
    }
    let names = heads(&["run", "cell", "repetition", "status", "verdict", "operations/s", "words"]);
    format!("<div class=\"long\">{}</div>\n", table_of_markup("Every run that has ended", &names, &rows, 2))
}

fn repeat(dir: &ExperimentDir) -> String {
    let mut out = String::new();
    if !dir.command.is_empty() {
        let _ = write!(
            out,
            "<p>The same experiment again; secrets are masked:</p>\n<pre>{}</pre>\n",
            esc(&shell(&own_name(&dir.command)))
        );
    }
    let place = dir.path.display().to_string();
    let file = dir.path.join("experiment.yaml").display().to_string();
    for words in [vec!["dyno", "run", &file], vec!["dyno", "report", &place, "--format", "html"]] {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let _ = writeln!(out, "<pre>{}</pre>", esc(&shell(&words)));
    }
    out
}
