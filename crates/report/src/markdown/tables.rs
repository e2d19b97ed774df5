//! The sections before the tests.

use super::entry::{Component, Entry, PhaseFigures};
use super::{Document, esc};
use crate::faults;
use crate::html::shell;
use crate::tuning;
use std::fmt::Write as _;

/// Operations in bexhoma's order; others follow by name.
const ORDER: [&str; 5] = ["INSERT", "READ", "UPDATE", "SCAN", "READ-MODIFY-WRITE"];

fn two(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{v:.2}"))
}

/// A table of Markdown: the first column to the left, the others to the right, as tabulate writes them.
fn table(out: &mut String, heads: &[String], rows: &[Vec<String>]) {
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain(std::iter::once(heads[at].chars().count())).max().unwrap_or(0)
        })
        .collect();
    let line = |out: &mut String, cells: &[String]| {
        for (at, cell) in cells.iter().enumerate() {
            let fill = " ".repeat(widths[at] - cell.chars().count());
            let _ = if at == 0 { write!(out, "| {cell}{fill} ") } else { write!(out, "| {fill}{cell} ") };
        }
        out.push_str("|\n");
    };
    line(out, heads);
    for (at, width) in widths.iter().enumerate() {
        let dashes = "-".repeat(width + 1);
        let _ = if at == 0 { write!(out, "|:{dashes}") } else { write!(out, "|{dashes}:") };
    }
    out.push_str("|\n");
    rows.iter().for_each(|row| line(out, row));
    out.push('\n');
}

