//! The sections before the tests.

use super::entry::{Component, Entry, PhaseFigures};
use super::{Document, esc};
use crate::faults;
use crate::html::shell;
use crate::tuning;
use dyno_rundir::schema::{Latency, Phase, Status};
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

/// A row's figures: of a pod, of a run, or of several runs of the same cell.
struct Line {
    /// Columns that say what it is of.
    of: Vec<(&'static str, String)>,
    users: usize,
    target: Option<f64>,
    pods: usize,
    exceptions: u64,
    throughput: f64,
    seconds: f64,
    operations: Vec<Operation>,
    records: Option<f64>,
}

/// bexhoma's tables: columns stand in its order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    LoadingPods,
    LoadingRuns,
    ExecutionPods,
    ExecutionPhases,
}

fn sorted(operations: impl Iterator<Item = Operation>) -> Vec<Operation> {
    let mut all: Vec<Operation> =
        operations.filter(|(name, ok, _, failed, _)| name != "CLEANUP" && ok + failed > 0).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    all.sort_by(|a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
    all
}

/// A row for each pod: each worker process. What one process did alone is one row.
fn pods(entry: &Entry, pick: Pick, of: &dyn Fn(usize) -> Vec<(&'static str, String)>) -> Vec<Line> {
    let Some(found) = pick(entry) else { return Vec::new() };
    let each: Vec<&Phase> = entry
        .workers
        .iter()
        .filter_map(|worker| worker.phases.iter().find(|phase| phase.name == found.phase.name))
        .collect();
    if each.is_empty() {
        return line(&[entry], pick, of(1)).into_iter().collect();
    }
    let p99 = |latency: &Option<Latency>| latency.as_ref()?.percentiles_us.get("p99").copied().flatten();
    let row = |(at, phase): (usize, &&Phase)| {
        let operations = phase.metrics.iter().map(|metric| {
            let ok = metric.outcomes.get("ok").copied().unwrap_or(0);
            let failed = metric.outcomes.values().sum::<u64>() - ok;
            (metric.name.clone(), ok, p99(&metric.service), failed, p99(&metric.failed_service))
        });
        Line {
            of: of(at + 1),
            users: phase.client.users,
            target: found.phase.offered.map(|all| all / each.len() as f64),
            pods: each.len(),
            exceptions: exceptions(phase),
            throughput: phase.written_per_s(),
            seconds: phase.seconds,
            operations: sorted(operations),
            // As in bexhoma: the data are loaded when all are done.
            records: entry.records(),
        }
    };
    each.iter().enumerate().map(row).collect()
}

/// Several runs as one: counts and histograms add up, throughput and length are means.
fn line(
    entries: &[&Entry],
    pick: impl Fn(&Entry) -> Option<&PhaseFigures>,
    of: Vec<(&'static str, String)>,
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
    let operations = merged.names.iter().enumerate().map(|(at, name)| {
        let (ok, failed) = merged.counts(at);
        (name.clone(), ok, merged.p99_us(at, false), failed, merged.p99_us(at, true))
    });
    let offered: Vec<f64> = found.iter().filter_map(|one| one.phase.offered).collect();
    let parts = entries[0].workers.iter().flat_map(|worker| &worker.phases);
    let parts: Vec<&Phase> = parts.filter(|one| one.name == first.phase.name).collect();
    // Of a run that failed in this phase its workers know them.
    let users = match first.phase.client.users {
        0 => parts.iter().map(|one| one.client.users).sum(),
        users => users,
    };
    Some(Line {
        of,
        users,
        target: (!offered.is_empty()).then(|| offered.iter().sum::<f64>() / offered.len() as f64),
        pods: parts.len().max(1),
        exceptions: found.iter().map(|one| exceptions(&one.phase)).sum(),
        throughput: mean(&|one| one.phase.written_per_s()),
        seconds: mean(&|one| one.phase.seconds),
        operations: sorted(operations),
        records: entries[0].records(),
    })
}

impl Line {
    /// Heads and cells.
    fn columns(&self, kind: Table, all: &[String], failing: &[String]) -> Vec<(String, String)> {
        let mut row: Vec<(String, String)> =
            self.of.iter().map(|(head, cell)| ((*head).to_owned(), cell.clone())).collect();
        let mut put = |head: &str, cell: String| row.push((head.to_owned(), cell));
        put("threads", self.users.to_string());
        put("target", two(self.target));
        if kind == Table::ExecutionPhases {
            put("benchmark_run", "1".into());
        }
        put("pod_count", self.pods.to_string());
        put("exceptions", self.exceptions.to_string());
        let sf = self.records.map(|records| records / 1e6);
        let per_hour = two(sf.filter(|_| self.seconds > 0.0).map(|sf| sf * 3600.0 / self.seconds));
        if kind == Table::LoadingRuns {
            put("sf", two(sf));
            put("Throughput [SF/h]", per_hour.clone());
        }
        put("[OVERALL].Throughput(ops/sec)", two(Some(self.throughput)));
        put("[OVERALL].RunTime(ms)", two(Some(self.seconds * 1e3)));
        let of = |name: &String| self.operations.iter().find(|operation| operation.0 == *name);
        for name in all {
            let count = if name == "READ-MODIFY-WRITE" { "Operations" } else { "Return=OK" };
            let found = of(name);
            put(&format!("[{}].{count}", esc(name)), found.map_or("-".into(), |one| one.1.to_string()));
            put(&format!("[{}].99thPercentileLatency(us)", esc(name)), two(found.and_then(|one| one.2)));
        }
        for name in failing {
            let (found, name) = (of(name), esc(name));
            put(&format!("[{name}-FAILED].Operations"), found.map_or("0".into(), |one| one.3.to_string()));
            put(&format!("[{name}-FAILED].99thPercentileLatency(us)"), two(found.and_then(|one| one.4)));
        }
        if kind == Table::LoadingPods {
            put("sf", two(sf));
            put("Throughput [SF/h]", per_hour);
        }
        row
    }
}

/// A table of lines.
fn lines(out: &mut String, kind: Table, all: &[Line]) {
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
    let rows: Vec<Vec<(String, String)>> =
        all.iter().map(|line| line.columns(kind, &names, &failing)).collect();
    let heads = rows.first().into_iter().flatten().map(|(head, _)| head.clone()).collect::<Vec<_>>();
    let cells = |row: &Vec<(String, String)>| row.iter().map(|(_, cell)| cell.clone()).collect();
    table(out, &heads, &rows.iter().map(cells).collect::<Vec<_>>());
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
        let (name, kind) = match &self.about {
            Some(about) => (about.name.clone(), "ycsb"),
            None => (format!("{}{sf}", self.name), "dyno"),
        };
        let _ = writeln!(out, "### Workload\n{}", esc(&name));
        let seconds: f64 = self.entries.iter().map(|entry| entry.seconds).sum();
        let _ = writeln!(
            out,
            "* Type: {kind}\n* Duration: {seconds:.0}s (phases of all runs together)\n* Code: {}",
            esc(&self.code)
        );
        let _ = writeln!(out, "* This experiment compares run time and resource consumption.");
        let mut bullet = |text: String| {
            let _ = writeln!(out, "  * {}", esc(&text));
        };
        if let Some(words) = self.ending {
            bullet(words.to_owned());
        }
        let told = self.about.iter().flat_map(|about| &about.bullets);
        told.for_each(|words| bullet(words.clone()));
        if let (Some(records), None) = (records, &self.about) {
            bullet(format!("Number of rows is {records:.0}."));
        }
        for (key, words) in
            [("insertorder", "Ordering of inserts"), ("requestdistribution", "Distribution of requests")]
        {
            let told = self.about.is_some() && key == "insertorder";
            setting(key)
                .filter(|_| !told)
                .into_iter()
                .for_each(|value| bullet(format!("{words} is {value}.")));
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
        for (name, why) in &self.ended_badly {
            bullet(format!("{name}: {why}"));
        }
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
            for (name, facts) in &entry.places {
                let _ = writeln!(out, "  * {}", esc(name));
                for (key, value) in facts {
                    let _ = writeln!(out, "    * {}:{}", esc(key), esc(value));
                }
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
            let ended = match entry.status {
                Status::Complete => "",
                Status::Interrupted => " (interrupted)",
                Status::Failed | Status::Running => " (failed)",
            };
            let client = entry.client.as_ref().map_or(String::new(), |client| format!(" Client {client}"));
            if self.about.is_some() && entry.measure.is_some() {
                let _ = writeln!(out, "* {}{ended}", esc(&entry.round()));
                continue;
            }
            let _ = writeln!(
                out,
                "* DBMS {} - Experiment {}{}{}: {}",
                esc(&entry.configuration),
                entry.repetition,
                esc(&client),
                esc(&point),
                if phases.is_empty() { "nothing was recorded".into() } else { phases.join(", ") } + ended
            );
            if !entry.links.is_empty() {
                let links: Vec<String> =
                    entry.links.iter().map(|(phase, address)| super::link(phase, address)).collect();
                let _ = writeln!(out, "  * on the dashboard: {}", links.join(", "));
            }
        }
        if let Some(about) = &self.about {
            out.push_str("\n#### Planned\n\n");
            about.planned.iter().for_each(|line| out.push_str(&format!("* {}\n", esc(line))));
            out.push('\n');
            return;
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
            pods(entry, |entry| entry.load.as_ref(), &|child| {
                let connection = format!("{}-0-1-{child}{}", entry.run_name(), entry.at_point());
                vec![("connection", esc(&connection)), ("experiment_run", entry.repetition.to_string())]
            })
        };
        let all: Vec<Line> = self.entries.iter().flat_map(each).collect();
        if all.is_empty() {
            out.push_str(match self.ended_badly.is_empty() {
                true => {
                    "Nothing was loaded: the records were there already, or loading was not asked for.\n\n"
                }
                false => "No load was recorded: see above for what failed.\n\n",
            });
            return;
        }
        out.push_str("#### Per Connection\n\n");
        lines(out, Table::LoadingPods, &all);
        out.push_str("#### Per Run\n\n");
        let pick: Pick = |entry| entry.load.as_ref();
        lines(
            out,
            Table::LoadingRuns,
            &self.each_and_together(pick, &|entry, run| {
                vec![("DBMS", esc(&entry.run_name())), ("experiment_run", run)]
            }),
        );
    }

    pub(super) fn execution(&self, out: &mut String) {
        out.push_str("### Execution\n\n");
        let pick: Pick = |entry| entry.measure.as_ref();
        let each = |entry: &Entry| {
            pods(entry, pick, &|child| {
                vec![
                    ("DBMS", esc(&format!("{}-{child}", entry.job()))),
                    ("phase", esc(&entry.phase_name())),
                    ("job", esc(&entry.job())),
                    ("configuration", esc(&entry.configuration)),
                    ("experiment_run", entry.repetition.to_string()),
                    ("client", entry.client().to_owned()),
                    ("benchmark_run", "1".into()),
                    ("child", child.to_string()),
                ]
            })
        };
        let all: Vec<Line> = self.entries.iter().flat_map(each).collect();
        if all.is_empty() {
            out.push_str("No execution was recorded.\n\n");
            return;
        }
        out.push_str("#### Per Connection\n\n");
        lines(out, Table::ExecutionPods, &all);
        out.push_str("#### Per Phase\n\n");
        lines(
            out,
            Table::ExecutionPhases,
            &self.each_and_together(pick, &|entry, run| {
                let name = esc(&entry.phase_name());
                vec![("DBMS", name.clone()), ("phase", name), ("experiment_run", run)]
            }),
        );
    }

    /// A row for each run, its pods together, and one for all repetitions of a cell where there are several.
    fn each_and_together(
        &self,
        pick: Pick,
        of: &dyn Fn(&Entry, String) -> Vec<(&'static str, String)>,
    ) -> Vec<Line> {
        let each = |entry: &&Entry| line(&[entry], pick, of(entry, entry.repetition.to_string()));
        let rows = |group: &Vec<&Entry>| {
            let mut rows: Vec<Line> = group.iter().filter_map(each).collect();
            if rows.len() > 1 {
                let heads = of(group[0], format!("all {}", rows.len())).into_iter();
                let name = together(group);
                let of = heads.map(|(head, cell)| match head {
                    "experiment_run" => (head, cell),
                    _ => (head, name.clone()),
                });
                rows.extend(line(group, pick, of.collect()));
            }
            rows
        };
        self.by_cell().iter().flat_map(rows).collect()
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
        for (title, of) in self.components() {
            let rows: Vec<Vec<String>> = self
                .entries
                .iter()
                .filter_map(|entry| Some((entry, of(entry)?)))
                .filter(|(_, seen)| **seen != Component::default())
                .map(|(entry, seen)| {
                    vec![
                        esc(&entry.job()),
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
            let _ = writeln!(out, "#### {word} phase: {}\n", self.servers());
            if titles.is_empty() {
                out.push_str("Not watched.\n\n");
                continue;
            }
            let mut head = heads(&["DBMS"]);
            // They may come from a configuration.
            head.extend(titles.iter().map(|title| esc(title)));
            let value = |figures: &PhaseFigures, title: &str| {
                let found = figures.application.iter().find(|(known, _)| *known == title);
                match found.and_then(|(_, value)| *value) {
                    // Counts are whole.
                    Some(count) if title.ends_with("[count]") && count.fract() == 0.0 => {
                        format!("{count:.0}")
                    }
                    value => two(value),
                }
            };
            let row = |(entry, figures): &(&Entry, &PhaseFigures)| -> Vec<String> {
                let cells = titles.iter().map(|title| value(figures, title));
                std::iter::once(esc(&entry.job())).chain(cells).collect()
            };
            table(out, &head, &found.iter().map(row).collect::<Vec<_>>());
        }
    }
}

/// The name of a cell.
fn together(group: &[&Entry]) -> String {
    esc(&format!("{}{}", group[0].cell_name(), group[0].at_point()))
}

/// Arrivals that did not end well.
fn exceptions(phase: &Phase) -> u64 {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    phase.outcomes.values().sum::<u64>().saturating_sub(ok)
}
