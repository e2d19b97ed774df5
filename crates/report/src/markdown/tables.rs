//! The sections before the tests.

use crate::faults;
use crate::markdown::entry::{Component, Entry, PhaseFigures};
use crate::markdown::rows::{Line, Of, Pick, Table, heads, line, lines, pods, table, two};
use crate::markdown::{Document, esc};
use crate::tuning;
use dyno_rundir::schema::Status;
use dyno_types::shell::{again, quoted};
use std::fmt::Write as _;

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
            let words = again(&self.command);
            bullet(format!("Command: {}", quoted(&words)));
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
                let links: Vec<String> = entry
                    .links
                    .iter()
                    .map(|(phase, address)| crate::markdown::link(phase, address))
                    .collect();
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

    /// Results of tunings.
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
    fn each_and_together(&self, pick: Pick, of: &dyn Fn(&Entry, String) -> Of) -> Vec<Line> {
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