fn heads(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

/// Name, succeeded, p99, failed, p99 of the failed.
type Operation = (String, u64, Option<f64>, u64, Option<f64>);

/// A phase of a run.
type Pick = fn(&Entry) -> Option<&PhaseFigures>;

/// A row's figures of one or of several runs of the same cell.
struct Line {
    dbms: String,
    run: String,
    users: usize,
    target: Option<f64>,
    exceptions: u64,
    throughput: f64,
    seconds: f64,
    operations: Vec<Operation>,
    records: Option<f64>,
}

/// Several runs as one: counts and histograms add up, throughput and length are means.
fn line(
    entries: &[&Entry],
    pick: impl Fn(&Entry) -> Option<&PhaseFigures>,
    (dbms, run): (String, String),
) -> Option<Line> {
    let found: Vec<&PhaseFigures> = entries.iter().filter_map(|entry| pick(entry)).collect();
    let first = *found.first()?;
    let mut totals = first.totals.emptied();
    // Other operations, or another unit: these cannot be added up.
    let alike: Vec<&&PhaseFigures> =
        found.iter().filter(|one| one.names == first.names && one.totals.scale() == totals.scale()).collect();
    alike.iter().for_each(|one| totals.merge(&one.totals));
    let merged = PhaseFigures {
        phase: first.phase.clone(),
        names: first.names.clone(),
        totals,
        server: Component::default(),
        client: Component::default(),
        application: Vec::new(),
    };
    let mean =
        |of: &dyn Fn(&PhaseFigures) -> f64| found.iter().map(|one| of(one)).sum::<f64>() / found.len() as f64;
    let operations =
        merged.names.iter().enumerate().filter(|(_, name)| *name != "CLEANUP").map(|(at, name)| {
            let (ok, failed) = merged.counts(at);
            (name.clone(), ok, merged.p99_us(at, false), failed, merged.p99_us(at, true))
        });
    let mut operations: Vec<_> = operations.filter(|(_, ok, _, failed, _)| ok + failed > 0).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    operations.sort_by(|a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
    let offered: Vec<f64> = found.iter().filter_map(|one| one.phase.offered).collect();
    Some(Line {
        dbms,
        run,
        users: first.phase.client.users,
        target: (!offered.is_empty()).then(|| offered.iter().sum::<f64>() / offered.len() as f64),
        exceptions: found.iter().map(|one| one.exceptions()).sum(),
        throughput: mean(&|one| one.phase.written_per_s()),
        seconds: mean(&|one| one.phase.seconds),
        operations,
        records: entries[0].records(),
    })
}

impl Line {
    /// Heads and cells that loading and execution share.
    fn cells(&self, loading: bool, all: &[String], failing: &[String]) -> Vec<String> {
        let mut row = vec![
            self.dbms.clone(),
            self.run.clone(),
            self.users.to_string(),
            two(self.target),
            self.exceptions.to_string(),
        ];
        if loading {
            let sf = self.records.map(|records| records / 1e6);
            row.push(two(sf));
            row.push(two(sf.filter(|_| self.seconds > 0.0).map(|sf| sf * 3600.0 / self.seconds)));
        }
        row.push(two(Some(self.throughput)));
        row.push(two(Some(self.seconds * 1e3)));
        let of = |name: &String| self.operations.iter().find(|operation| operation.0 == *name);
        for name in all {
            row.push(of(name).map_or("-".into(), |operation| operation.1.to_string()));
            row.push(two(of(name).and_then(|operation| operation.2)));
        }
        for name in failing {
            row.push(of(name).map_or("0".into(), |operation| operation.3.to_string()));
            row.push(two(of(name).and_then(|operation| operation.4)));
        }
        row
    }
}

/// A table of lines.
fn lines(out: &mut String, loading: bool, all: &[Line]) {
    let mut names: Vec<String> = Vec::new();
    let mut failing: Vec<String> = Vec::new();
    for (name, _, _, failed, _) in all.iter().flat_map(|line| &line.operations) {
        if !names.contains(name) {
            names.push(name.clone());
        }
        if *failed > 0 && !failing.contains(name) {
            failing.push(name.clone());
        }
    }
    let mut head = heads(&["DBMS", "experiment_run", "threads", "target", "exceptions"]);
    if loading {
        head.extend(heads(&["sf", "Throughput [SF/h]"]));
    }
    head.extend(heads(&["[OVERALL].Throughput(ops/sec)", "[OVERALL].RunTime(ms)"]));
    for name in &names {
        let count = if name == "READ-MODIFY-WRITE" { "Operations" } else { "Return=OK" };
        head.extend([
            format!("[{}].{count}", esc(name)),
            format!("[{}].99thPercentileLatency(us)", esc(name)),
        ]);
    }
    for name in &failing {
        let name = esc(name);
        head.extend([
            format!("[{name}-FAILED].Operations"),
            format!("[{name}-FAILED].99thPercentileLatency(us)"),
        ]);
    }
    let rows: Vec<Vec<String>> = all.iter().map(|line| line.cells(loading, &names, &failing)).collect();
    table(out, &head, &rows);
}

impl Document {
    /// Entries by cell and point.
    fn by_cell(&self) -> Vec<Vec<&Entry>> {
        let mut all: Vec<Vec<&Entry>> = Vec::new();
        for entry in &self.entries {
            match all.iter_mut().find(|group| (group[0].cell, &group[0].point) == (entry.cell, &entry.point))
            {
                Some(group) => group.push(entry),
                None => all.push(vec![entry]),
            }
        }
        all
    }

    pub(super) fn workload(&self, out: &mut String) {
        let setting = |key: &str| self.entries.first().and_then(|entry| entry.settings.get(key));
        let records = self.entries.first().and_then(Entry::records);
        let sf = records.map_or(String::new(), |records| format!(" SF={}", records / 1e6));
        let _ = writeln!(out, "### Workload\n{}{sf}", esc(&self.name));
        let seconds: f64 = self.entries.iter().map(|entry| entry.seconds).sum();
        let _ = writeln!(
            out,
            "* Type: dyno\n* Duration: {seconds:.0}s (phases of all runs together)\n* Code: {}",
            esc(&self.code)
        );
        let _ = writeln!(out, "* This experiment compares run time and resource consumption.");
        let mut bullet = |text: String| {
            let _ = writeln!(out, "  * {}", esc(&text));
        };
        if let Some(words) = self.ending {
            bullet(words.to_owned());
        }
        if let Some(records) = records {
            bullet(format!("Number of rows is {records:.0}."));
        }
        for (key, words) in
            [("insertorder", "Ordering of inserts"), ("requestdistribution", "Distribution of requests")]
        {
            setting(key).into_iter().for_each(|value| bullet(format!("{words} is {value}.")));
        }
        bullet(format!("Experiment uses dyno version {}.", env!("CARGO_PKG_VERSION")));
        let databases: std::collections::BTreeSet<&str> =
            self.entries.iter().map(|e| e.database.as_str()).collect();
        bullet(format!("Databases: {}.", databases.into_iter().collect::<Vec<_>>().join(", ")));
        match self.planned {
            Some(planned) if self.searches => bullet(format!("{} cells, {planned} searches.", self.cells)),
            Some(planned) => bullet(format!("{} cells, {planned} runs planned.", self.cells)),
            None => bullet("Experiment is run once.".into()),
        }
        if !self.command.is_empty() {
            let words = crate::html::own_name(&self.command);
            bullet(format!("Command: {}", shell(&words)));
        }
        bullet(
            "Percentiles are of service times, from histograms merged over threads, workers and runs.".into(),
        );
        for note in self.notes.iter().chain(&self.missing) {
            bullet(format!("Not known: {note}"));
        }
        out.push('\n');
    }

    pub(super) fn connections(&self, out: &mut String) {
        out.push_str("### Connections\n");
        for group in self.by_cell() {
            let entry = group[0];
            let _ = writeln!(
                out,
                "* {} uses {} at {}",
                esc(&entry.cell_name()),
                esc(&entry.database),
                esc(&entry.target)
            );
            for (key, value) in &entry.facts {
                let _ = writeln!(out, "  * {}:{}", esc(key), esc(value));
            }
            for (key, value) in [("cell", &entry.label), ("point", &entry.point)] {
                if !value.is_empty() {
                    let _ = writeln!(out, "  * {key}:{}", esc(value));
                }
            }
        }
        out.push('\n');
    }

    pub(super) fn workflow(&self, out: &mut String) {
        out.push_str("### Workflow\n\n#### Actual\n\n");
        for entry in &self.entries {
            let point = if entry.point.is_empty() { String::new() } else { format!(", {}", entry.point) };
            let phases: Vec<&str> = [("load", entry.load.is_some()), ("measure", entry.measure.is_some())]
                .iter()
                .filter(|(_, is)| *is)
                .map(|(n, _)| *n)
                .collect();
            let client = entry.client.as_ref().map_or(String::new(), |client| format!(" Client {client}"));
            let _ = writeln!(
                out,
                "* DBMS {} - Experiment {}{}{}: {}",
                esc(&entry.configuration),
                entry.repetition,
                esc(&client),
                esc(&point),
                if phases.is_empty() { "nothing was recorded".into() } else { phases.join(", ") }
            );
            if !entry.links.is_empty() {
                let links: Vec<String> =
                    entry.links.iter().map(|(phase, address)| super::link(phase, address)).collect();
                let _ = writeln!(out, "  * on the dashboard: {}", links.join(", "));
            }
        }
        let _ = writeln!(
            out,
            "\n#### Planned\n\n* {} {} in {} cell(s)\n",
            self.planned.unwrap_or(1),
            if self.searches { "search(es)" } else { "run(s)" },
            self.cells
        );
    }

    /// What tunings have found.
    pub(super) fn tuning(&self, out: &mut String) {
        if self.tuned.is_empty() {
            return;
        }
        out.push_str("### Tuning\n\n");
        for cell in &self.tuned {
            let _ = writeln!(out, "* {}", esc(&tuning::headline(cell)));
            for words in tuning::effects(cell) {
                let _ = writeln!(out, "  * {}", esc(&words));
            }
        }
        for words in tuning::interactions(&self.tuned) {
            let _ = writeln!(out, "* {}", esc(&words));
        }
        out.push('\n');
    }

    pub(super) fn loading(&self, out: &mut String) {
        out.push_str("### Loading\n\n");
        let each = |entry: &Entry| {
            line(&[entry], |e| e.load.as_ref(), (esc(&entry.name()), entry.repetition.to_string()))
        };
        let all: Vec<Line> = self.entries.iter().filter_map(each).collect();
        if all.is_empty() {
            out.push_str(
                "Nothing was loaded: the records were there already, or loading was not asked for.\n\n",
            );
            return;
        }
        out.push_str("#### Per Connection\n\n");
        lines(out, true, &all);
        out.push_str("#### Per Run\n\n");
        let cells = self.by_cell();
        let all: Vec<Line> =
            cells.iter().filter_map(|group| line(group, |e| e.load.as_ref(), together(group))).collect();
        lines(out, true, &all);
    }

    pub(super) fn execution(&self, out: &mut String) {
        out.push_str("### Execution\n\n");
        let each = |entry: &Entry| {
            line(&[entry], |e| e.measure.as_ref(), (esc(&entry.name()), entry.repetition.to_string()))
        };
        let all: Vec<Line> = self.entries.iter().filter_map(each).collect();
        if all.is_empty() {
            out.push_str("No execution was recorded.\n\n");
            return;
        }
        out.push_str("#### Per Connection\n\n");
        lines(out, false, &all);
        out.push_str("#### Per Phase\n\n");
        let cells = self.by_cell();
        let all: Vec<Line> =
            cells.iter().filter_map(|group| line(group, |e| e.measure.as_ref(), together(group))).collect();
        lines(out, false, &all);
    }

    /// Only where the experiment asked for some.
    pub(super) fn faults(&self, out: &mut String) {
        let rows = |entry: &Entry| {
            let name = esc(&entry.name());
            let cells = |row: Vec<String>| row.iter().map(|cell| esc(cell)).collect::<Vec<_>>();
            let rows = entry.faults.iter().map(|one| [vec![name.clone()], cells(faults::row(one))].concat());
            rows.collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = self.entries.iter().flat_map(rows).collect();
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(out, "### Faults\n\n{}\n", faults::MEANING);
        table(out, &[heads(&["DBMS"]), heads(&faults::HEADS)].concat(), &rows);
    }

    pub(super) fn monitoring(&self, out: &mut String) {
        out.push_str("### Monitoring\n\n");
        let head = heads(&["DBMS", "CPU [CPUs]", "Max CPU", "Max RAM [Gb]", "Max RAM Cached [Gb]"]);
        for (title, of) in super::tests_made::COMPONENTS {
            let rows: Vec<Vec<String>> = self
                .entries
                .iter()
                .filter_map(|entry| Some((entry, of(entry)?)))
                .filter(|(_, seen)| **seen != Component::default())
                .map(|(entry, seen)| {
                    vec![
                        esc(&entry.name()),
                        two(seen.cpu_s),
                        two(seen.most),
                        two(seen.resident),
                        two(seen.cached),
                    ]
                })
                .collect();
            let _ = writeln!(out, "### {title}\n");
            match rows.is_empty() {
                true => out.push_str("Not watched.\n\n"),
                false => table(out, &head, &rows),
            }
        }
    }

    pub(super) fn application(&self, out: &mut String) {
        out.push_str("### Application Metrics\n\n");
        let phases: [(&str, Pick); 2] =
            [("Loading", |entry| entry.load.as_ref()), ("Execution", |entry| entry.measure.as_ref())];
        for (word, of) in phases {
            let found: Vec<(&Entry, &PhaseFigures)> =
                self.entries.iter().filter_map(|entry| Some((entry, of(entry)?))).collect();
            let mut titles: Vec<&str> = Vec::new();
            for (title, _) in found.iter().flat_map(|(_, figures)| &figures.application) {
                if !titles.contains(&title.as_str()) {
                    titles.push(title);
                }
            }
            let _ = writeln!(out, "#### {word} phase: SUT deployment\n");
            if titles.is_empty() {
                out.push_str("Not watched.\n\n");
                continue;
            }
            let mut head = heads(&["DBMS"]);
            // They may come from a configuration.
            head.extend(titles.iter().map(|title| esc(title)));
            let value = |figures: &PhaseFigures, title: &str| {
                two(figures
                    .application
                    .iter()
                    .find(|(known, _)| *known == title)
                    .and_then(|(_, value)| *value))
            };
            let row = |(entry, figures): &(&Entry, &PhaseFigures)| -> Vec<String> {
                let cells = titles.iter().map(|title| value(figures, title));
                std::iter::once(esc(&entry.name())).chain(cells).collect()
            };
            table(out, &head, &found.iter().map(row).collect::<Vec<_>>());
        }
    }
}

/// The name of a cell and of the repetitions in it.
fn together(group: &[&Entry]) -> (String, String) {
    let point = if group[0].point.is_empty() { String::new() } else { format!("-{}", group[0].point) };
    let run = if group.len() == 1 { group[0].repetition.to_string() } else { format!("all {}", group.len()) };
    (esc(&format!("{}{point}", group[0].cell_name())), run)
}
